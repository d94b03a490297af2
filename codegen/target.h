/* A target is data plus a few functions.  Both lower the loop IR and nothing else;
 * the C host driver (codegen/host.c) is shared. */
#ifndef CODEGEN_TARGET_H
#define CODEGEN_TARGET_H

#include "codegen/plan.h"

typedef struct {
    const char *march; /* "native", "x86-64-v3", ..; NULL = native */
    int opt_level;     /* 0, 2 */
    bool debug_info;   /* kernels carry .gnn lines */
} TargetOptions;

typedef enum {
    EMIT_IR_TEXT,
    EMIT_ASM,
    EMIT_OBJECT
} EmitKind; /* LLVM IR or CUDA C, assembly, object */

typedef struct Target {
    const char *name;
    int lanes; /* f32 elements per vector register or warp */
    /* Writes the kernels of the plan to path.  False after diagnostics. */
    bool (*emit_kernels)(Ctx *c, const Plan *p, const TargetOptions *o, EmitKind kind,
                         const char *path);
    /* A machine that reports estimate times for: NULL = they measure (--profile). */
    const char *machine;
    double bytes_per_s, flops_per_s; /* of its memory; f32, without tensor cores */
    int units;                       /* multiprocessors; 0 = no such thing */
} Target;

#define TARGET(id) extern const Target target_##id;
#include "targets.def"
#undef TARGET
const Target *target_find(const char *name);

/* Kernel ABI on the cpu target, for kernel k with n arguments:
 *     void <k->name>(void *const *arg, const int64_t *n, int64_t lo, int64_t hi);
 * arg[i] = LKernel.bufs[i]; n = the size table (Sym.id); [lo, hi) of the parallel loop,
 * ignored when there is none. */

/* The device's function that ranks, but for the target's name; NULL where no step does. */
const char *target_rank_name(Arena *a, const Plan *p);
/* The function that takes columns of batches from the whole ones; NULL = the model has no batches.
 */
const char *target_gather_name(Arena *a, const Plan *p);
/* The function that takes what batches give to the rows of all; NULL = "eval" judges no batches. */
const char *target_scatter_name(Arena *a, const Plan *p);
/* The function that draws batches of neighbours; NULL = the model has none that it can draw. */
const char *target_sample_name(Arena *a, const Plan *p);
/* The function that makes what a library's sparse products read; NULL = there are none. */
const char *target_spmm_name(Arena *a, const Plan *p);
/* The function that builds index arrays of maps; NULL = the model has none. */
const char *target_maps_name(Arena *a, const Plan *p);
/* .. that counts turns of a loop; NULL where no step is one. */
const char *target_turn_name(Arena *a, const Plan *p);
/* The host driver and its tables as C source (runtime/program.h says what it fills). */
bool host_emit(Ctx *c, const Plan *p, const char *path);
/* A C header with the prototypes of the user's functions, as the model has them. */
bool host_externs(Ctx *c, const Plan *p, const char *path);
#endif
