// The loops of the linear support vector machines' dual, compiled once per instruction set, with fused
// multiply-adds: their iterates may differ in the last bits, their certified answers agree.
#include "box_dual.hpp"
#include "box_dual_plane.hpp"
#include "kernels.hpp"
#include "small_newton.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class S, class Array>
void pass(const Array& array, BoxDualState<S>& state, const Visits& visits) {
    const auto rows = rows_of(array);
    BoxDualPass<S, decltype(rows)>(rows, state).run(visits);
}

template <class T, class S>
constexpr BoxDualKernels<T, S> kernels_of = {
    pass<S, DenseArray<T>>, pass<S, CsrArray<T, std::int32_t>>, pass<S, CsrArray<T, std::int64_t>>};

template <class S>
constexpr PlaneKernels<S> plane_of = {plane_sums<S>, plane_point<S>, plane_loss<S>};

void l1_model(const L1ModelArguments& a) { L1Model{a.size, a.H, a.lambda, a.z, a.g, a.work, a.support}.solve(a.eta); }

const BoxDualSet table = {{kernels_of<float, float>, kernels_of<float, double>, kernels_of<double, float>,
                           kernels_of<double, double>},
                          plane_of<float>, plane_of<double>, respond, search, small_measure, small_step, l1_model, l1_search};

}  // namespace

const BoxDualSet& box_dual_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
