// The parts of the Python module, one per family of loops, and what they share: arrays, and the kernel set.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "kernels.hpp"

namespace separatrix {

namespace nb = nanobind;
using namespace nb::literals;

// Arrays whose values lie one after the other, and matrices of any strides.
template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T, class... Kind>
T* pointer(const std::optional<nb::ndarray<T, Kind...>>& array) { return array ? array->data() : nullptr; }

inline double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const KernelSet& chosen_kernels();

template <class Table>
const Table& chosen_table(const Table& (*baseline)(), const Table& (*v3)(), const Table& (*v4)()) {
    const std::string_view name = chosen_kernels().name;
    return (name == "v4" ? v4 : name == "v3" ? v3 : baseline)();
}

void bind_box_dual(nb::module_& m);
void bind_coordinate(nb::module_& m);
void bind_gram(nb::module_& m);
void bind_machine_sums(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_crammer_singer(nb::module_& m);
void bind_sgd(nb::module_& m);
void bind_small_logit(nb::module_& m);
void bind_small_passes(nb::module_& m);
void bind_small_smo(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_softmax_dual(nb::module_& m);
void bind_strings(nb::module_& m);
void bind_delimited(nb::module_& m);
void bind_svmlight(nb::module_& m);
void bind_sweep(nb::module_& m);

}  // namespace separatrix

// The table of a topic for the instruction set that all loops use (SEPARATRIX_TABLE declares the functions).
#if defined(SEPARATRIX_X86_SETS)
#define SEPARATRIX_CHOSEN(function) chosen_table(baseline::function, v3::function, v4::function)
#else
#define SEPARATRIX_CHOSEN(function) baseline::function()
#endif
