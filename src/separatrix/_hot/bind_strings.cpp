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
            const Strings strings{codes.data(), starts.data()};
            const StringPairs pairs{first.data(), second.data(), static_cast<std::int64_t>(first.shape(0))};
            nb::gil_scoped_release release;
            substring_kernel(strings, pairs, alphabet, weights.data(), out.data());
        },
        "codes"_a, "starts"_a, "first"_a, "second"_a, "alphabet"_a, "weights"_a, "out"_a);
    m.def(
        "subsequence_kernel",
        [](const Codes& codes, const Numbers& starts, const Numbers& first, const Numbers& second,
           std::int64_t order, double decay, const Array<double>& out) {
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
