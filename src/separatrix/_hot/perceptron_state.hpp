// What a pass of the perceptron family reads and writes.
#pragma once

#include <cstdint>

namespace separatrix {

// Everything a pass reads and writes; the arrays belong to Python.
template <class T>
struct PerceptronState {
    // problem
    const std::int32_t* classes;   // class number of each row
    const T* row_weights;          // null: all one
    const std::int8_t* codes;      // [n_classes][columns]: -1, 0 (takes no part), +1
    const std::uint8_t* wanted;    // [n_classes][columns]: scores that a row of this class needs
    std::int64_t columns;          // how many binary problems, or classes if joint
    std::int64_t stride;           // feature-major weights: from one feature's to the next one's
    bool joint;
    bool fit_intercept;
    T intercept_step;              // steps of the intercepts are multiplied by it
    T eta, margin;
    // learnt
    T* weights;                    // laid out as the rows want it
    T* intercepts;                 // [columns]
    T largest;                     // no weight has been larger so far (of sparse rows)
    double* drift;                 // null, or sum of clock * step, from which the average follows
    double* drift_intercepts;
    double* clock;                 // presentations so far
    // penalty (null scale: none)
    double decay, truncation;      // per presentation: factor lost to L2, amount owed to L1
    double* scale;                 // [columns]: true weights = scale * weights
    double* owed;                  // [columns]: L1 amount each weight should have lost so far
    T* paid;                       // as weights: what each weight has lost so far
    // report
    std::int64_t* updates;         // [columns]
    double* tally;                 // by the enum below
    double* remaining;             // weight of the current row not yet presented
    T* scores;                     // [columns] scratch, and [columns] for the judge
};

// What judging fixed weights reads and writes. Feature-major weights that are judged while others learn stand beside
// these, in one array [features][2][columns], so that one look-up of a feature finds both; so do the scores.
template <class T>
struct JudgeState {
    const std::int32_t* classes;
    const T* row_weights;
    const std::int8_t* codes;
    const std::uint8_t* wanted;
    std::int64_t columns, stride;
    bool largest_wins;             // the largest score decides; else each column by its sign
    T margin;
    const T* weights;
    const T* intercepts;
    const T* largest;              // [1]: no weight is larger (of sparse rows)
    double* errors;                // [columns], or [0] alone if the largest score decides
    T* scores;
};

enum { MISTAKES = 0, MARGIN_ERRORS = 1, CRITERION = 2 };

}  // namespace separatrix
