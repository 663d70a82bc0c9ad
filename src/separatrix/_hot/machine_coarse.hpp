// Rows and support vectors rounded to 16-bit integers: kernel values at about twice the speed of single precision, and a
// bound of what rounding changes, for decisions that fall alike within it.
//
// Every vector has a unit of its own: its integers have at most 16 bits and their squares a sum below 2³¹, hence, by
// Cauchy and Schwarz, also their sums of products with those of others. Whole multiples of a quantum (grey values,
// counts) lose nothing. With errors δx, δz of the rounded vectors the exponent of an RBF kernel changes by
//     |x·z − (x − δx)·(z − δz)| ≤ |δx| |z| + |x| |δz| + |δx| |δz|,
// and its values, which have the same sign for each side of a pair of classes, by a share of their sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "coarse.hpp"
#include "kernel_panels.hpp"
#include "machine_rows.hpp"
#include "machine_state.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr double MOST_ROOT = 46340;    // its square is below 2³¹
constexpr double FLOAT_ERROR = 2e-7;   // of lengths and differences that are computed in single precision
constexpr double EXACT = 1e-6;         // rounding errors of whole multiples, as a share of a vector's length

// A vector as integers times a unit, and how long it is; `error` bounds the length of what was rounded off.
struct Rounded {
    float unit;
    double length, error;
};

inline double total(Register<float>::Values lanes) {
    double sum = 0;
    for (int l = 0; l < Register<float>::COUNT; ++l) sum += static_cast<double>(lanes[l]);
    return sum;
}

// Rounds x, whole registers of it, to 16 bits at `to`; returns the length of the errors.
inline double round_to(const float* x, std::int64_t registers, float unit, std::int16_t* to) {
    using R = Register<float>;
    typedef std::int16_t Halves __attribute__((vector_size(REGISTER_BYTES / 2)));
    const auto inverse = R::all(1 / unit), nearest = R::all(ExpConstants<float>::SHIFT);
    R::Values squares{};
    for (std::int64_t i = 0; i < registers; ++i) {
        const auto loaded = R::load(x + i * R::COUNT), shifted = loaded * inverse + nearest;
        const auto lost = loaded - (shifted - nearest) * unit;
        squares += lost * lost;
        Pairs bits;
        __builtin_memcpy(&bits, &shifted, sizeof(bits));
        const auto halves = __builtin_convertvector(bits, Halves);  // the low bits hold the integer
        __builtin_memcpy(to + i * R::COUNT, &halves, sizeof(halves));
    }
    return std::sqrt(total(squares));
}

inline Rounded round_vector(const float* x, std::int64_t d, std::int64_t registers, double quantum, std::int16_t* to) {
    using R = Register<float>;
    R::Values squares{}, largest{};
    for (std::int64_t i = 0; i < registers; ++i) {
        const auto loaded = R::load(x + i * R::COUNT), size = loaded < 0 ? -loaded : loaded;
        squares += loaded * loaded;
        largest = size > largest ? size : largest;
    }
    double most = 0;
    for (int l = 0; l < R::COUNT; ++l) most = std::fmax(most, static_cast<double>(largest[l]));
    const double length = std::sqrt(total(squares)), room = MOST_ROOT - std::sqrt(static_cast<double>(d)) - 1;
    const double least = std::fmax(most / LARGEST_INTEGER, length * (1 + FLOAT_ERROR) / room), slack = FLOAT_ERROR * length;
    if (quantum >= least) {
        const double error = round_to(x, registers, static_cast<float>(quantum), to);
        if (error <= EXACT * length) return {static_cast<float>(quantum), length, error + slack};
    }
    // (Of what is smaller, single precision does not know the reciprocal. What is not finite has no finite error.)
    const float unit = least > 1e-37 ? static_cast<float>(least * (1 + FLOAT_ERROR)) : 1.0f;
    return {unit, length, round_to(x, registers, unit, to) + slack};
}

inline std::int64_t registers_of(std::int64_t d) { return (d + Register<float>::COUNT - 1) / Register<float>::COUNT; }

// Integers of all packed vectors, two neighbouring features side by side.
void round_panels(const PanelData<float>& panels, CoarsePanels& to) {
    constexpr int COUNT = Register<float>::COUNT;
    const std::int64_t d = panels.d, registers = registers_of(d), pairs = (d + 1) / 2;
    Scratch<float> x(registers * COUNT);
    Scratch<std::int32_t> rounded(registers * COUNT / 2);
    for (std::int64_t i = 0; i < panels.n; ++i) {
        const std::int64_t panel = i / PANEL<float>, lane = i % PANEL<float>;
        for (std::int64_t j = 0; j < d; ++j) x.data[j] = panels.data[(panel * d + j) * PANEL<float> + lane];
        const Rounded r = round_vector(x.data, d, registers, to.quantum, reinterpret_cast<std::int16_t*>(rounded.data));
        for (std::int64_t j = 0; j < pairs; ++j) to.data[(panel * pairs + j) * PANEL<float> + lane] = rounded.data[j];
        to.unit[i] = r.unit;
        to.longest = std::fmax(to.longest, r.length * (1 + FLOAT_ERROR));
        to.error = r.error <= to.error ? to.error : r.error;  // NaN stays
    }
}

// Four neighbouring rows: for each pair of features that counts its place in a panel and the rows' integers.
struct CoarseTile {
    std::int64_t rows, count;
    const std::int32_t *x, *place;  // [count][TILE_ROWS]
    float half[TILE_ROWS], unit[TILE_ROWS];
    float most() const {
        float most = half[0];
        for (std::int64_t r = 1; r < rows; ++r) most = half[r] > most ? half[r] : most;
        return most;
    }
};

struct CoarseTiles {
    static constexpr bool ONLY_RBF = true;
    static constexpr int COUNT = Register<float>::COUNT;
    const std::int64_t pairs, registers;
    std::int64_t count = 0;
    Scratch<float> wide, row;
    Scratch<std::int32_t> x, place, rounded;
    Scratch<CoarseTile> tile;
    Scratch<double> share;  // by which sums of a row's kernel values may be wrong

    CoarseTiles(std::int64_t most, const PanelData<float>& panels)
        : pairs((panels.d + 1) / 2),
          registers(registers_of(panels.d)),
          wide(TILE_ROWS * panels.d),
          row(registers * COUNT),
          x(most * TILE_ROWS * pairs),
          place(most * pairs),
          rounded(TILE_ROWS * registers * COUNT / 2),
          tile(most),
          share(most * TILE_ROWS) {}

    static std::int64_t panel_bytes(std::int64_t d) { return (d + 1) / 2 * PANEL<float> * 4; }
    const double* shares() const { return share.data; }
};

template <class Rows>
inline void read_tile(const MachineData<float>& m, const Rows& rows, std::int64_t first, std::int64_t count, CoarseTiles& to) {
    const std::int64_t d = m.panels.d, length = to.registers * CoarseTiles::COUNT / 2, at = to.count++;
    CoarseTile& tile = to.tile.data[at];
    std::int32_t *x = to.x.data + at * TILE_ROWS * to.pairs, *place = to.place.data + at * to.pairs;
    std::int32_t* const rounded = to.rounded.data;
    tile.rows = count;
    tile.x = x;
    tile.place = place;
    for (std::int64_t r = 0; r < TILE_ROWS; ++r) {
        tile.half[r] = tile.unit[r] = 0;
        for (std::int64_t j = 0; r >= count && j < length; ++j) rounded[r * length + j] = 0;
        if (r >= count) continue;
        read_row(m, rows, first + r, to.wide.data + r);
        for (std::int64_t j = 0; j < d; ++j) to.row.data[j] = to.wide.data[j * TILE_ROWS + r];
        const Rounded row = round_vector(to.row.data, d, to.registers, m.coarse->quantum,
                                         reinterpret_cast<std::int16_t*>(rounded + r * length));
        const double longest = m.coarse->longest, error = m.coarse->error;
        const double change = row.error * (longest + error) + row.length * (1 + FLOAT_ERROR) * error;
        tile.unit[r] = row.unit;
        tile.half[r] = static_cast<float>(row.length * row.length / 2);
        to.share.data[at * TILE_ROWS + r] = std::exp2(change) - 1;
    }
    std::int64_t kept = 0;
    for (std::int64_t j = 0; j < to.pairs; ++j) {
        std::int32_t some = 0;
        for (int r = 0; r < TILE_ROWS; ++r) some |= x[kept * TILE_ROWS + r] = rounded[r * length + j];
        place[kept] = static_cast<std::int32_t>(j * PANEL<float>);
        kept += some != 0;
    }
    tile.count = kept;
}

// Kernel values of four rows with a panel, row by row.
template <class Kernel>
__attribute__((noinline)) void coarse_values(const CoarseTile& tile, const std::int32_t* z, const float* unit,
                                             const float* half, const Kernel kernel, float* to, std::int64_t stride) {
    using R = Register<float>;
    constexpr bool TIGHT = REGISTER_BYTES == 32;  // the third register of a panel finds none
    Pairs sum[TILE_ROWS][PANEL_REGISTERS];
    const std::int32_t *x = tile.x, *place = tile.place, *const end = place + tile.count;
#pragma GCC unroll 4
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][k] = Pairs{};
    for (; place != end; ++place, x += TILE_ROWS) {
        const Pairs* const at = reinterpret_cast<const Pairs*>(z + *place);
        Pairs loaded[PANEL_REGISTERS];
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) loaded[k] = at[k];
#pragma GCC unroll 4
        for (int r = 0; r < TILE_ROWS; ++r) {
            const Pairs factor = x[r] - Pairs{};
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) {
                Pairs here = sum[r][k], product;
                if (TIGHT && k == 2) SEPARATRIX_ADD_PAIRS(here, product, factor, at[k], "m");
                else SEPARATRIX_ADD_PAIRS(here, product, factor, loaded[k], "x");
                sum[r][k] = here;
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < TILE_ROWS; ++r)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) {
            const auto dot = __builtin_convertvector(sum[r][k], R::Values) * (R::load(unit + k * R::COUNT) * tile.unit[r]);
            R::store(to + r * stride + k * R::COUNT,
                     kernel(dot + Kernel::start(tile.half[r]), tile.half[r], half + k * R::COUNT));
        }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
