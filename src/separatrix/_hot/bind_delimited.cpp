// Binds the parser of delimited numbers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings.hpp"
#include "delimited.hpp"

namespace nb = nanobind;
using namespace separatrix;

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void separatrix::bind_delimited(nb::module_& m) {
    m.def("parse_delimited", [](const Vector<const char>& text, char delimiter, const Vector<const std::int32_t>& places,
                                const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& values,
                                const Vector<char>& labels, const Vector<std::int32_t>& ends) {
        const nb::gil_scoped_release release;
        return parse_delimited(text.data(), static_cast<std::int64_t>(text.shape(0)), delimiter, places.data(),
                               static_cast<std::int64_t>(places.shape(0)),
                               {values.data(), static_cast<std::int64_t>(values.shape(0)),
                                static_cast<std::int64_t>(values.shape(1)), labels.data(), ends.data()});
    });
}
