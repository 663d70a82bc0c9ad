// Sparse rows as the row solvers see them; what they share with dense rows is told in rows.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arrays.hpp"
#include "rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Compressed sparse rows; the weights of feature j stand together: weights[j * stride + k], so that
// one look-up of a feature serves all columns (stride: their number, and that of others beside them).
template <class T, class Index>
struct CsrRows {
    using value_type = T;
    static constexpr bool FEATURE_MAJOR = true;
    const T* data;
    const Index* indices;
    const Index* indptr;
    std::int64_t n_features;

    // What tells where a row lies, to be asked for before the row is.
    SEPARATRIX_INLINE void prefetch_place(std::int64_t i) const { __builtin_prefetch(indptr + i); }
    SEPARATRIX_INLINE void prefetch(std::int64_t i) const {
        const std::int64_t begin = indptr[i], end = indptr[i + 1];
        for (std::int64_t p = begin; p < end; p += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(data + p);
        for (std::int64_t p = begin; p < end; p += 64 / static_cast<int>(sizeof(Index))) __builtin_prefetch(indices + p);
    }

    // Whether feature j lies beyond the last whole LANES decides how its lane is counted.
    std::int64_t whole() const { return n_features < LANES ? LANES : n_features - n_features % LANES; }
    int lane_of(std::int64_t j, std::int64_t whole) const {
        return static_cast<int>(j < whole ? j % LANES : j - (n_features - LANES));
    }

    // out[k] = row i · column k for all columns, summed in the quickest order (another one than that of
    // dense rows, but the same on every instruction set).
    void quick_scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* /*wanted*/,
                      T* out) const {
        if (columns == 1) *out = quick_sum(i, weights, 1);
        else quick_sums(i, weights, columns, columns, out);
    }

    // The same, for columns whose weights stand `stride` apart, none larger than `largest`. Returns how far any
    // of these scores, with a constant of at most `constant` added, can be from that of scores() with it.
    T bounded_scores(std::int64_t i, const T* weights, std::int64_t stride, std::int64_t columns, T largest,
                     T constant, T* out) const {
        // One column, and one beside it: a distance that the compiler knows costs nothing.
        if (columns == 1 && stride == 1) *out = quick_sum(i, weights, 1);
        else if (columns == 1 && stride == 2) *out = quick_sum(i, weights, 2);
        else if (columns == 2 && stride == 2) sums<2, 4>(i, weights, 2, out);
        else quick_sums(i, weights, stride, columns, out);
        // Each of the two sums is off by at most (terms + 1) ε / 2 times the sum of its terms' magnitudes.
        const std::int64_t terms = indptr[i + 1] - indptr[i];
        const T size = largest * size_of(data + indptr[i], terms);
        return static_cast<T>(terms + 4) * 2 * EPSILON * (size + constant);
    }

    // out[k] = row i · column k for all columns, in the order of dense rows.
    void scores(std::int64_t i, const T* weights, std::int64_t stride, std::int64_t columns,
                const std::uint8_t* /*wanted*/, T* out) const {
        const std::int64_t limit = whole();
        // Columns in groups whose lane sums stay in the first-level cache.
        in_groups(columns, [&]<int COUNT>(Group<COUNT>, std::int64_t first) {
            T lane[LANES * COUNT] = {};
            for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
                const std::int64_t j = indices[p];
                const T x = data[p];
                const T* w = weights + j * stride + first;
                T* sum = lane + lane_of(j, limit) * COUNT;
                for (int c = 0; c < COUNT; ++c) sum[c] += x * w[c];
            }
            for (int c = 0; c < COUNT; ++c) {
                T own[LANES];
                for (int l = 0; l < LANES; ++l) own[l] = lane[l * COUNT + c];
                out[first + c] = fold(own);
            }
        });
    }

    std::int64_t position(std::int64_t j, std::int64_t stride, std::int64_t k) const {
        return j * stride + k;
    }

    // column k += step * row i; returns the largest magnitude among the new weights
    template <class W>
    W add(std::int64_t i, W step, W* weights, std::int64_t stride, std::int64_t k) const {
        W largest = 0;
        const auto add_term = [&](std::int64_t p, std::int64_t at) {
            W& w = weights[at];
            w += step * data[p];
            largest = magnitude(w) > largest ? magnitude(w) : largest;
        };
        std::int64_t p = indptr[i];
        const std::int64_t end = indptr[i + 1];
        for (; p + 4 <= end; p += 4) {
            const Four four = features(p);
            for (int l = 0; l < 4; ++l) add_term(p + l, position(four.feature[l], stride, k));
        }
        for (; p < end; ++p) add_term(p, position(indices[p], stride, k));
        return largest;
    }

    template <class W>
    void add_all(std::int64_t i, const W* steps, W* weights, std::int64_t columns) const {
        in_groups(columns, [&]<int COUNT>(Group<COUNT>, std::int64_t first) {
            using Columns = Side<W, COUNT>;
            Columns step;
            for (int q = 0; q < Columns::PARTS; ++q) step.part[q] = Columns::load(steps + first, q);
            for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
                W* const w = weights + indices[p] * columns + first;
                for (int q = 0; q < Columns::PARTS; ++q)
                    Columns::store(w, q, Columns::load(w, q) + step.part[q] * static_cast<W>(data[p]));
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
    void each_stored(std::int64_t i, std::int64_t stride, std::int64_t k, Visit visit) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            visit(position(indices[p], stride, k));
    }

    template <class Visit>
    void each(std::int64_t i, std::int64_t stride, std::int64_t k, Visit visit) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            if (data[p] != T(0)) visit(position(indices[p], stride, k));
    }

private:
    // The features of four values, short ones by two loads: loads are what a term has the most of.
    struct Four { std::int64_t feature[4]; };
    SEPARATRIX_INLINE Four features(std::int64_t p) const {
        if constexpr (sizeof(Index) == 4 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
            std::uint64_t a, b;
            __builtin_memcpy(&a, indices + p, sizeof a);
            __builtin_memcpy(&b, indices + p + 2, sizeof b);
            const auto low = [](std::uint64_t both) { return static_cast<std::int64_t>(both & 0xffffffffu); };
            const auto high = [](std::uint64_t both) { return static_cast<std::int64_t>(both >> 32); };
            return {low(a), high(a), low(b), high(b)};
        } else {
            return {indices[p], indices[p + 1], indices[p + 2], indices[p + 3]};
        }
    }

    // Row i · one column, in four sums at a time to hide the time that an addition takes, two in a register.
    SEPARATRIX_INLINE T quick_sum(std::int64_t i, const T* weights, std::int64_t stride) const {
        typedef T Pair __attribute__((vector_size(2 * sizeof(T))));
        Pair front = {}, back = {};
        std::int64_t p = indptr[i];
        const std::int64_t end = indptr[i + 1];
        for (; p + 4 <= end; p += 4) {
            const Four four = features(p);
            const auto weight = [&](int l) { return weights[four.feature[l] * stride]; };
            Pair x, y;  // not an array: that would go through memory
            __builtin_memcpy(&x, data + p, sizeof x);
            __builtin_memcpy(&y, data + p + 2, sizeof y);
            front += Pair{weight(0), weight(1)} * x;
            back += Pair{weight(2), weight(3)} * y;
        }
        T first = front[0];
        for (; p < end; ++p) first += weights[indices[p] * stride] * data[p];
        return (first + back[0]) + (front[1] + back[1]);
    }

    // COUNT neighbouring columns side by side, in as many registers as they need.
    template <class W, int COUNT>
    struct Side {
        static constexpr int BYTES = COUNT * sizeof(W);
        static constexpr bool HALF = BYTES == 8 && COUNT > 1;  // two floats: half of the smallest register
        static constexpr int WIDTH = HALF ? 16 : BYTES < REGISTER_BYTES ? BYTES : REGISTER_BYTES;
        static constexpr int PARTS = HALF ? 1 : BYTES / WIDTH;
        static constexpr int STEP = WIDTH / sizeof(W);
        struct Single { using type = W; };
        struct Several { typedef W type __attribute__((vector_size(WIDTH))); };
        typedef double Halves __attribute__((vector_size(16)));
        using Values = typename std::conditional_t<COUNT == 1, Single, Several>::type;
        Values part[PARTS] = {};

        static Values load(const W* from, int p) {
            Values loaded;
            if constexpr (HALF) {
                double half;
                __builtin_memcpy(&half, from, sizeof half);
                const Halves both = {half, 0.0};
                __builtin_memcpy(&loaded, &both, sizeof loaded);
            } else {
                __builtin_memcpy(&loaded, from + p * STEP, sizeof loaded);
            }
            return loaded;
        }

        static void store(W* to, int p, const Values& values) {
            __builtin_memcpy(to + p * STEP, &values, HALF ? 8 : sizeof values);
        }
    };
    template <int COUNT>
    struct Group {};

    template <class Body>
    static void in_groups(std::int64_t columns, Body body) {
        std::int64_t first = 0;
        for (; first + 16 <= columns; first += 16) body(Group<16>{}, first);
        if (columns & 8) body(Group<8>{}, first), first += 8;
        if (columns & 4) body(Group<4>{}, first), first += 4;
        if (columns & 2) body(Group<2>{}, first), first += 2;
        if (columns & 1) body(Group<1>{}, first);
    }

    static constexpr T EPSILON = sizeof(T) == 4 ? T(1.1920929e-7) : T(2.220446049250313e-16);
    static float magnitude(float value) { return __builtin_fabsf(value); }
    static double magnitude(double value) { return __builtin_fabs(value); }

    template <class V>
    static V magnitude(V values) {
        typedef Bits<T> Pattern __attribute__((vector_size(sizeof(V))));
        constexpr Bits<T> SIGN = Bits<T>(1) << (8 * sizeof(T) - 1);
        return reinterpret_cast<V>(reinterpret_cast<Pattern>(values) & ~SIGN);
    }

    // At least the sum of the magnitudes, at most twice that: the last whole lanes may overlap those before.
    static T size_of(const T* x, std::int64_t count) {
        if (count < LANES) {
            T sum = 0;
            for (std::int64_t p = 0; p < count; ++p) sum += magnitude(x[p]);
            return sum;
        }
        Lanes<T> lanes;
        const auto add_lanes = [&](const T* from) {
            for (int q = 0; q < Lanes<T>::PARTS; ++q)
                lanes.part[q] += magnitude(
                    Lanes<T>::template load<typename Lanes<T>::Values>(from + q * Lanes<T>::STEP));
        };
        for (std::int64_t p = 0; p + LANES < count; p += LANES) add_lanes(x + p);
        add_lanes(x + count - LANES);
        return lanes.sum();
    }

    template <int CHAINS, class Columns>
    static auto folded(const Columns (&sum)[CHAINS], int q) {
        if constexpr (CHAINS == 4) return (sum[0].part[q] + sum[2].part[q]) + (sum[1].part[q] + sum[3].part[q]);
        else return sum[0].part[q] + sum[1].part[q];
    }

    // Two sums at a time, whatever the group: so a column's score does not depend on the columns beside it.
    void quick_sums(std::int64_t i, const T* weights, std::int64_t stride, std::int64_t columns, T* out) const {
        in_groups(columns, [&]<int COUNT>(Group<COUNT>, std::int64_t first) {
            sums<COUNT, 2>(i, weights + first, stride, out + first);
        });
    }

    // Row i times COUNT neighbouring columns, in CHAINS sums at a time to hide the time that an addition takes.
    template <int COUNT, int CHAINS>
    SEPARATRIX_INLINE void sums(std::int64_t i, const T* weights, std::int64_t stride, T* out) const {
        using Columns = Side<T, COUNT>;
        Columns sum[CHAINS];
        const auto add_term = [&](std::int64_t p, int l) {
            for (int q = 0; q < Columns::PARTS; ++q)
                sum[l].part[q] += Columns::load(weights + indices[p] * stride, q) * data[p];
        };
        std::int64_t p = indptr[i];
        const std::int64_t end = indptr[i + 1];
        for (; p + CHAINS <= end; p += CHAINS) {
            // Keeps the compiler from packing looked-up values into registers, which costs more than it saves.
            asm("");
            for (int l = 0; l < CHAINS; ++l) add_term(p + l, l);
        }
        for (; p < end; ++p) add_term(p, 0);
        for (int q = 0; q < Columns::PARTS; ++q) Columns::store(out, q, folded<CHAINS>(sum, q));
    }
};

// Arrays as the row solvers see them.
template <class T>
DenseRows<T> rows_of(const DenseArray<T>& a) { return {a.data, a.row_stride, a.n_features}; }
template <class T, class Index>
CsrRows<T, Index> rows_of(const CsrArray<T, Index>& a) { return {a.data, a.indices, a.indptr, a.n_features}; }

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
