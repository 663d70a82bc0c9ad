// Sums Σ_j k(x, z_j) c_j of rows x over the support vectors z_j of a machine, for prediction.
//
// The support vectors stand in panels that are packed once; rows come as the user holds them and are only
// scaled, a few at a time. Kernel values of four rows and some panels are written to memory that stays in
// the first-level cache and are multiplied by the coefficients from there, in registers again. Each lane of a
// register is a sum in T over one such chunk; lanes and chunks are added in double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fold.hpp"
#include "kernel_panels.hpp"
#include "machine_state.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t ROWS_BYTES = 256 << 10;   // rows that are read at a time
// Panels that serve all these rows before the next do: from the second-level cache, but from the first where
// the rows are mostly zeros, since each number of a panel then serves one row at a time.
constexpr std::int64_t PANEL_BYTES = 192 << 10, SPARSE_PANEL_BYTES = 24 << 10;
constexpr std::int64_t CHUNK_PANELS = 20, SPARSE_PANELS = 4, ROWS_TOGETHER = 16;

template <class T, class Data>
inline T packed(Data x, std::int64_t j, const MachineData<T>& m) {
    return static_cast<T>((static_cast<double>(x) - (m.shift ? m.shift[j] : 0.0)) * m.scale);
}

template <class T, class Data>
inline void read_row(Left<T>& left, std::int64_t r, const MachineData<T>& m, const StridedArray<Data>& rows,
                     std::int64_t row) {
    const Data* from = rows.data + row * rows.row_stride;
    std::int64_t at = left.begin.data[r];
    if (!left.sparse) {
        for (std::int64_t j = 0; j < left.d; ++j) left.x.data[at + j] = packed(from[j * rows.column_stride], j, m);
        left.begin.data[r + 1] = at + left.d;
        return;
    }
    for (std::int64_t j = 0; j < left.d; ++j) {
        const T value = packed(from[j * rows.column_stride], j, m);
        left.x.data[at] = value;
        left.feature.data[at] = static_cast<std::int32_t>(j);
        at += value != 0;
    }
    left.begin.data[r + 1] = at;
}

// Each feature is stored once in a row, in rising order.
template <class T, class Data, class Index>
inline void read_row(Left<T>& left, std::int64_t r, const MachineData<T>& m, const CsrArray<Data, Index>& rows,
                     std::int64_t row) {
    const std::int64_t at = left.begin.data[r], first = rows.indptr[row], stored = rows.indptr[row + 1] - first;
    const Data* from = rows.data + first;
    const Index* feature = rows.indices + first;
    if (left.sparse && !m.shift) {
        for (std::int64_t p = 0; p < stored; ++p) {
            left.x.data[at + p] = packed(from[p], feature[p], m);
            left.feature.data[at + p] = static_cast<std::int32_t>(feature[p]);
        }
        left.begin.data[r + 1] = at + stored;
        return;
    }
    for (std::int64_t j = 0; j < left.d; ++j) {
        left.x.data[at + j] = packed(Data(0), j, m);
        if (left.sparse) left.feature.data[at + j] = static_cast<std::int32_t>(j);
    }
    for (std::int64_t p = 0; p < stored; ++p) left.x.data[at + feature[p]] = packed(from[p], feature[p], m);
    left.begin.data[r + 1] = at + left.d;
}

// |x|²/2, summed feature by feature and in registers as that of the panels: equal samples have distance 0.
template <class T>
inline void halve_norms(Left<T>& left) {
    using R = Register<T>;
    if (left.sparse) {
        for (std::int64_t r = 0; r < left.count; ++r) {
            auto sum = R::all(0);
            for (std::int64_t at = left.begin.data[r]; at < left.begin.data[r + 1]; ++at)
                sum += R::all(left.x.data[at]) * R::all(left.x.data[at]);
            left.half.data[r] = sum[0] * T(0.5);
        }
        return;
    }
    for (std::int64_t r = 0; r < left.count; r += R::COUNT) {  // memory for whole registers of rows is there
        auto sum = R::all(0);
        const T* x = left.x.data + r * left.d;
        for (std::int64_t j = 0; j < left.d; ++j) {
            Values<T> value;
            for (int k = 0; k < R::COUNT; ++k) value[k] = x[k * left.d + j];
            sum += value * value;
        }
        R::store(left.half.data + r, sum * T(0.5));
    }
}

// to[r][c] += Σ_s values[r][s] coef[c][s] over all s of some panels, for ROWS rows and three columns.
template <class T, int ROWS>
__attribute__((noinline)) void three_columns(const T* values, std::int64_t stride, const T* coef, std::int64_t panels,
                          std::int64_t columns, double* to, std::int64_t to_stride) {
    using R = Register<T>;
    constexpr int COLUMNS = 3;
    Values<T> sum[ROWS][COLUMNS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 3
        for (int c = 0; c < COLUMNS; ++c) sum[r][c] = R::all(0);
    for (std::int64_t p = 0; p < panels; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) {
            Values<T> loaded[COLUMNS];
#pragma GCC unroll 3
            for (int c = 0; c < COLUMNS; ++c) loaded[c] = R::load(coef + (p * columns + c) * PANEL<T> + k * R::COUNT);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; ++r) {
                const auto value = R::load(values + r * stride + p * PANEL<T> + k * R::COUNT);
#pragma GCC unroll 3
                for (int c = 0; c < COLUMNS; ++c) sum[r][c] += value * loaded[c];
            }
        }
    for (int r = 0; r < ROWS; ++r) {
        double folded[4];
        const auto last = widened(sum[r][2]);
        fold_four<double>(widened(sum[r][0]), widened(sum[r][1]), last, last, folded);
        for (int c = 0; c < COLUMNS; ++c) to[r * to_stride + c] += folded[c];
    }
}

// The same for one column; its registers are summed apart, which keeps the processor busy.
template <class T, int ROWS>
__attribute__((noinline)) void one_column(const T* values, std::int64_t stride, const T* coef, std::int64_t panels, std::int64_t columns,
                       double* to, std::int64_t to_stride) {
    using R = Register<T>;
    Values<T> sum[ROWS][PANEL_REGISTERS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][k] = R::all(0);
    for (std::int64_t p = 0; p < panels; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) {
            const auto loaded = R::load(coef + p * columns * PANEL<T> + k * R::COUNT);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; ++r)
                sum[r][k] += loaded * R::load(values + r * stride + p * PANEL<T> + k * R::COUNT);
        }
    for (int r = 0; r < ROWS; ++r) {
        const auto all = widened(sum[r][0]) + widened(sum[r][1]) + widened(sum[r][2]);
        double folded = 0;
        for (std::size_t l = 0; l < sizeof(all) / sizeof(double); ++l) folded += all[l];
        to[r * to_stride] += folded;
    }
}

template <class T, int ROWS>
inline void all_columns(const T* values, std::int64_t stride, const T* coef, std::int64_t panels,
                        std::int64_t columns, double* to, std::int64_t to_stride) {
    std::int64_t c = 0;
    for (; c + 3 <= columns; c += 3)
        three_columns<T, ROWS>(values, stride, coef + c * PANEL<T>, panels, columns, to + c, to_stride);
    for (; c < columns; ++c)
        one_column<T, ROWS>(values, stride, coef + c * PANEL<T>, panels, columns, to + c, to_stride);
}

// Kernel values of ROWS left rows with PANELS neighbouring panels, row by row. Inlined, the compiler would keep
// the kernel's constants in registers for the next tile, and the sums of this one in memory.
template <class T, int ROWS, int PANELS, class Kernel>
__attribute__((noinline)) void dense_values(const Left<T>& left, std::int64_t row, const PanelData<T>& panels,
                                            std::int64_t panel, const Kernel kernel, T* to, std::int64_t stride) {
    dense_tile<T, ROWS, PANELS>(left, row, panels, panel, kernel,
                                [=](std::int64_t r, std::int64_t p, int k, Values<T> v) {
                                    const std::int64_t at = (p - panel) * PANEL<T> + k * Register<T>::COUNT;
                                    Register<T>::store(to + (r - row) * stride + at, v);
                                });
}

template <class T, int PANELS, class Kernel>
__attribute__((noinline)) void sparse_values(const Left<T>& left, std::int64_t row, const PanelData<T>& panels,
                                             std::int64_t panel, const Kernel kernel, T* to) {
    sparse_tile<T, PANELS>(left, row, panels, panel, kernel, [=](std::int64_t, std::int64_t p, int k, Values<T> v) {
        Register<T>::store(to + (p - panel) * PANEL<T> + k * Register<T>::COUNT, v);
    });
}

// Kernel values of a few left rows with the panels begin … end − 1, row r to values + r · stride.
template <class T, class Kernel>
inline void chunk_values(const Left<T>& left, std::int64_t row, std::int64_t rows, const PanelData<T>& panels,
                         std::int64_t begin, std::int64_t end, const Kernel kernel, T* values, std::int64_t stride) {
    const auto some = [&]<int PANELS>(std::int64_t p) {
        T* to = values + (p - begin) * PANEL<T>;
        for (std::int64_t r = row; r < row + rows; ++r, to += stride) {
            if (left.sparse) sparse_values<T, PANELS>(left, r, panels, p, kernel, to);
            else dense_values<T, 1, PANELS>(left, r, panels, p, kernel, to, stride);
        }
    };
    std::int64_t p = begin;
    if (!left.sparse && rows == TILE_ROWS)
        for (; p < end; ++p)
            dense_values<T, TILE_ROWS, 1>(left, row, panels, p, kernel, values + (p - begin) * PANEL<T>, stride);
    for (; p + 4 <= end; p += 4) some.template operator()<4>(p);
    for (; p < end; ++p) some.template operator()<1>(p);
}

inline std::int64_t between(std::int64_t n, std::int64_t least, std::int64_t most) {
    return n < least ? least : n < most ? n : most;
}

// The sums of the left rows; not inlined, so that one copy serves all kinds of rows.
template <class T>
__attribute__((noinline)) void sum_left(const MachineData<T>& m, const Left<T>& left, Scratch<T>& values, double* to) {
    const std::int64_t width = m.groups * m.columns, size = m.panels.d * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t chunk = m.panels.sparse
                                   ? between(SPARSE_PANEL_BYTES / (size * PANEL<T>), SPARSE_PANELS, CHUNK_PANELS)
                                   : between(PANEL_BYTES / (size * PANEL<T>), 1, CHUNK_PANELS);
    const std::int64_t stride = chunk * PANEL<T>;
    for (std::int64_t i = 0; i < left.count * width; ++i) to[i] = 0;
    with_formula(m.panels, [&]<Formula F>() {
        const KernelOf<T, F> kernel(m.panels);
        for (std::int64_t g = 0; g < m.groups; ++g)
            for (std::int64_t p = m.starts[g]; p < m.starts[g + 1]; p += chunk) {
                const std::int64_t last = between(p + chunk, 0, m.starts[g + 1]);
                const T* coef = m.coef + p * m.columns * PANEL<T>;
                double* at = to + g * m.columns;
                for (std::int64_t r = 0; r < left.count; r += TILE_ROWS, at += TILE_ROWS * width) {
                    const std::int64_t some = between(TILE_ROWS, 0, left.count - r);
                    chunk_values(left, r, some, m.panels, p, last, kernel, values.data, stride);
                    if (some == TILE_ROWS)
                        all_columns<T, TILE_ROWS>(values.data, stride, coef, last - p, m.columns, at, width);
                    else
                        for (std::int64_t k = 0; k < some; ++k)
                            all_columns<T, 1>(values.data + k * stride, stride, coef, last - p, m.columns,
                                              at + k * width, width);
                }
            }
    });
}

template <class T, class Rows>
void machine_sums(const MachineData<T>& m, const Rows& rows, std::int64_t begin, std::int64_t end, double* to) {
    const std::int64_t size = m.panels.d * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t wanted = between(ROWS_BYTES / size, ROWS_TOGETHER, end - begin);
    const std::int64_t together = (wanted + ROWS_TOGETHER - 1) / ROWS_TOGETHER * ROWS_TOGETHER;
    Left<T> left(together, m.panels);
    Scratch<T> values(TILE_ROWS * CHUNK_PANELS * PANEL<T>);
    for (std::int64_t first = begin; first < end; first += together, to += together * m.groups * m.columns) {
        left.count = between(together, 0, end - first);
        for (std::int64_t r = 0; r < left.count; ++r) read_row(left, r, m, rows, first + r);
        if (m.panels.formula == Formula::rbf) halve_norms(left);
        sum_left(m, left, values, to);
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
