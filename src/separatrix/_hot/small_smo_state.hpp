// What the loop over many small dual problems works on; small_smo.hpp states the method.
#pragma once

#include <cstdint>

#include "tables.hpp"

namespace separatrix {

// Problems of the form of SmoState, one after the other in the same arrays: the variables of problem k are
// starts[k] … starts[k + 1] − 1.
struct SmallProblems {
    std::int64_t count, largest;       // problems, and variables of the largest
    std::int64_t copies;               // variables per sample: the second half of a problem may repeat the first
    bool separate;                     // whether the sums over either sign are kept
    const std::int64_t* starts;
    const std::int64_t* rows;          // sample of each variable
    const double* signs;
    const double* upper;
    const double* values;              // kernel matrix of all samples
    std::int64_t stride;
    double* alpha;
    double* gradient;                  // Qa + p; p alone where a problem is fresh
    double tol, coarse;                // violation to reach, and the one at which free variables move together
    std::int64_t most_steps;
    // Results, per problem
    std::int64_t* steps;
    double* violation;
    double* worst_curvature;
    std::int32_t* status;              // −1: fresh, else as in SmoState
    std::int64_t* quota;               // of a problem that was broken off: steps of pairs that come next; else 0
};

struct SmallSmoSet {
    // Solves the problems that next(owner) names, until it names none (−1) or seconds() reaches the deadline.
    void (*solve)(const SmallProblems&, std::int64_t (*next)(void*), void* owner, double deadline, double (*seconds)());
};

SEPARATRIX_TABLE(SmallSmoSet, small_smo_set)

}  // namespace separatrix
