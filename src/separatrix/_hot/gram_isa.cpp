// Sums of products, compiled once per instruction set like sweep.cpp: they feed closed forms and models of curvature,
// which certify their answers.
#include "gram.hpp"

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

template <class Data>
constexpr GramKernels<Data> all_grams = {
    {add_gram<Precision::in_double, Data>, add_gram<Precision::in_single, Data>, add_gram<Precision::coarse, Data>,
     add_gram<Precision::whole, Data>}};

const GramSet table = {all_grams<float>, all_grams<double>, mirror};

}  // namespace

const GramSet& grams() { return table; }

}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
