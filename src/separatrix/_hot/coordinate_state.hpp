// What coordinate descent on a quadratic model of the loss works on; the arrays belong to Python.
#pragma once

#include <cstdint>

namespace separatrix {

// Columns of a data matrix: dense ones stand one after the other, sparse ones have row numbers.
template <class T>
struct DenseColumns {
    const T* data;
    std::int64_t n;
};

template <class T>
struct SparseColumns {
    const T* data;
    const std::int32_t* rows;
    const std::int64_t* starts;
};

struct CoordinateState {
    std::int64_t n, width;      // samples; score columns (joint: padded to whole groups of 4)
    bool joint, fit_intercept;
    double l1, l2;
    const double* q;            // (n, width): joint s_i p_ik, else the curvature h_i
    const double* p;            // (n, width), joint only
    double* Z;                  // (n, width): scores of the step
    double* mean;               // (n): p_i · Z_i, joint only
    const double* gradient;     // (features, width): of the loss, where the step starts
    const double* curvature;    // (features, width): Σ_i x_ij² h_ik
    const double* weights;      // (features, width): where the step starts
    double* step;               // (features, width)
    const double* intercept_gradient;  // (width)
    const double* intercept_inverse;   // (width, width): pseudo-inverse of the intercepts' Hessian
    double* intercept_step;            // (width)
    double* scratch;            // (3 * width)
};

}  // namespace separatrix
