// Delimited text (CSV): numbers as columns or rows, texts one after the other as Arrow holds them, labels as codes.
//
// This is the quick reader of plain files. It stops at what needs a closer look (a row of another length, a
// quotation mark that does not end its value, an infinite number), and marks columns of numbers that hold something
// else; the caller then gives the same text to a reader that knows all forms.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decimal.hpp"
#include "text_codes.hpp"
#include "text_window.hpp"

namespace separatrix {

struct DelimitedLayout {
    static constexpr std::int32_t skipped = -1, label = -2, text = -3;
    char delimiter, quote;             // quote 0: there is none
    const std::int32_t* slots;         // of each column: place among the numbers; skipped; label; text, text - 1, …
    std::int64_t columns, texts;       // of the file; those that hold text
    std::vector<std::string> missing;  // spellings of "no value here"
    std::string filling;               // what is written for a missing text
    bool drop;                         // leave out rows with missing values
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
    DelimitedColumns<std::int32_t> ends;  // of each text: where it begins and, one row further, where it ends
    std::int32_t* codes;                  // of each label: its number among the different ones; -1: it is missing
    std::uint8_t* incomplete;             // of each row of the text, left out or not: set to 1 if a value is missing
    std::uint8_t* odd;                    // of each column of the file: set to 1 if a value should be a number
    std::int64_t room;                    // rows that all of these have room for
};

// The bytes of texts, one after the other, in memory that grows.
class TextBytes {
public:
    // Where byte `used` lies, with room for a window.
    char* room(std::size_t used) {
        if (used + TextWindow::width > capacity_) resize(2 * used + 2 * TextWindow::width);
        return bytes_.get() + used;
    }
    void resize(std::size_t capacity) {
        auto* const moved = static_cast<char*>(std::realloc(bytes_.get(), std::max<std::size_t>(capacity, 1)));
        if (!moved) throw std::bad_alloc();
        static_cast<void>(bytes_.release());  // realloc has freed it
        bytes_.reset(moved);
        capacity_ = capacity;
    }
    std::string_view between(std::size_t begin, std::size_t end) const { return {bytes_.get() + begin, end - begin}; }
    const char* readable_end() const { return bytes_.get() + capacity_; }
    char* release() { return bytes_.release(); }

private:
    struct Free {
        void operator()(char* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<char, Free> bytes_;
    std::size_t capacity_ = 0;
};

struct DelimitedOutcome {
    std::int64_t rows = 0, seen = 0, incomplete = 0;  // delivered; in the text; of these, those with missing values
    bool plain = true;                                // false: the text needs a closer look
    bool ascii = true;                                // false: some text may have other characters
    std::vector<TextBytes> texts;
    TextCodes labels;
};

// Lines that end in \n, \r\n or \r: no more rows than these.
inline std::int64_t count_lines(const char* text, std::int64_t length) {
    std::int64_t lines = length > 0;
    const bool returns = length > 1 && std::memchr(text, '\r', static_cast<std::size_t>(length));
    for (std::int64_t k = 0; k < length - 1;) {  // counts in bytes, as wide as registers are
        std::uint8_t part = 0;
        const std::int64_t stop = std::min(k + 255, length - 1);
        if (returns)
            for (; k < stop; ++k) part += (text[k] == '\n') | ((text[k] == '\r') & (text[k + 1] != '\n'));
        else
            for (; k < stop; ++k) part += text[k] == '\n';
        lines += part;
    }
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
        const std::int64_t share = length / std::max<std::int64_t>(layout.columns, 1);
        for (std::int64_t k = 0; k < layout.texts; ++k) {
            done_.texts[k].resize(static_cast<std::size_t>(share) + 2 * TextWindow::width);
            out_.ends.at(0, k) = 0;
        }
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
        for (std::int64_t k = 0; k < layout_.texts; ++k)
            done_.texts[k].resize(static_cast<std::size_t>(out_.ends.at(done_.rows, k)));
        return std::move(done_);
    }

private:
    bool ends_value(const char* p) const {
        return p == end_ || *p == layout_.delimiter || *p == '\n' || *p == '\r';
    }
    bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != layout_.delimiter; }
    bool is_quote(const char* p) const { return layout_.quote != 0 && p != end_ && *p == layout_.quote; }

    const char* row(const char* p) {
        if (done_.seen == out_.room) throw std::length_error("no room for all rows of the text");
        incomplete_ = false;
        for (std::int64_t column = 0;; ++p) {
            const std::int32_t slot = layout_.slots[column];
            p = slot >= 0 ? number(p, out_.values.at(done_.rows, slot), out_.odd[column]) : word(p, slot);
            ++column;
            if (!done_.plain) return p;
            const bool last = p == end_ || *p != layout_.delimiter;
            if (last != (column == layout_.columns)) done_.plain = false;
            if (!done_.plain) return p;
            if (last) break;
        }
        out_.incomplete[done_.seen++] = incomplete_;
        done_.incomplete += incomplete_;
        done_.rows += !(incomplete_ && layout_.drop);
        return p;
    }

    const char* number(const char* p, double& value, std::uint8_t& odd) {
        if (odd) return word(p, DelimitedLayout::skipped);  // one value that is none tells enough
        const char* const begin = p;
        std::size_t size = 0;
        const bool quoted = is_quote(p);
        if (quoted) ++p;
        while (p != end_ && is_blank(*p)) ++p;
        p = decimal::parse_number(p, end_, value);
        if (quoted) {
            if (p && is_quote(p) && ends_value(p + 1) && std::isfinite(value)) return p + 1;
            odd = 1;
            return quoted_value(begin + 1, spare_, size);
        }
        if (p && p != end_ && *p == layout_.delimiter && std::isfinite(value)) return p;
        if (p) {
            while (p != end_ && is_blank(*p)) ++p;
            if (ends_value(p) && std::isfinite(value)) return p;
        }
        const bool is_number = p && ends_value(p);  // an infinite one, or nan
        p = copied(begin, layout_.delimiter, spare_, size);
        value = std::numeric_limits<double>::quiet_NaN();
        if (is_missing(trimmed(begin, p)))
            incomplete_ = true;
        else if (is_number)
            done_.plain = false;
        else
            odd = 1;
        return p;
    }

    const char* word(const char* p, std::int32_t slot) {
        const std::int64_t column = DelimitedLayout::text - slot;
        TextBytes& bytes = column >= 0 ? done_.texts[column] : spare_;
        const std::size_t begin = column >= 0 ? static_cast<std::size_t>(out_.ends.at(done_.rows, column)) : 0;
        std::size_t end = begin;
        const bool quoted = is_quote(p);
        p = quoted ? quoted_value(p + 1, bytes, end) : copied(p, layout_.delimiter, bytes, end);
        if (slot == DelimitedLayout::skipped || !done_.plain) return p;
        const std::string_view text = bytes.between(begin, end);
        const bool missing = !quoted && is_missing(text);
        incomplete_ |= missing;
        if (column < 0) {
            out_.codes[done_.rows] = missing ? -1 : done_.labels.code(text, bytes.readable_end());
            return p;
        }
        if (missing) {
            end = begin;
            for (const char letter : layout_.filling) *bytes.room(end++) = letter;
        }
        out_.ends.at(done_.rows + 1, column) = static_cast<std::int32_t>(end);
        return p;
    }

    // Up to the mark that is not doubled, which must end the value; doubled ones are copied once.
    const char* quoted_value(const char* p, TextBytes& bytes, std::size_t& used) {
        for (;; ++p) {
            p = copied(p, layout_.quote, bytes, used);
            if (!is_quote(p)) break;  // a line end: lines may have been cut apart elsewhere
            if (!is_quote(++p)) {
                if (!ends_value(p)) break;
                return p;
            }
            *bytes.room(used++) = layout_.quote;
        }
        done_.plain = false;
        return end_;
    }

    // Copies what comes before the mark or a line end; returns where that is. What is written beyond `used` does not
    // count.
    const char* copied(const char* p, char mark, TextBytes& bytes, std::size_t& used) {
        while (static_cast<std::size_t>(end_ - p) >= TextWindow::width) {
            const std::size_t size = TextWindow::copy(p, bytes.room(used), mark, done_.ascii);
            used += size;
            p += size;
            if (size < TextWindow::width) return p;
        }
        for (; p != end_ && *p != mark && *p != '\n' && *p != '\r'; ++p) {
            *bytes.room(used++) = *p;
            done_.ascii &= static_cast<unsigned char>(*p) < 0x80;
        }
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
    TextBytes spare_;                         // of values that are not kept as texts
    bool incomplete_ = false;                 // has this row a missing value?
};

}  // namespace separatrix
