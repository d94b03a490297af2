/* The interpreter's state: shared by interp.c (runs), interp_data.c (what is given)
 * and interp_graph.c (relations and maps). */
#ifndef IR_INTERP_IMPL_H
#define IR_INTERP_IMPL_H

#include "ir/interp.h"

typedef struct {
    const char *name;
    int64_t n;
    double *v;
} InterpNamed;
typedef VEC(InterpNamed) InterpNames;

typedef struct {
    const Var *var;
    const OpTensor *x;
} InterpAssign;

typedef struct {
    const char *name;
    const OpTensor *x;
} InterpOutput;

typedef struct {
    const Op *op;
    int which;
    const OpTensor *x;
} InterpResult;

typedef struct {
    const char *symbol;
    InterpFn *fn;
    void *user;
} InterpExtern;

typedef struct {
    const InterpEdges *edges;        /* by Space.id, SP_EDGE */
    const InterpCsr *csr;            /* by Space.id, SP_NZ */
    const int64_t *graph;            /* by Space.id, SP_NODE: graph of a row */
    bool cut;                        /* by Space.id, SP_NODE: a prefix that need not be all rows */
    const int64_t *distinct, *first; /* by Space.id, of space_distinct(): MAP_DISTINCT, MAP_FIRST */
} InterpSpace;

struct Interp {
    Ctx *ctx;
    Module *m;
    bool stale; /* variables were set from outside: what is kept of them is old */
    Arena *a;   /* what is given and built: the Ctx's */
    Arena *run; /* values of this run; a new one for each */
    bool exact;
    uint64_t noise, n_noise; /* how f32 is rounded by chance, and how often it was */
    uint64_t seed, step;
    int n_syms, n_spaces, n_cols, n_vars, n_maps; /* lengths of the tables below */
    int64_t *sym;
    InterpSpace *space;
    double **col, **var;
    int64_t **map; /* by Map.id, MAP_COL */
    InterpNames inputs, saved;
    VEC(InterpOutput) outputs;
    VEC(InterpAssign) assigns;
    VEC(InterpResult) results; /* further ones, of this run */
    VEC(InterpExtern) externs;
    Func *func;
    OpTensor *value; /* by Op.id */
    bool *done;
    const OpTensor **now;  /* operands of the loop whose body runs; NULL = none does */
    const OpTensor **then; /* operands of that loop in its next iteration */
    const char *error;
};

void interp_fit(Interp *in); /* the tables to the module, which may have grown */
void *interp_grow(Arena *a, void *old, int n_old, int n, size_t size, size_t align);
const OpTensor *interp_load_value(Interp *in, const char *name); /* of @load, when it runs */

#endif
