// Memory that is expensive to touch for the first time: huge pages, and slabs that problems hand on.
//
// With pages of 4 KiB the first touch costs some 4 ns for each float, more than the kernel value that
// comes to lie there; with pages of 2 MiB a tenth of that, and nothing where memory is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace separatrix {

constexpr std::size_t HUGE_PAGE = std::size_t(1) << 21;

// Memory aligned to a cache line; large pieces lie on huge pages where the system has them.
struct Piece {
    void* data = nullptr;
    std::size_t bytes = 0;

    static std::align_val_t alignment(std::size_t bytes) { return std::align_val_t(bytes < HUGE_PAGE ? 64 : HUGE_PAGE); }
    static Piece make(std::size_t bytes) {
        Piece piece{::operator new(bytes ? bytes : 1, alignment(bytes)), bytes};
#if defined(__linux__)
        if (bytes >= HUGE_PAGE) madvise(piece.data, bytes, MADV_HUGEPAGE);  // may be refused: no harm
#endif
        return piece;
    }
    void free() { ::operator delete(data, alignment(bytes)); }
};

template <class T>
struct Aligned {
    Piece piece;
    T* data;
    explicit Aligned(std::int64_t count)
        : piece(Piece::make(sizeof(T) * static_cast<std::size_t>(count))), data(static_cast<T*>(piece.data)) {}
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    ~Aligned() { piece.free(); }
};

// A vector that begins with a cache line: else every other register that loops load from it would lie on two lines.
template <class T>
struct OnLines {
    using value_type = T;
    OnLines() = default;
    template <class U>
    OnLines(const OnLines<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
    void deallocate(T* data, std::size_t) { ::operator delete(data, std::align_val_t(64)); }
    bool operator==(const OnLines&) const { return true; }
};
template <class T>
using LineVector = std::vector<T, OnLines<T>>;

// Slabs for kernel rows, shared by the problems of a fit and by their threads.
class RowMemory {
public:
    RowMemory() = default;
    RowMemory(const RowMemory&) = delete;
    RowMemory& operator=(const RowMemory&) = delete;
    ~RowMemory() {
        for (Piece& slab : idle) slab.free();
    }

    Piece take(std::size_t bytes) {
        {
            const std::lock_guard<std::mutex> hold(lock);
            for (std::size_t k = idle.size(); k-- > 0;)
                if (idle[k].bytes >= bytes) {
                    const Piece found = idle[k];
                    idle[k] = idle.back();
                    idle.pop_back();
                    used += found.bytes;
                    return found;
                }
            used += bytes;
        }
        return Piece::make(bytes);
    }
    void give(Piece slab) {
        const std::lock_guard<std::mutex> hold(lock);
        idle.push_back(slab);
        used -= slab.bytes;
    }
    // Whether a problem that has ended may keep its rows, for it may have to go on.
    bool spares() {
        const std::lock_guard<std::mutex> hold(lock);
        return static_cast<double>(used) <= spare;
    }

    double spare = 0;  // bytes in use up to which that is so

private:
    std::mutex lock;
    std::vector<Piece> idle;
    std::size_t used = 0;
};

}  // namespace separatrix
