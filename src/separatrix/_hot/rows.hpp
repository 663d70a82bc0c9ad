// Rows of a data matrix as the row solvers see them: dot with weights, add to weights, prefetch.
//
// Both kinds of row sum a dot product in the same LANES partial sums (lane = feature index modulo
// LANES) and fold them in the same order, so dense and CSR data, and every instruction set, give
// the same bits. The build switches off contraction to fused multiply-add for the same reason.
#pragma once

#include <cstdint>

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

template <class T, int BYTES>
struct Register {
    typedef T type __attribute__((vector_size(BYTES)));

    static type load(const T* from) {
        type loaded;
        __builtin_memcpy(&loaded, from, BYTES);
        return loaded;
    }
};

// LANES numbers side by side, in as many registers as the target needs for them.
template <class T>
struct Lanes {
    static constexpr int BYTES = LANES * sizeof(T);
    static constexpr int WIDTH = BYTES < REGISTER_BYTES ? BYTES : REGISTER_BYTES;
    static constexpr int PARTS = BYTES / WIDTH;
    static constexpr int STEP = LANES / PARTS;
    using In = Register<T, WIDTH>;
    typename In::type part[PARTS] = {};

    // this += x * w
    void add_product(const T* x, const T* w) {
        for (int p = 0; p < PARTS; ++p) part[p] += In::load(x + p * STEP) * In::load(w + p * STEP);
    }

    T operator[](int l) const { return part[l / STEP][l % STEP]; }
};

template <class T>
inline T fold(const T* lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Dense rows with unit column stride; weights of column k start at weights + k * n_features.
template <class T>
struct DenseRows {
    using value_type = T;
    const T* data;
    std::int64_t row_stride;
    std::int64_t n_features;

    const T* row(std::int64_t i) const { return data + i * row_stride; }

    void prefetch(std::int64_t i) const {
        const char* from = reinterpret_cast<const char*>(row(i));
        // Beyond a few KiB the hardware's own stream detection takes over.
        const std::int64_t bytes = n_features * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t most = bytes < 4096 ? bytes : 4096;
        for (std::int64_t at = 0; at < most; at += 64) __builtin_prefetch(from + at, 0, 1);
    }

    // Dot products of one row with COUNT neighbouring columns: the row is loaded once for all.
    template <int COUNT>
    void dots(const T* x, const T* weights, T* out) const {
        Lanes<T> lane[COUNT] = {};
        const std::int64_t whole = n_features - n_features % LANES;
        for (std::int64_t j = 0; j < whole; j += LANES)
            for (int c = 0; c < COUNT; ++c) lane[c].add_product(x + j, weights + c * n_features + j);
        for (int c = 0; c < COUNT; ++c) {
            T sum[LANES];
            for (int l = 0; l < LANES; ++l) sum[l] = lane[c][l];
            for (std::int64_t j = whole; j < n_features; ++j)
                sum[j - whole] += x[j] * weights[c * n_features + j];
            out[c] = fold(sum);
        }
    }

    // out[k] = row i · column k, for the wanted columns; the others keep their value.
    void scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* wanted,
                T* out) const {
        const T* x = row(i);
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

    // visit(position of the weight) for each non-zero feature of row i in column k
    template <class Visit>
    void each(std::int64_t i, std::int64_t columns, std::int64_t k, Visit visit) const {
        const T* x = row(i);
        for (std::int64_t j = 0; j < n_features; ++j)
            if (x[j] != T(0)) visit(position(j, columns, k));
    }
};

// Compressed sparse rows; the weights of feature j stand together: weights[j * columns + k], so
// that one look-up of a feature serves all columns.
template <class T, class Index>
struct CsrRows {
    using value_type = T;
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

    template <int COUNT>
    void dots(std::int64_t i, const T* weights, T* out) const {
        T lane[LANES * COUNT] = {};
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
            const std::int64_t j = indices[p];
            T* sum = lane + (j % LANES) * COUNT;
            for (int c = 0; c < COUNT; ++c) sum[c] += data[p] * weights[j * COUNT + c];
        }
        for (int c = 0; c < COUNT; ++c) {
            T own[LANES];
            for (int l = 0; l < LANES; ++l) own[l] = lane[l * COUNT + c];
            out[c] = fold(own);
        }
    }

    void scores(std::int64_t i, const T* weights, std::int64_t columns, const std::uint8_t* /*wanted*/,
                T* out) const {
        if (columns == 1) return dots<1>(i, weights, out);
        if (columns == 2) return dots<2>(i, weights, out);
        // Columns in groups whose lane sums stay in the first-level cache.
        constexpr std::int64_t GROUP = 16;
        for (std::int64_t first = 0; first < columns; first += GROUP) {
            const std::int64_t count = columns - first < GROUP ? columns - first : GROUP;
            T lane[LANES * GROUP] = {};
            for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p) {
                const std::int64_t j = indices[p];
                const T x = data[p];
                const T* w = weights + j * columns + first;
                T* sum = lane + (j % LANES) * GROUP;
                for (std::int64_t c = 0; c < count; ++c) sum[c] += x * w[c];
            }
            for (std::int64_t c = 0; c < count; ++c) {
                T own[LANES];
                for (int l = 0; l < LANES; ++l) own[l] = lane[l * GROUP + c];
                out[first + c] = fold(own);
            }
        }
    }

    std::int64_t position(std::int64_t j, std::int64_t columns, std::int64_t k) const {
        return j * columns + k;
    }

    template <class W>
    void add(std::int64_t i, W step, W* weights, std::int64_t columns, std::int64_t k) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            weights[position(indices[p], columns, k)] += step * data[p];
    }

    template <class Visit>
    void each(std::int64_t i, std::int64_t columns, std::int64_t k, Visit visit) const {
        for (std::int64_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
            if (data[p] != T(0)) visit(position(indices[p], columns, k));
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
