// Which rows a run of a row solver visits.
#pragma once

#include <cstdint>

namespace separatrix {

// Positions begin to end of an order of sample numbers, within a budget of repeated presentations.
// Where the rows cannot be read in place they come gathered: row 0 is then position `gathered` of
// the order. Otherwise `gathered` is negative and row numbers are sample numbers.
struct Visits {
    const std::int64_t* order;
    std::int64_t begin, end, budget, gathered;

    std::int64_t row(std::int64_t at) const { return gathered < 0 ? order[at] : at - gathered; }
};

}  // namespace separatrix
