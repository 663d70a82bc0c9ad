// Binds the quick reader of delimited text, and what tells columns of texts apart.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.hpp"
#include "delimited.hpp"
#include "text_digest.hpp"

using namespace separatrix;

namespace {

template <class T>
DelimitedColumns<T> columns(const Matrix<T>& array) {
    return {array.data(), array.stride(0), array.stride(1)};
}

// For how many rows there is room; an error if a column has none, or no place.
std::int64_t room(const Array<const std::int32_t>& slots, const Matrix<double>& values, const Matrix<std::int32_t>& ends,
                  const Array<std::int32_t>& codes, const Array<std::uint8_t>& incomplete,
                  const Array<std::uint8_t>& odd) {
    const auto numbers = static_cast<std::int64_t>(values.shape(1)), texts = static_cast<std::int64_t>(ends.shape(1));
    if (slots.size() == 0 || odd.size() < slots.size() || ends.shape(0) == 0)
        throw nb::value_error("no room for the columns");
    std::size_t rows = std::min(incomplete.size(), ends.shape(0) - 1);
    for (std::size_t k = 0; k < slots.size(); ++k) {
        const std::int32_t slot = slots.data()[k];
        if (slot >= numbers || DelimitedLayout::text - std::int64_t{slot} >= texts)
            throw nb::value_error("no room for the columns");
        if (slot >= 0) rows = std::min(rows, values.shape(0));
        if (slot == DelimitedLayout::label) rows = std::min(rows, codes.size());
    }
    return static_cast<std::int64_t>(rows);
}

// Bytes as an array that frees them.
nb::ndarray<nb::numpy, char, nb::ndim<1>> owned(TextBytes& bytes, std::int32_t size) {
    char* const first = bytes.release();
    return {first, {static_cast<std::size_t>(size)}, nb::capsule(first, [](void* p) noexcept { std::free(p); })};
}

}  // namespace

void separatrix::bind_delimited(nb::module_& m) {
    m.def("count_lines", [](const Array<const char>& text) {
        const nb::gil_scoped_release release;
        return count_lines(text.data(), static_cast<std::int64_t>(text.size()));
    });
    m.def("quotes_within_lines", [](const Array<const char>& text, int quote, int delimiter) {
        const nb::gil_scoped_release release;
        return quotes_within_lines(text.data(), static_cast<std::int64_t>(text.size()), static_cast<char>(quote),
                                   static_cast<char>(delimiter));
    });
    // Returns the numbers of rows (delivered, in the text, with missing values), whether the text was plain, whether
    // it was ASCII, the different labels (where they begin and end as int32, and all of them, both as bytes), and the
    // bytes of each column of texts.
    m.def("parse_delimited",
          [](const Array<const char>& text, const std::pair<int, int>& marks, const std::vector<std::string>& missing,
             const std::string& filling, bool drop, const Array<const std::int32_t>& slots,
             const Matrix<double>& values, const Matrix<std::int32_t>& ends, const Array<std::int32_t>& codes,
             const Array<std::uint8_t>& incomplete, const Array<std::uint8_t>& odd) {
              const std::int64_t most = room(slots, values, ends, codes, incomplete, odd);
              DelimitedOutcome done;
              {
                  const nb::gil_scoped_release release;
                  const DelimitedLayout layout{static_cast<char>(marks.first),
                                               static_cast<char>(marks.second),
                                               slots.data(),
                                               static_cast<std::int64_t>(slots.size()),
                                               static_cast<std::int64_t>(ends.shape(1)),
                                               missing,
                                               filling,
                                               drop};
                  const DelimitedRows out{columns(values),   columns(ends), codes.data(),
                                          incomplete.data(), odd.data(),    most};
                  done = DelimitedReader(text.data(), static_cast<std::int64_t>(text.size()), layout, out).read();
              }
              std::vector<nb::ndarray<nb::numpy, char, nb::ndim<1>>> texts;
              for (std::size_t k = 0; k < done.texts.size(); ++k)
                  texts.push_back(owned(done.texts[k], columns(ends).at(done.rows, static_cast<std::int64_t>(k))));
              const auto& places = done.labels.ends();
              const auto& bytes = done.labels.bytes();
              return std::tuple(std::tuple(done.rows, done.seen, done.incomplete), done.plain, done.ascii,
                                std::pair(nb::bytes(places.data(), places.size() * sizeof places[0]),
                                          nb::bytes(bytes.data(), bytes.size())),
                                std::move(texts));
          });
    // Takes chunks of a column, each where its texts begin and end, and their bytes. Tells whether most of those that
    // do not equal `passed` may be numbers, and whether more than this share of all may be different.
    m.def("text_doubts", [](const std::vector<std::pair<Array<const std::int32_t>, Array<const char>>>& chunks,
                            const std::string& passed, double share) {
        for (const auto& [ends, bytes] : chunks)
            expect(ends.size() > 0 && ends.data()[0] >= 0 &&
                       static_cast<std::size_t>(ends.data()[ends.size() - 1]) <= bytes.size(),
                   "texts must end within their bytes");
        const nb::gil_scoped_release release;
        std::int64_t count = 0;
        for (const auto& [ends, bytes] : chunks) count += static_cast<std::int64_t>(ends.size()) - 1;
        TextDigest digest(count, passed, share);
        for (const auto& [ends, bytes] : chunks)
            digest.add(ends.data(), static_cast<std::int64_t>(ends.size()) - 1, bytes.data(), bytes.size());
        return std::pair(digest.most_numbers(), digest.many_different());
    });
}
