// The losses of stochastic gradient descent: rows of the table in losses.py, value and slope, for the
// columns of one visit at a time. Without branches and calls, so that the columns go side by side in
// registers and every instruction set gives the same bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// exp(x) for x <= 0: x = n ln 2 + r, |r| <= ln 2 / 2, and a Taylor polynomial for exp(r).
inline double exp_negative(double x) {
    constexpr double ROUND = 0x1.8p52;  // adding it rounds to an integer, which then stands in the last bits
    x = x < -700.0 ? -700.0 : x;
    const double shifted = x * 1.4426950408889634 + ROUND, n = shifted - ROUND;
    const double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
    const double r2 = r * r, r4 = r2 * r2;
    const double low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    const double mid = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const double high = (1.0 / 40320 + r * (1.0 / 362880)) +
                        r2 * ((1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600));
    std::int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = static_cast<std::int64_t>(static_cast<std::uint64_t>(bits + 1023) << 52);
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return (low + r4 * (mid + r4 * high)) * power;
}

// ln(1 + s) for 0 <= s <= 1: 2 artanh(s / (2 + s)), whose series converges like 9^-k.
inline double log_one_plus(double s) {
    const double z = s / (2.0 + s), u = z * z, u2 = u * u, u4 = u2 * u2;
    const double low = (1.0 + u * (1.0 / 3)) + u2 * (1.0 / 5 + u * (1.0 / 7));
    const double mid = (1.0 / 9 + u * (1.0 / 11)) + u2 * (1.0 / 13 + u * (1.0 / 15));
    const double high = (1.0 / 17 + u * (1.0 / 19)) + u2 * ((1.0 / 21 + u * (1.0 / 23)) + u2 * (1.0 / 25));
    return 2.0 * z * (low + u4 * (mid + u4 * high));
}

// Σ ln(1 + s_i) as the logarithm of a product, one multiplication for each of them (0 <= s_i <= 1). It is off by at
// most 2e-16 for each; what 1 + s rounds away is counted by itself, so that a tiny s alone keeps its digits.
class LogProduct {
public:
    void add(double s) {
        const double factor = 1.0 + s;
        product_ *= factor;
        sum_ += s - (factor - 1.0);
        if (product_ > 0x1p1000) flush();
    }
    double sum() {
        flush();
        return sum_;
    }

private:
    // ln(m 2^e) = e ln 2 + ln m, 1 <= m < 2
    void flush() {
        constexpr std::uint64_t MANTISSA = (std::uint64_t(1) << 52) - 1, ONE = std::uint64_t(1023) << 52;
        std::uint64_t bits;
        std::memcpy(&bits, &product_, sizeof bits);
        const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
        bits = (bits & MANTISSA) | ONE;
        double mantissa;
        std::memcpy(&mantissa, &bits, sizeof mantissa);
        sum_ += exponent * 0x1.62e42fefa39efp-1 + log_one_plus(mantissa - 1.0);
        product_ = 1.0;
    }

    double product_ = 1.0, sum_ = 0.0;
};

inline double largest(double a, double b) { return a > b ? a : b; }
inline double size_of(double a) { return a < 0 ? -a : a; }

// The loss is value + ln(1 + logged): who sums many of them need not take each logarithm.
struct Point {
    double value, slope, logged = 0.0;
    double loss() const { return logged > 0 ? value + log_one_plus(logged) : value; }
};

// Functions of the margin m = y f(x).
struct Perceptron {
    static constexpr bool RESIDUAL = false;
    static Point at(double m, double) { return {largest(0, -m), m > 0 ? 0.0 : -1.0}; }
};
struct Hinge {
    static constexpr bool RESIDUAL = false;
    static Point at(double m, double) { return {largest(0, 1 - m), m < 1 ? -1.0 : 0.0}; }
};
struct SquaredHinge {
    static constexpr bool RESIDUAL = false;
    static Point at(double m, double) {
        const double z = largest(0, 1 - m);
        return {z * z, -2 * z};
    }
};
struct Logistic {
    static constexpr bool RESIDUAL = false;
    static Point at(double m, double) {
        const double small = exp_negative(-size_of(m));
        return {largest(0, -m), -(m > 0 ? small : 1.0) / (1.0 + small), small};
    }
};
struct ModifiedHuber {
    static constexpr bool RESIDUAL = false;
    static Point at(double m, double) {
        const double z = largest(0, 1 - m);
        return {m < -1 ? -4 * m : z * z, m < -1 ? -4.0 : -2 * z};
    }
};

// Functions of the residual r = f(x) - y.
struct SquaredError {
    static constexpr bool RESIDUAL = true;
    static Point at(double r, double) { return {0.5 * r * r, r}; }
};
struct Huber {
    static constexpr bool RESIDUAL = true;
    static Point at(double r, double epsilon) {
        const double size = size_of(r), end = r > 0 ? epsilon : -epsilon;
        return {size <= epsilon ? 0.5 * r * r : epsilon * (size - 0.5 * epsilon), size <= epsilon ? r : end};
    }
};
struct EpsilonInsensitive {
    static constexpr bool RESIDUAL = true;
    static Point at(double r, double epsilon) {
        const double beyond = largest(0, size_of(r) - epsilon), sign = r > 0 ? 1.0 : -1.0;
        return {beyond, beyond > 0 ? sign : 0.0};
    }
};
struct SquaredEpsilonInsensitive {
    static constexpr bool RESIDUAL = true;
    static Point at(double r, double epsilon) {
        const double beyond = largest(0, size_of(r) - epsilon);
        return {beyond * beyond, r > 0 ? 2 * beyond : -2 * beyond};
    }
};

// The loss at score f with target y, and its slope with respect to f.
template <class Loss>
inline Point point_of(double f, double y, double epsilon) {
    const Point point = Loss::at(Loss::RESIDUAL ? f - y : y * f, epsilon);
    return {point.value, Loss::RESIDUAL ? point.slope : y * point.slope, point.logged};
}

// The same for the scores f and targets y of some columns.
template <class T>
using LossFunction = void (*)(const double* f, const T* y, std::int64_t columns, double epsilon, double* values,
                              double* slopes);

template <class Loss, class T>
void evaluate(const double* f, const T* y, std::int64_t columns, double epsilon, double* values, double* slopes) {
    for (std::int64_t k = 0; k < columns; ++k) {
        const Point point = point_of<Loss>(f[k], y[k], epsilon);
        values[k] = point.value + log_one_plus(point.logged);  // for other losses the compiler knows it to be 0
        slopes[k] = point.slope;
    }
}

template <class... Losses>
struct LossList {
    template <class T>
    static constexpr LossFunction<T> FUNCTIONS[] = {evaluate<Losses, T>...};

    // One point of the loss of this number: within the loop that asks, so that nothing goes through memory.
    static Point at(int number, double f, double y, double epsilon) {
        Point point{};
        int next = 0;
        (void)((next++ == number && (point = point_of<Losses>(f, y, epsilon), true)) || ...);
        return point;
    }
};

// In the order of SGD_LOSSES in solvers/sgd.py.
using SgdLosses = LossList<Perceptron, Hinge, SquaredHinge, Logistic, ModifiedHuber, SquaredError, Huber,
                           EpsilonInsensitive, SquaredEpsilonInsensitive>;

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
