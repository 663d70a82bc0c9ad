// What the kernel panels and the SMO loop work on; kernel_panels.hpp and smo.hpp state the mathematics.
#pragma once

#include <cstdint>

#include "tables.hpp"

namespace separatrix {

enum class Formula : int { linear, polynomial, rbf, sigmoid, whole_rbf };

// Samples packed for kernel evaluation: panels of `width` samples, each [feature][width], so that
// the samples stand side by side in registers. They are scaled such that the kernel is
// x·z, (x·z + coef0)^degree, 2^(x·z − |x|²/2 − |z|²/2) or tanh(x·z + coef0). Samples of small whole numbers, |x|² ≤ 255,
// have the kernel 2^(coef0 (x·z − |x|²/2 − |z|²/2)): their products are sums of bytes, and exact.
template <class T>
struct PanelData {
    Formula formula;
    int degree;
    T coef0;
    bool sparse;          // whether rows are mostly zeros
    std::int64_t n, d, width;
    T* data;
    T* half;              // |x|²/2 of each sample
    std::uint8_t* counts = nullptr;  // the whole numbers once more, cells of 4/3 width bytes; null of other samples

    std::int64_t panels() const { return (n + width - 1) / width; }
};

// Kernel rows of the samples of one class among themselves: the problems of all its pairs share them, in
// several threads. Whoever misses a row computes it, and all find the same values.
template <class T>
struct ClassRows {
    const PanelData<T>* panels;
    T** rows;             // null where not computed; read and written atomically
    T* (*fresh)(ClassRows&);
    void* owner;
};

// min ½ a'Qa + p'a, 0 ≤ a ≤ u, s'a constant, in terms of E = s (Qa + p). Variable v stands for point
// v mod points; a problem whose samples come twice may have two variables per point. Where these share one sum
// (regression) they are one variable a − a* instead, between −u and u, with the price ε |a − a*|.
template <class T>
struct SmoState {
    std::int64_t points, copies;
    // Neighbouring variables that share a selection: split[0] … split[1] and split[1] … split[2]. They are
    // one group (s'a constant) or two (both sums constant).
    std::int64_t split[3];
    bool separate;
    const double* signs;
    const double* upper;
    const double* price;  // ε of variables between −u and u, which have the sign 1; null where all are between 0 and u
    const double* diag;   // per point
    double* alpha;
    double* E;            // without the price
    T* F;                 // E − shift, what steps work on
    double shift[2];      // of either part
    bool loaded;          // whether F is that of E
    T* up;                // what the price adds to E (else 0) where s a may grow, else +inf
    T* low;               // the same where s a may fall, else −inf
    const T* diagonal;    // diag in the precision of the rows
    const PanelData<T>* panels;
    // The classes of the points before the cut and from it on, where other problems share their rows; else null.
    ClassRows<T>* classes[2];
    std::int64_t cut;
    // Kernel rows over the points; null where not computed. `fresh` gives memory for one more.
    T** rows;
    std::int64_t* used;   // when a row was last used
    T* (*fresh)(SmoState&, std::int64_t point);
    void* owner;
    int group;            // how many rows are computed together: the others are those of the worst violators
    static constexpr int QUEUE = 12;
    std::int64_t queue[2][QUEUE];  // of either class, where classes are known
    int queued[2], next_queued[2];
    double tol;
    std::int64_t most_steps;
    // Results
    std::int64_t steps, entries, clock;
    double violation, worst_curvature, middle;
    int status;           // 0: running, 1: converged, 2: out of steps, 3: unbounded
};

template <class T>
struct SmoKernels {
    std::int64_t width;
    // What belongs to packed samples once they are all there, and some of them packed anew.
    void (*finish)(PanelData<T>&);
    void (*take)(const PanelData<T>& from, const std::int64_t* rows, PanelData<T>& to);
    // out[l][c] = k(left_l, c)
    void (*block)(const PanelData<T>& left, const std::int64_t* rows, std::int64_t count, const PanelData<T>&,
                  T* out, std::int64_t stride);
    // out[c][p] += Σ_l k(left_l, c) coef[l][p] for the samples c of the panels begin … end − 1. The left samples
    // starts[q] … starts[q + 1] − 1, at most 256, are worked on together: columns that are zero in all cost nothing.
    void (*product)(const PanelData<T>& left, const std::int64_t* rows, const std::int64_t* starts,
                    std::int64_t parts, const double* coef, std::int64_t columns, const PanelData<T>&, std::int64_t begin, std::int64_t end, double* out);
    // Steps until the problem is solved or seconds() reaches the deadline.
    void (*run)(SmoState<T>&, double deadline, double (*seconds)());
};

struct SmoSet {
    SmoKernels<float> single_precision;
    SmoKernels<double> double_precision;
};

SEPARATRIX_TABLE(SmoSet, smo_set)

}  // namespace separatrix
