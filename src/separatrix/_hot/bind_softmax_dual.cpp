// Binds the softmax dual's loops to Python. Python has checked every argument before it comes here.
#include <string>
#include <type_traits>

#include "bind_epochs.hpp"
#include "bindings.hpp"
#include "kernels.hpp"
#include "softmax_dual_state.hpp"

using namespace separatrix;

namespace {

const SoftmaxDualSet& kernel_set() { return SEPARATRIX_CHOSEN(softmax_dual_set); }

// Every function exists for dense rows and both widths of CSR indices: it takes X, or data, indices, indptr
// and the number of features, and then what is its own.
template <class S, class T>
void bind_rows(nb::module_& m, nb::class_<SoftmaxDualState<S>>& c) {
    using State = SoftmaxDualState<S>;
    bind_epochs<T>(c, [](const auto& rows, State& state, const Visits& visits) {
        kernel_set().of<T, S>().of(rows).pass(rows, state, visits);
    });
    const auto score = [](const auto& rows, const Array<const S>& weights, const Array<S>& out) {
        const auto count = static_cast<std::int64_t>(out.shape(0)), padded = static_cast<std::int64_t>(out.shape(1));
        expect_room(weights, static_cast<std::size_t>(rows.n_features * padded),
                    "weights: one for every feature and column is needed");
        nb::gil_scoped_release release;
        kernel_set().of<T, S>().of(rows).scores(rows, weights.data(), padded, count, out.data());
    };
    const auto transpose = [](const auto& rows, const Array<const S>& R, std::int64_t begin, std::int64_t end,
                              const Array<S>& out) {
        const auto count = static_cast<std::int64_t>(R.shape(0)), padded = static_cast<std::int64_t>(R.shape(1));
        expect(0 <= begin && begin <= end && end <= padded, "begin and end must be columns of R");
        expect_room(out, static_cast<std::size_t>(rows.n_features * padded),
                    "out: one for every feature and column is needed");
        nb::gil_scoped_release release;
        kernel_set().of<T, S>().of(rows).transposed(rows, R.data(), padded, count, begin, end, out.data());
    };
    const auto dense = [](const Matrix<const T>& X, const auto& like) {
        expect(like.ndim() == 2 && like.shape(0) <= X.shape(0), "X: a row for every row of the result is needed");
        return DenseArray<T>{X.data(), X.stride(0), static_cast<std::int64_t>(X.shape(1))};
    };
    m.def("padded_scores", [=](const Matrix<const T>& X, const Array<const S>& weights, const Array<S>& out) {
        score(dense(X, out), weights, out);
    });
    m.def("add_padded_transposed", [=](const Matrix<const T>& X, const Array<const S>& R, std::int64_t begin,
                                       std::int64_t end, const Array<S>& out) {
        transpose(dense(X, R), R, begin, end, out);
    });
    const auto def_csr = [&]<class Index>(Index) {
        using Data = Array<const T>;
        using Places = Array<const Index>;
        const auto csr = [](const Data& data, const Places& indices, const Places& indptr, std::int64_t d,
                            const auto& like) {
            expect(like.ndim() == 2 && d >= 0, "the result must have rows and columns, and d must not be negative");
            expect_csr(data, indices, indptr, like.shape(0));
            return CsrArray<T, Index>{data.data(), indices.data(), indptr.data(), d};
        };
        m.def("padded_scores", [=](const Data& data, const Places& indices, const Places& indptr, std::int64_t d,
                                   const Array<const S>& weights, const Array<S>& out) {
            score(csr(data, indices, indptr, d, out), weights, out);
        });
        m.def("add_padded_transposed",
              [=](const Data& data, const Places& indices, const Places& indptr, std::int64_t d,
                  const Array<const S>& R, std::int64_t begin, std::int64_t end, const Array<S>& out) {
                  transpose(csr(data, indices, indptr, d, R), R, begin, end, out);
              });
    };
    def_csr(std::int32_t{});
    def_csr(std::int64_t{});
}

template <class S>
void bind_state(nb::module_& m, const char* name) {
    using State = SoftmaxDualState<S>;
    nb::class_<State> c(m, name);
    c.def(
        "__init__",
        [](State* self, const Array<const std::int32_t>& classes, const Array<const double>& scale,
           const Array<const double>& norms, const Array<const double>& mean_dots, std::int64_t columns,
           double constant, const Array<S>& weights, const Array<S>& nu, const Array<std::uint8_t>& asleep,
           const Array<S>& offsets, const Array<S>& sums, const Array<S>& spread, const Array<S>& scratch,
           const Array<double>& tally) {
            new (self) State{
                .classes = classes.data(),
                .scale = scale.data(),
                .norms = norms.data(),
                .mean_dots = mean_dots.data(),
                .columns = columns,
                .padded = static_cast<std::int64_t>(weights.shape(1)),
                .constant = constant,
                .weights = weights.data(),
                .nu = nu.data(),
                .asleep = asleep.data(),
                .offsets = offsets.data(),
                .sums = sums.data(),
                .spread = spread.data(),
                .scratch = scratch.data(),
                .tally = tally.data(),
                .negligible = 0.0,
                .shrink = 1.0,
            };
        },
        nb::kw_only(), "classes"_a, "scale"_a, "norms"_a, "mean_dots"_a, "columns"_a, "constant"_a, "weights"_a,
        "nu"_a, "asleep"_a, "offsets"_a, "sums"_a, "spread"_a, "scratch"_a, "tally"_a);
    c.def_rw("negligible", &State::negligible);
    c.def_rw("shrink", &State::shrink);
    bind_rows<S, float>(m, c);
    bind_rows<S, double>(m, c);
}

}  // namespace

void separatrix::bind_softmax_dual(nb::module_& m) {
    bind_state<float>(m, "SoftmaxDualFloat32");
    bind_state<double>(m, "SoftmaxDualFloat64");
    m.def("softmax_rows", [](const Array<const double>& scores, const Array<const double>& offsets,
                             const Array<const std::int32_t>& classes, const Array<const double>& weights,
                             std::int64_t columns, const Array<double>& P) {
        expect(scores.ndim() == 2 && 0 < columns && columns <= static_cast<std::int64_t>(scores.shape(1)) &&
                   scores.shape(1) % 8 == 0,
               "scores must have a row for every sample, of at least `columns` columns and whole registers");
        expect_room(offsets, scores.shape(1), "offsets: one for every column of scores is needed");
        expect_room(classes, scores.shape(0), "classes: one for every row is needed");
        expect_room(weights, scores.shape(0), "weights: one for every row is needed");
        expect_room(P, scores.size(), "P: as many as scores are needed");
        nb::gil_scoped_release release;
        return kernel_set().softmax(scores.data(), offsets.data(), classes.data(), weights.data(),
                                    static_cast<std::int64_t>(scores.shape(0)), columns,
                                    static_cast<std::int64_t>(scores.shape(1)), P.data());
    });
}
