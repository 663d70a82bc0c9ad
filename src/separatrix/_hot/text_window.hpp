// Copies text up to a mark or a line end, as many bytes at a time as all processors of a kind can.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace separatrix {

struct TextWindow {
#if defined(__SSE2__)
    static constexpr std::size_t width = 32;

    // Copies `width` bytes; returns how many come before the mark or a line end, at most all of them. `ascii` becomes
    // false if one of the bytes is beyond ASCII.
    static std::size_t copy(const char* from, char* to, char mark, bool& ascii) {
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), first);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), second);
        ascii &= _mm_movemask_epi8(_mm_or_si128(first, second)) == 0;
        const std::uint32_t found = ends(first, mark) | ends(second, mark) << 16;
        return static_cast<std::size_t>(std::countr_zero(found));
    }

private:
    static std::uint32_t ends(__m128i bytes, char mark) {
        const auto equal = [&](char byte) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)); };
        const __m128i found = _mm_or_si128(_mm_or_si128(equal('\n'), equal('\r')), equal(mark));
        return static_cast<std::uint32_t>(_mm_movemask_epi8(found));
    }
#else
    static constexpr std::size_t width = 8;

    static std::size_t copy(const char* from, char* to, char mark, bool& ascii) {
        std::memcpy(to, from, width);
        if constexpr (std::endian::native == std::endian::little) {
            constexpr std::uint64_t ones = 0x0101010101010101ULL, high_bits = 0x80 * ones;
            const auto zeros = [](std::uint64_t word) { return (word - ones) & ~word & high_bits; };
            std::uint64_t word;
            std::memcpy(&word, from, width);
            ascii &= (word & high_bits) == 0;
            const std::uint64_t marks = ones * static_cast<unsigned char>(mark);
            const auto found = zeros(word ^ marks) | zeros(word ^ '\n' * ones) | zeros(word ^ '\r' * ones);
            return static_cast<std::size_t>(std::countr_zero(found)) / 8;
        }
        std::size_t k = 0;
        for (; k < width && from[k] != mark && from[k] != '\n' && from[k] != '\r'; ++k)
            ascii &= static_cast<unsigned char>(from[k]) < 0x80;
        return k;
    }
#endif
};

}  // namespace separatrix
