// What the Crammer-Singer loop works on; crammer_singer.hpp states the problem.
#pragma once

#include <cstdint>

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

template <class T, class Index>
struct CsrArray;
template <class T>
struct DenseArray;

template <class T, class S>
struct CrammerSingerKernels {
    void (*dense)(const DenseArray<T>&, CrammerSingerState<S>&, const Visits&);
    void (*csr32)(const CsrArray<T, std::int32_t>&, CrammerSingerState<S>&, const Visits&);
    void (*csr64)(const CsrArray<T, std::int64_t>&, CrammerSingerState<S>&, const Visits&);

    void run(const DenseArray<T>& rows, CrammerSingerState<S>& state, const Visits& v) const { dense(rows, state, v); }
    void run(const CsrArray<T, std::int32_t>& rows, CrammerSingerState<S>& state, const Visits& v) const {
        csr32(rows, state, v);
    }
    void run(const CsrArray<T, std::int64_t>& rows, CrammerSingerState<S>& state, const Visits& v) const {
        csr64(rows, state, v);
    }
};

struct CrammerSingerSet {
    CrammerSingerKernels<float, float> single_single;
    CrammerSingerKernels<float, double> single_double;
    CrammerSingerKernels<double, float> double_single;
    CrammerSingerKernels<double, double> double_double;

    template <class T, class S>
    const CrammerSingerKernels<T, S>& of() const {
        if constexpr (sizeof(T) == 4) {
            if constexpr (sizeof(S) == 4) return single_single;
            else return single_double;
        } else {
            if constexpr (sizeof(S) == 4) return double_single;
            else return double_double;
        }
    }
};

namespace baseline { const CrammerSingerSet& crammer_singer_set(); }
namespace v3 { const CrammerSingerSet& crammer_singer_set(); }
namespace v4 { const CrammerSingerSet& crammer_singer_set(); }

}  // namespace separatrix
