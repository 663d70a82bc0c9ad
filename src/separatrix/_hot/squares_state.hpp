// What a sweep of least squares needs and gives beside what every sweep does.
#pragma once

#include "sweep_state.hpp"

namespace separatrix {

struct SquaresState : SweepState {
    const double* targets;  // (classes, columns)
    double* losses;         // (columns,), added to
    double* errors;         // weight of samples whose score is another class's, added to, or null
};

}  // namespace separatrix
