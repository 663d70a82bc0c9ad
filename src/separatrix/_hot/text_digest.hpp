// What a column of texts is like: whether most of them may be numbers, and whether many may be different.
//
// Different texts are counted by a sample of their hashes: all of them while they are few, then only those that end
// in so many zero bits that about half of the room is taken (P. Flajolet, On adaptive sampling, 1990). The standard
// error is about 1.2 / √4096, two percent; up to 4096 different texts the count is exact.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "decimal.hpp"
#include "text_codes.hpp"

namespace separatrix {

class TextDigest {
public:
    // Of a column with so many texts. Those that equal `passed` do not count; `share` of all different are many.
    TextDigest(std::int64_t count, std::string_view passed, double share)
        : ahead_(count), passed_(passed), many_(share * static_cast<double>(count)) {
        for (const unsigned char first : std::string_view("+-.0123456789iInN")) begins_number_[first] = true;
        for (unsigned char first = 0; first <= ' '; ++first) begins_blank_[first] = true;
        for (const unsigned char first : {0xc2, 0xe1, 0xe2, 0xe3}) begins_blank_[first] = true;
    }

    // Texts one after the other: text k lies between ends[k] and ends[k + 1].
    void add(const std::int32_t* ends, std::int64_t count, const char* bytes, std::size_t size) {
        for (std::int64_t k = 0; k < count && (most_numbers() || many_different());) {
            const std::int64_t stop = std::min(k + 1024, count);
            ahead_ -= stop - k;
            for (; k < stop; ++k) {
                const std::string_view text(bytes + ends[k], static_cast<std::size_t>(ends[k + 1] - ends[k]));
                if (text == passed_) continue;
                ++total_;
                numbers_ += may_be_number(text);
                keep(text_hash(text, bytes + size));
            }
        }
    }

    // Whether that may be so, whatever the texts are that were not looked at.
    bool most_numbers() const { return 2 * numbers_ + ahead_ > total_; }
    bool many_different() const { return static_cast<double>((kept_ << shift_) + ahead_) > many_; }

private:
    static constexpr std::size_t most_ = 4096;

    // False only if the text, stripped of blanks of any alphabet, is certainly no number.
    bool may_be_number(std::string_view text) const {
        if (text.empty()) return false;
        if (!begins_number_[static_cast<unsigned char>(text[0])]) return may_be_blank(text);
        double value;
        const char* const end = text.data() + text.size();
        const char* const stop = decimal::parse_number(text.data(), end, value);
        return stop && (stop == end || may_be_blank({stop, static_cast<std::size_t>(end - stop)}));
    }

    // Whether a text may begin with a blank: those beyond ASCII are U+0085, U+00A0, U+1680, U+2000 to 205F, U+3000.
    bool may_be_blank(std::string_view text) const {
        if (!begins_blank_[static_cast<unsigned char>(text[0])]) return false;
        const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0; };
        return byte(0) < 0xe1 || (byte(0) == 0xe1 && byte(1) == 0x9a) || (byte(0) == 0xe2 && byte(1) <= 0x81) ||
               (byte(0) == 0xe3 && byte(1) == 0x80 && byte(2) == 0x80);
    }

    void keep(std::uint64_t hash) {
        hash += hash == 0;  // 0: a free place
        if (hash & ((std::uint64_t{1} << shift_) - 1)) return;
        if (!insert(hash) || 2 * static_cast<std::size_t>(kept_) <= table_.size()) return;
        if (table_.size() < 2 * most_) {
            rebuild(4 * table_.size());
        } else {
            ++shift_;
            rebuild(table_.size());
        }
    }

    bool insert(std::uint64_t hash) {
        const std::size_t mask = table_.size() - 1;
        for (std::size_t at = hash >> 32 & mask;; at = (at + 1) & mask) {
            if (table_[at] == hash) return false;
            if (table_[at] != 0) continue;
            table_[at] = hash;
            ++kept_;
            return true;
        }
    }

    void rebuild(std::size_t size) {
        const auto before = std::exchange(table_, std::vector<std::uint64_t>(size));
        kept_ = 0;
        for (const std::uint64_t hash : before)
            if (hash != 0 && !(hash & ((std::uint64_t{1} << shift_) - 1))) insert(hash);
    }

    std::int64_t ahead_, total_ = 0, numbers_ = 0, kept_ = 0;
    std::string_view passed_;
    double many_;
    std::array<bool, 256> begins_number_{}, begins_blank_{};
    std::vector<std::uint64_t> table_ = std::vector<std::uint64_t>(128);
    int shift_ = 0;
};

}  // namespace separatrix
