// Delimited text without quotation marks: some columns are numbers, one may hold labels, others are passed over.
//
// What is not a finite number, or a line with another count of values, is not explained here: the caller has a
// slower parser that knows about missing values and messages.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "decimal.hpp"

namespace separatrix {

// Of a column of the file: where its numbers go, or one of these.
constexpr std::int32_t delimited_skip = -1, delimited_label = -2;

struct DelimitedBlock {
    double* values;  // row by row, `features` each
    std::int64_t rows, features;
    char* labels;        // one after the other, at most as long as the text
    std::int32_t* ends;  // of each row's label; row 0 begins at 0
};

// Parses whole lines into all rows of `out`. Returns whether they are just as many and all are as they should be.
inline bool parse_delimited(const char* text, std::int64_t length, char delimiter, const std::int32_t* places,
                            std::int64_t columns, const DelimitedBlock& out) {
    const char* p = text;
    const char* const end = text + length;
    std::int64_t row = 0;
    char* label = out.labels;
    const auto ends_value = [&](const char* q, bool last) {
        if (q == end) return last;
        if (last) return *q == '\n' || (*q == '\r' && q + 1 != end && q[1] == '\n');
        return *q == delimiter;
    };
    while (p != end) {
        if (row == out.rows) return false;
        for (std::int64_t k = 0; k < columns; ++k) {
            const bool last = k + 1 == columns;
            if (places[k] >= 0) {
                double value;
                p = decimal::parse_number(p, end, value);
                if (!p || !std::isfinite(value)) return false;
                out.values[row * out.features + places[k]] = value;
            } else {
                const char* word = p;
                while (p != end && *p != delimiter && *p != '\n' && *p != '\r') ++p;
                if (places[k] == delimited_label) {
                    const auto size = static_cast<std::size_t>(p - word);
                    std::memcpy(label, word, size);
                    label += size;
                    out.ends[row] = static_cast<std::int32_t>(label - out.labels);
                }
            }
            if (!ends_value(p, last)) return false;
            if (!last) ++p;
        }
        if (p != end) p += *p == '\r' ? 2 : 1;
        ++row;
    }
    return row == out.rows;
}

}  // namespace separatrix
