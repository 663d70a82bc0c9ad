// Scratch memory for loops that are compiled once per instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

namespace separatrix {
namespace SEPARATRIX_ISA {
namespace {

// Scratch memory, aligned to a cache line. (std::vector would bring shared inline code into this file.)
template <class T>
struct Scratch {
    T* data;
    explicit Scratch(std::int64_t count)
        : data(static_cast<T*>(::operator new(static_cast<std::size_t>(count ? count : 1) * sizeof(T), std::align_val_t(64)))) {
        std::memset(static_cast<void*>(data), 0, static_cast<std::size_t>(count) * sizeof(T));
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { ::operator delete(data, std::align_val_t(64)); }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
