// What a sweep over a block of rows needs and gives, whatever the kind of rows and the precision.
#pragma once

#include <cstdint>

namespace separatrix {

struct SweepState {
    const std::int32_t* classes;   // of the block's rows
    const double* weights;         // of the block's rows, or null
    const std::int8_t* codes;      // (classes, columns); null for softmax
    std::int64_t columns;
    std::int64_t stride;           // from one column's scores to the next
    const double* coef;            // (columns, features)
    const double* intercept;       // (columns,)
    double* gradient;              // (columns, features), added to
    double* gradient_intercept;    // (columns,), added to
    double* residuals;             // (rows, columns) or null
};

}  // namespace separatrix
