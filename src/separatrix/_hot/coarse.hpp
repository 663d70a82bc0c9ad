// Products of values that were rounded to 16-bit integers. A processor multiplies twice as many of these at a time as
// of floats, and adds the products of two rows on the way: about four digits at twice the speed of single
// precision, for matrices whose errors are made good afterwards.
//
// In each pack every feature has a scale of its own: its integers have at most 16 bits, and the sum of their squares,
// hence by Cauchy and Schwarz the sum of any two features' products, has 31. So outliers and units do no
// harm: rounding changes a feature by 1.4e-4 of its length in the pack at most. Whole numbers of as many bits need no
// scale, and their products are exact.
#pragma once

#include <cmath>
#include <cstdint>

#include "links.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// The values of two rows side by side, 16 bits each.
typedef std::int32_t Pairs __attribute__((vector_size(REGISTER_BYTES)));

constexpr double LARGEST_INTEGER = 32767, LARGEST_LENGTH = 46300;  // 46300² + what rounding adds < 2³¹

// sum += x · y, products of both rows. In the sum's own register: the compiler would move it to and fro.
#if defined(__AVX512F__)
#define SEPARATRIX_ADD_PAIRS(sum, product, x, y, where) \
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(sum), "=&v"(product) : "v"(x), "v"(y))
#elif defined(__AVX2__)
#define SEPARATRIX_ADD_PAIRS(sum, product, x, y, where) \
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(x), where(y))
#elif defined(__x86_64__)
#define SEPARATRIX_ADD_PAIRS(sum, product, x, y, where) \
    asm("movdqa %2, %1\n\tpmaddwd %3, %1\n\tpaddd %1, %0" : "+x"(sum), "=&x"(product) : "x"(x), "x"(y))
#else
#define SEPARATRIX_ADD_PAIRS(sum, product, x, y, where) \
    sum += (product = ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16))
#endif

// out[k][p] = Σ_i b_ik a_ip for PANELS panels from a on and SPREAD columns from b on. On its own: among other code the
// sums would not find registers enough.
template <int PANELS, int SPREAD>
__attribute__((noinline)) void pair_sums(const Pairs* a, std::int64_t panel, const std::int32_t* b, std::int64_t pairs,
                                         Pairs* out) {
    constexpr int COUNT = Register<float>::COUNT;
    constexpr bool TIGHT = REGISTER_BYTES == 32;  // the third panel finds no register
    Pairs sum[PANELS][SPREAD];
#pragma GCC unroll 3
    for (int p = 0; p < PANELS; ++p)  // one by one: cleared as a whole they would live in memory
#pragma GCC unroll 8
        for (int k = 0; k < SPREAD; ++k) sum[p][k] = Pairs{};
    for (std::int64_t i = 0; i < pairs; ++i) {
        Pairs loaded[PANELS];
        for (int p = 0; p < PANELS; ++p) loaded[p] = a[p * panel + i];
        for (int k = 0; k < SPREAD; ++k) {
            const Pairs factor = b[i * COUNT + k] - Pairs{};
            for (int p = 0; p < PANELS; ++p) {
                Pairs here = sum[p][k], product;
                if (TIGHT && p == 2) SEPARATRIX_ADD_PAIRS(here, product, factor, a[p * panel + i], "m");
                else SEPARATRIX_ADD_PAIRS(here, product, factor, loaded[p], "x");
                sum[p][k] = here;
            }
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < SPREAD; ++k)
#pragma GCC unroll 3
        for (int p = 0; p < PANELS; ++p) out[k * PANELS + p] = sum[p][k];
}

// gram[b …][a …] += Σ_i b_i a_iᵀ in the features' units.
template <int PANELS, int SPREAD>
void coarse_tile(const Pairs* a, std::int64_t panel, const std::int32_t* b, std::int64_t pairs, const double* a_unit,
                 const double* b_unit, double* gram, std::int64_t d, std::int64_t above, std::int64_t right) {
    constexpr int COUNT = Register<float>::COUNT;
    const int kept = above < SPREAD ? static_cast<int>(above) : SPREAD;
    for (int k = 0; k < kept; ++k)
        for (int p = 0; p < PANELS; ++p) __builtin_prefetch(gram + k * d + p * COUNT, 1);
    Pairs sums[SPREAD * PANELS];
    pair_sums<PANELS, SPREAD>(a, panel, b, pairs, sums);
    const std::int32_t* sum = reinterpret_cast<const std::int32_t*>(sums);
    for (int k = 0; k < kept; ++k, sum += PANELS * COUNT) {
        double* __restrict__ to = gram + k * d;
        const double unit = b_unit[k];
        if (right >= PANELS * COUNT)
            for (int l = 0; l < PANELS * COUNT; ++l) to[l] += sum[l] * (unit * a_unit[l]);
        else
            for (int l = 0; l < right; ++l) to[l] += sum[l] * (unit * a_unit[l]);
    }
}

// Values of a row in single precision, as shares of the largest: COUNT features, those of T in one panel or two.
template <class T>
inline Register<float>::Values shares(const T* row, std::int64_t panel, const T* reciprocal) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return Register<float>::load(row) * Register<float>::load(reciprocal);
    } else {
        constexpr int COUNT = Register<T>::COUNT;
        typedef T Both __attribute__((vector_size(2 * REGISTER_BYTES)));
        T lanes[2 * COUNT];
        for (int h = 0; h < 2; ++h)
            Register<T>::store(lanes + h * COUNT,
                               Register<T>::load(row + h * panel) * Register<T>::load(reciprocal + h * COUNT));
        Both both;
        __builtin_memcpy(&both, lanes, sizeof(both));
        return __builtin_convertvector(both, Register<float>::Values);
    }
}

// Rounds COUNT features of a pack to pairs, which lie where the values were, and tells the units: 0 for a feature that
// is 0 throughout, NaN for one that is not finite throughout. WHOLE: units are 1, NaN where that loses something.
template <bool WHOLE, class T>
void round_to_pairs(T* values, std::int64_t panel, std::int64_t rows, double* unit) {
    using F = Register<float>;
    using R = Register<T>;
    constexpr int PARTS = sizeof(T) / sizeof(float);
    T reciprocal[F::COUNT];
    float factor[F::COUNT];
    if (rows % 2)
        for (int h = 0; h < PARTS; ++h) R::store(values + h * panel + rows * R::COUNT, typename R::Values{});
    for (int h = 0; h < PARTS; ++h) {
        typename R::Values largest = {}, broken = {};
        const auto nearest = R::all(ExpConstants<T>::SHIFT);
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto z = R::load(values + h * panel + i * R::COUNT), size = z < 0 ? -z : z;
            largest = size > largest ? size : largest;
            if constexpr (WHOLE) broken = (z + nearest) - nearest == z ? broken : R::all(1);
        }
        for (int l = 0; l < R::COUNT; ++l) {
            if constexpr (WHOLE) {
                const bool exact = broken[l] == 0 && static_cast<double>(largest[l]) <= LARGEST_INTEGER;
                reciprocal[h * R::COUNT + l] = T(1);
                unit[h * R::COUNT + l] = exact ? 1.0 : std::nan("");
                continue;
            }
            // (Of what is smaller, single precision does not know the reciprocal.)
            const bool some = static_cast<double>(largest[l]) > 1e-37;
            reciprocal[h * R::COUNT + l] = some ? T(1) / largest[l] : T(0);
            unit[h * R::COUNT + l] = some ? static_cast<double>(largest[l]) : 0.0;
        }
    }
    F::Values squares = {};
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto z = shares(values + i * R::COUNT, panel, reciprocal);
        squares += z * z;
    }
    for (int l = 0; l < F::COUNT; ++l) {
        const double length = std::sqrt(static_cast<double>(squares[l]));
        if constexpr (WHOLE) {
            factor[l] = 1;
            if (!(length <= LARGEST_LENGTH)) unit[l] = std::nan("");
            continue;
        }
        const double most = length * LARGEST_INTEGER > LARGEST_LENGTH ? LARGEST_LENGTH / length : LARGEST_INTEGER;
        factor[l] = static_cast<float>(most);
        unit[l] = length <= static_cast<double>(rows) ? unit[l] / static_cast<double>(factor[l]) : std::nan("");
    }
    const auto scale = F::load(factor), shift = F::all(ExpConstants<float>::SHIFT);
    const auto integers = [&](std::int64_t i) {  // in the low bits
        const auto shifted = shares(values + i * R::COUNT, panel, reciprocal) * scale + shift;
        Pairs bits;
        __builtin_memcpy(&bits, &shifted, sizeof(bits));
        return bits;
    };
    for (std::int64_t i = 0; i < rows; i += 2) {
        const Pairs pair = (integers(i) & 0xffff) | (integers(i + 1) << 16);
        __builtin_memcpy(reinterpret_cast<char*>(values) + i / 2 * REGISTER_BYTES, &pair, sizeof(pair));
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
