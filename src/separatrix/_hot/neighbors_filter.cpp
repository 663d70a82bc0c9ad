// The filter of the nearest neighbours: which rows may be nearer than a threshold, by inner products of
// reduced vectors in single precision. Compiled with fused multiply-adds: whatever it lets through is
// measured exactly, and its rounding errors are part of the bound.
#include "neighbors_kernels.hpp"
#include "rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr int WIDTH = REGISTER_BYTES / static_cast<int>(sizeof(float));
constexpr int PARTS = PANEL / WIDTH;
typedef float Values __attribute__((vector_size(REGISTER_BYTES)));
typedef std::int64_t Words __attribute__((vector_size(REGISTER_BYTES)));

Values load(const float* from) {
    Values loaded;
    __builtin_memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

// PANEL scores of one query: those that are not below the threshold (NaN is not) are noted.
inline void note(const Values* score, float threshold, int query, std::int64_t first, std::int64_t rows,
                 Passed& passed) {
    Values level;
    for (int l = 0; l < WIDTH; ++l) level[l] = threshold;
    Words below = reinterpret_cast<Words>(score[0] < level);
    for (int p = 1; p < PARTS; ++p) below &= reinterpret_cast<Words>(score[p] < level);
    std::int64_t all = below[0];
    for (int w = 1; w < REGISTER_BYTES / 8; ++w) all &= below[w];
    if (all == -1) return;
    float scores[PANEL];
    __builtin_memcpy(scores, score, sizeof scores);
    std::int32_t& count = passed.count[query];
    const std::int64_t most = rows - first < PANEL ? rows - first : PANEL;
    for (std::int64_t l = 0; l < most; ++l) {
        passed.score[query][count] = scores[l];
        passed.row[query][count] = static_cast<std::int32_t>(first + l);
        count += !(scores[l] < threshold);
    }
}

}  // namespace

void filter_panels(const float* panels, const float* halves, std::int64_t rows, const float* const* queries,
                   std::int64_t width, const float* thresholds, Passed& passed) {
    for (int i = 0; i < DENSE_TILE; ++i) passed.count[i] = 0;
    for (std::int64_t first = 0; first < rows; first += PANEL) {
        const float* panel = panels + first * width;
        Values score[DENSE_TILE][PARTS];
        for (int p = 0; p < PARTS; ++p)
            for (int i = 0; i < DENSE_TILE; ++i) score[i][p] = -load(halves + first + p * WIDTH);
        for (std::int64_t j = 0; j < width; ++j) {
            Values x[PARTS];
            for (int p = 0; p < PARTS; ++p) x[p] = load(panel + j * PANEL + p * WIDTH);
            for (int i = 0; i < DENSE_TILE; ++i)
                for (int p = 0; p < PARTS; ++p) score[i][p] += x[p] * queries[i][j];
        }
        for (int i = 0; i < DENSE_TILE; ++i) note(score[i], thresholds[i], i, first, rows, passed);
    }
}

template <class Index>
void filter_csr(const CsrArray<float, Index>& X, std::int64_t begin, std::int64_t end, const float* halves,
                const std::int32_t* slots, const float* table, const float* thresholds, Passed& passed) {
    constexpr int TILE_PARTS = CSR_TILE / WIDTH;
    for (int i = 0; i < CSR_TILE; ++i) passed.count[i] = 0;
    for (std::int64_t row = begin; row < end; ++row) {
        Values score[TILE_PARTS] = {};
        for (Index at = X.indptr[row]; at < X.indptr[row + 1]; ++at) {
            // A feature that no query of the tile has leads to a line of zeros.
            const float* line = table + static_cast<std::int64_t>(slots[X.indices[at]]) * CSR_TILE;
            for (int p = 0; p < TILE_PARTS; ++p) score[p] += load(line + p * WIDTH) * X.data[at];
        }
        for (int p = 0; p < TILE_PARTS; ++p) score[p] -= halves[row];
        float scores[CSR_TILE];
        __builtin_memcpy(scores, score, sizeof scores);
        for (int i = 0; i < CSR_TILE; ++i) {
            std::int32_t& count = passed.count[i];
            passed.score[i][count] = scores[i];
            passed.row[i][count] = static_cast<std::int32_t>(row - begin);
            count += !(scores[i] < thresholds[i]);
        }
    }
}

template void filter_csr(const CsrArray<float, std::int32_t>&, std::int64_t, std::int64_t, const float*,
                         const std::int32_t*, const float*, const float*, Passed&);
template void filter_csr(const CsrArray<float, std::int64_t>&, std::int64_t, std::int64_t, const float*,
                         const std::int32_t*, const float*, const float*, Passed&);

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
