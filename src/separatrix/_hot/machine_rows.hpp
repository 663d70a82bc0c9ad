// Rows to predict as the loops of machine_sums.hpp read them: four at a time, with the features that count.
//
// A feature in which all four rows are zero is left out. Where the zeros of the rows differ too much for that,
// each row keeps a list of its own.
#pragma once

#include <cstdint>

#include "kernel_panels.hpp"
#include "machine_state.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Reading a panel for one row costs about so many times what it costs as one of four rows.
constexpr std::int64_t ALONE = 2;
// CSR rows with fewer than one value in so many features are not brought together.
constexpr std::int64_t FEW = 8;

// Neighbouring rows: for each feature that counts its place in a panel and the rows' values.
template <class T>
struct Tile {
    bool joint;                            // one list of all four rows, [count][TILE_ROWS]; else one of each
    std::int64_t rows, count[TILE_ROWS];
    const T* x[TILE_ROWS];
    const std::int32_t* place[TILE_ROWS];
    T half[TILE_ROWS];                     // |x|²/2
    T most() const {
        T most = half[0];
        for (std::int64_t r = 1; r < rows; ++r) most = half[r] > most ? half[r] : most;
        return most;
    }
};

// Tiles and their memory; `wide` holds the rows of one as they come, [feature][TILE_ROWS].
template <class T>
struct Tiles {
    static constexpr bool ONLY_RBF = false;
    std::int64_t count = 0;
    Scratch<T> x, wide;
    Scratch<std::int32_t> place, all;
    Scratch<Tile<T>> tile;

    Tiles(std::int64_t most, const PanelData<T>& panels)
        : x(most * TILE_ROWS * panels.d),
          wide(TILE_ROWS * panels.d),
          place(panels.sparse ? most * TILE_ROWS * panels.d : 0),
          all(panels.d),
          tile(most) {
        for (std::int64_t j = 0; j < panels.d; ++j) all.data[j] = static_cast<std::int32_t>(j * PANEL<T>);
    }

    static std::int64_t panel_bytes(std::int64_t d) { return d * PANEL<T> * static_cast<std::int64_t>(sizeof(T)); }
    const double* shares() const { return nullptr; }  // all that is wrong with the sums is rounding
};

template <class T, class Data>
inline T packed(Data x, std::int64_t j, const MachineData<T>& m) {
    return static_cast<T>((static_cast<double>(x) - (m.shift ? m.shift[j] : 0.0)) * m.scale);
}

template <class T, class Data>
inline void read_row(const MachineData<T>& m, const StridedArray<Data>& rows, std::int64_t row, T* to) {
    const Data* from = rows.data + row * rows.row_stride;
    for (std::int64_t j = 0; j < m.panels.d; ++j) to[j * TILE_ROWS] = packed(from[j * rows.column_stride], j, m);
}

// Each feature is stored once in a row, in rising order.
template <class T, class Data, class Index>
inline void read_row(const MachineData<T>& m, const CsrArray<Data, Index>& rows, std::int64_t row, T* to) {
    for (std::int64_t j = 0; j < m.panels.d; ++j) to[j * TILE_ROWS] = packed(Data(0), j, m);
    for (std::int64_t p = rows.indptr[row]; p < rows.indptr[row + 1]; ++p)
        to[rows.indices[p] * TILE_ROWS] = packed(rows.data[p], rows.indices[p], m);
}

// Keeps the features in which one of LANES neighbouring rows is not zero; returns how many there are.
template <int LANES, class T>
inline std::int64_t keep_nonzeros(const T* wide, const std::int32_t* all, std::int64_t d, T* x, std::int32_t* place) {
    std::int64_t at = 0;
    for (std::int64_t j = 0; j < d; ++j) {
        bool some = false;
        for (int r = 0; r < LANES; ++r) {
            const T value = wide[j * TILE_ROWS + r];
            x[at * LANES + r] = value;
            some |= value != 0;
        }
        place[at] = all[j];
        at += some;
    }
    return at;
}

// |x|²/2, summed feature by feature and in registers as that of the panels: equal samples have distance 0.
template <class T>
inline void halve_norms(Tile<T>& tile, const T* wide, std::int64_t d) {
    typedef T Rows __attribute__((vector_size(TILE_ROWS * sizeof(T))));
    Rows sum{};
    for (std::int64_t j = 0; j < d; ++j) {
        Rows x;
        __builtin_memcpy(&x, wide + j * TILE_ROWS, sizeof(x));
        sum += x * x;
    }
    for (int r = 0; r < TILE_ROWS; ++r) tile.half[r] = sum[r] * T(0.5);
}

// Very sparse rows: lists of what they store. Returns false where others are better off by way of `wide`.
template <class T, class Data>
inline bool read_lists(const MachineData<T>&, const StridedArray<Data>&, std::int64_t, Tile<T>&, T*, std::int32_t*) {
    return false;
}
template <class T, class Data, class Index>
inline bool read_lists(const MachineData<T>& m, const CsrArray<Data, Index>& rows, std::int64_t row, Tile<T>& tile,
                       T* x, std::int32_t* place) {
    const std::int64_t d = m.panels.d, stored = rows.indptr[row + tile.rows] - rows.indptr[row];
    if (m.shift || !m.panels.sparse || stored * FEW >= tile.rows * d) return false;
    for (std::int64_t r = 0; r < tile.rows; ++r, x += d, place += d) {
        const std::int64_t first = rows.indptr[row + r], count = rows.indptr[row + r + 1] - first;
        T sum = 0;
        for (std::int64_t p = 0; p < count; ++p) {
            x[p] = packed(rows.data[first + p], rows.indices[first + p], m);
            place[p] = static_cast<std::int32_t>(rows.indices[first + p] * PANEL<T>);
            sum += x[p] * x[p];
        }
        tile.x[r] = x;
        tile.place[r] = place;
        tile.count[r] = count;
        tile.half[r] = sum * T(0.5);
    }
    return true;
}

template <class T, class Rows>
inline void read_tile(const MachineData<T>& m, const Rows& rows, std::int64_t row, std::int64_t count, Tiles<T>& to) {
    const std::int64_t d = m.panels.d, size = TILE_ROWS * d;
    Tile<T>& tile = to.tile.data[to.count];
    T *x = to.x.data + to.count * size, *wide = to.wide.data;
    std::int32_t* place = to.place.data + to.count * size;  // none where zeros are not looked for
    ++to.count;
    tile.rows = count;
    tile.joint = false;
    if (read_lists(m, rows, row, tile, x, place)) return;
    const bool whole = count == TILE_ROWS;
    if (whole && !m.panels.sparse) wide = x;
    for (std::int64_t r = 0; r < count; ++r) read_row(m, rows, row + r, wide + r);
    halve_norms(tile, wide, d);
    if (whole) {
        tile.joint = true;
        tile.x[0] = x;
        tile.place[0] = to.all.data;
        tile.count[0] = d;
        if (!m.panels.sparse) return;
        tile.place[0] = place;
        tile.count[0] = keep_nonzeros<TILE_ROWS>(wide, to.all.data, d, x, place);
        std::int64_t stored = 0;
        for (std::int64_t i = 0; i < size; ++i) stored += wide[i] != 0;
        if (tile.count[0] * TILE_ROWS <= ALONE * stored) return;
        tile.joint = false;
    }
    for (std::int64_t r = 0; r < count; ++r, x += d, place += d) {
        tile.x[r] = x;
        if (m.panels.sparse) {
            tile.place[r] = place;
            tile.count[r] = keep_nonzeros<1>(wide + r, to.all.data, d, x, place);
            continue;
        }
        tile.place[r] = to.all.data;
        tile.count[r] = d;
        for (std::int64_t j = 0; j < d; ++j) x[j] = wide[j * TILE_ROWS + r];
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
