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

/* A scalar register: assigned once, by one statement or as the variable of a loop. */
struct LReg {
    int id;           /* unique in the kernel; 0 .. LKernel.n_regs */
    DType dt;         /* loop variables and indices are I64 */
    const char *hint; /* the start of its printed name: "v", "e", "alpha" */
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
    LB_ROOM, /* memory that a device has for what one stage of a kernel leaves to the next: pieces
                of an argument's sums.  Behind the arguments.  Where it has no more elements than
                that argument, it is the argument, and the stage that reads it is left out */
} LBufKind;

/* An array that a kernel reads or writes: an argument, or a local array. */
struct LBuf {
    LBufKind kind;
    int id; /* position in LKernel.bufs = index in the kernel's argument array (not LB_LOCAL) */
    const char *name;
    DType dt;
    int rank;
    const Expr *dim[MAX_RANK]; /* extent of each dimension, outermost first; [rank] */
    bool written; /* this kernel stores to it; a written buffer overlaps no other argument */
    bool begun;   /* written, and an earlier stage of the kernel has stored to it as well; what that
                     stage stored may be read */
    const Op *value; /* LB_VALUE: the graph value that it holds; NULL for partial sums, and for
                        entries in the order of a map */
    const Op *value_before; /* LB_VALUE updated in place: the graph value that it holds before this
                               kernel, which the kernel reads; or NULL */
    Map *map;               /* LB_MAP_*: the map whose index array this is */
    Map *sorted_by; /* LB_MAP_IDX: the entries are in the order of this unsorted map's segments, a
                       map of the same elements; NULL = in storage order */
    Space *space;   /* LB_GLOBAL_IDS, LB_CHUNK_BOUNDS: the space whose rows are numbered or cut */
    int stream;     /* LB_KEY: number of the random stream */
    int room_of;    /* LB_ROOM: `id` of the argument whose pieces are there */
    int partial;    /* LB_VALUE with value NULL: number (from 1) of a scratch array of partial sums,
                       which the next kernel of the same group of operations reads */
};

/* What the variable of a loop runs over. */
typedef enum {
    LR_EXTENT,  /* 0 .. extent */
    LR_SEGMENT, /* the entries of one segment: ptr[at] .. ptr[at + 1] */
    LR_CHUNK,   /* one of n_chunks parts of 0 .. extent */
    LR_BEHIND   /* own .. extent: rows after a batch's own, which only a device has */
} LRangeKind;

typedef VEC(Map *) MapList;
typedef VEC(LBuf *) LBufs;

/* Which threads run which iterations of a loop (or which columns of L_COLUMNS), in a kernel that
 * gives each row to a team of threads: `lanes` threads side by side, and several such groups, the
 * `ways`.  "Dealt in turn" = round-robin: member i of n runs iterations i, i + n, i + 2n, ... */
typedef enum {
    LS_EACH,  /* a loop: each thread of the team runs all iterations, or each lane has one column.
                 L_COLUMNS: all threads run it once, and each lane has all of its own columns */
    LS_WAYS,  /* dealt in turn to the ways of the team */
    LS_TEAM,  /* dealt in turn to all threads of the team */
    LS_LANES, /* dealt in turn to the lanes; each way does all of them */
} LShare;

/* What unit of a device runs one iteration of a kernel's parallel loop.  The loops marked
 * `collapse` belong to that loop's index. */
typedef enum {
    LT_UNDECIDED, /* not decided yet: emitted as one thread per iteration of the parallel loop */
    LT_THREAD,    /* one thread */
    LT_TEAM,      /* a team of lanes x ways threads of one warp */
    LT_BLOCK,     /* a block of threads; in a kernel without a parallel loop it runs everything */
} LThreadKind;

/* How a device's threads are given to a kernel. */
typedef struct {
    LThreadKind kind;
    int pack;    /* LT_THREAD: neighbouring elements per thread; LT_TEAM: neighbouring columns per
                    lane, in loops that share columns with no other loop; 0 = one */
    int lanes;   /* LT_TEAM, LT_BLOCK: threads side by side; 0 = chosen at launch from the widths of
                    the column loops */
    int columns; /* LT_TEAM, LT_BLOCK: most columns that one lane may have where lanes go through
                    several column loops together */
} LThreads;

/* How a loop (L_FOR, L_COLUMNS, L_FOLD) is run.  A field that is 0, false or NULL asks for
 * nothing.  The words of the text form are in docs/codegen.md. */
typedef struct {
    bool parallel;   /* iterations may run on different threads; outermost loops only */
    MapList balance; /* of the parallel loop: threads get equal numbers of entries of these maps'
                        segments; none = equal numbers of rows */
    bool vector; /* iterations are independent but for L_ACC; the loop variable is the last index of
                  * every buffer it indexes, or buffers are indexed through it by gather */
    bool unroll; /* every iteration is emitted; the extent is constant */
    /* ---- read for a CPU alone */
    int lanes; /* of a vector loop: iterations per vector */
    bool
        unroll_vectors; /* of a vector loop with `lanes`: every vector is emitted, without a loop */
    int flat;    /* this loop and the vector loop that is its body run as one loop, in vectors of so
                    many iterations */
    int expand;  /* of a loop of so many iterations: scalar statements run for all of them at once,
                    one per lane; loops between them run one iteration after the other */
    bool prefix; /* with `expand`: only the scalar statements at the start of the body run at once,
                    then the rest runs iteration by iteration */
    int strips;  /* the scalar statements at the start of the body run for so many iterations at
                    once, one per lane; then the rest runs iteration by iteration */
    int rows;    /* of the parallel loop: so many iterations run at once, one per lane */
    bool serial; /* of a loop directly in a loop with `rows`: run one row after the other instead */
    /* Two versions of a parallel loop may stand one after the other; a size chooses between them.
     */
    const Expr *where; /* the size that chooses; NULL = there is one version */
    int max;           /* the first version runs if where <= max, the second if where > max */
    bool is_second;    /* this loop is the second version */
    bool jam;          /* of a constant number of heads: the rows of all iterations are held in
                          registers together, in the L_TILE that ends the body */
    bool collapse;     /* this loop and the loop around it share one index: of the parallel loop */
    /* ---- read for a device alone */
    bool masked;     /* of L_COLUMNS: lanes without a column run the statements, too, and write
                        nothing */
    LShare share;    /* which threads of a team run which iterations */
    int hub_entries; /* of the parallel loop: a row with more entries than this for each way of its
                        team is computed by a whole block */
    int split_entries; /* with LS_WAYS or LS_TEAM: a long row is shared by several blocks, each with
                          at least so many of its entries */
    int split_from;    /* with split_entries: only if all rows together have so many entries */
    int few_rows;      /* with split_entries: of so few rows blocks have .. */
    int few_entries;   /* .. so many entries each, if all rows have 16 times as many */
    int ahead; /* with LS_WAYS: what so many iterations load is loaded before the first is used */
} LSched;

typedef enum {
#define STMT(id, word, place, parts) L_##id,
#include "codegen/loop/statements.def"
} LStmtKind;

enum {
    LOOP_N_STMTS = 0 /* number of kinds of statements */
#define STMT(id, word, place, parts) +1
#include "codegen/loop/statements.def"
};

/* What the line of a statement has, as bits. */
typedef enum {
    LP_VARIABLE = 1 << 0,    /* %v: the register that a loop defines */
    LP_RESULT = 1 << 1,      /* %x: f32 = .. in front: the register that a value defines */
    LP_RANGE = 1 << 2,       /* what a variable runs over; of a segment or chunk `at` says which */
    LP_CONDITION = 1 << 3,   /* a register, i1 */
    LP_SOURCE = 1 << 4,      /* the register that is written to the element */
    LP_FUNCTION = 1 << 5,    /* a scalar function and its arguments */
    LP_ELEMENT = 1 << 6,     /* buf[%i, %j] */
    LP_AHEAD = 1 << 7,       /* a row that is asked for: buf[ptr[%at + 8]] lines 2, or tile */
    LP_BUFFER = 1 << 8,      /* buf */
    LP_DECLARATION = 1 << 9, /* buf: f32[16] */
    LP_BODY = 1 << 10,       /* { .. } */
    LP_BUFFERS = 1 << 11,    /* x, y */
    LP_REDUCTION = 1 << 12,  /* sum, max, min */
    LP_SHARE = 1 << 13,      /* LShare */
    LP_FLAG = 1 << 14,       /* a word that is there or not */
    LP_CHOICE = 1 << 15,     /* one of two words */
    LP_NUMBER = 1 << 16,
    LP_SIZE = 1 << 17,  /* an expression */
    LP_MAPS = 1 << 18,  /* src(e), dst(e) */
    LP_PLACE = 1 << 19, /* no part: it computes something that a line of the model asks for */
} LPart;

/* The parts of a statement, by its kind: what statements.def says of it, as bits. */
extern const unsigned loop_parts[LOOP_N_STMTS];

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

enum {
    LOOP_KEPT_MAX = 4,   /* the most buffers whose rows an L_TILE keeps in registers */
    LOOP_LANES_MAX = 16, /* the most lanes of a vector */
    LOOP_AHEAD_MAX = 8   /* the most iterations that are loaded before the first is used */
};

/* A statement.  Which fields count depends on the parts of its kind; the others are 0. */
struct LStmt {
    LStmtKind kind;
    LStmt *next;        /* the statement after it in its list */
    Span span;          /* the model line */
    uint32_t text_line; /* of the text that its kernel was read from (LKernel.in_text); 0 = none */
    /* ---- L_FOR, L_IF, L_TILE, L_COLUMNS */
    LStmt *body;        /* first statement of the list inside */
    LReg *var;          /* L_FOR: the loop's variable */
    LRangeKind range;   /* L_FOR, L_COLUMNS */
    const Expr *extent; /* LR_EXTENT and L_TILE: 0 .. extent.  LR_CHUNK: 0 .. extent is split.
                           LR_BEHIND: own .. extent */
    const Expr *own;    /* LR_BEHIND: number of the batch's own rows; `extent` is the number that a
                           device's launch was recorded for; without recording the loop is empty */
    /* LR_SEGMENT: bounds of segments.  LR_CHUNK: the LB_CHUNK_BOUNDS buffer, chunk c is ptr[c] ..
     * ptr[c + 1]; NULL = chunks of equal length.  L_PREFETCH: the index array */
    LBuf *ptr;
    LReg *at; /* LR_SEGMENT: number of the segment.  LR_CHUNK: number of the chunk, from 0.
                 L_PREFETCH: the variable of the loop */
    const Expr *n_chunks; /* LR_CHUNK: number of chunks.  Of equal length they are [c*L,
                             min((c+1)*L, extent)), L = ceildiv(extent, n_chunks) */
    LSched sched;         /* L_FOR, L_COLUMNS, L_FOLD: how it is run */
    LBufs in_registers;   /* L_TILE, L_COLUMNS: arrays whose rows are held in registers inside */
    LReg *cond;           /* L_IF: an I1 */
    /* ---- L_LET, L_LOAD, L_STORE, L_ACC */
    /* dst: the register that L_LET, L_LOAD define; src: the one that L_STORE, L_ACC store or
     * combine */
    LReg *dst, *src;
    bool remat;  /* L_LET, L_LOAD at the start of a loop with `strips`: computed again for each
                    iteration, not taken from the lane that computed it with the others */
    bool packed; /* an access: to all neighbouring elements or columns of the thread at once */
    bool before_write; /* L_LOAD of a written buffer: what it held before this kernel wrote to it */
    LFn fn;            /* L_LET: the scalar function */
    OpKind op;         /* L_FN_OP: which operation */
    double imm;        /* L_FN_CONST: the constant; L_FN_LE_RANDOM: the threshold */
    const Expr *size;  /* L_FN_SIZE: the size */
    int n_arg;
    LReg *arg[4];        /* L_LET: arguments; [n_arg] */
    LBuf *buf;           /* the buffer of an access; of L_LOCAL, L_PREFETCH and L_FOLD, too */
    LReg *idx[MAX_RANK]; /* an access: one index per dimension of buf */
    RedKind red;         /* L_ACC, L_FOLD: how values are combined */
    /* ---- L_PREFETCH */
    int ahead;   /* how many positions of the index array ahead; its last one at most */
    int n_lines; /* cache lines of the row, from its start; 0 = the part that the tile uses */
    /* ---- L_TILE */
    int columns, lanes; /* columns at a time, and columns per vector */
};

typedef VEC(LKernel *) LKernels;

/* One kernel: what a single launch, or a single call of the host driver, computes. */
struct LKernel {
    const char *name;         /* a C identifier: "train_conv1_z_12" */
    VEC(LBuf *) bufs;         /* arguments, in order */
    VEC(LBuf *) locals;       /* local arrays */
    LStmt *body;              /* the outermost list of statements */
    int n_regs;               /* number of registers; their ids are below it */
    LThreads threads;         /* how a device's threads are given to it */
    VEC(const Op *) computes; /* every graph op evaluated in it */
    LKernels stages; /* kernels launched one after the other in its place (loop fission), each with
                        all of its arguments, and memory between them behind these (LB_ROOM); it
                        then has no body */
    Span span;       /* the model line */
    Span in_text;    /* where the plan's text has it, if it was read from one */
};

/* For messages: where a statement, or the kernel (s NULL), stands in the plan's text; of one that
 * was not read from there, its model line. */
static inline Span loop_place(const LKernel *k, const LStmt *s) {
    if (!s) return span_or(k->in_text, k->span);
    uint32_t line = k->in_text.line ? s->text_line : 0;
    return line ? span_of(k->in_text.file, line, 1, line, 1) : s->span;
}

/* Whether the kernel has several parallel loops (plan_join.c), besides versions of one.  The range
 * [lo, hi) of its caller then counts the iterations of all of them, one loop after the other. */
bool loop_is_joined(const LKernel *k);

/* Whether the kernel writes padding rows, which a device has behind a batch's own where sizes are
 * rounded. */
bool loop_is_behind(const LKernel *k);

/* How many arguments the kernel has, without memory between its stages. */
int loop_n_arguments(const LKernel *k);

/* Whether the kernel's text has marks that only the CPU target understands.
 * (codegen/loop/loop_walk.c) */
bool loop_is_scheduled_for_cpu(const LKernel *k);

/* Whether the statement has one of these parts. */
static inline bool loop_has_part(const LStmt *s, unsigned parts) {
    return (loop_parts[s->kind] & parts) != 0;
}
/* Whether the statement reads or writes an element of a buffer. */
static inline bool loop_is_access(const LStmt *s) {
    return loop_has_part(s, LP_ELEMENT);
}
/* Whether the statement writes an element of a buffer. */
static inline bool loop_is_write(const LStmt *s) {
    return loop_has_part(s, LP_SOURCE);
}
/* Whether the statement computes something that a line of the model asks for.  The others only say
 * how statements around or after them are run. */
static inline bool loop_has_place(const LStmt *s) {
    return loop_has_part(s, LP_PLACE);
}
/* Whether the statement only defines a register. */
static inline bool loop_is_value(const LStmt *s) {
    return loop_has_part(s, LP_RESULT);
}
/* Whether the statement is one of the kinds with a list of statements inside. */
static inline bool loop_has_body(const LStmt *s) {
    return loop_has_part(s, LP_BODY);
}
/* The register that the statement defines; NULL: none. */
static inline LReg *loop_result(const LStmt *s) {
    return loop_has_part(s, LP_VARIABLE) ? s->var : s->dst;
}
/* Where the i-th register stands that the statement reads, outside of its body; NULL: it reads no
 * more. */
static inline LReg *const *loop_operand(const LStmt *s, int i) {
    const unsigned parts = loop_parts[s->kind];
    if (parts & LP_FUNCTION) return i < s->n_arg ? &s->arg[i] : NULL;
    if (parts & LP_ELEMENT) {
        if (i < s->buf->rank) return &s->idx[i];
        return parts & LP_SOURCE && i == s->buf->rank ? &s->src : NULL;
    }
    if (i) return NULL;
    if (parts & LP_CONDITION) return &s->cond;
    return parts & (LP_RANGE | LP_AHEAD) && s->at ? &s->at : NULL;
}
/* In what follows, "among s" means: in s, the statements after it, and the bodies of all these.
 * The first statement among s for which is(statement, what) holds; NULL = there is none.
 * (codegen/loop/loop_walk.c) */
const LStmt *loop_find(const LStmt *s, bool (*is)(const LStmt *s, const void *what),
                       const void *what);
/* Whether local array b is declared among s. */
bool loop_declares(const LStmt *s, const LBuf *b);
/* Whether register r is computed or loaded among s. */
bool loop_computes(const LStmt *s, const LReg *r);
/* Whether register r is computed, loaded, or the variable of a loop among s. */
bool loop_defines(const LStmt *s, const LReg *r);
/* Whether buffer b is loaded from among s. */
bool loop_loads(const LStmt *s, const LBuf *b);
/* How many loads, stores and accumulations of buffer b the statements contain. */
int loop_count_accesses(const LStmt *s, const LBuf *b);
/* How many loops over the entries of a row are among s. */
int loop_count_entry_loops(const LStmt *s);
/* Whether the statement `one` is among s. */
bool loop_has(const LStmt *s, const LStmt *one);
/* Whether a loop over a range of this kind is among s. */
bool loop_has_range(const LStmt *s, LRangeKind range);
/* Whether a loop is among s. */
bool loop_has_loop(const LStmt *s);
/* Whether buffer b is written among s; .. combined into. */
bool loop_writes(const LStmt *s, const LBuf *b);
bool loop_accumulates_into(const LStmt *s, const LBuf *b);
/* Counts in n_reads[register id] how often each register is read among s. */
void loop_count_reads(const LStmt *s, int *n_reads);
/* Removes the values that nobody reads, given these counts, from the list at *at and the bodies in
 * it; returns how many. */
int loop_drop_values(LStmt **at, const int *n_reads);
/* Numbers the registers that are defined among s, in their order, from *next on. */
void loop_number_registers(LStmt *s, int *next);
/* Whether the statement, or one in its body, reads register r. */
bool loop_reads(const LStmt *s, const LReg *r);
/* Whether the statement `later` must stay after `earlier`: it reads a register that `earlier`
 * defines, or both access the same memory and one of them writes it.  Bodies count. */
bool loop_depends(const LStmt *later, const LStmt *earlier);

/* A copy of the kernel with arguments, local arrays, registers and statements of its own, which
 * keep their numbers (codegen/loop/loop_copy.c). */
LKernel *loop_copy(Arena *a, const LKernel *k);
/* Whether both are the same statements, over arguments and numbers of rows of their own
 * (codegen/loop/loop_form.c). */
bool loop_same_form(const LKernel *x, const LKernel *y);
/* A copy of k, as passes over loops left it, for the arguments and rows of kernel `of`: it had the
 * same form before. */
LKernel *loop_copy_for(Arena *a, const LKernel *k, const LKernel *of);
/* A second copy of statement s of kernel k in the same kernel, with registers and local arrays of
 * its own. */
LStmt *loop_copy_stmt(Arena *a, LKernel *k, const LStmt *s);
/* A name for a new array of k: `like` itself, or with a number ("acc_2") where k has that already.
 */
const char *loop_unique_name(Arena *a, const LKernel *k, const char *like);

/* text (codegen/loop/loop_print.c, loop_parse.c) and checks (loop_verify.c) */
/* Prints the kernel as loop_parse() reads it. */
void loop_print(StrBuf *b, const Module *m, const LKernel *k);
/* The same for people: each line ends with its place in the model, as in the graph IR. */
void loop_print_places(StrBuf *b, const Module *m, const LKernel *k);
/* Prints maps, "dst(e), src(e)". */
void loop_maps_print(StrBuf *b, const MapList *maps);
/* Checks the kernel: registers are defined before use, accesses fit buffers, schedules are legal.
 * False after diagnostics. */
bool loop_verify(Ctx *ctx, const Module *m, const LKernel *k);
/* Reads a text of kernels over the spaces of module m: an array of *n_kernels; NULL after
 * diagnostics. */
LKernel *loop_parse(Ctx *c, Module *m, uint32_t file, int *n_kernels);
/* Reads a text that has a module with the spaces first, then kernels; NULL after diagnostics. */
LKernel *loop_parse_file(Ctx *c, uint32_t file, Module **m, int *n_kernels);

#endif
