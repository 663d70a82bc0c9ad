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

// The loops trust their arguments, and Python has checked what costs a look at every value. What can be told from
// the shapes is told here, so that a wrong call ends in an error and not in memory that belongs to others.
inline void expect(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}
template <class A>
void expect_room(const A& array, std::size_t least, const char* what) { expect(array.size() >= least, what); }
template <class A>
void expect_room(const std::optional<A>& array, std::size_t least, const char* what) {
    if (array) expect_room(*array, least, what);
}
// Compressed rows: their ends within the values and their places.
template <class Data, class Places>
void expect_csr(const Data& data, const Places& indices, const Places& indptr, std::size_t rows) {
    expect(indptr.size() > rows, "indptr: an end for every row is needed");
    const auto end = indptr.data()[rows];
    expect(indptr.data()[0] >= 0 && end >= 0, "indptr: no number may be negative");
    expect(static_cast<std::size_t>(end) <= data.size() && static_cast<std::size_t>(end) <= indices.size(),
           "indptr: more values than there are");
}

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
