// Small dual problems, compiled once per instruction set like smo_isa.cpp, and certified like its solutions.
#include "small_smo.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {

const SmallSmoSet& small_smo_set() {
    static const SmallSmoSet table = {solve_problems};
    return table;
}

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
