// The sigmoid 1/(1 + exp(A f + B)) of scores with the largest likelihood, by Newton's method: solvers/platt.py states the
// targets. One pass over the scores gives value, slope and curvature together.
#pragma once

#include <cmath>
#include <cstdint>

namespace separatrix {

class Sigmoid {
    // Newton steps; the gradient, and the part of the value to gain, at which they end.
    static constexpr int STEPS = 100;
    static constexpr double FLAT = 1e-10, NEAR = 1e-12;

    const double *scores, *weights;  // the weights may be null
    const bool* positive;
    const std::int64_t count;
    double more = 0, less = 0;       // weights of either class

    double weight(std::int64_t i) const { return weights ? weights[i] : 1.0; }

    struct Sums {
        double value = 0, first = 0, second = 0, over = 1e-12, mixed = 0, under = 1e-12;
    };

    Sums at(double A, double B) const {
        const double high = (more + 1) / (more + 2), low = 1 / (less + 2);
        Sums sums;
        for (std::int64_t i = 0; i < count; ++i) {
            const double f = scores[i], z = A * f + B, e = std::exp(-std::fabs(z)), s = weight(i);
            const double p = (z > 0 ? e : 1.0) / (1 + e), target = positive[i] ? high : low;
            const double slope = s * (target - p), curve = s * p * (1 - p);
            sums.value += s * (std::log1p(e) + (z > 0 ? z : 0.0) - (1 - target) * z);
            sums.first += slope * f;
            sums.second += slope;
            sums.over += curve * f * f;
            sums.mixed += curve * f;
            sums.under += curve;
        }
        return sums;
    }

public:
    Sigmoid(const double* f, const bool* side, const double* s, std::int64_t n) : scores(f), weights(s), positive(side), count(n) {
        for (std::int64_t i = 0; i < n; ++i) (side[i] ? more : less) += weight(i);
    }

    void fit(double& A, double& B) const {
        A = 0;
        B = std::log((less + 1) / (more + 1));
        Sums now = at(A, B);
        for (int step = 0; step < STEPS; ++step) {
            if (std::fmax(std::fabs(now.first), std::fabs(now.second)) <= FLAT * std::fmax(1.0, more + less)) return;
            const double determinant = std::fmax(now.over * now.under - now.mixed * now.mixed, 1e-300);
            const double a = (now.mixed * now.second - now.under * now.first) / determinant;
            const double b = (now.mixed * now.first - now.over * now.second) / determinant;
            const double fall = now.first * a + now.second * b;
            // So near the minimum a Newton step is exact to the last digits, which the value no longer shows.
            if (-fall <= NEAR * now.value) {
                A += a;
                B += b;
                return;
            }
            for (double size = 1;; size /= 2) {
                if (size <= 1e-10) return;
                const Sums next = at(A + size * a, B + size * b);
                if (!(next.value < now.value + 1e-4 * size * fall)) continue;
                A += size * a;
                B += size * b;
                now = next;
                break;
            }
        }
    }
};

}  // namespace separatrix
