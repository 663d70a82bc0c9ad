// Sequential minimal optimisation with second-order pairs (Fan, Chen and Lin, JMLR 6, 2005).
//
// With E = s (Qa + p), a step takes i = argmin E among the variables whose s a may grow, and among those
// whose s a may fall the j with the largest decrease (E_j − E_i)² / 2c, c = K_ii + K_jj − 2 K_ij. It moves
// s_i a_i up and s_j a_j down by (E_j − E_i)/c, as far as the box allows; E changes by that times K_i − K_j.
// Solved when max E (may fall) − min E (may grow) ≤ tol. With a price ε |a| the E of a variable that may grow has ε
// added, or −ε as long as it is negative; of one that may fall −ε, or ε as long as it is positive.
//
// Steps work on F = E − shift in the precision T of the kernel rows: with the shift near the threshold F is
// small, and so are its rounding errors, where it decides. Whoever needs more computes E anew.
#pragma once

#include <cstdint>

#include "kernel_panels.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

constexpr double INFINITE = __builtin_inf();

// The next i and the violation, of one group of variables.
struct Extremes {
    double least = INFINITE, most = -INFINITE;
    std::int64_t index = -1;
};

// Registers between two looks at which variable is the least: only blocks are remembered on the way.
constexpr int BLOCK_REGISTERS = 8;

// F += delta (K_i − K_j) over the variables begin … end − 1, and their extremes afterwards.
template <class T, bool UPDATE>
inline void update(SmoState<T>& s, std::int64_t begin, std::int64_t end, const T* Ki, const T* Kj, T delta, Extremes& found) {
    using R = Register<T>;
    constexpr std::int64_t BLOCK = BLOCK_REGISTERS * R::COUNT;
    T* const F = s.F + begin;
    const T *const up = s.up + begin, *const low = s.low + begin;
    const std::int64_t n = end - begin;
    auto least = R::all(T(INFINITE)), most = R::all(T(-INFINITE));
    typename R::Integers where{}, number{};
    std::int64_t v = 0;
    for (; v + BLOCK <= n; v += BLOCK) {
        auto lowest = R::all(T(INFINITE));
#pragma GCC unroll 8
        for (int k = 0; k < BLOCK_REGISTERS; ++k) {
            const std::int64_t at = v + k * R::COUNT;
            auto f = R::load(F + at);
            if constexpr (UPDATE) {
                f += delta * (R::load(Ki + at) - R::load(Kj + at));
                R::store(F + at, f);
            }
            const auto may_grow = f + R::load(up + at), may_fall = f + R::load(low + at);
            lowest = may_grow < lowest ? may_grow : lowest;
            most = may_fall > most ? may_fall : most;
        }
        const auto better = lowest < least;
        least = better ? lowest : least;
        where = better ? number : where;
        number += 1;
    }
    // The last block has fewer registers.
    auto lowest = R::all(T(INFINITE));
    for (; v + R::COUNT <= n; v += R::COUNT) {
        auto f = R::load(F + v);
        if constexpr (UPDATE) {
            f += delta * (R::load(Ki + v) - R::load(Kj + v));
            R::store(F + v, f);
        }
        const auto may_grow = f + R::load(up + v), may_fall = f + R::load(low + v);
        lowest = may_grow < lowest ? may_grow : lowest;
        most = may_fall > most ? may_fall : most;
    }
    const auto better = lowest < least;
    least = better ? lowest : least;
    where = better ? number : where;
    // Of equal values the first variable: lanes hold the first block of their own.
    T value = T(INFINITE);
    std::int64_t first = -1;
    for (int l = 0; l < R::COUNT; ++l) {
        if (least[l] < value || (least[l] == value && first >= 0 && where[l] < first)) value = least[l], first = where[l];
        if (static_cast<double>(most[l]) > found.most) found.most = static_cast<double>(most[l]);
    }
    if (first >= 0 && static_cast<double>(value) < found.least) {
        found.least = static_cast<double>(value);
        for (found.index = first * BLOCK; F[found.index] + up[found.index] != value;) ++found.index;
        found.index += begin;
    }
    for (; v < n; ++v) {
        if constexpr (UPDATE) F[v] += delta * (Ki[v] - Kj[v]);
        const auto may_grow = static_cast<double>(F[v] + up[v]), may_fall = static_cast<double>(F[v] + low[v]);
        if (may_grow < found.least) found.least = may_grow, found.index = begin + v;
        if (may_fall > found.most) found.most = may_fall;
    }
}

template <class T>
constexpr T LEAST_CURVATURE = sizeof(T) == 4 ? T(1e-7) : T(1e-12);

// The best partner so far: gain b²/c, with b = F_j − F_i in units of the violation.
template <class T>
struct Partner {
    T square = 0, curvature = 1;
    std::int64_t index = -1;

    // Fractions are compared without a division, which takes longer than all else.
    void take(T b2, T c, std::int64_t j) {
        const T mine = b2 * curvature, best = square * c;
        if (mine > best || (mine == best && index >= 0 && j < index)) square = b2, curvature = c, index = j;
    }
};

// The partner of i among begin … end − 1 that decreases the objective most; Fi has the price of growing in it.
template <class T>
inline void partner(const SmoState<T>& s, std::int64_t begin, std::int64_t end, const T* Ki, T Fi, T unit, T diag,
                    Partner<T>& found) {
    using R = Register<T>;
    const T *const F = s.F + begin, *const low = s.low + begin, *const diagonal = s.diagonal + begin % s.points;
    const T tau = LEAST_CURVATURE<T> * (diag < 0 ? -diag : diag);  // an indefinite kernel may have negative ones
    const std::int64_t n = end - begin;
    // Two of each, for one comparison waits for the one before.
    Values<T> square[2] = {R::all(0), R::all(0)}, curvature[2] = {R::all(1), R::all(1)};
    typename R::Integers where[2] = {}, number{};
    std::int64_t v = 0;
    for (; v + 2 * R::COUNT <= n; v += 2 * R::COUNT) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; ++k) {
            const std::int64_t at = v + k * R::COUNT;
            auto b = ((R::load(F + at) + R::load(low + at)) - Fi) * unit;
            b = b > R::all(0) ? b : R::all(0);
            auto c = (R::load(diagonal + at) + diag) - T(2) * R::load(Ki + at);
            c = c > R::all(tau) ? c : R::all(tau);
            const auto b2 = b * b;
            const auto better = b2 * curvature[k] > square[k] * c;
            square[k] = better ? b2 : square[k];
            curvature[k] = better ? c : curvature[k];
            where[k] = better ? number : where[k];
        }
        number += 1;
    }
    for (int k = 0; k < 2; ++k)
        for (int l = 0; l < R::COUNT; ++l)
            if (square[k][l] > 0) found.take(square[k][l], curvature[k][l], begin + (2 * where[k][l] + k) * R::COUNT + l);
    for (; v < n; ++v) {
        const T b = ((F[v] + low[v]) - Fi) * unit;
        T c = (diagonal[v] + diag) - T(2) * Ki[v];
        c = c > tau ? c : tau;
        if (b > 0) found.take(b * b, c, begin + v);
    }
}

// Most rows that are computed together: a group reads the panels once. The others belong to the worst violators
// that have no row; they are often needed next. One look at all variables finds those of several groups.
constexpr int GROUP_ROWS = 8;

// Of which class a point is, where classes are known; else 0.
template <class T>
inline int side_of(const SmoState<T>& s, std::int64_t point) {
    return s.classes[0] && point >= s.cut;
}

template <class T>
void find_violators(SmoState<T>& s, int side) {
    double scores[SmoState<T>::QUEUE];
    std::int64_t* const queue = s.queue[side];
    int count = 0;
    double bar = 0;
    const std::int64_t variables = s.points * s.copies;
    const std::int64_t begin = side ? s.cut : 0, end = s.classes[0] && !side ? s.cut : variables;
    for (std::int64_t v = begin; v < end; ++v) {
        const double grow = s.middle - static_cast<double>(s.F[v] + s.up[v]);
        const double fall = static_cast<double>(s.F[v] + s.low[v]) - s.middle;
        const double score = grow > fall ? grow : fall;
        if (!(score > bar) || s.rows[v % s.points]) continue;
        int k = count < SmoState<T>::QUEUE ? count++ : SmoState<T>::QUEUE - 1;
        for (; k && scores[k - 1] < score; --k) queue[k] = queue[k - 1], scores[k] = scores[k - 1];
        queue[k] = v % s.points, scores[k] = score;
        if (count == SmoState<T>::QUEUE) bar = scores[count - 1];
    }
    s.queued[side] = count;
    s.next_queued[side] = 0;
}

// Rows of some points of a class: the half over the class itself is copied if another problem has computed it.
template <class T>
void compute_halves(SmoState<T>& s, int side, const std::int64_t* points, int count, T* const* rows) {
    ClassRows<T>& own = *s.classes[side];
    const ClassRows<T>& other = *s.classes[1 - side];
    const std::int64_t begin = side ? s.cut : 0, opposite = side ? 0 : s.cut;
    std::int64_t numbers[GROUP_ROWS];
    T *whole[GROUP_ROWS], *others[GROUP_ROWS], *among[GROUP_ROWS];
    int missing = 0, found = count;
    for (int k = 0; k < count; ++k) {
        const std::int64_t number = points[k] - begin;
        const int at = __atomic_load_n(own.rows + number, __ATOMIC_ACQUIRE) ? --found : missing++;
        numbers[at] = number;
        whole[at] = rows[k];
        others[at] = rows[k] + opposite;
    }
    Left<T> left(count, *own.panels);
    left.read(*own.panels, numbers, count);
    kernel_rows(left, *other.panels, others);
    s.entries += count * other.panels->n;
    if (missing) {
        for (int k = 0; k < missing; ++k) among[k] = own.fresh(own);
        left.count = missing;
        kernel_rows(left, *own.panels, among);
        for (int k = 0; k < missing; ++k) __atomic_store_n(own.rows + numbers[k], among[k], __ATOMIC_RELEASE);
    }
    for (int k = 0; k < count; ++k) {
        const T* const from = __atomic_load_n(own.rows + numbers[k], __ATOMIC_ACQUIRE);
        __builtin_memcpy(whole[k] + begin, from, sizeof(T) * static_cast<std::size_t>(own.panels->n));
    }
}

template <class T>
void compute_rows(SmoState<T>& s, std::int64_t point) {
    const int side = side_of(s, point);
    std::int64_t points[GROUP_ROWS];
    T* rows[GROUP_ROWS];
    int count = 0;
    const auto add = [&](std::int64_t p) {
        points[count] = p;
        s.used[p] = ++s.clock;
        rows[count++] = s.rows[p] = s.fresh(s, p);
    };
    add(point);
    if (s.group > 1) {
        if (s.next_queued[side] >= s.queued[side]) find_violators(s, side);
        while (count < s.group && s.next_queued[side] < s.queued[side]) {
            const std::int64_t other = s.queue[side][s.next_queued[side]++];
            if (!s.rows[other]) add(other);
        }
    }
    if (s.classes[0]) return compute_halves(s, side, points, count, rows);
    Left<T> left(count, *s.panels);
    left.read(*s.panels, points, count);
    kernel_rows(left, *s.panels, rows);
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
    if (s.price) {
        const double a = s.alpha[v], u = s.upper[v];
        const T price = static_cast<T>(s.price[v]);
        s.up[v] = a < u ? (a < 0 ? -price : price) : T(INFINITE);
        s.low[v] = a > -u ? (a > 0 ? price : -price) : T(-INFINITE);
        return;
    }
    const bool grows = s.alpha[v] < s.upper[v], falls = s.alpha[v] > 0, positive = s.signs[v] > 0;
    s.up[v] = (positive ? grows : falls) ? T(0) : T(INFINITE);
    s.low[v] = (positive ? falls : grows) ? T(0) : T(-INFINITE);
}

// F from E, around the middle of the values that decide.
template <class T>
void load_gradient(SmoState<T>& s) {
    double least[2] = {INFINITE, INFINITE}, most[2] = {-INFINITE, -INFINITE};
    for (int part = 0; part < 2; ++part)
        for (std::int64_t v = s.split[part]; v < s.split[part + 1]; ++v) {
            const int g = s.separate ? part : 0;
            const double grow = s.E[v] + static_cast<double>(s.up[v]), fall = s.E[v] + static_cast<double>(s.low[v]);
            if (grow < least[g]) least[g] = grow;
            if (fall > most[g]) most[g] = fall;
        }
    for (int part = 0; part < 2; ++part) {
        const int g = s.separate ? part : 0;
        s.shift[part] = least[g] < INFINITE && most[g] > -INFINITE ? 0.5 * (least[g] + most[g]) : 0.0;
        for (std::int64_t v = s.split[part]; v < s.split[part + 1]; ++v) s.F[v] = static_cast<T>(s.E[v] - s.shift[part]);
    }
    s.loaded = true;
}

template <class T>
void store_gradient(SmoState<T>& s) {
    for (int part = 0; part < 2; ++part)
        for (std::int64_t v = s.split[part]; v < s.split[part + 1]; ++v) s.E[v] = s.shift[part] + static_cast<double>(s.F[v]);
}

// How far s a of a variable may grow or fall, to its bound or to where its price changes, and where it is then.
struct Room {
    double size, end;
};

template <class T>
inline Room room_above(const SmoState<T>& s, std::int64_t v) {
    const double a = s.alpha[v], u = s.upper[v];
    if (s.price) return a < 0 ? Room{-a, 0.0} : Room{u - a, u};
    return s.signs[v] > 0 ? Room{u - a, u} : Room{a, 0.0};
}

template <class T>
inline Room room_below(const SmoState<T>& s, std::int64_t v) {
    const double a = s.alpha[v], u = s.upper[v];
    if (s.price) return a > 0 ? Room{a, 0.0} : Room{u + a, -u};
    return s.signs[v] > 0 ? Room{a, 0.0} : Room{u - a, u};
}

template <class T>
void take_steps(SmoState<T>& s, double deadline, double (*seconds)()) {
    const int groups = s.separate ? 2 : 1;
    const T *Ki = nullptr, *Kj = nullptr;
    T delta = 0;
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
        std::int64_t i = -1;
        Partner<T> best;
        const T unit = static_cast<T>(1 / s.violation);
        for (int g = 0; g < groups; ++g) {
            if (!(found[g].most - found[g].least > 0)) continue;
            const std::int64_t candidate = found[g].index, before = best.index;
            const T* K = row_of(s, candidate);
            for (int part = 0; part < 2; ++part) {
                if (s.split[part] == s.split[part + 1] || (s.separate && part != g)) continue;
                partner(s, s.split[part], s.split[part + 1], K + s.split[part] % s.points, s.F[candidate] + s.up[candidate], unit,
                        s.diagonal[candidate % s.points], best);
            }
            if (best.index != before) i = candidate;
        }
        if (i < 0) { s.status = 1; return; }
        const std::int64_t j = best.index;
        Kj = row_of(s, j);
        Ki = row_of(s, i);
        const double di = s.diag[i % s.points], dj = s.diag[j % s.points];
        double c = di + dj - 2 * static_cast<double>(Ki[j % s.points]);
        const double size = (di < 0 ? -di : di) + (dj < 0 ? -dj : dj);
        if (c < s.worst_curvature * size) s.worst_curvature = c / size;
        const double tau = static_cast<double>(LEAST_CURVATURE<T>) * size;
        if (c < tau) c = tau > 0 ? tau : 1e-12;
        double step = (static_cast<double>(s.F[j] + s.low[j]) - static_cast<double>(s.F[i] + s.up[i])) / c;
        const Room above = room_above(s, i), below = room_below(s, j);
        if (step > above.size) step = above.size;
        if (step > below.size) step = below.size;
        if (!(step < 1e200)) { s.status = 3; return; }
        // Bounds are met exactly, so that they are recognised.
        s.alpha[i] = step == above.size ? above.end : s.alpha[i] + s.signs[i] * step;
        s.alpha[j] = step == below.size ? below.end : s.alpha[j] - s.signs[j] * step;
        delta = static_cast<T>(step);
        mark(s, i);
        mark(s, j);
        ++s.steps;
    }
}

template <class T>
void run_smo(SmoState<T>& s, double deadline, double (*seconds)()) {
    for (std::int64_t v = 0; v < s.points * s.copies; ++v) mark(s, v);
    if (!s.loaded) load_gradient(s);
    take_steps(s, deadline, seconds);
    store_gradient(s);
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
