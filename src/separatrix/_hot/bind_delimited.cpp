// Binds the quick reader of delimited text.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.hpp"
#include "delimited.hpp"

namespace nb = nanobind;
using namespace separatrix;

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Columns = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
DelimitedColumns<T> columns(const Columns<T>& array) {
    return {array.data(), array.stride(0), array.stride(1)};
}

}  // namespace

void separatrix::bind_delimited(nb::module_& m) {
    m.def("count_lines", [](const Vector<const char>& text) {
        const nb::gil_scoped_release release;
        return count_lines(text.data(), static_cast<std::int64_t>(text.shape(0)));
    });
    m.def("quotes_within_lines", [](const Vector<const char>& text, int quote, int delimiter) {
        const nb::gil_scoped_release release;
        return quotes_within_lines(text.data(), static_cast<std::int64_t>(text.shape(0)), static_cast<char>(quote),
                                   static_cast<char>(delimiter));
    });
    // Returns the number of rows, whether the text was plain, and of each column of texts the different ones: where
    // they begin and end (int32), and all of them, both as bytes.
    m.def("parse_delimited", [](const Vector<const char>& text, const std::pair<int, int>& marks,
                                const std::vector<std::string>& missing, const Vector<const std::int32_t>& slots,
                                const Columns<double>& values, const Columns<std::int32_t>& codes,
                                const Vector<std::uint8_t>& texts) {
        DelimitedOutcome done;
        {
            const nb::gil_scoped_release release;
            const DelimitedLayout layout{static_cast<char>(marks.first),
                                         static_cast<char>(marks.second),
                                         slots.data(),
                                         static_cast<std::int64_t>(slots.shape(0)),
                                         static_cast<std::int64_t>(codes.shape(1)),
                                         missing};
            const DelimitedRows out{columns(values), columns(codes), texts.data()};
            done = DelimitedReader(text.data(), static_cast<std::int64_t>(text.shape(0)), layout, out).read();
        }
        std::vector<std::pair<nb::bytes, nb::bytes>> different;
        for (const TextCodes& column : done.texts) {
            const auto offsets = column.offsets();
            const auto bytes = column.bytes();
            different.emplace_back(nb::bytes(offsets.data(), offsets.size() * sizeof offsets[0]),
                                   nb::bytes(bytes.data(), bytes.size()));
        }
        return std::tuple(done.rows, done.plain, std::move(different));
    });
}
