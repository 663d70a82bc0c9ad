// Texts as numbers: hashes of them, and codes in the order in which different ones first appear.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace separatrix {

// Eight bytes of text as a number, the first byte lowest on most machines; of fewer the rest are zeros. `readable`:
// how many bytes may be touched, if more than the text has.
inline std::uint64_t text_word(const char* p, std::size_t size, std::size_t readable) {
    std::uint64_t word = 0;
    if (size >= 8 || (readable >= 8 && size > 0 && std::endian::native == std::endian::little)) {
        std::memcpy(&word, p, 8);
        return size >= 8 ? word : word & ((std::uint64_t{1} << 8 * size) - 1);
    }
    for (std::size_t k = 0; k < size; ++k)
        word |= static_cast<std::uint64_t>(static_cast<unsigned char>(p[k])) << 8 * k;
    return word;
}

// A hash of which all bits depend on all bits of the text: products of 64-bit numbers, folded.
inline std::uint64_t text_hash(std::string_view text, const char* readable_end) {
    __extension__ using Wide = unsigned __int128;
    constexpr std::uint64_t first = 0x9e3779b97f4a7c15ULL, second = 0xd6e8feb86659fd93ULL;
    const auto folded = [](std::uint64_t a, std::uint64_t b) {
        const Wide product = static_cast<Wide>(a) * b;
        return a ^ b ^ static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    };
    const char* p = text.data();
    std::size_t size = text.size();
    std::uint64_t state = size ^ first;
    for (; size > 16; p += 16, size -= 16) state = folded(text_word(p, 8, 8) ^ state, text_word(p + 8, 8, 8) ^ second);
    const std::uint64_t head = text_word(p, size, static_cast<std::size_t>(readable_end - p));
    const std::uint64_t tail = size > 8 ? text_word(p + size - 8, 8, 8) : 0;  // overlaps the head, as all sizes differ
    return folded(folded(head ^ state, tail ^ second), first);
}

class TextCodes {
public:
    std::int32_t code(std::string_view text, const char* readable_end) {
        const std::uint64_t key = text_hash(text, readable_end);
        std::size_t at = key & mask_;
        for (; table_[at].code >= 0; at = (at + 1) & mask_)
            if (table_[at].key == key && text == this->text(table_[at].code)) return table_[at].code;
        const auto fresh = static_cast<std::int32_t>(ends_.size() - 1);
        bytes_ += text;
        ends_.push_back(static_cast<std::int32_t>(bytes_.size()));
        table_[at] = {key, fresh};
        if (2 * ends_.size() > mask_) grow();
        return fresh;
    }

    // All texts one after the other, and where each of them begins and ends.
    const std::string& bytes() const { return bytes_; }
    const std::vector<std::int32_t>& ends() const { return ends_; }

private:
    struct Place {
        std::uint64_t key = 0;
        std::int32_t code = -1;  // -1: free
    };

    std::string_view text(std::int32_t code) const {
        const auto begin = static_cast<std::size_t>(ends_[code]);
        return std::string_view(bytes_).substr(begin, static_cast<std::size_t>(ends_[code + 1]) - begin);
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
    std::string bytes_;
    std::vector<std::int32_t> ends_ = {0};
};

}  // namespace separatrix
