// The parts of the Python module, one per family of loops, and the kernel set they all use.
#pragma once

#include <nanobind/nanobind.h>

namespace separatrix {

struct KernelSet;

const KernelSet& chosen_kernels();

void bind_box_dual(nanobind::module_& m);
void bind_coordinate(nanobind::module_& m);
void bind_machine_sums(nanobind::module_& m);
void bind_neighbors(nanobind::module_& m);
void bind_crammer_singer(nanobind::module_& m);
void bind_sgd(nanobind::module_& m);
void bind_small_smo(nanobind::module_& m);
void bind_smo(nanobind::module_& m);
void bind_softmax_dual(nanobind::module_& m);
void bind_strings(nanobind::module_& m);
void bind_svmlight(nanobind::module_& m);
void bind_sweep(nanobind::module_& m);

}  // namespace separatrix
