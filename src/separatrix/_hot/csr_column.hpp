// Sparse rows times one column, or times two that stand beside each other (the weights that learn and those
// that are judged), as quickly as the look-ups go.
#pragma once

#include <cstdint>
#include <utility>

#include "csr_rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Two neighbours in one register.
template <class T>
struct Pair {
    typedef T Values __attribute__((vector_size(16)));
    typedef double Halves __attribute__((vector_size(16)));

    static Values load(const T* from) {
        if constexpr (sizeof(T) == 8) {
            Values both;
            __builtin_memcpy(&both, from, sizeof both);
            return both;
        } else {  // two floats: half of the smallest register
            double half;
            __builtin_memcpy(&half, from, sizeof half);
            return reinterpret_cast<Values>(Halves{half, 0.0});
        }
    }
};

template <class T>
inline typename Lanes<T>::Values magnitudes(typename Lanes<T>::Values values) {
    constexpr Bits<T> SIGN = Bits<T>(1) << (8 * sizeof(T) - 1);
    const auto pattern = reinterpret_cast<typename Lanes<T>::Mask>(values) & ~SIGN;
    return reinterpret_cast<typename Lanes<T>::Values>(pattern);
}

// The weights of some features. (Not value by value into a vector: its register would wait for what it held.)
template <class T, int STRIDE, class Index, int... L>
SEPARATRIX_INLINE auto look_up(const T* weights, const Index* features, std::integer_sequence<int, L...>) {
    return typename Lanes<T>::Values{weights[static_cast<std::int64_t>(features[L]) * STRIDE]...};
}

// out[c] = row i · column c for COUNT columns, weights[j * STRIDE + c]; returns the sum of the row's
// magnitudes. Summed by LANES values at a time. The last of them may overlap those before, or those of the row
// before, which then count as zeros: a rest with a loop of its own has an end that the processor cannot
// foresee. The same on every instruction set.
template <int COUNT, int STRIDE, class T, class Index>
SEPARATRIX_INLINE T column_sums(const CsrRows<T, Index>& rows, std::int64_t i, const T* weights, T* out) {
    using Values = typename Lanes<T>::Values;
    using Mask = typename Lanes<T>::Mask;
    constexpr int STEP = Lanes<T>::STEP, PARTS = Lanes<T>::PARTS, CHAINS = 4;
    std::int64_t p = rows.indptr[i];
    const std::int64_t end = rows.indptr[i + 1];
    if (end < LANES || p == end) {  // only the first rows of all, and empty ones
        T size = 0;
        for (int c = 0; c < COUNT; ++c) out[c] = 0;
        for (; p < end; ++p) {
            size += rows.data[p] < 0 ? -rows.data[p] : rows.data[p];
            for (int c = 0; c < COUNT; ++c)
                out[c] += weights[static_cast<std::int64_t>(rows.indices[p]) * STRIDE + c] * rows.data[p];
        }
        return size;
    }
    Lanes<T> sum, size;
    typename Pair<T>::Values pair[CHAINS] = {};
    const auto add_lanes = [&](const Index* features, const T* x) {
        for (int q = 0; q < PARTS; ++q) {
            const auto values = Lanes<T>::template load<Values>(x + q * STEP);
            size.part[q] += magnitudes<T>(values);
            if constexpr (COUNT == 1)
                sum.part[q] += values * look_up<T, STRIDE>(weights, features + q * STEP,
                                                           std::make_integer_sequence<int, STEP>{});
        }
        if constexpr (COUNT == 2)
            for (int l = 0; l < LANES; ++l)
                pair[l % CHAINS] +=
                    Pair<T>::load(weights + static_cast<std::int64_t>(features[l]) * STRIDE) * x[l];
    };
    for (; p + LANES < end; p += LANES) add_lanes(rows.indices + p, rows.data + p);
    const std::int64_t from = end - LANES;
    T last[LANES];
    for (int q = 0; q < PARTS; ++q) {
        const Mask kept = Lanes<T>::template load<Mask>(rows.data + from + q * STEP) &
                          Lanes<T>::template load<Mask>(MASKS<T>.from[p - from] + q * STEP);
        __builtin_memcpy(last + q * STEP, &kept, sizeof kept);
    }
    add_lanes(rows.indices + from, last);
    if constexpr (COUNT == 1) {
        out[0] = sum.sum();
    } else {
        const auto both = (pair[0] + pair[2]) + (pair[1] + pair[3]);
        for (int c = 0; c < COUNT; ++c) out[c] = both[c];
    }
    return size.sum();
}

// The same for a stride of 1 or 2, and weights of which none is larger than `largest`. Returns how far any of
// these scores, with a constant of at most `constant` added, can be from that of rows.scores() with it: each
// of the two sums is off by at most (terms + 1) ε / 2 times the sum of its terms' magnitudes.
template <int COUNT, class T, class Index>
SEPARATRIX_INLINE T bounded_column_scores(const CsrRows<T, Index>& rows, std::int64_t i, const T* weights,
                                          std::int64_t stride, T largest, T constant, T* out) {
    constexpr T EPSILON = sizeof(T) == 4 ? T(1.1920929e-7) : T(2.220446049250313e-16);
    const T size = stride == 1 && COUNT == 1 ? column_sums<COUNT, 1>(rows, i, weights, out)
                                             : column_sums<COUNT, 2>(rows, i, weights, out);
    const T terms = static_cast<T>(rows.indptr[i + 1] - rows.indptr[i]);
    return (terms + 4) * 2 * EPSILON * (largest * size + constant);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
