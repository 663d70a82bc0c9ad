// What sums over support vectors work on; machine_sums.hpp states the mathematics.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "smo_state.hpp"

namespace separatrix {

// Support vectors as 16-bit integers (machine_coarse.hpp), two neighbouring features side by side.
struct CoarsePanels {
    std::int32_t* data;             // [panel][pair of features][width]
    float* unit;                    // of each support vector
    double quantum;                 // of which all values may be whole multiples, or 0
    double longest = 0, error = 0;  // bounds of |z| and of what was rounded off it
};

// A fitted machine: its support vectors in panels, group by group, and their coefficients. A group begins
// with a panel of its own; what is left of its last one are zeros with coefficients 0.
template <class T>
struct MachineData {
    PanelData<T> panels;
    double scale;
    const double* shift;          // rows become (x − shift) · scale; may be null
    std::int64_t groups, columns;
    const std::int64_t* starts;   // first panel of each group, and the end of the last
    const T* coef;                // [panel][column][width]
    bool few;                     // whether rows have so few nonzeros that they are mostly read one by one
    // For each panel, the |x|²/2 of a row up to which 2^(x·z − |x|²/2) does not underflow. That is an RBF kernel where
    // 2^(−|z|²/2) is part of the coefficients; where it is not, since it would be too small, the number is negative.
    const T* near;
    const CoarsePanels* coarse;   // if not null, these instead of the panels' data
};

// Rows that threads take a few at a time until they reach the end.
struct Turns {
    std::int64_t* next;
    std::int64_t end, step;
};

// What sums of each class against each other one decide: the class that wins all its pairs by more than a row's
// error, or −1 where there is none.
struct PairDecisions {
    const double *intercept, *error;
    std::int64_t* winner;
};

// Dense rows in any order.
template <class Data>
struct StridedArray {
    const Data* data;
    std::int64_t row_stride, column_stride;
};

// to[row][group][column] = Σ_j k(x_row, z_j) c_j over the support vectors of each group, or with `pairs`, where
// the groups are classes, only what these sums decide
template <class T, class Rows>
using MachineSums = void (*)(const MachineData<T>&, const Rows&, const Turns&, double* to, const PairDecisions* pairs);

template <class T>
struct MachineKernels {
    std::int64_t width;
    void (*finish)(PanelData<T>&);
    void (*round)(const PanelData<T>&, CoarsePanels& to);  // null in double precision
    MachineSums<T, StridedArray<float>> dense_float;
    MachineSums<T, StridedArray<double>> dense_double;
    MachineSums<T, CsrArray<float, std::int32_t>> csr32_float;
    MachineSums<T, CsrArray<double, std::int32_t>> csr32_double;
    MachineSums<T, CsrArray<float, std::int64_t>> csr64_float;
    MachineSums<T, CsrArray<double, std::int64_t>> csr64_double;

    auto of(const StridedArray<float>&) const { return dense_float; }
    auto of(const StridedArray<double>&) const { return dense_double; }
    auto of(const CsrArray<float, std::int32_t>&) const { return csr32_float; }
    auto of(const CsrArray<double, std::int32_t>&) const { return csr32_double; }
    auto of(const CsrArray<float, std::int64_t>&) const { return csr64_float; }
    auto of(const CsrArray<double, std::int64_t>&) const { return csr64_double; }
};

// Scores of all pairs of classes from the sums of each class against each other one, and votes from scores.
struct PairKernels {
    void (*scores)(const double* sums, std::int64_t rows, std::int64_t classes, const double* intercept, double* to);
    void (*votes_float)(const float* scores, std::int64_t rows, std::int64_t classes, float* to);
    void (*votes_double)(const double* scores, std::int64_t rows, std::int64_t classes, double* to);
};

struct MachineSet {
    MachineKernels<float> single_precision;
    MachineKernels<double> double_precision;
    PairKernels pairs;
};

SEPARATRIX_TABLE(MachineSet, machine_set)

}  // namespace separatrix
