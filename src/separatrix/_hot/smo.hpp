// Sequential minimal optimisation with second-order pairs (Fan, Chen and Lin, JMLR 6, 2005).
//
// With E = s (Qa + p), a step takes i = argmin E among the variables whose s a may grow, and among those
// whose s a may fall the j with the largest decrease (E_j − E_i)² / 2c, c = K_ii + K_jj − 2 K_ij. It moves
// s_i a_i up and s_j a_j down by (E_j − E_i)/c, as far as the box allows; E changes by that times K_i − K_j.
// Solved when max E (may fall) − min E (may grow) ≤ tol. E is kept in double, kernel rows in T.
#pragma once

#include <cstdint>

#include "kernel_panels.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr double INFINITE = __builtin_inf();

// Numbers of another type, as many as a register of T holds.
template <class T, class From>
inline Values<T> load_as(const From* from) {
    typedef From Loaded __attribute__((vector_size(Register<T>::COUNT * sizeof(From))));
    Loaded loaded;
    __builtin_memcpy(&loaded, from, sizeof(loaded));
    return __builtin_convertvector(loaded, Values<T>);
}

// Differences in double, rounded to T.
template <class T>
inline Values<T> minus(const double* from, double less) {
    typedef double Wide __attribute__((vector_size(Register<T>::COUNT * sizeof(double))));
    Wide wide;
    __builtin_memcpy(&wide, from, sizeof(wide));
    return __builtin_convertvector(wide - less, Values<T>);
}

// The next i and the violation, of one group of variables.
struct Extremes {
    double least = INFINITE, most = -INFINITE;
    std::int64_t index = -1;

    void take(double low_value, std::int64_t i) {
        if (low_value < least) least = low_value, index = i;
    }
};

// E += delta (K_i − K_j) over the variables begin … end − 1, and their extremes afterwards.
template <class T, bool UPDATE>
inline void update(SmoState<T>& s, std::int64_t begin, std::int64_t end, const T* Ki, const T* Kj, double delta,
                   Extremes& found) {
    using R = Register<double>;
    double* E = s.E;
    auto least = R::all(INFINITE), most = R::all(-INFINITE);
    typename R::Integers where{}, position{}, step{};
    for (int l = 0; l < R::COUNT; ++l) position[l] = begin + l, step[l] = R::COUNT;
    std::int64_t v = begin;
    for (; v + R::COUNT <= end; v += R::COUNT) {
        auto e = R::load(E + v);
        if constexpr (UPDATE) {
            e += delta * (load_as<double>(Ki + (v - begin)) - load_as<double>(Kj + (v - begin)));
            R::store(E + v, e);
        }
        const auto may_grow = e + load_as<double>(s.up + v), may_fall = e + load_as<double>(s.low + v);
        const auto better = may_grow < least;
        least = better ? may_grow : least;
        where = better ? position : where;
        most = may_fall > most ? may_fall : most;
        position += step;
    }
    // Of equal values the first variable: lanes hold the first of their own.
    double lowest = INFINITE;
    std::int64_t first = -1;
    for (int l = 0; l < R::COUNT; ++l) {
        if (least[l] < lowest || (least[l] == lowest && first >= 0 && where[l] < first)) lowest = least[l], first = where[l];
        if (most[l] > found.most) found.most = most[l];
    }
    if (first >= 0) found.take(lowest, first);
    for (; v < end; ++v) {
        if constexpr (UPDATE) E[v] += delta * (static_cast<double>(Ki[v - begin]) - static_cast<double>(Kj[v - begin]));
        found.take(E[v] + static_cast<double>(s.up[v]), v);
        if (E[v] + static_cast<double>(s.low[v]) > found.most) found.most = E[v] + static_cast<double>(s.low[v]);
    }
}

template <class T>
constexpr T LEAST_CURVATURE = sizeof(T) == 4 ? T(1e-7) : T(1e-12);

// The partner of i among begin … end − 1 that decreases the objective most: gain (E_j − E_i)² / c.
template <class T>
inline void partner(const SmoState<T>& s, std::int64_t begin, std::int64_t end, const T* Ki, double Ei, T diag,
                    T& gain, std::int64_t& j) {
    using R = Register<T>;
    constexpr int COUNT = R::COUNT;
    const std::int64_t offset = begin % s.points;
    const T* diagonal = s.diagonal + offset;
    const T tau = LEAST_CURVATURE<T> * diag;
    auto best = R::all(0);
    typename R::Integers where{}, position{}, step{};
    for (int l = 0; l < COUNT; ++l) position[l] = static_cast<Bits<T>>(l), step[l] = COUNT;
    std::int64_t v = begin;
    for (; v + COUNT <= end; v += COUNT) {
        auto b = minus<T>(s.E + v, Ei);
        b += load_as<T>(s.low + v);
        b = b > R::all(0) ? b : R::all(0);
        auto c = (R::load(diagonal + (v - begin)) + diag) - T(2) * R::load(Ki + (v - begin));
        c = c > R::all(tau) ? c : R::all(tau);
        const auto value = b * b / c;
        const auto better = value > best;
        best = better ? value : best;
        where = better ? position : where;
        position += step;
    }
    T top = 0;
    std::int64_t first = -1;
    for (int l = 0; l < COUNT; ++l)
        if (best[l] > top || (best[l] == top && first >= 0 && where[l] < first)) top = best[l], first = where[l];
    if (first >= 0 && top > gain) gain = top, j = begin + first;
    for (; v < end; ++v) {
        const T b = static_cast<T>(s.E[v] - Ei) + static_cast<T>(s.low[v]);
        T c = (diagonal[v - begin] + diag) - T(2) * Ki[v - begin];
        c = c > tau ? c : tau;
        if (b > 0 && b * b / c > gain) gain = b * b / c, j = v;
    }
}

// Rows that are computed together: a group reads the panels once. The others belong to the worst violators that
// have no row; they are often needed next. One look at all variables finds those of several groups.
constexpr int GROUP_ROWS = 4;

template <class T>
void find_violators(SmoState<T>& s) {
    double scores[SmoState<T>::QUEUE];
    int count = 0;
    double bar = 0;
    for (std::int64_t v = 0; v < s.points * s.copies; ++v) {
        const double grow = s.middle - s.E[v] - static_cast<double>(s.up[v]);
        const double fall = s.E[v] - s.middle + static_cast<double>(s.low[v]);
        const double score = grow > fall ? grow : fall;
        if (!(score > bar) || s.rows[v % s.points]) continue;
        int k = count < SmoState<T>::QUEUE ? count++ : SmoState<T>::QUEUE - 1;
        for (; k && scores[k - 1] < score; --k) s.queue[k] = s.queue[k - 1], scores[k] = scores[k - 1];
        s.queue[k] = v % s.points, scores[k] = score;
        if (count == SmoState<T>::QUEUE) bar = scores[count - 1];
    }
    s.queued = count;
    s.next_queued = 0;
}

template <class T>
void compute_rows(SmoState<T>& s, std::int64_t point) {
    std::int64_t points[GROUP_ROWS];
    T* rows[GROUP_ROWS];
    int count = 0;
    const auto add = [&](std::int64_t p) {
        points[count] = p;
        s.used[p] = ++s.clock;
        rows[count++] = s.rows[p] = s.fresh(s, p);
    };
    add(point);
    if (s.group) {
        if (s.next_queued >= s.queued) find_violators(s);
        while (count < GROUP_ROWS && s.next_queued < s.queued) {
            const std::int64_t other = s.queue[s.next_queued++];
            if (!s.rows[other]) add(other);
        }
    }
    kernel_rows(*s.panels, points, count, rows);
    s.entries += count * s.points;
}

template <class T>
inline const T* row_of(SmoState<T>& s, std::int64_t v) {
    const std::int64_t point = v % s.points;
    if (!s.rows[point]) compute_rows(s, point);
    s.used[point] = ++s.clock;
    return s.rows[point];
}

template <class T>
inline void mark(SmoState<T>& s, std::int64_t v) {
    const bool grows = s.alpha[v] < s.upper[v], falls = s.alpha[v] > 0, positive = s.signs[v] > 0;
    s.up[v] = (positive ? grows : falls) ? 0.0f : __builtin_inff();
    s.low[v] = (positive ? falls : grows) ? 0.0f : -__builtin_inff();
}

template <class T>
void run_smo(SmoState<T>& s, double deadline, double (*seconds)()) {
    const std::int64_t m = s.points * s.copies;
    const int groups = s.separate ? 2 : 1;
    for (std::int64_t v = 0; v < m; ++v) mark(s, v);
    const T *Ki = nullptr, *Kj = nullptr;
    double delta = 0;
    for (std::int64_t count = 0; s.status == 0; ++count) {
        Extremes found[2];
        for (int part = 0; part < 2; ++part) {
            const std::int64_t begin = s.split[part], end = s.split[part + 1], offset = begin % s.points;
            if (begin == end) continue;
            if (count) update<T, true>(s, begin, end, Ki + offset, Kj + offset, delta, found[s.separate ? part : 0]);
            else update<T, false>(s, begin, end, nullptr, nullptr, 0, found[s.separate ? part : 0]);
        }
        s.violation = 0;
        for (int g = 0; g < groups; ++g)
            if (found[g].most - found[g].least > s.violation) s.violation = found[g].most - found[g].least;
        if (!(s.violation > s.tol)) { s.status = 1; return; }
        if (s.most_steps >= 0 && s.steps >= s.most_steps) { s.status = 2; return; }
        if (count % 16 == 15 && seconds() > deadline) return;

        s.middle = 0.5 * (found[0].most + found[0].least);
        std::int64_t i = -1, j = -1;
        T gain = 0;
        for (int g = 0; g < groups; ++g) {
            if (!(found[g].most - found[g].least > 0)) continue;
            const std::int64_t candidate = found[g].index;
            const T* K = row_of(s, candidate);
            const std::int64_t before = j;
            for (int part = 0; part < 2; ++part) {
                if (s.split[part] == s.split[part + 1] || (s.separate && part != g)) continue;
                partner(s, s.split[part], s.split[part + 1], K + s.split[part] % s.points, s.E[candidate],
                        s.diagonal[candidate % s.points], gain, j);
            }
            if (j != before) i = candidate;
        }
        if (i < 0) { s.status = 1; return; }
        Kj = row_of(s, j);
        Ki = row_of(s, i);
        const double di = s.diag[i % s.points], dj = s.diag[j % s.points];
        double c = di + dj - 2 * static_cast<double>(Ki[j % s.points]);
        const double size = (di < 0 ? -di : di) + (dj < 0 ? -dj : dj);
        if (c < s.worst_curvature * size) s.worst_curvature = c / size;
        const double tau = static_cast<double>(LEAST_CURVATURE<T>) * size;
        if (c < tau) c = tau > 0 ? tau : 1e-12;
        delta = (s.E[j] - s.E[i]) / c;
        const double room_i = s.signs[i] > 0 ? s.upper[i] - s.alpha[i] : s.alpha[i];
        const double room_j = s.signs[j] > 0 ? s.alpha[j] : s.upper[j] - s.alpha[j];
        if (delta > room_i) delta = room_i;
        if (delta > room_j) delta = room_j;
        if (!(delta < 1e200)) { s.status = 3; return; }
        // Bounds are met exactly, so that they are recognised.
        s.alpha[i] = delta == room_i ? (s.signs[i] > 0 ? s.upper[i] : 0.0) : s.alpha[i] + s.signs[i] * delta;
        s.alpha[j] = delta == room_j ? (s.signs[j] > 0 ? 0.0 : s.upper[j]) : s.alpha[j] - s.signs[j] * delta;
        mark(s, i);
        mark(s, j);
        ++s.steps;
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
