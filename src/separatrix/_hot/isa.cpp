// Compiled once per instruction set, with SEPARATRIX_ISA naming the namespace. Only code from the
// unnamed namespaces of the headers below is used here: an inline function shared with
// another translation unit could otherwise be linked in the wider instruction set for all.
#include <type_traits>

#include "coordinate.hpp"
#include "csr_rows.hpp"
#include "kernels.hpp"
#include "perceptron.hpp"
#include "perceptron_plain.hpp"
#include "sgd.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class T, class Array>
std::int64_t learn(const Array& array, PerceptronState<T>& state, JudgeState<T>* judge, const Visits& visits) {
    const auto rows = rows_of(array);
    using Rows = std::remove_const_t<decltype(rows)>;
    if (state.scale) return PerceptronPass<true, 0, Rows>(rows, state, judge).run(visits);
    if (is_plain(state)) {
        if (judge) learn_plainly<true, Rows>(rows, state, judge, visits);
        else learn_plainly<false, Rows>(rows, state, judge, visits);
        return visits.end;
    }
    if (state.columns == 1) return PerceptronPass<false, 1, Rows>(rows, state, judge).run(visits);
    return PerceptronPass<false, 0, Rows>(rows, state, judge).run(visits);
}

template <class T, class Array>
void judge_array(const Array& array, JudgeState<T>& state, const Visits& visits) {
    const auto rows = rows_of(array);
    using Rows = std::remove_const_t<decltype(rows)>;
    if constexpr (Rows::FEATURE_MAJOR)
        if (is_plain(state)) return judge_plainly<Rows>(rows, state, visits);
    judge(rows, state, visits);
}

template <class T, class Array>
void descend_array(const Array& array, SgdState<T>& state, const Visits& visits) {
    descend(rows_of(array), state, visits);
}

template <class T, class Array>
constexpr typename RowKernels<T>::template Over<Array> row_kernels = {
    learn<T, Array>, judge_array<T, Array>, descend_array<T, Array>};

template <class T>
constexpr Kernels<T> all_kernels = {
    {row_kernels<T, DenseArray<T>>, row_kernels<T, CsrArray<T, std::int32_t>>, row_kernels<T, CsrArray<T, std::int64_t>>},
    {column_sweep<DenseColumns<T>>, column_curvature<DenseColumns<T>>},
    {column_sweep<SparseColumns<T>>, column_curvature<SparseColumns<T>>},
};

#define SEPARATRIX_TEXT(x) #x
#define SEPARATRIX_NAME(x) SEPARATRIX_TEXT(x)

}  // namespace

const KernelSet& kernels() {
    static const KernelSet table = {
        .name = SEPARATRIX_NAME(SEPARATRIX_ISA),
        .single_precision = all_kernels<float>,
        .double_precision = all_kernels<double>,
        .sweeps = &sweeps(),
        .gram_descent = gram_descent,
    };
    return table;
}

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
