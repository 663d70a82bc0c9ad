// Kernel values between a few samples (left) and packed panels of samples, computed in registers and
// either stored or multiplied by coefficients at once, so that a kernel matrix never exists.
//
// A product x·z is summed feature by feature for every pair, whatever the grouping of the loops: the
// values do not depend on how they are computed, the matrix is symmetric to the bit, and equal samples
// give an RBF value of exactly 1.
#pragma once

#include <cstdint>

#include "links.hpp"
#include "scratch.hpp"
#include "smo_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr int PANEL_REGISTERS = 3;
constexpr int TILE_ROWS = 4;               // rows × registers that fit 16 registers
constexpr std::int64_t SQUARE_PANELS = 2;  // left samples of a symmetric matrix, in panels
constexpr std::int64_t LEFT_ROWS = 256;    // most left samples that are read at a time
constexpr std::int64_t FEW_TERMS = 16;     // most values that are summed in T before they go to double

template <class T>
constexpr std::int64_t PANEL = PANEL_REGISTERS * Register<T>::COUNT;

// Bytes of the whole numbers of one feature in a panel, and where sample i of it stands: those of one lane of the
// panel's registers share a word, so that a shift gets a register's.
template <class T>
constexpr std::int64_t CELL = 4 * Register<T>::COUNT;
template <class T>
constexpr std::int64_t in_cell(std::int64_t i) {
    return i % Register<T>::COUNT * 4 + i / Register<T>::COUNT;
}
constexpr std::int64_t MOST_COUNT = 255;   // largest |x|² of whole numbers, and so product, that a byte holds

template <class T>
using Values = typename Register<T>::Values;

// 2^f = 1 + f q(f) for |f| ≤ 1/2: minimax for float (2e-9), Taylor for double.
template <class T>
struct Exp2;
template <>
struct Exp2<float> {
    static constexpr float SHIFT = 12582912.0f, LOWEST = -126.0f;
    static constexpr int MANTISSA = 23, TERMS = 6;
    static constexpr float Q[] = {0.6931472028552518f, 0.24022647913611095f, 0.05550332470702339f,
                                  0.0096184373584952f, 0.0013398874588449877f, 0.00015353362061426394f};
};
template <>
struct Exp2<double> {
    static constexpr double SHIFT = 6755399441055744.0, LOWEST = -1022.0;
    static constexpr int MANTISSA = 52, TERMS = 13;
    static constexpr double Q[] = {0.6931471805599453,     0.24022650695910072,    0.05550410866482158,
                                   0.009618129107628477,   0.0013333558146428443,  0.0001540353039338161,
                                   1.5252733804059841e-05, 1.3215486790144307e-06, 1.0178086009239699e-07,
                                   7.054911620801123e-09,  4.4455382718708115e-10, 2.567843599348821e-11,
                                   1.3691488853904128e-12};
};

template <class T>
inline Values<T> exp2_of(Values<T> x) {
    using R = Register<T>;
    using C = Exp2<T>;
    const auto lowest = held(R::all(C::LOWEST));  // one operand of both: the compiler then sees a maximum
    x = x < lowest ? lowest : x;
    const auto shifted = x + C::SHIFT;
    const auto f = x - (shifted - C::SHIFT);
    // Two terms at a time: a chain of single ones would have to wait for each of its products.
    const auto square = f * f;
    Values<T> q = R::all(0);
#pragma GCC unroll 16
    for (int k = (C::TERMS - 1) / 2 * 2; k >= 0; k -= 2) {
        const auto pair = k + 1 < C::TERMS ? f * C::Q[k + 1] + C::Q[k] : R::all(C::Q[k]);
        q = k + 2 < C::TERMS ? q * square + pair : pair;
    }
    const auto p = q * f + T(1);
    typename R::Integers power, bits;
    __builtin_memcpy(&power, &shifted, sizeof(power));
    __builtin_memcpy(&bits, &p, sizeof(bits));
    bits += power << C::MANTISSA;  // the low bits of `shifted` hold the integer part
    Values<T> result;
    __builtin_memcpy(&result, &bits, sizeof(result));
    return result;
}

// The kernel as a function of x·z.
template <class T, Formula F>
struct KernelOf {
    static constexpr bool WHOLE = F == Formula::whole_rbf;
    T coef0;
    int power;
    explicit KernelOf(const PanelData<T>& panels) : coef0(panels.coef0), power(panels.degree) {}

    Values<T> operator()(Values<T> dot, T left_half, const T* half) const {
        using R = Register<T>;
        if constexpr (F == Formula::rbf) {
            return exp2_of<T>(dot - (left_half + R::load(half)));
        } else if constexpr (WHOLE) {
            return exp2_of<T>((dot - (left_half + R::load(half))) * coef0);
        } else if constexpr (F == Formula::polynomial) {
            auto result = R::all(1), square = dot + coef0;
            for (int degree = power; degree; degree >>= 1, square *= square)
                if (degree & 1) result *= square;
            return result;
        } else if constexpr (F == Formula::sigmoid) {
            const auto x = dot + coef0;
            const auto size = x < R::all(0) ? -x : x;
            const auto z = exp2_of<T>(size * T(-2.8853900817779268));  // e^(−2|x|)
            const auto tanh = (T(1) - z) / (T(1) + z);
            return x < R::all(0) ? -tanh : tanh;
        } else {
            return dot;
        }
    }
};

// Calls body.operator()<formula>().
template <class T, class Body>
inline void with_formula(const PanelData<T>& panels, Body body) {
    switch (panels.formula) {
        case Formula::linear: return body.template operator()<Formula::linear>();
        case Formula::polynomial: return body.template operator()<Formula::polynomial>();
        case Formula::rbf: return body.template operator()<Formula::rbf>();
        case Formula::sigmoid: return body.template operator()<Formula::sigmoid>();
        case Formula::whole_rbf: return body.template operator()<Formula::whole_rbf>();
    }
}

// The whole number of sample i and feature 0; those of other features are whole cells away.
template <class T>
inline std::uint8_t* count_of(const PanelData<T>& panels, std::int64_t i) {
    return panels.counts + i / PANEL<T> * panels.d * CELL<T> + in_cell<T>(i % PANEL<T>);
}

// A few samples, read out of panels: row by row, or only their nonzeros. A whole number stands as so many ones.
template <class T>
struct Left {
    std::int64_t count = 0;
    const std::int64_t d;
    const bool sparse, counted;
    Scratch<T> x, half;
    Scratch<std::int32_t> feature;
    Scratch<std::int64_t> begin;

    Left(std::int64_t most, const PanelData<T>& like)
        : d(like.d), sparse(like.sparse), counted(like.counts), x(counted ? 0 : most * d), half(most),
          feature(counted ? most * MOST_COUNT : sparse ? most * d : 0), begin(most + 1) {}

    // Whether only the nonzeros of rows are known, so that each goes its own way.
    bool by_row() const { return sparse || counted; }

    void read(const PanelData<T>& from, const std::int64_t* rows, std::int64_t n) {
        count = n;
        std::int64_t at = 0;
        for (std::int64_t r = 0; r < n; ++r) {
            const std::int64_t i = rows[r];
            const T* source = from.data + i / from.width * from.width * d + i % from.width;
            half.data[r] = from.half[i];
            for (std::int64_t j = 0; counted && j < d; ++j)
                for (int times = count_of(from, i)[j * CELL<T>]; times > 0; --times)
                    feature.data[at++] = static_cast<std::int32_t>(j);
            for (std::int64_t j = 0; !counted && j < d; ++j) {
                const T value = source[j * from.width];
                x.data[at] = value;
                if (!sparse) ++at;
                else if (value != 0) feature.data[at++] = static_cast<std::int32_t>(j);
            }
            begin.data[r + 1] = at;
        }
    }
};

// The loops below are unrolled so that sums stay in registers. They are not inlined: else the compiler keeps the
// kernel's constants in registers, and these sums in memory. Their sums go to `to`, row by row and panel by panel.
template <class T, int ROWS, int PANELS>
using Dots = T[ROWS * PANELS * PANEL<T>];

// Inner products of ROWS neighbouring left rows and PANELS neighbouring panels.
template <class T, int ROWS, int PANELS>
[[gnu::noinline]] void dense_dots(const T* x, std::int64_t d, const T* z, T* to) {
    using R = Register<T>;
    Values<T> sum[ROWS][PANELS][PANEL_REGISTERS];
    const std::int64_t size = d * PANEL<T>;
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][p][k] = R::all(0);
    for (std::int64_t j = 0; j < d; ++j)
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p) {
            Values<T> loaded[PANEL_REGISTERS];
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) loaded[k] = R::load(z + p * size + j * PANEL<T> + k * R::COUNT);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; ++r) {
                const auto value = R::all(x[r * d + j]);
#pragma GCC unroll 3
                for (int k = 0; k < PANEL_REGISTERS; ++k) sum[r][p][k] += value * loaded[k];
            }
        }
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k)
                R::store(to + (r * PANELS + p) * PANEL<T> + k * R::COUNT, sum[r][p][k]);
}

// The same for a left row of which only the nonzeros stand there.
template <class T, int PANELS>
[[gnu::noinline]] void sparse_dots(const T* x, const std::int32_t* feature, std::int64_t count, const T* z,
                                   std::int64_t size, T* to) {
    using R = Register<T>;
    Values<T> sum[PANELS][PANEL_REGISTERS];
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) sum[p][k] = R::all(0);
    for (std::int64_t at = 0; at < count; ++at) {
        const auto value = R::all(x[at]);
        const T* column = z + feature[at] * PANEL<T>;
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) sum[p][k] += value * R::load(column + p * size + k * R::COUNT);
    }
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k) R::store(to + p * PANEL<T> + k * R::COUNT, sum[p][k]);
}

// The same of whole numbers: bytes are added for each one of the left row.
template <class T, int PANELS>
[[gnu::noinline]] void count_dots(const std::int32_t* feature, std::int64_t count, const std::uint8_t* z, std::int64_t size,
                                  T* to) {
    using R = Register<T>;
    typedef std::uint8_t Cell __attribute__((vector_size(CELL<T>)));
    typedef std::int32_t Words __attribute__((vector_size(CELL<T>)));
    Cell sum[PANELS];
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p) sum[p] = Cell{};
    for (std::int64_t at = 0; at < count; ++at) {
        const std::uint8_t* column = z + feature[at] * CELL<T>;
#pragma GCC unroll 4
        for (int p = 0; p < PANELS; ++p) {
            Cell loaded;
            __builtin_memcpy(&loaded, column + p * size, CELL<T>);
            sum[p] += loaded;
        }
    }
#pragma GCC unroll 4
    for (int p = 0; p < PANELS; ++p) {
        Words words;
        __builtin_memcpy(&words, &sum[p], CELL<T>);
#pragma GCC unroll 3
        for (int k = 0; k < PANEL_REGISTERS; ++k)
            R::store(to + p * PANEL<T> + k * R::COUNT, __builtin_convertvector((words >> (8 * k)) & 255, Values<T>));
    }
}

// sink(row, panel, register, kernel values) for ROWS left rows and PANELS neighbouring panels. Sinks are passed by
// value: what is stored through a pointer might otherwise change them, as far as the compiler knows.
template <class T, int ROWS, int PANELS, class Kernel, class Sink>
inline void tile(const Left<T>& left, std::int64_t row, const PanelData<T>& panels, std::int64_t panel,
                 const Kernel kernel, const Sink sink) {
    using R = Register<T>;
    alignas(64) Dots<T, ROWS, PANELS> dots;
    const std::int64_t begin = left.begin.data[row], count = left.begin.data[row + 1] - begin;
    const std::int64_t d = left.d, size = d * PANEL<T>;
    const T *z = panels.data + panel * size, *half = panels.half + panel * PANEL<T>;
    if constexpr (ROWS == 1) {
        const std::int32_t* const feature = left.feature.data + begin;
        if (left.counted) count_dots<T, PANELS>(feature, count, panels.counts + panel * d * CELL<T>, d * CELL<T>, dots);
        else if (left.sparse) sparse_dots<T, PANELS>(left.x.data + begin, feature, count, z, size, dots);
    }
    if (ROWS > 1 || !left.by_row()) dense_dots<T, ROWS, PANELS>(left.x.data + begin, d, z, dots);
    for (int r = 0; r < ROWS; ++r) {
        const T left_half = left.half.data[row + r];
        for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) {
                const auto dot = R::load(dots + (r * PANELS + p) * PANEL<T> + k * R::COUNT);
                sink(row + r, panel + p, k, kernel(dot, left_half, half + p * PANEL<T> + k * R::COUNT));
            }
    }
}

// All left rows against PANELS neighbouring panels.
template <class T, int PANELS, class Kernel, class Sink>
inline void all_left(const Left<T>& left, const PanelData<T>& panels, std::int64_t panel, const Kernel kernel,
                     const Sink sink) {
    const std::int64_t count = left.count, whole = left.by_row() ? 0 : count / TILE_ROWS * TILE_ROWS;
    for (int p = 0; p < PANELS; ++p)
        for (std::int64_t r = 0; r < whole; r += TILE_ROWS) tile<T, TILE_ROWS, 1>(left, r, panels, panel + p, kernel, sink);
    for (std::int64_t r = whole; r < count; ++r) tile<T, 1, PANELS>(left, r, panels, panel, kernel, sink);
}

template <class T>
void finish_panels(PanelData<T>& panels) {
    using R = Register<T>;
    for (std::int64_t p = 0; p < panels.panels(); ++p)
        for (int k = 0; k < PANEL_REGISTERS; ++k) {
            auto sum = R::all(0);
            const T* z = panels.data + p * panels.d * PANEL<T> + k * R::COUNT;
            for (std::int64_t j = 0; j < panels.d; ++j) sum += R::load(z + j * PANEL<T>) * R::load(z + j * PANEL<T>);
            R::store(panels.half + p * PANEL<T> + k * R::COUNT, sum * T(0.5));
        }
    if (!panels.counts) return;
    for (std::int64_t cell = 0; cell < panels.panels() * panels.d; ++cell)
        for (std::int64_t l = 0; l < PANEL<T>; ++l)
            panels.counts[cell * CELL<T> + in_cell<T>(l)] = static_cast<std::uint8_t>(panels.data[cell * PANEL<T> + l]);
}

template <class T>
void take_panels(const PanelData<T>& from, const std::int64_t* rows, PanelData<T>& to) {
    const std::int64_t d = from.d;
    for (std::int64_t i = 0; i < to.n; ++i) {
        const T* source = from.data + rows[i] / PANEL<T> * PANEL<T> * d + rows[i] % PANEL<T>;
        T* target = to.data + i / PANEL<T> * PANEL<T> * d + i % PANEL<T>;
        for (std::int64_t j = 0; j < d; ++j) target[j * PANEL<T>] = source[j * PANEL<T>];
        to.half[i] = from.half[rows[i]];
        if (!to.counts) continue;
        const std::uint8_t* counts = count_of(from, rows[i]);
        std::uint8_t* const into = count_of(to, i);
        for (std::int64_t j = 0; j < d; ++j) into[j * CELL<T>] = counts[j * CELL<T>];
    }
}

// The first `count` values. Not inlined: it is rare, and stands in every tile of every kernel.
template <class T>
[[gnu::noinline]] void store_some(T* at, Values<T> values, std::int64_t count) {
    for (std::int64_t l = 0; l < Register<T>::COUNT && l < count; ++l) at[l] = values[l];
}

// All values between left rows and the panels from `first` on; row r goes to to(r).
template <class T, class To>
inline void store_rows(const Left<T>& left, const PanelData<T>& panels, To to, std::int64_t first = 0) {
    using R = Register<T>;
    const std::int64_t n = panels.panels(), rest = panels.n % PANEL<T>;
    const auto sink = [=](std::int64_t r, std::int64_t p, int k, Values<T> v) {
        T* at = to(r) + p * PANEL<T> + k * R::COUNT;
        if (!rest || p + 1 < n) return R::store(at, v);
        store_some<T>(at, v, rest - k * R::COUNT);
    };
    with_formula(panels, [&]<Formula F>() {
        const KernelOf<T, F> kernel(panels);
        std::int64_t p = first;
        for (; p + 4 <= n; p += 4) all_left<T, 4>(left, panels, p, kernel, sink);
        for (; p < n; ++p) all_left<T, 1>(left, panels, p, kernel, sink);
    });
}

// Whether rows are all samples of the panels, in order.
template <class T>
inline bool is_whole(const PanelData<T>& from, const std::int64_t* rows, std::int64_t count, const PanelData<T>& panels) {
    if (from.data != panels.data || count != panels.n) return false;
    for (std::int64_t r = 0; r < count; ++r)
        if (rows[r] != r) return false;
    return true;
}

template <class T>
void kernel_block(const PanelData<T>& from, const std::int64_t* rows, std::int64_t count, const PanelData<T>& panels,
                  T* out, std::int64_t stride) {
    if (is_whole(from, rows, count, panels)) {
        // A symmetric matrix: a few rows from their own panel on, and what they have is that of columns, too.
        const std::int64_t step = SQUARE_PANELS * PANEL<T>;
        Left<T> left(count < step ? count : step, from);
        for (std::int64_t first = 0; first < count; first += step) {
            const std::int64_t end = count - first < step ? count : first + step;
            left.read(from, rows + first, end - first);
            store_rows(left, panels, [=](std::int64_t r) { return out + (first + r) * stride; }, first / PANEL<T>);
            for (std::int64_t c = end; c < count; ++c)
                for (std::int64_t r = first; r < end; ++r) out[c * stride + r] = out[r * stride + c];
        }
        return;
    }
    Left<T> left(count < LEFT_ROWS ? count : LEFT_ROWS, from);
    for (std::int64_t first = 0; first < count; first += LEFT_ROWS) {
        left.read(from, rows + first, count - first < LEFT_ROWS ? count - first : LEFT_ROWS);
        T* const begin = out + first * stride;
        store_rows(left, panels, [=](std::int64_t r) { return begin + r * stride; });
    }
}

// Rows of the matrix of left samples and panels, each to a place of its own.
template <class T>
void kernel_rows(const Left<T>& left, const PanelData<T>& panels, T* const* out) {
    store_rows(left, panels, [=](std::int64_t r) { return out[r]; });
}

// Which columns have a coefficient among `count` rows, and those coefficients column by column.
template <class T>
struct LeftCoef {
    const std::int64_t columns;
    std::int64_t filled = 0;
    Scratch<std::int64_t> column;
    Scratch<T> coef;  // [filled][LEFT_ROWS]

    explicit LeftCoef(std::int64_t P) : columns(P), column(P), coef((P + TILE_ROWS) * LEFT_ROWS) {}

    void read(const double* from, std::int64_t count) {
        for (std::int64_t p = 0; p < columns; ++p) column.data[p] = 0;
        for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t p = 0; p < columns; ++p) column.data[p] |= from[r * columns + p] != 0;
        filled = 0;
        for (std::int64_t p = 0; p < columns; ++p)
            if (column.data[p]) column.data[filled++] = p;
        for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t c = 0; c < filled; ++c)
                coef.data[c * LEFT_ROWS + r] = static_cast<T>(from[r * columns + column.data[c]]);
    }
};

// out[lane][column] += Σ_r values[r][lane] coef[r] for ROWS of the filled columns. Few terms are summed in T: sums of
// many that are alike would lose more digits than the kernel values have lost.
template <class T, int ROWS>
inline void coef_tile(const LeftCoef<T>& coef, std::int64_t first, std::int64_t count, const T* values, double* out,
                      std::int64_t lanes) {
    using R = Register<T>;
    double total[ROWS][PANEL<T>] = {};
    const T* c = coef.coef.data + first * LEFT_ROWS;
    for (std::int64_t begin = 0; begin < count; begin += FEW_TERMS) {
        const std::int64_t end = count - begin < FEW_TERMS ? count : begin + FEW_TERMS;
        Values<T> sum[ROWS][PANEL_REGISTERS];
#pragma GCC unroll 4
        for (int q = 0; q < ROWS; ++q)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) sum[q][k] = R::all(0);
        for (std::int64_t r = begin; r < end; ++r) {
            Values<T> loaded[PANEL_REGISTERS];
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) loaded[k] = R::load(values + r * PANEL<T> + k * R::COUNT);
#pragma GCC unroll 4
            for (int q = 0; q < ROWS; ++q) {
                const auto value = R::all(c[q * LEFT_ROWS + r]);
#pragma GCC unroll 3
                for (int k = 0; k < PANEL_REGISTERS; ++k) sum[q][k] += value * loaded[k];
            }
        }
#pragma GCC unroll 4
        for (int q = 0; q < ROWS; ++q)
#pragma GCC unroll 3
            for (int k = 0; k < PANEL_REGISTERS; ++k) {
                T lane[R::COUNT];
                R::store(lane, sum[q][k]);
                for (int l = 0; l < R::COUNT; ++l) total[q][k * R::COUNT + l] += static_cast<double>(lane[l]);
            }
    }
    for (int q = 0; q < ROWS; ++q)
        for (std::int64_t l = 0; l < lanes; ++l) out[l * coef.columns + coef.column.data[first + q]] += total[q][l];
}

template <class T>
void kernel_product(const PanelData<T>& from, const std::int64_t* rows, const std::int64_t* starts,
                    std::int64_t parts, const double* coef, std::int64_t columns, const PanelData<T>& panels, std::int64_t begin, std::int64_t end, double* out) {
    using R = Register<T>;
    constexpr int GROUP = 4;
    Left<T> left(LEFT_ROWS, from);
    LeftCoef<T> weights(columns);
    Scratch<T> values(GROUP * LEFT_ROWS * PANEL<T>);
    for (std::int64_t part = 0; part < parts; ++part) {
        left.read(from, rows + starts[part], starts[part + 1] - starts[part]);
        weights.read(coef + starts[part] * columns, left.count);
        const auto multiply = [&](std::int64_t p, const T* K) {
            const std::int64_t sample = p * PANEL<T>;
            const std::int64_t lanes = panels.n - sample < PANEL<T> ? panels.n - sample : PANEL<T>;
            double* to = out + sample * columns;
            std::int64_t c = 0;
            for (; c + TILE_ROWS <= weights.filled; c += TILE_ROWS)
                coef_tile<T, TILE_ROWS>(weights, c, left.count, K, to, lanes);
            for (; c < weights.filled; ++c) coef_tile<T, 1>(weights, c, left.count, K, to, lanes);
        };
        with_formula(panels, [&]<Formula F>() {
            const KernelOf<T, F> kernel(panels);
            const auto some = [&]<int PANELS>(std::int64_t at) {
                T* const to = values.data;
                all_left<T, PANELS>(left, panels, at, kernel, [=](std::int64_t r, std::int64_t p, int k, Values<T> v) {
                    R::store(to + ((p - at) * LEFT_ROWS + r) * PANEL<T> + k * R::COUNT, v);
                });
                for (int p = 0; p < PANELS; ++p) multiply(at + p, to + p * LEFT_ROWS * PANEL<T>);
            };
            std::int64_t at = begin;
            // Tiles of several rows do with one panel, and its values stay in the first-level cache.
            for (; left.by_row() && at + GROUP <= end; at += GROUP) some.template operator()<GROUP>(at);
            for (; at < end; ++at) some.template operator()<1>(at);
        });
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
