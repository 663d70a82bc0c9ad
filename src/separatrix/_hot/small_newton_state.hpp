// What Newton's method on few dense data works on; small_newton.hpp has its steps.
#pragma once

#include <cstdint>

namespace separatrix {

struct SmallColumn {
    double rho, growth;         // 1/ρ is the width of the smoothed kink, growth what multiplies ρ next
    double highest;             // largest ρ so far
    double primal, gap, rest;   // rest: the part of the gap within the smoothed problem
    double penalty;             // of the weights
    double least, least_rest;   // smallest gap so far, smallest rest since ρ was largest
    double slope;               // derivative in the intercept
    double bound, damping;      // with an L1 penalty: best bound so far, and how much steps are damped
    int inner, idle;            // steps within the smoothed problem; steps without progress
    bool fresh, active;
};

struct SmallNewtonRules {
    double tol, steepest, most_growth, least_growth, shortest;
    int patience;
};

// Matrices have a row per column of the problem.
struct SmallNewtonState {
    std::int64_t n, d, columns;
    const double* x;            // samples, [n][d]; or of sparse ones the stored values,
    const std::int32_t* features;  // their features, in order, and where each sample starts; else null
    const std::int64_t* starts;
    const std::int8_t* codes;   // [columns][n], or null
    const double* numbers;      // targets, or null
    const double* upper;        // U_i, and their sum
    double total, epsilon;
    bool bounded, intercept;
    double curve, square;       // 1/γ² and γ²; both 0 for a free intercept
    double *W, *b, *F, *V, *V0, *gradient;
    std::uint8_t *inside, *formed;
    double* kept;               // products of the samples that are formed, [columns][d + 1][d + 1] at most
    const double *lambda;       // factors of the L1 penalty of weights and intercept; null for an L2 penalty
    double* squares;            // then: what damps each weight
    std::int64_t* support;
    SmallColumn* each;
    double* work;               // (d + 1)(2 d + 9) + n
    SmallNewtonRules rules;
};

struct SmallNewtonSums {
    double primal, gap;
    bool active, stuck;
};

}  // namespace separatrix
