// Decimal numbers in text, read to the last bit. For the readers of LIBSVM text and of delimited text.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace separatrix::decimal {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// What the short way below cannot read exactly: many digits, large exponents, nan, inf.
inline const char* parse_any(const char* p, const char* end, double& value) {
    const char* first = p != end && *p == '+' ? p + 1 : p;
    if (first != p && first != end && *first == '-') return nullptr;
    // Most texts that are no numbers begin with a letter that no number begins with.
    const char begin = first != end && *first == '-' && first + 1 != end ? first[1] : first != end ? *first : ' ';
    if (!is_digit(begin) && begin != '.' && (begin | 0x20) != 'i' && (begin | 0x20) != 'n') return nullptr;
#if defined(__cpp_lib_to_chars)
    const auto [stop, code] = std::from_chars(first, end, value);
    if (code == std::errc::result_out_of_range) {  // too small: the nearest double is 0; or too large
        const char* letter = std::find_if(first, stop, [](char c) { return c == 'e' || c == 'E'; });
        const char* whole = std::find_if(first, stop, [](char c) { return c == '.' || (c > '0' && c <= '9'); });
        const bool small = letter != stop ? letter + 1 != stop && letter[1] == '-' : whole == stop || *whole == '.';
        value = small ? 0 : HUGE_VAL;
        if (*first == '-') value = -value;
        return stop;
    }
    return code == std::errc() ? stop : nullptr;
#else
    const char* last = first;
    while (last != end && (std::isalnum(static_cast<unsigned char>(*last)) || std::strchr("+-.", *last))) ++last;
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

}  // namespace separatrix::decimal
