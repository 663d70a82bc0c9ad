// Several passes of a row solver in one call, for data so small that what Python does between two passes would
// take longer than a pass. What is reported of each pass goes into a row of `records`.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

#include "perceptron_state.hpp"
#include "random.hpp"
#include "sgd_state.hpp"
#include "visits.hpp"

namespace separatrix {

// Weights of shape (columns, features) in any layout.
template <class T>
struct Weights {
    T* data;
    std::int64_t columns, features, column_step, feature_step;

    T& at(std::int64_t k, std::int64_t j) const { return data[k * column_step + j * feature_step]; }
    void copy_column(const Weights& from, std::int64_t k) const {
        for (std::int64_t j = 0; j < features; ++j) at(k, j) = from.at(k, j);
    }
    void copy(const Weights& from) const {
        if (feature_step < column_step)
            for (std::int64_t k = 0; k < columns; ++k) copy_column(from, k);
        else
            for (std::int64_t j = 0; j < features; ++j)
                for (std::int64_t k = 0; k < columns; ++k) at(k, j) = from.at(k, j);
    }
    double square(std::int64_t k) const {
        double sums[4] = {};  // side by side, since an addition waits for the one before
        for (std::int64_t j = 0; j < features; ++j) sums[j & 3] += static_cast<double>(at(k, j)) * at(k, j);
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
};

// The visits of all passes, and for how long they may run before Python looks at the clock and for Ctrl-C.
struct SmallVisits {
    std::int64_t* order;
    std::int64_t count;
    std::uint64_t* random;  // null: the order stays
    double seconds;

    Visits shuffled() const {
        if (random) shuffle(order, count, *random);
        return all();
    }
    Visits permuted() const {
        if (random) permute(order, count, static_cast<std::uint32_t>(*random));
        return all();
    }
    Visits all() const { return {order, 0, count, std::numeric_limits<std::int64_t>::max(), -1}; }
};

class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

private:
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start_ = Clock::now();
};

template <class T>
struct PerceptronPasses {
    // A row of records; errors: of the weights at the pass's start, negative if nobody counted them.
    enum { SECONDS, MISTAKES_MADE, MARGIN_ERRORS_MADE, CRITERION_MET, SQUARE, ERRORS, STILL, RECORD };

    PerceptronState<T>* learner;
    SmallVisits visits;
    std::uint8_t* wanted;   // as in the learner; columns that made no update any more are crossed out
    std::int64_t n_classes;
    bool begun;             // whether the weights at the start compete for the pocket
    Weights<T> weights, frozen, pocket;
    T *frozen_intercepts, *pocket_intercepts;
    double *errors, *pocket_errors;
    bool one_error;         // one number for all columns
    double* records;

    // visit(judge or null, visits); returns the number of passes, at most `most`.
    template <class Visit>
    std::int64_t run(JudgeState<T>* judge, std::int64_t most, Visit visit) {
        const Stopwatch watch;
        const std::int64_t P = learner->columns;
        for (std::int64_t made = 0; made < most;) {
            double* const record = records + made * RECORD;
            for (int t = 0; t < 3; ++t) learner->tally[t] = 0;
            for (std::int64_t k = 0; k < P; ++k) learner->updates[k] = 0;
            JudgeState<T>* const asked = begun ? judge : nullptr;
            if (asked) freeze();
            visit(asked, visits.shuffled());
            begun = true;
            ++made;
            record[MISTAKES_MADE] = learner->tally[MISTAKES];
            record[MARGIN_ERRORS_MADE] = learner->tally[MARGIN_ERRORS];
            record[CRITERION_MET] = learner->tally[CRITERION];
            record[ERRORS] = asked ? fill_pocket() : -1.0;
            double square = 0;
            for (std::int64_t k = 0; k < P; ++k)
                square += weights.square(k) + static_cast<double>(learner->intercepts[k]) * learner->intercepts[k];
            record[SQUARE] = square;
            record[STILL] = rest();
            record[SECONDS] = watch.seconds();
            if (record[STILL] > 0 || !(square <= std::numeric_limits<T>::max()) || record[SECONDS] > visits.seconds)
                return made;
        }
        return most;
    }

private:
    void freeze() {
        frozen.copy(weights);
        for (std::int64_t k = 0; k < weights.columns; ++k) {
            frozen_intercepts[k] = learner->intercepts[k];
            errors[k] = 0;
        }
    }

    // Keeps the frozen columns that have not more errors than those kept; returns all their errors.
    double fill_pocket() {
        const std::int64_t numbers = one_error ? 1 : weights.columns;
        double total = 0;
        for (std::int64_t e = 0; e < numbers; ++e) {
            total += errors[e];
            if (!(errors[e] <= pocket_errors[e])) continue;
            pocket_errors[e] = errors[e];
            if (numbers < weights.columns) pocket.copy(frozen);
            else pocket.copy_column(frozen, e);
            for (std::int64_t k = e; k < (one_error ? weights.columns : e + 1); ++k)
                pocket_intercepts[k] = frozen_intercepts[k];
        }
        return total;
    }

    // Crosses out the columns that made no update, which will make none any more; returns whether none did.
    bool rest() {
        bool still = true;
        const std::int64_t P = weights.columns;
        for (std::int64_t k = 0; k < P; ++k) {
            still &= learner->updates[k] == 0;
            if (learner->joint || learner->updates[k] != 0) continue;
            for (std::int64_t c = 0; c < n_classes; ++c) wanted[c * P + k] = 0;
        }
        return still;
    }
};

template <class T>
struct SgdPasses {
    SgdState<T>* learner;
    SmallVisits visits;
    Weights<T> weights;
    Weights<double> drift;  // no data: no mean is wanted
    double* records;        // [most][2 + 3 columns]: seconds; losses, ‖w‖², ‖w‖₁ of each column; ‖(w, b)‖² of all

    template <class Visit>
    std::int64_t run(std::int64_t most, Visit visit) {
        const Stopwatch watch;
        const std::int64_t K = learner->columns;
        for (std::int64_t made = 0; made < most;) {
            double* const record = records + made * (2 + 3 * K);
            for (std::int64_t k = 0; k < K; ++k) learner->losses[k] = 0;
            visit(visits.permuted());
            ++made;
            double total = 0;
            for (std::int64_t k = 0; k < K; ++k) {
                settle(k);
                record[1 + k] = learner->losses[k];
                total += record[1 + K + k] = weights.square(k);
                double size = 0;
                if (learner->l1 > 0)
                    for (std::int64_t j = 0; j < weights.features; ++j) size += std::fabs(weights.at(k, j));
                record[1 + 2 * K + k] = size;
                total += learner->intercepts[k] * learner->intercepts[k];
            }
            record[1 + 3 * K] = total;
            record[0] = watch.seconds();
            if (!std::isfinite(total) || record[0] > visits.seconds) return made;
        }
        return most;
    }

private:
    // Multiplies the scale into the weights of column k.
    void settle(std::int64_t k) {
        if (drift.data) {
            for (std::int64_t j = 0; j < weights.features; ++j) drift.at(k, j) -= learner->area[k] * weights.at(k, j);
            learner->area[k] = 0;
        }
        if (!(learner->l2 > 0)) return;
        const T scale = static_cast<T>(learner->scale[k]);
        for (std::int64_t j = 0; j < weights.features; ++j) weights.at(k, j) *= scale;
        learner->scale[k] = 1;
    }
};

}  // namespace separatrix
