// Links: what a smooth loss makes of a block of scores, namely its value and the residuals
// ∂value/∂score, written over the scores.
//
// The exponentials work on whole registers and differ from the library's by a few units in the last
// place. Contraction to fused multiply-add is allowed here: these sums feed descents whose result is
// certified, not decisions that must fall alike on every processor.
#pragma once

#include <cmath>
#include <cstdint>

#include "rows.hpp"
#include "sweep_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
struct Register {
    static constexpr int COUNT = REGISTER_BYTES / sizeof(T);
    typedef T Values __attribute__((vector_size(REGISTER_BYTES)));
    typedef Bits<T> Integers __attribute__((vector_size(REGISTER_BYTES)));

    static Values load(const T* from) {
        Values loaded;
        __builtin_memcpy(&loaded, from, REGISTER_BYTES);
        return loaded;
    }
    static void store(T* to, Values values) { __builtin_memcpy(to, &values, REGISTER_BYTES); }
    static Values all(T value) { return value - Values{}; }
};

// Stays in a register: the compiler would rather read memory again for each product.
template <class V>
inline V held(V values) {
#if defined(__x86_64__)
    asm("" : "+x"(values));
#endif
    return values;
}

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<double> {
    static constexpr double SHIFT = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to an integer
    static constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
    static constexpr double LOWEST = -708.0;
    static constexpr int MANTISSA = 52, BIAS = 1023, TERMS = 13;
};
template <>
struct ExpConstants<float> {
    static constexpr float SHIFT = 12582912.0f;  // 1.5 · 2^23
    static constexpr float LN2_HIGH = 6.93359375e-01f, LN2_LOW = -2.12194440e-4f;
    static constexpr float LOWEST = -87.0f;
    static constexpr int MANTISSA = 23, BIAS = 127, TERMS = 7;
};

// 1/k! for Taylor's series; |r| ≤ ln 2 / 2 makes it accurate to the last place with TERMS terms.
constexpr double INVERSE_FACTORIAL[] = {1.0,           1.0,           1.0 / 2,        1.0 / 6,       1.0 / 24,
                                        1.0 / 120,     1.0 / 720,     1.0 / 5040,     1.0 / 40320,   1.0 / 362880,
                                        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};

// e^x for x ≤ 0; values below LOWEST give the (tiny) exponential of LOWEST.
template <class T>
inline typename Register<T>::Values exp_negative(typename Register<T>::Values x) {
    using R = Register<T>;
    using C = ExpConstants<T>;
    const auto low = x < R::all(C::LOWEST);
    x = low ? R::all(C::LOWEST) : x;
    const auto shifted = x * static_cast<T>(1.4426950408889634) + C::SHIFT;
    const auto n = shifted - C::SHIFT;
    auto r = x - n * C::LN2_HIGH;
    r = r - n * C::LN2_LOW;
    auto sum = R::all(static_cast<T>(INVERSE_FACTORIAL[C::TERMS]));
    for (int k = C::TERMS - 1; k >= 0; --k) sum = sum * r + static_cast<T>(INVERSE_FACTORIAL[k]);
    typename R::Integers power;
    __builtin_memcpy(&power, &shifted, sizeof(power));
    power = (power + C::BIAS) << C::MANTISSA;  // the shift leaves only n's low bits: 2^n
    typename R::Values scale;
    __builtin_memcpy(&scale, &power, sizeof(scale));
    return sum * scale;
}

// ln(1 + z) for 0 ≤ z ≤ 1, as 2 artanh(z / (2 + z)).
template <class T>
inline typename Register<T>::Values log1p_unit(typename Register<T>::Values z) {
    constexpr int terms = sizeof(T) == 8 ? 16 : 7;
    const auto s = z / (z + T(2));
    const auto square = s * s;
    auto sum = Register<T>::all(T(1) / (2 * terms + 1));
    for (int k = terms - 1; k >= 0; --k) sum = sum * square + T(1.0 / (2 * k + 1));
    return T(2) * s * sum;
}

// ln x for x ≥ 1: exponent and mantissa apart, then 2 artanh((m − 1) / (m + 1)) for √½ ≤ m ≤ √2.
template <class T>
inline typename Register<T>::Values log_above_one(typename Register<T>::Values x) {
    using R = Register<T>;
    using C = ExpConstants<T>;
    constexpr int terms = sizeof(T) == 8 ? 10 : 4;
    typename R::Integers bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    auto exponent = __builtin_convertvector((bits >> C::MANTISSA) - C::BIAS, typename R::Values);
    bits = (bits & ((Bits<T>(1) << C::MANTISSA) - 1)) | (Bits<T>(C::BIAS) << C::MANTISSA);
    typename R::Values m;
    __builtin_memcpy(&m, &bits, sizeof(m));
    const auto large = m > R::all(T(1.4142135623730951));
    m = large ? m * T(0.5) : m;
    exponent = large ? exponent + T(1) : exponent;
    const auto s = (m - T(1)) / (m + T(1));
    const auto square = s * s;
    auto sum = R::all(T(1) / (2 * terms + 1));
    for (int k = terms - 1; k >= 0; --k) sum = sum * square + T(1.0 / (2 * k + 1));
    return exponent * T(0.6931471805599453) + T(2) * s * sum;
}

// The weights of COUNT neighbouring samples; 0 beyond the last.
template <class T>
inline typename Register<T>::Values weights_of(const SweepState& state, std::int64_t first, std::int64_t count) {
    using R = Register<T>;
    T weights[R::COUNT];
    for (int l = 0; l < R::COUNT; ++l)
        weights[l] = l >= count ? T(0) : state.weights ? static_cast<T>(state.weights[first + l]) : T(1);
    return R::load(weights);
}

template <class T>
inline double sum_of(typename Register<T>::Values values) {
    double sum = 0;
    for (int l = 0; l < Register<T>::COUNT; ++l) sum += static_cast<double>(values[l]);
    return sum;
}

// Links work on scores that stand column by column, scores[k * stride + i], whole registers of samples
// at a time. The scores of samples beyond the last must be finite; their residuals become 0.

// Softmax: value Σ_i s_i (ln Σ_k e^{f_ik} − f_{i,c_i}), residuals s_i (p_ik − t_ik).
template <class T>
struct SoftmaxLink {
    const SweepState& state;

    double apply(std::int64_t first, std::int64_t rows, T* scores) const {
        const std::int64_t K = state.columns, stride = state.stride;
        using R = Register<T>;
        auto value = R::all(0);
        for (std::int64_t i = 0; i < rows; i += R::COUNT) {
            T* f = scores + i;
            const int count = static_cast<int>(rows - i < R::COUNT ? rows - i : R::COUNT);
            T own[R::COUNT] = {}, chosen[R::COUNT];
            for (int l = 0; l < count; ++l) own[l] = f[state.classes[first + i + l] * stride + l];
            auto largest = R::load(f);
            for (std::int64_t k = 1; k < K; ++k) {
                const auto other = R::load(f + k * stride);
                largest = other > largest ? other : largest;
            }
            auto sum = R::all(0);
            for (std::int64_t k = 0; k < K; ++k) {
                const auto e = exp_negative<T>(R::load(f + k * stride) - largest);
                R::store(f + k * stride, e);
                sum += e;
            }
            const auto s = weights_of<T>(state, first + i, count);
            value += s * (log_above_one<T>(sum) + (largest - R::load(own)));
            const auto factor = s / sum;
            for (std::int64_t k = 0; k < K; ++k) R::store(f + k * stride, R::load(f + k * stride) * factor);
            R::store(chosen, s);
            for (int l = 0; l < count; ++l) f[state.classes[first + i + l] * stride + l] -= chosen[l];
        }
        return sum_of<T>(value);
    }
};

// Independent columns with codes y ∈ {−1, 0, +1}: value Σ s ln(1 + e^{−y f}), residuals −s y σ(−y f).
template <class T>
struct LogisticLink {
    const SweepState& state;

    double apply(std::int64_t first, std::int64_t rows, T* scores) const {
        const std::int64_t K = state.columns, stride = state.stride;
        using R = Register<T>;
        auto value = R::all(0);
        for (std::int64_t i = 0; i < rows; i += R::COUNT) {
            const int count = static_cast<int>(rows - i < R::COUNT ? rows - i : R::COUNT);
            const auto s = weights_of<T>(state, first + i, count);
            for (std::int64_t k = 0; k < K; ++k) {
                T codes[R::COUNT] = {};
                for (int l = 0; l < count; ++l) codes[l] = state.codes[state.classes[first + i + l] * K + k];
                const auto y = R::load(codes), m = y * R::load(scores + k * stride + i);
                const auto c = s * y;
                const auto negative = m < T(0);
                const auto z = exp_negative<T>(negative ? m : -m);
                const auto soft = log1p_unit<T>(z) - (negative ? m : R::all(0));
                value += (c < T(0) ? -c : c) * soft;
                // σ(−m) = e^{−m} / (1 + e^{−m}), from the exponential that cannot overflow
                R::store(scores + k * stride + i, -c * (negative ? R::all(1) : z) / (z + T(1)));
            }
        }
        return sum_of<T>(value);
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
