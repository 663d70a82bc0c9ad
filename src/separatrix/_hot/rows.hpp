// Rows of a data matrix as the row solvers see them: dot with weights, add to weights, prefetch.
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

    void prefetch(std::int64_t i) const {
        const char* from = reinterpret_cast<const char*>(row(i));
        // Beyond a few KiB the hardware's own stream detection takes over.
        const std::int64_t bytes = n_features * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t most = bytes < 4096 ? bytes : 4096;
        for (std::int64_t at = 0; at < most; at += 64) __builtin_prefetch(from + at, 0, 2);
    }

    // Dot products of one row with COUNT neighbouring columns: the row is loaded once for all.
    template <int COUNT>
    void dots(const T* x, const T* weights, T* out) const {
        const std::int64_t d = n_features, rest = d % LANES, whole = d - rest;
        if (d < LANES) {
            for (int c = 0; c < COUNT; ++c) {
                T lane[LANES] = {};
                for (std::int64_t j = 0; j < d; ++j) lane[j] = x[j] * weights[c * d + j];
                out[c] = fold(lane);
            }
            return;
        }
        Lanes<T> lanes[COUNT];
        for (std::int64_t j = 0; j < whole; j += LANES)
            for (int c = 0; c < COUNT; ++c) lanes[c].add_product(x + j, weights + c * d + j);
        if (rest)
            for (int c = 0; c < COUNT; ++c)
                lanes[c].add_masked(x + d - LANES, weights + c * d + d - LANES, MASKS<T>.from[LANES - rest]);
        for (int c = 0; c < COUNT; ++c) out[c] = lanes[c].sum();
    }

    // out[c] = row i · weights[c] + intercepts[c], for single columns
    template <int COUNT>
    void single_scores(std::int64_t i, const T* const (&weights)[COUNT], const T (&intercepts)[COUNT],
                       T /*margin*/, T (&out)[COUNT]) const {
        for (int c = 0; c < COUNT; ++c) {
            dots<1>(row(i), weights[c], &out[c]);
            out[c] += intercepts[c];
        }
    }

    // out[k] = row i · column k, for the wanted columns; the others keep their value.
    void scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* wanted,
                T* out) const {
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
        scores(i, weights, columns, wanted, out);
    }

    std::int64_t position(std::int64_t j, std::int64_t /*columns*/, std::int64_t k) const {
        return k * n_features + j;
    }

    // column k += step * row i
    template <class W>
    void add(std::int64_t i, W step, W* weights, std::int64_t /*columns*/, std::int64_t k) const {
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

    // visit(position of the weight) for each feature that row i stores, here all of them
    template <class Visit>
    void each_stored(std::int64_t /*i*/, std::int64_t columns, std::int64_t k, Visit visit) const {
        for (std::int64_t j = 0; j < n_features; ++j) visit(position(j, columns, k));
    }

    // visit(position of the weight) for each non-zero feature of row i in column k
    template <class Visit>
    void each(std::int64_t i, std::int64_t columns, std::int64_t k, Visit visit) const {
        const T* x = row(i);
        for (std::int64_t j = 0; j < n_features; ++j)
            if (x[j] != T(0)) visit(position(j, columns, k));
    }
};

// Compressed sparse rows; the weights of feature j stand together: weights[j * columns + k], so that
// one look-up of a feature serves all columns.
template <class T, class Index>
struct CsrRows {
    using value_type = T;
    static constexpr bool FEATURE_MAJOR = true;
    const T* data;
    const Index* indices;
    const Index* indptr;
    std::int64_t n_features;

    void prefetch(std::int64_t i) const {
        const std::int64_t begin = indptr[i], end = indptr[i + 1];
        for (std::int64_t p = begin; p < end; p += 16) {
            __builtin_prefetch(data + p);
            __builtin_prefetch(indices + p);
        }
    }

    // Whether feature j lies beyond the last whole LANES decides how its lane is counted.
    std::int64_t whole() const { return n_features < LANES ? LANES : n_features - n_features % LANES; }
    int lane_of(std::int64_t j, std::int64_t whole) const {
        return static_cast<int>(j < whole ? j % LANES : j - (n_features - LANES));
    }

    T dot(std::int64_t i, const T* weights) const {
        T lane[LANES] = {};
        const std::int64_t limit = whole();
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
            const std::int64_t j = indices[p];
            lane[lane_of(j, limit)] += data[p] * weights[j];
        }
        return fold(lane);
    }

    // out[c] = row i · weights[c] + intercepts[c] for single columns, summed in the quickest order where
    // that cannot change on which side of 0 and ±margin a score lies, else in the order of all rows.
    template <int COUNT>
    void single_scores(std::int64_t i, const T* const (&weights)[COUNT], const T (&intercepts)[COUNT],
                       T margin, T (&out)[COUNT]) const {
        const std::int64_t begin = indptr[i], end = indptr[i + 1];
        T sum[COUNT][4] = {}, size[COUNT][4] = {};
        const auto add_term = [&](std::int64_t p, int l) {
            for (int c = 0; c < COUNT; ++c) {
                const T product = data[p] * weights[c][indices[p]];
                sum[c][l] += product;
                size[c][l] += magnitude(product);
            }
        };
        std::int64_t p = begin;
        for (; p + 4 <= end; p += 4)
            for (int l = 0; l < 4; ++l) add_term(p + l, l);
        for (; p < end; ++p) add_term(p, 0);
        for (int c = 0; c < COUNT; ++c) {
            const T score = ((sum[c][0] + sum[c][1]) + (sum[c][2] + sum[c][3])) + intercepts[c];
            const T total = ((size[c][0] + size[c][1]) + (size[c][2] + size[c][3])) + magnitude(intercepts[c]);
            // Each of the two sums is off by at most (terms + 1) ε / 2 times the sum of magnitudes.
            const T bound = static_cast<T>(end - begin + 4) * 2 * EPSILON * total;
            const T away = magnitude(score);
            const bool clear = away > bound && magnitude(away - margin) > bound;
            out[c] = clear ? score : dot(i, weights[c]) + intercepts[c];
        }
    }

    // out[k] = row i · column k for all columns, summed in the quickest order (another one than that of
    // dense rows, but the same on every instruction set).
    void quick_scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* /*wanted*/,
                      T* out) const {
        in_groups(columns, [&]<int COUNT>(Group<COUNT>, std::int64_t first) {
            Side<T, COUNT> sum[4] = {};
            const auto add_term = [&](std::int64_t p, int l) {
                Side<T, COUNT> w;
                __builtin_memcpy(&w, weights + indices[p] * columns + first, sizeof w);
                sum[l] += w * data[p];
            };
            std::int64_t p = indptr[i];
            const std::int64_t end = indptr[i + 1];
            for (; p + 4 <= end; p += 4) add_term(p, 0), add_term(p + 1, 1), add_term(p + 2, 2), add_term(p + 3, 3);
            for (; p < end; ++p) add_term(p, 0);
            const Side<T, COUNT> total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            __builtin_memcpy(out + first, &total, sizeof total);
        });
    }

    // out[k] = row i · column k for all columns: one look-up of a feature serves them all.
    void scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* /*wanted*/,
                T* out) const {
        if (columns == 1) {
            out[0] = dot(i, weights);
            return;
        }
        const std::int64_t limit = whole();
        // Columns in groups whose lane sums stay in the first-level cache.
        std::int64_t first = 0;
        for (; first + 16 <= columns; first += 16) group_scores<16>(i, weights, columns, first, limit, out);
        const std::int64_t rest = columns - first;
        if (rest & 8) group_scores<8>(i, weights, columns, first, limit, out), first += 8;
        if (rest & 4) group_scores<4>(i, weights, columns, first, limit, out), first += 4;
        if (rest & 2) group_scores<2>(i, weights, columns, first, limit, out), first += 2;
        if (rest & 1) group_scores<1>(i, weights, columns, first, limit, out);
    }

    std::int64_t position(std::int64_t j, std::int64_t columns, std::int64_t k) const {
        return j * columns + k;
    }

    template <class W>
    void add(std::int64_t i, W step, W* weights, std::int64_t columns, std::int64_t k) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            weights[position(indices[p], columns, k)] += step * data[p];
    }

    template <class W>
    void add_all(std::int64_t i, const W* steps, W* weights, std::int64_t columns) const {
        in_groups(columns, [&]<int COUNT>(Group<COUNT>, std::int64_t first) {
            Side<W, COUNT> step;
            __builtin_memcpy(&step, steps + first, sizeof step);
            for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
                W* w = weights + indices[p] * columns + first;
                Side<W, COUNT> sum;
                __builtin_memcpy(&sum, w, sizeof sum);
                sum += step * static_cast<W>(data[p]);
                __builtin_memcpy(w, &sum, sizeof sum);
            }
        });
    }

    double squared_norm(std::int64_t i) const {
        T lane[LANES] = {};
        const std::int64_t limit = whole();
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            lane[lane_of(indices[p], limit)] += data[p] * data[p];
        return fold(lane);
    }

    template <class Visit>
    void each_stored(std::int64_t i, std::int64_t columns, std::int64_t k, Visit visit) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            visit(position(indices[p], columns, k));
    }

    template <class Visit>
    void each(std::int64_t i, std::int64_t columns, std::int64_t k, Visit visit) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            if (data[p] != T(0)) visit(position(indices[p], columns, k));
    }

private:
    // COUNT neighbouring columns side by side.
    template <class W, int COUNT>
    struct SideOf { typedef W type __attribute__((vector_size(COUNT * sizeof(W)))); };
    template <class W>
    struct SideOf<W, 1> { using type = W; };
    template <class W, int COUNT>
    using Side = typename SideOf<W, COUNT>::type;
    template <int COUNT>
    struct Group {};

    template <class Body>
    static void in_groups(std::int64_t columns, Body body) {
        std::int64_t first = 0;
        for (; first + 8 <= columns; first += 8) body(Group<8>{}, first);
        if (columns & 4) body(Group<4>{}, first), first += 4;
        if (columns & 2) body(Group<2>{}, first), first += 2;
        if (columns & 1) body(Group<1>{}, first);
    }

    static constexpr T EPSILON = sizeof(T) == 4 ? T(1.1920929e-7) : T(2.220446049250313e-16);
    static float magnitude(float value) { return __builtin_fabsf(value); }
    static double magnitude(double value) { return __builtin_fabs(value); }

    template <std::int64_t COUNT>
    void group_scores(std::int64_t i, const T* weights, std::int64_t columns, std::int64_t first,
                      std::int64_t limit, T* out) const {
        T lane[LANES * COUNT] = {};
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
            const std::int64_t j = indices[p];
            const T x = data[p];
            const T* w = weights + j * columns + first;
            T* sum = lane + lane_of(j, limit) * COUNT;
            for (std::int64_t c = 0; c < COUNT; ++c) sum[c] += x * w[c];
        }
        for (std::int64_t c = 0; c < COUNT; ++c) {
            T own[LANES];
            for (int l = 0; l < LANES; ++l) own[l] = lane[l * COUNT + c];
            out[first + c] = fold(own);
        }
    }
};

constexpr std::int64_t ROWS_AHEAD = 16;  // rows between the prefetch of a row and its visit

template <class Rows>
inline void prefetch(const Rows& rows, const Visits& visits, std::int64_t at) {
    if (at + ROWS_AHEAD < visits.end) rows.prefetch(visits.row(at + ROWS_AHEAD));
}

// Lets a weight (stored: divided by scale) pay to L1 what it owes and has not paid yet, at most down to 0
// (cumulative truncation of Tsuruoka, Tsujii and Ananiadou, 2009). `share` is 1 / scale, or 0 for a weight that
// need not pay. Returns the change of the stored weight. Without branches, so that neighbouring weights pay
// side by side.
template <class T>
inline double pay(T& weight, T& paid, double owed, double scale, double share) {
    const double before = weight, had = paid;
    const double down = before - (owed + had) * share, up = before + (owed - had) * share;
    const double lower = down > 0 ? down : 0.0, upper = up < 0 ? up : 0.0;
    const double after = before > 0 ? lower : before < 0 ? upper : before;
    weight = static_cast<T>(after);
    paid = static_cast<T>(had + scale * (after - before));
    return after - before;
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
