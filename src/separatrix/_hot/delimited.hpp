// Delimited text (CSV) whose values are numbers, but for one column of labels: rows of a matrix, and codes.
//
// This is the quick reader of plain files. It stops at what needs a closer look (a row of another length, a
// quotation mark within a value, a label that is missing), and marks columns that hold something else than numbers;
// the caller then gives the same text to a reader that knows all forms.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decimal.hpp"

namespace separatrix {

struct DelimitedLayout {
    static constexpr std::int32_t skipped = -1, label = -2;
    char delimiter, quote;              // quote 0: there is none
    const std::int32_t* slots;          // of each column of the text: its place in a row of the matrix, or the above
    std::int64_t columns, width;        // of the text, of the matrix
    std::vector<std::string> missing;   // spellings of "no value here"
};

struct DelimitedRows {
    double* values;       // rows × width, NaN where a value is missing
    std::int32_t* codes;  // of each row: the number of its label in `labels` of the outcome
    std::uint8_t* texts;  // of each column: set to 1 if a value is no number
};

struct DelimitedOutcome {
    std::int64_t rows = 0;
    bool plain = true;  // false: the text needs a closer look
    std::vector<std::pair<std::int64_t, std::int64_t>> labels;  // where in the text each begins and ends
};

// Lines that end in \n, \r\n or \r: no more rows than these.
inline std::int64_t count_lines(const char* text, std::int64_t length) {
    std::int64_t lines = length > 0;
    if (length > 1 && !std::memchr(text, '\r', static_cast<std::size_t>(length))) {
        for (std::int64_t k = 0; k < length - 1;) {  // counts in bytes, as wide as registers are
            std::uint8_t part = 0;
            for (const std::int64_t stop = std::min(k + 255, length - 1); k < stop; ++k) part += text[k] == '\n';
            lines += part;
        }
        return lines;
    }
    for (std::int64_t k = 0; k + 1 < length; ++k)
        lines += text[k] == '\n' || (text[k] == '\r' && text[k + 1] != '\n');
    return lines;
}

// Tells whether quoted values certainly begin and end within their lines. Quotation marks must come in pairs in one
// line, the first of a pair at the beginning of a value (or after a mark: a doubled one), the second at its end.
// Anything else is left to a parser.
inline bool quotes_within_lines(const char* text, std::int64_t length, char quote, char delimiter) {
    const auto is_edge = [=](char c) { return c == quote || c == delimiter || c == '\n' || c == '\r'; };
    const char* const end = text + length;
    const char* p = text;
    while (p != end && (p = static_cast<const char*>(std::memchr(p, quote, static_cast<std::size_t>(end - p))))) {
        if (p != text && !is_edge(p[-1])) return false;
        for (++p; p != end && *p != quote;)
            if (*p == '\n' || *p++ == '\r') return false;
        if (p == end || ++p == end || !is_edge(*p)) return false;
    }
    return true;
}

class DelimitedReader {
public:
    DelimitedReader(const char* text, std::int64_t length, const DelimitedLayout& layout, const DelimitedRows& out)
        : text_(text), end_(text + length), layout_(layout), out_(out) {}

    DelimitedOutcome read() {
        const char* p = text_;
        while (p != end_ && done_.plain) {
            if (*p == '\n' || *p == '\r')
                ++p;
            else
                p = row(p);
        }
        return std::move(done_);
    }

private:
    bool ends_value(const char* p) const {
        return p == end_ || *p == layout_.delimiter || *p == '\n' || *p == '\r';
    }
    bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != layout_.delimiter; }

    const char* row(const char* p) {
        double* values = out_.values + done_.rows * layout_.width;
        for (std::int64_t column = 0;; ++p) {
            const std::int32_t slot = layout_.slots[column];
            p = slot >= 0 ? number(p, values[slot], out_.texts[column]) : word(p, slot == DelimitedLayout::label);
            ++column;
            if (!done_.plain) return p;
            const bool last = p == end_ || *p != layout_.delimiter;
            if (last != (column == layout_.columns)) done_.plain = false;
            if (last || !done_.plain) break;
        }
        done_.rows += done_.plain;
        return p;
    }

    const char* number(const char* p, double& value, std::uint8_t& text) {
        const char* begin = p;
        while (p != end_ && is_blank(*p)) ++p;
        p = decimal::parse_number(p, end_, value);
        if (p && p != end_ && *p == layout_.delimiter && std::isfinite(value)) return p;
        if (p) {
            while (p != end_ && is_blank(*p)) ++p;
            if (ends_value(p) && std::isfinite(value)) return p;
        }
        const bool is_number = p && ends_value(p);  // an infinite one, or nan
        for (p = begin; !ends_value(p);) ++p;
        value = std::numeric_limits<double>::quiet_NaN();
        if (is_missing(trimmed(begin, p))) return p;
        if (is_number)
            done_.plain = false;
        else
            text = 1;
        return p;
    }

    const char* word(const char* p, bool is_label) {
        const char *begin = p, *last;
        const bool quoted = layout_.quote != 0 && p != end_ && *p == layout_.quote;
        if (quoted) {
            const void* mark = std::memchr(++begin, layout_.quote, static_cast<std::size_t>(end_ - begin));
            last = mark ? static_cast<const char*>(mark) : end_;
            p = mark ? last + 1 : end_;
            if (!mark || !ends_value(p)) done_.plain = false;
        } else {
            while (!ends_value(p)) ++p;
            last = p;
        }
        if (!is_label || !done_.plain) return p;
        const std::string_view label(begin, static_cast<std::size_t>(last - begin));
        if (trimmed(begin, last).empty() || (!quoted && is_missing(label))) {
            done_.plain = false;
            return p;
        }
        out_.codes[done_.rows] = code(label);
        return p;
    }

    // The number of a label. Most rows have one of a few, which are found without hashing.
    std::int32_t code(std::string_view label) {
        auto& [known, number] = recent_[(label.size() + static_cast<unsigned char>(label.back())) % recent_.size()];
        if (label == known) return number;
        const auto [found, fresh] = known_.try_emplace(label, static_cast<std::int32_t>(done_.labels.size()));
        if (fresh) done_.labels.emplace_back(label.data() - text_, label.data() + label.size() - text_);
        known = label, number = found->second;
        return number;
    }

    static std::string_view trimmed(const char* begin, const char* end) {
        while (begin != end && (*begin == ' ' || *begin == '\t')) ++begin;
        while (begin != end && (end[-1] == ' ' || end[-1] == '\t')) --end;
        return {begin, static_cast<std::size_t>(end - begin)};
    }

    bool is_missing(std::string_view value) const {
        for (const std::string& mark : layout_.missing)
            if (value == mark) return true;
        return false;
    }

    const char *text_, *end_;
    const DelimitedLayout& layout_;
    const DelimitedRows& out_;
    DelimitedOutcome done_;
    std::unordered_map<std::string_view, std::int32_t> known_;
    std::array<std::pair<std::string_view, std::int32_t>, 32> recent_{};
};

}  // namespace separatrix
