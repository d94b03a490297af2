/* The loop IR: how one kernel computes its values.
 *
 * A kernel is an imperfect nest of loops over index spaces with scalar code in
 * it.  Scalars are registers, assigned once; memory is buffers and small local
 * arrays.  Reductions are explicit (`L_ACC`: combine into a location), so that a
 * target may split them.  The algorithm stands in the statements; how a loop runs
 * (parallel, vector, unrolled) stands in its `sched`, and a target may ignore a
 * vector or unroll wish without changing the result's meaning.
 *
 * Parallelism: a kernel has exactly one outermost statement list; its first loop
 * may be `parallel`.  The host driver splits that loop into chunks whose number
 * depends on sizes only, and calls the kernel function for [lo, hi).  Everything
 * before the parallel loop in the list is run per call.  See docs/ir.md. */
#ifndef CODEGEN_LOOP_H
#define CODEGEN_LOOP_H

#include "ir/ir.h"

typedef struct LReg LReg;
typedef struct LBuf LBuf;
typedef struct LStmt LStmt;
typedef struct LKernel LKernel;

struct LReg {
    int id;
    DType dt;         /* loop variables and indices are I64 */
    const char *hint; /* "v", "e", "alpha" */
    const LStmt *def; /* the statement that gives it a value, or the loop whose variable it is */
};

typedef enum {
    LB_VALUE,        /* a value of the graph IR, row-major over `dims` */
    LB_LOCAL,        /* a local array of this kernel; all extents constant; rank 0 = one scalar */
    LB_MAP_IDX,      /* i32[from]: m(a); with `kind`, in the order of that map's segments:
                        m(perm[k]) */
    LB_MAP_PTR,      /* i64[to + 1]: segment bounds */
    LB_MAP_PERM,     /* i32[from]: k-th entry in segment order -> element of from; only for unsorted
                        maps */
    LB_GLOBAL_IDS,   /* i32[space]: row key of random streams (edge spaces) */
    LB_KEY,          /* i32[2]: this step's key (k0, k1) of a random stream */
    LB_CHUNK_BOUNDS, /* i64[RT_SUM_CHUNKS + 1]: where sums over the rows of a space are cut */
} LBufKind;

struct LBuf {
    LBufKind kind;
    int id; /* position in LKernel.bufs = index in the kernel's argument array (not LB_LOCAL) */
    const char *name;
    DType dt;
    int rank;
    const Expr *dim[MAX_RANK];
    bool written; /* stored to by this kernel; others are read-only and never alias written ones */
    bool begun;   /* written: a stage before this one has stored there, and that may be read */
    const Op *value; /* LB_VALUE: whose value it holds (the plan binds it); NULL for partials */
    const Op
        *value_before; /* .. written: whose value it held before, that this kernel reads; or NULL */
    Map *map;          /* LB_MAP_* */
    Map *sorted_by;    /* LB_MAP_IDX: an unsorted map of the same elements, or NULL */
    Space *space;      /* LB_GLOBAL_IDS, LB_CHUNK_BOUNDS */
    int stream;        /* LB_KEY */
    int partial; /* LB_VALUE with value NULL: scratch number from 1, shared with the next kernel of
                    group */
};

typedef enum { LR_EXTENT, LR_SEGMENT, LR_CHUNK, LR_BEHIND } LRangeKind;

typedef VEC(Map *) MapList;
typedef VEC(LBuf *) LBufs;

/* Who goes through the iterations of a loop, or the columns of L_COLUMNS, in a row that a team of
 * threads has. */
typedef enum {
    LS_EACH,  /* each thread of the team through all of them, or lanes have a column each; of
                  columns: all threads at once, each lane having all of its own */
    LS_WAYS,  /* its ways by turns */
    LS_TEAM,  /* all of its threads by turns */
    LS_LANES, /* its lanes by turns, in each way */
} LShare;

/* Who takes the iterations of a kernel's parallel loop on a device, with those of the loops that
 * are part of its index. */
typedef enum {
    LT_UNDECIDED, /* it is not decided: a thread each, and the parallel loop alone */
    LT_THREAD,
    LT_TEAM,  /* lanes x ways threads of one warp */
    LT_BLOCK, /* of a kernel without a parallel loop: all that it does */
} LThreadKind;

typedef struct {
    LThreadKind kind;
    int pack; /* neighbouring elements that a thread has, or columns that a lane has of loops that
                 stand by themselves; 0 = one */
    /* Of teams and blocks: */
    int lanes;   /* threads side by side; 0 = as many as the widths that the launch knows ask for */
    int columns; /* that a lane may have where lanes go through several loops together */
} LThreads;

typedef struct {
    bool parallel;   /* outermost only, before other loops */
    MapList balance; /* parallel over segments of these: chunk bounds by their entries, not by rows;
                        none = by rows */
    bool vector; /* iterations are independent but for L_ACC; the loop variable is the last index of
                  * every buffer it indexes, or buffers are indexed through it by gather */
    bool unroll; /* constant extent */
    /* On a processor; 0 = not: */
    int lanes;           /* of a vector loop: iterations per vector */
    bool unroll_vectors; /* .. whose vectors stand one after the other, without a loop */
    int flat;   /* with the vector loop that is its body it is one, of vectors with so many lanes */
    int expand; /* scalars of all iterations are had at once, one per lane; loops between them run
                   one iteration after the other */
    bool prefix; /* .. only those before the first other statement, and then the rest of each */
    int strips;  /* scalars before the first other statement are had for so many iterations at once
                  */
    int rows;    /* of the parallel loop: so many of its iterations are side by side in lanes .. */
    bool serial; /* .. but for statements of its own list that go one iteration after the other */
    /* One of two versions of a parallel loop that stand side by side, taken where sizes are so. */
    const Expr *where; /* NULL: it is the only one; else it is taken where this is .. */
    int max;           /* .. up to so much, or */
    bool is_second;    /* above it, which the second one is */
    bool jam;          /* of constant extent: its iterations side by side in registers, in the
                          tile that ends its body */
    bool collapse;     /* part of the parallel loop's index */
    bool masked;       /* of L_COLUMNS: lanes without one go through the statements, too */
    LShare share;
    int hub_entries; /* of the parallel loop: a block takes a row that has more entries for each way
                      */
    int split_entries; /* by ways: several blocks have parts of so many entries of a long row .. */
    int split_from;    /* .. where all rows together have so many */
} LSched;

typedef enum {
    L_FOR,   /* for var in range { body } */
    L_LET,   /* dst = fn(arg..) */
    L_LOAD,  /* dst = buf[idx..] */
    L_STORE, /* buf[idx..] = src */
    L_ACC,   /* buf[idx..] = combine(red, buf[idx..], src) */
    L_LOCAL, /* declares local array buf; contents undefined until stored */
    L_IF,    /* if cond { body } */
    L_TILE,  /* body, of loops over `extent` columns and over entries around such: for `columns` of
                them at a time */
    L_COLUMNS,  /* body, whose loops over columns share the columns of a range: lanes of a team have
                   a column of all of them.  What it defines is known behind it */
    L_PREFETCH, /* first in a loop: buf[ptr[at + ahead]] may be asked for now */
    L_BARRIER,  /* the threads of a team wait for each other */
    L_FOLD,     /* behind what they share: what its ways, lanes or all threads have added up each by
                   itself is combined, and added to buf */
} LStmtKind;

/* Scalar functions of L_LET.  Elementwise graph ops are used as they are
 * (L_FN_OP + OpKind), so a new elementwise op needs one line here in neither. */
typedef enum {
    L_FN_OP,    /* op: an OPT_ELEM kind; arguments in operand order; result dt = dst->dt */
    L_FN_CONST, /* imm, of dst->dt */
    L_FN_SIZE,  /* size: an Expr, I64 */
    L_FN_IADD,
    L_FN_ISUB,
    L_FN_IMUL,
    L_FN_IDIV,
    L_FN_IREM, /* I64 index arithmetic */
    L_FN_ILT,
    L_FN_IGE,
    L_FN_IEQ,       /* I64 x I64 -> I1 */
    L_FN_RANDOM,    /* args: k0, k1 (I32), row, col (I64) -> F32 in [0,1); runtime/exec/rng.h */
    L_FN_LE_RANDOM, /* imm <= random of the same args -> I1;  0 <= imm < 1, an f32 */
} LFn;

/* Rows of sums in registers at a time. */
enum { LOOP_KEPT_MAX = 4 };

struct LStmt {
    LStmtKind kind;
    LStmt *next;
    Span span; /* the model line */
    /* L_FOR, L_IF, L_TILE, L_COLUMNS */
    LStmt *body;
    LReg *var; /* L_FOR */
    LRangeKind range;
    const Expr *extent; /* EXTENT, L_TILE: 0 .. extent;  CHUNK: the whole range being split;
                           BEHIND: own .. extent, where `own` is of the batch's sizes and extent of
                           those that a device's launch was recorded for; else none */
    const Expr *own;
    LBuf *ptr; /* SEGMENT: ptr[at] .. ptr[at+1]: positions in the order of segments;
                  L_PREFETCH: the index array;
                  CHUNK: LB_CHUNK_BOUNDS, ptr[at] .. ptr[at+1]; NULL = equal parts */
    LReg *at;  /* SEGMENT: which;  L_PREFETCH: the loop's variable;  CHUNK: chunk number c in 0 ..
                  n_chunks */
    const Expr
        *n_chunks; /* CHUNK: var in [c*L, min((c+1)*L, extent)), L = ceildiv(extent, n_chunks) */
    LSched sched;
    LBufs promoted; /* L_COLUMNS: arguments whose row is in registers there */
    LReg *cond;     /* L_IF */
    /* L_LET, L_LOAD, L_STORE, L_ACC */
    LReg *dst, *src;
    bool remat;  /* L_LET, L_LOAD: in a loop of strips, had again for each of its iterations, not
                    taken from the lanes that had it for all of them */
    bool packed; /* an access: of all neighbouring elements or columns that a thread has, at once */
    bool before_write; /* L_LOAD: of what the buffer held before this kernel wrote there */
    LFn fn;
    OpKind op;
    double imm;
    const Expr *size;
    int n_arg;
    LReg *arg[4];
    LBuf *buf; /* also L_LOCAL, L_PREFETCH, L_FOLD */
    LReg *idx[MAX_RANK];
    RedKind red; /* also L_FOLD */
    /* L_PREFETCH */
    int ahead;   /* positions, of the index array's last one at most */
    int n_lines; /* of memory, from the row's first on; 0 = the tile's part of the row */
    /* L_TILE */
    int columns, lanes; /* at a time, and in a vector */
    int n_in_registers; /* arrays whose rows registers keep .. */
    LBuf *in_registers[LOOP_KEPT_MAX];
};

typedef VEC(LKernel *) LKernels;

struct LKernel {
    const char *name; /* a C identifier: "train_conv1_z_12" */
    VEC(LBuf *) bufs; /* arguments, in order */
    VEC(LBuf *) locals;
    LStmt *body;
    int n_regs;
    LThreads threads;
    VEC(const Op *) computes; /* every graph op evaluated in it, for reports */
    LKernels stages; /* launched one after the other instead of a body of its own, which it then
                        lacks: each has all arguments (fission) */
    Span span;
};

/* Has k several parallel loops (plan_join.c), but for versions of one?  The caller's range is
 * theirs, one behind the other. */
bool loop_is_joined(const LKernel *k);

/* Does k write rows behind a batch's own, which a device alone has? */
bool loop_is_behind(const LKernel *k);

/* Does k hold what passes for a processor alone write, and other targets do not read?
 * (codegen/loop/loop_walk.c) */
bool loop_is_scheduled_for_cpu(const LKernel *k);

static inline bool loop_is_access(const LStmt *s) {
    return s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
}
/* Is it from a line of the model?  The others say how those around or behind them are done. */
static inline bool loop_has_place(const LStmt *s) {
    return s->kind != L_TILE && s->kind != L_PREFETCH && s->kind != L_FOLD;
}
/* Whether the statement only defines a register. */
static inline bool loop_is_value(const LStmt *s) {
    return s->kind == L_LET || s->kind == L_LOAD;
}

static inline bool loop_has_body(const LStmt *s) {
    return s->kind == L_FOR || s->kind == L_IF || s->kind == L_TILE || s->kind == L_COLUMNS;
}
/* The first of s, what follows it, and their bodies for which `is` holds; NULL = it holds for none
 * (codegen/loop/loop_walk.c). */
const LStmt *loop_find(const LStmt *s, bool (*is)(const LStmt *s, const void *what),
                       const void *what);
/* Of the same statements: is the local array declared there,
 * r computed or loaded, or that or a loop's variable; is b loaded; how often is b read, written or
 * added to; how many loops over the entries of a row are there? */
bool loop_declares(const LStmt *s, const LBuf *b);
bool loop_computes(const LStmt *s, const LReg *r);
bool loop_defines(const LStmt *s, const LReg *r);
bool loop_loads(const LStmt *s, const LBuf *b);
int loop_count_accesses(const LStmt *s, const LBuf *b);
int loop_count_entry_loops(const LStmt *s);
bool loop_has(const LStmt *s, const LStmt *one);
bool loop_has_range(const LStmt *s, LRangeKind range); /* a loop over one */
/* Does the statement, or its body, read r? */
bool loop_reads(const LStmt *s, const LReg *r);
/* Must the statement `earlier`, with its body, stay before `later`: a value that it reads, or
 * memory that both touch and one of them writes? */
bool loop_depends(const LStmt *later, const LStmt *earlier);

/* A kernel of its own: arguments, local arrays, registers and statements are copies, with the same
 * numbers (codegen/loop/loop_copy.c). */
LKernel *loop_copy(Arena *a, const LKernel *k);
/* s once more for k, whose it is, with registers and local arrays of its own. */
LStmt *loop_copy_stmt(Arena *a, LKernel *k, const LStmt *s);
/* For an array of k: like "acc" or "acc_2", and no other's. */
const char *loop_unique_name(Arena *a, const LKernel *k, const char *like);

/* text (codegen/loop/loop_print.c, loop_parse.c) and checks (loop_verify.c) */
void loop_print(StrBuf *b, const Module *m, const LKernel *k);
/* For people: each line with its place in the model, as the graph IR has it. */
void loop_print_places(StrBuf *b, const Module *m, const LKernel *k);
void loop_balance_print(StrBuf *b, const MapList *maps);
bool loop_verify(Ctx *c, const Module *m, const LKernel *k);
LKernel *loop_parse(Ctx *c, Module *m, uint32_t file,
                    int *n_kernels); /* kernels of a text, in the spaces of m */
/* .. behind a module of their spaces; NULL after diagnostics. */
LKernel *loop_parse_file(Ctx *c, uint32_t file, Module **m, int *n_kernels);

#endif
