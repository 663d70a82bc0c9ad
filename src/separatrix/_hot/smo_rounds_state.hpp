// The loops of smo_rounds.hpp that are compiled once per instruction set.
#pragma once

#include <cstdint>

#include "smo_state.hpp"
#include "tables.hpp"

namespace separatrix {

template <class T>
struct RoundKernels {
    // out[k][c] = k(points_k of from, c) for all samples c
    void (*rows)(const PanelData<T>& from, const std::int64_t* points, std::int64_t count, const PanelData<T>&, T* const* out);
    // Sample i of some panels becomes that of a point of others.
    void (*put)(const PanelData<T>& from, std::int64_t point, PanelData<T>& to, std::int64_t i);
    // to[k] = row[columns_k]
    void (*gather)(const T* row, const std::int64_t* columns, std::int64_t count, T* to);
    // block[o][k] = block[k][o] for some k and some others o
    void (*mirror)(T* block, std::int64_t stride, const std::int64_t* some, std::int64_t count, const std::int64_t* others,
                   std::int64_t other_count);
    // sums[c − begin] += Σ_k change_k rows[k][c] for begin ≤ c < end
    void (*add)(const T* const* rows, const double* change, std::int64_t count, std::int64_t begin, std::int64_t end,
                double* sums);
};

struct RoundSet {
    RoundKernels<float> single_precision;
    RoundKernels<double> double_precision;
};

SEPARATRIX_TABLE(RoundSet, round_set)

}  // namespace separatrix
