// Rows of a data matrix as the row solvers see them: dot with weights, add to weights, prefetch. Here dense
// rows; sparse ones are in csr_rows.hpp.
//
// Both kinds of row sum a dot product in the same LANES partial sums and fold them in the same order,
// so dense and CSR data, and every instruction set, give the same bits. The build switches off
// contraction to fused multiply-add for the same reason. Lane of feature j: j modulo LANES, except
// for the features beyond the last whole LANES, which take the last lanes (a dense row then ends
// with one overlapping, masked load). Zeros add nothing to a sum, so sparse rows may leave them out.
#pragma once

#include <cstdint>

#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// For functions that only prefetch: GCC takes a call of one for a call without an effect, and leaves it out.
#define SEPARATRIX_INLINE [[gnu::always_inline]] inline

constexpr int LANES = 8;

#if defined(__AVX512F__)
constexpr int REGISTER_BYTES = 64;
#elif defined(__AVX__)
constexpr int REGISTER_BYTES = 32;
#else
constexpr int REGISTER_BYTES = 16;
#endif

template <class T>
struct BitsOf;
template <>
struct BitsOf<float> { using type = std::int32_t; };
template <>
struct BitsOf<double> { using type = std::int64_t; };
template <class T>
using Bits = typename BitsOf<T>::type;

// from[k]: all bits set in the lanes k … LANES-1.
template <class T>
struct Masks {
    alignas(64) Bits<T> from[LANES][LANES];

    constexpr Masks() : from() {
        for (int k = 0; k < LANES; ++k)
            for (int l = 0; l < LANES; ++l) from[k][l] = l >= k ? -1 : 0;
    }
};
template <class T>
constexpr Masks<T> MASKS{};

// LANES numbers side by side, in as many registers as the target needs for them.
template <class T>
struct Lanes {
    static constexpr int BYTES = LANES * sizeof(T);
    static constexpr int WIDTH = BYTES < REGISTER_BYTES ? BYTES : REGISTER_BYTES;
    static constexpr int PARTS = BYTES / WIDTH;
    static constexpr int STEP = LANES / PARTS;
    typedef T Values __attribute__((vector_size(WIDTH)));
    typedef Bits<T> Mask __attribute__((vector_size(WIDTH)));
    Values part[PARTS] = {};

    template <class V, class From>
    static V load(const From* from) {
        V loaded;
        __builtin_memcpy(&loaded, from, WIDTH);
        return loaded;
    }

    // this += x * w
    void add_product(const T* x, const T* w) {
        for (int p = 0; p < PARTS; ++p)
            part[p] += load<Values>(x + p * STEP) * load<Values>(w + p * STEP);
    }

    // this += x * w in the lanes of the mask
    void add_masked(const T* x, const T* w, const Bits<T>* mask) {
        for (int p = 0; p < PARTS; ++p) {
            const Mask kept = load<Mask>(w + p * STEP) & load<Mask>(mask + p * STEP);
            part[p] += load<Values>(x + p * STEP) * reinterpret_cast<const Values&>(kept);
        }
    }

    T sum() const {
        if constexpr (PARTS == 4) {
            const Values q = (part[0] + part[2]) + (part[1] + part[3]);
            return q[0] + q[1];
        } else if constexpr (PARTS == 2) {
            const Values q = part[0] + part[1];
            return (q[0] + q[2]) + (q[1] + q[3]);
        } else {
            const Values& v = part[0];
            return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
        }
    }
};

template <class T>
inline T fold(const T* lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Dense rows with unit column stride; weights of column k start at weights + k * n_features.
template <class T>
struct DenseRows {
    using value_type = T;
    static constexpr bool FEATURE_MAJOR = false;
    const T* data;
    std::int64_t row_stride;
    std::int64_t n_features;

    const T* row(std::int64_t i) const { return data + i * row_stride; }

    SEPARATRIX_INLINE void prefetch_place(std::int64_t) const {}
    SEPARATRIX_INLINE void prefetch(std::int64_t i) const {
        const char* from = reinterpret_cast<const char*>(row(i));
        // Beyond a few KiB the hardware's own stream detection takes over.
        const std::int64_t bytes = n_features * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t most = bytes < 4096 ? bytes : 4096;
#pragma GCC unroll 4
        for (std::int64_t at = 0; at < most; at += 64) __builtin_prefetch(from + at, 0, 2);
    }

    // Dot products of one row with COUNT neighbouring columns: the row is loaded once for all.
    template <int COUNT>
    void dots(const T* x, const T* weights, T* out) const {
        const T* each[COUNT];
        for (int c = 0; c < COUNT; ++c) each[c] = weights + c * n_features;
        dots<COUNT>(x, each, out);
    }
    template <int COUNT>
    SEPARATRIX_INLINE void dots(const T* x, const T* const (&weights)[COUNT], T* out) const {
        const std::int64_t d = n_features, rest = d % LANES, whole = d - rest;
        if (d < LANES) {
            for (int c = 0; c < COUNT; ++c) {
                T lane[LANES] = {};
                for (std::int64_t j = 0; j < d; ++j) lane[j] = x[j] * weights[c][j];
                out[c] = fold(lane);
            }
            return;
        }
        Lanes<T> lanes[COUNT];
        // Four steps a turn: a turn of the loop costs as much as a step.
#pragma GCC unroll 4
        for (std::int64_t j = 0; j < whole; j += LANES)
            for (int c = 0; c < COUNT; ++c) lanes[c].add_product(x + j, weights[c] + j);
        if (rest)
            for (int c = 0; c < COUNT; ++c)
                lanes[c].add_masked(x + d - LANES, weights[c] + d - LANES, MASKS<T>.from[LANES - rest]);
        for (int c = 0; c < COUNT; ++c) out[c] = lanes[c].sum();
    }

    // out[k] = row i · column k, for the wanted columns; the others keep their value.
    void scores(std::int64_t i, const T* weights, std::int64_t /*stride*/, std::int64_t columns,
                const std::uint8_t* wanted, T* out) const {
        const T* x = row(i);
        if (columns == 1) return dots<1>(x, weights, out);
        std::int64_t k = 0;
        while (k < columns) {
            if (!wanted[k]) {
                ++k;
            } else if (k + 4 <= columns && wanted[k + 1] && wanted[k + 2] && wanted[k + 3]) {
                dots<4>(x, weights + k * n_features, out + k);
                k += 4;
            } else if (k + 2 <= columns && wanted[k + 1]) {
                dots<2>(x, weights + k * n_features, out + k);
                k += 2;
            } else {
                dots<1>(x, weights + k * n_features, out + k);
                ++k;
            }
        }
    }

    // The same in the quickest order of sums; only CSR rows have a quicker one.
    void quick_scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* wanted,
                      T* out) const {
        scores(i, weights, columns, columns, wanted, out);
    }

    // out[0], out[1] = row i · one column of each of two sets of weights
    void two_scores(std::int64_t i, const T* first, const T* second, T* out) const {
        dots<2>(row(i), {first, second}, out);
    }

    std::int64_t position(std::int64_t j, std::int64_t /*stride*/, std::int64_t k) const {
        return k * n_features + j;
    }

    // column k += step * row i
    template <class W>
    void add(std::int64_t i, W step, W* weights, std::int64_t /*stride*/, std::int64_t k) const {
        const T* x = row(i);
        W* w = weights + k * n_features;
        for (std::int64_t j = 0; j < n_features; ++j) w[j] += step * x[j];
    }

    // column k += steps[k] * row i, for all columns
    template <class W>
    void add_all(std::int64_t i, const W* steps, W* weights, std::int64_t columns) const {
        for (std::int64_t k = 0; k < columns; ++k)
            if (steps[k] != W(0)) add(i, steps[k], weights, columns, k);
    }

    double squared_norm(std::int64_t i) const {
        T norm;
        dots<1>(row(i), row(i), &norm);
        return norm;
    }

    // visit(position of the weight) for each feature that row i stores, here all of them. A visit changes what stands
    // at its position only, so that neighbours may go side by side.
    template <class Visit>
    void each_stored(std::int64_t /*i*/, std::int64_t stride, std::int64_t k, Visit visit) const {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n_features; ++j) visit(position(j, stride, k));
    }

    // visit(position of the weight) for each non-zero feature of row i in column k
    template <class Visit>
    void each(std::int64_t i, std::int64_t stride, std::int64_t k, Visit visit) const {
        const T* x = row(i);
        for (std::int64_t j = 0; j < n_features; ++j)
            if (x[j] != T(0)) visit(position(j, stride, k));
    }
};

// Whether visits mostly do not follow each other in memory, so that the processor cannot foresee them and prefetching
// pays; a few places of the order tell.
inline bool jumps(const Visits& visits) {
    constexpr std::int64_t PLACES = 64;
    const std::int64_t pairs = visits.end - visits.begin - 1, places = pairs < PLACES ? pairs : PLACES;
    std::int64_t found = 0;
    for (std::int64_t p = 0; p < places; ++p) {
        const std::int64_t at = visits.begin + p * pairs / places;
        found += visits.row(at + 1) != visits.row(at) + 1;
    }
    return 2 * found > places;
}

constexpr std::int64_t ROWS_AHEAD = 16;  // rows between the prefetch of a row and its visit

template <class Rows>
SEPARATRIX_INLINE void prefetch(const Rows& rows, const Visits& visits, std::int64_t at) {
    if (at + ROWS_AHEAD < visits.end) rows.prefetch(visits.row(at + ROWS_AHEAD));
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
