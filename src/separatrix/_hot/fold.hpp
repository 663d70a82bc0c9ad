// Sums over the lanes of registers.
#pragma once

#include "links.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// The sums over the lanes of four registers, by shuffles that fold all four at once.
template <class T, class V>
inline void fold_four(V a, V b, V c, V d, T* out) {
    constexpr int COUNT = sizeof(V) / sizeof(T);
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SEPARATRIX_SHUFFLES
#endif
#endif
#if defined(SEPARATRIX_SHUFFLES)
    if constexpr (COUNT == 4) {
        const V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
        const V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
        const V all = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        __builtin_memcpy(out, &all, 4 * sizeof(T));
        return;
    } else if constexpr (COUNT >= 8) {
        typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
        Half halves[4][2];
        const V whole[4] = {a, b, c, d};
        for (int r = 0; r < 4; ++r) {
            __builtin_memcpy(&halves[r], &whole[r], sizeof(V));
            halves[r][0] += halves[r][1];
        }
        return fold_four<T>(halves[0][0], halves[1][0], halves[2][0], halves[3][0], out);
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
