// The link of least squares: value Σ s (t − f)², residuals s (t − f), half the negative slope.
#pragma once

#include <cstdint>

#include "squares_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
struct SquaredLink {
    const SquaresState& state;

    double apply(std::int64_t first, std::int64_t rows, T* scores) const {
        const std::int64_t K = state.columns, stride = state.stride;
        const std::int32_t* classes = state.classes + first;
        const auto weight = [&](std::int64_t i) { return state.weights ? state.weights[first + i] : 1.0; };
        if (state.errors)
            for (std::int64_t i = 0; i < rows; ++i)
                if (wrong(scores + i, classes[i])) *state.errors += weight(i);
        double value = 0;
        for (std::int64_t k = 0; k < K; ++k) {
            T* f = scores + k * stride;
            double sum = 0;
            for (std::int64_t i = 0; i < rows; ++i) {
                const double rest = state.targets[classes[i] * K + k] - f[i];
                f[i] = static_cast<T>(weight(i) * rest);
                sum += weight(i) * rest * rest;
            }
            for (std::int64_t i = rows; i < stride; ++i) f[i] = 0;
            state.losses[k] += sum;
            value += sum;
        }
        return value;
    }

   private:
    // Whether the score of one column has the other sign than the target, or another column has the largest.
    bool wrong(const T* f, std::int64_t own) const {
        if (state.columns == 1) return (f[0] >= 0) != (state.targets[own] > 0);
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < state.columns; ++k)
            if (f[k * state.stride] > f[best * state.stride]) best = k;
        return best != own;
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
