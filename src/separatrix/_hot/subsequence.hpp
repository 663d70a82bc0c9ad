// The gap-weighted subsequence kernel (Lodhi et al. 2002) by dynamic programming, one pair of strings per lane.
//
// With D_0 = 1 and, for the levels l = 1 … p - 1,
//     D_l(i, j) = Σ_{i' ≤ i, j' ≤ j} λ^(i - i' + j - j') [s_i' = t_j'] D_{l-1}(i' - 1, j' - 1),
// the sum over all cells of [s_i = t_j] D_{p-1}(i - 1, j - 1) is the kernel divided by λ^2p. Leaving that factor
// out saves a product per cell and keeps long subsequences with a small λ away from underflow. A row's part
// R_l = λ R_l + [s_i = t_j] D_{l-1} and D_l = λ D_l + R_l need no subtraction, so no digit is lost.
//
// The columns are taken in strips whose D stay in the first-level cache; R and D at a strip's last column are kept
// for the next. All levels of a cell are done at once: their chains of sums are independent of each other.
#pragma once

#include "rows.hpp"
#include "strings.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t PAIRS = REGISTER_BYTES / sizeof(double);
constexpr std::int64_t STRIP_BYTES = 16384;
typedef double Numbers __attribute__((vector_size(REGISTER_BYTES)));
typedef std::int64_t Characters __attribute__((vector_size(REGISTER_BYTES)));

inline Numbers where(Characters mask, Numbers values) {
    return reinterpret_cast<Numbers>(reinterpret_cast<Characters>(values) & mask);
}

inline std::int64_t strip_columns(std::int64_t levels) {
    const std::int64_t fit = STRIP_BYTES / (REGISTER_BYTES * (levels + 1));
    return fit < 8 ? 8 : fit;
}

// LEVELS = p - 1, in registers; -1 for any number of levels, in memory.
template <int LEVELS>
Numbers subsequence_sums(const Characters* s, std::int64_t rows, const Characters* t, std::int64_t columns,
                         std::int64_t some_levels, double decay, Numbers* D, Numbers* edge, Numbers* chains) {
    const std::int64_t levels = LEVELS < 0 ? some_levels : LEVELS;
    const Numbers lambda = decay - Numbers{};
    Numbers fixed[2 * (LEVELS < 0 ? 1 : LEVELS + 1)];
    Numbers* const R = LEVELS < 0 ? chains : fixed;        // R[l - 1]: the row's part of level l
    Numbers* const before = R + levels;                    // before[l]: D_l(i - 1, j - 1)
    const std::int64_t width = strip_columns(levels);
    Numbers total = {};
    before[0] = 1.0 - Numbers{};
    for (std::int64_t k = 0; k < 2 * levels * rows; ++k) edge[k] = Numbers{};
    for (std::int64_t begin = 0; begin < columns; begin += width) {
        const std::int64_t count = columns - begin < width ? columns - begin : width;
        const Characters* const strip = t + begin;
        for (std::int64_t k = 0; k < levels * count; ++k) D[k] = Numbers{};
        for (std::int64_t l = 1; l <= levels; ++l) before[l] = Numbers{};
        for (std::int64_t i = 0; i < rows; ++i) {
            Numbers* const row_edge = edge + 2 * levels * i;
            for (std::int64_t l = 0; l < levels; ++l) R[l] = row_edge[l];
            const Characters c = s[i];
            Numbers sum = {};
            for (std::int64_t j = 0; j < count; ++j) {
                const Characters same = strip[j] == c;
                Numbers* const cell = D + levels * j;
                sum += where(same, before[levels]);
                for (std::int64_t l = levels; l >= 1; --l) {
                    const Numbers above = cell[l - 1];
                    R[l - 1] = lambda * R[l - 1] + where(same, before[l - 1]);
                    cell[l - 1] = lambda * above + R[l - 1];
                    before[l] = above;
                }
            }
            total += sum;
            for (std::int64_t l = 0; l < levels; ++l) {
                row_edge[l] = R[l];
                before[l + 1] = row_edge[levels + l];  // D(i, begin - 1), for the row below
                row_edge[levels + l] = D[levels * (count - 1) + l];
            }
        }
    }
    return total;
}

using SubsequenceSums = Numbers (*)(const Characters*, std::int64_t, const Characters*, std::int64_t, std::int64_t,
                                    double, Numbers*, Numbers*, Numbers*);
constexpr SubsequenceSums SUBSEQUENCE_SUMS[] = {
    subsequence_sums<0>, subsequence_sums<1>, subsequence_sums<2>, subsequence_sums<3>,
    subsequence_sums<4>, subsequence_sums<5>, subsequence_sums<6>,
};

std::int64_t subsequence_scratch(std::int64_t rows, std::int64_t columns, std::int64_t order) {
    const std::int64_t levels = order - 1;
    return REGISTER_BYTES *
           (rows + columns + levels * strip_columns(levels) + 2 * levels * rows + 2 * (levels + 1));
}

void run_subsequence(const Strings& strings, const StringPairs& pairs, std::int64_t order, double decay,
                     void* scratch, double* out) {
    const std::int64_t levels = order - 1;
    const SubsequenceSums sums = levels <= 6 ? SUBSEQUENCE_SUMS[levels] : subsequence_sums<-1>;
    for (std::int64_t begin = 0; begin < pairs.count; begin += PAIRS) {
        const std::int64_t count = pairs.count - begin < PAIRS ? pairs.count - begin : PAIRS;
        std::int64_t rows = 0, columns = 0;
        for (std::int64_t k = begin; k < begin + count; ++k) {
            const std::int64_t n = strings.length(pairs.first[k]), m = strings.length(pairs.second[k]);
            rows = n > rows ? n : rows;
            columns = m > columns ? m : columns;
        }
        auto* const s = static_cast<Characters*>(scratch);
        Characters* const t = s + rows;
        // Beyond the end of its string a lane holds what equals no character, and adds nothing.
        for (std::int64_t k = 0; k < PAIRS; ++k) {
            const bool used = k < count;
            const std::int64_t i = used ? pairs.first[begin + k] : 0, j = used ? pairs.second[begin + k] : 0;
            const std::int64_t n = used ? strings.length(i) : 0, m = used ? strings.length(j) : 0;
            for (std::int64_t a = 0; a < rows; ++a) s[a][k] = a < n ? strings.text(i)[a] : -1;
            for (std::int64_t b = 0; b < columns; ++b) t[b][k] = b < m ? strings.text(j)[b] : -2;
        }
        auto* const D = reinterpret_cast<Numbers*>(t + columns);
        Numbers* const edge = D + levels * strip_columns(levels);
        const Numbers found = sums(s, rows, t, columns, levels, decay, D, edge, edge + 2 * levels * rows);
        for (std::int64_t k = 0; k < count; ++k) out[begin + k] = found[k];
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
