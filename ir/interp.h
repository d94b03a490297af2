/* The reference interpreter of the graph IR: the oracle for every pass and target.
 * Slow and obviously right: one value at a time, plain loops over all indices,
 * every element a double that is rounded to its element type when it is stored.
 *
 *     Interp *in = interp_new(ctx, m);           after the passes have run
 *     interp_set_size(in, paper, 3);             node types, graphs, unbound dimensions
 *     interp_set_edges(in, cites, 2, src, dst);  as loaded
 *     interp_set_column(in, col, values);        edge columns in the order of the edges
 *     interp_set_var(in, var, values);
 *     interp_run(in, func_of(m, PHASE_LOAD));      outputs of @load, @encode: saved values
 *     interp_run(in, func_of(m, PHASE_TRAIN));     assigns take effect at the end
 *     const OpTensor *y = interp_output(in, "loss");
 *
 * Sizes, edges and CSR structure are given once, before the first run; values may
 * be given again between runs.  All memory is the Ctx's; values of a run last
 * until the next one.  Derived relations are built from the base edges when first
 * needed, as runtime/exec/rng.h describes (canonical order, keys). */
#ifndef IR_INTERP_H
#define IR_INTERP_H

#include "ir/ir.h"
#include "runtime/exec/rng.h"

typedef struct Interp Interp;

Interp *interp_new(Ctx *c, Module *m);
void interp_set_exact(Interp *in, bool exact); /* no rounding: for finite differences */
/* f32 is rounded up or down by chance (Monte Carlo arithmetic, Parker 1997), a function of `noise`;
 * 0: to the nearest.  How far results lie apart tells what hangs on rounding. */
void interp_set_noise(Interp *in, uint64_t noise);
void interp_set_seed(Interp *in, uint64_t seed, uint64_t step);
void interp_set_size(Interp *in, const Space *s, int64_t n);
/* Of a node type's prefix: so many rows; else all.  Edges into them come from the prefix of one hop
 * more, or reading them is an error. */
void interp_set_first(Interp *in, const Space *s, int64_t n);
void interp_set_edges(Interp *in, const Space *s, int64_t n, const int32_t *src,
                      const int32_t *dst);
/* A drawn relation's edges (REL_LINKS, ..): orig = edge of its base. */
void interp_set_drawn(Interp *in, const Space *s, int64_t n, const int32_t *src, const int32_t *dst,
                      const int32_t *orig);
/* Rows of the data that the nodes of s->once are, any numbers; without it no row is there twice. */
void interp_set_rows_of(Interp *in, const Space *s, const int32_t *row);
void interp_set_graphs(Interp *in, const Space *node, const int32_t *graph); /* [N], MAP_GRAPH */
void interp_set_column(Interp *in, const Column *c, const double *v);
void interp_set_csr(Interp *in, const Column *c, const int64_t *ptr, const int32_t *col,
                    const double *v); /* ptr [rows + 1] */
/* Flat in the order in which the variable is written; node and edge spaces in canonical order. */
void interp_set_var(Interp *in, const Var *v, const double *x);
void interp_set_input(Interp *in, const char *name, double x);
void interp_set_rows(Interp *in, const char *name, int64_t n, const double *x); /* an input, too */
void interp_set_saved(Interp *in, const char *name, int64_t n, const double *x);

/* A function of the user's: fills out[i]->v, gives 0 or a status.  Which function a call
 * runs is looked up by its C symbol; without one the run fails and says so. */
typedef int InterpFn(void *user, int n_in, const OpTensor *const *in, int n_out,
                     OpTensor *const *out);
void interp_set_extern(Interp *in, const char *symbol, InterpFn *fn, void *user);

bool interp_run(Interp *in, Func *f); /* false: interp_error() says why */
const char *interp_error(const Interp *in);
const OpTensor *interp_output(const Interp *in, const char *name); /* of the last run; or NULL */
const double *interp_var(Interp *in, const Var *v);                /* or NULL: not given */
const OpTensor *interp_value(const Interp *in, const Op *op);      /* of the last run's function */

/* ---- relations (ir/interp_graph.c) ------------------------------------------- */
typedef struct {
    int64_t n, n_keys;
    int64_t *src, *dst; /* canonical order */
    int64_t *key;       /* of random streams */
    int64_t *pos;       /* place in the listing */
    int64_t *orig[2];   /* MAP_ORIG, -1 = none */
} InterpEdges;

typedef struct {
    int64_t n;
    int64_t *row, *col;
} InterpCsr;

const InterpEdges *interp_edges(Interp *in, const Space *s); /* NULL after interp_fail */

/* ---- for OpImpl.eval -------------------------------------------------------------- */
bool interp_fail(Interp *in, const Op *op, const char *why); /* returns false; op may be NULL */
Arena *interp_scratch(Interp *in);                           /* of this run */
const OpTensor *interp_in(Interp *in, const Op *op, int i);
const OpTensor *interp_in_dense(Interp *in, const Op *op, int i); /* zeros filled in */
int64_t interp_size(Interp *in, const Space *s);
/* Elements of all its spaces; 0 after interp_fail() of a number that there is no memory for. */
int64_t interp_count(Interp *in, const Type *t);
/* A variable's values from the order in which it is stored to that in which it is written. */
void interp_as_written(Interp *in, const Var *v, const double *stored, double *written);
void interp_as_stored(Interp *in, const Var *v, const double *written, double *stored);
int64_t interp_expr(Interp *in, const Expr *e);
const int64_t *interp_map(Interp *in, const Map *m);      /* [from]; NULL after interp_fail */
const InterpCsr *interp_csr(Interp *in, const Op *op);    /* structure of a CSR value */
const double *interp_column(Interp *in, const Column *c); /* canonical order; NULL: not given */
const double *interp_input(Interp *in, const char *name, int64_t count);
const double *interp_saved(Interp *in, const char *name, int64_t count);
const double *interp_saved_first(Interp *in, const char *name, int64_t count);
RtKey interp_stream_key(const Interp *in, int stream);
bool interp_assign_later(Interp *in, const Var *v, const OpTensor *x);
bool interp_put_output(Interp *in, const char *name, const OpTensor *x);
bool interp_call(Interp *in, const Op *op, const char *symbol, int n_in,
                 const OpTensor *const *args, int n_out, OpTensor *const *out);
/* Further results of an op that has several, from 1. */
void interp_put_result(Interp *in, const Op *op, int which, const OpTensor *x);
const OpTensor *interp_result(Interp *in, const Op *op, int which); /* NULL: none */
/* Loops: an operand now (NULL: no loop runs), one for the next iteration, one iteration of a body.
 */
const OpTensor *interp_arg(Interp *in, int which);
void interp_put_next(Interp *in, int which, const OpTensor *x);
bool interp_body(Interp *in, Func *body, const OpTensor **now);
double interp_combine(RedKind r, double acc, double x);

/* All indices over the spaces of a type, row-major; `at` is the flat index. */
typedef struct {
    int n;
    const Space *s[2 * MAX_RANK];
    int64_t size[2 * MAX_RANK], i[2 * MAX_RANK];
    int64_t at, count;
} Walk;
Walk interp_walk_new(Interp *in, const Type *t);
void interp_walk_add(Interp *in, Walk *w, const Space *s); /* unless it has s */
Walk interp_walk_place(const Walk *x, const Walk *y);
static inline bool walk_live(const Walk *w) {
    return w->at < w->count;
}
void interp_walk_next(Walk *w);
int64_t interp_walk_index(const Walk *w, const Space *s); /* w's index along s */
/* The element of x at w's indices; x's spaces must be w's.  _at: along `sub` take i. */
int64_t interp_walk_offset(const Walk *w, const OpTensor *x);
int64_t interp_walk_offset_at(const Walk *w, const OpTensor *x, const Space *sub, int64_t i);
/* row and column of the random stream at w's indices */
bool interp_random_index(Interp *in, const Walk *w, uint32_t *row, uint32_t *col);

#endif
