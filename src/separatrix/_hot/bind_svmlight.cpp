// Binds the reader of LIBSVM text.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "svmlight.hpp"

namespace nb = nanobind;
using namespace separatrix;

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void separatrix::bind_svmlight(nb::module_& m) {
    m.def("count_svmlight", [](const Vector<const char>& text) {
        const nb::gil_scoped_release release;
        const auto [rows, values] = count_svmlight(text.data(), static_cast<std::int64_t>(text.shape(0)));
        return std::tuple(rows, values);
    });
    // Returns rows, values, lines, queries, smallest and largest index, the error and its place in the text.
    m.def("parse_svmlight", [](const Vector<const char>& text, const Vector<double>& labels,
                               const Vector<std::int64_t>& ends, const Vector<std::int32_t>& indices,
                               const Vector<double>& values) {
        const nb::gil_scoped_release release;
        const auto done = parse_svmlight(text.data(), static_cast<std::int64_t>(text.shape(0)),
                                         {labels.data(), ends.data(), indices.data(), values.data()});
        const std::int64_t place = done.where ? done.where - text.data() : -1;
        return std::tuple(done.rows, done.values, done.lines, done.queries, done.smallest, done.largest,
                          static_cast<int>(done.error), place);
    });
}
