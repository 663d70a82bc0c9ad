// Binds the string kernels to Python; nothing else. Python has checked every argument before it comes here.
#include <algorithm>
#include <new>

#include "bindings.hpp"
#include "kernels.hpp"
#include "strings.hpp"

using namespace separatrix;

namespace {

using Codes = Array<const std::int32_t>;
using Numbers = Array<const std::int64_t>;

const SubsequenceSet& subsequences() { return SEPARATRIX_CHOSEN(subsequence_set); }

// Whether all strings lie within the codes, and all pairs are of strings that there are.
void expect_strings(const Codes& codes, const Numbers& starts, const Numbers& first, const Numbers& second,
                    const Array<double>& out) {
    expect(starts.size() > 0 && starts.data()[0] >= 0, "starts must begin with 0");
    const auto count = static_cast<std::int64_t>(starts.size()) - 1;
    for (std::int64_t k = 0; k < count; ++k) expect(starts.data()[k] <= starts.data()[k + 1], "starts must ascend");
    expect_room(codes, static_cast<std::size_t>(starts.data()[count]), "codes: starts go beyond them");
    expect_room(second, first.size(), "second: one for every first is needed");
    expect_room(out, first.size(), "out: one for every pair is needed");
    for (const Numbers* each : {&first, &second})
        for (std::size_t k = 0; k < first.size(); ++k)
            expect(0 <= each->data()[k] && each->data()[k] < count, "pairs must be of strings that there are");
}

std::int64_t longest(const Strings& strings, const std::int64_t* numbers, std::int64_t count) {
    std::int64_t most = 0;
    for (std::int64_t k = 0; k < count; ++k) most = std::max(most, strings.length(numbers[k]));
    return most;
}

}  // namespace

void separatrix::bind_strings(nb::module_& m) {
    m.def(
        "substring_kernel",
        [](const Codes& codes, const Numbers& starts, const Numbers& first, const Numbers& second,
           std::int64_t alphabet, const Array<const double>& weights, const Array<double>& out) {
            expect_strings(codes, starts, first, second, out);
            for (std::size_t k = 0; k < codes.size(); ++k)
                expect(0 <= codes.data()[k] && codes.data()[k] < alphabet, "codes must be below alphabet");
            const Strings strings{codes.data(), starts.data()};
            const StringPairs pairs{first.data(), second.data(), static_cast<std::int64_t>(first.shape(0))};
            expect(static_cast<std::int64_t>(weights.size()) > longest(strings, pairs.second, pairs.count),
                   "weights: one for every length is needed");
            nb::gil_scoped_release release;
            substring_kernel(strings, pairs, alphabet, weights.data(), out.data());
        },
        "codes"_a, "starts"_a, "first"_a, "second"_a, "alphabet"_a, "weights"_a, "out"_a);
    m.def(
        "subsequence_kernel",
        [](const Codes& codes, const Numbers& starts, const Numbers& first, const Numbers& second,
           std::int64_t order, double decay, const Array<double>& out) {
            expect_strings(codes, starts, first, second, out);
            expect(order > 0, "order must be positive");
            const Strings strings{codes.data(), starts.data()};
            const StringPairs pairs{first.data(), second.data(), static_cast<std::int64_t>(first.shape(0))};
            const SubsequenceSet& set = subsequences();
            nb::gil_scoped_release release;
            const std::int64_t bytes = set.scratch(longest(strings, pairs.first, pairs.count),
                                                   longest(strings, pairs.second, pairs.count), order);
            constexpr std::align_val_t alignment{64};
            void* const scratch = ::operator new(static_cast<std::size_t>(bytes), alignment);
            set.run(strings, pairs, order, decay, scratch, out.data());
            ::operator delete(scratch, alignment);
        },
        "codes"_a, "starts"_a, "first"_a, "second"_a, "order"_a, "decay"_a, "out"_a);
}
