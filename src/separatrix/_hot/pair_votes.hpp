// One-vs-one decisions: scores of all pairs of classes, and what they make of each class.
#pragma once

#include <cmath>
#include <cstdint>

#include "machine_state.hpp"
#include "scratch.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// The pair i < j: sums of the support vectors of i against j, and of those of j against i. A class has
// K − 1 sums, one for each other class in order.
void pair_scores(const double* sums, std::int64_t rows, std::int64_t K, const double* intercept, double* to) {
    for (std::int64_t r = 0; r < rows; ++r, sums += K * (K - 1)) {
        const double* b = intercept;
        for (std::int64_t i = 0; i < K; ++i)
            for (std::int64_t j = i + 1; j < K; ++j)
                *to++ = sums[i * (K - 1) + j - 1] + sums[j * (K - 1) + i] + *b++;
    }
}

// The class that wins all its pairs by more than an error, or −1. `shares`, where given, tell for each row by which share
// the sums may be wrong, too. It would win a knockout, too: only the winner of
// one has to be looked at.
void pair_winners(const double* sums, std::int64_t begin, std::int64_t end, std::int64_t K,
                  const PairDecisions& pairs, const double* shares) {
    for (std::int64_t r = begin; r < end; ++r, sums += K * (K - 1)) {
        const auto score = [&](std::int64_t i, std::int64_t j) {  // i < j
            return sums[i * (K - 1) + j - 1] + sums[j * (K - 1) + i] + pairs.intercept[i * (2 * K - i - 3) / 2 + j - 1];
        };
        std::int64_t best = 0;
        for (std::int64_t j = 1; j < K; ++j)
            if (score(best, j) < 0) best = j;
        const double share = shares ? shares[r - begin] : 0.0;
        const auto doubt = [&](std::int64_t i, std::int64_t j) {  // i < j
            return pairs.error[r] + share * (std::fabs(sums[i * (K - 1) + j - 1]) + std::fabs(sums[j * (K - 1) + i]));
        };
        bool clear = true;
        for (std::int64_t j = 0; j < best; ++j) clear &= -score(j, best) > doubt(j, best);
        for (std::int64_t j = best + 1; j < K; ++j) clear &= score(best, j) > doubt(best, j);
        pairs.winner[r] = clear ? best : -1;
    }
}

// votes + t / (3 (|t| + 1)) with the sum t of a class's scores: it only separates equal votes. A score that
// is not negative is a vote for the pair's first class.
template <class T>
void pair_votes(const T* scores, std::int64_t rows, std::int64_t K, T* to) {
    Scratch<T> votes(K), total(K);
    T *v = votes.data, *t = total.data;
    for (std::int64_t r = 0; r < rows; ++r, to += K) {
        for (std::int64_t k = 0; k < K; ++k) v[k] = t[k] = 0;
        for (std::int64_t i = 0; i < K; ++i) {
            T won = 0, sum = 0;
            for (std::int64_t j = i + 1; j < K; ++j) {
                const T score = *scores++, first = score >= 0 ? T(1) : T(0);
                won += first;
                v[j] += T(1) - first;
                sum += score;
                t[j] -= score;
            }
            v[i] += won;
            t[i] += sum;
        }
        for (std::int64_t k = 0; k < K; ++k) to[k] = v[k] + t[k] / (3 * ((t[k] < 0 ? -t[k] : t[k]) + 1));
    }
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
