// LIBSVM / SVMlight text: "label [qid:q] index:value … [# comment]", one sample per line.
//
// A block of whole lines is read twice. count() bounds rows and values, so that the caller allocates once and
// parse() writes within those bounds whatever the bytes are: a row takes a line break, a value takes a colon.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

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
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool ends_word(const char* p, const char* end) {
    return p == end || *p == '\n' || *p == '#' || is_blank(*p);
}

// What the short way below cannot read exactly: many digits, large exponents, nan, inf.
inline const char* parse_any(const char* p, const char* end, double& value) {
    const char* first = p != end && *p == '+' ? p + 1 : p;
#if defined(__cpp_lib_to_chars)
    const auto [stop, code] = std::from_chars(first, end, value);
    if (code == std::errc::result_out_of_range) {
        const char* letter = std::find_if(first, stop, [](char c) { return c == 'e' || c == 'E'; });
        if (stop - letter < 2 || letter[1] != '-') return nullptr;
        value = 0;  // too small for a double, and the nearest one is 0
        return stop;
    }
    return code == std::errc() ? stop : nullptr;
#else
    const char* last = first;
    while (!ends_word(last, end) && *last != ':') ++last;
    const std::string word(first, last);
    char* stop = nullptr;
    value = std::strtod(word.c_str(), &stop);
    return stop == word.c_str() ? nullptr : first + (stop - word.c_str());
#endif
}

// A decimal number, correctly rounded; null if there is none. m·10^e is exact up to rounding once where m has at
// most 53 bits and |e| ≤ 22 (W. Clinger, How to read floating point numbers accurately, 1990).
inline const char* parse_number(const char* p, const char* end, double& value) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* start = p;
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    std::uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    for (; p != end && is_digit(*p); ++p, ++digits) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p - '0');
    if (p != end && *p == '.')
        for (++p; p != end && is_digit(*p); ++p, ++digits, --exponent)
            mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p - '0');
    if (digits == 0 || digits > 19) return parse_any(start, end, value);
    if (p != end && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        const bool below = q != end && *q == '-';
        if (q != end && (*q == '-' || *q == '+')) ++q;
        if (q == end || !is_digit(*q)) return nullptr;
        int power = 0;
        for (; q != end && is_digit(*q); ++q) power = std::min(10 * power + (*q - '0'), 100000);
        exponent += below ? -power : power;
        p = q;
    }
    if (mantissa >> 53 || exponent < -22 || exponent > 22) return parse_any(start, end, value);
    const auto whole = static_cast<double>(mantissa);
    const double size = exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent];
    value = negative ? -size : size;
    return p;
}

}  // namespace svmlight

// Parses whole lines; stops at the first that is wrong, with all rows before it in `out`.
inline SvmlightOutcome parse_svmlight(const char* text, std::int64_t length, const SvmlightBlock& out) {
    using namespace svmlight;
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
