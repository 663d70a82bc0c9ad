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

// Scratch memory that is made when it is asked for, and not cleared: its first touch costs more than most work on it.
template <class T>
struct LateScratch {
    T* data = nullptr;
    std::int64_t size = 0;
    LateScratch() = default;
    LateScratch(const LateScratch&) = delete;
    LateScratch& operator=(const LateScratch&) = delete;
    ~LateScratch() { ::operator delete(data, std::align_val_t(64)); }

    // Memory for so many; what was there is kept only if they are no more than before.
    T* of(std::int64_t count) {
        if (count > size) {
            ::operator delete(data, std::align_val_t(64));
            data = nullptr, size = 0;
            data = static_cast<T*>(::operator new(static_cast<std::size_t>(count) * sizeof(T), std::align_val_t(64)));
            size = count;
        }
        return data;
    }
};

}  // namespace
}  // namespace SEPARATRIX_ISA
}  // namespace separatrix
