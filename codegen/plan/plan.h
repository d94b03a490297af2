/* The step plan: when and where.  For each phase (a function of the module) an
 * ordered list of steps: kernel launches and library calls over buffers, whose
 * sizes are symbolic.  One generated C host driver runs it on every target;
 * memory planning, hoisting and sync removal are decisions on it. */
#ifndef CODEGEN_PLAN_H
#define CODEGEN_PLAN_H

#include "codegen/loop/loop.h"
#include "passes/pass.h"

typedef struct {
    int id; /* index in Plan.bufs and in the run-time buffer table */
    PBufKind kind;
    const char *name; /* a C identifier, unique */
    Type
        type; /* PB_DATA/VAR/INPUT/SAVED/OUTPUT/TEMP; CSR columns: stored values f32[nz], or rows */
    DType dt;
    const Expr *count; /* elements */
    Column *col;
    Var *var;
    Map *map;
    LBufKind map_part;      /* PB_MAP: LB_MAP_IDX, _PTR or _PERM */
    Map *by;                /* PB_MAP: LB_MAP_IDX in the order of this map's segments; or NULL */
    Space *space;           /* PB_LOGICAL, PB_CUTS */
    int stream;             /* PB_KEY */
    int phase, first, last; /* PB_TEMP: steps between which it holds a value */
    int block;              /* PB_TEMP: PPhase.blocks that it is local to; -1 = none */
    const char *io_name;    /* PB_INPUT, PB_SAVED, PB_OUTPUT: as in the IR */
    OutputUse use;          /* PB_OUTPUT; a layer that is PB_SAVED */
} PBuf;

/* C[b] (m x n) = A[b] (m x k) * B[b] (k x n) over `batch` matrices.  Element (i, j) of A is
 * at a_off + b*a_batch + i*a_row + j*a_col; one of a_row, a_col is 1 (same for B); C is row-major
 * with c_row.  long_k: k is a node or edge space, split in fixed chunks summed in order. */
typedef struct {
    const Expr *batch, *m, *n, *k;
    const Expr *a_batch, *a_row, *a_col, *b_batch, *b_row, *b_col, *c_batch, *c_row;
    bool long_k;
} PGemm;

/* What a device's library does at the end of a product, instead of the steps it covers
 * (plan_epilogue.c). */
typedef struct {
    PEpilogueKind kind;
    int side, out; /* buffers: bias or sums, and the result; -1 = none */
    int n_covers;
    struct PStep *covers[2];
    const char *why_not; /* PE_NONE: for reports */
} PEpilogue;

/* Products that a device's library may make with one call (plan_group.c): steps of the phase one
 * after the other.  Their order does not matter. */
typedef struct PGroup {
    VEC(struct PStep *) steps; /* in order */
    bool same_shape;           /* all have the same shape */
} PGroup;

/* Who makes sparse products on a device (--spmm). */
typedef enum {
    SPMM_OWN,    /* kernels */
    SPMM_AUTO,   /* its library, where that moves so much less that it pays */
    SPMM_LIBRARY /* its library, wherever it can; what fusion would add gets a kernel of its own */
} SpmmChoice;

/* A kernel over rows that sums rows of a dense matrix over a map's segments, each times a weight,
 * and what a device's library would need to do the same (plan_spmm.c). */
typedef struct {
    int index; /* of the product in the plan; -1 = the kernel it is, because of why_not */
    /* Buffers; weight: -1 = none; perm: of places in it by entry, -1 = as entries stand. */
    int ptr, idx, perm, weight, dense, out;
    const Expr *rows, *cols, *entries, *width;
    const Expr *own_bytes,
        *library_bytes; /* bytes that each moves, with what else the kernel does */
    bool has_rest;      /* it does more: that would be a kernel of its own */
    const char *why_not;
} PSpmm;

/* Rows that steps read of a value: from the rows of a space that a process owns, through index
 * arrays one after the other.  (codegen/plan_passes/plan_exchange.c) */
enum { PLAN_HALO_DEPTH_MAX = 4 };
typedef struct {
    Space *from;
    int n_via, via[PLAN_HALO_DEPTH_MAX]; /* buffers: segment bounds, or indices */
} PHalo;

/* What a device does before a product of rounded sizes: the kernel writes zeros behind the rows of
 * its operands (plan_clear.c). */
typedef struct {
    LKernel *kernel;
    int n_bufs, bufs[2]; /* by its argument */
} PClear;

typedef struct PStep {
    PStepKind kind;
    Span span;
    const char *note; /* one line for the reader of the driver: "conv1: z = x @ W" */
    LKernel *kernel;
    const Expr *extent; /* PS_KERNEL: of the parallel loop; NULL = serial, one call */
    MapList balance;    /* PS_KERNEL: chunks of equal entries */
    int n_bufs;
    int *bufs; /* ids; PS_KERNEL: by argument; PS_GEMM: A, B, C; PS_RANK: x, mask, out; PS_COPY:
                  from, to; PS_CALL: inputs, then results */
    int n_in;  /* PS_CALL: of them inputs */
    const Type **types; /* PS_CALL: by buffer, the values' own (a buffer's may be a view's) */
    int pred;           /* i1[]: the step is wanted only where it holds; -1 = always */
    bool pred_not;      /* .. only where it does not hold */
    Span pred_at;       /* the model line that decides; none for effects */
    PGemm gemm;
    PEpilogue *epilogue;      /* PS_GEMM of a plan for a device; else NULL */
    struct PStep *covered_by; /* covered by that product on a device; else NULL */
    PClear *clear; /* PS_GEMM of a plan for a device; NULL = it sums over a batch's rows alone */
    PSpmm *spmm;   /* PS_KERNEL of a plan for a device that is a sparse product; else NULL */
    PGroup *group; /* PS_GEMM of a plan for a device: NULL = a call of its own, .. */
    const char *separate_because;      /* .. as this keeps it apart, for reports, from .. */
    const struct PStep *separate_from; /* .. that product, or from any: NULL */
    Space *space;                      /* PS_RELATION */
    int64_t limit;                     /* PS_LOOP; 0 = none */
    bool recorded; /* PS_LOOP of a plan for a device: it asks for the condition by itself, where it
                      can record loops */
    int other;     /* PS_LOOP: its PS_END in the phase's steps; PS_END: its PS_LOOP */
    const char *text; /* PS_PRINT, PS_ASSERT */
    int rank_axis;    /* PS_RANK */
    bool by_chunk;    /* in a PBlocks: the parallel loop is over chunks of its rows */
    /* Where processes share rows: whose rows each does its own of, and PS_EXCHANGE brings others
     * of; NULL: each does all. */
    Space *partition;
    bool partials; /* .. its rows are those of partial sums, one for each cut of the space's rows */
    bool folds;    /* PS_EXCHANGE of these: they are f32, and their sum alone is wanted */
    bool to_first; /* PS_EXCHANGE of all rows: the first process alone gets them, to save them */
    VEC(PHalo) halos; /* PS_EXCHANGE: what is read; none = all */
    const Op *op;     /* the graph op that the step is for */
} PStep;

/* Steps first..last may be run on one block of rows after the other: each touches its own rows
 * of what another writes.  Temporaries local to them are then needed for one block at a time.
 * In order on all rows they are right, too. */
typedef struct {
    int first, last;
    const Expr *rows;
} PBlocks;

/* Why the kernel that makes `root` is not the one that makes `value`, which it reads.  Found where
 * kernels are cut (plan_units.c), said by --report=fusion. */
typedef enum {
    UNFUSED_NOT,        /* made with others over the same elements */
    UNFUSED_GATHER,     /* via gathers it: in place it would be computed once per entry */
    UNFUSED_ENTRY,      /* via sums it over the entries of a row: it has other rows */
    UNFUSED_VIEW,       /* read through the view via */
    UNFUSED_ALL_ROWS,   /* via reads all of it for each row */
    UNFUSED_OTHER_ROW,  /* via reads it at other rows */
    UNFUSED_SCALAR,     /* the root is a scalar */
    UNFUSED_DIM,        /* via has rows of a dimension: those of parameters */
    UNFUSED_ASSIGNED,   /* via is a variable's next value */
    UNFUSED_CROWDED,    /* via sums segments of too many maps */
    UNFUSED_WIDE,       /* via is a sum whose row is too long for a local array */
    UNFUSED_RECOMPUTED, /* the root is computed again, late */
    UNFUSED_GUARD,      /* wanted under another condition */
    UNFUSED_FULL,       /* the value's kernel has as many results as one may */
    UNFUSED_BOTH_ENDS,  /* they sum over both ends of the same edges */
    UNFUSED_SIBLING,    /* the root needs other rows of via, made in the value's kernel */
    UNFUSED_LATER,      /* the root needs via, made after the value */
    UNFUSED_PRODUCT,    /* the value is a library's matrix product */
    UNFUSED_SPARSE,     /* the value, or the root, is a library's sparse product */
    UNFUSED_SUM,        /* the value is a sum over all rows, in parts */
    UNFUSED_CONCAT,     /* the value is a concatenation */
    UNFUSED_CALL,       /* the value is made by no kernel */
    UNFUSED_LONG,       /* the root is a sum over all rows, in parts */
    UNFUSED_COPY,       /* the root is a concatenation */
    UNFUSED_COUNT_      /* number of causes */
} UnfusedCause;

/* What follows the name of the reader and the line of `via`, or of the root; of UNFUSED_GATHER
 * "gathered by" stands before that.  (codegen/plan_passes/plan_form.c) */
const char *plan_unfused_text(UnfusedCause why);
/* What would put them together; NULL: nothing that can be set. */
const char *plan_unfused_remedy(UnfusedCause why);

typedef struct {
    const Op *value, *root, *via;
    UnfusedCause cause;
} PUnfused;

typedef struct {
    const char *name;
    VEC(PStep *) steps;
    VEC(PBlocks) blocks;
    VEC(PUnfused) apart; /* by root, in order */
    Func *func;
} PPhase;

/* What holds of a plan, kept by the driver of passes (plan_driver.c). */
enum {
    PLAN_STEPS = 1 << 0,     /* each function's steps are there */
    PLAN_BLOCKS = 1 << 1,    /* loops over blocks of rows were looked for, */
    PLAN_EPILOGUES = 1 << 2, /* .. steps that products cover, */
    PLAN_JOINED = 1 << 3,    /* .. steps to be joined, */
    PLAN_GROUPS = 1 << 4,    /* .. products to be made at once */
    PLAN_LIVES = 1 << 5,     /* PBuf.first and .last of temporaries are right */
    PLAN_SPARSE = 1 << 6,    /* sparse products for a device's library were looked for */
};

typedef struct Plan {
    Module *m;
    unsigned flags;     /* PLAN_* */
    uint32_t text_file; /* plan_parse: its own source; UINT32_MAX when made of a module */
    uint32_t main_file; /* of the model, in Ctx.sources */
    VEC(PBuf *) bufs;
    VEC(LKernel *) kernels;
    VEC(PPhase *) phases; /* "load" first when present */
    bool partitioned;     /* processes may share the rows of data in parts */
    const char *device;   /* whose kernels the driver launches, "cuda"; NULL = the host's */
    bool with_host;      /* with a device: the host's kernels as well, one is chosen when it runs */
    const char *options; /* how gnnc was called, recorded in the driver; NULL = unknown */
    const char *c_name;  /* its symbol is <c_name>_program; NULL = "model" */
    SpmmChoice spmm;     /* with a device */
    const char *scheduled_for; /* the target whose passes over loops its kernels have been through,
                             and for which alone they are; NULL = none yet */
    const char *loop_passes;   /* over each kernel's loops; NULL = the target's */
    const PassOptions *loop_options; /* .. and what is asked of them; NULL = nothing */
    int n_optional_runs;             /* passes so far that a program can do without */
    bool tf32;                       /* --precision=tf32: what a trainer does without being asked */
    int variant, n_variants;         /* of the program: the driver of the first lists the others */
    const char *choice;              /* what this variant decided; NULL = nothing */
    uint64_t fingerprint;            /* of the first variant; 0 = this plan's own */
} Plan;

/* Whether the driver can run on the host alone. */
static inline bool plan_on_host(const Plan *p) {
    return !p->device || p->with_host;
}

int plan_spmm_count(const Plan *p); /* sparse products that the library may make */
/* Are the rows of the space owned by processes that share them: is each in one part of the data?
 */
bool plan_is_partitioned_space(const Space *s);
/* Do m(a) and a belong to the same process? */
bool plan_map_keeps_owner(const Map *m);
int plan_step_index(const PPhase *ph, const PStep *s);
bool plan_leads_group(const PStep *s); /* the first of its group */
/* Its place among all groups of the plan, in order; how many there are, for NULL. */
int plan_group_index(const Plan *p, const PGroup *g);
const char *plan_epilogue_text(const PEpilogue *e); /* "adds a bias" */
/* Types of a call's inputs, then of its results; how many in all. */
int plan_call_types(Arena *a, const Op *op, const Type ***types, int *n_in);
const char *cg_symbol(const Op *call); /* the C symbol that a call of the user's runs */
/* Interrupts a phase: a host effect, a relation; on a device also a C function of the host, and a
 * loop whose condition the host reads. */
bool plan_step_interrupts(const PStep *s, bool on_device);
/* Has each of its runs a batch, with sizes of its own? */
bool plan_runs_on_batches(const Plan *p, const PPhase *ph);
bool plan_in_loop(const PPhase *ph, int step); /* between a PS_LOOP and its PS_END */
/* An operand of a product that sums over rows of a batch: element (i, j) of matrix b is at
 * b*batch + i*row + j*step; rows j from `valid_rows` on are nobody's.
 * (codegen/plan_passes/plan_buckets.c)
 */
typedef struct {
    int buf;
    const Expr *n, *batch, *row, *step; /* n: how many i */
    const Expr *valid_rows;             /* NULL = not known */
} PPaddedOperand;
bool plan_trains_on_batches(const Plan *p,
                            const PPhase *ph); /* it trains, and each run sees a batch */
/* The first step that a device cannot do for rounded sizes, and why; NULL: it can do all.  cleared:
 * products need what `clear-tails` gives them. */
const PStep *plan_bucket_obstacle(Arena *a, const Plan *p, const PPhase *ph, bool cleared,
                                  const char **why);
/* May a device record the phase for rounded sizes? */
bool plan_has_buckets(Arena *a, const Plan *p, const PPhase *ph);
/* Both operands of a step of such a phase, if it sums over rows of a batch. */
bool plan_padded_operands(Arena *a, const Plan *p, const PStep *s, PPaddedOperand out[2]);
void plan_print(StrBuf *b, const Plan *p); /* --emit=plan; plan_parse() reads it */
/* For people: buffers and steps alone, each step with its place in the model. */
void plan_print_steps(StrBuf *b, const Plan *p);
/* Of one text: the plan, its kernels and its module.  NULL after diagnostics.  What a plan must
 * hold beyond its grammar is plan_verify()'s to say. */
Plan *plan_parse(Ctx *c, uint32_t file);
bool plan_in_text(const Ctx *c, uint32_t file);     /* or are there kernels alone? */
uint64_t plan_fingerprint(Arena *a, const Plan *p); /* a checkpoint records it */
bool plan_verify(Ctx *c, const Plan *p);

#endif
