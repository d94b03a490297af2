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
#define RT_CPU_HAS(id, name) CPU_FEATURE_ACTIVE(id)
#else
#define RT_CPU_HAS(id, name) __builtin_cpu_supports(name)
#endif
#endif

#endif
