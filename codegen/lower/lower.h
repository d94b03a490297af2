/* Inside of the lowering from graph IR to kernels and plan (codegen/lower/,
 * gen.c, plan_passes/); nobody else includes it.
 *
 * A kernel is made by asking for root values *at an index*: an Env binds index
 * spaces to registers, cg_value() gives the register that holds a value there,
 * generating its `fused` operands on the way.  Every statement is put into the
 * outermost open scope in which its arguments exist, so what does not depend on
 * an inner loop's variable leaves that loop by itself. */
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H

#include "codegen/plan/plan.h"
#include "ir/guard.h"
#include "ir/walk.h"
#include "passes/threshold.h"

/* ---- what becomes of each operation of a function ------------------------- */
/* Where the value of an operation is. */
typedef enum {
    HOW_DEAD,   /* nothing needs it */
    HOW_INLINE, /* computed inside its users' kernels */
    HOW_ALIAS,  /* a view: the bytes of `base` under other dims */
    HOW_STORED, /* has a buffer, written by a step of this phase */
    HOW_SOURCE, /* has a buffer that was there before: data, variable, input, saved */
} Storage;

typedef struct {
    Storage storage; /* where its value is */
    int buf;         /* PBuf id, -1 until one is given; for HOW_ALIAS see cg_buf() */
    const Op *base; /* HOW_ALIAS: a HOW_STORED or HOW_SOURCE operation; else the operation itself */
    bool gemm;      /* a contract that is made by a library's matrix product */
    bool spmm; /* a segment sum for a library's sparse product: a kernel with nothing else in it */
    int root;  /* a root of the kernel that is being made: its place in Gen.roots */
    int name_number; /* in names: its place among the others, or among dumps, which change no name
                      */
    const Op *wanted_by; /* a reader that takes it from memory; NULL = none must */
    bool overwritten;    /* its buffer is used again by another value, from that one's step on */
} OpInfo;

/* How a root's kernel reads the stored value `base`: at the root's own index, at other indices. */
typedef struct {
    const Op *base;
    bool at_own_index, at_other_index;
} CgRead;
typedef VEC(CgRead) CgReads;

/* Places that a walk over rows tells apart (plan_row_walk.c). */
enum { CG_PLACES = 32 };

typedef struct {
    PassCtx *pc;
    Ctx *c;
    Arena *a;
    Module *m;
    Plan *p;
    Func *f;
    int phase;
    const int *operand_bufs; /* in the body of a loop: buffers of its operands; else NULL */
    int n_carried;           /* in the body of a loop: how many operands a `next` replaces */
    OpInfo *info;            /* by Op.id */
    StrMap names;            /* of buffers */
    StrMap kernels; /* names of kernels: loops may share a body, whose kernels are made for each */
    StrMap source_bufs;  /* buffers of sources, maps and keys */
    const Guard **guard; /* by Op.id: where values are wanted */
    CgReads **reads;     /* by Op.id: of roots, see cg_reads() */
    int *slot;           /* by Op.id: scratch of cg_reads() */
    unsigned *sums;      /* by Op.id: scratch of lower_group.c, of one traversal .. */
    unsigned sums_mark;  /* .. with this number */
    IrMarks *marks;      /* of 2 * Op.id, and one more */
    IrMarks *computed;   /* of Op.id: what the kernel at hand computes */
    IrMarks *row_marks;  /* of Op.id * CG_PLACES and a place */
} Lower;

/* ---- the kernel under construction (gen.c) -------------------------------- */
typedef struct Scope Scope;
/* A list of statements that code is added to: the kernel's, or the body of a loop or condition. */
struct Scope {
    Scope *parent;
    LStmt *owner;        /* the L_FOR or L_IF whose body it is; NULL = the kernel */
    LStmt *head, **tail; /* the list so far, and where the next statement goes */
    int depth;           /* number of scopes around it */
    bool open;           /* statements can still be added */
};

/* Index spaces to index registers, innermost binding first; never modified. */
typedef struct Env Env;
struct Env {
    const Env *up;
    const Space *space;
    LReg *reg;
};

/* A computed value that is remembered: `what`, at the indices key[0 .. n), is in reg. */
typedef struct {
    const void *what; /* Op, Map, Space */
    int n;
    LReg *key[MAX_RANK];
    LReg *reg;
    int prev; /* the one before it in its chain, from 1; 0 = none */
} Memo;
enum { CG_MEMO_BITS = 8 };

/* A space that a row runs along, or a part of it. */
typedef struct {
    Space *space;
    int64_t width;     /* of the part, or of the space; 0 = only data knows */
    LReg *tile_number; /* which; NULL = all of the space */
} Axis;

typedef struct {
    int n;
    Axis v[MAX_RANK]; /* in the order of storage */
} Axes;

/* A reduction's results along the axes, in a local array or in the row of the kernel's result. */
typedef struct {
    const Op *op;
    LBuf *acc;
    bool whole_axes;        /* the axes are whole spaces: a position is an index */
    bool is_axis[MAX_RANK]; /* by position in op's type */
    LReg *key[MAX_RANK];    /* the other indices */
    Scope *scope;
} Accumulator;

/* The variable of an open loop over the entries of a segment. */
typedef struct {
    LReg *var, *pos; /* the element, and its position in the order of segments */
    Map *map;        /* the map whose segments these are */
    LReg *at;        /* the loop over pos runs through segment `at` of map */
} SegVar;

/* An index that was split into, or flattened from, the indices of n spaces. */
typedef struct {
    LReg *index; /* the flat, row-major index */
    int n;
    const Space *space[MAX_RANK];
    LReg *part[MAX_RANK]; /* the index in each of the spaces */
} Split;

/* An index of an axis that is cut into tiles. */
typedef struct {
    LReg *index, *local; /* position in the space, position in the tile */
} TileIndex;

/* A constant or size that the kernel has in a register already. */
typedef struct {
    LFn fn; /* L_FN_CONST: imm, of type dt; L_FN_SIZE: size */
    DType dt;
    double imm;
    const Expr *size;
    LReg *reg;
} ConstMemo;

typedef struct {
    Lower *lo;
    Arena *a;
    LKernel *k;
    Span span;
    Scope *scope;          /* innermost open scope */
    Scope *root;           /* the kernel's statement list */
    Scope *parallel_scope; /* body of the parallel loop, NULL without one */
    LReg *flat_index;      /* one index for all dims: every stored value is loaded at it */
    const Op *const *roots;
    int n_roots;
    const bool *stored;          /* by root: it is in memory; NULL = none is */
    VEC(Scope *) reg_scope;      /* by LReg.id */
    VEC(int) arg_buf;            /* PBuf of each argument */
    int *arg_table, n_arg_table; /* .. and a table of arguments, by it and their dimensions */
    StrMap names;                /* of arguments and local arrays */
    VEC(Memo) memo;
    int memo_last[1 << CG_MEMO_BITS]; /* of each chain, from 1; 0 = none */
    VEC(Accumulator) accumulators;
    VEC(TileIndex) tile_index;
    VEC(SegVar) segs;
    VEC(Split) splits;
    VEC(ConstMemo) consts;
    VEC(const Map *) walk_maps; /* of cg_walk_visit() */
} Gen;

/* Begins a new kernel. Its name is made of the names of the model, the function and op, and the
 * suffix. */
void cg_begin_kernel(Gen *g, Lower *lo, const Op *op, const char *suffix);
/* Completes the kernel: removes what nobody uses and numbers its registers. */
LKernel *cg_finish_kernel(Gen *g);
LReg *cg_reg(Gen *g, DType dt, const char *hint, Scope *s);
/* The scope in which the register is defined. */
Scope *cg_reg_scope(const Gen *g, const LReg *r);
/* Whether the scope is open: statements can still be added to it. */
bool cg_scope_open(const Gen *g, const Scope *s);
/* The innermost of the scopes that define n registers; the kernel's own list for n = 0. */
Scope *cg_innermost_scope(const Gen *g, int n, LReg *const *regs);

LReg *cg_const(Gen *g, DType dt, double v);
/* The register with the value of a size expression. */
LReg *cg_size(Gen *g, const Expr *e);
/* The register with a scalar function of n registers, computed in the outermost scope where all of
 * them are defined. */
LReg *cg_let(Gen *g, LFn fn, OpKind op, DType dt, const char *hint, int n, LReg *const *arg);
LReg *cg_index(Gen *g, LFn fn, LReg *x, LReg *y); /* I64 arithmetic and comparison */
LReg *cg_cast(Gen *g, LReg *x, DType dt);
/* The register with the element of b at these indices. */
LReg *cg_load(Gen *g, LBuf *b, LReg *const *idx, const char *hint);
LReg *cg_load_value(Gen *g, LBuf *b, LReg *const *idx, const Op *op); /* that b holds or held */
void cg_store(Gen *g, LBuf *b, LReg *const *idx, LReg *v);
/* Appends an accumulation of v into the element of b at these indices, by reduction red. */
void cg_acc(Gen *g, RedKind red, LBuf *b, LReg *const *idx, LReg *v);
LBuf *cg_local(Gen *g, DType dt, const char *hint); /* a scalar */
LBuf *cg_local_array(Gen *g, DType dt, int rank, const int64_t *n, const char *hint);

/* Opens a loop over 0 .. extent - 1; returns its variable. */
LReg *cg_open_for(Gen *g, const Expr *extent, const char *hint);
/* Opens a loop over the elements (edges) that map m sends to row `at`; returns the element's
 * number. */
LReg *cg_open_segment(Gen *g, Map *m, LReg *at, const char *hint);
/* bounds: where the chunks are cut, or NULL: in equal parts. */
LReg *cg_open_chunk(Gen *g, LReg *chunk, const Expr *n_chunks, const Expr *extent, LBuf *bounds,
                    const char *hint);
/* Opens a block that runs only where cond holds. */
void cg_open_if(Gen *g, LReg *cond);
LStmt *cg_close_scope(
    Gen *g); /* closes the innermost scope; a loop without loops in it becomes `vector` */
LStmt *cg_open_parallel(Gen *g, const Expr *extent, const char *hint, LReg **var);

LBuf *cg_arg_value(Gen *g, const Op *op,
                   const Type *as); /* the buffer of op under the dims of `as` */
LBuf *cg_arg_flat(Gen *g, const Op *op);
/* The argument for scratch buffer buf, such as the partial sums that one kernel hands to the next.
 */
LBuf *cg_arg_partial(Gen *g, int buf, int number, DType dt, int rank, const Expr *const *dim);
/* The argument with one of the index arrays of map m: its targets, segment bounds, or the
 * permutation into segment order. */
LBuf *cg_arg_map(Gen *g, Map *m, LBufKind array);
LBuf *cg_arg_map_by(Gen *g, Map *m, Map *order); /* IDX in the order of another map's segments */
LBuf *cg_arg_global_ids(Gen *g, Space *s);
/* The argument with the limits of the chunks in which rows of the space are summed; they are fixed
 * so that sums have the same bits everywhere. */
LBuf *cg_arg_chunk_bounds(Gen *g, Space *s);
/* The argument with the two key words of random stream number `stream` (of the counter-based
 * generator). */
LBuf *cg_arg_rng_key(Gen *g, int stream);

/* The environment `up` with index register r for space s added. */
const Env *cg_bind(Gen *g, const Env *up, const Space *dim, LReg *r);
/* The index register that the environment has for dimension `dim`; NULL = none. */
LReg *cg_lookup(const Env *env, const Space *dim);

/* ---- values at an index (lower_value.c) ---------------------- */
/* The register that holds op at the indices of env: a remembered one, or one that is loaded or
 * computed now. */
LReg *cg_value(Gen *g, const Op *op, const Env *env);
/* The indices at which a view's operand has the element that the view has at env. Both types list
 * the same elements in the same order: common dimensions keep their index, the others are flattened
 * and split again. */
const Env *cg_view_env(Gen *g, const Op *view, const Env *env);
/* *parts gets the spaces of the view's operand that together are its space `dim`; returns how
 * many, 0 = there are none. */
int cg_view_split(Gen *g, const Op *view, const Space *dim, Space *const **parts);
/* Emits a random number in [0, 1) from a counter-based generator: key of the stream, row and column
 * (runtime/exec/rng.h). */
LReg *cg_random(Gen *g, const Op *op, const Env *env);
LReg *cg_map_at(Gen *g, Map *m, LReg *from);              /* I64 */
void cg_set_roots(Gen *g, const Op *const *roots, int n); /* what the kernel makes */
bool cg_is_inline(const Gen *g, const Op *op); /* computed here: inline, or a root not stored yet */
/* A walk over what a row computes: is it the first time that op is met at the row (NULL), or at an
 * entry of the segments of `through`?  Of very many maps the last ones count as one. */
void cg_walk_start(Gen *g);
/* Whether the walk meets op for the first time at this place. through: op is read at entries of
 * this map's segments; NULL = at the row. */
bool cg_walk_visit(Gen *g, const Op *op, const Map *through);
void cg_record_computed(Gen *g, const Op *op); /* in LKernel.computes */
int cg_value_split(Gen *g, const Op *op, const Space *axis,
                   Space *const **parts); /* spaces that a view under op wants in its place */

/* ---- reductions (lower_reduce.c) --------------------------------------------- */
/* What a segment, reduce or contract sums: `over` spaces or the entries of a segment. */
typedef struct {
    const Op *op;
    RedKind red;
    Map *map; /* segment */
    int n_over;
    Space *over[MAX_RANK];
} Reduction;
/* Describes in *out what op reduces: over the entries of a segment, or over dimensions. False: op
 * is no reduction. */
bool cg_reduction(const Op *op, Reduction *out);
bool cg_is_long_reduction(const Op *op); /* many rows into a small result: two kernels */
LReg *cg_term(Gen *g, const Reduction *reduction, const Env *env);
/* The identity of a reduction in type dt: 0 for sums, the least or greatest value for maxima and
 * minima. */
double cg_identity(RedKind red, DType dt);
/* The type in which a reduction into dt is computed: f32 for 16-bit types. */
DType cg_sum_dtype(DType dt);
LReg *cg_reduce_inline(Gen *g, const Op *op, const Env *env);
/* Emits the search for the index of the maximum; a later equal value does not replace an earlier
 * one. */
LReg *cg_argmax_inline(Gen *g, const Op *op, const Env *env);
/* Opens the loops over what r reduces; *env then has their indices.  Returns how many loops. */
int cg_open_reduced(Gen *g, const Reduction *reduction, const Env **env);
/* An I1 register: whether r reduces nothing at env; NULL: that cannot be. */
LReg *cg_reduction_is_empty(Gen *g, const Reduction *reduction, const Env *env);

/* ---- rows of sums (lower_tile.c) ------------------------------------------------- */
/* How many reductions the roots need whose results are rows along the axes; *last gets the last
 * one. */
int cg_count_tiles(Gen *g, const Op *const *roots, int n, const Axes *axes, const Op **last);
/* Computes the tiles that the roots need at env, which binds all but the axes.  row: accumulate
 * there (the only tile is that row's value up to its last elementwise steps), or NULL. */
void cg_reduce_tiles(Gen *g, const Op *const *roots, int n, const Env *env, const Axes *axes,
                     LBuf *row);
/* The register with op at these indices, from an accumulator that holds it; NULL = none does. */
LReg *cg_from_tile(Gen *g, const Op *op, int n, LReg *const *key);
const Expr *cg_tile_count(Gen *g, const Axis *a);
/* Opens loops over the axes that t has; positions[] gets the positions in the tiles.  Returns env
 * with the indices added. */
const Env *cg_open_axes(Gen *g, const Axes *axes, const Type *t, const Env *env, LReg **positions);
/* Closes the loops over the axes that type t has. */
void cg_close_axes(Gen *g, const Axes *axes, const Type *t);
/* The innermost open loop, over an outer space: a short one is unrolled, so that local arrays fall
 * apart into registers. */
void cg_close_outer_loop(Gen *g);

/* ---- fusions: what is made by one kernel or call (plan_units.c) ------------- */
/* Whether the op is in the list. */
bool cg_has_op(const OpList *list, const Op *op);
/* Whether the map is in the list. */
bool cg_has_map(const MapList *list, const Map *m);

/* A fusion, and what follows from its roots. */
typedef struct {
    PFusion *fusion;
    PFusionKind kind;
    OpList roots;
    /* PF_ROWS */
    bool same_spaces;    /* all roots are elementwise, or sums of segments, over the same spaces */
    bool has_sum;        /* one is a sum */
    bool several_shapes; /* roots of several shapes, or several sums: lower_group.c */
    bool may_grow;       /* others may join */
    UnfusedCause unfused_cause; /* why not, .. */
    const Op *unfused_op;       /* .. for which of the roots */
    const Guard *guard;         /* where all roots are wanted; NULL = always */
    const Space *rows;          /* the first space of the roots */
    MapList maps;               /* whose segments are summed */
    int n_sums;
    int n_ops; /* that the kernel computes or reads, counted once for each root */
    OpList row_reads, other_reads; /* stored values read at the same row, and elsewhere */
} FusionGroup;

typedef struct {
    FusionGroup *v;
    int n, cap;
    int *group_of; /* by Op.id: the fusion that makes it; -1: none */
} FusionGroups;

/* The fusions of the function.  False after diagnostics: somebody has edited them, and they are
 * none of this function. */
bool cg_find_groups(Lower *lo, const PFusions *of, FusionGroups *to);
/* Whether op is made by a fusion: its result is stored, or it acts. */
bool cg_has_fusion(const Lower *lo, const Op *op);
/* The kind of fusion that makes op. */
PFusionKind cg_fusion_kind(const Lower *lo, const Op *op);
bool cg_row_size(const Type *t, int64_t *n); /* elements of a row, where the text tells */
/* What the kernel of root reads, each stored value once. */
const CgReads *cg_reads(const Lower *lo, const Op *root);
/* How the kernel of root reads the stored value `target`: at the root's own index, at other
 * indices, both or not at all. */
CgRead cg_how_read(const Lower *lo, const Op *root, const Op *target);
/* Are the two one value?  Two reads of one variable, or operand of a loop, are. */
bool cg_is_same_value(const Op *x, const Op *y);
/* A stored view of a fused value is that value, stored under its own dims. */
const Op *cg_skip_views(const Lower *lo, const Op *op);

/* ---- root kernels: append steps to the phase ---------------------------------- */
/* Lowers roots over the same dimensions to one kernel. */
void cg_lower_rows(Lower *lo, const Op *const *roots, int n);
/* Lowers roots of several shapes, or with several sums over entries (attention, batch norm), to one
 * kernel over their common rows. maps: by whose entries rows are balanced over threads. */
void cg_lower_group(Lower *lo, const Op *const *roots, int n, const MapList *maps);
/* Lowers a concatenation, with nested ones along the same dimension: to one kernel if columns are
 * joined, to several if rows are. */
void cg_lower_concat(Lower *lo, const Op *op);
/* Whether op is a concatenation whose parts are parts of `user`, which reads it. */
bool cg_concat_continues(const Op *op, const Op *outer);
/* Lowers a reduction of many rows to a small result (a loss, a bias gradient) to two kernels:
 * partial results by chunk, then their combination. */
void cg_lower_long(Lower *lo, const Op *op);
bool cg_gemm_fits(Lower *lo, const Op *op); /* from types alone */
void cg_lower_gemm(Lower *lo, const Op *op);
/* The operand that the product of a contraction reads as its matrix A (i = 0) or B (1). */
const Op *cg_gemm_operand(const Op *op, int i);
/* Sizes and strides of that product, where A and B lie in the order of the dimensions of types x
 * and y. False: it cannot read these so. */
bool cg_gemm_sizes(Arena *a, const Op *op, const Type *x, const Type *y, PGemm *to);
/* Appends a kernel that writes op to a new buffer in another layout, whose extra dimensions are
 * broadcast; returns the buffer. owner: the op that the copy is made for, which names it. */
int cg_materialize_as(Lower *lo, const Op *op, const Type *layout, const Op *owner,
                      const char *suffix);

/* ---- plan (plan_bufs.c, plan_storage.c, plan_assign.c) ---- */
static inline OpInfo *cg_info(const Lower *lo, const Op *op) {
    return &lo->info[op->id];
}
/* For a pass over the plan: names of what the plan has. */
Lower cg_lower(PassCtx *pc, Plan *p);
/* Goes to function f: decides what becomes of each of its operations.  False after diagnostics. */
bool cg_enter_func(Lower *lo, Func *f);
/* Goes to the body of a loop, whose operands are in the fusion's buffers if it has some. */
bool cg_enter_body(Lower *lo, const PFusion *loop);
/* Goes back to the function around the body of a loop. */
void cg_back_to(Lower *lo, const Lower *around);
/* An op that reads the old value which an `assign` (of a variable) or `next` (of a loop's operand)
 * replaces. */
Op cg_replaced_value(const Op *assign);
/* The op that stands for result k of a call or loop; NULL: nobody reads it. */
const Op *cg_result_of(const OpList *roots, int k);
int cg_buf(const Lower *lo, const Op *op);
/* A new buffer of the plan, with `count` elements of type dt and a name that no other has. */
PBuf *cg_new_buf(Lower *lo, PBufKind kind, const char *name, DType dt, const Expr *count);
/* A new temporary buffer of the phase. */
int cg_temp_buf(Lower *lo, const char *name, DType dt, const Expr *count);
/* The buffer of an output of the phase. */
int cg_output_buf(Lower *lo, const Op *out);
/* The buffer of a source op: data, variable, input or saved value. */
int cg_input_buf(Lower *lo, const Op *op);
bool cg_read_one_way(Lower *lo); /* every sparse column; else a diagnostic */
int cg_map_buf(Lower *lo, Map *m, LBufKind array, Map *order);
/* The buffer with the global ids of a space's rows: the row keys of random numbers. */
int cg_global_ids_buf(Lower *lo, Space *s);
/* The buffer with the bounds of the chunks in which a space's rows are summed. */
int cg_chunk_bounds_buf(Lower *lo, Space *s);
/* The buffer with the key of a random stream. */
int cg_key_buf(Lower *lo, int stream);
/* Whether a segment sum is to be made by a library's sparse product; *dense gets the dense matrix.
 * (plan_spmm.c) */
bool cg_wants_spmm(const Lower *lo, const Op *op, const Op **dense);
/* Appends a step of this kind, with room for n_bufs buffers, to the current phase. */
PStep *cg_step(Lower *lo, PStepKind kind, const Op *op, int n_bufs);
void cg_step_kernel(Gen *g, const Op *op);     /* finishes g's kernel and appends its step */
const char *cg_ident(Arena *a, const char *s); /* s as part of a C identifier */
const char *cg_value_name(Lower *lo, const Op *op);
/* `name`, or with a number behind it where that is taken; it is then. */
const char *cg_unique_name(Lower *lo, StrMap *taken, const char *name);
/* The number of elements of a value of this type. */
const Expr *cg_count(Lower *lo, const Type *t);

#endif
