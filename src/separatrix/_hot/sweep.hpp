// One sweep of a smooth linear model over a block of rows: scores F = X Wᵀ + b, the link's value and
// residuals R, and the products Xᵀ R, while the rows are in the caches.
//
// Dense rows: tiles of rows × columns with the features across the lanes for the scores, tiles of
// columns × features in registers for the transposed product. Sparse rows: weights and gradient
// as [feature][column], so that one look-up of a feature serves all columns.
#pragma once

#include <cstdint>

#include "fold.hpp"
#include "links.hpp"
#include "rows.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t CHUNK_BYTES = 96 << 10;  // rows that stay in the second-level cache

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// Rows in the arithmetic's precision: features in whole registers, then one register, the tail, for
// the rest, if there is one.
template <class T>
struct Chunk {
    const T* whole;
    std::int64_t whole_stride, whole_features;
    const T* tail;
    std::int64_t tail_stride;
};

// Where the features stand in the sweep's own weights and gradient: at their number, but those of the
// tail so that its register may begin within the row, where it repeats features that are in whole
// registers already. Those places stay 0.
struct Places {
    std::int64_t whole, width, skipped;
    Places(std::int64_t d, std::int64_t count, bool in_place)
        : whole(in_place ? d - d % count : round_up(d, count)),
          width(in_place && d % count ? whole + count : whole),
          skipped(in_place && d % count && d > count ? count - d % count : 0) {}
    std::int64_t of(std::int64_t j) const { return j < whole ? j : j + skipped; }
};

// One by one: an initialiser for the whole array would write it to memory, though it lives in registers.
template <class Values, int ROWS, int COLUMNS>
inline void set_to_zero(Values (&sums)[ROWS][COLUMNS]) {
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < COLUMNS; ++c) sums[r][c] = Values{};
}

// scores[c][row …] += x[row …] · w[c]. On its own, and unrolled: among other code the sums would go through memory.
template <class T, int ROWS, int COLUMNS, bool FRESH>
__attribute__((noinline)) void dot_tile(const Chunk<T>& x, std::int64_t row, const T* w, std::int64_t w_stride,
                                        T* scores, std::int64_t stride) {
    using R = Register<T>;
    typename R::Values sum[ROWS][COLUMNS];
    set_to_zero(sum);
    const auto add = [&](const T* from, std::int64_t from_stride, const T* at) {
        typename R::Values loaded[COLUMNS];
#pragma GCC unroll 3
        for (int c = 0; c < COLUMNS; ++c) loaded[c] = held(R::load(at + c * w_stride));
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; ++r) {
            const auto v = held(R::load(from + r * from_stride));
#pragma GCC unroll 3
            for (int c = 0; c < COLUMNS; ++c) sum[r][c] += v * loaded[c];
        }
    };
    const T* first = x.whole + row * x.whole_stride;
    // Rows side by side are no stream that the processor would foresee: those of the tile after next are asked for.
    const T* ahead = first + 2 * ROWS * x.whole_stride;
    for (std::int64_t j = 0; j < x.whole_features; j += R::COUNT) {
        if constexpr (FRESH)
            for (int line = 0; line < ROWS * REGISTER_BYTES; line += 64)
                __builtin_prefetch(reinterpret_cast<const char*>(ahead + ROWS * j) + line, 0, 2);
        add(first + j, x.whole_stride, w + j);
    }
    if (x.tail) add(x.tail + row * x.tail_stride, x.tail_stride, w + x.whole_features);
    typedef T Folded __attribute__((vector_size(ROWS * sizeof(T))));
#pragma GCC unroll 3
    for (int c = 0; c < COLUMNS; ++c) {
        T* to = scores + c * stride + row;
        Folded folded, there;
        if constexpr (ROWS == 4) {
            T four[4];
            fold_four<T>(sum[0][c], sum[1][c], sum[2][c], sum[3][c], four);
            __builtin_memcpy(&folded, four, sizeof(folded));
        } else {
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; ++r) {
                T one = 0;
                for (int l = 0; l < R::COUNT; ++l) one += sum[r][c][l];
                folded[r] = one;
            }
        }
        __builtin_memcpy(&there, to, sizeof(there));
        there += folded;
        __builtin_memcpy(to, &there, sizeof(there));
    }
}

// gradient[c][j …] += Σ_i residuals[i][c] x[i][j …]
template <class T, int COLUMNS, int WIDTH>
inline void outer_tile(const T* x, std::int64_t x_stride, std::int64_t rows, const T* residuals,
                       std::int64_t stride, T* gradient, std::int64_t g_stride) {
    using R = Register<T>;
    typename R::Values sum[COLUMNS][WIDTH];
    set_to_zero(sum);
    for (std::int64_t i = 0; i < rows; ++i) {
        typename R::Values loaded[WIDTH];
        for (int v = 0; v < WIDTH; ++v) loaded[v] = R::load(x + i * x_stride + v * R::COUNT);
        for (int c = 0; c < COLUMNS; ++c) {
            const auto factor = R::all(residuals[c * stride + i]);
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
    if (x.tail) outer_tile<T, COLUMNS, 1>(x.tail, x.tail_stride, rows, residuals, stride, gradient + j, g_stride);
}

// Calls part(columns as a constant, first column) for groups of 3, 2 and 1 columns: what fits the registers; 2 + 2
// instead of 3 + 1, whose tiles have fewer sums than the processor has in flight.
template <class Part>
inline void by_columns(std::int64_t columns, Part part) {
    std::int64_t k = 0;
    for (; columns - k == 3 || columns - k > 4; k += 3) part.template operator()<3>(k);
    for (; columns - k >= 2; k += 2) part.template operator()<2>(k);
    if (columns > k) part.template operator()<1>(k);
}
// scores[k][i] += x_i · w_k for all columns: a few rows stay in the first-level cache for all of them.
template <class T>
inline void dots(const Chunk<T>& x, std::int64_t rows, std::int64_t columns, const T* w, std::int64_t w_stride,
                 T* scores, std::int64_t stride, bool ahead) {
    const auto some = [&]<int ROWS>(std::int64_t i) {
        by_columns(columns, [&]<int C>(std::int64_t k) {
            const T* own = w + k * w_stride;
            T* to = scores + k * stride;
            if (ROWS > 1 && ahead && k == 0) dot_tile<T, ROWS, C, true>(x, i, own, w_stride, to, stride);
            else dot_tile<T, ROWS, C, false>(x, i, own, w_stride, to, stride);
        });
    };
    std::int64_t i = 0;
    for (; i + 4 <= rows; i += 4) some.template operator()<4>(i);
    for (; i < rows; ++i) some.template operator()<1>(i);
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
    for (std::int64_t k = 0; k < state.columns; ++k) {
        const T* r = residuals + k * state.stride;
        auto sum = Register<T>::all(0);  // beyond the last row residuals are 0
        for (std::int64_t i = 0; i < rows; i += Register<T>::COUNT) sum += Register<T>::load(r + i);
        if (state.gradient_intercept) state.gradient_intercept[k] += sum_of<T>(sum);
        if (state.residuals)
            for (std::int64_t i = 0; i < rows; ++i) state.residuals[(first + i) * state.columns + k] = r[i];
    }
}

template <class Data, class T, class Link, class State>
double sweep_dense(const Data* X, std::int64_t n, std::int64_t row_stride, std::int64_t d, State state) {
    using R = Register<T>;
    constexpr bool in_place = sizeof(Data) == sizeof(T);
    const Places places(d, R::COUNT, in_place);
    const std::int64_t K = state.columns, width = places.width, whole = places.whole;
    std::int64_t most = CHUNK_BYTES / (width * static_cast<std::int64_t>(sizeof(T)));
    most = round_up(most < 16 ? 16 : most > 256 ? 256 : most, R::COUNT);
    state.stride = most;
    Scratch<T> weights(K * width), gradient(K * width), scores(K * most);
    Scratch<T> copy(in_place ? most * R::COUNT : most * width);
    for (std::int64_t k = 0; k < K; ++k)
        for (std::int64_t j = 0; j < d; ++j) weights.data[k * width + places.of(j)] = static_cast<T>(state.coef[k * d + j]);
    const Link link{state};
    double value = 0;
    for (std::int64_t first = 0; first < n; first += most) {
        const std::int64_t rows = n - first < most ? n - first : most;
        Chunk<T> chunk;
        if constexpr (in_place) {
            const T* rows_begin = X + first * row_stride;
            chunk = {rows_begin, row_stride, whole, whole < d ? rows_begin + d - R::COUNT : nullptr, row_stride};
            if (d < R::COUNT) {
                chunk.tail = copy.data;
                chunk.tail_stride = R::COUNT;
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t j = 0; j < d; ++j)
                        copy.data[i * R::COUNT + j] = rows_begin[i * row_stride + j];
            }
        } else {
            chunk = {copy.data, width, whole, nullptr, 0};
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < d; ++j)
                    copy.data[i * width + j] = static_cast<T>(X[(first + i) * row_stride + j]);
        }
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t i = 0; i < most; ++i) scores.data[k * most + i] = static_cast<T>(state.intercept[k]);
        dots<T>(chunk, rows, K, weights.data, width, scores.data, most, in_place);
        value += link.apply(first, rows, scores.data);
        keep_residuals(state, first, rows, scores.data);
        if (state.gradient)
            by_more_columns(K, [&]<int C>(std::int64_t k) {
                outer<T, C>(chunk, rows, scores.data + k * most, most, gradient.data + k * width, width);
            });
    }
    if (state.gradient)
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t j = 0; j < d; ++j)
                state.gradient[k * d + j] += static_cast<double>(gradient.data[k * width + places.of(j)]);
    return value;
}

// Sparse rows: coef and gradient are (features, columns) here, in double precision.
template <class Data, class Index, class Link>
double sweep_csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t n, SweepState state) {
    const std::int64_t K = state.columns;
    constexpr std::int64_t most = 64;
    state.stride = most;
    Scratch<double> scores(K * most), row(K);
    double* f = row.data;
    const Link link{state};
    double value = 0;
    for (std::int64_t first = 0; first < n; first += most) {
        const std::int64_t rows = n - first < most ? n - first : most;
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t begin = indptr[first + i], end = indptr[first + i + 1];
            if (K == 1) {
                double sum[4] = {state.intercept[0], 0, 0, 0};
                std::int64_t p = begin;
                for (; p + 4 <= end; p += 4)
                    for (int l = 0; l < 4; ++l) sum[l] += data[p + l] * state.coef[indices[p + l]];
                for (; p < end; ++p) sum[0] += data[p] * state.coef[indices[p]];
                scores.data[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
                continue;
            }
            for (std::int64_t k = 0; k < K; ++k) f[k] = state.intercept[k];
            for (std::int64_t p = begin; p < end; ++p) {
                const double x = data[p];
                const double* w = state.coef + indices[p] * K;
                for (std::int64_t k = 0; k < K; ++k) f[k] += x * w[k];
            }
            for (std::int64_t k = 0; k < K; ++k) scores.data[k * most + i] = f[k];
        }
        for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t i = rows; i < most; ++i) scores.data[k * most + i] = 0;
        value += link.apply(first, rows, scores.data);
        keep_residuals(state, first, rows, scores.data);
        if (!state.gradient) continue;
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t begin = indptr[first + i], end = indptr[first + i + 1];
            if (K == 1) {
                for (std::int64_t p = begin; p < end; ++p) state.gradient[indices[p]] += data[p] * scores.data[i];
                continue;
            }
            for (std::int64_t k = 0; k < K; ++k) f[k] = scores.data[k * most + i];
            for (std::int64_t p = begin; p < end; ++p) {
                const double x = data[p];
                double* g = state.gradient + indices[p] * K;
                for (std::int64_t k = 0; k < K; ++k) g[k] += x * f[k];
            }
        }
    }
    return value;
}

// sums[0] += Σ_i s_i x_i and sums[1] += Σ_i s_i x_i², feature by feature: stretches of rows in the data's precision.
template <class Data>
void column_sums(const Data* X, std::int64_t n, std::int64_t row_stride, std::int64_t d, const double* weights,
                 double* sums) {
    constexpr std::int64_t stretch = 256;
    Scratch<Data> part(2 * d);
    for (std::int64_t first = 0; first < n; first += stretch) {
        const std::int64_t end = n - first < stretch ? n : first + stretch;
        std::int64_t i = first;
        const auto add = [&]<int ROWS>() {
            Data s[ROWS];
            for (int r = 0; r < ROWS; ++r) s[r] = weights ? static_cast<Data>(weights[i + r]) : Data(1);
            const Data* x = X + i * row_stride;
            for (std::int64_t j = 0; j < d; ++j) {
                Data one = 0, two = 0;
                for (int r = 0; r < ROWS; ++r) {
                    const Data v = x[r * row_stride + j], scaled = s[r] * v;
                    one += scaled;
                    two += scaled * v;
                }
                part.data[j] += one;
                part.data[d + j] += two;
            }
            i += ROWS;
        };
        while (i + 4 <= end) add.template operator()<4>();
        while (i < end) add.template operator()<1>();
        for (std::int64_t j = 0; j < 2 * d; ++j) {
            sums[j] += static_cast<double>(part.data[j]);
            part.data[j] = 0;
        }
    }
}

// Adds to half such that half + halfᵀ is Σ_i weights_i x_i x_iᵀ: each pair of stored values once.
template <class Data, class Index>
void gram_csr(const Data* data, const Index* indices, const Index* indptr, std::int64_t n, std::int64_t d,
              const double* weights, double* half) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double s = weights ? weights[i] : 1.0;
        const std::int64_t end = indptr[i + 1];
        for (std::int64_t p = indptr[i]; p < end; ++p) {
            const double x = s * data[p];
            double* row = half + indices[p] * d;
            row[indices[p]] += 0.5 * x * data[p];
            for (std::int64_t q = p + 1; q < end; ++q) row[indices[q]] += x * data[q];
        }
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
