/* Inside the cpu target: loop IR to LLVM IR.
 *
 * A kernel becomes one function over [lo, hi) of its parallel loop.  Its scalar
 * registers are LLVM values in one of three forms: one scalar for every lane,
 * consecutive integers, or a vector with an element per lane.  Outside vector
 * loops there is one lane and only the first form. */
#ifndef CODEGEN_CPU_H
#define CODEGEN_CPU_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/loop_passes/loops.h"

/* What code generation must know of a processor, found before any code exists. */
typedef struct {
    const char *cpu, *features; /* as LLVM spells them */
    int lanes;                  /* f32 elements per register */
    int sum_registers;          /* vector registers that may hold rows of sums: half of all */
    bool fma;                   /* it has fused multiply-add */
    char *owned; /* memory of both texts, where they describe the machine at hand; from malloc */
} CgMachine;

/* One compile: owns every LLVM object until cpu_release(). */
typedef struct Cg {
    Ctx *c;
    Arena *a;
    const Plan *plan;
    const TargetOptions *opt;
    CgMachine machine;
    LLVMContextRef lc;
    LLVMModuleRef mod;
    char *triple;
    char *message;           /* of LLVM, about a failure */
    LLVMMemoryBufferRef out; /* machine code, until it is written */
    LLVMTargetMachineRef tm;
    LLVMTargetDataRef layout;
    LLVMBuilderRef b;         /* where code goes */
    LLVMBuilderRef entry;     /* end of the kernel's entry block: allocas, sizes, pointers */
    LLVMDIBuilderRef di;      /* NULL without debug info */
    LLVMMetadataRef *di_file; /* [sources], made on first use */
    LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, void_;
    unsigned md_scope, md_noalias, md_align, md_invariant;
    LLVMValueRef pio2_bits; /* table of 2/pi for sin and cos of huge arguments; NULL until used */
} Cg;

/* A value over the lanes: one scalar for all, consecutive integers, or an element per lane. */
typedef enum { SHAPE_UNIFORM, SHAPE_CONSECUTIVE, SHAPE_VARYING } CgShape;
typedef struct {
    LLVMValueRef v; /* a scalar, of a varying value a vector; consecutive: lane i has v + i */
    CgShape shape;
    bool is_var; /* the vector loop's own variable */
} CgVal;

/* A local array.  One declared inside a vector loop has an element per lane. */
typedef struct {
    LLVMValueRef at;    /* its address on the stack */
    int lanes;          /* 1, or lanes of the vector loop it is private to */
    int64_t row_stride; /* its last extent, padded to whole vectors */
} CgLocal;

/* A reduction of a vector loop into one address: each lane has a partial result, which are combined
 * after the loop. */
typedef struct {
    const LStmt *acc; /* the accumulation */
    LLVMValueRef at;  /* stack slot of the vector of partial results */
} CgAccumulator;

enum {
    CPU_ACCUMULATORS_MAX = 16,
    CPU_LANES_MAX = LOOP_LANES_MAX,
    CPU_LINE = 64 /* bytes of memory at a time */
};

/* Sums of an inner loop, for each iteration of the loop around it that is expanded into lanes
 * (lanes.c): partial sums per lane, not added up yet. */
typedef struct {
    const LStmt *expanded, *loop; /* the loop that is expanded, and the inner loop */
    int64_t i;                    /* iteration of `expanded` */
    int n;                        /* number of sums */
    const LStmt *acc[CPU_ACCUMULATORS_MAX];
    LLVMValueRef row[CPU_ACCUMULATORS_MAX][CPU_LANES_MAX];
} CgDeferredSums;

/* A register of lanes, also in memory, so that one of them can be picked. */
typedef struct {
    CgVal val;
    LLVMValueRef slot;
} CgSpill;

/* Part of a row of a buffer that is kept in registers (tile.c). */
typedef struct {
    const LStmt *first; /* an access to it: buffer and row */
    LLVMValueRef *at;   /* [vectors of the tile] allocas */
} CgCell;

/* The function of a kernel while it is emitted. */
typedef struct CgFn {
    Cg *g;
    const LKernel *k;
    LLVMValueRef fn, n, lo, hi;    /* the function; its arguments: sizes, and the range [lo, hi) */
    CgVal *reg;                    /* [n_regs] values of the registers */
    const LStmt **def;             /* [n_regs] the L_LET that defines it */
    LLVMValueRef *buf;             /* [bufs] base pointers */
    LLVMValueRef *scope, *noalias; /* [bufs] alias metadata */
    LLVMValueRef *sym;             /* [syms] loaded sizes */
    CgLocal *local;                /* [locals] */
    int lanes;                     /* lanes of the code being emitted; 1 outside vector loops */
    LLVMValueRef mask;             /* i1 vector of the active lanes; NULL = all */
    LLVMValueRef tail_mask;        /* the part of the mask that only cuts the last vector short */
    CgAccumulator *accumulator;    /* of the vector loop being emitted */
    int n_accumulators;
    CgDeferredSums *deferred; /* of the loop cut into lanes, or NULL */
    CgCell *cell;             /* of the tile being emitted */
    int n_cell;
    int vector;              /* which vector of the tile is being emitted, from 0 */
    LLVMValueRef tile_start; /* first feature of a tile whose entries are being emitted, or NULL */
    int tile_width;          /* number of features of that tile */
    LLVMMetadataRef subprogram;
} CgFn;

/* machine.c */
bool cpu_machine_find(Ctx *c, const char *march, CgMachine *out); /* false after a diagnostic */

/* kernel.c */
/* Emits the LLVM function of kernel k. */
void cpu_kernel(Cg *g, const LKernel *k);
/* Emits statement s and those after it. */
void cpu_block(CgFn *f, const LStmt *s);
/* Emits the statements from s on, without `end`. */
void cpu_block_until(CgFn *f, const LStmt *s, const LStmt *end);
/* Emits the evaluation of a size in the entry block. */
LLVMValueRef cpu_size(CgFn *f, const Expr *e);
/* The larger or smaller of two sizes, as the predicate says. */
LLVMValueRef cpu_select_size(Cg *g, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y);
/* Reserves aligned stack memory in the entry block. */
LLVMValueRef cpu_alloca(CgFn *f, LLVMTypeRef t, int64_t count);
/* A new basic block at the end of the function. */
LLVMBasicBlockRef cpu_new_block(CgFn *f, const char *name);
/* Emits one statement. Statements for teams of GPU threads (columns, barriers, folds) need no code
 * here: one thread runs the row. */
void cpu_stmt(CgFn *f, const LStmt *s);

/* loop.c */
/* A loop  for i in [lo, hi) step: the caller fills the body and calls cpu_loop_end. */
typedef struct {
    LLVMValueRef i, hi, step;
    LLVMBasicBlockRef body, exit;
} CgLoop;
/* Begins a loop for i in [lo, hi) by step. It is tested at the bottom, so that loop-invariant code
 * has a place to go. */
CgLoop cpu_loop_begin(CgFn *f, LLVMValueRef lo, LLVMValueRef hi, int64_t step);
/* Ends the loop that cpu_loop_begin() began: increments, tests and branches back. */
void cpu_loop_end(CgFn *f, CgLoop *l);

/* The bounds of an L_FOR, both i64. */
void cpu_range(CgFn *f, const LStmt *s, LLVMValueRef *lo, LLVMValueRef *hi);

/* Emits what a loop does for one entry, from statement s on. */
typedef void CpuBody(CgFn *f, const LStmt *s, void *arg);
/* Emits the loop s; `body` is called with arg to emit what is inside. */
void cpu_entry_loop(CgFn *f, const LStmt *s, CpuBody *body, void *arg);
/* Emits a loop as its schedule says. Inside a vector loop, whose lanes are iterations of that one,
 * loops have no vectors. */
void cpu_for(CgFn *f, const LStmt *s);

/* Stores a register that differs between lanes to a stack slot, from which single lanes can be
 * loaded. */
void cpu_spill(CgFn *f, const LReg *r, CgSpill *k);
void cpu_reload_lane(CgFn *f, const LReg *r, const CgSpill *k, LLVMValueRef lane); /* into f->reg */

/* rows.c: a parallel loop whose iterations are in lanes (sched.rows) */
/* Emits a parallel loop that takes blocks of rows, one row per lane (sched.rows). Statements that
 * cannot run in lanes are executed row by row. */
void cpu_rows_in_lanes(CgFn *f, const LStmt *loop);

/* lanes.c: a constant loop with its scalars in lanes (sched.expand) */
/* Emits a loop of n iterations (a small constant) with its scalars in lanes, one iteration per lane
 * (sched.expand). */
void cpu_expanded_loop(CgFn *f, const LStmt *loop, int64_t n);
/* A loop over short rows that lie side by side, as one long row (sched.flat). */
void cpu_flat_loop(CgFn *f, const LStmt *loop, int64_t n);
/* Leaves acc's sum, v per lane, to the loop that is cut; false: fold it now. */
bool cpu_defer_reduction(CgFn *f, const LStmt *loop, const LStmt *acc, LLVMValueRef v);
/* Element `lane` of a local array of one element per lane. */
CgLocal cpu_local_lane(CgFn *f, const LBuf *b, CgLocal l, LLVMValueRef lane);
/* n sums, each per lane, in the first lanes of one vector of w: each as cpu_reduce_lanes adds it.
 */
LLVMValueRef cpu_reduce_vectors(CgFn *f, RedKind r, DType dt, LLVMValueRef const *row, int n,
                                int w);

/* prefetch.c */
/* Emits the prefetch of a row that a later entry gathers. */
void cpu_prefetch(CgFn *f, const LStmt *s);

/* tile.c: rows of sums in registers; of all iterations of a loop around them (sched.jam) */
/* Emits a tile: whole tiles, then the rest of the row. */
void cpu_tile(CgFn *f, const LStmt *s);
/* Emits an unrolled and jammed loop over attention heads (sched.jam): the accumulator rows of all
 * heads stay in registers while the entries are visited once. */
void cpu_jammed_loop(CgFn *f, const LStmt *jam);

/* vector.c */
void cpu_vector_loop(CgFn *f, const LStmt *s);                 /* sched.lanes */
LLVMValueRef cpu_first_lanes_mask(CgFn *f, LLVMValueRef left); /* mask of lanes 0 .. n - 1 */
LLVMValueRef cpu_reduce_lanes(CgFn *f, RedKind r, DType dt, LLVMValueRef v);
/* The identity of a reduction, in w lanes. */
LLVMValueRef cpu_identity(CgFn *f, RedKind r, DType dt, int w);

/* memory.c */
/* Emits the load s, from a register if a tile keeps the row there; returns the value, converted to
 * the type of the destination. */
CgVal cpu_load(CgFn *f, const LStmt *s);
/* Emits the store s, to a register if a tile keeps the row there. Values that are already rounded
 * to the buffer's type are only cut to its bits. */
void cpu_store(CgFn *f, const LStmt *s);
/* Emits the accumulation s in the way that suits its address: in a register, without vectors, by
 * vector, by a reduction of the lanes, or lane after lane. */
void cpu_acc(CgFn *f, const LStmt *s);
void cpu_acc_value(CgFn *f, const LStmt *s,
                   LLVMValueRef x); /* combines scalar x at the address of s */
void cpu_local(CgFn *f, const LStmt *s);
void cpu_cell_fill(CgFn *f, CgCell *c);  /* the current vector from memory */
void cpu_cell_flush(CgFn *f, CgCell *c); /* and back */
CgLocal *cpu_local_of(CgFn *f, const LBuf *b);
LLVMValueRef cpu_load_at(CgFn *f, const LBuf *buf, LLVMValueRef off); /* one element */
void cpu_store_at(CgFn *f, const LBuf *buf, LLVMValueRef off, LLVMValueRef v);

/* scalar.c: L_LET */
/* Emits the scalar function of statement s, once or per lane as its operands require; returns its
 * value. */
CgVal cpu_let(CgFn *f, const LStmt *s);
/* Converts v from element type `from` to element type `to`, in as many lanes. Results of 16 bits
 * are rounded as such, though registers hold them as f32. */
LLVMValueRef cpu_cast(CgFn *f, LLVMValueRef v, DType from, DType to);
/* Combines accumulator acc with x as reduction r does: sum (for bools: or), maximum or minimum. */
LLVMValueRef cpu_combine(CgFn *f, RedKind r, DType dt, LLVMValueRef acc, LLVMValueRef x);

/* value.c */
LLVMTypeRef cpu_type(Cg *g, DType dt);     /* in a register */
LLVMTypeRef cpu_mem_type(Cg *g, DType dt); /* in memory */
LLVMTypeRef cpu_vector_type(LLVMTypeRef t, int w);
/* The LLVM constant v. */
LLVMValueRef cpu_i64(Cg *g, int64_t v);
/* v in all of w lanes. */
LLVMValueRef cpu_splat(Cg *g, LLVMValueRef v, int w);
LLVMValueRef cpu_broadcast_to_lanes(CgFn *f, CgVal v); /* as the current number of lanes wants it */
LLVMValueRef cpu_iota(Cg *g, LLVMTypeRef int_type, int w);
/* A call of an LLVM intrinsic with overloaded types. */
LLVMValueRef cpu_call(Cg *g, const char *intrinsic, LLVMTypeRef *over, int n_over,
                      LLVMValueRef *arg, int n_arg);
/* Whether any lane of an i1 vector is set. */
LLVMValueRef cpu_any_lane(CgFn *f, LLVMValueRef mask);
int cpu_width(LLVMValueRef v); /* its lanes, 1 for a scalar */
LLVMValueRef cpu_const_int(LLVMValueRef like, LLVMTypeRef t, int64_t v); /* in as many lanes */
LLVMValueRef cpu_from_mem(Cg *g, DType dt, LLVMValueRef raw);
/* Converts a value to its form in memory. */
LLVMValueRef cpu_to_mem(Cg *g, DType dt, LLVMValueRef v);
/* As cpu_to_mem(), of a value that is already rounded to dt: for bf16 truncation is enough. */
LLVMValueRef cpu_to_mem_exact(Cg *g, DType dt, LLVMValueRef v);

/* math.c: f32 functions as polynomials; f64 through libm */
/* Emits the elementary function of operation `op` on x, and y for powers (else NULL), with element
 * type dt. Types of 16 bits are computed in f32. */
LLVMValueRef cpu_math(CgFn *f, OpKind op, DType dt, LLVMValueRef x, LLVMValueRef y);

/* debug.c */
/* Begins the debug information of the module. */
void cpu_debug_begin(Cg *g);
/* Adds the kernel as a subprogram. */
void cpu_debug_kernel(CgFn *f);
/* Sets the source position of the instructions that follow. Lines of another file than the kernel's
 * (a layer's) get a scope in that file. */
void cpu_debug_at(CgFn *f, Span at);
/* Completes the debug information. */
void cpu_debug_end(Cg *g);

#endif
