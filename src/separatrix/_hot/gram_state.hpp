// What sums of products of dense rows need and give, and the table of their loops.
#pragma once

#include <cstdint>

#include "tables.hpp"

namespace separatrix {

template <class Data>
struct GramRows {
    const Data* X;
    std::int64_t row_stride, column_stride, rows, d;
    const std::int64_t* order;     // rows to visit, or null for all of them
    const std::int32_t* classes;   // of the rows of X, or null for one class
    const double* weights;         // of the rows of X, or null
    const double* origin;          // (classes, d), subtracted from the rows, or null
    std::int64_t origin_stride;    // 0: one origin for all classes
    double* sums;                  // (classes, d), added to, or null
    double* gram;                  // (d, d), added to on and above the diagonal, or null
    double steps;                  // unless 1, rows are multiples of 1/steps, and stand for their whole numbers
};

// How products are made: in double or float, of values rounded to 16 bits, of whole numbers.
enum class Precision { in_double, in_single, coarse, whole };
constexpr int PRECISIONS = 4;

template <class Data>
struct GramKernels {
    using Add = void (*)(const GramRows<Data>&);
    Add of[PRECISIONS];
};

struct GramSet {
    GramKernels<float> single_precision;
    GramKernels<double> double_precision;
    void (*mirror)(double* gram, std::int64_t d);  // what is above the diagonal, below it
};

SEPARATRIX_TABLE(GramSet, grams)

}  // namespace separatrix
