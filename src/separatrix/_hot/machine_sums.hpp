// Sums Σ_j k(x, z_j) c_j of rows x over the support vectors z_j of a machine, for prediction.
//
// The support vectors stand in panels that are packed once; rows come as the user holds them (machine_rows.hpp).
// Kernel values of four rows and some panels are written to memory that stays in the first-level cache and are
// multiplied by the coefficients from there, in registers again. Each lane of a register is a sum in T over one
// such chunk; lanes and chunks are added in double.
//
// An RBF kernel is 2^(x·z − |x|²/2) 2^(−|z|²/2). For all but very distant support vectors the second factor is part
// of the coefficients, and the sums of x·z begin with −|x|²/2; for all but very distant rows nothing underflows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fold.hpp"
#include "kernel_panels.hpp"
#include "machine_coarse.hpp"
#include "machine_rows.hpp"
#include "machine_state.hpp"
#include "pair_votes.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t ROWS_BYTES = 1 << 20;   // rows that are read at a time
// Panels that serve all these rows before the next do: from the second-level cache, but from the first where
// each number of a panel serves one row at a time.
constexpr std::int64_t PANEL_BYTES = 192 << 10, ALONE_BYTES = 24 << 10;
constexpr std::int64_t CHUNK_PANELS = 20, ALONE_PANELS = 4;

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

// 2^f = 1 + f q(f) for |f| ≤ 1/2: to 9e-8 for float, which is what rounding adds anyway.
template <class T>
struct Exp2Near : Exp2<T> {};
template <>
struct Exp2Near<float> : Exp2<float> {
    static constexpr int TERMS = 5;
    static constexpr float Q[] = {0.6931469775984721f, 0.24022242084918502f, 0.05550733744243461f,
                                  0.009671512660595825f, 0.0013264726899371825f};
};

// Any kernel, and the RBF kernel with sums that begin with −|x|²/2. That of rows that may be distant has the same
// bits where it does not underflow.
template <class T, Formula F>
struct Whole : KernelOf<T, F> {
    using KernelOf<T, F>::KernelOf;
    static T start(T) { return 0; }
};
template <class T, bool DISTANT>
struct Begun {
    static T start(T half) { return -half; }
    Values<T> operator()(Values<T> x, T, const T*) const {
        using R = Register<T>;
        using C = Exp2Near<T>;
        if constexpr (DISTANT) x = x < R::all(C::LOWEST) ? R::all(C::LOWEST) : x;
        const auto shifted = x + C::SHIFT;
        const auto f = x - (shifted - C::SHIFT);
        auto q = R::all(C::Q[C::TERMS - 1]);
        for (int k = C::TERMS - 2; k >= 0; --k) q = q * f + C::Q[k];
        x = q * f + T(1);
        typename R::Integers power, bits;
        __builtin_memcpy(&power, &shifted, sizeof(power));
        __builtin_memcpy(&bits, &x, sizeof(bits));
        bits += power << C::MANTISSA;  // the low bits of `shifted` hold the integer part
        __builtin_memcpy(&x, &bits, sizeof(x));
        return x;
    }
};

// Kernel values of four rows with a panel, row by row. Inlined, the compiler would keep the kernel's constants in
// registers for the next tile, and the sums of this one in memory.
template <class T, class Kernel>
__attribute__((noinline)) void joint_values(const Tile<T>& tile, const T* z, const T* half, const Kernel kernel, T* to,
                                            std::int64_t stride) {
    using R = Register<T>;
    Values<T> sum[TILE_ROWS][PANEL_REGISTERS];
    const T* x = tile.x[0];
    const std::int32_t *place = tile.place[0], *const end = place + tile.count[0];
#pragma GCC unroll 4
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][k] = R::all(Kernel::start(tile.half[r]));
    for (; place != end; ++place, x += TILE_ROWS) {
        Values<T> loaded[PANEL_REGISTERS];
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) loaded[k] = R::load(z + *place + k * R::COUNT);
#pragma GCC unroll 4
        for (int r = 0; r < TILE_ROWS; ++r) {
            const auto value = R::all(x[r]);
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][k] += value * loaded[k];
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k)
            R::store(to + r * stride + k * R::COUNT, kernel(sum[r][k], tile.half[r], half + k * R::COUNT));
}

// The same for one row with PANELS neighbouring panels of `size` numbers.
template <class T, int PANELS, class Kernel>
__attribute__((noinline)) void row_values(const Tile<T>& tile, std::int64_t row, const T* z, std::int64_t size,
                                          const T* half, const Kernel kernel, T* to) {
    using R = Register<T>;
    Values<T> sum[PANELS][PANEL_REGISTERS];
    const T* x = tile.x[row];
    const std::int32_t *place = tile.place[row], *const end = place + tile.count[row];
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) sum[p][k] = R::all(Kernel::start(tile.half[row]));
    for (; place != end; ++place, ++x) {
        const auto value = R::all(*x);
        const T* column = z + *place;
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) sum[p][k] += value * R::load(column + p * size + k * R::COUNT);
    }
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) {
            const std::int64_t at = p * PANEL<T> + k * R::COUNT;
            R::store(to + at, kernel(sum[p][k], tile.half[row], half + at));
        }
}

// Calls body with the kernel of some panels and of rows with |x|²/2 up to `half`.
template <class T, class Kernel, class Body>
inline void with_kernel(const T* near, std::int64_t panels, T half, const Kernel kernel, Body body) {
    T least = near[0];
    for (std::int64_t p = 1; p < panels; ++p) least = near[p] < least ? near[p] : least;
    if (least < 0) body(kernel);
    else if (half <= least) body(Begun<T, false>{});
    else body(Begun<T, true>{});
}

// Kernel values of a tile with the panels begin … end − 1, row r to values + r · stride.
template <class T, class Kernel>
inline void tile_chunk(const Tile<T>& tile, const MachineData<T>& m, std::int64_t begin, std::int64_t end,
                       const Kernel kernel, T* values, std::int64_t stride) {
    const std::int64_t size = m.panels.d * PANEL<T>;
    const T half = tile.most();
    if (tile.joint) {
        for (std::int64_t p = begin; p < end; ++p)
            with_kernel(m.near + p, 1, half, kernel, [&](const auto k) {
                joint_values(tile, m.panels.data + p * size, m.panels.half + p * PANEL<T>, k,
                             values + (p - begin) * PANEL<T>, stride);
            });
        return;
    }
    const auto some = [&]<int PANELS>(std::int64_t p) {
        with_kernel(m.near + p, PANELS, half, kernel, [&](const auto k) {
            for (std::int64_t r = 0; r < tile.rows; ++r)
                row_values<T, PANELS>(tile, r, m.panels.data + p * size, size, m.panels.half + p * PANEL<T>, k,
                                      values + r * stride + (p - begin) * PANEL<T>);
        });
    };
    const auto alike = [&](std::int64_t p) {
        for (int k = 1; k < 4; ++k)
            if ((m.near[p] < 0) != (m.near[p + k] < 0)) return false;
        return true;
    };
    for (std::int64_t p = begin; p < end;) {
        const bool four = p + 4 <= end && alike(p);
        if (four) some.template operator()<4>(p);
        else some.template operator()<1>(p);
        p += four ? 4 : 1;
    }
}

inline void tile_chunk(const CoarseTile& tile, const MachineData<float>& m, std::int64_t begin, std::int64_t end,
                       const Whole<float, Formula::rbf> kernel, float* values, std::int64_t stride) {
    const CoarsePanels& coarse = *m.coarse;
    const std::int64_t width = PANEL<float>, size = (m.panels.d + 1) / 2 * width;
    for (std::int64_t p = begin; p < end; ++p)
        with_kernel(m.near + p, 1, tile.most(), kernel, [&](const auto k) {
            coarse_values(tile, coarse.data + p * size, coarse.unit + p * width, m.panels.half + p * width, k,
                          values + (p - begin) * width, stride);
        });
}

inline std::int64_t between(std::int64_t n, std::int64_t least, std::int64_t most) {
    return n < least ? least : n < most ? n : most;
}

// The sums of the tiles' rows; not inlined, so that one copy serves all kinds of rows.
template <class Set, class T>
__attribute__((noinline)) void sum_tiles(const MachineData<T>& m, const Set& tiles, T* values, double* to) {
    const std::int64_t width = m.groups * m.columns, row = TILE_ROWS * width;
    const std::int64_t size = Set::panel_bytes(m.panels.d);
    const std::int64_t chunk = m.few ? between(ALONE_BYTES / size, ALONE_PANELS, CHUNK_PANELS)
                                     : between(PANEL_BYTES / size, 1, CHUNK_PANELS);
    const std::int64_t stride = chunk * PANEL<T>;
    for (std::int64_t t = 0; t < tiles.count; ++t)
        for (std::int64_t i = 0; i < tiles.tile.data[t].rows * width; ++i) to[t * row + i] = 0;
    const auto sum = [&]<Formula F>() {
        const Whole<T, F> kernel(m.panels);
        for (std::int64_t g = 0; g < m.groups; ++g)
            for (std::int64_t p = m.starts[g]; p < m.starts[g + 1]; p += chunk) {
                const std::int64_t last = between(p + chunk, 0, m.starts[g + 1]);
                const T* coef = m.coef + p * m.columns * PANEL<T>;
                double* at = to + g * m.columns;
                for (std::int64_t t = 0; t < tiles.count; ++t, at += row) {
                    const auto& tile = tiles.tile.data[t];
                    tile_chunk(tile, m, p, last, kernel, values, stride);
                    if (tile.rows == TILE_ROWS)
                        all_columns<T, TILE_ROWS>(values, stride, coef, last - p, m.columns, at, width);
                    else
                        for (std::int64_t k = 0; k < tile.rows; ++k)
                            all_columns<T, 1>(values + k * stride, stride, coef, last - p, m.columns, at + k * width,
                                              width);
                }
            }
    };
    if constexpr (Set::ONLY_RBF) sum.template operator()<Formula::rbf>();
    else with_formula(m.panels, sum);
}

// Takes rows from turns until none are left; the sums are written to `to`, or only decide pairs of classes.
template <class Set, class T, class Rows>
inline void take_turns(const MachineData<T>& m, const Rows& rows, const Turns& turns, double* to, const PairDecisions* pairs) {
    const std::int64_t width = m.groups * m.columns, size = m.panels.d * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t most = between(turns.step, TILE_ROWS, between(ROWS_BYTES / size, 4 * TILE_ROWS, turns.end));
    const std::int64_t step = (most + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    Set tiles(step / TILE_ROWS, m.panels);
    Scratch<T> values(TILE_ROWS * CHUNK_PANELS * PANEL<T>);
    Scratch<double> sums(pairs ? step * width : 0);
    for (;;) {
        const std::int64_t first = __atomic_fetch_add(turns.next, step, __ATOMIC_RELAXED);
        if (first >= turns.end) return;
        const std::int64_t end = between(first + step, 0, turns.end);
        double* at = pairs ? sums.data : to + first * width;
        tiles.count = 0;
        for (std::int64_t r = first; r < end; r += TILE_ROWS)
            read_tile(m, rows, r, between(TILE_ROWS, 0, end - r), tiles);
        sum_tiles(m, tiles, values.data, at);
        if (pairs) pair_winners(at, first, end, m.groups, *pairs, tiles.shares());
    }
}

template <class T, class Rows>
void machine_sums(const MachineData<T>& m, const Rows& rows, const Turns& turns, double* to, const PairDecisions* pairs) {
    if constexpr (sizeof(T) == sizeof(float))
        if (m.coarse) return take_turns<CoarseTiles>(m, rows, turns, to, pairs);
    take_turns<Tiles<T>>(m, rows, turns, to, pairs);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
