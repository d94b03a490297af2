#include "cuda_executor.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "compiler.h"

/* Five thousand kernels in one file: clang takes a third of gcc's time.  Lines of the debugger and
 * UBSan's checks take longer to compile than all the rest; tests/cudasim/run has both, for models.
 */
#ifdef HAS_ASAN
#define COMPILER "cc=" TEST_CC "; san=-fsanitize=address; "
#else
#define COMPILER "cc=$(command -v clang-19 || echo cc); san=; "
#endif

static bool build(Ctx *c, const char *dir, const char *defines) {
    const char *b = cpu_exec_build_dir(c);
    const char *include = arena_printf(
        c->a, "-Iruntime -Iruntime/include -Itests/cudasim -Itests/cudasim/include %s", defines);
    const char *command = arena_printf(
        c->a,
        COMPILER "$cc -std=c17 -O0 -fPIC -DGNNC_NO_MAIN %s -c -o %s/driver.o %s/driver.c && "
                 "$cc $san -std=c++17 -O0 -fPIC -Wno-unknown-pragmas %s -c -o %s/kernels.o -x c++ "
                 "%s/kernels.cu && "
                 "$cc -shared " TEST_LINK " -o %s/program.so %s/kernels.o %s/driver.o "
                 "-Wl,--whole-archive %s/libgnnrt.a %s/libcudasim.a -Wl,--no-whole-archive "
                 "-Wl,-Bsymbolic $(cat %s/link.flags) -lstdc++",
        include, dir, dir, include, dir, dir, dir, dir, dir, b, b, b);
    if (system(command) == 0) return true;
    diag_add(c, DIAG_E0004, (Span){0}, "%s", command);
    return false;
}

CpuExec *cuda_exec_build(Ctx *c, Module *m, const char *defines) {
    const char *dir = cpu_exec_dir(c);
    Plan *p = dir ? plan_of_module(c, m, "cuda", SPMM_OWN, NULL) : NULL;
    if (!p || !plan_verify(c, p)) return NULL;
    TargetOptions o = {.opt_level = 2};
    bool ok = target_cuda.emit_kernels(c, p, &o, EMIT_IR_TEXT,
                                       arena_printf(c->a, "%s/kernels.cu", dir)) &&
              host_emit(c, p, arena_printf(c->a, "%s/driver.c", dir)) && build(c, dir, defines);
    return ok ? cpu_exec_open(c, arena_printf(c->a, "%s/program.so", dir)) : NULL;
}

cudasim_counters *cuda_exec_counters(CpuExec *x) {
    cudasim_counters *(*count)(void) = NULL;
    return cpu_exec_symbol(x, &count, "cudasim_count") ? count() : NULL;
}

void cuda_exec_seed(CpuExec *x, uint64_t seed) {
    void (*set)(uint64_t) = NULL;
    if (cpu_exec_symbol(x, &set, "cudasim_seed")) set(seed);
}
