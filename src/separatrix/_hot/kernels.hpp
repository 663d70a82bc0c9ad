// The table of compiled loops; one per instruction set, chosen once when the module is loaded.
#pragma once

#include <cstdint>

#include "coordinate_state.hpp"
#include "perceptron_state.hpp"
#include "sgd_state.hpp"
#include "sweep_kernels.hpp"
#include "tables.hpp"
#include "visits.hpp"

namespace separatrix {

// The loops over one kind of rows.
template <class T>
struct RowKernels {
    template <class Rows>
    struct Over {
        std::int64_t (*perceptron)(const Rows&, PerceptronState<T>&, JudgeState<T>* judge, const Visits&);
        void (*judge)(const Rows&, JudgeState<T>&, const Visits&);
        void (*sgd)(const Rows&, SgdState<T>&, const Visits&);
    };
};

// Coordinate descent over one kind of columns.
template <class Columns>
struct ColumnKernels {
    double (*sweep)(const Columns&, const std::int64_t* columns, CoordinateState&, const std::int64_t* order,
                    std::int64_t count, std::uint8_t* active, bool partial);
    void (*curvature)(const Columns&, const std::int64_t* columns, std::int64_t count, const double* h,
                      std::int64_t width, double* out);
};

template <class T>
struct Kernels : ByRows<T, RowKernels<T>::template Over> {
    ColumnKernels<DenseColumns<T>> dense_columns;
    ColumnKernels<SparseColumns<T>> sparse_columns;

    using ByRows<T, RowKernels<T>::template Over>::of;
    const auto& of(const DenseColumns<T>&) const { return dense_columns; }
    const auto& of(const SparseColumns<T>&) const { return sparse_columns; }
};

struct KernelSet {
    const char* name;
    Kernels<float> single_precision;
    Kernels<double> double_precision;
    const SweepSet* sweeps;
    double (*gram_descent)(const double* H, double* gradient, const double* weights, double* step,
                           double* falls, std::int64_t blocks, std::int64_t size, double l1, double l2,
                           std::int64_t sweeps, double tol);
};

SEPARATRIX_TABLE(KernelSet, kernels)

// The best set this processor runs, or the named one; null if it cannot run the named one.
const KernelSet* find_kernels(const char* name_or_null);

}  // namespace separatrix
