// Cumulative truncation of Tsuruoka, Tsujii and Ananiadou (2009): how weights pay to an L1 penalty when they are met.
#pragma once

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Lets a weight (stored: divided by scale) pay what it owes and has not paid yet, at most down to 0. `owed` is what
// it should have lost so far, `paid` what it has lost, with its sign. `share` is 1 / scale, or 0 for a weight that need
// not pay. Returns the change of the stored weight. By sign and size, without branches: signs follow no pattern that a
// processor could foresee, and neighbouring weights pay side by side.
template <class T>
inline double pay(T& weight, T& paid, double owed, double scale, double share) {
    const double before = weight, had = paid, sign = __builtin_copysign(1.0, before);
    const double rest = owed + sign * had, due = (rest > 0 ? rest : 0.0) * share;
    const double left = sign * before - due;
    const double after = sign * (left > 0 ? left : 0.0) + 0.0;  // no negative zero
    weight = static_cast<T>(after);
    paid = static_cast<T>(had + scale * (after - before));
    return after - before;
}

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
