// Kernel panels and SMO, compiled once per instruction set like isa.cpp, but with fused multiply-adds:
// the solutions are certified, not compared bit by bit between processors.
#include "smo.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
constexpr SmoKernels<T> kernels_of = {PANEL<T>,        finish_panels<T>,  take_panels<T>,
                                      kernel_block<T>, kernel_product<T>, run_smo<T>};

const SmoSet table = {kernels_of<float>, kernels_of<double>};

}  // namespace

const SmoSet& smo_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
