// Binds the sums of products to Python; nothing else. Python has checked every argument before it comes here.
#include <type_traits>

#include "bindings.hpp"
#include "gram_state.hpp"

namespace separatrix {

namespace {

template <class Data>
void bind_rows(nb::module_& m) {
    m.def(
        "add_products",
        [](const Matrix<const Data>& X, std::uint32_t precision,
           const std::optional<Array<const std::int64_t>>& order,
           const std::optional<Array<const std::int32_t>>& classes,
           const std::optional<Array<const double>>& weights, const std::optional<Array<const double>>& origin,
           const std::optional<Array<double>>& sums, const std::optional<Array<double>>& gram, double steps) {
            const auto d = static_cast<std::int64_t>(X.shape(1));
            expect_room(classes, X.shape(0), "classes: one for every row is needed");
            expect_room(weights, X.shape(0), "weights: one for every row is needed");
            expect_room(origin, X.shape(1), "origin: a number for every feature is needed");
            expect_room(sums, X.shape(1), "sums: one for every feature is needed");
            expect_room(gram, X.shape(1) * X.shape(1), "gram: one for every pair of features is needed");
            const GramRows<Data> rows = {
                .X = X.data(),
                .row_stride = X.stride(0),
                .column_stride = d > 1 ? X.stride(1) : 1,
                .rows = static_cast<std::int64_t>(order ? order->shape(0) : X.shape(0)),
                .d = d,
                .order = pointer(order),
                .classes = pointer(classes),
                .weights = pointer(weights),
                .origin = pointer(origin),
                .origin_stride = origin && origin->ndim() == 2 ? d : 0,
                .sums = pointer(sums),
                .gram = pointer(gram),
                .steps = steps,
            };
            const GramSet& set = SEPARATRIX_CHOSEN(grams);
            const GramKernels<Data>* kernels;
            if constexpr (std::is_same_v<Data, float>) kernels = &set.single_precision;
            else kernels = &set.double_precision;
            nb::gil_scoped_release release;
            kernels->of[precision % PRECISIONS](rows);
        },
        "X"_a, "precision"_a, "order"_a.none(), "classes"_a.none(), "weights"_a.none(), "origin"_a.none(),
        "sums"_a.none(), "gram"_a.none(), "steps"_a);
}

}  // namespace

void bind_gram(nb::module_& m) {
    bind_rows<float>(m);
    bind_rows<double>(m);
    m.def(
        "mirror",
        [](const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& gram) {
            expect(gram.shape(0) == gram.shape(1), "gram must be square");
            nb::gil_scoped_release release;
            SEPARATRIX_CHOSEN(grams).mirror(gram.data(), static_cast<std::int64_t>(gram.shape(0)));
        },
        "gram"_a);
}

}  // namespace separatrix
