// SMO in rounds: some variables take steps among themselves, then E of all variables follows.
//
// A step of smo.hpp reads two whole kernel rows, from memory where there are many. A round chooses WORKING variables,
// most of them those that moved farthest in the round before, the others the worst violators; their kernel values
// lie in a block of their own that stays in the caches, where steps cost little, and they are solved for to a SHARE
// of the violation. What they have changed is then added to E with one reading of their rows, by all threads,
// in double: steps add nothing to its rounding error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "row_memory.hpp"
#include "smo_rounds_state.hpp"
#include "smo_state.hpp"
#include "team.hpp"

namespace separatrix {

template <class T>
class SmoRounds {
public:
    static constexpr std::int64_t WORKING = 512;
    // Points from which on a round costs less than steps over all of them.
    static constexpr std::int64_t LEAST_POINTS = 4 * WORKING;

    SmoRounds(const SmoKernels<T>& steps, const RoundKernels<T>& rows, const SmoState<T>& s)
        : steps_(steps), loops_(rows), variable_(WORKING, -1), column_(WORKING, 0), moved_(WORKING, -1.0),
          place_(static_cast<std::size_t>(s.points * s.copies), -1), block_(WORKING * STRIDE), signs_(WORKING, 1.0),
          upper_(WORKING), price_(WORKING), diag_(WORKING), alpha_(WORKING), E_(WORKING), F_(WORKING), up_(WORKING),
          low_(WORKING), diagonal_(WORKING), rows_(WORKING), used_(WORKING) {
        for (std::int64_t k = 0; k < WORKING; ++k) rows_[at(k)] = block_.data() + k * STRIDE;
        if (!s.panels || s.panels->d > CHEAP_FEATURES) return;
        packed_ = *s.panels;
        packed_.n = WORKING;
        samples_.resize(at(packed_.panels() * packed_.width * packed_.d));
        halves_.resize(at(packed_.panels() * packed_.width));
        packed_.data = samples_.data();
        packed_.half = halves_.data();
        packed_.counts = nullptr;
    }

    // Rounds until the problem is solved or the deadline is reached; returns false where steps must go on alone.
    bool run(SmoState<T>& s, Team& team, double deadline, double (*seconds)()) {
        while (s.status == 0) {
            if (!look(s)) { s.status = 1; return true; }
            if (s.most_steps >= 0 && s.steps >= s.most_steps) { s.status = 2; return true; }
            if (seconds() > deadline) return true;
            choose(s);
            bring(s, team);
            if (!solve(s, seconds)) return false;
            spread(s, team);
        }
        return true;
    }

private:
    static constexpr std::int64_t STRIDE = WORKING + 16;
    // Features up to which a kernel value is computed as fast as it is found in a row.
    static constexpr std::int64_t CHEAP_FEATURES = 128;
    // How many new variables a round begins with, and the fewest.
    static constexpr std::int64_t FIRST_NEW = 64, LEAST_NEW = 32;
    // Share of the violation that a round leaves, and most steps that it takes for each of its variables.
    static constexpr double SHARE = 0.2;
    static constexpr std::int64_t MOST_STEPS = 20 * WORKING;
    // Rows that are computed or read together as one part of the work, and parts that E has.
    static constexpr std::int64_t PART_ROWS = 16, PARTS = 4, PART_COLUMNS = 1024;
    static std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

    struct Bounds {
        double grow, fall;
    };
    // E of a variable as far as it may grow, and as far as it may fall.
    static Bounds bounds(const SmoState<T>& s, std::int64_t v) {
        constexpr double NEVER = std::numeric_limits<double>::infinity();
        const double a = s.alpha[v], u = s.upper[v], E = s.E[v];
        if (s.price) {
            const double p = s.price[v];
            return {a < u ? (a < 0 ? E - p : E + p) : NEVER, a > -u ? (a > 0 ? E + p : E - p) : -NEVER};
        }
        const bool more = a < u, less = a > 0, positive = s.signs[v] > 0;
        return {(positive ? more : less) ? E : NEVER, (positive ? less : more) ? E : -NEVER};
    }
    static bool is_free(const SmoState<T>& s, std::int64_t v) { return s.alpha[v] != 0 && std::fabs(s.alpha[v]) < s.upper[v]; }
    int groups(const SmoState<T>& s) const { return s.separate ? 2 : 1; }
    std::pair<std::int64_t, std::int64_t> variables(const SmoState<T>& s, int g) const {
        if (!s.separate) return {0, s.split[2]};
        return {s.split[g], s.split[g + 1]};
    }
    std::pair<std::int64_t, std::int64_t> places(const SmoState<T>& s, int g) const {
        const std::int64_t size = WORKING / groups(s);
        return {g * size, (g + 1) * size};
    }

    // The violation and the middle of each group; returns whether there is one to cure.
    bool look(SmoState<T>& s) {
        s.violation = 0;
        for (int g = 0; g < groups(s); ++g) {
            const auto [begin, end] = variables(s, g);
            double least = std::numeric_limits<double>::infinity(), most = -least;
            for (std::int64_t v = begin; v < end; ++v) {
                const Bounds b = bounds(s, v);
                least = std::min(least, b.grow);
                most = std::max(most, b.fall);
            }
            middle_[g] = 0.5 * (least + most);
            if (most - least > s.violation) s.violation = most - least;
        }
        return s.violation > s.tol;
    }

    // Which variables take part. Those that stay keep their place, and with it their part of the block.
    void choose(SmoState<T>& s) {
        fresh_.clear();
        for (int g = 0; g < groups(s); ++g) {
            const auto [first, last] = places(s, g);
            auto& moving = ranked_[0];
            moving.clear();
            for (std::int64_t k = first; k < last; ++k)
                if (variable_[at(k)] >= 0 && moved_[at(k)] > 0 && is_free(s, variable_[at(k)])) moving.push_back({moved_[at(k)], k});
            cut(moving, at(5 * (last - first) / 8));
            stays_.assign(at(last - first), false);
            for (const auto& [by, k] : moving) stays_[at(k - first)] = true;
            const std::size_t room = at(last - first) - moving.size();

            // The worst violators of either side: those of one may be many that are all alike.
            for (auto& side : ranked_) side.clear();
            const auto [begin, end] = variables(s, g);
            for (std::int64_t v = begin; v < end; ++v) {
                const std::int64_t k = place_[at(v)];
                if (k >= 0 && stays_[at(k - first)]) continue;
                const Bounds b = bounds(s, v);
                if (b.grow < middle_[g]) ranked_[0].push_back({middle_[g] - b.grow, v});
                else if (b.fall > middle_[g]) ranked_[1].push_back({b.fall - middle_[g], v});
            }
            halve(room);
            // Of the others here those whose turn it is again stay, too.
            for (auto& side : ranked_) {
                const auto here = [&](const auto& one) { return place_[at(one.second)] >= 0; };
                for (const auto& one : side)
                    if (here(one)) stays_[at(place_[at(one.second)] - first)] = true;
                side.erase(std::remove_if(side.begin(), side.end(), here), side.end());
            }
            halve(at(most_new_));
            std::int64_t k = first;
            for (const auto& side : ranked_)
                for (const auto& [score, v] : side) {
                    while (stays_[at(k - first)]) ++k;
                    if (variable_[at(k)] >= 0) place_[at(variable_[at(k)])] = -1;
                    variable_[at(k)] = v;
                    column_[at(k)] = v % s.points;
                    place_[at(v)] = k;
                    fresh_.push_back(k++);
                }
        }
    }
    using Ranked = std::vector<std::pair<double, std::int64_t>>;
    // Leaves the greatest of either side, as many of one as of the other where there are.
    void halve(std::size_t room) {
        const std::size_t second = std::min(ranked_[1].size(), std::max(room / 2, room - std::min(room, ranked_[0].size())));
        cut(ranked_[0], room - second);
        cut(ranked_[1], second);
    }
    // Leaves the greatest.
    static void cut(Ranked& ranked, std::size_t count) {
        if (count >= ranked.size()) return;
        std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first || (a.first == b.first && a.second < b.second); });
        ranked.resize(count);
    }

    // The new variables' part of the block: of their kernel rows, or computed where that is cheaper.
    void bring(SmoState<T>& s, Team& team) {
        const bool computed = packed_.d > 0;
        if (!computed) {
            wanted_.clear();
            for (std::int64_t k = 0; k < WORKING; ++k)
                if (variable_[at(k)] >= 0) wanted_.push_back(column_[at(k)]);
            compute(s, team);
        }
        is_new_.assign(WORKING, false);
        for (const std::int64_t k : fresh_) {
            is_new_[at(k)] = true;
            if (computed) loops_.put(*s.panels, column_[at(k)], packed_, k);
        }
        others_.clear();
        for (std::int64_t k = 0; k < WORKING; ++k)
            if (!is_new_[at(k)]) others_.push_back(k);
        const auto count = static_cast<std::int64_t>(fresh_.size());
        team.share(parts(count), [&](std::int64_t number) {
            const std::int64_t begin = number * PART_ROWS, size = std::min(PART_ROWS, count - begin);
            const std::int64_t* const some = fresh_.data() + begin;
            if (computed) {
                T* out[PART_ROWS];
                for (std::int64_t f = 0; f < size; ++f) out[f] = rows_[at(some[f])];
                loops_.rows(packed_, some, size, packed_, out);
            } else {
                for (std::int64_t f = 0; f < size; ++f)
                    loops_.gather(s.rows[column_[at(some[f])]], column_.data(), WORKING, rows_[at(some[f])]);
            }
            loops_.mirror(block_.data(), STRIDE, some, size, others_.data(), static_cast<std::int64_t>(others_.size()));
        });
    }
    // The wanted kernel rows, as far as there are none.
    void compute(SmoState<T>& s, Team& team) {
        missing_.clear();
        targets_.clear();
        for (const std::int64_t point : wanted_) s.used[point] = ++s.clock;
        for (const std::int64_t point : wanted_) {
            if (s.rows[point]) continue;
            missing_.push_back(point);
            targets_.push_back(s.rows[point] = s.fresh(s, point));
        }
        const auto count = static_cast<std::int64_t>(missing_.size());
        if (!count) return;
        team.share(parts(count), [&](std::int64_t number) {
            const std::int64_t begin = number * PART_ROWS;
            loops_.rows(*s.panels, missing_.data() + begin, std::min(PART_ROWS, count - begin), *s.panels, targets_.data() + begin);
        });
        s.entries += count * s.points;
    }
    static std::int64_t parts(std::int64_t rows) { return (rows + PART_ROWS - 1) / PART_ROWS; }

    // Steps of the chosen variables; returns whether there were any.
    bool solve(SmoState<T>& s, double (*seconds)()) {
        for (std::int64_t k = 0; k < WORKING; ++k) {
            const std::int64_t v = variable_[at(k)];
            // Places that nobody has hold variables that cannot move.
            upper_[at(k)] = v < 0 ? 0.0 : s.upper[v];
            alpha_[at(k)] = v < 0 ? 0.0 : s.alpha[v];
            signs_[at(k)] = v < 0 ? 1.0 : s.signs[v];
            E_[at(k)] = v < 0 ? 0.0 : s.E[v];
            if (s.price) price_[at(k)] = v < 0 ? 0.0 : s.price[v];
            diag_[at(k)] = v < 0 ? 1.0 : s.diag[column_[at(k)]];
            diagonal_[at(k)] = static_cast<T>(diag_[at(k)]);
        }
        SmoState<T> inner{};
        inner.points = WORKING;
        inner.copies = 1;
        inner.split[1] = places(s, 0).second;
        inner.split[2] = WORKING;
        inner.separate = s.separate;
        inner.signs = signs_.data();
        inner.upper = upper_.data();
        inner.price = s.price ? price_.data() : nullptr;
        inner.diag = diag_.data();
        inner.alpha = alpha_.data();
        inner.E = E_.data();
        inner.F = F_.data();
        inner.up = up_.data();
        inner.low = low_.data();
        inner.diagonal = diagonal_.data();
        inner.rows = rows_.data();
        inner.used = used_.data();
        inner.group = 1;
        inner.tol = std::max(0.5 * s.tol, SHARE * s.violation);
        inner.most_steps = s.most_steps < 0 ? MOST_STEPS : std::min(MOST_STEPS, s.most_steps - s.steps);
        steps_.run(inner, std::numeric_limits<double>::infinity(), seconds);
        s.steps += inner.steps;
        s.worst_curvature = std::min(s.worst_curvature, inner.worst_curvature);
        if (inner.status == 3) s.status = 3;
        return inner.steps > 0;
    }

    // What the steps have changed, for all variables.
    void spread(SmoState<T>& s, Team& team) {
        wanted_.clear();
        changes_.clear();
        for (std::int64_t k = 0; k < WORKING; ++k) {
            const std::int64_t v = variable_[at(k)];
            if (v < 0) continue;
            const double change = s.signs[v] * (alpha_[at(k)] - s.alpha[v]);
            moved_[at(k)] = std::fabs(change);
            s.alpha[v] = alpha_[at(k)];
            if (change == 0) continue;
            wanted_.push_back(column_[at(k)]);
            changes_.push_back(change);
        }
        compute(s, team);
        sources_.clear();
        for (const std::int64_t point : wanted_) sources_.push_back(s.rows[point]);
        // Where most that are new stay as they are, one of them did for all: rows of fewer are worth computing.
        const auto moving = std::count_if(fresh_.begin(), fresh_.end(), [&](std::int64_t k) { return moved_[at(k)] > 0; });
        most_new_ = 2 * moving >= static_cast<std::int64_t>(fresh_.size()) ? std::min(2 * most_new_, WORKING) : std::max(most_new_ / 2, LEAST_NEW);
        const std::int64_t count = PARTS * std::max<std::int64_t>(1, (s.points + PARTS * PART_COLUMNS / 2) / (PARTS * PART_COLUMNS));
        const std::int64_t size = (s.points + 16 * count - 1) / (16 * count) * 16;
        team.share(count, [&](std::int64_t number) {
            const std::int64_t begin = std::min(s.points, number * size), end = std::min(s.points, begin + size);
            std::vector<double> sums(at(end - begin), 0.0);
            loops_.add(sources_.data(), changes_.data(), static_cast<std::int64_t>(changes_.size()), begin, end, sums.data());
            for (std::int64_t copy = 0; copy < s.copies; ++copy)
                for (std::int64_t c = begin; c < end; ++c) s.E[copy * s.points + c] += sums[at(c - begin)];
        });
    }

    const SmoKernels<T>& steps_;
    const RoundKernels<T>& loops_;
    double middle_[2] = {0, 0};
    std::int64_t most_new_ = FIRST_NEW;
    // By place: which variable and column of the rows it is, and by how much it moved in the last round.
    std::vector<std::int64_t> variable_, column_;
    std::vector<double> moved_;
    std::vector<std::int64_t> place_;  // of each variable; −1: none
    LineVector<T> block_;
    // The samples themselves, packed; d = 0 where kernel values are read from whole rows.
    LineVector<T> samples_, halves_;
    PanelData<T> packed_{};
    // What the steps work on.
    std::vector<double> signs_, upper_, price_, diag_, alpha_, E_;
    LineVector<T> F_, up_, low_, diagonal_;
    std::vector<T*> rows_;
    std::vector<std::int64_t> used_;
    // Kept between rounds for their memory alone.
    Ranked ranked_[2];
    std::vector<std::int64_t> fresh_, others_, wanted_, missing_;
    std::vector<char> stays_, is_new_;
    std::vector<T*> targets_;
    std::vector<const T*> sources_;
    std::vector<double> changes_;
};

}  // namespace separatrix
