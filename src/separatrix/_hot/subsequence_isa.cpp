// The subsequence kernel's loops, compiled once per instruction set like isa.cpp, but with fused multiply-adds.
#include "subsequence.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {

const SubsequenceSet& subsequence_set() {
    static const SubsequenceSet table = {subsequence_scratch, run_subsequence};
    return table;
}

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
