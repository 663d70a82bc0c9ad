// Nearest neighbours: the rows that pass the filter are measured from the differences of their coordinates
// in double precision, in one order of summation, and the k best by (distance, row) are kept. Distances
// decide, so this file is compiled without fused multiply-adds: every processor finds the same neighbours.
#include "neighbors_kernels.hpp"
#include "rows.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr std::int64_t NO_ROW = INT64_MAX;
// Numbers of the panels that are kept in a cache.
constexpr std::int64_t STRETCH_NUMBERS = 1 << 16;
// Rows that are filtered first, while there are no neighbours; a multiple of PANEL.
constexpr std::int64_t FIRST_STRETCH = 64;
// Rows of a stretch that are taken by their score.
constexpr int PICKED = 24;
// Features after which a distance is compared with the limit.
constexpr std::int64_t STRIDE = 192;

// Sixteen sums side by side, in registers of any width: number j goes to sum j mod 16, and the sums are added
// in one order.
constexpr int SUMS = 16, STEP = REGISTER_BYTES / 8, PARTS = SUMS / STEP;
typedef double Values __attribute__((vector_size(REGISTER_BYTES)));

template <class T>
Values load(const T* from) {
    Values loaded;
    for (int l = 0; l < STEP; ++l) loaded[l] = static_cast<double>(from[l]);  // __builtin_convertvector is slower
    return loaded;
}

// Adds the second half to the first until one is left.
template <class Number>
Number halved(Number* s, int count) {
    for (int width = count / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) s[l] += s[l + width];
    return s[0];
}

struct Sums {
    Values part[PARTS] = {};

    double total() const {
        Values sums[PARTS];
        for (int p = 0; p < PARTS; ++p) sums[p] = part[p];
        const Values last = halved(sums, PARTS);
        double s[STEP];
        for (int l = 0; l < STEP; ++l) s[l] = last[l];
        return halved(s, STEP);
    }
};

double cosine_distance(double product, double own, double other) {
    const double length = __builtin_sqrt(own) * __builtin_sqrt(other);
    if (length == 0) return 1;
    const double distance = 1 - product / length;
    return distance < 0 ? 0 : distance > 2 ? 2 : distance;
}

// Dense rows against one dense query.
template <class T>
struct DenseMeasure {
    const DenseArray<T>& X;
    const Nearest& state;

    // Sums grow only, each of them and so their total: beyond the limit the rest need not be read.
    double squared(const T* x, const double* q, double limit) const {
        Sums sums;
        const std::int64_t d = X.n_features;
        std::int64_t j = 0;
        while (j + SUMS <= d) {
            const std::int64_t end = d - j < STRIDE ? d - SUMS + 1 : j + STRIDE;
            for (; j < end; j += SUMS)
                for (int p = 0; p < PARTS; ++p) {
                    const Values u = load(x + j + p * STEP) - load(q + j + p * STEP);
                    sums.part[p] += u * u;
                }
            const double total = sums.total();
            if (total > limit || d - j < SUMS) return total > limit ? total : total + rest(x, q, j);
        }
        return rest(x, q, j);
    }

    double rest(const T* x, const double* q, std::int64_t j) const {
        double sum = 0;
        for (; j < X.n_features; ++j) {
            const double u = static_cast<double>(x[j]) - q[j];
            sum += u * u;
        }
        return sum;
    }

    double angle(const T* x, const double* q) const {
        Sums products, own, other;
        const std::int64_t d = X.n_features;
        std::int64_t j = 0;
        for (; j + SUMS <= d; j += SUMS)
            for (int p = 0; p < PARTS; ++p) {
                const Values u = load(x + j + p * STEP), v = load(q + j + p * STEP);
                products.part[p] += u * v;
                own.part[p] += u * u;
                other.part[p] += v * v;
            }
        double product = 0, own_rest = 0, other_rest = 0;
        for (; j < d; ++j) {
            const double u = x[j], v = q[j];
            product += u * v;
            own_rest += u * u;
            other_rest += v * v;
        }
        return cosine_distance(products.total() + product, own.total() + own_rest, other.total() + other_rest);
    }

    double operator()(std::int64_t query, std::int64_t row, double limit) const {
        const T* x = X.data + row * X.row_stride;
        const double* q = state.dense + query * X.n_features;
        return state.cosine ? angle(x, q) : squared(x, q, limit);
    }
};

// Sparse rows against one sparse query; the columns of both rise. The same sums as those of dense rows: zeros
// add nothing to them.
template <class T, class Index>
struct CsrMeasure {
    const CsrArray<T, Index>& X;
    const Nearest& state;

    struct Lanes {
        double s[SUMS + 1] = {};  // the last: features beyond the last whole SUMS

        double total() { return halved(s, SUMS) + s[SUMS]; }
    };

    double operator()(std::int64_t query, std::int64_t row, double) const {
        const CsrArray<double, std::int64_t>& Q = state.sparse;
        const std::int64_t whole = X.n_features / SUMS * SUMS;
        Index at = X.indptr[row];
        const Index end = X.indptr[row + 1];
        Lanes squares, products, own, other;
        const auto add = [&](std::int64_t j, double x, double q) {
            const auto lane = j < whole ? j % SUMS : SUMS;
            if (!state.cosine) {
                squares.s[lane] += (x - q) * (x - q);
                return;
            }
            products.s[lane] += x * q;
            own.s[lane] += x * x;
            other.s[lane] += q * q;
        };
        for (std::int64_t to = Q.indptr[query]; to < Q.indptr[query + 1]; ++to) {
            const std::int64_t j = Q.indices[to];
            for (; at < end && X.indices[at] < j; ++at) add(X.indices[at], X.data[at], 0);
            const bool both = at < end && X.indices[at] == j;
            add(j, both ? static_cast<double>(X.data[at]) : 0, Q.data[to]);
            at += both;
        }
        for (; at < end; ++at) add(X.indices[at], X.data[at], 0);
        if (!state.cosine) return squares.total();
        return cosine_distance(products.total(), own.total(), other.total());
    }
};

bool farther(double a, std::int64_t i, double b, std::int64_t j) { return a > b || (a == b && i > j); }

// Puts a row in the place of the farthest neighbour, unless it is farther itself. A distance that
// overflowed to NaN is infinite.
bool offer(const Nearest& state, std::int64_t query, double distance, std::int64_t row) {
    if (distance != distance) distance = __builtin_inf();
    double* D = state.distance + query * state.k;
    std::int64_t* I = state.index + query * state.k;
    if (!farther(D[0], I[0], distance, row)) return false;
    std::int64_t hole = 0;
    for (std::int64_t child; (child = 2 * hole + 1) < state.k; hole = child) {
        if (child + 1 < state.k && farther(D[child + 1], I[child + 1], D[child], I[child])) ++child;
        if (!farther(D[child], I[child], distance, row)) break;
        D[hole] = D[child], I[hole] = I[child];
    }
    D[hole] = distance, I[hole] = row;
    return true;
}

// The score below which no row can come nearer than the farthest neighbour; rounded down.
float threshold(const Nearest& state, std::int64_t query) {
    const std::int64_t root = query * state.k;
    if (state.index[root] == NO_ROW) return -__builtin_inff();
    const double exact = (state.room[query] - state.grow * (state.distance[root] + state.slack)) / 2;
    return static_cast<float>(exact - (exact < 0 ? -exact : exact) * 0x1p-22 - 0x1p-120);
}

// The same for rows that come after all neighbours so far: of equals the first wins, so nothing passes 0.
float later_threshold(const Nearest& state, std::int64_t query) {
    return state.distance[query * state.k] == 0 ? __builtin_inff() : threshold(state, query);
}

// Measures the rows that passed for one query of the tile, a few of the best score first: each neighbour
// found so spares others.
template <class Measure>
void take(const Measure& measure, const Nearest& state, std::int64_t query, std::int64_t base, std::int64_t first,
          float* score, std::int32_t* row, std::int32_t count) {
    float least = threshold(state, query);
    for (std::int32_t i = 0; i < count; ++i)
        if (score[i] != score[i]) score[i] = __builtin_inff();  // overflowed: the filter cannot tell
    for (int picked = 0; count > 0; ++picked) {
        std::int32_t best = --count;
        if (picked < PICKED)
            for (std::int32_t i = 0; i < count; ++i)
                if (score[i] > score[best]) best = i;
        if (!(score[best] < least)) {
            const std::int64_t at = base + row[best];
            const double distance = measure(query, at, state.distance[query * state.k]);
            if (offer(state, query, distance, first + at)) least = threshold(state, query);
        } else if (picked < PICKED) {
            return;
        }
        score[best] = score[count], row[best] = row[count];
    }
}

template <class Measure>
void take_all(const Measure& measure, const Nearest& state, std::int64_t rows, std::int64_t first) {
    for (std::int64_t query = 0; query < state.count; ++query)
        for (std::int64_t row = 0; row < rows; ++row)
            offer(state, query, measure(query, row, state.distance[query * state.k]), first + row);
}

// How many rows are filtered next. Without a neighbour everything passes the filter: the first stretches are
// short, and each makes a threshold for the next.
std::int64_t stretch_after(std::int64_t stretch, std::int64_t most, const Nearest& state, std::int64_t query) {
    const std::int64_t next = stretch ? 2 * stretch : state.index[query * state.k] == NO_ROW ? FIRST_STRETCH : most;
    return next < most ? next : most;
}

template <class T>
void nearest_dense(const DenseArray<T>& X, std::int64_t rows, std::int64_t first, const float* panels,
                   const float* halves, Nearest& state) {
    const DenseMeasure<T> measure{X, state};
    if (!panels) return take_all(measure, state, rows, first);
    Passed passed;
    // So many rows that their panels stay in the second-level cache while all queries pass by.
    std::int64_t most = STRETCH_NUMBERS / state.width / PANEL * PANEL;
    most = most < PANEL ? PANEL : most > STRETCH ? STRETCH : most;
    std::int64_t step = 0;
    for (std::int64_t base = 0; base < rows; base += step) {
        step = stretch_after(step, most, state, 0);
        const std::int64_t stretch = rows - base < step ? rows - base : step;
        for (std::int64_t query = 0; query < state.count; query += DENSE_TILE) {
            const float* queries[DENSE_TILE];
            float thresholds[DENSE_TILE];
            for (int i = 0; i < DENSE_TILE; ++i) {  // a last tile that is not full repeats its last query
                const std::int64_t at = query + i < state.count ? query + i : state.count - 1;
                queries[i] = state.reduced + at * state.width;
                thresholds[i] = later_threshold(state, at);
            }
            filter_panels(panels + base * state.width, halves + base, stretch, queries, state.width, thresholds,
                          passed);
            for (int i = 0; i < DENSE_TILE && query + i < state.count; ++i)
                take(measure, state, query + i, base, first, passed.score[i], passed.row[i], passed.count[i]);
        }
    }
}

template <class T, class Index>
void nearest_csr(const CsrArray<T, Index>& X, std::int64_t rows, std::int64_t first, const float* values,
                 const float* halves, Nearest& state, std::int32_t* slots, float* table) {
    const CsrMeasure<T, Index> measure{X, state};
    const CsrArray<float, Index> Z{values, X.indices, X.indptr, X.n_features};
    const CsrArray<double, std::int64_t>& Q = state.sparse;
    Passed passed;
    for (std::int64_t query = 0; query < state.count; query += CSR_TILE) {
        const std::int64_t tile = state.count - query < CSR_TILE ? state.count - query : CSR_TILE;
        std::int32_t used = 0;
        for (std::int64_t i = 0; i < tile; ++i)
            for (std::int64_t at = Q.indptr[query + i]; at < Q.indptr[query + i + 1]; ++at) {
                std::int32_t& slot = slots[Q.indices[at]];
                if (!slot) slot = ++used;
                table[static_cast<std::int64_t>(slot) * CSR_TILE + i] = state.reduced[at];
            }
        float thresholds[CSR_TILE];
        for (int i = 0; i < CSR_TILE; ++i) thresholds[i] = __builtin_inff();
        std::int64_t step = 0;
        for (std::int64_t base = 0; base < rows; base += step) {
            for (std::int64_t i = 0; i < tile; ++i) thresholds[i] = later_threshold(state, query + i);
            step = stretch_after(step, STRETCH, state, query);
            const std::int64_t end = rows - base < step ? rows : base + step;
            filter_csr(Z, base, end, halves, slots, table, thresholds, passed);
            for (std::int64_t i = 0; i < tile; ++i)
                take(measure, state, query + i, base, first, passed.score[i], passed.row[i], passed.count[i]);
        }
        for (std::int64_t i = 0; i < tile; ++i)
            for (std::int64_t at = Q.indptr[query + i]; at < Q.indptr[query + i + 1]; ++at) slots[Q.indices[at]] = 0;
        for (std::int64_t at = 0; at < (used + std::int64_t{1}) * CSR_TILE; ++at) table[at] = 0;
    }
}

void keep(const double* distances, std::int64_t rows, std::int64_t first, Nearest& state) {
    for (std::int64_t query = 0; query < state.count; ++query)
        for (std::int64_t row = 0; row < rows; ++row)
            offer(state, query, distances[query * rows + row], first + row);
}

const NeighborSet table = {
    {nearest_dense<float>},
    {nearest_dense<double>},
    {nearest_csr<float, std::int32_t>},
    {nearest_csr<float, std::int64_t>},
    {nearest_csr<double, std::int32_t>},
    {nearest_csr<double, std::int64_t>},
    keep,
};

}  // namespace

const NeighborSet& neighbor_set() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
