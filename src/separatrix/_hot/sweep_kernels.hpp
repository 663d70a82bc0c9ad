// The table of sweeps over blocks of rows; one per instruction set, beside the table of row loops.
#pragma once

#include <cstdint>

#include "squares_state.hpp"
#include "tables.hpp"

namespace separatrix {

template <class Data>
struct SweepKernels {
    using Dense = double (*)(const Data* X, std::int64_t rows, std::int64_t row_stride, std::int64_t features,
                             const SweepState&);
    template <class Index>
    using Csr = double (*)(const Data* data, const Index* indices, const Index* indptr, std::int64_t rows,
                           const SweepState&);
    template <class Index>
    using Gram = void (*)(const Data* data, const Index* indices, const Index* indptr, std::int64_t rows,
                          std::int64_t features, const double* weights, double* gram);
    using Sums = void (*)(const Data* X, std::int64_t rows, std::int64_t row_stride, std::int64_t features,
                          const double* weights, double* sums);
    using Squares = double (*)(const Data* X, std::int64_t rows, std::int64_t row_stride, std::int64_t features,
                               const SquaresState&);
    Dense dense_single, dense_double;
    Squares squares_single, squares_double;
    Sums column_sums;
    Csr<std::int32_t> csr32;
    Csr<std::int64_t> csr64;
    Gram<std::int32_t> gram32;
    Gram<std::int64_t> gram64;

    auto csr(std::int32_t) const { return csr32; }
    auto csr(std::int64_t) const { return csr64; }
    auto gram(std::int32_t) const { return gram32; }
    auto gram(std::int64_t) const { return gram64; }
};

struct SweepSet {
    SweepKernels<float> single_precision;
    SweepKernels<double> double_precision;
};

SEPARATRIX_TABLE(SweepSet, sweeps)

}  // namespace separatrix
