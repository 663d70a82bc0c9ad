// What the Crammer-Singer loop works on; crammer_singer.hpp states the problem.
#pragma once

#include <cstdint>

#include "tables.hpp"
#include "visits.hpp"

namespace separatrix {

// S is the precision of the parameters. One row of `padded` numbers (a multiple of 8) per feature and per sample.
template <class S>
struct CrammerSingerState {
    const std::int32_t* classes;
    const double* cost;        // C s_i
    const double* norms;       // ‖x_i‖² + constant²
    std::int64_t columns, padded;
    double constant;           // the value of the feature that carries the intercepts; 0: none
    S* weights;                // Σ alpha_i x_i, [feature][padded]; the last row belongs to the constant
    S* mu;                     // alpha_i = C s_i (t_i − mu_i), [sample][padded]
    std::uint8_t* asleep;      // visits to leave out
    S* scratch;                // 2 rows
    double* tally;             // gain of the dual; gap of the visited samples; steps; visits
    double negligible;         // gap of a sample below which it may sleep
};

template <class S>
struct CrammerSingerLoop {
    template <class Rows>
    using Over = void (*)(const Rows&, CrammerSingerState<S>&, const Visits&);
};

template <class T, class S>
using CrammerSingerKernels = ByRows<T, CrammerSingerLoop<S>::template Over>;

// The whole problem on few dense data: see small_joint.hpp.
struct SmallJoint {
    std::int64_t n, features, columns;
    const double* x;              // [sample][feature], that of the intercepts among them
    const std::int32_t* classes;
    const double* cost;           // C s_i
    double tol;
    double *W, *mu, *mu0;         // [class][feature], [sample][class] twice
    double* work;                 // 2 n columns + size² + 4 size + columns, size = features columns
    double rho, growth;           // 1/rho is the width of the smoothed kink, growth what multiplies rho next
    double primal, dual;
    std::int64_t inner, steps;    // Newton steps within the smoothed problem, and all
};

struct CrammerSingerSet : ByPrecisions<CrammerSingerKernels> {
    void (*small_joint)(SmallJoint&, std::int64_t steps);
};

SEPARATRIX_TABLE(CrammerSingerSet, crammer_singer_set)

}  // namespace separatrix
