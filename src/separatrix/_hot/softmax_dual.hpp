// Dual coordinate descent for softmax regression, one sample and all its classes at a time.
//
//     min over W, b:  C Σ_i s_i [logsumexp_k f_k(x_i) − f_{c_i}(x_i)] + ½‖W‖²,   f_k(x) = w_k·x + b_k
//
// Dual variables: mu_i in the simplex, alpha_i = C s_i (t_i − mu_i), W = Σ alpha_i x_iᵀ. With
// q = C s_i ‖x_i‖² the best mu of one sample, all others fixed, solves
//
//     log mu_k + q mu_k = h_k − Z,   h_k = f_k + q mu_old,k,   Σ_k mu_k = 1,
//
// found by Newton steps on log mu and Z together (Yu, Huang and Lin, 2011, solve the same problem class
// by class). The rows stand for x − m and have sigma added to all their inner products, which changes
// nothing where Σ alpha = 0, the condition of a free intercept, and makes the descent much faster.
#pragma once

#include <cstdint>

#include "rows.hpp"
#include "softmax_dual_state.hpp"
#include "visits.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// One row as pairs (feature, value), whatever its storage.
template <class T>
struct DensePairs {
    const T* x;
    std::int64_t count;
    std::int64_t feature(std::int64_t p) const { return p; }
    T value(std::int64_t p) const { return x[p]; }
};
template <class T, class Index>
struct CsrPairs {
    const T* x;
    const Index* j;
    std::int64_t count;
    std::int64_t feature(std::int64_t p) const { return j[p]; }
    T value(std::int64_t p) const { return x[p]; }
};
template <class T>
DensePairs<T> pairs_of(const DenseRows<T>& rows, std::int64_t i) { return {rows.row(i), rows.n_features}; }
template <class T, class Index>
CsrPairs<T, Index> pairs_of(const CsrRows<T, Index>& rows, std::int64_t i) {
    const std::int64_t begin = rows.indptr[i];
    return {rows.data + begin, rows.indices + begin, rows.indptr[i + 1] - begin};
}

inline float log_of(float x) { return __builtin_logf(x); }
inline double log_of(double x) { return __builtin_log(x); }

constexpr double TAYLOR[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                             1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
                             1.0 / 6227020800.0};

// STEP numbers of one row of parameters at a time.
template <class S>
struct Block {
    using Values = typename Lanes<S>::Values;
    using Mask = typename Lanes<S>::Mask;
    static constexpr int WIDTH = Lanes<S>::STEP;

    static Values load(const S* from) { return Lanes<S>::template load<Values>(from); }
    static void store(S* to, const Values& values) { __builtin_memcpy(to, &values, sizeof values); }
    static Values all(S value) { return value - Values{}; }
    static Values choose(const Mask& m, const Values& a, const Values& b) { return m ? a : b; }
    static Values lower(const Values& a, const Values& b) { return a < b ? a : b; }
    static Values upper(const Values& a, const Values& b) { return a > b ? a : b; }
    static S sum(const Values& v) {
        S total = v[0];
        for (int l = 1; l < WIDTH; ++l) total += v[l];
        return total;
    }
    static S largest(const Values& v) {
        S most = v[0];
        for (int l = 1; l < WIDTH; ++l) most = v[l] > most ? v[l] : most;
        return most;
    }

    // exp to about two units of the last place; what would underflow becomes the smallest normal number.
    static Values exp(Values x) {
        constexpr bool SINGLE = sizeof(S) == 4;
        constexpr S ROUND = SINGLE ? S(12582912.0) : S(6755399441055744.0);  // 1.5 · 2^(digits − 1)
        constexpr S HIGH = SINGLE ? S(0.693359375) : S(6.93145751953125e-1);
        constexpr S LOW = SINGLE ? S(-2.12194440e-4) : S(1.42860682030941723212e-6);
        x = lower(upper(x, all(SINGLE ? S(-87.0) : S(-708.0))), all(SINGLE ? S(88.0) : S(709.0)));
        const Values shifted = x * all(S(1.4426950408889634)) + all(ROUND);
        const Values n = shifted - all(ROUND);
        const Values r = (x - n * all(HIGH)) - n * all(LOW);
        constexpr int TERMS = SINGLE ? 8 : 14;
        Values p = all(static_cast<S>(TAYLOR[TERMS - 1]));
        for (int term = TERMS - 2; term >= 0; --term) p = p * r + all(static_cast<S>(TAYLOR[term]));
        // The low bits of `shifted` hold n as an integer; it goes into the exponent.
        const Mask power = (Mask)shifted << (SINGLE ? 23 : 52);
        return (Values)((Mask)p + power);  // a cast between vector types keeps the bits
    }

    // log of a positive number to about 1e-4: a start for Newton's method.
    static Values rough_log(const Values& x) {
        constexpr bool SINGLE = sizeof(S) == 4;
        const Mask bits = (Mask)x, one = (Mask)all(S(1));
        const Mask low = (Mask{} + 1) << (SINGLE ? 23 : 52);
        const Values z = (Values)((bits & (low - 1)) | one);
        const Mask power = (bits >> (SINGLE ? 23 : 52)) - (SINGLE ? 127 : 1023);
        const Values t = (z - all(S(1.41421356))) / (z + all(S(1.41421356)));
        const Values t2 = t * t;
        const Values log_z = all(S(0.34657359)) + all(S(2)) * t * (all(S(1)) + t2 * (all(S(1.0 / 3)) + t2 * all(S(0.2))));
        return __builtin_convertvector(power, Values) * all(S(0.69314718)) + log_z;
    }
};

// Neighbouring columns whose sums stay in registers while all pairs of a row pass by.
constexpr int TILE = 8;
// Pairs whose weights are asked for in advance.
constexpr int AHEAD = 8;

// out[k] += Σ x_j weights[j][k] for COUNT blocks of columns
template <int COUNT, class S, class Pairs>
void tile_scores(const Pairs& row, const S* weights, std::int64_t padded, S* out) {
    using B = Block<S>;
    typename B::Values sum[COUNT];
    for (int c = 0; c < COUNT; ++c) sum[c] = B::load(out + c * B::WIDTH);
    for (std::int64_t p = 0; p < row.count; ++p) {
        const S* w = weights + row.feature(p) * padded;
        if (p + AHEAD < row.count) {
            const S* next = weights + row.feature(p + AHEAD) * padded;
            constexpr int LINE = 64 / sizeof(S);
            for (int c = 0; c < COUNT * B::WIDTH; c += LINE) __builtin_prefetch(next + c);
        }
        const auto x = B::all(static_cast<S>(row.value(p)));
        for (int c = 0; c < COUNT; ++c) sum[c] += x * B::load(w + c * B::WIDTH);
    }
    for (int c = 0; c < COUNT; ++c) B::store(out + c * B::WIDTH, sum[c]);
}

// weights[j][k] += x_j step[k]
template <int COUNT, class S, class Pairs>
void tile_add(const Pairs& row, const S* step, std::int64_t padded, S* weights) {
    using B = Block<S>;
    typename B::Values steps[COUNT];
    for (int c = 0; c < COUNT; ++c) steps[c] = B::load(step + c * B::WIDTH);
    for (std::int64_t p = 0; p < row.count; ++p) {
        S* w = weights + row.feature(p) * padded;
        const auto x = B::all(static_cast<S>(row.value(p)));
        for (int c = 0; c < COUNT; ++c) B::store(w + c * B::WIDTH, B::load(w + c * B::WIDTH) + x * steps[c]);
    }
}

// body<COUNT>(column) for tiles of COUNT blocks over the columns first … last − 1
template <class S, class Body>
void over_tiles(std::int64_t first, std::int64_t last, Body body) {
    constexpr std::int64_t WIDE = TILE * Block<S>::WIDTH;
    for (; first + WIDE <= last; first += WIDE) body.template operator()<TILE>(first);
    switch ((last - first) / Block<S>::WIDTH) {
        case 1: return body.template operator()<1>(first);
        case 2: return body.template operator()<2>(first);
        case 3: return body.template operator()<3>(first);
        case 4: return body.template operator()<4>(first);
        case 5: return body.template operator()<5>(first);
        case 6: return body.template operator()<6>(first);
        case 7: return body.template operator()<7>(first);
        default: return;
    }
}

template <class S, class Pairs>
void add_scores(const Pairs& row, const S* weights, std::int64_t padded, S* out) {
    over_tiles<S>(0, padded, [&]<int COUNT>(std::int64_t k) {
        tile_scores<COUNT>(row, weights + k, padded, out + k);
    });
}

template <class S, class Pairs>
void add_outer(const Pairs& row, const S* step, std::int64_t padded, S* weights, std::int64_t first,
               std::int64_t last) {
    over_tiles<S>(first, last, [&]<int COUNT>(std::int64_t k) {
        tile_add<COUNT>(row, step + k, padded, weights + k);
    });
}

template <class S, class Pairs>
S single_score(const Pairs& row, const S* weights) {
    S part[4] = {};
    std::int64_t p = 0;
    for (; p + 4 <= row.count; p += 4)
        for (int l = 0; l < 4; ++l) part[l] += static_cast<S>(row.value(p + l)) * weights[row.feature(p + l)];
    for (; p < row.count; ++p) part[0] += static_cast<S>(row.value(p)) * weights[row.feature(p)];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

template <class S, class Pairs>
void add_single(const Pairs& row, S step, S* weights) {
    for (std::int64_t p = 0; p < row.count; ++p) weights[row.feature(p)] += step * static_cast<S>(row.value(p));
}

constexpr std::uint8_t NEW = 255;
constexpr int LONGEST_SLEEP = 7;

template <class S, class Rows>
class SoftmaxDualPass {
    using B = Block<S>;
    using V = typename B::Values;
    static constexpr S TINY = sizeof(S) == 4 ? S(1e-30) : S(1e-290);

    const Rows& rows;
    SoftmaxDualState<S>& state;
    const std::int64_t padded;
    S *const score, *const old_mu, *const mu, *const nu, *const residual, *const valid;

public:
    SoftmaxDualPass(const Rows& rows_, SoftmaxDualState<S>& state_)
        : rows(rows_), state(state_), padded(state_.padded), score(state_.scratch),
          old_mu(score + padded), mu(old_mu + padded), nu(mu + padded), residual(nu + padded),
          valid(residual + padded) {
        for (std::int64_t k = 0; k < padded; ++k) valid[k] = k < state.columns ? S(1) : S(0);
    }

    void run(const Visits& visits) {
        for (std::int64_t at = visits.begin; at < visits.end; ++at) {
            const std::int64_t i = visits.order[at];
            if (at + 2 < visits.end) rows.prefetch(visits.row(at + 2));
            std::uint8_t& sleep = state.asleep[i];
            const int rest = sleep & 15;
            if (sleep != NEW && rest > 0) {
                --sleep;
                continue;
            }
            const double gain = state.columns == 1 ? visit_pair(i, pairs_of(rows, visits.row(at)))
                                                   : visit(i, pairs_of(rows, visits.row(at)));
            // Samples without use twice in a row sleep longer each time: the high bits say how long.
            int length = sleep == NEW ? 0 : sleep >> 4;
            length = gain < state.negligible ? (length < LONGEST_SLEEP ? length + 1 : length) : 0;
            sleep = static_cast<std::uint8_t>(length << 4 | (length > 1 ? length - 1 : 0));
            state.tally[0] += gain;
            state.tally[2] += 1;
        }
    }

private:
    template <class Body>
    void each(Body body) {
        for (std::int64_t k = 0; k < padded; k += B::WIDTH) body(k);
    }

    // One sample's step; returns the gain of the dual that it predicts.
    template <class Pairs>
    double visit(std::int64_t i, const Pairs& row) {
        const S scale = static_cast<S>(state.scale[i]), dot = static_cast<S>(state.mean_dots[i]);
        const S shrink = static_cast<S>(state.shrink), q = scale * shrink * static_cast<S>(state.norms[i]);
        const std::int64_t own = state.classes[i];
        S* stored = state.nu + i * padded;
        each([&](std::int64_t k) {
            B::store(score + k, B::load(state.offsets + k) - dot * B::load(state.sums + k));
        });
        add_scores(row, state.weights, padded, score);
        for (std::int64_t k = state.columns; k < padded; ++k) score[k] = 0;
        double gain;
        if (state.asleep[i] == NEW) {
            each([&](std::int64_t k) { B::store(old_mu + k, V{}); });
            old_mu[own] = 1;
            if (!(q < S(4)) || !from_scores(q)) solve(q);
            normalise();
            gain = 0;  // From alpha = 0, where the dual is 0, to here: exact.
            for (std::int64_t k = 0; k < state.columns; ++k) {
                const S step = old_mu[k] - mu[k];
                gain -= scale * (mu[k] * nu[k] + step * (score[k] + S(0.5) * q * step));
            }
        } else {
            gain = 0.5 * scale * newton(q, stored);
            if (gain < 0.1 * state.negligible) return gain;
            if (too_far || !polish(q)) solve(q);
            normalise();
        }
        each([&](std::int64_t k) {
            const V m = B::load(mu + k), old = B::load(old_mu + k), step = shrink * scale * (old - m);
            B::store(state.spread + k, B::load(state.spread + k) + scale * (m * (S(1) - m) - old * (S(1) - old)));
            B::store(stored + k, B::load(nu + k));
            B::store(residual + k, step);
            B::store(state.sums + k, B::load(state.sums + k) + step);
            B::store(state.offsets + k,
                     B::load(state.offsets + k) + (static_cast<S>(state.constant) - dot) * step);
        });
        add_outer(row, residual, padded, state.weights, 0, padded);
        state.tally[1] += 1;
        return gain;
    }

    // A first Newton step from the stored nu; returns Σ mu d (f − nu − Z), twice the gain over C s.
    double newton(S q, const S* stored) {
        V weight{}, weighted{};
        each([&](std::int64_t k) {
            const V n = B::load(stored + k), m = B::exp(n), y = B::load(score + k) - n;
            const V w = m / (S(1) + q * m);
            weight += w;
            weighted += w * y;
            B::store(nu + k, n);
            B::store(old_mu + k, m);
        });
        const S Z = B::sum(weighted) / B::sum(weight);
        V gain{}, rise = B::all(S(-1));
        each([&](std::int64_t k) {
            const V n = B::load(nu + k), m = B::load(old_mu + k), y = B::load(score + k) - n - Z;
            const V d = B::load(valid + k) * y / (S(1) + q * m), moved = B::exp(n + d);
            gain += m * d * y;
            // A large rise matters only to a probability that becomes noticeable.
            rise = B::upper(rise, B::lower(d, (S(10) + S(10) * q) * moved));
            B::store(nu + k, n + d);
            B::store(mu + k, moved);
        });
        shift = Z;
        too_far = B::largest(rise) > S(1);
        mask_tail();
        return B::sum(gain);
    }

    S shift = 0;           // Z
    bool too_far = false;  // whether the first Newton step was too long to be trusted

    void mask_tail() {
        for (std::int64_t k = state.columns; k < padded; ++k) {
            mu[k] = old_mu[k] = 0;
            nu[k] = S(-100);
        }
    }

    void normalise() {
        V total{};
        each([&](std::int64_t k) { total += B::load(mu + k); });
        const S sum = B::sum(total), log_sum = log_of(sum), factor = S(1) / sum;
        each([&](std::int64_t k) {
            B::store(nu + k, B::load(nu + k) - log_sum);
            B::store(mu + k, B::load(mu + k) * factor);
        });
    }

    // Joint Newton steps on nu and Z until they are small; false if they are not going to be.
    bool polish(S q) {
        constexpr S ENOUGH = sizeof(S) == 4 ? S(1e-5) : S(1e-10);
        for (int round = 0; round < 5; ++round) {
            V weight{}, weighted{}, total{};
            each([&](std::int64_t k) {
                const V m = B::load(mu + k);
                const V r = B::load(score + k) + q * (B::load(old_mu + k) - m) - shift - B::load(nu + k);
                const V w = m / (S(1) + q * m);
                weight += w;
                weighted += w * r;
                total += m;
                B::store(residual + k, r);
            });
            const S change = (B::sum(weighted) + (B::sum(total) - S(1))) / B::sum(weight);
            if (!(change < S(1) && change > S(-1))) return false;
            V size{};
            each([&](std::int64_t k) {
                const V m = B::load(mu + k), d = (B::load(residual + k) - change) / (S(1) + q * m);
                const V n = B::load(nu + k) + d;
                size += m * d * d;
                B::store(nu + k, n);
                B::store(mu + k, B::exp(n));
            });
            shift += change;
            mask_tail();
            if (B::sum(size) < ENOUGH) return true;
        }
        return false;
    }

    // A first solution for short rows, from the probabilities of the present scores.
    bool from_scores(S q) {
        shift = log_sum_exp();
        each([&](std::int64_t k) {
            const V n = B::load(score + k) - shift;
            B::store(nu + k, n);
            B::store(mu + k, B::exp(n));
        });
        mask_tail();
        return polish(q);
    }

    S log_sum_exp() {
        S most = score[0];
        for (std::int64_t k = 1; k < state.columns; ++k) most = score[k] > most ? score[k] : most;
        for (std::int64_t k = state.columns; k < padded; ++k) score[k] = most - S(80);
        V parts{};
        each([&](std::int64_t k) { parts += B::exp(B::load(score + k) - most); });
        return most + log_of(B::sum(parts));
    }

    // nu, mu and Z from anywhere: Z by Newton's method kept within a bracket, nu by Newton from a start
    // that is near for every q: with u = h − Z + log q, q mu solves w + log w = u.
    void solve(S q) {
        const S log_q = log_of(q > TINY ? q : TINY);
        for (std::int64_t k = state.columns; k < padded; ++k) old_mu[k] = 0;
        S highest = score[0] + q * old_mu[0];
        for (std::int64_t k = 1; k < state.columns; ++k) {
            const S h = score[k] + q * old_mu[k];
            highest = h > highest ? h : highest;
        }
        S low = highest - q, high = highest + log_of(static_cast<S>(state.columns));
        S Z = log_sum_exp();
        Z = Z < low ? low : Z > high ? high : Z;
        constexpr S ENOUGH = sizeof(S) == 4 ? S(1e-3) : S(1e-7);
        for (int round = 0; round < 60; ++round) {
            for (std::int64_t k = state.columns; k < padded; ++k) score[k] = Z - S(80);
            V total{}, slope{};
            each([&](std::int64_t k) {
                const V y = B::load(score + k) + q * B::load(old_mu + k) - Z, u = y + log_q;
                const V e = B::exp(B::lower(u, B::all(S(1))));
                const V large = u - B::rough_log(B::upper(u, B::all(S(1))));
                V n = y - B::choose(u > B::all(S(1)), large, e / (S(1) + e)), m = B::exp(n);
                for (int step = 0; step < 3; ++step) {
                    n += (y - n - q * m) / (S(1) + q * m);
                    m = B::exp(n);
                }
                B::store(nu + k, n);
                B::store(mu + k, m);
                total += m;
                slope += m / (S(1) + q * m);
            });
            const S sum = B::sum(total), error = sum - S(1);
            (error > 0 ? low : high) = Z;
            // Σ mu is convex in Z: Newton from the left never overshoots; from the right its logarithm
            // is nearly linear.
            S step = (error > 0 ? error : log_of(sum > TINY ? sum : TINY) * sum) / B::sum(slope);
            S next = Z + step;
            if (!(next > low && next < high)) next = low + (high - low) / 2;
            step = next - Z;
            if (step < ENOUGH && step > -ENOUGH) break;
            Z = next;
        }
        mask_tail();
    }

    // Two classes in one column: logit(mu) + q mu = q mu_old − y f for the probability mu of the wrong
    // class; alpha = C s y mu.
    template <class Pairs>
    double visit_pair(std::int64_t i, const Pairs& row) {
        const S scale = static_cast<S>(state.scale[i]), dot = static_cast<S>(state.mean_dots[i]);
        const S shrink = static_cast<S>(state.shrink), q = scale * shrink * static_cast<S>(state.norms[i]);
        const S y = state.classes[i] ? S(1) : S(-1);
        const S f = single_score(row, state.weights) + (state.offsets[0] - dot * state.sums[0]);
        const bool fresh = state.asleep[i] == NEW;
        const S before = fresh ? S(0) : logistic(state.nu[i]), goal = q * before - y * f;
        // The root lies between goal − q and goal.
        S low = goal - q, high = goal, eta = fresh ? goal : state.nu[i];
        eta = eta < low ? low : eta > high ? high : eta;
        for (int round = 0; round < 60; ++round) {
            const S m = logistic(eta), r = goal - eta - q * m;
            if (r > 0) low = eta; else high = eta;
            const S step = r / (S(1) + q * m * (S(1) - m));
            S next = eta + step;
            if (!(next > low && next < high) || round % 4 == 3) next = low + (high - low) / 2;
            const S change = next - eta;
            eta = next;
            if ((change < 0 ? -change : change) < (sizeof(S) == 4 ? S(1e-4) : S(1e-8))) break;
        }
        const S mu_new = logistic(eta), move = mu_new - before;
        const double gain = fresh ? scale * (-y * f * mu_new - S(0.5) * q * mu_new * mu_new + entropy(mu_new))
                                  : 0.5 * scale * move * (-y * f - state.nu[i]);
        if (!fresh && gain < 0.1 * state.negligible) return gain;
        const S step = shrink * scale * y * move;
        state.nu[i] = eta;
        state.sums[0] += step;
        state.offsets[0] += (static_cast<S>(state.constant) - dot) * step;
        state.spread[0] += scale * (mu_new * (S(1) - mu_new) - before * (S(1) - before));
        add_single(row, step, state.weights);
        state.tally[1] += 1;
        return gain;
    }

    static S entropy(S m) {
        const S other = S(1) - m;
        return -(m > TINY ? m * log_of(m) : S(0)) - (other > TINY ? other * log_of(other) : S(0));
    }

    static S logistic(S eta) {
        if constexpr (sizeof(S) == 4) {
            const S e = __builtin_expf(eta < 0 ? eta : -eta);
            return (eta < 0 ? e : S(1)) / (S(1) + e);
        } else {
            const S e = __builtin_exp(eta < 0 ? eta : -eta);
            return (eta < 0 ? e : S(1)) / (S(1) + e);
        }
    }
};

// scores[i] = row i times weights; both padded.
template <class S, class Rows>
void all_scores(const Rows& rows, const S* weights, std::int64_t padded, std::int64_t count, S* scores) {
    for (std::int64_t i = 0; i < count; ++i) {
        S* out = scores + i * padded;
        const auto row = pairs_of(rows, i);
        for (std::int64_t k = 0; k < padded; ++k) out[k] = 0;
        if (padded == 1) out[0] = single_score(row, weights);
        else add_scores(row, weights, padded, out);
    }
}

// weights[j][k] += Σ_i x_ij R[i][k] for the columns begin … end − 1: threads share the columns.
template <class S, class Rows>
void add_transposed(const Rows& rows, const S* R, std::int64_t padded, std::int64_t count, std::int64_t begin,
                    std::int64_t end, S* weights) {
    for (std::int64_t i = 0; i < count; ++i) {
        const S* step = R + i * padded;
        const auto row = pairs_of(rows, i);
        if (padded == 1) add_single(row, step[0], weights);
        else add_outer(row, step, padded, weights, begin, end);
    }
}

// P[i] = softmax(scores[i] + offsets), 0 in the padding; returns Σ weights[i] times the loss of sample i.
inline double softmax_rows(const double* scores, const double* offsets, const std::int32_t* classes,
                           const double* weights, std::int64_t count, std::int64_t columns,
                           std::int64_t padded, double* P) {
    using B = Block<double>;
    double loss = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double* f = scores + i * padded;
        double* p = P + i * padded;
        double most = f[0] + offsets[0];
        for (std::int64_t k = 1; k < columns; ++k) most = f[k] + offsets[k] > most ? f[k] + offsets[k] : most;
        const double own = f[classes[i]] + offsets[classes[i]] - most;
        for (std::int64_t k = 0; k < padded; k += B::WIDTH)
            B::store(p + k, B::exp(B::load(f + k) + B::load(offsets + k) - most));
        double total = 0;
        for (std::int64_t k = 0; k < columns; ++k) total += p[k];
        for (std::int64_t k = 0; k < columns; ++k) p[k] /= total;
        for (std::int64_t k = columns; k < padded; ++k) p[k] = 0;
        // Where the own class is the largest, the loss is log1p of the others: no digit is lost.
        double others = 0;
        for (std::int64_t k = 0; k < columns; ++k) others += k == classes[i] ? 0 : p[k];
        loss += weights[i] * (others < 0.5 ? -__builtin_log1p(-others) : log_of(total) - own);
    }
    return loss;
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
