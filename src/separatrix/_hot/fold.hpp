// Sums over the lanes of registers.
#pragma once

#include "links.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SEPARATRIX_SHUFFLES
#endif
#endif

#if defined(SEPARATRIX_SHUFFLES)
// The lower lanes plus the upper ones, without a detour through memory.
template <class V>
inline auto half_of(V v) {
    if constexpr (sizeof(V) / sizeof(v[0]) == 8)
        return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    else
        return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
               __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}
#endif

// The sums over the lanes of four registers, by shuffles that fold all four at once.
template <class T, class V>
inline void fold_four(V a, V b, V c, V d, T* out) {
    constexpr int COUNT = sizeof(V) / sizeof(T);
#if defined(SEPARATRIX_SHUFFLES)
    if constexpr (COUNT == 4) {
        const V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
        const V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
        const V all = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        __builtin_memcpy(out, &all, 4 * sizeof(T));
        return;
    } else if constexpr (COUNT >= 8) {
        return fold_four<T>(half_of(a), half_of(b), half_of(c), half_of(d), out);
    }
#endif
    const V whole[4] = {a, b, c, d};
    for (int r = 0; r < 4; ++r) {
        out[r] = 0;
        for (int l = 0; l < COUNT; ++l) out[r] += whole[r][l];
    }
}

// The lanes of a register as double ones; where there are twice as many, two are added.
inline Register<double>::Values widened(Register<double>::Values values) { return values; }
inline Register<double>::Values widened(Register<float>::Values values) {
    typedef float Half __attribute__((vector_size(REGISTER_BYTES / 2)));
    typedef Register<double>::Values Wide;
    Half low, high;
    __builtin_memcpy(&low, &values, sizeof(low));
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&values) + sizeof(low), sizeof(high));
    return __builtin_convertvector(low, Wide) + __builtin_convertvector(high, Wide);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
