// How the compiled loops are tabled: by kind of rows, by precision, by instruction set.
#pragma once

#include <cstdint>

#include "arrays.hpp"

namespace separatrix {

// An entry for each kind of rows with values of type T.
template <class T, template <class Rows> class Entry>
struct ByRows {
    Entry<DenseArray<T>> dense;
    Entry<CsrArray<T, std::int32_t>> csr32;
    Entry<CsrArray<T, std::int64_t>> csr64;

    const auto& of(const DenseArray<T>&) const { return dense; }
    const auto& of(const CsrArray<T, std::int32_t>&) const { return csr32; }
    const auto& of(const CsrArray<T, std::int64_t>&) const { return csr64; }
};

// A table for each type T of the data with each type S of the state.
template <template <class T, class S> class Table>
struct ByPrecisions {
    Table<float, float> single_single;
    Table<float, double> single_double;
    Table<double, float> double_single;
    Table<double, double> double_double;

    template <class T, class S>
    const Table<T, S>& of() const {
        if constexpr (sizeof(T) == sizeof(float)) {
            if constexpr (sizeof(S) == sizeof(float)) return single_single;
            else return single_double;
        } else {
            if constexpr (sizeof(S) == sizeof(float)) return double_single;
            else return double_double;
        }
    }
};

}  // namespace separatrix

// Declares the function that returns a topic's table, once for each instruction set it is compiled for.
#define SEPARATRIX_TABLE(Table, function)          \
    namespace baseline { const Table& function(); } \
    namespace v3 { const Table& function(); }       \
    namespace v4 { const Table& function(); }
