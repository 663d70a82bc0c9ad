// Binds kernel panels and SMO to Python, and owns their memory. Python has checked every argument before.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "dual_gap.hpp"
#include "kernels.hpp"
#include "row_memory.hpp"
#include "smo_rounds.hpp"
#include "smo_state.hpp"
#include "team.hpp"

using namespace separatrix;

namespace {

using Rows = Array<const std::int64_t>;

template <class T>
const SmoKernels<T>& kernels() {
    const SmoSet& set = SEPARATRIX_CHOSEN(smo_set);
    if constexpr (std::is_same_v<T, float>) return set.single_precision;
    else return set.double_precision;
}

template <class T>
const RoundKernels<T>& round_kernels() {
    const RoundSet& set = SEPARATRIX_CHOSEN(round_set);
    if constexpr (std::is_same_v<T, float>) return set.single_precision;
    else return set.double_precision;
}

// Panels with their memory. The loops are those chosen when they were made: the width belongs to them.
template <class T>
struct Panels {
    const SmoKernels<T>& loops;
    PanelData<T> view;
    double scale;
    Aligned<T> data, half;
    Aligned<std::uint8_t> counts;

    Panels(const SmoKernels<T>& of, const PanelData<T>& like, std::int64_t n, double factor)
        : loops(of), view(like), scale(factor), data(padded(n) * like.d), half(padded(n)),
          counts(like.formula == Formula::whole_rbf ? padded(n) / 3 * 4 * like.d : 0) {
        view.n = n;
        view.width = of.width;
        view.data = data.data;
        view.half = half.data;
        view.counts = like.formula == Formula::whole_rbf ? counts.data : nullptr;
        if (!n) return;
        // Samples that do not exist are zeros.
        const std::int64_t last = (view.panels() - 1) * view.width;
        std::memset(static_cast<void*>(view.data + last * view.d), 0, sizeof(T) * static_cast<std::size_t>(view.width * view.d));
        std::memset(static_cast<void*>(view.half + last), 0, sizeof(T) * static_cast<std::size_t>(view.width));
        const std::int64_t cells = view.width / 3 * 4 * view.d;
        if (view.counts) std::memset(view.counts + last / view.width * cells, 0, static_cast<std::size_t>(cells));
    }
    std::int64_t padded(std::int64_t n) const { return (n + loops.width - 1) / loops.width * loops.width; }
    T* at(std::int64_t i) { return view.data + i / view.width * view.width * view.d + i % view.width; }
};

// Samples first, first + 1, … become (x − shift) · scale.
template <class T, class Data>
void fill_dense(Panels<T>& panels, const Matrix<const Data>& X, std::int64_t first,
                const std::optional<Array<const double>>& shift) {
    const std::int64_t d = panels.view.d, width = panels.view.width;
    const double* m = pointer(shift);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(X.shape(0)); ++i) {
        const Data* x = X.data() + i * X.stride(0);
        const std::int64_t step = X.stride(1);
        T* to = panels.at(first + i);
        for (std::int64_t j = 0; j < d; ++j)
            to[j * width] = static_cast<T>((static_cast<double>(x[j * step]) - (m ? m[j] : 0.0)) * panels.scale);
    }
}

template <class T, class Data, class Index>
void fill_csr(Panels<T>& panels, const Array<const Data>& data, const Array<const Index>& indices,
              const Array<const Index>& indptr, std::int64_t first, const std::optional<Array<const double>>& shift) {
    const std::int64_t d = panels.view.d, width = panels.view.width;
    const double* m = pointer(shift);
    for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(indptr.shape(0)); ++i) {
        T* to = panels.at(first + i);
        for (std::int64_t j = 0; j < d; ++j) to[j * width] = static_cast<T>(m ? -m[j] * panels.scale : 0.0);
        for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
            to[indices.data()[p] * width] += static_cast<T>(static_cast<double>(data.data()[p]) * panels.scale);
    }
}

// Rows of one size, in slabs.
template <class T>
class Slabs {
public:
    explicit Slabs(std::shared_ptr<RowMemory> from) : memory(std::move(from)) {}
    Slabs(const Slabs&) = delete;
    Slabs& operator=(const Slabs&) = delete;
    ~Slabs() { give_back(); }

    // Memory of `size` values, of `most` that will be wanted in all.
    T* take(std::int64_t size, std::int64_t most) {
        const auto bytes = static_cast<std::size_t>(size) * sizeof(T), all = static_cast<std::size_t>(most) * sizeof(T);
        if (left < bytes) {
            // Little at a time: what is never used is then never touched.
            slabs.push_back(memory->take(all < HUGE_PAGE ? all : bytes > HUGE_PAGE / 2 ? bytes : HUGE_PAGE));
            place = static_cast<T*>(slabs.back().data);
            left = slabs.back().bytes;
        }
        T* const row = place;
        place += size;
        left -= bytes;
        return row;
    }
    bool may_stay() { return memory->spares(); }
    void give_back() {
        for (const Piece& slab : slabs) memory->give(slab);
        slabs.clear();
        left = 0;
    }

private:
    std::shared_ptr<RowMemory> memory;
    std::vector<Piece> slabs;
    T* place = nullptr;
    std::size_t left = 0;
};

constexpr std::int64_t padded_row(std::int64_t n) { return (n + 15) / 16 * 16; }

// Rows of a class with their memory.
template <class T>
struct OwnRows {
    const SmoKernels<T>& loops;
    ClassRows<T> view{};
    std::vector<T*> rows;
    std::mutex lock;
    Slabs<T> slabs;

    OwnRows(const Panels<T>& panels, const std::shared_ptr<RowMemory>& memory)
        : loops(panels.loops), rows(static_cast<std::size_t>(panels.view.n), nullptr), slabs(memory) {
        view = {&panels.view, rows.data(), fresh, this};
    }
    static T* fresh(ClassRows<T>& of) {
        OwnRows& self = *static_cast<OwnRows*>(of.owner);
        const std::lock_guard<std::mutex> hold(self.lock);
        const std::int64_t size = padded_row(of.panels->n);
        return self.slabs.take(size, size * of.panels->n);
    }
    std::int64_t entries() const {
        return view.panels->n * static_cast<std::int64_t>(rows.size() - static_cast<std::size_t>(std::count(rows.begin(), rows.end(), nullptr)));
    }
};

// One problem with its rows and the memory of the loop.
template <class T>
struct Smo {
    const SmoKernels<T>& loops;
    SmoState<T> state{};
    LineVector<T> F, up, low, diagonal;
    std::vector<T*> rows;
    std::vector<std::int64_t> used;
    Slabs<T> slabs;
    std::int64_t capacity, made = 0;
    bool keeps = false;
    const double* linear = nullptr;  // s p, if a solved problem keeps its rows where it is likely to go on:
    double gap = 0, length = 0;      // with a larger relative gap, or with larger variables
    std::atomic<bool> busy{false};
    std::unique_ptr<SmoRounds<T>> rounds;
    Team team;

    Smo(const SmoKernels<T>& of, const std::shared_ptr<RowMemory>& memory) : loops(of), slabs(memory) {}

    // Takes steps until the problem is solved or the deadline is reached; others may help.
    void run(double deadline, double (*seconds)()) {
        if (rounds) {
            const Team::Leader leader(team);
            state.loaded = false;
            if (rounds->run(state, team, deadline, seconds)) return;
            rounds.reset();
        }
        loops.run(state, deadline, seconds);
    }
    // Memory for one more row: new, or that of the row that was not used for the longest time.
    static T* fresh(SmoState<T>& s, std::int64_t) {
        Smo& self = *static_cast<Smo*>(s.owner);
        if (self.made < self.capacity) {
            ++self.made;
            return self.slabs.take(padded_row(s.points), self.capacity * padded_row(s.points));
        }
        std::int64_t oldest = -1;
        for (std::int64_t p = 0; p < s.points; ++p)
            if (self.rows[static_cast<std::size_t>(p)] &&
                (oldest < 0 || self.used[static_cast<std::size_t>(p)] < self.used[static_cast<std::size_t>(oldest)]))
                oldest = p;
        T* row = self.rows[static_cast<std::size_t>(oldest)];
        self.rows[static_cast<std::size_t>(oldest)] = nullptr;
        return row;
    }
    // Out of steps, told to keep its rows, or likely to need them for a smaller gap or once E is exact.
    bool goes_on() { return keeps || state.status == 2 || (state.status == 1 && linear && slabs.may_stay() && is_open()); }
    bool is_open() const {
        const DualGapOf of(state.signs, state.upper, state.price, linear, state.alpha, state.E);
        const std::int64_t n = state.split[2], middle = state.separate ? state.split[1] : n;
        DualGap found;
        of.add(0, middle, found);
        of.add(middle, n, found);
        double square = 0;
        for (std::int64_t v = 0; v < n; ++v) square += state.alpha[v] * state.alpha[v];
        return found.gap > gap * std::fabs(found.objective) || std::sqrt(square) > length;
    }
    // Go on; E may have been changed in the meantime.
    void resume() {
        state.status = 0;
        state.loaded = false;
    }
    // A row that is not kept.
    void compute(std::int64_t point, T* to) const {
        const ClassRows<T>* const* classes = state.classes;
        if (!classes[0]) return loops.block(*state.panels, &point, 1, *state.panels, to, 0);
        const int side = point >= state.cut;
        const std::int64_t number = side ? point - state.cut : point;
        loops.block(*classes[side]->panels, &number, 1, *classes[0]->panels, to, 0);
        loops.block(*classes[side]->panels, &number, 1, *classes[1]->panels, to + state.cut, 0);
    }
    void release() {
        if (!state.panels && !state.classes[0]) return;
        slabs.give_back();
        made = 0;
        std::fill(rows.begin(), rows.end(), nullptr);
    }
};

// Features from which reading the panels costs more than rows that turn out not to be needed.
constexpr std::int64_t GROUP_FEATURES = 64;

// How many rows to compute together, if several: the more features, the longer it takes to read the panels.
constexpr int group_of(std::int64_t features) {
    return features < GROUP_FEATURES ? 1 : features < 3 * GROUP_FEATURES ? 4 : 8;
}

template <class T>
void bind_precision(nb::module_& m, const std::string& suffix) {
    using P = Panels<T>;
    using S = Smo<T>;
    nb::class_<P> panels(m, ("KernelPanels" + suffix).c_str());
    panels.def(
        "__init__",
        [](P* self, int formula, int degree, double coef0, double scale, bool sparse, std::int64_t n, std::int64_t d) {
            const PanelData<T> like{static_cast<Formula>(formula), degree, static_cast<T>(coef0), sparse, n, d, 0,
                                    nullptr, nullptr};
            new (self) P(kernels<T>(), like, n, scale);
        },
        nb::kw_only(), "formula"_a, "degree"_a, "coef0"_a, "scale"_a, "sparse"_a, "n"_a, "d"_a);
    panels.def_prop_ro("width", [](const P& self) { return self.view.width; });
    panels.def_prop_ro("mean_half", [](const P& self) {
        double sum = 0;
        for (std::int64_t i = 0; i < self.view.n; ++i) sum += static_cast<double>(self.view.half[i]);
        return self.view.n ? sum / static_cast<double>(self.view.n) : 0.0;
    });
    const auto def_dense = [&]<class Data>(Data) {
        panels.def("fill_dense", fill_dense<T, Data>, "X"_a, "first"_a, "shift"_a.none(),
                   nb::call_guard<nb::gil_scoped_release>());
        const auto def_csr = [&]<class Index>(Index) {
            panels.def("fill_csr", fill_csr<T, Data, Index>, "data"_a, "indices"_a, "indptr"_a, "first"_a,
                       "shift"_a.none(), nb::call_guard<nb::gil_scoped_release>());
        };
        def_csr(std::int32_t{});
        def_csr(std::int64_t{});
    };
    def_dense(float{});
    def_dense(double{});
    panels.def("finish", [](P& self) { self.loops.finish(self.view); }, nb::call_guard<nb::gil_scoped_release>());
    panels.def("take", [](const P& self, const Rows& rows) {
        auto taken = std::make_unique<P>(self.loops, self.view, static_cast<std::int64_t>(rows.shape(0)), self.scale);
        nb::gil_scoped_release release;
        self.loops.take(self.view, rows.data(), taken->view);
        return taken.release();
    }, nb::rv_policy::take_ownership);
    // Values between rows of `left` and all samples of these panels.
    panels.def("block", [](const P& self, const P& left, const Rows& rows, const Matrix<T>& out) {
        nb::gil_scoped_release release;
        self.loops.block(left.view, rows.data(), static_cast<std::int64_t>(rows.shape(0)), self.view, out.data(), out.stride(0));
    });
    panels.def("product", [](const P& self, const P& left, const Rows& rows, const Rows& starts, const Array<const double>& coef,
                             std::int64_t begin, std::int64_t end, const Array<double>& out) {
        nb::gil_scoped_release release;
        self.loops.product(left.view, rows.data(), starts.data(), static_cast<std::int64_t>(starts.shape(0)) - 1, coef.data(),
                           static_cast<std::int64_t>(coef.shape(1)), self.view, begin, end, out.data());
    });

    using O = OwnRows<T>;
    nb::class_<O>(m, ("ClassRows" + suffix).c_str())
        .def("__init__", [](O* self, const P& of, const std::shared_ptr<RowMemory>& memory) { new (self) O(of, memory); },
             "panels"_a, "memory"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("entries", &O::entries);

    nb::class_<S> smo(m, ("Smo" + suffix).c_str());
    smo.def(
        "__init__",
        [](S* self, const P* source, O* first, O* second, const std::optional<Matrix<T>>& matrix, const std::optional<Rows>& given, std::int64_t copies, std::int64_t middle,
           bool separate, const Array<const double>& signs, const Array<const double>& upper,
           const std::optional<Array<const double>>& price, const Array<const double>& diag, const Array<double>& alpha, const Array<double>& E, double tol,
           std::int64_t most_steps, double row_bytes, const std::shared_ptr<RowMemory>& memory, bool in_rounds) {
            new (self) S(source ? source->loops : first ? first->loops : kernels<T>(), memory);
            const auto points = static_cast<std::int64_t>(diag.shape(0)), variables = points * copies;
            self->F.resize(static_cast<std::size_t>(variables));
            self->up.resize(static_cast<std::size_t>(variables));
            self->low.resize(static_cast<std::size_t>(variables));
            self->rows.assign(static_cast<std::size_t>(points), nullptr);
            self->used.assign(static_cast<std::size_t>(points), 0);
            for (std::int64_t p = 0; p < points; ++p) self->diagonal.push_back(static_cast<T>(diag.data()[p]));
            if (matrix)
                for (std::int64_t k = 0; k < static_cast<std::int64_t>(matrix->shape(0)); ++k)
                    self->rows[static_cast<std::size_t>(given ? given->data()[k] : k)] = matrix->data() + k * matrix->stride(0);
            const auto fitting = static_cast<std::int64_t>(row_bytes / static_cast<double>(padded_row(points) * static_cast<std::int64_t>(sizeof(T))));
            self->capacity = fitting < 3 ? 3 : fitting < points ? fitting : points;
            SmoState<T>& s = self->state;
            s.points = points;
            s.copies = copies;
            s.split[0] = 0;
            s.split[1] = middle;
            s.split[2] = variables;
            s.separate = separate;
            s.signs = signs.data();
            s.upper = upper.data();
            s.price = pointer(price);
            s.diag = diag.data();
            s.alpha = alpha.data();
            s.E = E.data();
            s.F = self->F.data();
            s.up = self->up.data();
            s.low = self->low.data();
            s.diagonal = self->diagonal.data();
            s.panels = source ? &source->view : nullptr;
            if (first && second) s.classes[0] = &first->view, s.classes[1] = &second->view, s.cut = s.classes[0]->panels->n;
            s.rows = self->rows.data();
            s.used = self->used.data();
            s.fresh = S::fresh;
            s.owner = self;
            const PanelData<T>* const packed = s.classes[0] ? s.classes[0]->panels : s.panels;
            s.group = !separate && self->capacity == points && packed ? group_of(packed->d) : 1;
            s.violation = std::numeric_limits<double>::infinity();
            s.tol = tol;
            s.most_steps = most_steps;
            if (in_rounds && points >= SmoRounds<T>::LEAST_POINTS && self->capacity >= SmoRounds<T>::LEAST_POINTS && !s.classes[0])
                self->rounds = std::make_unique<SmoRounds<T>>(self->loops, round_kernels<T>(), s);
        },
        nb::kw_only(), "panels"_a.none(), "first"_a.none(), "second"_a.none(), "matrix"_a.none(), "given"_a.none(), "copies"_a, "middle"_a, "separate"_a, "signs"_a,
        "upper"_a, "price"_a.none(), "diag"_a, "alpha"_a, "E"_a, "tol"_a, "most_steps"_a, "row_bytes"_a,
        "memory"_a, "in_rounds"_a);
    smo.def_prop_ro("in_rounds", [](const S& self) { return bool(self.rounds); });
    smo.def_prop_ro("steps", [](const S& self) { return self.state.steps; });
    smo.def_prop_ro("entries", [](const S& self) { return self.state.entries; });
    smo.def_prop_ro("violation", [](const S& self) { return self.state.violation; });
    smo.def_prop_ro("worst_curvature", [](const S& self) { return self.state.worst_curvature; });
    smo.def_prop_ro("status", [](const S& self) { return self.state.status; });
    smo.def_prop_rw("most_steps", [](const S& self) { return self.state.most_steps; },
                    [](S& self, std::int64_t most) { self.state.most_steps = most; self.resume(); });
    smo.def_prop_rw("tol", [](const S& self) { return self.state.tol; },
                    [](S& self, double tol) { self.state.tol = tol; self.resume(); });
    smo.def_rw("keeps", &S::keeps);
    smo.def("keep_if_open", [](S& self, const Array<const double>& linear, double gap, double length) {
        self.linear = linear.data();
        self.gap = gap;
        self.length = length;
    });
    // out[i] += Σ_k K(points_k, i) change_k, with the values of the rows whether they are kept or not.
    smo.def("add", [](const S& self, const Rows& points, const Array<const double>& change, const Array<double>& out) {
        nb::gil_scoped_release release;
        const std::int64_t n = self.state.points;
        std::vector<T> made;
        for (std::int64_t k = 0; k < static_cast<std::int64_t>(points.shape(0)); ++k) {
            const T* row = self.state.rows[points.data()[k]];
            if (!row) {
                made.resize(static_cast<std::size_t>(n));
                self.compute(points.data()[k], made.data());
                row = made.data();
            }
            const double c = change.data()[k];
            for (std::int64_t i = 0; i < n; ++i) out.data()[i] += c * static_cast<double>(row[i]);
        }
    });
    // Works through the problems, for some seconds at most; several threads may share a list.
    m.def("run_smo", [](const std::vector<S*>& problems, double seconds) {
        nb::gil_scoped_release release;
        const double deadline = seconds_now() + seconds;
        for (S* problem : problems) {
            if (problem->busy.exchange(true)) continue;
            if (problem->state.status == 0 && seconds_now() < deadline) {
                problem->run(deadline, seconds_now);
                if (problem->state.status && !problem->goes_on()) problem->release();
            }
            problem->busy = false;
        }
        for (S* problem : problems) problem->team.help();
    });
}

}  // namespace

void separatrix::bind_smo(nb::module_& m) {
    nb::class_<RowMemory>(m, "RowMemory").def(nb::init<>()).def_rw("spare", &RowMemory::spare);
    bind_precision<float>(m, "Float32");
    bind_precision<double>(m, "Float64");
}
