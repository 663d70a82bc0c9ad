// What the loops of the linear support vector machines' dual work on; box_dual.hpp states the problem.
#pragma once

#include <cstdint>

#include "small_newton_state.hpp"
#include "tables.hpp"
#include "visits.hpp"

namespace separatrix {

// S is the precision of the parameters, which may differ from that of the data. One row of `padded`
// numbers (a multiple of 8, or 1 for a single column) per feature, per sample and per class.
template <class S>
struct BoxDualState {
    const std::int32_t* classes;
    const double* upper;       // U_i
    const double* delta;       // curvature of the conjugate: 0, or 1 / (2 U_i) for squared losses
    const double* norms;       // ‖x_i‖² + constant
    const double* numbers;     // target of each sample, or null
    const S* targets;          // t per class
    const S* low;              // the box is [U low, U high], per class
    const S* high;
    std::int64_t padded;
    double epsilon, constant;  // constant: what a step of v means to the offsets
    S* weights;                // Σ v_i x_i, [feature][padded]
    S* v;                      // [sample][padded]
    S* offsets;                // constant part of every score
    std::uint8_t* asleep;      // visits to leave out, and in the high bits how long the last rest was
    S* scratch;                // 2 rows
    double* tally;             // gain of the dual; visits; what they found of the gap
    double negligible;         // part of the gap below which a sample may sleep
};

// Earlier points of the loop: see box_dual_plane.hpp.
template <class S>
struct PlanePoints {
    std::int64_t samples, features;
    const S* old_v;
    S* older_v;
    const S *old_w, *older_w;
};

template <class S>
struct PlaneKernels {
    void (*sums)(const BoxDualState<S>&, const PlanePoints<S>&, double* sums);
    void (*point)(const BoxDualState<S>&, const PlanePoints<S>&, const double* tau, S* moves, double* gains);
    void (*loss)(const BoxDualState<S>&, const S* changes, std::int64_t features, double* gains);
};

// The loss's response to the scores of one column: see box_dual.hpp.
struct Response {
    std::int64_t count;
    const double *f, *q;       // scores, and how they change along a line (or null)
    double t;                  // how far to go along it
    const std::int8_t* codes;  // −1, 0, +1; or null, and then
    const double* numbers;     // targets
    const double* upper;       // U_i
    const double* v0;          // multipliers, or null for zero
    double rho, epsilon;
    bool bounded;              // whether v is at most U
    double* v;                 // where to write v, or null
    std::uint8_t* inside;      // where to write whether v is free to move, or null
};

// slope Σ v q; bend Σ ρ U q² over the free; loss Σ φ; linear Σ v t − ε |v|; square Σ v² / (4 U)
struct ResponseSums {
    double slope, bend, loss, linear, square;
};

// A quadratic model with an L1 penalty: see l1_model.hpp.
struct L1ModelArguments {
    std::int64_t size;
    const double *H, *lambda;
    double *z, *g, *work;
    std::int64_t* support;
    double eta;
};

template <class S>
struct BoxDualLoop {
    template <class Rows>
    using Over = void (*)(const Rows&, BoxDualState<S>&, const Visits&);
};

template <class T, class S>
using BoxDualKernels = ByRows<T, BoxDualLoop<S>::template Over>;

struct BoxDualSet : ByPrecisions<BoxDualKernels> {
    PlaneKernels<float> plane_single;
    PlaneKernels<double> plane_double;
    ResponseSums (*respond)(const Response&);
    double (*search)(Response, double first, double curve, double start);
    SmallNewtonSums (*small_measure)(SmallNewtonState&);
    void (*small_step)(SmallNewtonState&);
    void (*l1_model)(const L1ModelArguments&);
    double (*l1_search)(Response, const double* w, const double* z, const double* lambda, std::int64_t size, double start);
};

SEPARATRIX_TABLE(BoxDualSet, box_dual_set)

}  // namespace separatrix
