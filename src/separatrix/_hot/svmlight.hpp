// LIBSVM / SVMlight text: "label [qid:q] index:value … [# comment]", one sample per line.
//
// A block of whole lines is read twice. count() bounds rows and values, so that the caller allocates once and
// parse() writes within those bounds whatever the bytes are: a row takes a line break, a value takes a colon.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "decimal.hpp"

namespace separatrix {

struct SvmlightBounds {
    std::int64_t rows, values;
};

struct SvmlightBlock {
    double* labels;
    std::int64_t* ends;  // of each row in indices and values
    std::int32_t* indices;
    double* values;
};

enum class SvmlightError { none, label, several_labels, index, order, colon, value, large_index };

struct SvmlightOutcome {
    std::int64_t rows = 0, values = 0, lines = 0, queries = 0;
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), largest = -1;
    SvmlightError error = SvmlightError::none;
    const char* where = nullptr;  // the word that is wrong, in line `lines` (counted from 1)
};

inline SvmlightBounds count_svmlight(const char* text, std::int64_t length) {
    SvmlightBounds bounds{1, 0};
    for (std::int64_t k = 0; k < length; ++k) {
        bounds.rows += text[k] == '\n';
        bounds.values += text[k] == ':';
    }
    return bounds;
}

namespace svmlight {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
inline bool ends_word(const char* p, const char* end) {
    return p == end || *p == '\n' || *p == '#' || is_blank(*p);
}

}  // namespace svmlight

// Parses whole lines; stops at the first that is wrong, with all rows before it in `out`.
inline SvmlightOutcome parse_svmlight(const char* text, std::int64_t length, const SvmlightBlock& out) {
    using namespace svmlight;
    using decimal::is_digit, decimal::parse_number;
    SvmlightOutcome done;
    const char* p = text;
    const char* const end = text + length;
    const auto stop = [&done](SvmlightError error, const char* where) {
        done.error = error;
        done.where = where;
        return done;
    };
    while (p != end) {
        ++done.lines;
        while (p != end && is_blank(*p)) ++p;
        if (p != end && *p != '\n' && *p != '#') {
            const char* word = p;
            double label;
            p = parse_number(p, end, label);
            if (!p || !std::isfinite(label)) return stop(SvmlightError::label, word);
            if (p != end && *p == ',') return stop(SvmlightError::several_labels, word);
            if (!ends_word(p, end)) return stop(SvmlightError::label, word);
            std::int64_t before = -1, stored = done.values;
            for (;;) {
                while (p != end && is_blank(*p)) ++p;
                if (p == end || *p == '\n' || *p == '#') break;
                word = p;
                if (end - p >= 4 && std::memcmp(p, "qid:", 4) == 0) {
                    while (!ends_word(p, end)) ++p;
                    ++done.queries;
                    continue;
                }
                std::int64_t index = 0;
                for (; p != end && is_digit(*p) && index <= std::numeric_limits<std::int32_t>::max(); ++p)
                    index = 10 * index + (*p - '0');
                if (index > std::numeric_limits<std::int32_t>::max()) return stop(SvmlightError::large_index, word);
                if (p == word) return stop(SvmlightError::index, word);
                if (p == end || *p != ':') return stop(SvmlightError::colon, word);
                if (index <= before) return stop(SvmlightError::order, word);
                double value;
                p = parse_number(p + 1, end, value);
                if (!p || !ends_word(p, end) || !std::isfinite(value)) return stop(SvmlightError::value, word);
                if (before < 0) done.smallest = std::min(done.smallest, index);
                before = index;
                out.indices[stored] = static_cast<std::int32_t>(index);
                out.values[stored++] = value;
            }
            done.largest = std::max(done.largest, before);
            out.labels[done.rows] = label;
            out.ends[done.rows++] = done.values = stored;
        }
        if (p != end && *p == '#') {
            const void* next = std::memchr(p, '\n', static_cast<std::size_t>(end - p));
            p = next ? static_cast<const char*>(next) : end;
        }
        if (p != end) ++p;
    }
    return done;
}

}  // namespace separatrix
