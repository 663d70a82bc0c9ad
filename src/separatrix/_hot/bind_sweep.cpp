// Binds the sweeps to Python; nothing else. Python has checked every argument before it comes here.
#include <type_traits>

#include "bindings.hpp"
#include "gram_rows.hpp"
#include "kernels.hpp"
#include "scores_state.hpp"

namespace separatrix {

namespace {

template <class Data>
const SweepKernels<Data>& sweeps() {
    if constexpr (std::is_same_v<Data, float>) return chosen_kernels().sweeps->single_precision;
    else return chosen_kernels().sweeps->double_precision;
}

SweepState state_of(std::size_t rows, std::size_t features, const Array<const std::int32_t>& classes,
                    const std::optional<Array<const double>>& weights,
                    const std::optional<Array<const std::int8_t>>& codes, const Array<const double>& coef,
                    const Array<const double>& intercept, const std::optional<Array<double>>& gradient,
                    const Array<double>& gradient_intercept, const std::optional<Array<double>>& residuals) {
    const std::size_t columns = intercept.size();
    expect_room(classes, rows, "classes: one for every row is needed");
    expect_room(weights, rows, "weights: one for every row is needed");
    expect_room(codes, columns, "codes: one for every column is needed");
    expect_room(coef, columns * features, "coef: one for every column and feature is needed");
    expect_room(gradient, coef.size(), "gradient: as many as coef has are needed");
    expect_room(gradient_intercept, columns, "gradient_intercept: one for every column is needed");
    expect_room(residuals, rows * columns, "residuals: one for every row and column is needed");
    return {
        .classes = classes.data(),
        .weights = pointer(weights),
        .codes = pointer(codes),
        .columns = static_cast<std::int64_t>(columns),
        .stride = 0,
        .coef = coef.data(),
        .intercept = intercept.data(),
        .gradient = pointer(gradient),
        .gradient_intercept = gradient_intercept.data(),
        .residuals = pointer(residuals),
    };
}

template <class Data>
void bind_dense(nb::module_& m) {
    m.def(
        "sweep_dense",
        [](const Matrix<const Data>& X, bool single,
           const Array<const std::int32_t>& classes, const std::optional<Array<const double>>& weights,
           const std::optional<Array<const std::int8_t>>& codes, const Array<const double>& coef,
           const Array<const double>& intercept, const std::optional<Array<double>>& gradient,
           const Array<double>& gradient_intercept, const std::optional<Array<double>>& residuals) {
            const SweepState state = state_of(X.shape(0), X.shape(1), classes, weights, codes, coef, intercept,
                                              gradient, gradient_intercept, residuals);
            const auto sweep = single ? sweeps<Data>().dense_single : sweeps<Data>().dense_double;
            nb::gil_scoped_release release;
            return sweep(X.data(), static_cast<std::int64_t>(X.shape(0)), X.stride(0),
                         static_cast<std::int64_t>(X.shape(1)), state);
        },
        "X"_a, "single"_a, "classes"_a, "weights"_a.none(), "codes"_a.none(), "coef"_a, "intercept"_a,
        "gradient"_a.none(), "gradient_intercept"_a, "residuals"_a.none());
    m.def(
        "sweep_squares",
        [](const Matrix<const Data>& X, bool single, const Array<const std::int32_t>& classes,
           const std::optional<Array<const double>>& weights, const Array<const double>& targets,
           const Array<const double>& coef, const Array<const double>& intercept, const Array<double>& gradient,
           const Array<double>& slack, const Array<double>& losses, const std::optional<Array<double>>& errors) {
            const SquaresState state = {
                state_of(X.shape(0), X.shape(1), classes, weights, {}, coef, intercept, gradient, slack, {}),
                targets.data(), losses.data(), pointer(errors)};
            expect_room(targets, intercept.size(), "targets: one for every column is needed");
            expect_room(losses, intercept.size(), "losses: one for every column is needed");
            expect_room(errors, 1, "errors: a place for their sum is needed");
            const auto sweep = single ? sweeps<Data>().squares_single : sweeps<Data>().squares_double;
            nb::gil_scoped_release release;
            sweep(X.data(), static_cast<std::int64_t>(X.shape(0)), X.stride(0),
                  static_cast<std::int64_t>(X.shape(1)), state);
        },
        "X"_a, "single"_a, "classes"_a, "weights"_a.none(), "targets"_a, "coef"_a, "intercept"_a, "gradient"_a,
        "slack"_a, "losses"_a, "errors"_a.none());
    m.def(
        "dense_scores",
        [](const Matrix<const Data>& X, const Array<const double>& coef, const Array<const double>& intercept,
           const Array<Data>& scores) {
            const std::size_t columns = intercept.size();
            expect_room(coef, columns * X.shape(1), "coef: one for every column and feature is needed");
            expect_room(scores, X.shape(0) * columns, "scores: one for every row and column is needed");
            ScoresState<Data> state{};
            state.columns = static_cast<std::int64_t>(columns);
            state.coef = coef.data();
            state.intercept = intercept.data();
            state.scores = scores.data();
            const ScoresSet& set = SEPARATRIX_CHOSEN(dense_scores);
            nb::gil_scoped_release release;
            const auto rows = static_cast<std::int64_t>(X.shape(0)), features = static_cast<std::int64_t>(X.shape(1));
            if constexpr (std::is_same_v<Data, float>)
                set.single_precision(X.data(), rows, X.stride(0), features, state);
            else set.double_precision(X.data(), rows, X.stride(0), features, state);
        },
        "X"_a, "coef"_a, "intercept"_a, "scores"_a);
    m.def(
        "column_sums",
        [](const Matrix<const Data>& X,
           const std::optional<Array<const double>>& weights, const Array<double>& sums) {
            expect_room(weights, X.shape(0), "weights: one for every row is needed");
            expect_room(sums, 2 * X.shape(1), "sums: two for every feature are needed");
            nb::gil_scoped_release release;
            sweeps<Data>().column_sums(X.data(), static_cast<std::int64_t>(X.shape(0)), X.stride(0),
                                       static_cast<std::int64_t>(X.shape(1)), pointer(weights),
                                       sums.data());
        },
        "X"_a, "weights"_a.none(), "sums"_a);
}

template <class Data, class Index>
void bind_csr(nb::module_& m) {
    m.def(
        "sweep_csr",
        [](const Array<const Data>& data, const Array<const Index>& indices, const Array<const Index>& indptr,
           const Array<const std::int32_t>& classes, const std::optional<Array<const double>>& weights,
           const std::optional<Array<const std::int8_t>>& codes, const Array<const double>& coef,
           const Array<const double>& intercept, const std::optional<Array<double>>& gradient,
           const Array<double>& gradient_intercept, const std::optional<Array<double>>& residuals) {
            expect_csr(data, indices, indptr, classes.size());
            const SweepState state = state_of(classes.size(), 0, classes, weights, codes, coef, intercept, gradient,
                                              gradient_intercept, residuals);
            nb::gil_scoped_release release;
            return sweeps<Data>().csr(Index{})(data.data(), indices.data(), indptr.data(),
                                               static_cast<std::int64_t>(classes.shape(0)), state);
        },
        "data"_a, "indices"_a, "indptr"_a, "classes"_a, "weights"_a.none(), "codes"_a.none(), "coef"_a,
        "intercept"_a, "gradient"_a.none(), "gradient_intercept"_a, "residuals"_a.none());
    m.def(
        "gram_csr",
        [](const Array<const Data>& data, const Array<const Index>& indices, const Array<const Index>& indptr,
           const std::optional<Array<const double>>& weights, const Array<double>& gram) {
            expect(indptr.size() > 0 && gram.ndim() == 2 && gram.shape(0) == gram.shape(1),
                   "gram must be square, and indptr must have a first end");
            expect_csr(data, indices, indptr, indptr.size() - 1);
            expect_room(weights, indptr.size() - 1, "weights: one for every row is needed");
            nb::gil_scoped_release release;
            sweeps<Data>().gram(Index{})(data.data(), indices.data(), indptr.data(),
                                         static_cast<std::int64_t>(indptr.shape(0)) - 1,
                                         static_cast<std::int64_t>(gram.shape(0)),
                                         pointer(weights), gram.data());
        },
        "data"_a, "indices"_a, "indptr"_a, "weights"_a.none(), "gram"_a);
}

template <class Index>
void bind_gram_rows(nb::module_& m) {
    using Values = Array<const double>;
    using Places = Array<const Index>;
    m.def("add_gram_rows", [](const Values& data, const Places& indices, const Places& indptr,
                              const Values& column_data, const Places& column_indices, const Places& column_indptr,
                              std::int64_t lo, const Array<double>& out) {
        expect(out.ndim() == 2 && column_indptr.size() > 0,
               "out must have rows and columns, column_indptr a first end");
        expect_csr(data, indices, indptr, out.shape(0));
        expect_csr(column_data, column_indices, column_indptr, column_indptr.size() - 1);
        const SparsePart<Index> rows = {data.data(), indices.data(), indptr.data()};
        const SparsePart<Index> columns = {column_data.data(), column_indices.data(), column_indptr.data()};
        nb::gil_scoped_release release;
        add_gram_rows(rows, columns, static_cast<std::int64_t>(out.shape(0)), static_cast<Index>(lo),
                      static_cast<Index>(lo + static_cast<std::int64_t>(out.shape(1))), out.data());
    });
}

}  // namespace

void bind_sweep(nb::module_& m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_csr<float, std::int32_t>(m);
    bind_csr<float, std::int64_t>(m);
    bind_csr<double, std::int32_t>(m);
    bind_csr<double, std::int64_t>(m);
    bind_gram_rows<std::int32_t>(m);
    bind_gram_rows<std::int64_t>(m);
}

}  // namespace separatrix
