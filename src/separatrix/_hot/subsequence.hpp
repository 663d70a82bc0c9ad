// The gap-weighted subsequence kernel (Lodhi et al. 2002) by dynamic programming, one pair of strings per lane.
//
// With D_0 = 1 and, for the levels l = 1 … p - 1,
//     D_l(i, j) = Σ_{i' ≤ i, j' ≤ j} λ^(i - i' + j - j') [s_i' = t_j'] D_{l-1}(i' - 1, j' - 1),
// the sum over all cells of [s_i = t_j] D_{p-1}(i - 1, j - 1) is the kernel divided by λ^2p. Leaving that factor
// out saves a product per cell and keeps long subsequences with a small λ away from underflow. A row's part
// R_l = λ R_l + [s_i = t_j] D_{l-1} and D_l = λ D_l + R_l need no subtraction, so no digit is lost.
//
// The columns are taken in strips whose D stay in the first-level cache; R and D at a strip's last column are kept
// for the next. All levels of a cell are done at once, as their chains of sums do not wait for each other; with few
// levels two registers of pairs go together, for the same reason.
#pragma once

#include "rows.hpp"
#include "strings.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t LANES_PER_REGISTER = REGISTER_BYTES / sizeof(double);
constexpr std::int64_t STRIP_BYTES = 16384;
constexpr std::int64_t MOST_GROUPS = 2, MOST_FIXED_LEVELS = 9;
typedef double Numbers __attribute__((vector_size(REGISTER_BYTES)));
typedef std::int64_t Characters __attribute__((vector_size(REGISTER_BYTES)));

inline Numbers where(Characters mask, Numbers values) {
    return reinterpret_cast<Numbers>(reinterpret_cast<Characters>(values) & mask);
}

inline std::int64_t strip_columns(std::int64_t registers_per_column) {
    const std::int64_t fit = STRIP_BYTES / (REGISTER_BYTES * (registers_per_column + 1));
    return fit < 8 ? 8 : fit;
}

// Registers of pairs that go together.
constexpr int groups_of(int levels) { return levels >= 0 && levels <= 2 ? MOST_GROUPS : 1; }

// LEVELS = p - 1, unrolled; -1 for any number, in `chains`. `s` and `t` hold GROUPS registers per character.
template <int LEVELS>
void subsequence_sums(const Characters* s, std::int64_t rows, const Characters* t, std::int64_t columns,
                      std::int64_t some_levels, double decay, Numbers* D, Numbers* edge, Numbers* chains,
                      Numbers* totals) {
    constexpr int GROUPS = groups_of(LEVELS);
    const std::int64_t size = GROUPS * (LEVELS < 0 ? some_levels : LEVELS);  // numbers per cell
    const Numbers lambda = decay - Numbers{};
    Numbers fixed[LEVELS < 0 ? 1 : GROUPS * (2 * LEVELS + 1)];
    Numbers* const R = LEVELS < 0 ? chains : fixed;  // the row's part of levels 1 …
    Numbers* const before = R + size;                // D(i - 1, j - 1) of levels 0 …
    const std::int64_t width = strip_columns(size);
    for (int g = 0; g < GROUPS; ++g) {
        totals[g] = Numbers{};
        before[g] = 1.0 - Numbers{};
    }
    for (std::int64_t k = 0; k < 2 * size * rows; ++k) edge[k] = Numbers{};
    for (std::int64_t begin = 0; begin < columns; begin += width) {
        const std::int64_t count = columns - begin < width ? columns - begin : width;
        const Characters* const strip = t + GROUPS * begin;
        for (std::int64_t k = 0; k < size * count; ++k) D[k] = Numbers{};
        for (std::int64_t k = 0; k < size; ++k) before[GROUPS + k] = Numbers{};
        for (std::int64_t i = 0; i < rows; ++i) {
            Numbers* const row_edge = edge + 2 * size * i;
            for (std::int64_t k = 0; k < size; ++k) R[k] = row_edge[k];
            Characters c[GROUPS], same[GROUPS];
            Numbers sums[GROUPS] = {};
            for (int g = 0; g < GROUPS; ++g) c[g] = s[GROUPS * i + g];
            for (std::int64_t j = 0; j < count; ++j) {
                Numbers* const cell = D + size * j;
                for (int g = 0; g < GROUPS; ++g) {
                    same[g] = strip[GROUPS * j + g] == c[g];
                    sums[g] += where(same[g], before[size + g]);
                }
                // From the last level to the first: each uses what the one below it is about to change.
#pragma GCC unroll 9
                for (std::int64_t k = size - 1; k >= 0; --k) {
                    const Numbers above = cell[k];
                    R[k] = lambda * R[k] + where(same[k % GROUPS], before[k]);
                    cell[k] = lambda * above + R[k];
                    before[GROUPS + k] = above;
                }
            }
            for (int g = 0; g < GROUPS; ++g) totals[g] += sums[g];
            for (std::int64_t k = 0; k < size; ++k) {
                row_edge[k] = R[k];
                before[GROUPS + k] = row_edge[size + k];  // D(i, begin - 1), for the row below
                row_edge[size + k] = D[size * (count - 1) + k];
            }
        }
    }
}

template <int LEVELS>
void run_levels(const Strings& strings, const StringPairs& pairs, std::int64_t levels, double decay, void* scratch,
                double* out) {
    constexpr std::int64_t GROUPS = groups_of(LEVELS), TOGETHER = GROUPS * LANES_PER_REGISTER;
    for (std::int64_t begin = 0; begin < pairs.count; begin += TOGETHER) {
        const std::int64_t count = pairs.count - begin < TOGETHER ? pairs.count - begin : TOGETHER;
        std::int64_t rows = 0, columns = 0;
        for (std::int64_t k = begin; k < begin + count; ++k) {
            const std::int64_t n = strings.length(pairs.first[k]), m = strings.length(pairs.second[k]);
            rows = n > rows ? n : rows;
            columns = m > columns ? m : columns;
        }
        auto* const s = static_cast<Characters*>(scratch);
        Characters* const t = s + GROUPS * rows;
        // Beyond the end of its string a lane holds what equals no character, and adds nothing.
        for (std::int64_t k = 0; k < TOGETHER; ++k) {
            const std::int64_t group = k / LANES_PER_REGISTER, lane = k % LANES_PER_REGISTER;
            const std::int64_t i = pairs.first[k < count ? begin + k : begin];
            const std::int64_t j = pairs.second[k < count ? begin + k : begin];
            const std::int64_t n = k < count ? strings.length(i) : 0, m = k < count ? strings.length(j) : 0;
            for (std::int64_t a = 0; a < rows; ++a) s[GROUPS * a + group][lane] = a < n ? strings.text(i)[a] : -1;
            for (std::int64_t b = 0; b < columns; ++b) t[GROUPS * b + group][lane] = b < m ? strings.text(j)[b] : -2;
        }
        auto* const D = reinterpret_cast<Numbers*>(t + GROUPS * columns);
        Numbers* const edge = D + GROUPS * levels * strip_columns(GROUPS * levels);
        Numbers totals[GROUPS];
        subsequence_sums<LEVELS>(s, rows, t, columns, levels, decay, D, edge, edge + 2 * GROUPS * levels * rows,
                                 totals);
        for (std::int64_t k = 0; k < count; ++k)
            out[begin + k] = totals[k / LANES_PER_REGISTER][k % LANES_PER_REGISTER];
    }
}

constexpr decltype(&run_levels<-1>) RUN_LEVELS[] = {
    run_levels<0>, run_levels<1>, run_levels<2>, run_levels<3>, run_levels<4>,
    run_levels<5>, run_levels<6>, run_levels<7>, run_levels<8>, run_levels<MOST_FIXED_LEVELS>,
};

std::int64_t subsequence_scratch(std::int64_t rows, std::int64_t columns, std::int64_t order) {
    const std::int64_t groups = order - 1 <= MOST_FIXED_LEVELS ? MOST_GROUPS : 1, size = groups * order;
    return REGISTER_BYTES *
           (groups * (rows + columns) + STRIP_BYTES / REGISTER_BYTES + 8 * size + size * (2 * rows + 3));
}

void run_subsequence(const Strings& strings, const StringPairs& pairs, std::int64_t order, double decay,
                     void* scratch, double* out) {
    const std::int64_t levels = order - 1;
    const auto run = levels <= MOST_FIXED_LEVELS ? RUN_LEVELS[levels] : run_levels<-1>;
    run(strings, pairs, levels, decay, scratch, out);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
