// What the softmax dual's loops work on; softmax_dual.hpp states the problem.
#pragma once

#include <cstdint>

#include "tables.hpp"
#include "visits.hpp"

namespace separatrix {

// S is the precision of the parameters, which may differ from that of the data. One row of `padded`
// numbers (a multiple of 8; 1 for two classes in one column) per feature and per sample.
template <class S>
struct SoftmaxDualState {
    const std::int32_t* classes;
    const double* scale;       // C s_i
    const double* norms;       // ‖x_i − m‖² + sigma
    const double* mean_dots;   // x_i · m
    std::int64_t columns, padded;
    double constant;           // ‖m‖² + sigma
    S* weights;                // Σ alpha_i x_i, [feature][padded]
    S* nu;                     // log mu_i, [sample][padded]; with one column the logit of the wrong class
    std::uint8_t* asleep;      // visits to leave out; 255: not yet visited
    S* offsets;                // constant part of every score
    S* sums;                   // Σ alpha_i
    S* spread;                 // Σ C s mu (1 − mu) of the present mu
    S* scratch;                // 6 rows
    double* tally;             // predicted gain of the dual; steps; visits
    double negligible;         // gain below which a sample may sleep
    double shrink;             // 1/(1 + kappa): what a step of alpha means to weights, offsets and sums
};

template <class S>
struct SoftmaxDualLoops {
    template <class Rows>
    struct Over {
        void (*pass)(const Rows&, SoftmaxDualState<S>&, const Visits&);
        void (*scores)(const Rows&, const S* weights, std::int64_t padded, std::int64_t count, S* scores);
        void (*transposed)(const Rows&, const S* R, std::int64_t padded, std::int64_t count, std::int64_t begin,
                           std::int64_t end, S* weights);
    };
};

template <class T, class S>
using SoftmaxDualKernels = ByRows<T, SoftmaxDualLoops<S>::template Over>;

struct SoftmaxDualSet : ByPrecisions<SoftmaxDualKernels> {
    // P[i] = softmax(scores[i] + offsets); returns the sum of weights[i] times the loss.
    double (*softmax)(const double* scores, const double* offsets, const std::int32_t* classes,
                      const double* weights, std::int64_t count, std::int64_t columns, std::int64_t padded,
                      double* P);
};

SEPARATRIX_TABLE(SoftmaxDualSet, softmax_dual_set)

}  // namespace separatrix
