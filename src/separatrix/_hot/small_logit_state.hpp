// What logistic regression on few dense data works on; small_logit.hpp has its steps.
#pragma once

#include <cstdint>

#include "tables.hpp"

namespace separatrix {

// One binary column, or all columns of a softmax. Samples stand column by column, `stride` apart; those beyond the
// last have weight 0.
struct SmallLogitState {
    std::int64_t n, d, columns, size, stride;  // size: features and, if it is free, the intercept
    const double* x;                           // samples, [n][d]
    const std::int32_t* classes;               // the class of each sample; 0 or 1 for one column
    double l1, l2, total;                      // penalties; the sum of the weights
    double *weights, *sides;                   // of the samples; ±1 for one column
    double *X, *mean;                          // [size][stride]: centred features, then ones
    double *V;                                 // [columns][size]: parameters of centred features
    double *F, *Q, *Z;                         // [columns, at least 2][stride]: scores, residuals p − t, change of the scores
    double *scaled;                            // [2][stride]
    double *g, *H, *U, *scale, *D, *r, *rhs;   // loss gradient, Hessian, its factor (or an L1 model's work); step,
                                               // model's gradient
    std::int64_t* support;                     // [columns × size]
    double* lambda;                            // [columns × size]: L1 penalties, 0 for intercepts
    double loss, primal, bound, gap, decrement, violation;
    bool factored;
};

struct SmallLogitSet {
    void (*start)(SmallLogitState&);
    bool (*step)(SmallLogitState&, bool anew);
    void (*evaluate)(SmallLogitState&, const double* coef, const double* intercept);
};

SEPARATRIX_TABLE(SmallLogitSet, small_logit_set)

}  // namespace separatrix
