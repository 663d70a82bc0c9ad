// Binds coordinate descent to Python; nothing else. Python has checked every argument before.
#include "bind_rows.hpp"

using namespace separatrix;

namespace {

template <class T>
using Fortran = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

template <class T>
DenseColumns<T> columns_of(const Fortran<T>& X) { return {X.data(), static_cast<std::int64_t>(X.shape(0))}; }
template <class T>
SparseColumns<T> columns_of(const Array<const T>& data, const Array<const std::int32_t>& rows,
                            const Array<const std::int64_t>& starts) {
    return {data.data(), rows.data(), starts.data()};
}

// sweep and curvature for dense columns (X in Fortran order) and sparse ones (data, rows, starts).
template <class T>
void bind_columns(nb::module_& m, nb::class_<CoordinateState>& c) {
    const auto sweep = [](CoordinateState& state, const auto& X, const Array<const std::int64_t>& columns,
                          const Array<const std::int64_t>& order, const Array<std::uint8_t>& active, bool partial) {
        nb::gil_scoped_release release;
        return kernels<T>().of(X).sweep(X, columns.data(), state, order.data(),
                                        static_cast<std::int64_t>(order.shape(0)), active.data(), partial);
    };
    c.def("sweep", [sweep](CoordinateState& state, const Fortran<T>& X, const Array<const std::int64_t>& columns,
                           const Array<const std::int64_t>& order, const Array<std::uint8_t>& active, bool partial) {
        return sweep(state, columns_of<T>(X), columns, order, active, partial);
    });
    c.def("sweep", [sweep](CoordinateState& state, const Array<const T>& data, const Array<const std::int32_t>& rows,
                           const Array<const std::int64_t>& starts, const Array<const std::int64_t>& columns,
                           const Array<const std::int64_t>& order, const Array<std::uint8_t>& active, bool partial) {
        return sweep(state, columns_of<T>(data, rows, starts), columns, order, active, partial);
    });
    const auto curvature = [](const auto& X, const Array<const std::int64_t>& columns, const Array<const double>& h,
                              const Array<double>& out) {
        nb::gil_scoped_release release;
        kernels<T>().of(X).curvature(X, columns.data(), static_cast<std::int64_t>(out.shape(0)), h.data(),
                                     static_cast<std::int64_t>(out.shape(1)), out.data());
    };
    m.def("column_curvature", [curvature](const Fortran<T>& X, const Array<const std::int64_t>& columns,
                                          const Array<const double>& h, const Array<double>& out) {
        curvature(columns_of<T>(X), columns, h, out);
    });
    m.def("column_curvature",
          [curvature](const Array<const T>& data, const Array<const std::int32_t>& rows,
                      const Array<const std::int64_t>& starts, const Array<const std::int64_t>& columns,
                      const Array<const double>& h, const Array<double>& out) {
              curvature(columns_of<T>(data, rows, starts), columns, h, out);
          });
}

}  // namespace

void separatrix::bind_coordinate(nb::module_& m) {
    m.def("gram_descent", [](const Array<const double>& H, const Array<double>& gradient,
                             const Array<const double>& weights, const Array<double>& step,
                             const Array<double>& falls, double l1, double l2, std::int64_t sweeps, double tol) {
        expect(H.ndim() == 3 && H.shape(1) == H.shape(2), "H must be square, one for every block");
        const std::size_t count = H.shape(0) * H.shape(1);
        expect_room(gradient, count, "gradient: one for every weight is needed");
        expect_room(weights, count, "weights: one for every row of H is needed");
        expect_room(step, count, "step: one for every weight is needed");
        expect_room(falls, H.shape(0), "falls: one for every block is needed");
        nb::gil_scoped_release release;
        return chosen_kernels().gram_descent(
            H.data(), gradient.data(), weights.data(), step.data(), falls.data(),
            static_cast<std::int64_t>(H.shape(0)), static_cast<std::int64_t>(H.shape(1)), l1, l2, sweeps, tol);
    });
    nb::class_<CoordinateState> c(m, "Coordinates");
    c.def(
        "__init__",
        [](CoordinateState* self, double l1, double l2, const Array<const double>& q,
           const std::optional<Array<const double>>& p, const Array<double>& Z,
           const std::optional<Array<double>>& mean, const Array<const double>& gradient,
           const Array<const double>& curvature, const Array<const double>& weights, const Array<double>& step,
           const Array<const double>& intercept_gradient, const Array<const double>& intercept_inverse,
           const Array<double>& intercept_step, const Array<double>& scratch, bool fit_intercept) {
            new (self) CoordinateState{
                .n = static_cast<std::int64_t>(q.shape(0)),
                .width = static_cast<std::int64_t>(q.shape(1)),
                .joint = p.has_value(),
                .fit_intercept = fit_intercept,
                .l1 = l1,
                .l2 = l2,
                .q = q.data(),
                .p = pointer(p),
                .Z = Z.data(),
                .mean = pointer(mean),
                .gradient = gradient.data(),
                .curvature = curvature.data(),
                .weights = weights.data(),
                .step = step.data(),
                .intercept_gradient = intercept_gradient.data(),
                .intercept_inverse = intercept_inverse.data(),
                .intercept_step = intercept_step.data(),
                .scratch = scratch.data(),
            };
        },
        nb::kw_only(), "l1"_a, "l2"_a, "q"_a, "p"_a.none(), "Z"_a, "mean"_a.none(), "gradient"_a, "curvature"_a,
        "weights"_a, "step"_a, "intercept_gradient"_a, "intercept_inverse"_a, "intercept_step"_a, "scratch"_a,
        "fit_intercept"_a);
    bind_columns<float>(m, c);
    bind_columns<double>(m, c);
}
