// Binds the nearest neighbours' loops to Python. Python has checked every argument before it comes here.
#include <algorithm>
#include <vector>

#include "bind_rows.hpp"
#include "neighbors_kernels.hpp"

using namespace separatrix;

namespace {

const NeighborSet& kernel_set() { return SEPARATRIX_CHOSEN(neighbor_set); }

template <class T>
void bind_dense(nb::class_<Nearest>& c) {
    c.def("add_dense",
          [](Nearest& state, const Matrix<const T>& X, std::int64_t first,
             const std::optional<Array<const float>>& panels, const std::optional<Array<const float>>& halves) {
              const auto rows = dense_rows(X);
              const auto count = static_cast<std::int64_t>(X.shape(0));
              const float *p = pointer(panels), *h = pointer(halves);
              nb::gil_scoped_release release;
              kernel_set().of(rows).nearest(rows, count, first, p, h, state);
          },
          "X"_a, "first"_a, "panels"_a.none(), "halves"_a.none());
}

template <class T, class Index>
void bind_csr(nb::class_<Nearest>& c) {
    c.def("add_csr",
          [](Nearest& state, const Array<const T>& data, const Array<const Index>& indices,
             const Array<const Index>& indptr, std::int64_t first, const Array<const float>& values,
             const Array<const float>& halves,
             const Array<const double>& q_data, const Array<const std::int64_t>& q_indices,
             const Array<const std::int64_t>& q_indptr, std::int64_t features) {
              const CsrArray<T, Index> rows{data.data(), indices.data(), indptr.data(), features};
              const auto count = static_cast<std::int64_t>(indptr.shape(0)) - 1;
              state.sparse = {q_data.data(), q_indices.data(), q_indptr.data(), features};
              const float *z = values.data(), *h = halves.data();
              nb::gil_scoped_release release;
              std::int64_t most = 0;
              for (std::int64_t i = 0; i < state.count; i += CSR_TILE)
                  most = std::max(most, state.sparse.indptr[std::min(i + CSR_TILE, state.count)] - state.sparse.indptr[i]);
              std::vector<std::int32_t> slots(static_cast<std::size_t>(features));
              std::vector<float> table(static_cast<std::size_t>((most + 1) * CSR_TILE));
              kernel_set().of(rows).nearest(rows, count, first, z, h, state, slots.data(), table.data());
          });
}

}  // namespace

namespace separatrix {

void bind_neighbors(nb::module_& m) {
    nb::class_<Nearest> c(m, "Nearest");
    c.def(
        "__init__",
        [](Nearest* self, const Array<double>& distance, const Array<std::int64_t>& index, bool cosine,
           const std::optional<Array<const double>>& dense,
           const std::optional<Array<const float>>& reduced, const std::optional<Array<const double>>& room,
           double grow, double slack) {
            new (self) Nearest{
                .distance = distance.data(),
                .index = index.data(),
                .count = static_cast<std::int64_t>(distance.shape(0)),
                .k = static_cast<std::int64_t>(distance.shape(1)),
                .cosine = cosine,
                .dense = pointer(dense),
                .sparse = {},
                .reduced = pointer(reduced),
                .width = reduced && reduced->ndim() == 2 ? static_cast<std::int64_t>(reduced->shape(1)) : 0,
                .room = pointer(room),
                .grow = grow,
                .slack = slack,
            };
        },
        nb::kw_only(), "distance"_a, "index"_a, "cosine"_a, "dense"_a.none(),
        "reduced"_a.none(), "room"_a.none(), "grow"_a, "slack"_a);
    bind_dense<float>(c);
    bind_dense<double>(c);
    bind_csr<float, std::int32_t>(c);
    bind_csr<float, std::int64_t>(c);
    bind_csr<double, std::int32_t>(c);
    bind_csr<double, std::int64_t>(c);
    c.def("add_distances", [](Nearest& state, const Array<const double>& distances, std::int64_t first) {
        const auto rows = static_cast<std::int64_t>(distances.shape(1));
        const double* D = distances.data();
        nb::gil_scoped_release release;
        kernel_set().keep(D, rows, first, state);
    }, "distances"_a, "first"_a);
}

}  // namespace separatrix
