// The parts of the Python module, one per family of loops, and the kernel set they all use.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "kernels.hpp"

namespace separatrix {

const KernelSet& chosen_kernels();

template <class Table>
const Table& chosen_table(const Table& (*baseline)(), const Table& (*v3)(), const Table& (*v4)()) {
    const std::string_view name = chosen_kernels().name;
    return (name == "v4" ? v4 : name == "v3" ? v3 : baseline)();
}

void bind_box_dual(nanobind::module_& m);
void bind_coordinate(nanobind::module_& m);
void bind_gram(nanobind::module_& m);
void bind_machine_sums(nanobind::module_& m);
void bind_neighbors(nanobind::module_& m);
void bind_crammer_singer(nanobind::module_& m);
void bind_sgd(nanobind::module_& m);
void bind_small_logit(nanobind::module_& m);
void bind_small_passes(nanobind::module_& m);
void bind_small_smo(nanobind::module_& m);
void bind_smo(nanobind::module_& m);
void bind_softmax_dual(nanobind::module_& m);
void bind_strings(nanobind::module_& m);
void bind_delimited(nanobind::module_& m);
void bind_svmlight(nanobind::module_& m);
void bind_sweep(nanobind::module_& m);

}  // namespace separatrix

// The table of a topic for the instruction set that all loops use (SEPARATRIX_TABLE declares the functions).
#if defined(SEPARATRIX_X86_SETS)
#define SEPARATRIX_CHOSEN(function) chosen_table(baseline::function, v3::function, v4::function)
#else
#define SEPARATRIX_CHOSEN(function) baseline::function()
#endif
