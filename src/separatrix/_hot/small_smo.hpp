// Many small dual problems that share one kernel matrix, solved by the steps of smo.hpp: what Python spends on one
// problem is more than all steps of a small one cost.
//
// Steps of pairs converge slowly in the end. From a coarse tolerance on, and whenever they take long, the free
// variables move together: with β = s a, the step solves K d = b 1 − E, 1'd = 0 on them, and stops at the first bound
// that it meets; what meets it stays there, and the others go on. Where K is singular on them, there is a direction
// without curvature, and they follow it to a bound first.
#pragma once

#include <cstring>

#include "small_smo_state.hpp"
#include "smo.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Scratch memory that is made when it is asked for, and not cleared: its first touch costs more than most work on it.
template <class T>
struct LateScratch {
    T* data = nullptr;
    std::int64_t size = 0;
    LateScratch() = default;
    LateScratch(const LateScratch&) = delete;
    LateScratch& operator=(const LateScratch&) = delete;
    ~LateScratch() { ::operator delete(data, std::align_val_t(64)); }

    // Memory for so many; what was there is kept only if they are no more than before.
    T* of(std::int64_t count) {
        if (count > size) {
            ::operator delete(data, std::align_val_t(64));
            data = nullptr, size = 0;
            data = static_cast<T*>(::operator new(static_cast<std::size_t>(count) * sizeof(T), std::align_val_t(64)));
            size = count;
        }
        return data;
    }
};

class SmallSmo {
    // Of a pivot, relative to the diagonal, below which a column depends on those before.
    static constexpr double DEPENDENT = 1e-11;
    // Of a sum of one product, relative to the diagonal: what is left of a pivot below it is none.
    static constexpr double ROUNDING = 1e-15;
    // Sums and bounds that one move of the free variables may heed.
    static constexpr int CONDITIONS = 32;
    // Steps of pairs, about, that come between two looks at the clock.
    static constexpr std::int64_t LONGEST = 1 << 14;

    const SmallProblems& p;
    const std::int64_t most;
    SmoState<double> s{};
    Scratch<double> numbers;
    LateScratch<double> block, factor, conditions;
    Scratch<double*> pointers;
    Scratch<std::int64_t> integers;
    double *const signs, *const upper, *const diag, *const alpha, *const E, *const scale, *const solved;
    std::int64_t *const used, *const order, *const free;
    std::int64_t begin = 0, variables = 0;
    double curvature = 0;  // of the direction, where it has next to none

public:
    explicit SmallSmo(const SmallProblems& problems)
        : p(problems), most(problems.largest), numbers(14 * most), pointers(most), integers(3 * most),
          signs(numbers.data), upper(signs + most), diag(upper + most), alpha(diag + most), E(alpha + most), scale(E + most), solved(scale + most), used(integers.data), order(used + most),
          free(order + most) {
        double* rest = solved + 3 * most;
        s.F = rest, s.up = rest + most, s.low = rest + 2 * most;
        s.signs = signs, s.upper = upper, s.diag = s.diagonal = diag, s.alpha = alpha, s.E = E;
        s.rows = pointers.data, s.used = used;
    }

    void solve(std::int64_t k, double deadline, double (*seconds)()) {
        read(k);
        s.steps = p.steps[k];
        s.worst_curvature = p.worst_curvature[k];
        s.violation = INFINITE;
        // Time breaks a problem off between such quotas only and goes on there: it changes no bit of the solution.
        std::int64_t quota = p.quota[k];
        s.tol = quota || s.steps || p.tol > p.coarse ? p.tol : p.coarse;
        if (!quota) quota = 100 + 4 * s.points;
        p.quota[k] = 0;
        for (;;) {
            s.most_steps = s.steps + quota < p.most_steps || p.most_steps < 0 ? s.steps + quota : p.most_steps;
            s.status = 0;
            s.loaded = false;
            run_smo(s, INFINITE, seconds);
            if (s.status == 0 || s.status == 3 || (s.status == 1 && s.tol <= p.tol)) break;
            if (s.status == 2 && p.most_steps >= 0 && s.steps >= p.most_steps) break;
            s.tol = p.tol;
            // From now on as much time for pairs as for all free variables together; more where those do not move.
            const double cost = move_free();
            const auto steps = static_cast<std::int64_t>(cost / (4.0 * static_cast<double>(variables) + 100.0));
            quota = cost > 0 ? 2 + steps : quota < LONGEST ? 2 * quota : quota;
            if (seconds() > deadline) {
                s.status = 0;
                p.quota[k] = quota;
                break;
            }
        }
        write(k);
    }

private:
    void read(std::int64_t k) {
        const std::int64_t before = begin, count = variables;
        begin = p.starts[k];
        variables = p.starts[k + 1] - begin;
        s.points = variables / p.copies;
        s.copies = p.copies;
        s.separate = p.separate;
        const bool sorts = p.separate && p.copies == 1;
        std::int64_t positive = 0;
        for (std::int64_t v = 0; v < variables; ++v) positive += p.signs[begin + v] > 0;
        std::int64_t at[2] = {0, positive};
        for (std::int64_t v = 0; v < variables; ++v) order[sorts ? at[p.signs[begin + v] > 0 ? 0 : 1]++ : v] = begin + v;
        s.split[0] = 0;
        s.split[1] = p.copies == 2 ? s.points : sorts ? positive : variables;
        s.split[2] = variables;
        // Problems on the same samples (one against all others) follow each other.
        const bool known = !sorts && variables == count &&
                           std::memcmp(p.rows + begin, p.rows + before, sizeof(*p.rows) * static_cast<std::size_t>(count)) == 0;
        // Neighbouring samples are read where they are.
        const std::int64_t first = p.rows[order[0]];
        bool neighbours = true;
        for (std::int64_t q = 1; q < s.points && neighbours; ++q) neighbours = p.rows[order[q]] == first + q;
        double* const copy = neighbours || known ? nullptr : block.of(s.points * s.points);
        for (std::int64_t q = 0; q < s.points && !known; ++q) {
            const double* from = p.values + p.rows[order[q]] * p.stride;
            double* to = neighbours ? const_cast<double*>(from) + first : copy + q * s.points;
            if (!neighbours)
                for (std::int64_t c = 0; c < s.points; ++c) to[c] = from[p.rows[order[c]]];
            s.rows[q] = to;
            diag[q] = to[q];
        }
        const bool fresh = p.status[k] < 0;
        for (std::int64_t v = 0; v < variables; ++v) {
            signs[v] = p.signs[order[v]];
            upper[v] = p.upper[order[v]];
            alpha[v] = p.alpha[order[v]];
            E[v] = signs[v] * p.gradient[order[v]];
        }
        if (fresh)
            for (std::int64_t v = 0; v < variables; ++v)
                if (alpha[v] != 0) add(v % s.points, signs[v] * alpha[v]);
    }

    // E changes with β of a point.
    void add(std::int64_t point, double change) {
        const double* row = s.rows[point];
        for (std::int64_t c = 0; c < p.copies; ++c)
            for (std::int64_t q = 0; q < s.points; ++q) E[c * s.points + q] += change * row[q];
    }

    void write(std::int64_t k) {
        for (std::int64_t v = 0; v < variables; ++v) {
            p.alpha[order[v]] = alpha[v];
            p.gradient[order[v]] = signs[v] * E[v];
        }
        p.steps[k] = s.steps;
        p.violation[k] = s.violation;
        p.worst_curvature[k] = s.worst_curvature;
        p.status[k] = s.status;
    }

    bool is_free(std::int64_t v) const { return alpha[v] > 0 && alpha[v] < upper[v]; }
    int group(std::int64_t v) const { return s.separate && v >= s.split[1] ? 1 : 0; }

    // Moves the free variables towards their common minimum; returns about how many products that took, 0 if none moved.
    double move_free() {
        if (p.copies == 2 && s.separate) unpair();
        std::int64_t count = 0;
        double cost = 0;
        for (std::int64_t v = 0; v < variables; ++v) {
            if (!is_free(v)) continue;
            // Of two variables of a point that share a sum one is enough.
            if (p.copies == 2 && !s.separate && v >= s.points && is_free(v - s.points)) continue;
            free[count++] = v;
        }
        while (count >= 2) {
            const auto f = static_cast<double>(count), before = cost;
            const std::int64_t independent = factorise(count);
            cost += f * f * f / 6;
            if (!independent) return before;
            if (independent == count) {
                const int moves = bounce(count);
                return moves ? cost + moves * f * (f + static_cast<double>(variables)) : before;
            }
            cost += f * (f + static_cast<double>(variables));
            double slope = 0;
            for (std::int64_t i = 0; i < count; ++i) slope += solved[i] * E[free[i]];
            if (slope > 0)
                for (std::int64_t i = 0; i < count; ++i) solved[i] = -solved[i];
            const double length = reach(count, curvature > 0 ? magnitude(slope) / curvature : INFINITE);
            if (!(length < INFINITE)) return before;
            std::int64_t left = 0;
            for (std::int64_t i = 0; i < count; ++i)
                if (!advance(free[i], solved[i], length)) free[left++] = free[i];
            if (left == count) break;
            count = left;
        }
        return cost;
    }

    // What the two variables of a point have in common counts in the sums alone: few points take all of it, to their
    // bounds. Else many have two free variables each, with the same columns of K.
    void unpair() {
        const auto common = [&](std::int64_t q) { return alpha[q] < alpha[q + s.points] ? alpha[q] : alpha[q + s.points]; };
        double mass = 0;
        std::int64_t pairs = 0;
        for (std::int64_t q = 0; q < s.points; ++q) {
            mass += common(q);
            pairs += is_free(q) && is_free(q + s.points);
        }
        for (std::int64_t q = 0; q < s.points && pairs > 1; ++q) {
            const bool first = alpha[q] >= alpha[q + s.points];
            double &more = alpha[first ? q : q + s.points], &less = alpha[first ? q + s.points : q];
            const double size = more - less, bound = upper[q], share = mass < bound - size ? mass : bound - size;
            more = share < bound - size ? size + share : bound;
            less = more - size;
            mass -= share;
        }
    }

    // How far the direction leads, at most so far, before a variable meets a bound.
    double reach(std::int64_t count, double length) const {
        for (std::int64_t i = 0; i < count; ++i) {
            const double most_here = room(free[i], solved[i]);
            if (length * magnitude(solved[i]) > most_here) length = most_here / magnitude(solved[i]);
        }
        return length;
    }

    // Takes a variable along its part of the direction; returns whether it meets its bound.
    bool advance(std::int64_t v, double way, double length) {
        const double step = length * way;
        if (step == 0) return false;
        const bool meets = magnitude(step) >= room(v, way) * (1 - 1e-14), grows = (step > 0) == (signs[v] > 0);
        alpha[v] = meets ? (grows ? upper[v] : 0.0) : alpha[v] + signs[v] * step;
        add(v % s.points, step);
        return meets;
    }

    // Goes to the minimum from bound to bound: d with K d = A'λ − E, A d = 0, where A has the sums of groups and one
    // row for each variable that has met its bound. One factor of K serves all: each bound takes one K⁻¹a more, and
    // K⁻¹E follows the steps. Returns how many there were.
    int bounce(std::int64_t count) {
        const int groups = s.separate && group(free[count - 1]) != group(free[0]) ? 2 : 1;
        double *const d = solved, *const x = solved + most, *const columns = conditions.of(CONDITIONS * count);
        double M[CONDITIONS][CONDITIONS], multiplier[CONDITIONS];
        std::int64_t held[CONDITIONS];
        int known = 0, moves = 0;
        const auto times = [&](int c, const double* z) {  // row c of A
            if (c >= groups) return z[held[c]];
            double sum = 0;
            for (std::int64_t i = 0; i < count; ++i)
                if (groups == 1 || group(free[i]) == c) sum += z[i];
            return sum;
        };
        const auto condition = [&](std::int64_t place) {
            double* z = columns + known * count;
            for (std::int64_t i = 0; i < count; ++i) z[i] = known < groups ? groups == 1 || group(free[i]) == known : i == place;
            held[known] = place;
            back_substitute(z, count);
            ++known;
            for (int c = 0; c < known; ++c) M[c][known - 1] = M[known - 1][c] = times(c, z);
        };
        for (std::int64_t i = 0; i < count; ++i) x[i] = E[free[i]];
        back_substitute(x, count);
        for (int g = 0; g < groups; ++g) condition(-1);
        for (;;) {
            for (int c = 0; c < known; ++c) multiplier[c] = times(c, x);
            if (!eliminate(M, multiplier, known)) return moves;
            for (std::int64_t i = 0; i < count; ++i) d[i] = -x[i];
            for (int c = 0; c < known; ++c) {
                const double* z = columns + c * count;
                for (std::int64_t i = 0; i < count; ++i) d[i] += multiplier[c] * z[i];
            }
            for (int c = groups; c < known; ++c) d[held[c]] = 0;
            if (!keep_sums(count)) return moves;
            double slope = 0;
            for (std::int64_t i = 0; i < count; ++i) slope += d[i] * E[free[i]];
            if (!(slope < 0)) return moves;
            const double length = reach(count, 1);
            bool meets = false;
            ++moves;
            for (std::int64_t i = 0; i < count; ++i) {
                x[i] += length * d[i];
                if (!advance(free[i], d[i], length)) continue;
                meets = true;
                if (known < CONDITIONS) condition(i);
                else ++known;
            }
            if (!meets || known >= CONDITIONS) return moves;
        }
    }

    // r ← M⁻¹ r for a positive definite M; returns whether it is.
    static bool eliminate(const double (&M)[CONDITIONS][CONDITIONS], double* r, int count) {
        double L[CONDITIONS][CONDITIONS];
        for (int i = 0; i < count; ++i) {
            for (int j = 0; j <= i; ++j) {
                double sum = M[i][j];
                for (int l = 0; l < j; ++l) sum -= L[i][l] * L[j][l];
                if (i == j && !(sum > 0)) return false;
                L[i][j] = i == j ? __builtin_sqrt(sum) : sum / L[j][j];
            }
            for (int l = 0; l < i; ++l) r[i] -= L[i][l] * r[l];
            r[i] /= L[i][i];
        }
        for (int i = count - 1; i >= 0; --i) {
            for (int l = i + 1; l < count; ++l) r[i] -= L[l][i] * r[l];
            r[i] /= L[i][i];
        }
        return true;
    }

    // How far β of a variable may go this way.
    double room(std::int64_t v, double way) const { return (way > 0) == (signs[v] > 0) ? upper[v] - alpha[v] : alpha[v]; }
    static double magnitude(double x) { return x < 0 ? -x : x; }

    // (four rows from a on)·b: each number of b is read once.
    static void dots(const double* a, std::int64_t stride, const double* b, std::int64_t count, double* sums) {
        using R = Register<double>;
        Values<double> part[4] = {R::all(0), R::all(0), R::all(0), R::all(0)};
        std::int64_t i = 0;
        for (; i + R::COUNT <= count; i += R::COUNT) {
            const auto shared = R::load(b + i);
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) part[k] += R::load(a + k * stride + i) * shared;
        }
        for (int k = 0; k < 4; ++k) {
            sums[k] = 0;
            for (int l = 0; l < R::COUNT; ++l) sums[k] += part[k][l];
            for (std::int64_t rest = i; rest < count; ++rest) sums[k] += a[k * stride + rest] * b[rest];
        }
    }

    // a'b in the lanes of two registers: one sum after the other would wait for each product.
    static double dot(const double* a, const double* b, std::int64_t count) {
        using R = Register<double>;
        auto even = R::all(0), odd = R::all(0);
        std::int64_t i = 0;
        for (; i + 2 * R::COUNT <= count; i += 2 * R::COUNT) {
            even += R::load(a + i) * R::load(b + i);
            odd += R::load(a + i + R::COUNT) * R::load(b + i + R::COUNT);
        }
        even += odd;
        double sum = 0;
        for (int l = 0; l < R::COUNT; ++l) sum += even[l];
        for (; i < count; ++i) sum += a[i] * b[i];
        return sum;
    }

    // Factorises K of the free variables and returns `count`; if the column of the i-th depends on those before, solved ←
    // the combination that vanishes, and returns i; 0 if there is neither.
    std::int64_t factorise(std::int64_t count) {
        double mean = 0;
        for (std::int64_t i = 0; i < count; ++i) mean += diag[free[i] % s.points] / static_cast<double>(count);
        if (!(mean > 0)) return 0;
        double* const factors = factor.of(count * count);
        // Where sums are kept, K + σ 1 1' is as good as K, and regular where only the sum hides a direction.
        for (std::int64_t i = 0, begin = 0; i < count; ++i) {
            double* L = factors + i * count;
            if (i % 4 == 0) {
                const std::int64_t rows = count - i < 4 ? count - i : 4;
                for (std::int64_t k = 0; k < rows; ++k) {
                    const double* row = s.rows[free[i + k] % s.points];
                    for (std::int64_t j = 0; j <= i + k; ++j)
                        L[k * count + j] = row[free[j] % s.points] + (group(free[i + k]) == group(free[j]) ? mean : 0.0);
                }
                // Columns of earlier rows, for four rows at once.
                begin = rows == 4 ? i : 0;
                for (std::int64_t j = 0; j < begin; ++j) {
                    double sums[4];
                    dots(L, count, factors + j * count, j, sums);
                    for (int k = 0; k < 4; ++k) L[k * count + j] = (L[k * count + j] - sums[k]) * scale[j];
                }
            }
            const double size = L[i];
            for (std::int64_t j = begin; j < i; ++j) {
                const double* other = factor.data + j * count;
                L[j] = (L[j] - dot(L, other, j)) * scale[j];
            }
            const double pivot = size - dot(L, L, i);
            if (pivot < -DEPENDENT * size * static_cast<double>(count)) return 0;  // an indefinite kernel
            if (!(pivot > DEPENDENT * size)) {
                curvature = pivot > ROUNDING * static_cast<double>(count) * size ? pivot : 0.0;
                return dependent(i, count);
            }
            scale[i] = 1 / __builtin_sqrt(pivot);
        }
        return count;
    }

    // solved ← the combination of the first i + 1 columns of K that vanishes.
    std::int64_t dependent(std::int64_t i, std::int64_t count) {
        const double* L = factor.data + i * count;
        double* x = solved;
        for (std::int64_t j = 0; j < count; ++j) x[j] = j < i ? -L[j] : j == i;
        for (std::int64_t j = i - 1; j >= 0; --j) {
            const double* other = factor.data + j * count;
            x[j] *= scale[j];
            for (std::int64_t l = 0; l < j; ++l) x[l] -= other[l] * x[j];
        }
        return i && keep_sums(i + 1) ? i : 0;
    }

    // Takes away what rounding has left of the sums of the first of the direction's numbers; returns if all are finite.
    bool keep_sums(std::int64_t count) {
        double rest[2] = {}, members[2] = {};
        for (std::int64_t i = 0; i < count; ++i) {
            rest[group(free[i])] += solved[i];
            members[group(free[i])] += solved[i] != 0;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            const int g = group(free[i]);
            if (solved[i] != 0) solved[i] -= rest[g] / members[g];
            if (!(solved[i] < INFINITE && solved[i] > -INFINITE)) return false;
        }
        return true;
    }

    // x ← (L L')⁻¹ x
    void back_substitute(double* x, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const double* L = factor.data + i * count;
            x[i] = (x[i] - dot(L, x, i)) * scale[i];
        }
        for (std::int64_t i = count - 1; i >= 0; --i) {
            const double* L = factor.data + i * count;
            x[i] *= scale[i];
            for (std::int64_t l = 0; l < i; ++l) x[l] -= L[l] * x[i];
        }
    }
};

void solve_problems(const SmallProblems& p, std::int64_t (*next)(void*), void* owner, double deadline,
                    double (*seconds)()) {
    SmallSmo work(p);
    for (std::int64_t k = next(owner); k >= 0; k = next(owner)) {
        work.solve(k, deadline, seconds);
        if (seconds() > deadline) return;
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
