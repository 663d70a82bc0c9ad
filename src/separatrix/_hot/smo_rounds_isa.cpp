// What a round of SMO does with whole kernel rows, compiled once per instruction set; smo_rounds.hpp tells what for.
#include "kernel_panels.hpp"
#include "smo_rounds_state.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T>
void compute_rows(const PanelData<T>& from, const std::int64_t* points, std::int64_t count, const PanelData<T>& panels,
                  T* const* out) {
    Left<T> left(count, from);
    left.read(from, points, count);
    kernel_rows(left, panels, out);
}

template <class T>
void put_sample(const PanelData<T>& from, std::int64_t point, PanelData<T>& to, std::int64_t i) {
    const T* source = from.data + point / PANEL<T> * PANEL<T> * from.d + point % PANEL<T>;
    T* target = to.data + i / PANEL<T> * PANEL<T> * from.d + i % PANEL<T>;
    for (std::int64_t j = 0; j < from.d; ++j) target[j * PANEL<T>] = source[j * PANEL<T>];
    to.half[i] = from.half[point];
}

template <class T>
void gather(const T* row, const std::int64_t* columns, std::int64_t count, T* to) {
    for (std::int64_t k = 0; k < count; ++k) to[k] = row[columns[k]];
}

template <class T>
void mirror(T* block, std::int64_t stride, const std::int64_t* some, std::int64_t count, const std::int64_t* others,
            std::int64_t other_count) {
    for (std::int64_t o = 0; o < other_count; ++o) {
        T* const to = block + others[o] * stride;
        for (std::int64_t k = 0; k < count; ++k) to[some[k]] = block[some[k] * stride + others[o]];
    }
}

// Rows that are read side by side, each from memory; their sum is one of T, that of all of them of doubles.
constexpr int TOGETHER = 8;

template <class T, int ROWS>
inline void add_some(const T* const* rows, const double* change, std::int64_t begin, std::int64_t end, double* sums) {
    T c[ROWS];
    const T* row[ROWS];
    for (int r = 0; r < ROWS; ++r) c[r] = static_cast<T>(change[r]), row[r] = rows[r] + begin;
    const std::int64_t n = end - begin;
    for (std::int64_t v = 0; v < n; ++v) {
        T sum = 0;
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) sum += c[r] * row[r][v];
        sums[v] += static_cast<double>(sum);
    }
}

template <class T>
void add_rows(const T* const* rows, const double* change, std::int64_t count, std::int64_t begin, std::int64_t end,
              double* sums) {
    std::int64_t k = 0;
    for (; k + TOGETHER <= count; k += TOGETHER) add_some<T, TOGETHER>(rows + k, change + k, begin, end, sums);
    for (; k < count; ++k) add_some<T, 1>(rows + k, change + k, begin, end, sums);
}

template <class T>
constexpr RoundKernels<T> kernels_of = {compute_rows<T>, put_sample<T>, gather<T>, mirror<T>, add_rows<T>};

const RoundSet table = {kernels_of<float>, kernels_of<double>};

}  // namespace

const RoundSet& round_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
