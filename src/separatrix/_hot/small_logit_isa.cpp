// Logistic regression on few data, compiled once per instruction set like isa.cpp, but with fused multiply-adds.
#include "small_logit.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {

const SmallLogitSet& small_logit_set() {
    static const SmallLogitSet table = {small_logit_start, small_logit_step, small_logit_evaluate};
    return table;
}

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
