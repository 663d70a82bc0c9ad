// Different texts, numbered in the order in which they first appear.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace separatrix {

// Eight bytes of text as a number, the first byte lowest on most machines; what lies beyond the end counts as zeros.
inline std::uint64_t text_word(const char* p, std::size_t size) {
    std::uint64_t word = 0;
    if (size >= 8)
        std::memcpy(&word, p, 8);
    else
        for (std::size_t k = 0; k < size; ++k) word |= static_cast<std::uint64_t>(static_cast<unsigned char>(p[k])) << 8 * k;
    return word;
}

// A hash that grows with the text, eight bytes at a time.
struct TextHash {
    std::uint64_t state = 0;

    void add(std::uint64_t word) {
        state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
        state ^= state >> 32;
    }
    static TextHash of(std::string_view text) {
        TextHash hash;
        for (std::size_t k = 0; k < text.size(); k += 8) hash.add(text_word(text.data() + k, text.size() - k));
        return hash;
    }
};

class TextCodes {
public:
    // The number of a text. It must stay where it is, unless `passing` says that it will not: then it is copied.
    std::int32_t code(std::string_view text, TextHash hash, bool passing = false) {
        const std::uint64_t key = hash.state;
        std::size_t at = key & mask_;
        for (; table_[at].code >= 0; at = (at + 1) & mask_)
            if (table_[at].key == key && same(table_[at].text, text)) return table_[at].code;
        const auto fresh = static_cast<std::int32_t>(texts_.size());
        texts_.push_back(passing ? std::string_view(copies_.emplace_back(text)) : text);
        table_[at] = {key, texts_.back(), fresh};
        if (2 * texts_.size() > mask_) grow();
        return fresh;
    }

    // All texts one after the other, and where each of them begins and ends, as Arrow holds them.
    std::string bytes() const {
        std::string all;
        for (const std::string_view text : texts_) all += text;
        return all;
    }
    std::vector<std::int32_t> offsets() const {
        std::vector<std::int32_t> ends{0};
        ends.reserve(texts_.size() + 1);
        for (const std::string_view text : texts_) ends.push_back(ends.back() + static_cast<std::int32_t>(text.size()));
        return ends;
    }

private:
    struct Place {
        std::uint64_t key = 0;
        std::string_view text;
        std::int32_t code = -1;  // -1: free
    };

    // Most texts are so short that a call of memcmp would cost more than what it does.
    static bool same(std::string_view a, std::string_view b) {
        const std::size_t size = a.size();
        if (size != b.size()) return false;
        if (size < 8 || size > 32) return std::memcmp(a.data(), b.data(), size) == 0;
        const char *p = a.data(), *q = b.data(), *const last = p + size - 8;
        for (; p < last; p += 8, q += 8)
            if (text_word(p, 8) != text_word(q, 8)) return false;
        return text_word(last, 8) == text_word(b.data() + size - 8, 8);
    }

    void grow() {
        std::vector<Place> before(4 * table_.size());
        before.swap(table_);
        mask_ = table_.size() - 1;
        for (const Place& place : before) {
            if (place.code < 0) continue;
            std::size_t at = place.key & mask_;
            while (table_[at].code >= 0) at = (at + 1) & mask_;
            table_[at] = place;
        }
    }

    std::vector<Place> table_ = std::vector<Place>(64);
    std::size_t mask_ = 63;
    std::vector<std::string_view> texts_;
    std::deque<std::string> copies_;
};

}  // namespace separatrix
