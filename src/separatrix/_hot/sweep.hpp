// One sweep of a smooth linear model over a block of rows: scores F = X Wᵀ + b, the link's value and
// residuals R, and the products Xᵀ R, while the rows are in the caches.
//
// Dense rows: tiles of rows × columns with the features across the lanes for the scores, tiles of
// columns × features in registers for the transposed product. Sparse rows: weights and gradient
// as [feature][column], so that one look-up of a feature serves all columns.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "links.hpp"
#include "rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t CHUNK_BYTES = 96 << 10;  // rows that stay in the second-level cache

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// Scratch memory, aligned to a cache line. (std::vector would bring shared inline code into this file.)
template <class T>
struct Scratch {
    T* data;
    explicit Scratch(std::int64_t count)
        : data(static_cast<T*>(::operator new(static_cast<std::size_t>(count ? count : 1) * sizeof(T), std::align_val_t(64)))) {
        std::memset(static_cast<void*>(data), 0, static_cast<std::size_t>(count) * sizeof(T));
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { ::operator delete(data, std::align_val_t(64)); }
};

// Rows in the arithmetic's precision: whole registers where they lie, the rest padded with zeros.
template <class T>
struct Chunk {
    const T* whole;
    std::int64_t whole_stride, whole_features;
    const T* tail;  // (rows, one register)
};

template <class T, int ROWS, int COLUMNS>
inline void dot_tile(const Chunk<T>& x, std::int64_t row, const T* w, std::int64_t w_stride, T* scores,
                     std::int64_t stride) {
    using R = Register<T>;
    typename R::Values sum[ROWS][COLUMNS] = {};
    const auto add = [&](const T* from, std::int64_t from_stride, const T* at) {
        typename R::Values loaded[ROWS];
        for (int r = 0; r < ROWS; ++r) loaded[r] = R::load(from + r * from_stride);
        for (int c = 0; c < COLUMNS; ++c) {
            const auto v = R::load(at + c * w_stride);
            for (int r = 0; r < ROWS; ++r) sum[r][c] += loaded[r] * v;
        }
    };
    const T* first = x.whole + row * x.whole_stride;
    for (std::int64_t j = 0; j < x.whole_features; j += R::COUNT) add(first + j, x.whole_stride, w + j);
    if (x.tail) add(x.tail + row * R::COUNT, R::COUNT, w + x.whole_features);
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < COLUMNS; ++c) {
            T folded = 0;
            for (int l = 0; l < R::COUNT; ++l) folded += sum[r][c][l];
            scores[(row + r) * stride + c] += folded;
        }
}

template <class T, int COLUMNS>
inline void dots(const Chunk<T>& x, std::int64_t rows, const T* w, std::int64_t w_stride, T* scores,
                 std::int64_t stride) {
    std::int64_t i = 0;
    for (; i + 4 <= rows; i += 4) dot_tile<T, 4, COLUMNS>(x, i, w, w_stride, scores, stride);
    for (; i < rows; ++i) dot_tile<T, 1, COLUMNS>(x, i, w, w_stride, scores, stride);
}

// gradient[c][j …] += Σ_i residuals[i][c] x[i][j …]
template <class T, int COLUMNS, int WIDTH>
inline void outer_tile(const T* x, std::int64_t x_stride, std::int64_t rows, const T* residuals,
                       std::int64_t stride, T* gradient, std::int64_t g_stride) {
    using R = Register<T>;
    typename R::Values sum[COLUMNS][WIDTH] = {};
    for (std::int64_t i = 0; i < rows; ++i) {
        typename R::Values loaded[WIDTH];
        for (int v = 0; v < WIDTH; ++v) loaded[v] = R::load(x + i * x_stride + v * R::COUNT);
        for (int c = 0; c < COLUMNS; ++c) {
            const auto factor = R::all(residuals[i * stride + c]);
            for (int v = 0; v < WIDTH; ++v) sum[c][v] += factor * loaded[v];
        }
    }
    for (int c = 0; c < COLUMNS; ++c)
        for (int v = 0; v < WIDTH; ++v) {
            T* at = gradient + c * g_stride + v * R::COUNT;
            R::store(at, R::load(at) + sum[c][v]);
        }
}

template <class T, int COLUMNS>
inline void outer(const Chunk<T>& x, std::int64_t rows, const T* residuals, std::int64_t stride, T* gradient,
                  std::int64_t g_stride) {
    using R = Register<T>;
    constexpr int WIDTH = COLUMNS == 1 ? 4 : 2;
    std::int64_t j = 0;
    for (; j + WIDTH * R::COUNT <= x.whole_features; j += WIDTH * R::COUNT)
        outer_tile<T, COLUMNS, WIDTH>(x.whole + j, x.whole_stride, rows, residuals, stride, gradient + j, g_stride);
    for (; j < x.whole_features; j += R::COUNT)
        outer_tile<T, COLUMNS, 1>(x.whole + j, x.whole_stride, rows, residuals, stride, gradient + j, g_stride);
    if (x.tail) outer_tile<T, COLUMNS, 1>(x.tail, R::COUNT, rows, residuals, stride, gradient + j, g_stride);
}

// Calls part(columns as a constant, first column) for groups of 3, 2 and 1 columns: what fits the registers.
template <class Part>
inline void by_columns(std::int64_t columns, Part part) {
    std::int64_t k = 0;
    for (; k + 3 <= columns; k += 3) part.template operator()<3>(k);
    if (columns - k == 2) part.template operator()<2>(k);
    if (columns - k == 1) part.template operator()<1>(k);
}
template <class Part>
inline void by_more_columns(std::int64_t columns, Part part) {
    std::int64_t k = 0;
    for (; k + 5 <= columns; k += 5) part.template operator()<5>(k);
    switch (columns - k) {
        case 4: part.template operator()<4>(k); break;
        case 3: part.template operator()<3>(k); break;
        case 2: part.template operator()<2>(k); break;
        case 1: part.template operator()<1>(k); break;
        default: break;
    }
}

template <class T>
void keep_residuals(const SweepState& state, std::int64_t first, std::int64_t rows, const T* residuals) {
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t k = 0; k < state.columns; ++k) {
            const double r = residuals[i * state.stride + k];
            state.gradient_intercept[k] += r;
            if (state.residuals) state.residuals[(first + i) * state.columns + k] = r;
        }
}

template <class Data, class T, class Link>
double sweep_dense(const Data* X, std::int64_t n, std::int64_t row_stride, std::int64_t d, SweepState state) {
    using R = Register<T>;
    constexpr bool in_place = sizeof(Data) == sizeof(T);
    state.stride = round_up(state.columns, R::COUNT);
    const std::int64_t K = state.columns, width = round_up(d, R::COUNT), whole = in_place ? d - d % R::COUNT : width;
    std::int64_t most = CHUNK_BYTES / (width * static_cast<std::int64_t>(sizeof(T)));
    most = most < 8 ? 8 : most > 256 ? 256 : most / 4 * 4;
    Scratch<T> weights(K * width), gradient(K * width), scores(most * state.stride);
    Scratch<T> copy(in_place ? most * R::COUNT : most * width);
    for (std::int64_t k = 0; k < K; ++k)
        for (std::int64_t j = 0; j < d; ++j) weights.data[k * width + j] = static_cast<T>(state.coef[k * d + j]);
    const Link link{state};
    double value = 0;
    for (std::int64_t first = 0; first < n; first += most) {
        const std::int64_t rows = n - first < most ? n - first : most;
        Chunk<T> chunk;
        if constexpr (in_place) {
            chunk = {X + first * row_stride, row_stride, whole, whole < d ? copy.data : nullptr};
            if (whole < d)
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t j = whole; j < d; ++j)
                        copy.data[i * R::COUNT + j - whole] = X[(first + i) * row_stride + j];
        } else {
            chunk = {copy.data, width, whole, nullptr};
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < d; ++j)
                    copy.data[i * width + j] = static_cast<T>(X[(first + i) * row_stride + j]);
        }
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t k = 0; k < state.stride; ++k)
                scores.data[i * state.stride + k] = k < K ? static_cast<T>(state.intercept[k]) : T(0);
        by_columns(K, [&]<int C>(std::int64_t k) {
            dots<T, C>(chunk, rows, weights.data + k * width, width, scores.data + k, state.stride);
        });
        value += link.apply(first, rows, scores.data);
        keep_residuals(state, first, rows, scores.data);
        if (state.gradient)
            by_more_columns(K, [&]<int C>(std::int64_t k) {
                outer<T, C>(chunk, rows, scores.data + k, state.stride, gradient.data + k * width, width);
            });
    }
    if (state.gradient)
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t j = 0; j < d; ++j) state.gradient[k * d + j] += static_cast<double>(gradient.data[k * width + j]);
    return value;
}

// Sparse rows: coef and gradient are (features, columns) here, in the arithmetic's own precision.
template <class Data, class Index, class Link>
double sweep_csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t n, SweepState state) {
    const std::int64_t K = state.columns;
    state.stride = round_up(K, Register<double>::COUNT);
    constexpr std::int64_t most = 64;
    Scratch<double> scores(most * state.stride);
    const Link link{state};
    double value = 0;
    for (std::int64_t first = 0; first < n; first += most) {
        const std::int64_t rows = n - first < most ? n - first : most;
        for (std::int64_t i = 0; i < rows; ++i) {
            double* f = scores.data + i * state.stride;
            const std::int64_t begin = indptr[first + i], end = indptr[first + i + 1];
            if (K == 1) {
                double sum[4] = {state.intercept[0], 0, 0, 0};
                std::int64_t p = begin;
                for (; p + 4 <= end; p += 4)
                    for (int l = 0; l < 4; ++l) sum[l] += data[p + l] * state.coef[indices[p + l]];
                for (; p < end; ++p) sum[0] += data[p] * state.coef[indices[p]];
                f[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
                continue;
            }
            for (std::int64_t k = 0; k < state.stride; ++k) f[k] = k < K ? state.intercept[k] : 0.0;
            for (std::int64_t p = begin; p < end; ++p) {
                const double x = data[p];
                const double* w = state.coef + indices[p] * K;
                for (std::int64_t k = 0; k < K; ++k) f[k] += x * w[k];
            }
        }
        value += link.apply(first, rows, scores.data);
        keep_residuals(state, first, rows, scores.data);
        if (!state.gradient) continue;
        for (std::int64_t i = 0; i < rows; ++i) {
            const double* r = scores.data + i * state.stride;
            const std::int64_t begin = indptr[first + i], end = indptr[first + i + 1];
            if (K == 1) {
                for (std::int64_t p = begin; p < end; ++p) state.gradient[indices[p]] += data[p] * r[0];
                continue;
            }
            for (std::int64_t p = begin; p < end; ++p) {
                const double x = data[p];
                double* g = state.gradient + indices[p] * K;
                for (std::int64_t k = 0; k < K; ++k) g[k] += x * r[k];
            }
        }
    }
    return value;
}

// gram += Σ_i weights_i x_i x_iᵀ for sparse rows; only pairs in the order they are stored.
template <class Data, class Index>
void gram_csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t n, std::int64_t d,
              const double* weights, double* gram) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double s = weights ? weights[i] : 1.0;
        const std::int64_t end = indptr[i + 1];
        for (std::int64_t p = indptr[i]; p < end; ++p) {
            const double x = s * data[p];
            double* row = gram + indices[p] * d;
            for (std::int64_t q = indptr[i]; q < end; ++q) row[indices[q]] += x * data[q];
        }
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
