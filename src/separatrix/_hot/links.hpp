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

// Softmax: value Σ_i s_i (ln Σ_k e^{f_ik} − f_{i,c_i}), residuals s_i (p_ik − t_ik).
template <class T>
struct SoftmaxLink {
    const SweepState& state;

    double apply(std::int64_t first, std::int64_t rows, T* scores) const {
        const std::int64_t K = state.columns, stride = state.stride;
        using R = Register<T>;
        double value = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            T* f = scores + i * stride;
            T largest = f[0];
            for (std::int64_t k = 1; k < K; ++k) largest = f[k] > largest ? f[k] : largest;
            const T own = f[state.classes[first + i]];
            for (std::int64_t k = 0; k < K; ++k) f[k] -= largest;
            for (std::int64_t k = 0; k < stride; k += R::COUNT) R::store(f + k, exp_negative<T>(R::load(f + k)));
            T sum = 0;
            for (std::int64_t k = 0; k < K; ++k) sum += f[k];
            const double s = state.weights ? state.weights[first + i] : 1.0;
            value += s * (std::log(static_cast<double>(sum)) + (static_cast<double>(largest) - own));
            const T factor = static_cast<T>(s) / sum;
            for (std::int64_t k = 0; k < K; ++k) f[k] *= factor;
            f[state.classes[first + i]] -= static_cast<T>(s);
        }
        return value;
    }
};

// Independent columns with codes y ∈ {−1, 0, +1}: value Σ s ln(1 + e^{−y f}), residuals −s y σ(−y f).
template <class T>
struct LogisticLink {
    const SweepState& state;

    double apply(std::int64_t first, std::int64_t rows, T* scores) const {
        const std::int64_t K = state.columns, stride = state.stride;
        using R = Register<T>;
        double value = 0;
        T losses[R::COUNT], residuals[R::COUNT], margins[R::COUNT], factors[R::COUNT];
        const std::int64_t total = rows * K;
        for (std::int64_t at = 0; at < total; at += R::COUNT) {
            const int count = static_cast<int>(total - at < R::COUNT ? total - at : R::COUNT);
            for (int l = 0; l < R::COUNT; ++l) {
                const std::int64_t i = (at + (l < count ? l : 0)) / K, k = (at + (l < count ? l : 0)) % K;
                const T y = state.codes[state.classes[first + i] * K + k];
                margins[l] = y * scores[i * stride + k];
                factors[l] = y * static_cast<T>(state.weights ? state.weights[first + i] : 1.0);
            }
            const auto m = R::load(margins), c = R::load(factors);
            const auto negative = m < T(0);
            const auto z = exp_negative<T>(negative ? m : -m);
            const auto soft = log1p_unit<T>(z) - (negative ? m : R::all(0));
            R::store(losses, (c < T(0) ? -c : c) * soft);
            // σ(−m) = e^{−m} / (1 + e^{−m}), from the exponential that cannot overflow
            R::store(residuals, -c * (negative ? R::all(1) : z) / (z + T(1)));
            for (int l = 0; l < count; ++l) {
                value += static_cast<double>(losses[l]);
                scores[(at + l) / K * stride + (at + l) % K] = residuals[l];
            }
        }
        return value;
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
