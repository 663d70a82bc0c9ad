// The nearest neighbours' loops: what they share with their bindings, and their table.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace separatrix {

// Rows of a panel (a reduced row lies in its panel as every 16th number), rows that are filtered before the
// survivors are measured, queries that share a read of a dense or sparse row.
constexpr int PANEL = 16, STRETCH = 512, DENSE_TILE = 6, CSR_TILE = 16;

// A few queries and the nearest rows found for them so far, as max-heaps by (distance, row). For the
// Euclidean metric distances are squared until the end. With z the reduced vectors (method in
// solvers/neighbors.py), a row can only be nearer than D if  q_z . x_z − half_x ≥ (room_q − grow (D + slack))/2.
struct Nearest {
    double* distance;
    std::int64_t* index;
    std::int64_t count, k;
    bool cosine;
    const double* dense;   // the queries, by rows, for dense data
    CsrArray<double, std::int64_t> sparse;  // the queries for sparse data
    const float* reduced;  // their reduced vectors, of this width; of sparse queries their values
    std::int64_t width;
    const double* room;
    double grow, slack;
};

// Rows that passed the filter for each query of a tile, with q_z . x_z − half_x.
struct Passed {
    float score[CSR_TILE][STRETCH];
    std::int32_t row[CSR_TILE][STRETCH];
    std::int32_t count[CSR_TILE];
};

template <class T>
struct DenseNeighbors {
    void (*nearest)(const DenseArray<T>&, std::int64_t rows, std::int64_t first, const float* panels,
                    const float* halves, Nearest&);
};

template <class T, class Index>
struct CsrNeighbors {
    // slots: zeros, one per feature; table: zeros, CSR_TILE times one more than the most distinct features
    // that a tile of queries has.
    // values: what the filter takes instead of the data; scaled, in single precision.
    void (*nearest)(const CsrArray<T, Index>&, std::int64_t rows, std::int64_t first, const float* values,
                    const float* halves, Nearest&, std::int32_t* slots, float* table);
};

struct NeighborSet {
    DenseNeighbors<float> dense_single;
    DenseNeighbors<double> dense_double;
    CsrNeighbors<float, std::int32_t> csr_single_32;
    CsrNeighbors<float, std::int64_t> csr_single_64;
    CsrNeighbors<double, std::int32_t> csr_double_32;
    CsrNeighbors<double, std::int64_t> csr_double_64;
    // Rows first … with these distances to the queries, one line per query.
    void (*keep)(const double* distances, std::int64_t rows, std::int64_t first, Nearest&);

    const auto& of(const DenseArray<float>&) const { return dense_single; }
    const auto& of(const DenseArray<double>&) const { return dense_double; }
    const auto& of(const CsrArray<float, std::int32_t>&) const { return csr_single_32; }
    const auto& of(const CsrArray<float, std::int64_t>&) const { return csr_single_64; }
    const auto& of(const CsrArray<double, std::int32_t>&) const { return csr_double_32; }
    const auto& of(const CsrArray<double, std::int64_t>&) const { return csr_double_64; }
};

#define SEPARATRIX_NEIGHBORS                                                                                 \
    const NeighborSet& neighbor_set();                                                                       \
    void filter_panels(const float* panels, const float* halves, std::int64_t rows, const float* const* queries, \
                       std::int64_t width, const float* thresholds, Passed& passed);                         \
    template <class Index>                                                                                   \
    void filter_csr(const CsrArray<float, Index>& X, std::int64_t begin, std::int64_t end,                   \
                    const float* halves, const std::int32_t* slots, const float* table,                      \
                    const float* thresholds, Passed& passed);

namespace baseline { SEPARATRIX_NEIGHBORS }
namespace v3 { SEPARATRIX_NEIGHBORS }
namespace v4 { SEPARATRIX_NEIGHBORS }

#undef SEPARATRIX_NEIGHBORS

}  // namespace separatrix
