// Small dual problems, compiled once per instruction set like smo_isa.cpp, and certified like its solutions.
#include "small_smo.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {

SolveSmall solve_small() { return solve_problems; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
