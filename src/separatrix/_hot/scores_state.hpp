// What a sweep that ends with the scores of dense rows needs and gives, and the table of its loops.
#pragma once

#include "sweep_state.hpp"
#include "tables.hpp"

namespace separatrix {

template <class T>
struct ScoresState : SweepState {
    T* scores;  // (rows, columns)
};

struct ScoresSet {
    template <class T>
    using Scores = void (*)(const T* X, std::int64_t rows, std::int64_t row_stride, std::int64_t features,
                            const ScoresState<T>&);
    Scores<float> single_precision;
    Scores<double> double_precision;
};

SEPARATRIX_TABLE(ScoresSet, dense_scores)

}  // namespace separatrix
