/* A target is data plus a few functions.  Both lower the loop IR and nothing else;
 * the C host driver (codegen/host/host.c) is shared. */
#ifndef CODEGEN_TARGET_H
#define CODEGEN_TARGET_H

#include "codegen/plan/plan.h"

/* How kernels are to be emitted. */
typedef struct {
    const char *march; /* "native", "x86-64-v3", ..; NULL = native */
    int opt_level;     /* 0, 2 */
    bool debug_info;   /* kernels carry .gnn lines */
} TargetOptions;

/* The form in which kernels are emitted. */
typedef enum {
    EMIT_IR_TEXT,
    EMIT_ASM,
    EMIT_OBJECT
} EmitKind; /* LLVM IR or CUDA C, assembly, object */

/* What passes over loops read of the processor that kernels are made for. */
typedef struct {
    int lanes;       /* f32 elements per vector register; 1 = there are none */
    int sums;        /* vector registers that may hold rows of sums: half of all */
    bool prefetches; /* it has instructions that fetch memory before it is read */
    int line;        /* bytes of a cache line, which such an instruction fetches */
} TargetMachine;

/* A machine whose times reports estimate: its data sheet, and what a prediction needs beside it. */
typedef struct {
    const char *name;
    double bytes_per_s, flops_per_s; /* of its memory; f32, without tensor cores */
    int units;                       /* multiprocessors */
    double cycles_per_s;             /* of a multiprocessor */
    double copy_part;                /* of bytes_per_s that a copy reaches */
    double product_part;             /* of flops_per_s that the library's f32 products reach */
    double cache_bytes;              /* that all multiprocessors share .. */
    double cache_bytes_per_s;        /* .. and how fast it is read */
    /* from a load to its value, nothing else being on the way: from memory, from that cache, from a
     * multiprocessor's own */
    int memory_cycles, cache_cycles, near_cycles;
    double launch_s; /* of a node of a recording: its start and its end */
} TargetDevice;

/* One launch of a kernel, where all sizes are known: who works, and how long they wait for memory
 * when nothing else is in their way. */
typedef struct {
    const char *name;      /* of the device's function */
    const LKernel *kernel; /* whose loops it runs */
    bool finds_parts;      /* it looks for parts of long rows: it moves nothing */
    int64_t blocks;
    int block_warps;
    double warps;        /* that have something to do */
    double instructions; /* of all warps */
    double wait_cycles;  /* of all warps, from loads to values, one after the other */
    double row_cycles;   /* .. of one row */
    double hub_cycles;   /* .. of the longest row's block; 0 = no row has one, or nobody knows */
} TargetLaunch;
typedef VEC(TargetLaunch) TargetLaunches;

/* What launches depend on. */
typedef struct {
    const int64_t *sizes; /* by Sym.id; -1 = unknown */
    /* The most entries of a row of the map; -1 = unknown.  NULL: of all maps. */
    int64_t (*longest_row)(const Map *map, const void *user);
    const void *user;
} TargetSizes;

/* What code can be made for. */
typedef struct Target {
    const char *name;
    int lanes;   /* f32 elements per warp, or per vector register at most */
    int columns; /* neighbouring columns that a lane may have at once, where lanes are threads of a
                    device; 0 = they are not */
    /* Writes the kernels of the plan to path, as ctx_write() does.  False after diagnostics. */
    bool (*emit_kernels)(Ctx *c, const Plan *p, const TargetOptions *o, EmitKind kind,
                         const char *path);
    /* *to gets the processor that the options name; NULL: passes need not know it.  False after
     * diagnostics. */
    bool (*find_machine)(Ctx *c, const TargetOptions *o, TargetMachine *to);
    /* Of a device: the passes over the plan that run after `lower-kernels` for it alone, those of
     * its libraries and its driver among them; NULL: the target is no device. */
    const char *plan_passes;
    /* Passes over each kernel's loops before it is emitted, "fission,schedule"; NULL = none. */
    const char *loop_passes;
    /* Of a device: into how many parts long sums are cut at most, so that each has a block and the
     * largest machine is full; it is the program's, not the machine's, as bits follow from it. */
    int sum_parts;
    /* Bytes of memory that stages of a kernel have between them; each array there begins at a
     * multiple of room_align. */
    int64_t room_bytes;
    int room_align;
    /* Machines that reports estimate times for, the first one in all of them; none = times are
     * measured (--profile). */
    const TargetDevice *devices;
    int n_devices;
    /* The launches of kernel k as it is emitted, its stages one after the other, into
     * to [n_devices]. False: a size is not known, or after diagnostics. */
    bool (*launches)(Ctx *c, const Plan *p, const LKernel *k, const TargetSizes *known,
                     TargetLaunches *to);
} Target;

#define TARGET(id) extern const Target target_##id;
#include "targets.def"
#undef TARGET
/* The target with this name; NULL = there is none. */
const Target *target_find(const char *name);

/* Kernel ABI on the cpu target, for kernel k with n arguments:
 *     void <k->name>(void *const *arg, const int64_t *n, int64_t lo, int64_t hi);
 * arg[i] = LKernel.bufs[i]; n = the size table (Sym.id); [lo, hi) of the parallel loop,
 * ignored when there is none. */

/* What a device's half of the runtime has in the program's kernels, where the program needs it. */
typedef enum {
    RUNTIME_RANK,      /* ranks of rows */
    RUNTIME_GATHER,    /* takes columns of batches from the whole ones */
    RUNTIME_SCATTER,   /* takes what batches give to the rows of all */
    RUNTIME_SAMPLE,    /* draws batches of neighbours */
    RUNTIME_MAPS,      /* builds index arrays */
    RUNTIME_SPMM,      /* makes what a library's sparse products read */
    RUNTIME_ITERATE,   /* counts iterations of a loop */
    RUNTIME_PROBE,     /* launches nothing: can the GPU run what was compiled? */
    RUNTIME_ADD_PARTS, /* adds what steps of several processes left */
    RUNTIME_ROWS,      /* takes rows that processes exchange, and adds up their sums */
    RUNTIME_COUNT
} RuntimeKernel;
/* "gather": of gn_gather(), and of rt_program's device_gather. */
const char *target_runtime_kernel_kind(RuntimeKernel k);
/* "gcn_gather", but for the target's name; NULL = the program does not need it. */
const char *target_runtime_kernel_name(Arena *a, const Plan *p, RuntimeKernel k);
/* The host driver and its tables as C source (runtime/program.h says what it fills), to path. */
bool host_emit(Ctx *c, const Plan *p, const char *path);
/* The C header of a library of p, whose c_name is set: text of c's arena. */
const char *host_header(Ctx *c, const Plan *p);
/* What stands first in the Python package of p, its docstring, and its _facts.py. */
typedef struct {
    const char *name, *library; /* "churn", "libchurn.so" */
    const char *rows, *no_rows; /* the symbol of the program that predicts rows; NULL, and why */
} HostPackage;
/* The docstring of the model's Python package k, as Python source: what the model is, an example,
 * its inputs and results. */
const char *host_python_doc(Ctx *c, const Plan *p, const HostPackage *k);
/* The text of _facts.py, which tells the package's support code about the model: its names, and the
 * tables of its data. */
const char *host_python_facts(Ctx *c, const Plan *p, const HostPackage *k);
/* A C header with the prototypes of the user's functions, as the model has them. */
bool host_externs(Ctx *c, const Plan *p, const char *path);
/* s on one line of a C comment, which it neither ends nor continues. */
void target_comment(StrBuf *b, const char *s);

#endif
