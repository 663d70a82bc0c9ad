// Products of one row with weights that stand as [feature][columns, padded to whole registers]: one
// look-up of a feature serves all columns, and exponentials and logarithms work on whole registers.
#pragma once

#include <cstdint>

#include "csr_rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// One row as pairs (feature, value), whatever its storage.
template <class T>
struct DensePairs {
    const T* x;
    std::int64_t count;
    std::int64_t feature(std::int64_t p) const { return p; }
    T value(std::int64_t p) const { return x[p]; }
};
template <class T, class Index>
struct CsrPairs {
    const T* x;
    const Index* j;
    std::int64_t count;
    std::int64_t feature(std::int64_t p) const { return j[p]; }
    T value(std::int64_t p) const { return x[p]; }
};
template <class T>
DensePairs<T> pairs_of(const DenseRows<T>& rows, std::int64_t i) { return {rows.row(i), rows.n_features}; }
template <class T, class Index>
CsrPairs<T, Index> pairs_of(const CsrRows<T, Index>& rows, std::int64_t i) {
    const std::int64_t begin = rows.indptr[i];
    return {rows.data + begin, rows.indices + begin, rows.indptr[i + 1] - begin};
}

inline float log_of(float x) { return __builtin_logf(x); }
inline double log_of(double x) { return __builtin_log(x); }

constexpr double TAYLOR[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                             1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
                             1.0 / 6227020800.0};

// STEP numbers of one row of parameters at a time.
template <class S>
struct Block {
    using Values = typename Lanes<S>::Values;
    using Mask = typename Lanes<S>::Mask;
    static constexpr int WIDTH = Lanes<S>::STEP;

    static Values load(const S* from) { return Lanes<S>::template load<Values>(from); }
    static void store(S* to, const Values& values) { __builtin_memcpy(to, &values, sizeof values); }
    static Values all(S value) { return value - Values{}; }
    static Values choose(const Mask& m, const Values& a, const Values& b) { return m ? a : b; }
    static Values lower(const Values& a, const Values& b) { return a < b ? a : b; }
    static Values upper(const Values& a, const Values& b) { return a > b ? a : b; }
    static S sum(const Values& v) {
        S total = v[0];
        for (int l = 1; l < WIDTH; ++l) total += v[l];
        return total;
    }
    static S largest(const Values& v) {
        S most = v[0];
        for (int l = 1; l < WIDTH; ++l) most = v[l] > most ? v[l] : most;
        return most;
    }

    // exp to about two units of the last place; what would underflow becomes the smallest normal number.
    static Values exp(Values x) {
        constexpr bool SINGLE = sizeof(S) == 4;
        constexpr S ROUND = SINGLE ? S(12582912.0) : S(6755399441055744.0);  // 1.5 · 2^(digits − 1)
        constexpr S HIGH = SINGLE ? S(0.693359375) : S(6.93145751953125e-1);
        constexpr S LOW = SINGLE ? S(-2.12194440e-4) : S(1.42860682030941723212e-6);
        x = lower(upper(x, all(SINGLE ? S(-87.0) : S(-708.0))), all(SINGLE ? S(88.0) : S(709.0)));
        const Values shifted = x * all(S(1.4426950408889634)) + all(ROUND);
        const Values n = shifted - all(ROUND);
        const Values r = (x - n * all(HIGH)) - n * all(LOW);
        constexpr int TERMS = SINGLE ? 8 : 14;
        Values p = all(static_cast<S>(TAYLOR[TERMS - 1]));
        for (int term = TERMS - 2; term >= 0; --term) p = p * r + all(static_cast<S>(TAYLOR[term]));
        // The low bits of `shifted` hold n as an integer; it goes into the exponent.
        const Mask power = (Mask)shifted << (SINGLE ? 23 : 52);
        return (Values)((Mask)p + power);  // a cast between vector types keeps the bits
    }

    // log of a positive number to about 1e-4: a start for Newton's method.
    static Values rough_log(const Values& x) {
        constexpr bool SINGLE = sizeof(S) == 4;
        const Mask bits = (Mask)x, one = (Mask)all(S(1));
        const Mask low = (Mask{} + 1) << (SINGLE ? 23 : 52);
        const Values z = (Values)((bits & (low - 1)) | one);
        const Mask power = (bits >> (SINGLE ? 23 : 52)) - (SINGLE ? 127 : 1023);
        const Values t = (z - all(S(1.41421356))) / (z + all(S(1.41421356)));
        const Values t2 = t * t;
        const Values log_z = all(S(0.34657359)) + all(S(2)) * t * (all(S(1)) + t2 * (all(S(1.0 / 3)) + t2 * all(S(0.2))));
        return __builtin_convertvector(power, Values) * all(S(0.69314718)) + log_z;
    }
};

// Neighbouring columns whose sums stay in registers while all pairs of a row pass by.
constexpr int TILE = 8;
// Pairs whose weights are asked for in advance.
constexpr int AHEAD = 8;

// out[k] += Σ x_j weights[j][k] for COUNT blocks of columns
template <int COUNT, class S, class Pairs>
void tile_scores(const Pairs& row, const S* weights, std::int64_t padded, S* out) {
    using B = Block<S>;
    typename B::Values sum[COUNT];
    for (int c = 0; c < COUNT; ++c) sum[c] = B::load(out + c * B::WIDTH);
    for (std::int64_t p = 0; p < row.count; ++p) {
        const S* w = weights + row.feature(p) * padded;
        if (p + AHEAD < row.count) {
            const S* next = weights + row.feature(p + AHEAD) * padded;
            constexpr int LINE = 64 / sizeof(S);
            for (int c = 0; c < COUNT * B::WIDTH; c += LINE) __builtin_prefetch(next + c);
        }
        const auto x = B::all(static_cast<S>(row.value(p)));
        for (int c = 0; c < COUNT; ++c) sum[c] += x * B::load(w + c * B::WIDTH);
    }
    for (int c = 0; c < COUNT; ++c) B::store(out + c * B::WIDTH, sum[c]);
}

// weights[j][k] += x_j step[k]
template <int COUNT, class S, class Pairs>
void tile_add(const Pairs& row, const S* step, std::int64_t padded, S* weights) {
    using B = Block<S>;
    typename B::Values steps[COUNT];
    for (int c = 0; c < COUNT; ++c) steps[c] = B::load(step + c * B::WIDTH);
    for (std::int64_t p = 0; p < row.count; ++p) {
        S* w = weights + row.feature(p) * padded;
        const auto x = B::all(static_cast<S>(row.value(p)));
        for (int c = 0; c < COUNT; ++c) B::store(w + c * B::WIDTH, B::load(w + c * B::WIDTH) + x * steps[c]);
    }
}

// body<COUNT>(column) for tiles of COUNT blocks over the columns first … last − 1
template <class S, class Body>
void over_tiles(std::int64_t first, std::int64_t last, Body body) {
    constexpr std::int64_t WIDE = TILE * Block<S>::WIDTH;
    for (; first + WIDE <= last; first += WIDE) body.template operator()<TILE>(first);
    switch ((last - first) / Block<S>::WIDTH) {
        case 1: return body.template operator()<1>(first);
        case 2: return body.template operator()<2>(first);
        case 3: return body.template operator()<3>(first);
        case 4: return body.template operator()<4>(first);
        case 5: return body.template operator()<5>(first);
        case 6: return body.template operator()<6>(first);
        case 7: return body.template operator()<7>(first);
        default: return;
    }
}

template <class S, class Pairs>
void add_scores(const Pairs& row, const S* weights, std::int64_t padded, S* out) {
    over_tiles<S>(0, padded, [&]<int COUNT>(std::int64_t k) {
        tile_scores<COUNT>(row, weights + k, padded, out + k);
    });
}

template <class S, class Pairs>
void add_outer(const Pairs& row, const S* step, std::int64_t padded, S* weights, std::int64_t first,
               std::int64_t last) {
    over_tiles<S>(first, last, [&]<int COUNT>(std::int64_t k) {
        tile_add<COUNT>(row, step + k, padded, weights + k);
    });
}

// Four sums side by side, in a vector: an array of them costs floats twice as long. The loop over what is left tells
// that it is short, lest compilers widen it.
template <class S, class Pairs>
inline S single_score(const Pairs& row, const S* weights) {
    typedef S Four __attribute__((vector_size(4 * sizeof(S))));
    const auto value = [&](std::int64_t p) { return static_cast<S>(row.value(p)); };
    const auto weight = [&](std::int64_t p) { return weights[row.feature(p)]; };
    Four sum = {};
    std::int64_t p = 0;
    for (; p + 4 <= row.count; p += 4)
        sum += Four{value(p), value(p + 1), value(p + 2), value(p + 3)} *
               Four{weight(p), weight(p + 1), weight(p + 2), weight(p + 3)};
    S first = sum[0];
    for (int l = 0; l < 3 && p < row.count; ++l, ++p) first += value(p) * weight(p);
    return (first + sum[1]) + (sum[2] + sum[3]);
}

template <class S, class Pairs>
void add_single(const Pairs& row, S step, S* weights) {
    for (std::int64_t p = 0; p < row.count; ++p) weights[row.feature(p)] += step * static_cast<S>(row.value(p));
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
