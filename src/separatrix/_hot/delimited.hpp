// Delimited text (CSV): numbers as a matrix, texts as codes, each column of them with the different texts that it has.
//
// This is the quick reader of plain files. It stops at what needs a closer look (a row of another length, a
// quotation mark that does not end its value, an infinite number), and marks columns of numbers that hold something
// else; the caller then gives the same text to a reader that knows all forms.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "decimal.hpp"
#include "text_codes.hpp"

namespace separatrix {

struct DelimitedLayout {
    static constexpr std::int32_t skipped = -1, text = -2;
    char delimiter, quote;              // quote 0: there is none
    const std::int32_t* slots;          // of each column: its place among the numbers; skipped; text, text - 1, …
    std::int64_t columns, texts;        // of the file; those that hold text
    std::vector<std::string> missing;   // spellings of "no value here"
};

// Rows and columns, either of them one after the other in memory.
template <class T>
struct DelimitedColumns {
    T* first;
    std::int64_t row_step, column_step;
    T& at(std::int64_t row, std::int64_t column) const { return first[row * row_step + column * column_step]; }
};

struct DelimitedRows {
    DelimitedColumns<double> values;      // NaN where a value is missing
    DelimitedColumns<std::int32_t> codes;  // of each text: its number among those of its column; -1: it is missing
    std::uint8_t* texts;                  // of each column of the file: set to 1 if a value should be a number
};

struct DelimitedOutcome {
    std::int64_t rows = 0;
    bool plain = true;  // false: the text needs a closer look
    std::vector<TextCodes> texts;
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
        : text_(text), end_(text + length), layout_(layout), out_(out) {
        done_.texts.resize(static_cast<std::size_t>(layout.texts));
        for (const std::string& mark : layout.missing)
            may_be_missing_[mark.empty() ? 0 : static_cast<unsigned char>(mark[0])] = true;
    }

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
    bool is_quote(const char* p) const { return layout_.quote != 0 && p != end_ && *p == layout_.quote; }

    const char* row(const char* p) {
        for (std::int64_t column = 0;; ++p) {
            const std::int32_t slot = layout_.slots[column];
            p = slot >= 0 ? number(p, out_.values.at(done_.rows, slot), out_.texts[column]) : word(p, slot);
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
        TextHash ignored;
        const bool quoted = is_quote(p);
        if (quoted) ++p;
        while (p != end_ && is_blank(*p)) ++p;
        p = decimal::parse_number(p, end_, value);
        if (quoted) {
            if (p && is_quote(p) && ends_value(p + 1) && std::isfinite(value)) return p + 1;
            text = 1;
            return value_end(begin, ignored);
        }
        if (p && p != end_ && *p == layout_.delimiter && std::isfinite(value)) return p;
        if (p) {
            while (p != end_ && is_blank(*p)) ++p;
            if (ends_value(p) && std::isfinite(value)) return p;
        }
        const bool is_number = p && ends_value(p);  // an infinite one, or nan
        p = value_end(begin, ignored);
        value = std::numeric_limits<double>::quiet_NaN();
        if (is_missing(trimmed(begin, p))) return p;
        if (is_number)
            done_.plain = false;
        else
            text = 1;
        return p;
    }

    const char* word(const char* p, std::int32_t slot) {
        if (is_quote(p)) return quoted_word(p + 1, slot);
        const char* const begin = p;
        TextHash hash;
        p = value_end(p, hash);
        if (slot <= DelimitedLayout::text) {
            const std::string_view text(begin, static_cast<std::size_t>(p - begin));
            const std::int32_t column = DelimitedLayout::text - slot;
            out_.codes.at(done_.rows, column) = is_missing(text) ? -1 : done_.texts[column].code(text, hash);
        }
        return p;
    }

    // Up to the mark that is not doubled; it must end the value.
    const char* quoted_word(const char* begin, std::int32_t slot) {
        const char* p = begin;
        bool doubled = false;
        for (;; doubled = true, p += 2) {
            p = static_cast<const char*>(std::memchr(p, layout_.quote, static_cast<std::size_t>(end_ - p)));
            if (!p || !is_quote(p + 1)) break;
        }
        const auto holds = [&](char c) { return std::memchr(begin, c, static_cast<std::size_t>(p - begin)); };
        if (!p || !ends_value(p + 1) || holds('\n') || holds('\r')) {  // lines may have been cut apart elsewhere
            done_.plain = false;
            return end_;
        }
        if (slot <= DelimitedLayout::text) {
            const std::int32_t column = DelimitedLayout::text - slot;
            std::string_view text(begin, static_cast<std::size_t>(p - begin));
            if (doubled) text = with_single_marks(text);
            out_.codes.at(done_.rows, column) = done_.texts[column].code(text, TextHash::of(text), doubled);
        }
        return p + 1;
    }

    std::string_view with_single_marks(std::string_view text) {
        single_.clear();
        for (std::size_t k = 0; k < text.size(); ++k) {
            single_ += text[k];
            k += text[k] == layout_.quote;
        }
        return single_;
    }

    // The first separator or line end from here on, eight bytes at a time where the first of them has the lowest bits.
    const char* value_end(const char* p, TextHash& hash) const {
        if constexpr (std::endian::native == std::endian::little) {
            constexpr std::uint64_t ones = 0x0101010101010101ULL;
            const std::uint64_t delimiters = ones * static_cast<unsigned char>(layout_.delimiter);
            const auto zeros = [](std::uint64_t word) { return (word - ones) & ~word & 0x80 * ones; };
            for (; end_ - p >= 8; p += 8) {
                const std::uint64_t word = text_word(p, 8);
                const auto found = zeros(word ^ delimiters) | zeros(word ^ '\n' * ones) | zeros(word ^ '\r' * ones);
                if (found) {
                    const int size = std::countr_zero(found) / 8;
                    if (size) hash.add(word & ((std::uint64_t{1} << 8 * size) - 1));
                    return p + size;
                }
                hash.add(word);
            }
        }
        const char* const rest = p;
        while (!ends_value(p)) ++p;
        for (const char* q = rest; q < p; q += 8) hash.add(text_word(q, static_cast<std::size_t>(p - q)));
        return p;
    }

    static std::string_view trimmed(const char* begin, const char* end) {
        while (begin != end && (*begin == ' ' || *begin == '\t')) ++begin;
        while (begin != end && (end[-1] == ' ' || end[-1] == '\t')) --end;
        return {begin, static_cast<std::size_t>(end - begin)};
    }

    bool is_missing(std::string_view value) const {
        if (!may_be_missing_[value.empty() ? 0 : static_cast<unsigned char>(value[0])]) return false;
        for (const std::string& mark : layout_.missing)
            if (value == mark) return true;
        return false;
    }

    const char *text_, *end_;
    const DelimitedLayout& layout_;
    const DelimitedRows& out_;
    DelimitedOutcome done_;
    std::array<bool, 256> may_be_missing_{};  // by the first character, 0 for none
    std::string single_;
};

}  // namespace separatrix
