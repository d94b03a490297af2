/* Elaboration: an interpreter of the syntax tree that runs at compile time.  What
 * is known when compiling (numbers, lists, layers, relations) is a Value and is
 * computed here; a tensor is a Value that holds the IR operation that will compute
 * it.  Checking and lowering are therefore one walk, and a layer costs nothing that
 * its caller did not ask for.
 *
 * Dimensions.  A size dimension is named by its *key*: a polynomial over atoms, one
 * atom per name that a body may use (`out`, `I`, `F`).  Equal keys are one IR space.
 * A name of a body is an atom of its own, linked to the caller's key, and a result is
 * renamed by substituting the links; where nothing could be confused by it, the name
 * simply stands for the caller's atom.  See docs/language.md, section 4.
 *
 * A mistake gives one diagnostic and VAL_POISON, which every operation passes on
 * silently. */
#ifndef FRONTEND_ELAB_H
#define FRONTEND_ELAB_H

#include "frontend/fe.h"

typedef struct Value Value;
typedef struct Elab Elab;
typedef struct Frame Frame;
typedef struct Inst Inst;

typedef enum {
    VAL_POISON, /* a mistake was reported */
    VAL_NONE,
    VAL_INT, /* key, size; a dimension too */
    VAL_FLOAT,
    VAL_BOOL,
    VAL_STRING,
    VAL_TENSOR, /* op */
    VAL_NODE,   /* space: nodes or graphs */
    VAL_EDGE,   /* space; fill */
    VAL_END,    /* map: an edge's end, a node's graph; a node handle too */
    VAL_GRAPH,  /* the model's graph */
    VAL_LAYER,  /* decl: to be instantiated */
    VAL_INST,   /* inst: to be applied */
    VAL_FN,     /* decl */
    VAL_BUILTIN,
    VAL_LIST,
    VAL_DICT,
} ValueKind;

typedef VEC(Value) Values;

typedef struct {
    VEC(const char *) id; /* canonical text of each key */
    Values key;
    VEC(Value) val;
} Dict;

/* An initialiser before its fans are known. */
typedef struct {
    InitKind kind;
    double a, b;
    const Expr *fan_in, *fan_out; /* given by the user, else NULL */
} InitSpec;

struct Value {
    ValueKind kind;
    double num;             /* FLOAT, BOOL */
    const Expr *key, *size; /* INT */
    union {
        const char *str;
        Op *op;
        Space *space;
        Map *map;
        Inst *inst;
        const Ast *decl;
        const struct Builtin *builtin;
        Values *list;
        Dict *dict;
    };
    const Value *fill; /* EDGE: what added self loops get */
    bool open;         /* EDGE: queries, whose destinations are all nodes */
    DType kept;        /* INST, FN: `@bf16`, what its body computes; DT_VOID = nothing said */
};

/* A layer's instance: what owns parameters.  `members`: a sequential.  `arg_of`: an
 * argument of type layer(in -> out) seen inside the frame that declares it. */
struct Inst {
    const Ast *decl; /* NULL: sequential, opaque, or a typed argument */
    Inst *parent;
    const char *name; /* NULL until bound */
    StrMap settings;  /* name -> Value */
    Values members;
    bool sequential, opaque, applied;
    Value inner; /* typed argument */
    const char *in_name, *out_name;
    Frame *in_frame;
    Span at;
};

typedef struct {
    const Sym *atom;
    const Expr *outer;
} Link;

struct Frame {
    Frame *up;
    const Ast *decl;
    Inst *inst;                /* NULL: a function or the model */
    StrMap vars;               /* name -> Value *; NULL = unbound */
    VEC(const char *) written; /* names set since the last branch began */
    VEC(Link) links;
    VEC(const Expr *) seen; /* the caller's keys that a name stands for here */
    StrMap states;          /* name -> VarInfo * */
    StrMap instance_names;  /* bound in this body */
    int n_anonymous;
    int nesting; /* how many frames of the same declaration are below */
    bool returned, is_model;
    bool broken; /* a statement of the body could not be parsed: say less */
    Value result;
    Span result_at, call_at;
};

typedef struct {
    const Expr *key, *size; /* SP_DIM; NULL for other spaces */
} DimInfo;

typedef struct {
    Var *var;
    const Ast *decl;
    Op *now;       /* state: its value after assignments in this phase; NULL = untouched */
    bool assigned; /* in this phase */
} VarInfo;

typedef struct {
    const char *name;
    Op *op;
} NamedOp;

/* What `links` stands for in this run of the model's body (elab_links.c). */
typedef enum { LINKS_ALL, LINKS_PAIRS, LINKS_QUERIES, LINKS_ANSWERS } LinksMode;

typedef struct {
    LinksMode mode;
    Space *base; /* the relation that is scored; NULL = the model scores none */
    Space *now;  /* .. what of it, here */
    bool open;   /* against all destinations */
    bool target; /* the recipe's */
    bool again;  /* a further run of the body in one phase: effects happened before */
    Op *penalty; /* what the body adds to the loss; NULL = nothing */
} Links;

struct Elab {
    Ctx *c;
    Arena *a;
    Module *m;
    const FeOptions *opt;
    StrMap globals; /* name -> Ast * of a declaration */
    StrMap prelude; /* the prelude's own, which a user may hide */
    uint32_t prelude_file;
    StrMap constants; /* name -> Value * */
    StrMap used;      /* "name" of layers and functions that were elaborated */
    Builder b;
    Frame *frame;
    bool training;
    bool draws; /* a step of the recipe sees drawn neighbours only */
    bool timed; /* .. and so does an evaluation: what is known depends on the time, or it says so */
    bool by_row;    /* .. of rows */
    Type pred;      /* .. of what @predict gives, all of which @eval judges */
    Space *rows;    /* .. of a batch; NULL = the recipe has mistakes */
    bool in_batch;  /* this phase sees drawn neighbours only */
    bool logs;      /* the runtime reads what this phase logs */
    bool symbolic;  /* checking a layer that nobody applies: sizes are unknown */
    bool same_ends; /* .. with relations from a node type to itself */
    Op *when;       /* what holds where the present statement runs; NULL = always */
    int pure;       /* inside a branch of an `if` on a computed value */
    int n_nested;   /* evaluations on the C stack */
    int n_calls;
    int64_t n_steps;
    int64_t n_elements; /* that were put into lists */
    Span at;            /* where the last step began */
    bool gave_up;
    bool names_missing; /* a declaration or an import could not be read */
    VEC(DimInfo) dims;  /* by space id */
    StrMap space_of_key, atoms;
    int n_atoms;
    VEC(const Expr *) atom_size;
    VEC(Inst *) model_insts; /* named by statements of the model itself */
    StrMap vars;             /* path -> VarInfo * */
    VEC(VarInfo *) all_vars;
    int stream;
    const Ast *graph_decl;
    Space *graph_space;
    Values nodes, edges;
    StrMap relation_names; /* IR name of an edge space -> declared name */
    VEC(NamedOp) bindings; /* of the model's body in this phase */
    Links links;
    bool splits; /* columns of splits are values (elab_relation_split) */
};

enum {
    MAX_CALLS = 64,
    MAX_NESTED = 1500,
    MAX_STEPS = 1000000,
    MAX_LOOP = 100000,
    MAX_ELEMENTS = 4000000, /* that lists get, all together */
};

/* ---- elab_value.c: values --------------------------------------------------- */
Value val_poison(void);
Value val_none(void);
Value val_int(Elab *e, int64_t v);
Value val_dim(const Expr *key, const Expr *size);
Value val_float(double v);
Value val_bool(bool v);
Value val_string(const char *s);
Value val_tensor(Op *op);
Value val_node(Space *s);
Value val_edge(Space *s);
Value val_end(Map *m);
Value val_list(Elab *e);
Value val_dict(Elab *e);
void elab_list_push(Elab *e, Value list, Value v);
Value *elab_dict_at(Elab *e, Value dict, Value key, bool make); /* NULL: absent */
const char *elab_key_text(Elab *e, Value key);                  /* canonical; NULL: not a key */
const char *elab_path_text(Elab *e, Value key);                 /* as checkpoint paths spell it */
const char *elab_relation_name(Elab *e, const Space *s);        /* as declared */
const char *elab_kind_text(Value v);                            /* "a list", for messages */
bool elab_is_poison(Value v);
bool elab_is_number(Value v); /* INT, FLOAT, known when compiling */
bool elab_int_known(Elab *e, Value v, int64_t *n);
bool elab_number_known(Elab *e, Value v, double *x);
bool elab_is_handle(Value v);      /* NODE, END */
Space *elab_handle_space(Value v); /* NODE, END, EDGE */
bool elab_values_equal(Elab *e, Value x, Value y, bool *known);
const char *elab_source_text(Elab *e, Span at); /* "'z[src]'" or "this value" */

/* ---- elab_names.c: what a wrong name might have meant ------------------------- */
typedef VEC(const char *) Names;
void elab_names_add(Elab *e, Names *to, const char *name);
const char *elab_names_nearest(const char *wrong, const Names *known); /* NULL: none is near */
const char *elab_names_list(Elab *e, const Names *known); /* "a, b, c", the first few */
/* "; did you mean 'x'?", else "; there are a, b, c": the end of a message */
const char *elab_names_advice(Elab *e, const char *wrong, const Names *known);

/* ---- elab_note.c: what is kept for editors, if FeOptions.notes asks for it ------------------- */
void elab_note(Elab *e, const Ast *t, Value v);
void elab_note_known(Elab *e, const char *wrong, const Names *known);

/* ---- elab_hint.c: how a message about an unknown name ends; "" where nothing is known -------- */
const char *elab_hint_of_name(Elab *e, const char *name);
const char *elab_hint_of_import(Elab *e, const char *name); /* of what a library file declares */
const char *elab_hint_of_member(Elab *e, const char *name); /* of what is no handle */

/* ---- elab_dims.c: keys, atoms, spaces ----------------------------------------- */
const Expr *elab_atom_new(Elab *e, const char *name, const Expr *size);
/* The same atom for the same name, size, declaration and nesting. */
const Expr *elab_atom_of_frame(Elab *e, Frame *f, const char *name, const Expr *size);
void elab_atom_link(Elab *e, Frame *f, const Expr *atom, const Expr *outer);
const Expr *elab_key_outside(Elab *e, const Frame *f, const Expr *key);
/* What `name` means in f for the caller's dimension: the caller's own atom while no
 * other name of f stands for it (no renaming, no view), else an atom of f. */
Value elab_dim_bound(Elab *e, Frame *f, const char *name, const Expr *key, const Expr *size);
const char *elab_key_print(Elab *e, const Expr *key);
Space *elab_space_of_dim(Elab *e, const Expr *key, const Expr *size, Span at);
/* The dimension of this name that the graph declares: its size comes with the data. */
Space *elab_space_of_data(Elab *e, const char *name, Span at);
Space *elab_space_of_option(Elab *e, const char *name, Span at); /* .. an option of the program */
Value elab_dim_of_data(Elab *e, const char *name);               /* none: no such */
const Expr *elab_key_of_space(Elab *e, const Space *s);          /* NULL: not a size */
const char *elab_space_text(Elab *e, const Space *s);
const char *elab_type_text(Elab *e, const Type *t);
/* v with the names of f's caller. */
Value elab_value_outside(Elab *e, Frame *f, Value v, Span at);
/* Same elements under other spaces, in the same order. */
Op *elab_op_respace(Elab *e, Op *x, Space *const *to);

/* ---- elab_tensor.c: tensor operations, checked ---------------------------------- */
Op *elab_to_tensor(Elab *e, Value v, DType like, Span at); /* NULL after a diagnostic */
Op *elab_to_dense(Elab *e, Op *x);
Value elab_tensor_unary(Elab *e, OpKind k, Op *x, Span at);
Value elab_tensor_store_as(Elab *e, Op *x, DType dt, Span at);
Value elab_tensor_binary(Elab *e, OpKind k, Value x, Value y, Span xa, Span ya, Span at);
Value elab_tensor_select(Elab *e, Op *c, Value x, Value y, Span at);
Value elab_tensor_contract(Elab *e, Op *x, Op *y, int n, Space *const *over, Span at);
Value elab_tensor_cast(Elab *e, Op *x, DType dt, Span at);
Value elab_tensor_gather(Elab *e, Op *x, Map *m, Span at);
Value elab_tensor_order(Elab *e, Op *x, int n, Space *const *dims, Span at);
/* The dimension of x that v names. NULL after a diagnostic. */
Space *elab_dim_in(Elab *e, Op *x, Value v, Span at);
bool elab_dim_find(Elab *e, const Op *x, Value v, Space **s);
Space *elab_dim_space(Elab *e, Value v, Span at); /* of any handle or size */

/* ---- elab_reduce.c ----------------------------------------------------------------- */
/* over_at: where each of `over` stands, for messages; NULL = at. */
Value elab_reduce_call(Elab *e, const char *name, Op *x, int n, const Value *over,
                       const Span *over_at, Span at);
Map *elab_segment_map(Elab *e, const Op *x, Value over); /* NULL: not along a map */

/* ---- elab_relation.c ------------------------------------------------------------------ */
Value elab_relation_where(Elab *e, Value rel, Value cond, Span at);
Value elab_relation_carry(Elab *e, Op *x, Value rel, const Value *fill, Span at);
Value elab_relation_member(Elab *e, Value rel, const char *name, Span at);
/* x, over rel and of data alone, as the output `name` of @load. */
bool elab_relation_load_output(Elab *e, Op *x, const char *name, Span at);
Op *elab_relation_split(Elab *e, Value rel, Span at); /* i32[rel]; NULL: it has no such column */
Value elab_relation_derive(Elab *e, RelKind k, Value a, const Value *b, Span at);

/* ---- elab_builtin.c --------------------------------------------------------------------- */
typedef struct Args {
    int n; /* positional */
    Value *v;
    Span *at;
    int n_named;
    const char **name;
    Value *named;
    Span *named_at;
    Span span; /* of the call */
    Span name_span;
} Args;
typedef struct Builtin {
    const char *name;
    int min, max;      /* positional arguments; max -1 = any number */
    const char *named; /* "fill,over"; NULL = none */
    Value (*call)(Elab *e, const struct Builtin *b, const Args *args);
    int op; /* for tables of alike functions */
} Builtin;
const Builtin *elab_builtin_find(const char *name);
void elab_builtin_names(Elab *e, Names *to);
const Value *elab_arg_named(const Args *args, const char *name);
Value elab_builtin_call(Elab *e, const Builtin *b, const Args *args);
Value elab_log_call(Elab *e, const Args *args);                 /* log("name", x) */
extern const Builtin elab_builtin_shape[], elab_builtin_misc[]; /* further tables */

/* ---- elab_expr.c ----------------------------------------------------------------------------- */
Value elab_eval(Elab *e, const Ast *t);

/* ---- x @bf16 (elab_stored_as.c) ---------------------------------------------------------------
 */
DType elab_stored_as_word(const Ast *t); /* of `x @bf16` the type; DT_VOID: it is something else */
Value elab_eval_stored_as(Elab *e, const Ast *t);
/* x, kept as dt in memory: a value, or what a layer or function computes.  of: x; at: all of it */
Value elab_stored_as(Elab *e, Value x, DType dt, Span of, Span at);
/* Warns where one value of the module was said to be kept in two types. */
void elab_check_stored_as(Elab *e);
Value elab_lookup(Elab *e, const char *name, Span at);
/* What a dimension may be called: the body's names, the model's data, constants. */
bool elab_name_find(Elab *e, const char *name, Value *v);
const Values *elab_list_of(Elab *e, Value v, Span at);    /* NULL after a diagnostic */
void elab_comprehend(Elab *e, const char *name, Value v); /* binds without naming instances */
Value elab_node_member(Elab *e, Space *s, const char *name, Span at);
Value elab_binary(Elab *e, Operator o, Value x, Value y, Span xa, Span ya, Span at);

/* ---- elab_stmt.c -------- */
void elab_exec_block(Elab *e, const Ast *block);
void elab_bind(Elab *e, const char *name, Value v);
StrMap elab_copy_map(Elab *e, const StrMap *m);
void elab_bind_noted(Elab *e, const char *name, Value v); /* .. as a statement: names the value */
void elab_name_instances(Elab *e, Value v, Inst *parent, const char *name, Span at);
const char *elab_inst_path(Elab *e, const Inst *inst);
Frame *elab_frame_push(Elab *e, Frame *f, const Ast *decl, Inst *inst, Span at);
bool elab_enter(Elab *e, Span at); /* false: too deep or too long, reported */
void elab_leave(Elab *e);

/* ---- elab_while.c */
void elab_exec_while(Elab *e, const Ast *t);

/* ---- elab_param.c -------- */
void elab_exec_var(Elab *e, const Ast *t);
VarInfo *elab_state_of(Elab *e, const Ast *target); /* the state that a name denotes, or NULL */
void elab_assign_state(Elab *e, const char *name, VarInfo *v, Value x, Span at);
void elab_flush_states(Elab *e);

/* ---- elab_call.c -------- */
Value elab_eval_call(Elab *e, const Ast *t);
Value elab_call_value(Elab *e, Value f, const Args *args);
/* Binds the formals' names to args in the frame of the callee.  false after diagnostics. */
/* Told: another formal before the i-th has its name. */
bool elab_formal_is_repeated(Elab *e, const Ast *formals, int i);
bool elab_bind_formals(Elab *e, Frame *f, const Ast *formals, const char *what, const Args *args,
                       const StrMap *settings);
Value elab_frame_run(Elab *e, Frame *f, const Ast *body, const Ast *result_type, const char *what);

/* ---- elab_extern.c: functions in C */
Value elab_call_extern(Elab *e, const Ast *decl, const Args *args);
void elab_check_extern(Elab *e, const Ast *decl);

/* ---- elab_type.c -------- */
bool elab_type_is_tensor(const Ast *t);
DType elab_type_dtype(const Ast *t);
/* The type's spaces, all names known. */
bool elab_type_spaces(Elab *e, const Ast *t, Type *out);
/* Fits v to a formal's type in frame f, binding new names; v as the body sees it. */
bool elab_fit_formal(Elab *e, Frame *f, const Ast *formal, Value *v, Span at);
bool elab_fit_result(Elab *e, const Ast *t, Value *v, Span at, const char *what);

/* ---- elab_graph.c, elab_train.c, elab_check.c -------- */
void elab_graph(Elab *e, const Ast *decl);
Column *elab_graph_column(Elab *e, const Space *s, const char *name);
Names elab_column_names(Elab *e, const Space *s);
void elab_phases(Elab *e, const Ast *model, const Ast *train);
/* elab_option.c: parameters of the model that are said when the program runs */
bool elab_is_settable(const Elab *e, const Ast *formal);
/* v, of that parameter, as the model's body has it: a size, or what functions read. */
bool elab_option_value(Elab *e, const Ast *formal, Value *v);
/* Is it computed of options of the model alone, so that it stands for a float? */
bool elab_of_options(const Elab *e, const Op *op);
/* An assertion about an option is its range, which is checked when it is set.  False: it is about
 * something else. */
bool elab_option_range(Elab *e, const Op *holds, const char *why);
void elab_check_settable(Elab *e, const Ast *model); /* names of --settable */
void elab_refuse_settable(Elab *e, const Ast *file); /* layers and functions have no options */
Op *elab_run_model(Elab *e, const Ast *model); /* in a frame of its own; NULL after a mistake */
void elab_output_of_phase(Elab *e, const char *name, OutputUse use, Op *x);
void elab_model(Elab *e, const Ast *model, const Ast *train);
const Ast *elab_train_of(const Ast *file, const Ast *model); /* its recipe; NULL: it has none */
/* A loss or metric of a recipe: a function with its weight and extra arguments. */
typedef struct {
    const Ast *at;
    const Ast *fn;
    bool is_loss;
    double weight;
    Op *weight_op; /* in its place: of options of the model; NULL = a number */
    Args args;     /* the named ones */
} Term;
typedef VEC(Term) Terms;
bool elab_recipe_terms(Elab *e, const Ast *train, AstKind kind, Terms *out);
/* What the i-th metric is called in logs and by `keep`: hits_1 and hits_10 where a function stands
 * several times. */
const char *elab_metric_name(Elab *e, const Terms *metrics, int i);
Op *elab_term_weigh(Elab *e, const Term *t, Op *x); /* x times the weight of its term */
void elab_recipe(Elab *e, const Ast *train, Recipe *r);
/* elab_term.c: the functions that may be one, in the order in which they are declared; of losses
 * those that `minimize`.  target: those that take one of this element type; DT_VOID = all. */
Names elab_term_names(Elab *e, bool loss, DType target);
bool elab_term_exists(Elab *e, const char *name, Span at, bool is_loss);      /* else told */
bool elab_term_takes(Elab *e, const Term *t, const Column *target, DType dt); /* else told */
bool elab_term_takes_links(Elab *e, const Term *t);                           /* else told */
void elab_term_warns_of_probabilities(Elab *e, const Term *t, const Op *pred);
/* What the recipe's losses, all of them, take the model's result to be. */
OutcomeKind elab_term_outcome(Elab *e, const Terms *losses);
bool elab_term_scores_classes(Elab *e, const Term *t, const Column *target,
                              const Op *pred); /* else told */
/* elab_sample.c: its `sample` block; what the whole program must not have then */
void elab_sample(Elab *e, const Ast *block, Recipe *r);
void elab_check_sampled(Elab *e, const Ast *train);
/* elab_time.c: tables with a time are read by it, or said to be timeless; else told */
void elab_check_times(Elab *e);
/* elab_sampled_relations.c: the relations that neighbours are drawn along.  NULL: not along this
 * one */
SampleRel *elab_sample_rel(Elab *e, Sampling *s, Space *rel);
void elab_sampled_relations(Elab *e);
bool elab_draws(const Ast *train);
bool elab_evaluates_drawn(const Ast *train); /* does its block draw neighbours, for that, too? */
/* elab_links.c: models that score links */
extern const Builtin elab_builtin_links[];
void elab_links_begin(Elab *e, LinksMode mode);
LinksMode elab_links_mode_of(Elab *e, const Ast *train, bool training);
/* The dimensions of what such a model gives. */
int elab_links_dims(const Elab *e, Space **dims);
Space *elab_links_space(Elab *e, RelKind k, Space *of, Span at);
/* elab_link_terms.c: their losses and metrics */
typedef struct LinkTask {
    Elab *e;
    const Ast *model, *item; /* item: the recipe's target */
    Op *pred;
    const Recipe *recipe; /* NULL in @eval */
    Op *pos, *neg, *rank, *place;
    Space *cells; /* of all scores, flat */
} LinkTask;
Op *elab_links_loss(LinkTask *t, const Terms *losses);
void elab_links_metrics(LinkTask *t, const Terms *metrics);
Type elab_links_of_all(LinkTask *t); /* a score of each query and node */
bool elab_define_value(Elab *e, const FeDefine *d, const char *type, Value *v);
const FeDefine *elab_define_find(const Elab *e, const char *name);
void elab_check_unused(Elab *e, const Ast *file);
/* Warns of layers of the model that its result and loss do not depend on. */
void elab_check_unreached(Elab *e);
void elab_check_other_models(Elab *e, const Ast *file, const Ast *chosen);

#endif
