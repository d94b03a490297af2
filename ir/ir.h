/* The graph IR: what is computed.
 *
 * A Module holds index spaces, columns of data, variables (parameters and
 * state) and functions.  A function is a list of operations in SSA order; an
 * operation has at most one result, so `Op *` is the value as well.
 *
 * A value is a tensor over *index spaces*: f32[paper, heads, out].  Every
 * space occurs at most once in a type, and operands are aligned by space
 * identity, never by position: an elementwise operation broadcasts each operand
 * along the spaces it lacks, `contract` sums over the spaces its result lacks.
 * So there is no broadcast, unsqueeze or einsum string, and batched, multi-head
 * and typed forms of an operation are the same operation.
 *
 * Message passing is two operations over a Map m : A -> B (an edge's source or
 * destination, a node's graph, a row's category, a stored entry's row):
 *     gather  m, x       y[a, ..] = x[m(a), ..]
 *     segment m, x       y[b, ..] = sum/max/min over { a : m(a) = b } of x[a, ..]
 * each the other's adjoint.  See docs/ir.md. */
#ifndef IR_IR_H
#define IR_IR_H

#include "base.h"
#include "contract.h"

/* ---- element types, layouts -------------------------------------------- */
const char *dtype_name(DType t);
int dtype_bytes(DType t);
const char *dtype_c_name(DType t);
bool dtype_is_float(DType t);

typedef enum { LAYOUT_DENSE, LAYOUT_CSR } Layout; /* CSR: rank 2, zeros not stored */

/* ---- symbolic sizes (ir/expr.c) ----------------------------------------- */
typedef struct Sym {
    const char *name; /* "N_paper", "E_cites", "F": unique in the module */
    int id;           /* index in Module.syms, and in the run-time size table */
    struct Space *of; /* the space whose size it is; NULL = made by sym_new alone */
} Sym;

typedef enum { EX_CONST, EX_SYM, EX_ADD, EX_MUL, EX_CEILDIV, EX_MAX, EX_MIN } ExprKind;
typedef struct Expr Expr;
struct Expr {
    ExprKind kind;
    int64_t c;
    const Sym *sym;
    const Expr *a, *b;
};
/* Constructors simplify; sums and products are kept as sorted polynomials, so
 * expr_eq decides equality of polynomials exactly. */
const Expr *expr_const(Arena *a, int64_t c);
const Expr *expr_sym(Arena *a, const Sym *s);
const Expr *expr_add(Arena *a, const Expr *x, const Expr *y);
const Expr *expr_mul(Arena *a, const Expr *x, const Expr *y);
const Expr *expr_ceildiv(Arena *a, const Expr *x, const Expr *y);
const Expr *expr_max(Arena *a, const Expr *x, const Expr *y);
const Expr *expr_min(Arena *a, const Expr *x, const Expr *y);
bool expr_eq(const Expr *x, const Expr *y);
bool expr_is_const(const Expr *x, int64_t *c); /* c may be NULL */
bool expr_counts_rows(const Expr *x);          /* does it hold the size of a node or edge space? */
int64_t expr_eval(const Expr *x, const int64_t *sym_values);
/* x with the known values (>= 0) in place of their symbols */
const Expr *expr_bind(Arena *a, const Expr *x, const int64_t *sym_values);
void expr_print(StrBuf *b, const Expr *x); /* "8*out + 1"; names as in the IR text */
/* "((8 * n[3]) + 1)"; calls rt_ceildiv, rt_max64, rt_min64 (int64_t, int64_t) where needed */
void expr_print_c(StrBuf *b, const Expr *x, const char *sym_array);

/* ---- index spaces -------------------------------------------------------- */
typedef struct Space Space;
typedef struct Column Column;

struct Space {
    SpaceKind kind;
    int id;           /* index in Module.spaces */
    const char *name; /* unique in the module; as the text form spells it */
    const Expr *size; /* own Sym for all but SP_DIM */
    Span span;
    /* SP_EDGE */
    RelKind rel;
    Space *src, *dst;
    Space *base[2];
    const char *cond; /* REL_WHERE: name of the `output` in @load that computes i1[base] */
    /* SP_NZ */
    Column *nz_of;
    Space *graph; /* SP_NODE: the graph space its rows belong to, or NULL */
    /* SP_NODE and REL_BASE of the data: its rows may be read whatever the time of a seed */
    bool timeless;
    /* SP_NODE, SP_EDGE that space_is_sampled: the first rows of `prefix_of` in a sampled batch,
     * where nodes come by hop: all that must be known of it when `hops` layers follow.  NULL = all
     * rows.
     */
    Space *prefix_of;
    int hops;
    /* SP_NODE of a sampled batch: the rows of the data that the nodes of this type, or of this
     * first part of one, are, each once, in the order in which they first come.  NULL = it is none.
     */
    Space *distinct_of;
};

/* ---- maps between spaces -------------------------------------------------- */
/* Interned: two equal maps are one pointer (map_get). */
typedef struct Map {
    MapKind kind;
    Space *from, *to;
    Column *col; /* MAP_COL */
    int which;   /* MAP_ORIG: 0 or 1 */
    int id;      /* index in Module.maps */
    /* MAP_PAIR: pair[0](x) * size of pair[1]'s target + pair[1](x).  The one that is a column of
     * the base relation is read through that MAP_ORIG of `from`; NULL: none is.  MAP_VIA: pair[0]
     * of where the MAP_FIRST `via` leads. */
    struct Map *pair[2], *via;
} Map;
bool rel_is_drawn(RelKind k);      /* of a step over links */
bool map_is_sorted(const Map *m);  /* from's order groups equal targets: DST, GRAPH, ROW */
bool map_is_partial(const Map *m); /* may be -1: COL, ORIG, PAIR of such */
/* Is its index array made of the values of a column: of categories, or the stored entries of a csr
 * one?  col NULL: of any. */
bool map_is_of_column(const Map *m, const Column *col);

/* ---- types ----------------------------------------------------------------- */
enum { MAX_RANK = 8 };
typedef struct {
    DType dt;
    Layout layout;
    int rank;
    Space *dim[MAX_RANK]; /* row-major: the last one is contiguous */
} Type;
Type type_scalar(DType dt);
Type type_make(DType dt, int rank, Space *const *dims);
bool type_same_spaces(const Type *x, const Type *y); /* in the same order */
bool type_eq(const Type *x, const Type *y);          /* element type and layout, too */
int type_find(const Type *t, const Space *s);        /* position or -1 */
bool type_has(const Type *t, const Space *s);
const Expr *type_count(Arena *a, const Type *t); /* number of elements, dense */
void type_print(StrBuf *b, const Type *t);

/* ---- data columns, variables ------------------------------------------------ */
/* What contract.def says of a kind of columns. */
typedef struct {
    const char *said, *size;
    DType dt;
    int n_dims;
    bool codes;
    const char *rule;
} ColumnFacts;
extern const ColumnFacts column_facts[]; /* by ColKind */

struct Column {
    ColKind kind;
    Space *space; /* node, edge or graph; of a derived relation the rows are those of its base */
    const char *name;
    Type type;  /* as `data` gives it */
    Space *cat; /* codes: the dimension whose size is the number of categories */
    Space *nz;  /* COL_CSR: its space of stored entries */
    int id;
    Span span;
};

/* fan_in, fan_out are products of sizes; contract.def says what a and b are. */
typedef struct {
    InitKind kind;
    double a, b;
    const Expr *fan_in, *fan_out;
} Init;

typedef struct Var {
    VarKind kind;
    const char *path; /* checkpoint name: "conv1.lin.weight" */
    Type type;
    Init init;
    int save_rank; /* shape in the checkpoint (PyG's); 0 = as `type` */
    const Expr *save_shape[MAX_RANK];
    const char *group; /* parameter group, NULL = default */
    VarRole role;
    struct Var *of; /* VAR_SLOT: the parameter whose state it is; NULL = of none alone */
    int transposed; /* `type` is as stored: its first `transposed` spaces are the last ones as
                       written */
    int id;
    Span span;
} Var;
/* As written in the model: the order of files, initial values and the C API. */
Type var_written_type(const Var *v);

/* A function of the user's, written in C (runtime/include/gnnc_extern.h is its interface). */
typedef struct Extern {
    const char *name; /* C symbol */
    const char *file; /* .c, .o, .a or .so, as found from where gnnc runs; "" = linked otherwise */
    const char *grad; /* C symbol of its gradient; NULL = no gradient flows through */
    bool effect;      /* does more than compute its result: kept, and in order */
    bool device;      /* takes a stream; on a device, pointers are the device's */
    int id;
    Span span;
} Extern;

/* ---- operations -------------------------------------------------------------- */
typedef enum {
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl) OP_##id,
#include "ops.def"
#undef OP
    N_OPS
} OpKind;

typedef enum {
    OPT_PURE = 1 << 0,   /* no effect: may be removed, duplicated, moved */
    OPT_ELEM = 1 << 1,   /* elementwise over the result's spaces */
    OPT_COMM = 1 << 2,   /* operands 0 and 1 commute */
    OPT_SOURCE = 1 << 3, /* reads data, variables, inputs: no operands */
    OPT_EFFECT = 1 << 4, /* must stay, in order */
    OPT_REDUCE = 1 << 5, /* combines many elements into one */
    OPT_ZERO = 1 << 6,   /* elementwise with f(0, ..) = 0 in operand 0: keeps CSR */
    OPT_VIEW = 1 << 7,   /* same bytes under other spaces */
    OPT_CMP = 1 << 8,    /* result is i1 */
    OPT_NOCSE = 1 << 9,  /* two equal ones differ (random streams) */
    OPT_INDEX = 1 << 10, /* reads its operand at another index: gather */
    OPT_RANGE = 1 << 12, /* results of a wide range: not kept in 16 bits */
    OPT_LIB = 1 << 11,   /* a library call or a user's, never part of a kernel (rank, call) */
} OpTraits;

/* Which attributes an operation has (ops.def), in the order in
 * which the text form writes them.  OPA_TYPE: the builder states the result type
 * (for CAST only its dt) and `infer` checks it; else `infer` sets it. */
enum {
    OPA_RED = 1 << 0,
    OPA_MAP = 1 << 1,
    OPA_OVER = 1 << 2,  /* any number of spaces, at least one */
    OPA_OVER1 = 1 << 3, /* exactly one, two, three */
    OPA_OVER2 = 1 << 4,
    OPA_OVER3 = 1 << 5,
    OPA_COL = 1 << 6,
    OPA_VAR = 1 << 7,
    OPA_NAME = 1 << 8,
    OPA_IMM = 1 << 9,
    OPA_STREAM = 1 << 10,
    OPA_OFF = 1 << 11,
    OPA_TYPE = 1 << 12,
    OPA_EXT = 1 << 13,
    OPA_WHEN = 1 << 14, /* `when`: operand 0 is an i1, and the effect happens where it holds */
    OPA_BODY = 1 << 15,
    OPA_LIMIT = 1 << 16, /* imm: `limit 20`; 0 = none */
    OPA_DTYPE = 1 << 17, /* an element type that values may be stored in: f32, bf16, f16 */
};

typedef enum { RED_SUM, RED_MAX, RED_MIN } RedKind;

/* What is asked of fusion for a value: by the model (`store x`, `fuse x`), or by a pass (ASK_APART:
 * computed by a kernel of its own, which no other value joins). */
typedef enum { ASK_NOTHING, ASK_STORE, ASK_FUSE, ASK_APART, N_ASKS } OpAsk;

/* What an output is for. */
typedef struct {
    OutputRole role;
    SplitKind split; /* loss, metric: of its rows; SPLIT_NONE = of the step's */
    const char *of;  /* what it is called among its kind: "accuracy" of "accuracy.val"; NULL = as
                      * the output itself */
    Var *var;        /* grad: the parameter */
    int hops;        /* of a program that serves rows: how far what they are made of lies */
} OutputUse;

typedef struct Op Op;
typedef struct Func Func;
struct Op {
    OpKind kind;
    Type type; /* result; dt = DT_VOID when there is none */
    int n_in;
    Op **in;
    /* attributes; which ones an op has stands in ops.def */
    Map *map;
    RedKind red;
    int n_over;
    Space *over[MAX_RANK]; /* reduce, rank */
    Column *col;
    Var *var;
    OutputUse use;    /* output */
    const char *name; /* input, saved, output, print: text */
    double imm;       /* const (i1, i32 too); result, arg, next: which; loop: its limit */
    const Extern *ext;
    Func *body;      /* loop */
    const Expr *off; /* slice offset */
    int stream;      /* random: given by the front end, kept by every pass */
    DType dtype;     /* OPA_DTYPE */
    bool when;       /* OPA_WHEN */
    bool untyped;    /* text left its type, or an operand's, to the pass shape-propagation */
    bool again;      /* computed again: in no kernel that stands before it */
    bool fused;      /* set by fusion: computed inside its users' kernels, never stored */
    OpAsk ask;       /* the model's word on that */
    /* The element type that its layer says (`conv @bf16`), or the optimizer; DT_VOID: none does.
     * It is said of all that they compute: what replaces an operation takes it over (b_for). */
    DType want;
    bool update;      /* it is the optimizer that says so */
    Span span;        /* the model line it comes from */
    const char *hint; /* name for printing, "z"; may be NULL */
    const char *why;  /* its element type is what it is: for --report=precision, or NULL */
    Func *func;
    Op *prev, *next;
    int id;            /* number within the function, see func_number() */
    struct Use *users; /* who reads it, while func_keep_users(); of a reader that is gone, too */
    void *tag;         /* scratch for the running pass; NULL between passes */
};

/* A reader of an operation, once for each of its operands that is it. */
typedef struct Use {
    Op *user;
    struct Use *next;
} Use;

struct Func {
    const char *name; /* a phase's own, "load", or of any other kind */
    Phase phase;
    bool body; /* what a `loop` repeats: reads `arg`s, gives `next`s */
    Op *first, *last;
    int n_ops;
    Arena *users; /* Op.users are kept, in it; NULL: they are not */
    int n_bodies; /* that were made for it: the next one's name */
    void *tag;    /* scratch for the running pass; NULL between passes */
    Span span;
};

/* What the recipe says, for the runtime and the optimizer pass (see docs/language.md). */
typedef struct {
    const char *name; /* NULL = default group; else what Var.group says */
    double lr_scale;  /* group lr = lr * lr_scale */
    double weight_decay;
} ParamGroup;
typedef struct {
    Space *rel;      /* a relation of the data, or one that leads where they do not */
    int64_t *fanout; /* [n_hops], the seeds' in-edges first; -1 = all */
} SampleRel;
typedef struct {
#define SAMPLING(kind, name, word, first, of) CONTRACT_##kind name;
#define SAMPLING_ENUM(type, rt_type, name, word, first, of) type name;
#include "runtime/contract.def"
    int n_hops;          /* 0: batches of whole graphs or clusters */
    VEC(SampleRel) rels; /* of every relation that space_is_sampled */
    VEC(Column *) weights, times;
    VEC(Column *)
    request_columns; /* of drawn links, whose values come with who asks for their scores */
    Span span;
} Sampling;

typedef struct {
#define RECIPE(kind, name, word) CONTRACT_##kind name;
#define RECIPE_ENUM(type, rt_type, name, word) type name;
#include "runtime/contract.def"
    VEC(ParamGroup) groups;
    bool present;   /* a train block was written */
    Span optimizer; /* what it says of that */
    Sampling sample;
} Recipe;

/* What became of something that would interrupt a step: for --report=breaks.  The function may be
 * one that a pass has taken away. */
typedef struct {
    const char *func;
    Span span;
    bool stops; /* a compiler that traces the program would stop here */
    const char *text;
} Note;

enum {
    NAMES_SYM,
    NAMES_SPACE,
    NAMES_MAP,
    NAMES_COL,
    NAMES_VAR,
    NAMES_DERIVED,
    NAMES_FUNC,
    N_NAMES
};

/* A number of the model that is said when the program runs. */
typedef struct ModelOption {
    const char *name;          /* "hidden", as the model calls it */
    Space *dim;                /* whose size it is; NULL: it is a real number, which functions read
                                * as the input `input` */
    const char *input;         /* name of that input */
    double first, least, most; /* the value where none is given, and the bounds of what may be */
    const char *why_least;     /* the assertion that a smaller value breaks; NULL: none */
    const char *why_most;      /* .. a larger one */
    Span span;
} ModelOption;

typedef struct Module {
    Ctx *ctx;
    Arena *a;
    const char *name; /* file stem */
    const char *source_path;
    VEC(Sym *) syms;
    VEC(Space *) spaces;
    VEC(Map *) maps;
    VEC(Column *) cols;
    VEC(Var *) vars;
    VEC(Extern *) externs;
    VEC(ModelOption) options;
    VEC(Func *) funcs;
    Recipe recipe;
    VEC(Note) notes;
    StrMap noted;
    bool effects_counted; /* before any pass: */
    int n_effects;        /* print, assert and C functions with an effect */
    int n_streams;
    uint32_t text_file; /* module_parse: its own source; UINT32_MAX when built */
    uint32_t main_file; /* of the model, in Ctx.sources */
    bool sourced;       /* module_parse: all positions are in the files that the text lists */
    const char
        *pending; /* passes of its pipeline that have not run, "remat,round-weights"; NULL: all */
    StrMap by_name[N_NAMES]; /* kept by module.c */
    unsigned has;            /* IR_* facts, kept by the pass driver */
} Module;

/* Facts about a module that passes need or give. */
enum {
    IR_TYPED = 1 << 0,  /* verifier holds */
    IR_GRAD = 1 << 1,   /* gradients are explicit */
    IR_OPTIM = 1 << 2,  /* parameter updates are explicit */
    IR_NO_CSR = 1 << 3, /* CSR values rewritten over their SP_NZ spaces */
    IR_FUSED = 1 << 4,  /* Op.fused is decided */
};

/* ---- module construction (ir/module.c) ----------------------------------------- */
Module *module_new(Ctx *c, const char *name);
/* The option of that name, NULL: there is none; one that there is not yet.  `dim`: it is a size. */
ModelOption *module_option(const Module *m, const char *name);
ModelOption *module_option_new(Module *m, const char *name, Space *dim, double first, Span at);
/* Why no option of a model can be called so; NULL: one can. */
const char *module_option_name_fault(const char *name);
/* Whether the default is in the option's range, a real number as phases read it: rounded to f32;
 * and all three are sizes or f32's. */
bool module_option_fits(const ModelOption *o);
/* The option that an operation reads; NULL: it reads none. */
ModelOption *module_option_of(const Module *m, const Op *op);
Sym *sym_new(Module *m, const char *name); /* name made unique with ".1", ".2" */
Space *space_dim(Module *m, const char *name, const Expr *size, Span at); /* size NULL = own Sym */
Space *space_node(Module *m, const char *name, Span at);
Space *space_graph(Module *m, const char *name, Span at);
Space *space_edge(Module *m, const char *name, Space *src, Space *dst, Span at);
Space *space_derived(Module *m, RelKind k, Space *a, Space *b, const char *cond,
                     Span at); /* interned */
/* The rows of `prefix_of` that a sampled step needs when `hops` layers follow; itself where that is
 * all. Edges lead from nodes of one hop more.  NULL: a relation whose edges are no prefix. */
Space *space_prefix(Module *m, Space *whole, int hops, Span at); /* interned */
/* The seeds: the first rows of a node type, before the recipe says how many hops follow.  Interned
 * with the prefixes. */
Space *space_seeds(Module *m, Space *node, Span at);
/* The rows of the data that these nodes of a sampled batch are, each once. */
Space *space_distinct(Module *m, Space *node, Span at); /* interned */
/* REL_LINKS or REL_POSITIVES of a step that sees a part of the graph: they join its seeds. */
Space *space_links(Module *m, RelKind k, Space *base, Space *src, Space *dst, Span at);
bool space_joins_seeds(const Space *s); /* is it one of these? */
bool space_of_batch(const Space *s);    /* a prefix, drawn, or derived from one */
bool space_is_drawn(const Space *s);    /* of a step over links */
/* The column that m learns, or the split of its rows; NULL: there is none. */
const Column *module_target(const Module *m, bool split);
/* Does this phase of m see a batch, and not the whole graph? */
bool module_runs_on_batches(const Module *m, Phase phase);
/* Does it run before others that read its outputs as `saved`? */
bool phase_saves(Phase phase);
/* The output that `saved "name"` reads; NULL: there is none. */
const Op *module_saved(const Module *m, const char *name);
/* Along which a sampled step of m draws neighbours: the data's relations, and those that lead where
 * their edges do not go. */
bool space_is_sampled(const Module *m, const Space *s);
/* Data whose rows are read whatever time they have, though nothing calls them timeless. */
bool space_is_untimed(const Module *m, const Space *s);
/* By Space.id: do functions read its rows, or those of what is derived from it? */
const bool *module_reads(const Module *m);
/* By Space.id: do functions that see the whole graph compute numbers of its rows, which are i32, or
 * sums over them that are integers? */
const bool *module_numbers(const Module *m);
/* Does each batch of m have as many of them as it likes?  Steps over links that draw no neighbours
 * see the whole graph, and links of their own. */
bool space_varies(const Module *m, const Space *s);
Column *column_new(Module *m, ColKind k, Space *space, const char *name, int n_dims,
                   Space *const *dims, Space *cat, Span at);
Map *map_src(Module *m, Space *edge);
Map *map_dst(Module *m, Space *edge);
Map *map_graph(Module *m, Space *node);
Map *map_col(Module *m, Column *c);
Map *map_row(Module *m, Space *nz);
Map *map_nzcol(Module *m, Space *nz);
Map *map_orig(Module *m, Space *derived, int which);
/* to: a dimension of as many entries as base queries times destinations */
Map *map_cell(Module *m, Space *answers, Space *to);
/* From its nodes, or fewer first ones; there are no more of these than of its own. */
Map *map_distinct(Module *m, Space *node, Space *once);
bool space_is_within(const Space *node, const Space *once);
Map *map_first(Module *m, Space *once);         /* to nodes of the whole type */
Map *map_via(Module *m, Map *col, Space *once); /* col, a MAP_COL of the whole type, behind that */
/* The pair's targets are one dimension, of both sizes' product: `to`, or NULL for the pair's own.
 */
bool map_pair_holds(Arena *a, const Map *m); /* its maps leave its rows, its size is theirs */
Map *map_pair(Module *m, Map *first, Map *second, Map *via, Space *to);
/* Gives the first n maps of the module that order; false: one stands twice. */
bool module_order_maps(Module *m, int n, Map *const *first);
Space *space_queries(const Space *answers); /* of a REL_ANSWERS, KNOWN or EARLIER; else NULL */
Var *var_new(Module *m, VarKind k, const char *path, Type t, Init init, Span at);
Extern *extern_new(Module *m, const char *name, const char *file, Span at); /* name must be free */
Extern *extern_find(const Module *m, const char *name);
Func *func_new(Module *m, const char *name); /* name must be free */
Func *func_new_phase(Module *m, Phase phase);
/* The body of a loop of f, before f in the module; the name is made unique. */
Func *func_new_body(Module *m, Func *f);
void space_rename(Module *m, Space *s, const char *name); /* name must be free */
void sym_rename(Module *m, Sym *s, const char *name);     /* name must be free */
void module_note(Module *m, const Func *f, Span at, bool stops, const char *text); /* once */
/* The same, of a function that is named; false: the note was there already. */
bool module_note_of(Module *m, const char *func, Span at, bool stops, const char *text);
Func *func_find(const Module *m, const char *name);
Func *func_of(const Module *m, Phase phase); /* NULL: m has none */
Space *space_find(const Module *m, const char *name);
Var *var_find(const Module *m, const char *path);
Var *var_of_role(const Module *m, VarRole role); /* NULL: m has none */
Column *column_find(const Module *m, const char *space, const char *name);

/* ---- builder (ir/build.c) --------------------------------------------------------
 * Appends at b->at (before that op) or at the end.  Result types are inferred by
 * the op's `infer`; an ill-typed call is a bug of the caller and asserts: the front
 * end checks first (op_check below) and reports. */
typedef struct {
    Module *m;
    Func *f;
    Op *at;     /* insert before; NULL = at the end */
    Span span;  /* given to new ops */
    DType want; /* .. with this, where they have none */
    bool update;
    Span site; /* call site that places of new ops get, where it is a place */
} Builder;

/* Appends to f before `at` (NULL: at the end) what stands for `like`. */
Builder b_for(Module *m, Func *f, Op *at, const Op *like);
/* From here on b's operations stand for `like`: they come from its line, and are wanted in the
 * type that is wanted of it. */
void b_like(Builder *b, const Op *like);
/* A position with the builder's call site. */
Span b_site(const Builder *b, Span at);
Op *b_const(Builder *b, DType dt, double v);
Op *b_iota(Builder *b, Space *s); /* i32[s] */
Op *b_size(Builder *b, Space *s); /* f32[], the size of s */
Op *b_data(Builder *b, Column *c);
Op *b_var(Builder *b, Var *v);
Op *b_input(Builder *b, const char *name, Type t); /* given by the runtime: "lr", "step", "pred" */
Op *b_saved(Builder *b, const char *name, Type t); /* an output of @load */
Op *b_random(Builder *b, int stream, Type t);      /* f32, uniform in [0, 1) */
Op *b_unary(Builder *b, OpKind k, Op *x);
Op *b_binary(Builder *b, OpKind k, Op *x, Op *y); /* result spaces: x's, then y's that x lacks */
Op *b_select(Builder *b, Op *cond, Op *x, Op *y); /* spaces: those of x, then y, then cond */
Op *b_cast(Builder *b, Op *x, DType dt);
Op *b_copy(Builder *b, Op *x, Type t);   /* reorder spaces, broadcast to more, CSR to dense */
Op *b_gather(Builder *b, Map *m, Op *x); /* f32[m.to, ..] -> f32[m.from, ..]; m(a) < 0 gives 0 */
Op *b_segment(Builder *b, RedKind r, Map *m,
              Op *x);            /* f32[m.from, ..] -> f32[m.to, ..]; empty gives 0 */
Op *b_valid(Builder *b, Map *m); /* i1[m.from]: m(a) >= 0 */
Op *b_index(Builder *b, Map *m); /* i32[m.from]: m(a) itself */
Op *b_reduce(Builder *b, RedKind r, Op *x, int n_over, Space *const *over); /* empty max, min: 0 */
Op *b_argmax(Builder *b, Op *x, Space *over); /* i32; ties to the lowest index */
Op *b_contract(Builder *b, Op *x, Op *y,
               Type result);           /* sums over shared spaces that result lacks */
Op *b_view(Builder *b, Op *x, Type t); /* same elements in order, other spaces */
Op *b_concat(Builder *b, Op *x, Op *y, Space *dx, Space *dy,
             Space *into); /* dim dx of x, dy of y -> into */
Op *b_slice(Builder *b, Op *x, Space *from, Space *to,
            const Expr *offset); /* to.size entries of dim from */
/* 1-based rank among mask along over; ties: 0, 0.5 or 1, the lowest, mean or highest of theirs */
Op *b_rank(Builder *b, Op *x, Op *mask, Space *over, double ties);
Op *b_detach(Builder *b, Op *x);
Op *b_store_as(Builder *b, Op *x, DType dt);
Op *b_assign(Builder *b, Var *v, Op *x);           /* after everything that reads v */
Op *b_output(Builder *b, const char *name, Op *x); /* OUT_VALUE */
Op *b_output_as(Builder *b, const char *name, OutputUse use, Op *x);
Op *b_loss(Builder *b, Op *x); /* a step's */
Op *b_print(Builder *b, const char *text, int n, Op *const *x);
Op *b_assert(Builder *b, const char *text, Op *cond);

Op *b_call(Builder *b, const Extern *f, int n, Op *const *x, Type result);
Op *b_result(Builder *b, Op *call, int which); /* of a call or loop; 0: itself */
Op *b_arg(Builder *b, int which, Type t);      /* in a loop's body: its operand */
Op *b_next(Builder *b, int which, Op *x);      /* in a loop's body: that operand the next time */
/* Starts from the operands x, the first ones of which the body's `next`s replace. */
Op *b_loop(Builder *b, Func *body, int64_t limit, int n, Op *const *x);

/* Generic form: builds any op after its operands and attributes are set in `proto`. */
Op *b_op(Builder *b, const Op *proto);

/* ---- editing (ir/build.c) --------------------------------------------------------- */
void op_remove(Op *op); /* must be unused */
void op_move_before(Op *op, Op *at);
/* Whatever reads `old` reads `with`: a walk over f, or over the readers of `old` while f keeps
 * them. */
void op_replace_uses(Func *f, Op *old, Op *with);
/* From now on each operation of f knows its readers (Op.users), which b_op, op_set_in and
 * op_replace_uses keep, in `a`; until func_drop_users(). */
void func_keep_users(Arena *a, Func *f);
void func_drop_users(Func *f);
void op_set_in(Op *op, int i, Op *x);               /* in[i] = x */
void func_number(Func *f);                          /* sets Op.id = 0, 1, .. */
int *func_use_counts(Arena *a, Func *f);            /* indexed by id; numbers first */
Op *func_output(const Func *f, const char *name);   /* the OP_OUTPUT or NULL */
Op *func_output_of(const Func *f, OutputRole role); /* the first one, or NULL */
Op *func_next(const Func *body, int which);         /* the OP_NEXT or NULL */
int func_n_carried(const Func *body);               /* how many operands of its loop change */
/* Does more than compute: an effect, or a loop around one. */
bool op_acts(const Op *op);
bool op_has(const Op *op, OpTraits t);
const char *op_mnemonic(OpKind k);
int op_cost(OpKind k); /* of an element, in additions: one estimate for all who ask */
/* One of an operation that is still untyped, too. */
bool op_has_result(const Op *op);
int op_arity(OpKind k); /* -1 = any */
unsigned op_traits(OpKind k);
unsigned op_attrs(OpKind k); /* OPA_* */

/* ---- per-op behaviour: one `const OpImpl op_<impl>` per impl name in ops.def -------- */
typedef struct OpTensor { /* interpreter value: dense, or CSR through its nz space */
    Type type;
    int64_t shape[MAX_RANK];
    int64_t count; /* elements; CSR: stored entries */
    double *v;     /* every dtype is computed in double and rounded to dt on store */
} OpTensor;
struct Interp;

typedef struct {
    /* Checks operands and attributes, sets op->type.  Returns NULL, or what is
     * wrong as a phrase for the user: "'e' and 's' ..." */
    const char *(*infer)(Module *m, Op *op);
    /* Appends to b the ops that give each operand's gradient; gin[n_in] stays NULL
     * where there is none.  g has op's type.  Sums to the operand's own spaces
     * with ad_reduce_to(). NULL: not differentiable (gradient is zero). */
    void (*vjp)(Builder *b, Op *op, Op *g, Op **gin);
    /* The plain meaning, slow and obviously right. */
    bool (*eval)(struct Interp *in, Op *op, OpTensor *out);
} OpImpl;
const OpImpl *op_impl(OpKind k);
const char *op_infer(Module *m, Op *op);

/* Sums g over the spaces that t lacks and orders the rest as t. */
Op *ad_reduce_to(Builder *b, Op *g, const Type *t);

/* ---- text and checks ----------------------------------------------------------------- */
void ir_name_print(StrBuf *b, const char *name);   /* bare where it can be, else quoted */
void ir_string_print(StrBuf *b, const char *text); /* quoted, with escapes */
void module_print(StrBuf *b, const Module *m);
/* What is read again: with the passes that are to come, and the files that positions name. */
void module_print_file(StrBuf *b, const Module *m);
/* What its kernels speak of: names, sizes, spaces and columns. */
void module_print_spaces(StrBuf *b, const Module *m);
/* What m computes, for comparing: without positions, paths, messages, the model's own name and the
 * names of its values.  Does not parse back. */
void module_print_computation(StrBuf *b, const Module *m);
void func_print(StrBuf *b, const Module *m, const Func *f);
Module *module_parse(Ctx *c, uint32_t file); /* NULL after diagnostics */
bool module_verify(Ctx *c, Module *m,
                   const char *after); /* false after DIAG_E05xx naming pass and op */

/* ---- reference interpreter (ir/interp.h has the full interface) ------------------------ */

#endif
