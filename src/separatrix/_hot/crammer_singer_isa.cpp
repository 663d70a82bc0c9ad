// The Crammer-Singer loop, compiled once per instruction set, with fused multiply-adds like the softmax dual: its
// certified answers agree, the last bits of its iterates need not.
#include "crammer_singer.hpp"
#include "kernels.hpp"
#include "small_joint.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class S, class Array>
void pass(const Array& array, CrammerSingerState<S>& state, const Visits& visits) {
    const auto rows = rows_of(array);
    CrammerSingerPass<S, decltype(rows)>(rows, state).run(visits);
}

template <class T, class S>
constexpr CrammerSingerKernels<T, S> kernels_of = {
    pass<S, DenseArray<T>>, pass<S, CsrArray<T, std::int32_t>>, pass<S, CsrArray<T, std::int64_t>>};

const CrammerSingerSet table = {kernels_of<float, float>, kernels_of<float, double>, kernels_of<double, float>,
                                kernels_of<double, double>, small_joint};

}  // namespace

const CrammerSingerSet& crammer_singer_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
