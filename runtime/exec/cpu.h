/* What instructions the processor has and the kernel lets programs use.  The C library knows since
 * glibc 2.33; asking the compiler's own tables instead adds 5 kB, and memory that is written, to
 * a library that predicts. */
#ifndef RUNTIME_CPU_H
#define RUNTIME_CPU_H

#if defined(__x86_64__)
#if defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif
#endif
#ifdef CPU_FEATURE_ACTIVE
/* As x86_cpu_active of the C library, which shifts an int into its sign. */
static inline int rt_cpu_has(unsigned index) {
    enum { LEAF_BITS = 8 * 4 * sizeof(unsigned) };
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(index / LEAF_BITS);
    unsigned in_leaf = index % LEAF_BITS;
    return (leaf->active_array[in_leaf / 32] >> in_leaf % 32 & 1) != 0;
}
#define RT_CPU_HAS(id, name) rt_cpu_has(x86_cpu_##id)
#else
#define RT_CPU_HAS(id, name) __builtin_cpu_supports(name)
#endif
#endif

#endif
