/* What an interpreter is given: sizes, columns, variables, inputs, saved values. */
#include <string.h>

#include "ir/interp_impl.h"

/* Grows an array and copies it. */
void *interp_grow(Arena *a, void *old, int n_old, int n, size_t size, size_t align) {
    if (n <= n_old) return old;
    void *v = arena_alloc(a, (size_t)n, size, align);
    if (n_old) memcpy(v, old, (size_t)n_old * size);
    return v;
}

#define FIT(table, n_have, n_want)                                                                 \
    (in->table = interp_grow(in->a, in->table, in->n_have, (n_want), sizeof *in->table,            \
                             _Alignof(int64_t)),                                                   \
     in->n_have = (n_want) > in->n_have ? (n_want) : in->n_have)

/* Makes room for all spaces, variables and columns. */
void interp_fit(Interp *in) {
    Module *m = in->m;
    FIT(sym, n_syms, m->syms.n);
    FIT(space, n_spaces, m->spaces.n);
    for (int i = 0; i < m->vars.n; i++) /* ids may have gaps */
        FIT(var, n_vars, m->vars.v[i]->id + 1);
    FIT(col, n_cols, m->cols.n);
    FIT(map, n_maps, m->maps.n);
}

/* A copy of n numbers. */
static double *copy_of(Interp *in, double *place, const double *v, int64_t n) {
    if (!place) place = NEWN(in->a, double, (size_t)(n ? n : 1));
    if (n) memcpy(place, v, (size_t)n * sizeof *v);
    return place;
}

/* Sets the size of a space. */
void interp_set_size(Interp *in, const Space *s, int64_t n) {
    interp_fit(in);
    if (s->size->kind == EX_SYM) in->sym[s->size->sym->id] = n;
}

/* Sets the size of a prefix. */
void interp_set_first(Interp *in, const Space *s, int64_t n) {
    interp_set_size(in, s, n);
    in->space[s->id].cut = true;
}

/* Sets an edge column, from loaded into canonical order. */
static void set_edge_column(Interp *in, const Column *c, const double *v) {
    const InterpEdges *e = interp_edges(in, c->space);
    if (!e) return;
    int64_t n = interp_count(in, &c->type), each = e->n ? n / e->n : 0;
    double *place = in->col[c->id];
    if (!place) place = NEWN(in->a, double, (size_t)(n ? n : 1));
    for (int64_t i = 0; i < e->n; i++)
        memcpy(place + i * each, v + e->pos[i] * each, (size_t)each * sizeof *v);
    in->col[c->id] = place;
}

/* Sets a column. */
void interp_set_column(Interp *in, const Column *c, const double *v) {
    interp_fit(in);
    for (int i = 0; i < in->m->maps.n; i++)
        if (in->m->maps.v[i]->col == c) in->map[i] = NULL;
    if (c->space->kind == SP_EDGE)
        set_edge_column(in, c, v);
    else
        in->col[c->id] = copy_of(in, in->col[c->id], v, interp_count(in, &c->type));
}

/* Gives the interpreter a sparse column: row r has the entries ptr[r] .. ptr[r + 1], entry k is in
 * column col[k] and has value v[k]. All are copied; the size of the column's space of entries
 * becomes ptr[rows]. */
void interp_set_csr(Interp *in, const Column *c, const int64_t *ptr, const int32_t *col,
                    const double *v) {
    interp_fit(in);
    int64_t rows = interp_size(in, c->space), n = ptr[rows];
    InterpCsr *s = NEW(in->a, InterpCsr);
    s->n = n;
    s->row = NEWN(in->a, int64_t, (size_t)n + 1);
    s->col = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = ptr[r]; k < ptr[r + 1]; k++) s->row[k] = r, s->col[k] = col[k];
    in->space[c->nz->id].csr = s;
    interp_set_size(in, c->nz, n);
    in->col[c->id] = copy_of(in, in->col[c->id], v, n);
}

/* Sets a variable. */
void interp_set_var(Interp *in, const Var *v, const double *x) {
    interp_fit(in);
    in->stale = true;
    in->var[v->id] = copy_of(in, in->var[v->id], x, interp_count(in, &v->type));
}

/* The number of elements of a variable's row, as written: what is stored may be the transpose. */
static int64_t row_elements(Interp *in, const Var *v) {
    int64_t n = 1;
    for (int i = 0; i < v->transposed; i++) n *= interp_size(in, v->type.dim[i]);
    return n;
}

/* The number of rows of a variable, as written. */
static int64_t n_rows(Interp *in, const Var *v) {
    int64_t n = 1;
    for (int i = v->transposed; i < v->type.rank; i++) n *= interp_size(in, v->type.dim[i]);
    return n;
}

/* Transposes a stored variable to the order in which it is written. */
void interp_as_written(Interp *in, const Var *v, const double *stored, double *written) {
    int64_t n = row_elements(in, v), rows = n_rows(in, v);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++) written[i * n + k] = stored[k * rows + i];
}

/* The reverse. */
void interp_as_stored(Interp *in, const Var *v, const double *written, double *stored) {
    int64_t n = row_elements(in, v), rows = n_rows(in, v);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++) stored[k * rows + i] = written[i * n + k];
}

/* Sets a value by its name. */
static void set_named(Interp *in, InterpNames *all, const char *name, int64_t n, const double *x) {
    int i = 0;
    while (i < all->n && strcmp(all->v[i].name, name)) i++;
    if (i == all->n) vec_push(in->a, all, ((InterpNamed){.name = name, .n = n}));
    InterpNamed *at = &all->v[i];
    if (at->n != n) *at = (InterpNamed){.name = name, .n = n};
    at->v = copy_of(in, at->v, x, n);
}

/* Sets an input. */
void interp_set_input(Interp *in, const char *name, double x) {
    set_named(in, &in->inputs, name, 1, &x);
}

void interp_set_rows(Interp *in, const char *name, int64_t n, const double *x) {
    set_named(in, &in->inputs, name, n, x);
}

void interp_set_saved(Interp *in, const char *name, int64_t n, const double *x) {
    set_named(in, &in->saved, name, n, x);
}

/* Finds a value by its name and length, or NULL. */
static const double *find_named(const InterpNames *all, const char *name, int64_t n) {
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->v[i].name, name) && all->v[i].n == n) return all->v[i].v;
    return NULL;
}

const double *interp_input(Interp *in, const char *name, int64_t count) {
    return find_named(&in->inputs, name, count);
}

/* A saved value's first rows, for a prefix. */
const double *interp_saved_first(Interp *in, const char *name, int64_t count) {
    for (int i = 0; i < in->saved.n; i++)
        if (!strcmp(in->saved.v[i].name, name) && in->saved.v[i].n >= count)
            return in->saved.v[i].v;
    return NULL;
}

const double *interp_saved(Interp *in, const char *name, int64_t count) {
    return find_named(&in->saved, name, count);
}

const double *interp_var(Interp *in, const Var *v) {
    return v->id < in->n_vars ? in->var[v->id] : NULL;
}

const double *interp_column(Interp *in, const Column *c) {
    return in->col[c->id];
}

RtKey interp_stream_key(const Interp *in, int stream) {
    return rt_stream_key(in->seed, in->step, (uint64_t)stream);
}
