// Dual coordinate descent for linear support vector machines, one sample and several columns at a time.
//
//     min over w:  ½‖w‖² + Σ_i max_{v in [U_i low, U_i high]} [v (t_i − w·x_i) − ε |v| − ½ δ_i v²]
//
// for every column: the hinge loss has t = y and the box from 0 to y U, the ε-insensitive loss the box
// from −U to U; squared losses have δ = 1 / (2 U) instead of an upper end. With all other v fixed, w = Σ v x,
// the best v of one sample is a step, a soft threshold and a clip:
//
//     v ← clip(soft(v − g/h, ε/h)),   g = w·x − t + δ v,   h = ‖x‖² + δ
//
// (Hsieh et al., 2008; Ho and Lin, 2012). Columns do not know of each other; they share the visit of a row,
// whose features find the weights of all columns side by side.
#pragma once

#include <cstdint>

#include "box_dual_state.hpp"
#include "links.hpp"
#include "padded_rows.hpp"
#include "rows.hpp"
#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class S, class Rows>
class BoxDualPass {
    using B = Block<S>;
    using V = typename B::Values;
    static constexpr int LONGEST_REST = 15;
    // How steeply the best answer to a score rises where δ = 0, not 1 / (2 U): at once, up to rounding.
    static constexpr double STEEP = 1e30;

    const Rows& rows;
    BoxDualState<S>& state;
    const std::int64_t padded;
    S *const score, *const step;

public:
    BoxDualPass(const Rows& rows_, BoxDualState<S>& state_)
        : rows(rows_), state(state_), padded(state_.padded), score(state_.scratch), step(score + padded) {}

    void run(const Visits& visits) {
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            const std::int64_t i = visits.order[at];
            if (at + FAR < visits.end) prefetch_sample(visits.order[at + FAR], visits.row(at + FAR));
            if (at + NEAR < visits.end) rows.prefetch(visits.row(at + NEAR));
            std::uint8_t& sleep = state.asleep[i];
            if (sleep & 15) {
                --sleep;
                continue;
            }
            const auto row = pairs_of(rows, visits.row(at));
            const double gap = padded == 1 ? visit_single(i, row) : visit(i, row);
            // Samples without use (they hardly add to the gap) rest longer each time: the high bits say how long.
            const int before = sleep >> 4;
            const int rest = gap > state.negligible ? 0 : before < LONGEST_REST ? before + 1 : before;
            sleep = static_cast<std::uint8_t>(rest << 4 | (rest > 1 ? rest - 1 : 0));
            state.tally[1] += 1;
            state.tally[2] += gap;
        }
    }

private:
    // Visits between asking for a row and needing it; for what tells where it lies, and for its sample's numbers.
    static constexpr std::int64_t NEAR = 4, FAR = 12;

    // What a visit needs besides the row: samples come in random order, each number from a line of its own.
    SEPARATRIX_INLINE void prefetch_sample(std::int64_t i, std::int64_t row) const {
        rows.prefetch_place(row);
        __builtin_prefetch(state.classes + i);
        __builtin_prefetch(state.upper + i);
        __builtin_prefetch(state.delta + i);
        __builtin_prefetch(state.norms + i);
        if (state.numbers) __builtin_prefetch(state.numbers + i);
        __builtin_prefetch(state.v + i * padded, 1);
        __builtin_prefetch(state.asleep + i, 1);
    }

    // Visits return what the sample adds to the duality gap before its step, φ(w·x) + φ*(v) + v w·x: with the
    // best answer z to its score alone, (z − v) (r − ½ δ (z + v)) − ε (|z| − |v|), where r = t − w·x. Where that
    // is negligible, there is no step.
    template <class Row>
    double visit(std::int64_t i, const Row& row) {
        const S U = static_cast<S>(state.upper[i]), delta = static_cast<S>(state.delta[i]);
        const S h = static_cast<S>(state.norms[i]) + delta, inverse = h > S(0) ? S(1) / h : S(0);
        const S eps = static_cast<S>(state.epsilon), threshold = eps * inverse;
        const S steepness = delta > S(0) ? S(2) * U : S(STEEP);
        const std::int64_t own = state.classes[i] * padded;
        const V number = B::all(state.numbers ? static_cast<S>(state.numbers[i]) : S(0));
        S* v = state.v + i * padded;
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) B::store(score + k, B::load(state.offsets + k));
        add_scores(row, state.weights, padded, score);
        V gains{}, gaps{};
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) {
            const V old = B::load(v + k), size = magnitude(old);
            const V low = B::all(U) * B::load(state.low + own + k), high = B::all(U) * B::load(state.high + own + k);
            const V r = B::load(state.targets + own + k) + number - B::load(score + k);
            const V answer = B::lower(B::upper(soft(r, eps) * steepness, low), high);
            gaps += (answer - old) * (r - S(0.5) * delta * (answer + old)) - eps * (magnitude(answer) - size);
            const V g = B::all(delta) * old - r;
            const V z = B::lower(B::upper(soft(old - g * inverse, threshold), low), high);
            const V s = z - old;
            gains -= s * (g + S(0.5) * h * s) + eps * (magnitude(z) - size);
            B::store(score + k, z);
            B::store(step + k, s);
        }
        const double gap = B::sum(gaps);
        if (!(gap > state.negligible)) return gap;
        state.tally[0] += B::sum(gains);
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) B::store(v + k, B::load(score + k));
        add_outer(row, step, padded, state.weights, 0, padded);
        const V constant = B::all(static_cast<S>(state.constant));
        for (std::int64_t k = 0; k < padded; k += B::WIDTH)
            B::store(state.offsets + k, B::load(state.offsets + k) + constant * B::load(step + k));
        return gap;
    }

    template <class Row>
    double visit_single(std::int64_t i, const Row& row) {
        const std::int64_t own = state.classes[i];
        const double U = state.upper[i], delta = state.delta[i], h = state.norms[i] + delta;
        const double old = state.v[i], target = state.targets[own] + (state.numbers ? state.numbers[i] : 0.0);
        const double r = target - single_score(row, state.weights) - state.offsets[0], g = delta * old - r;
        const double low = U * state.low[own], high = U * state.high[own], size = old < 0 ? -old : old;
        const auto change = [&](double z) { return state.epsilon * ((z < 0 ? -z : z) - size); };
        const double steepness = delta > 0 ? 2 * U : STEEP;
        const double answer = answered(r * steepness, state.epsilon * steepness, low, high);
        const double gap = (answer - old) * (r - 0.5 * delta * (answer + old)) - change(answer);
        if (!(gap > state.negligible)) return gap;
        const double inverse = h > 0 ? 1 / h : 0.0;
        const double z = answered(old - g * inverse, state.epsilon * inverse, low, high);
        const double s = static_cast<S>(z) - old;
        state.tally[0] += -s * (g + 0.5 * h * s) - change(z);
        state.v[i] = static_cast<S>(z);
        add_single(row, static_cast<S>(s), state.weights);
        state.offsets[0] += static_cast<S>(state.constant * s);
        return gap;
    }

    static double answered(double z, double threshold, double low, double high) {
        z = z > threshold ? z - threshold : z < -threshold ? z + threshold : 0.0;
        return z < low ? low : z > high ? high : z;
    }

    static V magnitude(const V& x) { return B::upper(x, -x); }
    static V soft(const V& x, S threshold) {
        // x minus its nearest point of [−threshold, threshold]
        return x - B::lower(B::upper(x, B::all(-threshold)), B::all(threshold));
    }
};

// What the loss of one column, smoothed around the multipliers v0, answers to the scores f + t q:
//
//     v = clip(soft(v0 − σ (f − target), σ ε)),   σ = ρ U,
//
// minus the derivative of its Moreau envelope. Squared losses are their own envelope: v0 = 0, ρ = 2, no
// upper bound.
inline ResponseSums respond(const Response& r) {
    using R = Register<double>;
    using V = R::Values;
    constexpr int COUNT = R::COUNT;
    constexpr double FAR = 1e300;
    V slope{}, bend{}, loss{}, linear{}, square{};
    for (std::int64_t i = 0; i < r.count; i += COUNT) {
        const int count = static_cast<int>(r.count - i < COUNT ? r.count - i : COUNT);
        // Beyond the last sample U = 0, which takes part in nothing.
        double part[COUNT] = {};
        const auto load = [&](const double* from) {
            if (count == COUNT) return R::load(from + i);
            for (int l = 0; l < count; ++l) part[l] = from[i + l];
            return R::load(part);
        };
        const V q = r.q ? load(r.q) : V{};
        V U = load(r.upper), target, low, high;
        const V f = load(r.f) + r.t * q;
        if (r.codes) {
            double code[COUNT] = {};
            for (int l = 0; l < count; ++l) code[l] = r.codes[i + l];
            target = R::load(code);
            U = target == 0 ? V{} : U;
            const V end = r.bounded ? U : (U > 0 ? R::all(FAR) : V{});
            low = target < 0 ? -end : V{};
            high = target > 0 ? end : V{};
        } else {
            target = load(r.numbers);
            high = r.bounded ? U : (U > 0 ? R::all(FAR) : V{});
            low = -high;
        }
        const V v0 = r.v0 ? load(r.v0) : V{};
        const V sigma = r.rho * U, threshold = r.epsilon * sigma, z = v0 - sigma * (f - target);
        const V nearest = z > threshold ? threshold : (z < -threshold ? -threshold : z);
        const V soft = z - nearest;
        const V v = soft < low ? low : (soft > high ? high : soft);
        const auto free = (soft > low) & (soft < high) & (soft != 0);
        slope += v * q;
        bend += free ? sigma * q * q : V{};
        if (!r.v && !r.inside) continue;
        const V excess = r.codes ? target * (target - f) : (f > target ? f - target : target - f) - r.epsilon;
        const V short_of = excess > 0 ? excess : V{};
        loss += U * (r.bounded ? short_of : short_of * short_of);
        linear += v * target - r.epsilon * (v < 0 ? -v : v);
        square += U > 0 ? v * v / (4.0 * U) : V{};
        double values[COUNT];
        R::store(values, v);
        for (int l = 0; l < count; ++l) {
            if (r.v) r.v[i + l] = values[l];
            if (r.inside) r.inside[i + l] = free[l] != 0;
        }
    }
    const auto total = [](const V& values) { return sum_of<double>(values); };
    return {total(slope), total(bend), total(loss), total(linear), total(square)};
}

// How far to go along q: where the slope first + t curve − Σ v q of the objective, which rises with t from
// start < 0, is about 0. Newton's method on it, kept between the ends that are known.
inline double search(Response r, double first, double curve, double start) {
    constexpr double ENOUGH = 0.01, FAR = 100;
    double low = 0, high = -1, t = 1;
    for (int step = 0; step < 60; ++step) {
        r.t = t;
        const ResponseSums sums = respond(r);
        const double slope = first + t * curve - sums.slope;
        if (slope != slope) return low;
        if ((slope < 0 ? -slope : slope) <= ENOUGH * -start) return t;
        (slope < 0 ? low : high) = t;
        t -= slope / (curve + sums.bend);
        // Where next to nothing bends, the step is not to be believed far beyond what has been seen.
        if (high < 0 && !(t < FAR * low)) t = FAR * low;
        // Beyond the ends: further, far back where nothing is known to be better, or between them.
        if (!(t > low && (high < 0 || t < high))) t = high < 0 ? 2 * low : low > 0 ? 0.5 * (low + high) : 0.1 * high;
    }
    return low;
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
