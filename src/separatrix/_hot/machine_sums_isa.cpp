// Sums over support vectors, compiled once per instruction set like isa.cpp, but with fused multiply-adds.
#include "machine_sums.hpp"
#include "pair_votes.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
constexpr auto round_of = static_cast<void (*)(const PanelData<T>&, CoarsePanels&)>(nullptr);
template <>
constexpr auto round_of<float> = round_panels;

template <class T>
constexpr MachineKernels<T> kernels_of = {
    PANEL<T>,
    finish_panels<T>,
    round_of<T>,
    machine_sums<T, StridedArray<float>>,
    machine_sums<T, StridedArray<double>>,
    machine_sums<T, CsrArray<float, std::int32_t>>,
    machine_sums<T, CsrArray<double, std::int32_t>>,
    machine_sums<T, CsrArray<float, std::int64_t>>,
    machine_sums<T, CsrArray<double, std::int64_t>>,
};

const MachineSet table = {kernels_of<float>, kernels_of<double>, {pair_scores, pair_votes<float>, pair_votes<double>}};

}  // namespace

const MachineSet& machine_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
