/* The step plan: when and where.  For each phase (a function of the module) an
 * ordered list of steps: kernel launches and library calls over buffers, whose
 * sizes are symbolic.  One generated C host driver runs it on every target;
 * memory planning, hoisting and sync removal are decisions on it. */
#ifndef CODEGEN_PLAN_H
#define CODEGEN_PLAN_H

#include "codegen/loop/loop.h"
#include "passes/pass.h"
#include "runtime/program.h"

/* A buffer of the plan: memory that steps read or write. */
typedef struct {
    int id; /* index in Plan.bufs and in the run-time buffer table */
    PBufKind kind;
    const char *name; /* a C identifier, unique */
    /* PB_DATA, PB_VAR, PB_INPUT, PB_SAVED, PB_OUTPUT, PB_TEMP: the value's type.  Of a CSR
     * column: of its stored values, f32[nz], or of its rows. */
    Type type;
    DType dt;               /* element type, of all kinds */
    const Expr *count;      /* number of elements */
    Column *col;            /* PB_DATA: the column of the data set */
    Var *var;               /* PB_VAR: the variable */
    Map *map;               /* PB_MAP: the map whose index array this is */
    LBufKind map_part;      /* PB_MAP: LB_MAP_IDX, _PTR or _PERM */
    Map *by;                /* PB_MAP: LB_MAP_IDX in the order of this map's segments; or NULL */
    Space *space;           /* PB_LOGICAL, PB_CUTS: the space whose rows are numbered or cut */
    int stream;             /* PB_KEY: number of the random stream */
    int phase, first, last; /* PB_TEMP: its phase, and the first and last step there that use it */
    int block;              /* PB_TEMP: PPhase.blocks that it is local to; -1 = none */
    /* Where processes share rows, each on a device: of which space it has a process's own rows (or
     * their segments) and those of others that the process reads; NULL: all.  local: it is an index
     * array whose numbers are those of rows that are held so.  (codegen/plan_passes/plan_hold.c) */
    Space *own;
    bool local;
    const char *io_name; /* PB_INPUT, PB_SAVED, PB_OUTPUT: as in the IR; of a copy in the order of
                            a map (plan_permute.c) that, and the map */
    OutputUse
        use; /* what the runtime does with it: of PB_OUTPUT, and of a saved layer (PB_SAVED) */
} PBuf;

/* A matrix product C[b] (m x n) = A[b] (m x k) * B[b] (k x n), b in 0 .. batch.  Element (i, j) of
 * A is at b*a_batch + i*a_row + j*a_col of its buffer, with one of a_row, a_col 1; the same for B.
 * C is row-major: element (i, j) at b*c_batch + i*c_row + j. */
typedef struct {
    const Expr *batch, *m, *n, *k; /* numbers of matrices, rows, columns, summands */
    const Expr *a_batch, *a_row, *a_col, *b_batch, *b_row, *b_col, *c_batch, *c_row; /* elements */
    bool long_k; /* k is a node or edge space: the sum is cut into fixed chunks, added in order */
} PGemm;
/* Its sizes and strides, in the order of the text. */
#define PLAN_GEMM_SIZES_MAP(X)                                                                     \
    X(batch)                                                                                       \
    X(m) X(n) X(k) X(a_batch) X(a_row) X(a_col) X(b_batch) X(b_row) X(b_col) X(c_batch) X(c_row)
enum { PLAN_GEMM_SIZES = 12 };
typedef struct {
    const char *name;
    size_t offset; /* in PGemm */
} PGemmSize;
extern const PGemmSize plan_gemm_sizes[PLAN_GEMM_SIZES];
static inline const Expr *plan_gemm_size(const PGemm *g, int i) {
    return *(const Expr *const *)((const char *)g + plan_gemm_sizes[i].offset);
}

/* What a device's matrix library does at the end of a product (cuBLASLt's epilogues), in place of
 * the steps that it covers (plan_epilogue.c). */
typedef struct {
    PEpilogueKind kind;
    int side, out; /* ids of buffers: the bias added or the sums made, and the result; -1 = none */
    int n_covers;
    struct PStep *covers[2]; /* the steps that the device then leaves out; [n_covers] */
    const char *why_not;     /* PE_NONE: the reason, for reports */
} PEpilogue;

/* Products that a device's library may make with one call (plan_group.c), or kernels of one form
 * that one launch runs (plan_launch.c): steps of the phase one after the other.  Their order does
 * not matter. */
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
    int index; /* number of the product among those of the plan; -1 = it stays a kernel: why_not */
    /* Ids of buffers: segment bounds, column of each entry, position of each entry's weight (-1 =
     * in the order of entries), weights (-1 = none), the dense matrix, the result. */
    int ptr, idx, perm, weight, dense, out;
    /* Of the sparse matrix: numbers of rows, columns and stored entries; columns of the dense one.
     */
    const Expr *rows, *cols, *entries, *width;
    /* Bytes of memory moved by gnnc's kernel, and by the library with a kernel for the rest. */
    const Expr *own_bytes, *library_bytes;
    bool has_rest;       /* the kernel does more than the product: that would be its own kernel */
    const char *why_not; /* why the library cannot make it; NULL = it can */
} PSpmm;

/* Which rows of other processes a step reads of a value (the halo, or ghost rows): those reached
 * from the process's own rows of space `from` through index arrays, one after the other.
 * (codegen/plan_passes/plan_exchange.c) */
enum { PLAN_HALO_DEPTH_MAX = 4 };
typedef struct {
    Space *from;
    int n_via, via[PLAN_HALO_DEPTH_MAX]; /* ids of buffers: segment bounds, or indices */
    bool sampled; /* only those that are drawn in a step are needed: of others a select makes 0 */
} PHalo;
typedef VEC(PHalo) PHaloList;

/* A kernel that a device runs before a product over rounded sizes: it writes zeros to the padding
 * rows of the operands (plan_clear.c). */
typedef struct {
    LKernel *kernel;
    int n_bufs, bufs[2]; /* ids of buffers, by the kernel's argument */
} PClear;

/* Where a device runs a step beside others (plan_streams.c). */
typedef struct PBranch {
    int stream; /* behind the steps that are in this one */
    int n_after;
    struct PStep *after[RT_STREAMS_MAX]; /* and behind these; [n_after] */
} PBranch;

/* One step of a phase.  Fields that its kind does not use are 0. */
typedef struct PStep {
    PStepKind kind;
    Span span;          /* the model line */
    Span in_text;       /* .. and that of the plan's text that it was read from, if it was */
    const char *note;   /* one line for the reader of the driver: "conv1: z = x @ W" */
    LKernel *kernel;    /* PS_KERNEL */
    const Expr *extent; /* PS_KERNEL: of the parallel loop; NULL = serial, one call */
    MapList balance; /* PS_KERNEL: threads get equal numbers of entries of these maps' segments */
    int n_bufs;
    /* Ids of the buffers that it uses, [n_bufs].  PS_KERNEL: by argument; PS_GEMM: A, B, C;
     * PS_RANK: x, mask, out; PS_COPY: from, to; PS_CALL: inputs, then results. */
    int *bufs;
    int n_in;           /* PS_CALL: how many of the buffers are inputs */
    const Type **types; /* PS_CALL: type of each buffer's value (the buffer may have a view's) */
    int pred;      /* id of a buffer i1[]: the step is run only where that holds; -1 = always */
    bool pred_not; /* the step is run only where `pred` does not hold */
    Span pred_at;  /* the model line that decides it; none for effects */
    PGemm gemm;    /* PS_GEMM */
    PEpilogue *epilogue;      /* PS_GEMM of a plan for a device; else NULL */
    struct PStep *covered_by; /* the product whose epilogue does this step on a device; or NULL */
    PClear *clear; /* PS_GEMM of a plan for a device: padding rows of its operands are cleared
                      first; or NULL */
    PSpmm *spmm;   /* PS_KERNEL of a plan for a device that is a sparse product; else NULL */
    PGroup
        *group; /* PS_GEMM, PS_KERNEL of a plan for a device: done with others at once; or NULL */
    const char *separate_because; /* PS_GEMM without a group: why, for reports */
    const struct PStep
        *separate_from; /* the product that `separate_because` speaks of; NULL = all */
    PBranch *branch;    /* of a plan for a device: its stream, and which steps of others it waits
                           for; NULL = stream 0, none */
    Space *space;       /* PS_RELATION: the edge space that is built */
    int64_t limit;      /* PS_LOOP: most iterations; 0 = no limit */
    bool recorded; /* PS_LOOP of a plan for a device: the device evaluates the condition by itself
                      where it can record loops */
    int other;     /* PS_LOOP: index of its PS_END in PPhase.steps; PS_END: of its PS_LOOP */
    const char *text; /* PS_PRINT, PS_ASSERT: what is printed */
    int rank_axis;    /* PS_RANK: the dimension along which ranks are made */
    bool by_chunk;    /* in a PBlocks: the parallel loop is over chunks of the block's rows */
    /* Where processes share rows: the space whose rows each process computes its own of.  Of
     * PS_EXCHANGE: whose rows are brought from other processes.  NULL: each computes all. */
    Space *partition;
    bool partials; /* with `partition`: rows are partial sums, one for each cut of the space's rows
                    */
    bool folds;    /* PS_EXCHANGE of partial sums: they are f32, and only their total is needed */
    bool to_first; /* PS_EXCHANGE of all rows: only the first process gets them, to save them */
    PHaloList halos; /* PS_EXCHANGE: the rows that are read; none = all */
    bool sampled;    /* PS_EXCHANGE with halos: .. of these those that are drawn in the step */
    /* PS_EXCHANGE with halos: how rows of the step behind it, and behind other such exchanges, lead
     * to rows that are brought. Rows that lead to none of other processes are computed while it
     * goes on; none = it is waited for. */
    PHaloList beside;
    const Op *op; /* the graph op that the step is for */
} PStep;

/* What the line of a step has, as bits. */
typedef enum {
    SP_KERNEL = 1 << 0,     /* the name of its kernel */
    SP_SPACE = 1 << 1,      /* the relation that it builds */
    SP_SYMBOL = 1 << 2,     /* the C function that it calls */
    SP_BUFS = 1 << 3,       /* (x, y) */
    SP_SIZES = 1 << 4,      /* of a product */
    SP_EXTENT = 1 << 5,     /* over=N */
    SP_MAPS = 1 << 6,       /* dst(e), src(e) */
    SP_FLAG = 1 << 7,       /* a word alone */
    SP_LIMIT = 1 << 8,      /* a number */
    SP_OWN = 1 << 9,        /* which rows it is of, where processes share them */
    SP_CONDITION = 1 << 10, /* [not] x */
    SP_CLEAR = 1 << 11,     /* PClear */
    SP_EPILOGUE = 1 << 12,  /* PEpilogue */
    SP_GROUP = 1 << 13,     /* PGroup, or why there is none */
    SP_SPMM = 1 << 14,      /* PSpmm */
    SP_WITHIN = 1 << 15,    /* the number of the product that covers it */
    SP_STREAM = 1 << 16,    /* PBranch */
} PStepPart;

/* Who does a step. */
typedef enum { PBY_KERNELS, PBY_LIBRARY, PBY_RUNTIME, PBY_HOST } PStepBy;

/* Which of its buffers a step writes. */
typedef enum {
    PWRITES_NONE,
    PWRITES_LAST,
    PWRITES_ARGUMENTS, /* those that its kernel does */
    PWRITES_RESULTS,   /* those behind its n_in inputs */
    PWRITES_ROWS       /* some rows of what it reads */
} PStepWrites;

/* What steps.def says of a kind of steps. */
typedef struct {
    PStepBy by;
    int n_bufs; /* -1: any number */
    PStepWrites writes;
    unsigned parts; /* SP_* */
    const struct PStepPartText *line;
} PStepFacts;
const PStepFacts *plan_step_facts(PStepKind kind);
/* Whether the step writes its i-th buffer. */
bool plan_step_writes_at(const PStep *s, int i);

/* Steps first..last of a phase may be run on one block of rows after the other: each reads only its
 * own rows of what another of them writes.  Temporaries local to them then need memory for one
 * block only.  Run in order on all rows they are right as well. */
typedef struct {
    int first, last;  /* indices in PPhase.steps */
    const Expr *rows; /* number of rows that are cut into blocks */
} PBlocks;

/* What makes the values of a fusion. */
typedef enum {
    PF_ROWS,   /* a kernel over rows */
    PF_SUM,    /* kernels of partial sums over all rows, and of their total */
    PF_CONCAT, /* kernels that write parts side by side */
    PF_GEMM,   /* a matrix product of the library */
    PF_RANK,   /* ranks, by the runtime */
    PF_CALL,   /* a function of the user's */
    PF_LOOP,   /* the fusions of its body, again and again */
    PF_EFFECT, /* an output, or an effect of the host */
    PF_COPY    /* bytes of one buffer to another */
} PFusionKind;

typedef VEC(const Op *) OpList;
typedef VEC(struct PFusion *) PFusions;
/* Values of a function that are stored and made together, before there are steps that do it
 * (XLA's fusion).  Passes form, join and lower them (codegen/plan_passes/). */
typedef struct PFusion {
    PFusionKind kind;
    OpList roots;  /* the values, in their order; of PF_CALL and PF_LOOP all results; of PF_EFFECT
                      and PF_COPY the operation that it is for */
    int n_bufs;    /* 0 = values have no buffers yet */
    int *bufs;     /* by root, -1 = it is not stored; PF_LOOP: by operand; PF_COPY: from, to;
                      PF_EFFECT: none */
    PFusions body; /* PF_LOOP */
    Span in_text;  /* its line in the plan's text, if it was read from one */
} PFusion;

/* Why the kernel that makes `root` is not the one that makes `value`, which it reads.  Found where
 * kernels are formed (plan_units.c), said by --report=fusion. */
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
 * "gathered by" stands before that.  (codegen/plan_passes/plan_apart.c) */
const char *plan_unfused_text(UnfusedCause why);
/* What would put them together; NULL: nothing that can be set. */
const char *plan_unfused_remedy(UnfusedCause why);

/* One such pair, for reports.  via: the op that the comment of its cause calls so, or NULL. */
typedef struct {
    const Op *value, *root, *via;
    UnfusedCause cause;
} PUnfused;

/* The steps of one function of the module. */
typedef struct {
    const char *name;    /* "train", "load" */
    PFusions fusions;    /* what is to be lowered to steps, in order */
    VEC(PStep *) steps;  /* in the order in which they run */
    VEC(PBlocks) blocks; /* ranges of steps that may run block by block */
    VEC(PUnfused) apart; /* values that were not fused with their readers, ordered by root */
    Func *func;          /* the function */
    Span in_text;        /* where the plan's text has it, if it was read from one */
} PPhase;

/* Bits of Plan.flags: which analyses of the plan are there and up to date, kept by the driver of
 * passes (plan_driver.c). */
enum {
    PLAN_STEPS = 1 << 0,       /* each function's steps are there */
    PLAN_BLOCKS = 1 << 1,      /* steps that can run block by block were looked for (PBlocks) */
    PLAN_EPILOGUES = 1 << 2,   /* steps that products can cover were looked for (PEpilogue) */
    PLAN_JOINED = 1 << 3,      /* kernels that can share a launch were looked for */
    PLAN_GROUPS = 1 << 4,      /* products for one call of a library were looked for (PGroup) */
    PLAN_LIVES = 1 << 5,       /* PBuf.first and .last of temporaries are right */
    PLAN_SPARSE = 1 << 6,      /* sparse products for a device's library were looked for */
    PLAN_FUSIONS = 1 << 7,     /* each stored value is in a fusion, and there are no steps yet */
    PLAN_FORMED = 1 << 8,      /* fusions that can be one kernel were looked for */
    PLAN_BUFFERS = 1 << 9,     /* fusions have their buffers */
    PLAN_OVERLAPPED = 1 << 10, /* rows that are computed beside exchanges were looked for */
    PLAN_STREAMS = 1 << 11,    /* steps that can run beside each other were looked for (PBranch) */
};

/* The step plan of a module. */
typedef struct Plan {
    Module *m;
    unsigned flags;     /* PLAN_*: analyses that are there */
    uint32_t text_file; /* plan_parse: its own source; UINT32_MAX when made of a module */
    uint32_t main_file; /* of the model, in Ctx.sources */
    VEC(PBuf *) bufs;
    VEC(LKernel *) kernels;
    VEC(PPhase *) phases; /* "load" first when present */
    bool partitioned;     /* processes may share the rows of data in parts */
    const char *device;   /* whose kernels the driver launches, "cuda"; NULL = the host's */
    bool with_host; /* with a device: the host's kernels as well; which run is chosen at run time */
    const char *options;       /* how gnnc was called, recorded in the driver; NULL = unknown */
    const char *c_name;        /* its symbol is <c_name>_program; NULL = "model" */
    SpmmChoice spmm;           /* with a device: who makes sparse products */
    const char *scheduled_for; /* the target whose loop passes have changed the kernels, which are
                                  then for that target alone; NULL = none yet */
    const char *loop_passes; /* names of the passes over each kernel's loops; NULL = the target's */
    const PassOptions *loop_options; /* options of these passes; NULL = none */
    int n_optional_runs;             /* how many passes ran that a program can do without */
    bool tf32; /* --precision=tf32: a trainer uses TF32 products unless it is told otherwise */
    int variant, n_variants; /* number of this variant of the program, and how many there are; the
                                driver of the first lists the others */
    const char *choice;      /* what this variant decided; NULL = nothing */
    int in_f32; /* the variant that does the same in f32, for data whose rounded values fill */
    int64_t in_f32_bytes; /* .. at most so many bytes there; 0: there is none */
    uint64_t fingerprint; /* of the first variant; 0 = this plan's own */
} Plan;

/* Whether the driver can run on the host alone. */
static inline bool plan_on_host(const Plan *p) {
    return !p->device || p->with_host;
}

/* How many sparse products of the plan the library may make. */
int plan_spmm_count(const Plan *p);
/* Whether the rows of the space are partitioned among processes: each row has one owner. */
bool plan_is_partitioned_space(const Space *s);
/* Whether m(a) and a always belong to the same process. */
bool plan_map_keeps_owner(const Map *m);
/* Finds what can be computed while exchange number `at` of the phase goes on (plan_overlap.c):
 * *reader gets the step behind it and behind other exchanges of halos, *paths how rows of that step
 * lead to rows that are brought.  NULL, or why nothing can be; the reader is NULL where rows of no
 * step can be computed one by one. */
const char *plan_beside_paths(Arena *a, const Plan *p, const PPhase *ph, int at,
                              const PStep **reader, PHaloList *paths);
/* Whether the runtime knows what draws rows of the halo: the sources of own edges, which are drawn
 * themselves; or, backward, what edges from own rows lead to, which comes where such a row was
 * drawn.  Its index arrays are {src idx}; {src ptr, dst idx by src}; {src ptr, src perm, dst idx}.
 */
bool plan_is_drawn(const Plan *p, const PHalo *halo);
/* Whether the halo is in the list. */
bool plan_has_halo(const PHaloList *all, const PHalo *halo);
/* The position of the step in its phase. */
int plan_step_index(const PPhase *ph, const PStep *s);
/* Whether the step is the first of its group. */
bool plan_leads_group(const PStep *s);
/* The number of the group among all groups of products of the plan; for NULL how many there are. */
int plan_group_index(const Plan *p, const PGroup *g);
/* What is wrong about a group of kernels; NULL: one launch can run them (plan_launch.c). */
const char *plan_launch_misfit(const Plan *p, const PGroup *g);
/* Whether the loops of a step's kernel are what its facts say: the operations that it computes,
 * with their constants (plan_as_computed.c).  Where they are not, somebody has edited a text. */
bool plan_is_as_computed(Arena *a, const PStep *s);
/* Whether op is the first rows of its operand, so that they are found where the operand is, at
 * offset 0. */
bool plan_is_first_rows(const Op *op);
/* Whether the operation passes its operand's elements on as they are: loops have nothing for it. */
bool plan_passes_on(const Op *op);
/* What the epilogue does, in words: "adds a bias". */
const char *plan_epilogue_text(const PEpilogue *e);
/* *types gets the types of a call's inputs, then of its results, *n_in the number of inputs;
 * returns how many types. */
int plan_call_types(Arena *a, const Op *op, const Type ***types, int *n_in);
/* The C symbol that a call of a user's function runs. */
const char *cg_symbol(const Op *call);
/* Whether the step interrupts the phase: an effect of the host or the building of a relation; on a
 * device also a C function of the host, and a loop whose condition the host reads. */
bool plan_step_interrupts(const PStep *s, bool on_device);
/* The step that launches kernel k, or that clears padding rows with it; *phase: the phase of that
 * step.  NULL = no step does. */
const PStep *plan_launching_step(const Plan *p, const LKernel *k, const PPhase **phase);
/* Whether rows of other processes come while the step computes those of its rows that need none. */
bool plan_rows_come(const PPhase *ph, const PStep *s);
/* Whether each run of the phase is on a batch with sizes of its own. */
bool plan_runs_on_batches(const Plan *p, const PPhase *ph);
/* Whether the step is between a PS_LOOP and its PS_END. */
bool plan_in_loop(const PPhase *ph, int step);
/* An operand of a product that sums over rows of a batch: element (i, j) of matrix b is at
 * b*batch + i*row + j*step; rows j from `valid_rows` on are nobody's.
 * (codegen/plan_passes/plan_buckets.c)
 */
typedef struct {
    int buf; /* id of the buffer */
    /* n: number of i; the others: distances in elements. */
    const Expr *n, *batch, *row, *step;
    const Expr *valid_rows; /* number of rows j of the batch itself; NULL = not known */
} PPaddedOperand;
/* Whether the phase trains, and each of its runs is on a batch. */
bool plan_trains_on_batches(const Plan *p, const PPhase *ph);
/* Whether steps of the phase are in several streams. */
bool plan_has_streams(const PPhase *ph);
/* Why the streams of the phase's steps are wrong, as one may run before another that it needs is
 * done; NULL: they are right.  *at gets the number of the step. */
const char *plan_streams_misfit(Arena *a, const Plan *p, const PPhase *ph, int *at);
/* The first step of the phase that a device cannot run for sizes rounded up to a bucket, *why gets
 * the reason; NULL: it can run all.  cleared: pass `clear-tails` should have run, so
 * that a product without a PClear is such a step. */
const PStep *plan_bucket_obstacle(Arena *a, const Plan *p, const PPhase *ph, bool cleared,
                                  const char **why);
/* Whether a device may record the phase for rounded sizes, so that one recording serves many
 * batches. */
bool plan_has_buckets(Arena *a, const Plan *p, const PPhase *ph);
/* The two operands of a product that sums over rows of a batch: their padding rows must be zero.
 * False: the step is no such product. */
bool plan_padded_operands(Arena *a, const Plan *p, const PStep *s, PPaddedOperand out[2]);
void plan_print(StrBuf *b, const Plan *p); /* --emit=plan; plan_parse() reads it */
/* For people: buffers and steps alone, each step with its place in the model. */
void plan_print_steps(StrBuf *b, const Plan *p);
/* Of one text: the plan, its kernels and its module.  NULL after diagnostics.  What a plan must
 * hold beyond its grammar is plan_verify()'s to say. */
Plan *plan_parse(Ctx *c, uint32_t file);
bool plan_in_text(const Ctx *c, uint32_t file);     /* or are there kernels alone? */
uint64_t plan_fingerprint(Arena *a, const Plan *p); /* a checkpoint records it */
bool plan_verify(Ctx *ctx, const Plan *p);
bool plan_verify_fusions(Ctx *c, const Plan *p);
/* What does not fit between the rows that a kernel computes and those that processes own of it; or
 * a library's product, or ranks, and its operation or its buffers; NULL: nothing.  x, y: the order
 * in which the product's operands lie.  (plan_verify_sizes.c) */
const char *plan_own_misfit(Arena *a, const Plan *p, const PStep *s);
const char *plan_gemm_misfit(Arena *a, const Plan *p, const PStep *s, const Type *x, const Type *y);
const char *plan_rank_misfit(Arena *a, const Plan *p, const PStep *s);
/* The number of iterations of the kernel's parallel loops; NULL = it has none. */
const Expr *plan_kernel_extent(Arena *a, const LKernel *k);
/* Whether n elements, those of op (NULL: nobody's), are all of the buffer, or the first rows of a
 * longer value in it. */
bool plan_holds_elements(Arena *a, const PBuf *b, const Expr *n, const Op *op);

#endif
