// Sums of products of dense rows: Σ_i s_i z_i z_iᵀ and, class by class, Σ_i s_i z_i, with z = x − origin.
//
// A few rows at a time are centred, weighted and packed into panels as wide as a register, and their sums
// taken on the way: the data are read once, in any layout. Tiles of three panels × a few broadcast columns then
// stay in registers over all rows of the pack, and go to the matrix in double precision. Where a few digits will do,
// the values of a pack are rounded to 16-bit integers first (coarse.hpp); whole numbers are multiplied exactly so.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "coarse.hpp"
#include "gram_state.hpp"
#include "links.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Rows of a pack: three panels and a fourth stay in the first-level cache. No power of 2, whose panels would
// share their places in it.
constexpr std::int64_t PACK_ROWS = 232;
// Bytes of panels beside which others have room in the second-level cache.
constexpr std::int64_t CHUNK_BYTES = 256 << 10;
// Columns of a panel that are broadcast at a time: tiles of 3 × SPREAD registers fit the register file.
template <class T>
constexpr int SPREAD = Register<T>::COUNT < 4 ? 2 : REGISTER_BYTES == 64 ? 8 : 4;

template <class T, class Data>
inline typename Register<T>::Values load_as(const Data* from) {
    if constexpr (sizeof(T) == sizeof(Data)) {
        return Register<T>::load(from);
    } else {
        typedef Data Narrow __attribute__((vector_size(Register<T>::COUNT * sizeof(Data))));
        Narrow loaded;
        __builtin_memcpy(&loaded, from, sizeof(loaded));
        return __builtin_convertvector(loaded, typename Register<T>::Values);
    }
}

template <class T>
inline void add_to(double* to, typename Register<T>::Values values) {
    if constexpr (sizeof(T) == sizeof(double)) {
        Register<double>::store(to, Register<double>::load(to) + values);
    } else {
        T lanes[Register<T>::COUNT];
        Register<T>::store(lanes, values);
        using D = Register<double>;
        for (int l = 0; l < Register<T>::COUNT; l += D::COUNT)
            D::store(to + l, D::load(to + l) + load_as<double>(lanes + l));
    }
}

// Multiples of 1/steps as whole numbers; NaN where rounding does not explain what is left.
template <class T, class Values>
inline Values whole_steps(Values x, T steps) {
    constexpr T EPSILON = sizeof(T) == sizeof(float) ? T(0x1p-23) : T(0x1p-52), SHIFT = ExpConstants<T>::SHIFT;
    const Values scaled = x * steps, number = (scaled + SHIFT) - SHIFT, left = scaled - number;
    const Values most = (number < 0 ? -number : number) * EPSILON;
    return (left < 0 ? -left : left) <= most ? number : Values{} + T(__builtin_nan(""));
}

// gram[b …][a …] += Σ_i b_i a_iᵀ for PANELS panels from a on and SPREAD columns from b on. On its own: among
// other code the sums would not find registers enough.
template <class T, int PANELS>
__attribute__((noinline)) void gram_tile(const T* a, std::int64_t panel, const T* b, std::int64_t rows, double* gram,
                                         std::int64_t d, std::int64_t above, std::int64_t right) {
    using R = Register<T>;
    constexpr int S = SPREAD<T>;
    const int kept = above < S ? static_cast<int>(above) : S;
    for (int k = 0; k < kept; ++k)
        for (int p = 0; p < PANELS; ++p) __builtin_prefetch(gram + k * d + p * R::COUNT, 1);
    typename R::Values sum[PANELS][S] = {};
    for (std::int64_t i = 0; i < rows; ++i) {
        typename R::Values loaded[PANELS];
        for (int p = 0; p < PANELS; ++p) loaded[p] = held(R::load(a + p * panel + i * R::COUNT));
        for (int k = 0; k < S; ++k) {
            const auto factor = R::all(b[i * R::COUNT + k]);
            for (int p = 0; p < PANELS; ++p) sum[p][k] += factor * loaded[p];
        }
    }
    for (int k = 0; k < kept; ++k)
        for (int p = 0; p < PANELS; ++p) {
            double* to = gram + k * d + p * R::COUNT;
            const std::int64_t left = right - p * R::COUNT;
            if (left >= R::COUNT) {
                add_to<T>(to, sum[p][k]);
            } else {
                T lanes[R::COUNT];
                R::store(lanes, sum[p][k]);
                for (int l = 0; l < left; ++l) to[l] += static_cast<double>(lanes[l]);
            }
        }
}

// A pack of rows, panel by panel; features beyond the last are 0, or whatever: their products are not kept.
template <class T, class Data, Precision HOW>
class Pack {
    using R = Register<T>;
    static constexpr bool WHOLE = HOW == Precision::whole, COARSE = WHOLE || HOW == Precision::coarse;
    // Numbers that are multiplied at a time, and where: in panels of T, or rounded where one or two of these were.
    using Factor = std::conditional_t<COARSE, float, T>;
    static constexpr int COUNT = Register<Factor>::COUNT;
    static constexpr std::int64_t PANEL = PACK_ROWS * R::COUNT, STEP = PANEL * (COUNT / R::COUNT);
    static constexpr std::int64_t CHUNK = CHUNK_BYTES / (PACK_ROWS * REGISTER_BYTES) * (COARSE ? 2 : 1);

   public:
    explicit Pack(const GramRows<Data>& of)
        : of_(of), in_place_(of.column_stride == 1), panels_((of.d + COUNT - 1) / COUNT),
          step_(of.gram || !in_place_ ? PANEL : 0), packed_(step_ ? panels_ * STEP : STEP),
          units_(COARSE ? panels_ * COUNT : 0) {
        by_groups([&](std::int64_t a, std::int64_t count) { products_ += a + count; });
    }

    void run() {
        const std::int64_t packs = (of_.rows + PACK_ROWS - 1) / PACK_ROWS;  // of about as many rows each
        for (std::int64_t pack = 0; pack < packs; ++pack) {
            const std::int64_t first = pack * of_.rows / packs, rows = (pack + 1) * of_.rows / packs - first;
            if (!in_place_) transpose(first, rows);
            if (of_.sums && of_.weights) fill<true, true>(first, rows);
            else if (of_.sums) fill<true, false>(first, rows);
            else if (of_.weights) fill<false, true>(first, rows);
            else fill<false, false>(first, rows);
            if constexpr (COARSE)
                for (std::int64_t p = 0; of_.gram && p < panels_; ++p)
                    round_to_pairs<WHOLE>(packed_.data + p * STEP, PANEL, rows, units_.data + p * COUNT);
            if (of_.gram) multiply(rows, first + rows);
        }
    }

   private:
    const GramRows<Data>& of_;
    const bool in_place_;
    const std::int64_t panels_, step_;
    std::int64_t products_ = 0;  // products of groups of panels with a panel
    Scratch<T> packed_;
    Scratch<double> units_;  // of rounded features

    std::int64_t row_of(std::int64_t i) const { return of_.order ? of_.order[i] : i; }

    // Rows whose features lie apart: column by column.
    void transpose(std::int64_t first, std::int64_t rows) {
        for (std::int64_t j = 0; j < of_.d; ++j) {
            const Data* from = of_.X + j * of_.column_stride;
            T* to = packed_.data + j / R::COUNT * PANEL + j % R::COUNT;
            for (std::int64_t i = 0; i < rows; ++i)
                to[i * R::COUNT] = static_cast<T>(from[row_of(first + i) * of_.row_stride]);
        }
    }

    template <bool SUMS, bool WEIGHTED>
    void fill(std::int64_t first, std::int64_t rows) {
        const std::int64_t d = of_.d, whole = d / R::COUNT * R::COUNT;
        const T steps = static_cast<T>(of_.steps);
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t row = row_of(first + i), c = of_.classes ? of_.classes[row] : 0;
            const Data* x = of_.X + row * of_.row_stride;
            const double* o = of_.origin ? of_.origin + c * of_.origin_stride : nullptr;
            double* sums = SUMS ? of_.sums + c * d : nullptr;
            const T root = WEIGHTED ? static_cast<T>(std::sqrt(of_.weights[row])) : T(1);
            T* to = packed_.data + i * R::COUNT;
            std::int64_t j = 0;
            for (; j < whole; j += R::COUNT, to += step_) {
                auto z = in_place_ ? load_as<T>(x + j) : R::load(to);
                if (steps != 1) z = whole_steps(z, steps);
                if (o) z -= load_as<T>(o + j);
                if constexpr (WEIGHTED) z *= root;
                R::store(to, z);
                if constexpr (SUMS) add_to<T>(sums + j, WEIGHTED ? z * root : z);
            }
            for (int l = 0; l < d - whole; ++l) {
                T z = in_place_ ? static_cast<T>(x[whole + l]) : to[l];
                if (steps != 1) z = whole_steps(z, steps);
                if (o) z -= static_cast<T>(o[whole + l]);
                if constexpr (WEIGHTED) z *= root;
                to[l] = z;
                if constexpr (SUMS) sums[whole + l] += static_cast<double>(WEIGHTED ? z * root : z);
            }
        }
    }

    // Panels in groups of 3; 2 + 2 instead of 3 + 1, whose tiles have fewer sums than the processor has in flight.
    template <class Part>
    void by_groups(Part part) const {
        for (std::int64_t a = 0, count; a < panels_; a += count) {
            count = (panels_ - a) % 3 == 0 ? 3 : panels_ - a == 1 ? 1 : 2;
            part(a, count);
        }
    }

    // Each group of panels with all panels before it, as many of them at a time as stay in the second-level cache.
    // The rows of the next pack are asked for meanwhile.
    void multiply(std::int64_t rows, std::int64_t next) {
        const bool fits = panels_ <= CHUNK;
        const bool ahead = fits && in_place_ && !of_.order && of_.row_stride >= of_.d && next < of_.rows;
        const std::int64_t more = of_.rows - next < PACK_ROWS ? of_.rows - next : PACK_ROWS;
        const char* line = reinterpret_cast<const char*>(of_.X + next * of_.row_stride);
        const char* end = ahead ? line + more * of_.row_stride * static_cast<std::int64_t>(sizeof(Data)) : line;
        const std::int64_t share = ((end - line) / 64 / products_ + 1) * 64;
        for (std::int64_t begin = 0; begin < panels_; begin += CHUNK)
            by_groups([&](std::int64_t a, std::int64_t count) {
                const std::int64_t stop = a + count < begin + CHUNK ? a + count : begin + CHUNK;
                for (std::int64_t b = begin; b < stop; ++b) {
                    for (const char* last = line + share < end ? line + share : end; line < last; line += 64)
                        __builtin_prefetch(line, 0, 2);
                    const std::int64_t from = b > a ? b : a;
                    switch (a + count - from) {
                        case 3: tiles<3>(from, b, rows); break;
                        case 2: tiles<2>(from, b, rows); break;
                        default: tiles<1>(from, b, rows);
                    }
                }
            });
    }

    template <int PANELS>
    void tiles(std::int64_t a, std::int64_t b, std::int64_t rows) {
        const std::int64_t d = of_.d, column = a * COUNT;
        for (std::int64_t k = 0; k < COUNT && b * COUNT + k < d; k += SPREAD<Factor>) {
            const std::int64_t row = b * COUNT + k;
            double* to = of_.gram + row * d + column;
            const T *from = packed_.data + a * STEP, *other = packed_.data + b * STEP;
            if constexpr (COARSE)
                coarse_tile<PANELS, SPREAD<Factor>>(
                    reinterpret_cast<const Pairs*>(from), STEP * sizeof(T) / sizeof(Pairs),
                    reinterpret_cast<const std::int32_t*>(other) + k, (rows + 1) / 2, units_.data + column,
                    units_.data + row, to, d, d - row, d - column);
            else
                gram_tile<T, PANELS>(from, PANEL, other + k, rows, to, d, d - row, d - column);
        }
    }
};

// Of whole numbers, sums are NaN where a value is none or too large, unless doubles are used.
template <Precision HOW, class Data>
void add_gram(const GramRows<Data>& rows) {
    using enum Precision;
#if defined(__x86_64__)
    constexpr bool INTEGERS = true;
#else
    constexpr bool INTEGERS = false;  // they are multiplied no quicker: coarse values stay as they are
#endif
    if constexpr (HOW == in_single) Pack<float, Data, in_single>(rows).run();
    else if constexpr (HOW == in_double || (HOW == whole && !INTEGERS)) Pack<double, Data, in_double>(rows).run();
    else Pack<Data, Data, INTEGERS ? HOW : in_double>(rows).run();
}

// Copies what is above the diagonal below it, in squares that stay in the caches.
inline void mirror(double* gram, std::int64_t d) {
    constexpr std::int64_t side = 32;
    for (std::int64_t a = 0; a < d; a += side)
        for (std::int64_t b = 0; b <= a; b += side)
            for (std::int64_t i = a; i < (a + side < d ? a + side : d); ++i)
                for (std::int64_t j = b; j < (b + side < i ? b + side : i); ++j) gram[i * d + j] = gram[j * d + i];
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
