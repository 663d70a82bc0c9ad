// Binds sums over support vectors and votes of pairs, and owns the packed support vectors. Python has
// checked every argument before.
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings.hpp"
#include "kernels.hpp"
#include "machine_state.hpp"

using namespace separatrix;

namespace {

const MachineSet& chosen_set() { return SEPARATRIX_CHOSEN(machine_set); }

template <class T>
const MachineKernels<T>& chosen_loops() {
    if constexpr (std::is_same_v<T, float>) return chosen_set().single_precision;
    else return chosen_set().double_precision;
}

struct Free {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};
template <class T>
using Memory = std::unique_ptr<T[], Free>;

// Zeros, aligned to a cache line.
template <class T>
Memory<T> zeros(std::int64_t count) {
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(count ? count : 1);
    Memory<T> memory(static_cast<T*>(::operator new(bytes, std::align_val_t(64))));
    std::memset(static_cast<void*>(memory.get()), 0, bytes);
    return memory;
}

// Largest |z|²/2 of which 2^(−|z|²/2) may be part of a coefficient, and exponent below which 2^(−x) underflows.
constexpr double MOST_HALF = 100.0, LOWEST = 125.0;

// A machine with its memory. The loops are those chosen when it was made: the width belongs to them.
template <class T>
struct Machine {
    const MachineKernels<T>& loops = chosen_loops<T>();
    MachineData<T> view{};
    std::vector<double> shift;
    std::vector<std::int64_t> starts, places;  // place of each support vector among the padded ones
    Memory<T> data, half, coef, near;
    double mean_half = 0;
    CoarsePanels coarse{};
    Memory<std::int32_t> integers;
    Memory<float> units;

    Machine(const PanelData<T>& like, double scale, const std::optional<Array<const double>>& mean,
            const Array<const std::int64_t>& sizes, std::int64_t columns)
        : starts(1, 0) {
        const std::int64_t width = loops.width;
        for (std::size_t g = 0; g < sizes.shape(0); ++g) {
            for (std::int64_t i = 0; i < sizes.data()[g]; ++i) places.push_back(starts.back() * width + i);
            starts.push_back(starts.back() + (sizes.data()[g] + width - 1) / width);
        }
        if (mean) shift.assign(mean->data(), mean->data() + mean->shape(0));
        const std::int64_t padded = starts.back() * width;
        data = zeros<T>(padded * like.d);
        half = zeros<T>(padded);
        coef = zeros<T>(padded * columns);
        near = zeros<T>(starts.back());
        view.panels = like;
        view.panels.n = padded;
        view.panels.width = width;
        view.panels.data = data.get();
        view.panels.half = half.get();
        view.scale = scale;
        view.shift = mean ? shift.data() : nullptr;
        view.groups = static_cast<std::int64_t>(sizes.shape(0));
        view.columns = columns;
        view.starts = starts.data();
        view.coef = coef.get();
        view.near = near.get();
    }

    static std::size_t at_(std::int64_t i) { return static_cast<std::size_t>(i); }
    std::int64_t place(std::int64_t i) const { return places[at_(i)]; }
    T* vector(std::int64_t i) {
        const std::int64_t at = place(i), width = loops.width;
        return data.get() + at / width * width * view.panels.d + at % width;
    }
    template <class Data>
    T packed(Data x, std::int64_t j) const {
        return static_cast<T>((static_cast<double>(x) - (view.shift ? view.shift[j] : 0.0)) * view.scale);
    }
    // Keeps the coefficients, with the factor 2^(−|z|²/2) of an RBF kernel where that leaves all numbers in range.
    void finish(const Array<const double>& given) {
        const std::int64_t width = loops.width, columns = view.columns;
        loops.finish(view.panels);
        for (const std::int64_t at : places) mean_half += static_cast<double>(half[at_(at)]);
        mean_half /= places.empty() ? 1.0 : static_cast<double>(places.size());
        for (std::int64_t p = 0; p < starts.back(); ++p) {
            double most = 0;
            for (std::int64_t l = 0; l < width; ++l) most = std::fmax(most, static_cast<double>(half[at_(p * width + l)]));
            // x·z − |x|²/2 is |z|²/2 at most, and −|x|²/2 − |x||z| at least.
            const double root = std::sqrt(LOWEST + most) - std::sqrt(most);
            near[at_(p)] = static_cast<T>(view.panels.formula == Formula::rbf && most <= MOST_HALF ? root * root : -1.0);
        }
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(places.size()); ++i) {
            const std::int64_t at = place(i);
            const bool factor = near[at_(at / width)] >= 0;
            const double scale = factor ? std::exp2(-static_cast<double>(half[at_(at)])) : 1.0;
            T* to = coef.get() + at / width * width * columns + at % width;
            for (std::int64_t c = 0; c < columns; ++c)
                to[c * width] = static_cast<T>(given.data()[i * columns + c] * scale);
        }
    }
    // Rounds the support vectors to integers, which take the place of the panels.
    void round(double quantum) {
        const std::int64_t padded = view.panels.n;
        integers = zeros<std::int32_t>(padded * ((view.panels.d + 1) / 2));
        units = zeros<float>(padded);
        coarse = {integers.get(), units.get(), quantum * view.scale};
        loops.round(view.panels, coarse);
        view.coarse = &coarse;
        data.reset();
    }
};

template <class T, class Data>
void fill_dense(Machine<T>& machine, const Matrix<const Data>& X, std::int64_t first) {
    const std::int64_t width = machine.loops.width, step = X.stride(1);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(X.shape(0)); ++i) {
        const Data* x = X.data() + i * X.stride(0);
        T* to = machine.vector(first + i);
        for (std::int64_t j = 0; j < machine.view.panels.d; ++j) to[j * width] = machine.packed(x[j * step], j);
    }
}

// Each feature is stored once in a row.
template <class T, class Data, class Index>
void fill_csr(Machine<T>& machine, const Array<const Data>& data, const Array<const Index>& indices,
              const Array<const Index>& indptr, std::int64_t first) {
    const std::int64_t width = machine.loops.width;
    for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(indptr.shape(0)); ++i) {
        T* to = machine.vector(first + i);
        if (machine.view.shift)
            for (std::int64_t j = 0; j < machine.view.panels.d; ++j) to[j * width] = machine.packed(0.0, j);
        for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
            to[indices.data()[p] * width] = machine.packed(data.data()[p], indices.data()[p]);
    }
}

template <class Data>
StridedArray<Data> strided(const Matrix<const Data>& X) {
    return {X.data(), X.stride(0), X.stride(1)};
}

template <class A>
std::int64_t rows_of(const A& array) {
    return static_cast<std::int64_t>(array.shape(0));
}

template <class T, class Rows>
void run(const Machine<T>& machine, const Rows& rows, const Turns& turns, double* to, const PairDecisions* pairs) {
    nb::gil_scoped_release release;
    machine.loops.of(rows)(machine.view, rows, turns, to, pairs);
}

template <class T>
void bind_precision(nb::module_& m, const std::string& suffix) {
    using M = Machine<T>;
    nb::class_<M> machine(m, ("KernelMachine" + suffix).c_str());
    machine.def(
        "__init__",
        [](M* self, int formula, int degree, double coef0, double scale, bool zeros, bool few, std::int64_t d,
           const std::optional<Array<const double>>& shift, const Array<const std::int64_t>& sizes,
           std::int64_t columns) {
            const PanelData<T> like{static_cast<Formula>(formula), degree, static_cast<T>(coef0), zeros, 0, d, 0,
                                    nullptr, nullptr};
            nb::gil_scoped_release release;
            new (self) M(like, scale, shift, sizes, columns);
            self->view.few = few;
        },
        nb::kw_only(), "formula"_a, "degree"_a, "coef0"_a, "scale"_a, "zeros"_a, "few"_a, "d"_a, "shift"_a.none(),
        "sizes"_a, "columns"_a);
    machine.def_ro("mean_half", &M::mean_half);
    machine.def("finish", &M::finish, "coef"_a, nb::call_guard<nb::gil_scoped_release>());
    if constexpr (std::is_same_v<T, float>)
        machine.def("round", &M::round, "quantum"_a, nb::call_guard<nb::gil_scoped_release>());
    const auto def_data = [&]<class Data>(Data) {
        machine.def("fill_dense", fill_dense<T, Data>, "X"_a, "first"_a, nb::call_guard<nb::gil_scoped_release>());
        machine.def("sums_dense", [](const M& self, const Matrix<const Data>& X, const Array<std::int64_t>& next,
                                     std::int64_t step, const Array<double>& to) {
            run(self, strided(X), {next.data(), rows_of(X), step}, to.data(), nullptr);
        });
        machine.def("winners_dense", [](const M& self, const Matrix<const Data>& X, const Array<std::int64_t>& next,
                                        std::int64_t step, const Array<const double>& intercept,
                                        const Array<const double>& error, const Array<std::int64_t>& winner) {
            const PairDecisions pairs{intercept.data(), error.data(), winner.data()};
            run(self, strided(X), {next.data(), rows_of(X), step}, nullptr, &pairs);
        });
        const auto def_csr = [&]<class Index>(Index) {
            machine.def("fill_csr", fill_csr<T, Data, Index>, "data"_a, "indices"_a, "indptr"_a, "first"_a,
                        nb::call_guard<nb::gil_scoped_release>());
            machine.def("sums_csr", [](const M& self, const Array<const Data>& data, const Array<const Index>& indices,
                                       const Array<const Index>& indptr, const Array<std::int64_t>& next,
                                       std::int64_t step, const Array<double>& to) {
                const CsrArray<Data, Index> rows{data.data(), indices.data(), indptr.data(), self.view.panels.d};
                run(self, rows, {next.data(), rows_of(indptr) - 1, step}, to.data(), nullptr);
            });
            machine.def("winners_csr", [](const M& self, const Array<const Data>& data,
                                          const Array<const Index>& indices, const Array<const Index>& indptr,
                                          const Array<std::int64_t>& next, std::int64_t step,
                                          const Array<const double>& intercept, const Array<const double>& error,
                                          const Array<std::int64_t>& winner) {
                const CsrArray<Data, Index> rows{data.data(), indices.data(), indptr.data(), self.view.panels.d};
                const PairDecisions pairs{intercept.data(), error.data(), winner.data()};
                run(self, rows, {next.data(), rows_of(indptr) - 1, step}, nullptr, &pairs);
            });
        };
        def_csr(std::int32_t{});
        def_csr(std::int64_t{});
    };
    def_data(float{});
    def_data(double{});
}

}  // namespace

void separatrix::bind_machine_sums(nb::module_& m) {
    bind_precision<float>(m, "Float32");
    bind_precision<double>(m, "Float64");
    m.def("pair_scores", [](const Array<const double>& sums, std::int64_t classes, const Array<const double>& intercept,
                            const Array<double>& to) {
        const auto rows = static_cast<std::int64_t>(sums.shape(0));
        const auto pairs = static_cast<std::size_t>(classes > 1 ? classes * (classes - 1) / 2 : 0);
        expect_room(sums, 2 * pairs * sums.shape(0), "sums: two for every pair are needed");
        expect_room(intercept, pairs, "intercept: one for every pair is needed");
        expect_room(to, pairs * sums.shape(0), "scores: one for every row and pair are needed");
        nb::gil_scoped_release release;
        chosen_set().pairs.scores(sums.data(), rows, classes, intercept.data(), to.data());
    });
    const auto def_votes = [&]<class T>(T) {
        m.def("pair_votes", [](const Array<const T>& scores, std::int64_t classes, const Array<T>& to) {
            const auto rows = static_cast<std::int64_t>(scores.shape(0));
            const auto K = static_cast<std::size_t>(classes > 0 ? classes : 0);
            expect_room(scores, K * (K - (K > 0)) / 2 * scores.shape(0), "scores: one for every row and pair is needed");
            expect_room(to, K * scores.shape(0), "votes: one for every row and class are needed");
            nb::gil_scoped_release release;
            if constexpr (std::is_same_v<T, float>) chosen_set().pairs.votes_float(scores.data(), rows, classes, to.data());
            else chosen_set().pairs.votes_double(scores.data(), rows, classes, to.data());
        });
    };
    def_votes(float{});
    def_votes(double{});
}
