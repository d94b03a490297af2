/* Which columns only training and judging read: labels, splits, and what else no prediction needs.
 * A data set may lack these and be predicted on.
 *
 * A column is read by a function of the module, or by @load for what such a function reads of it:
 * readers flow backwards from the values that @load saves. */
#include <string.h>

#include "codegen/host/host.h"

/* What reads a column: losses and metrics, or anything else. */
enum { READ_BY_LOSS = 1, READ_BY_OTHERS = 2 };

/* Which kinds of functions read each column. */
typedef struct {
    Arena *a;
    const Module *m;
    StrMap saved;      /* READ_BY_ bits by the name of what @load saves */
    unsigned *columns; /* READ_BY_ bits by Column.id */
} Readers;

/* READ_BY_ bits of the functions that read the value which @load saves under this name. */
static unsigned saved_readers(const Readers *r, const char *name) {
    return (unsigned)(uintptr_t)strmap_get(&r->saved, name);
}

/* Adds READ_BY_ bits to column c, if there is one. */
static void add_readers(Readers *r, const Column *c, unsigned readers) {
    if (c) r->columns[c->id] |= readers;
}

/* Adds READ_BY_ bits to the columns that op reads: its own, that of its map, and those whose stored
 * entries its dimensions count. An op with a body counts with it, and a value saved by @load passes
 * the bits on. */
static void add_op_readers(Readers *r, const Op *op, unsigned readers) {
    add_readers(r, op->col, readers);
    if (op->map) {
        add_readers(r, op->map->col, readers);
        add_readers(r, op->map->from->nz_of, readers);
    }
    for (int i = 0; i < op->type.rank; i++) add_readers(r, op->type.dim[i]->nz_of, readers);
    if (op->kind == OP_SAVED)
        strmap_put(r->a, &r->saved, op->name,
                   (void *)(uintptr_t)(saved_readers(r, op->name) | readers));
    for (const Op *b = op->body ? op->body->first : NULL; b; b = b->next)
        add_op_readers(r, b, readers);
}

/* READ_BY_ bits of what reads the result of op, while add_load_readers() walks @load: they are kept
 * in its tag. */
static unsigned readers_of(const Op *op) {
    return (unsigned)(uintptr_t)op->tag;
}

/* READ_BY_ bits of op itself: for an output of @load, those of the phases that use it. An output
 * that no phase reads is for the runtime (a condition of a relation, or links and their split) and
 * counts as read by others. */
static unsigned direct_readers(const Readers *r, const Op *op) {
    if (op->kind != OP_OUTPUT) return op_acts(op) ? READ_BY_OTHERS : 0;
    unsigned readers = saved_readers(r, op->name);
    for (int i = 0; i < r->m->spaces.n; i++) {
        const char *cond = r->m->spaces.v[i]->cond;
        if (cond && !strcmp(cond, op->name)) return READ_BY_OTHERS;
    }
    return readers ? readers : READ_BY_OTHERS;
}

/* Carries READ_BY_ bits backwards through @load, from the values that it saves to the columns that
 * these are computed from. */
static void add_load_readers(Readers *r, Func *load) {
    for (Op *op = load->last; op; op = op->prev) {
        unsigned readers = readers_of(op) | direct_readers(r, op);
        for (int i = 0; i < op->n_in; i++)
            op->in[i]->tag = (void *)(uintptr_t)(readers_of(op->in[i]) | readers);
        if (readers) add_op_readers(r, op, readers);
    }
    for (Op *op = load->first; op; op = op->next) op->tag = NULL;
}

/* Whether the function computes only losses and metrics, so that it runs only on data with
 * labels. */
static bool is_loss_or_metric(const Func *f) {
    return f->phase == PHASE_TRAIN || f->phase == PHASE_EVAL;
}

/* By Column.id: whether only losses and metrics read the column, so that a data set without it can
 * be predicted on. */
bool *host_labels(Arena *a, const Module *m) {
    Readers r = {.a = a, .m = m, .columns = NEWN(a, unsigned, (size_t)m->cols.n + 1)};
    Func *load = func_of(m, PHASE_LOAD);
    for (int i = 0; i < m->funcs.n; i++) {
        const Func *f = m->funcs.v[i];
        if (f->body || f == load) continue;
        for (const Op *op = f->first; op; op = op->next)
            add_op_readers(&r, op, is_loss_or_metric(f) ? READ_BY_LOSS : READ_BY_OTHERS);
    }
    if (load) add_load_readers(&r, load);
    const Sampling *s = &m->recipe.sample;
    for (int i = 0; i < s->times.n; i++) add_readers(&r, s->times.v[i], READ_BY_OTHERS);
    for (int i = 0; i < s->weights.n; i++) add_readers(&r, s->weights.v[i], READ_BY_OTHERS);
    bool *labels = NEWN(a, bool, (size_t)m->cols.n + 1);
    for (int i = 0; i < m->cols.n; i++) labels[i] = r.columns[i] == READ_BY_LOSS;
    return labels;
}
