/* Every operation x shape, as one module with a function per case: the same table
 * is interpreted, differentiated, printed and parsed again, and compiled.
 *
 * A case's function reads parameters (and columns), computes an output "y" and,
 * when y is a float, the scalar output "loss" = sum(y * random), which makes every
 * element of y matter; pass_autodiff_func then appends "grad.*".
 *
 *     OpCases *cs = op_cases_build(ctx);
 *     op_cases_give(cs, &sink);            sizes, edges, columns, variables, inputs
 *     for (int i = 0; i < cs->cases.n; i++) run(cs->cases.v[i].f); */
#ifndef TESTS_OP_CASES_H
#define TESTS_OP_CASES_H

#include "ir/interp.h"

typedef struct {
    const char *name; /* of the function too: a C identifier */
    Func *f;
    bool has_loss;
    bool has_fd; /* the gradient is what finite differences see (not: detach, ties) */
} OpCase;

typedef struct {
    const char *name;
    Space *src, *dst, *edge;
    Column *weight, *kind; /* f32[edge]; category of a dst node, -1 = none */
    int64_t n_src, n_dst, n_edges;
    int32_t *from, *to;
} OpGraph;

typedef struct {
    Var *var;
    int domain;
} OpCaseVar;

/* Nodes that belong to graphs, one of which is empty. */
typedef struct {
    Space *node, *graph;
    int64_t n_nodes, n_graphs;
    const int32_t *of; /* [n_nodes] */
} OpPool;

typedef struct {
    Module *m;
    VEC(OpCase) cases;
    VEC(OpGraph) graphs;
    OpPool pool;
    VEC(OpCaseVar) vars;
    Space *n_cat, *feature; /* categories; width of the CSR columns */
    Column *csr;            /* csr f32[odd nodes, feature] */
    int64_t *sym;           /* sizes by Sym.id, derived relations excepted */
} OpCases;

/* Takes the data of the cases.  Values are exact in f32. */
typedef struct {
    void *user;
    void (*size)(void *user, const Space *s, int64_t n);
    void (*edges)(void *user, const Space *e, int64_t n, const int32_t *src, const int32_t *dst);
    void (*column)(void *user, const Column *c, int64_t n, const double *v);
    void (*csr)(void *user, const Column *c, const int64_t *ptr, const int32_t *col,
                const double *v);
    void (*var)(void *user, const Var *v, int64_t n, const double *x);
    void (*input)(void *user, const char *name, double x);
    void (*members)(void *user, const Space *node, const int32_t *graph);
} OpCaseSink;

OpCases *op_cases_build(Ctx *c);
/* An interpreter that has all data; @load has been run (it decides a `where`). */
Interp *op_cases_interp(Ctx *c, const OpCases *cs);
void op_cases_give(const OpCases *cs, const OpCaseSink *to);
double *op_case_values(const OpCases *cs, const OpCaseVar *v, int64_t *n); /* what `var` gets */

#endif
