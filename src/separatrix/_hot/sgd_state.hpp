// What a pass of stochastic gradient descent reads and writes.
#pragma once

#include <cstdint>

namespace separatrix {

// How the step eta follows from the number t of the visit (from 1).
enum class Rate {
    COLUMN,   // eta[k], constant within a pass
    INVERSE,  // 1 / (alpha (t0 + t - 1)): "optimal", and with t0 = 1 Pegasos
    POWER,    // eta0 / t^power
    PA1,      // passive-aggressive: min(eta0, loss / ‖x‖²)
    PA2,      // passive-aggressive: loss / (‖x‖² + 1 / (2 eta0))
};

// Everything a pass reads and writes; the arrays belong to Python.
template <class T>
struct SgdState {
    // problem
    const std::int32_t* classes;  // class number of each row; null: each row has a target of its own
    const T* targets;             // [n_classes][columns] (codes), or [rows] for the one column
    const T* factors;             // null, or [n_classes][columns]: multiply the weights of the rows
    const T* row_weights;         // null: all one
    std::int64_t columns;
    int loss;                     // its number in sgd_losses.hpp
    double epsilon;               // of the losses that have one
    double l2, l1;                // factors of ½‖w‖² and ‖w‖₁
    bool fit_intercept;
    double intercept_decay;       // the intercept's steps are multiplied by it
    // step rule
    Rate rate;
    double eta0, power, alpha, t0;
    // learnt
    T* weights;                   // laid out as the rows want it; true weights = scale * weights
    double* intercepts;           // [columns]
    double* scale;                // [columns]
    const std::uint8_t* active;   // [columns]: those that still learn
    const double* eta;            // [columns], for Rate::COLUMN
    double* owed;                 // [columns]: L1 amount each weight should have lost so far
    T* paid;                      // as weights: what each weight has lost so far; null without L1
    double* clock;                // t of the next visit
    // mean of the weights after every visit from `average_from` on (null drift: not wanted)
    double average_from;
    double* drift;                // sum of the weights so far = area * weights - drift
    double* area;                 // [columns]: sum of the scales so far
    double* intercept_sums;       // [columns]
    // report
    double* losses;               // [columns]: weighted losses met on the way
    // scratch, [columns] each
    T* scores;
    T* steps;
    double* margins;
    double* values;
    double* slopes;
};

}  // namespace separatrix
