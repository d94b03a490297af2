/* The machine that a program runs on: its kind, and how many cores it may use. */
#include <sched.h>
#include <sys/utsname.h>

#include "runtime/exec/cpu.h"
#include "runtime/exec/machine.h"

int rt_usable_cores(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

/* A text for the kind of processor, such as "x86-64-v4", with what else decides about the bits of
 * results. */
const char *rt_machine_kind(RtPool *pool, const RtRuntime *rt) {
#if defined(__x86_64__)
    bool v3 = RT_CPU_HAS(AVX2, "avx2") && RT_CPU_HAS(FMA, "fma") && RT_CPU_HAS(BMI2, "bmi2");
    bool v4 = v3 && RT_CPU_HAS(AVX512F, "avx512f") && RT_CPU_HAS(AVX512BW, "avx512bw") &&
              RT_CPU_HAS(AVX512VL, "avx512vl");
    bool dot = rt->products16 == RT_BY_DOT_PRODUCTS;
    return rt_pool_printf(pool, "x86-64-v%d%s%s",
                          v4   ? 4
                          : v3 ? 3
                               : 2,
                          rt->amx ? ", amx" : "", dot ? ", avx512_bf16" : "");
#else
    struct utsname u;
    (void)rt;
    return rt_pool_printf(pool, "%s", uname(&u) == 0 ? u.machine : "unknown");
#endif
}
