// Chooses the kernel set by what the processor can run.
#include <cstring>

#include "kernels.hpp"

namespace separatrix {

namespace {

#if defined(SEPARATRIX_X86_SETS)
bool runs_v3() {
    // The level also allows f16c, lzcnt and movbe, which every processor with AVX2, FMA and BMI2 has.
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool runs_v4() {
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

const KernelSet* find_kernels(const char* name) {
#if defined(SEPARATRIX_X86_SETS)
    __builtin_cpu_init();
    const struct { bool runs; const KernelSet& (*set)(); } wide[] = {
        {runs_v4(), v4::kernels},
        {runs_v3(), v3::kernels},
    };
    for (const auto& candidate : wide) {
        if (!candidate.runs) continue;
        const KernelSet& set = candidate.set();
        if (!name || std::strcmp(name, set.name) == 0) return &set;
    }
#endif
    const KernelSet& plain = baseline::kernels();
    return !name || std::strcmp(name, plain.name) == 0 ? &plain : nullptr;
}

}  // namespace separatrix
