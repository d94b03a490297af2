/* The part of a plan's text that says which values of the module's functions its steps and their
 * kernels are for, and where in the model each statement comes from:
 *
 *     facts @train {
 *       2: %h args(%h was %x, -, %z) computes(%h, %s) at(3 !gcn.gnn:15:3-20, 12 !gcn.gnn:18:7)
 *
 * An operation without a result is called `op 12`, by its place in its function; one of another
 * function than the phase's, as of a loop's body, has that in front: `@train.loop %x`. */
#include "codegen/plan/plan_text.h"

#include <inttypes.h>
#include <string.h>

static const char *const fact_words[] = {"steps",  "blocks", "epilogues",
                                         "joined", "groups", "lives"};
const Words plan_fact_words = {fact_words, COUNT(fact_words)};
static const char *const spmm_words[] = {
    [SPMM_OWN] = "own", [SPMM_AUTO] = "auto", [SPMM_LIBRARY] = "cusparse"};
const Words plan_spmm_words = {spmm_words, COUNT(spmm_words)};

typedef struct {
    StrBuf *b;
    const Plan *p;
    const Func *f;       /* the phase's */
    const char ***names; /* by function, of their values */
} Facts;

/* The number of a function in the module. */
static int index_of(const Module *m, const Func *f) {
    int i = 0;
    while (m->funcs.v[i] != f) i++;
    return i;
}

/* Prints the name of an op, "-" for NULL. */
static void op_name(const Facts *f, const Op *op) {
    if (!op) {
        sb_puts(f->b, "-");
        return;
    }
    if (op->func != f->f) {
        sb_puts(f->b, "@");
        ir_name_print(f->b, op->func->name);
        sb_puts(f->b, " ");
    }
    const char *name = f->names[index_of(f->p->m, op->func)][op->id];
    if (name)
        sb_printf(f->b, "%%%s", name);
    else
        sb_printf(f->b, "op %d", op->id);
}

/* Prints the values of a kernel's arguments, with those that buffers held before. */
static void args(const Facts *f, const LKernel *k) {
    sb_puts(f->b, " args(");
    for (int i = 0; i < k->bufs.n; i++) {
        if (i) sb_puts(f->b, ", ");
        op_name(f, k->bufs.v[i]->value);
        if (!k->bufs.v[i]->old) continue;
        sb_puts(f->b, " was ");
        op_name(f, k->bufs.v[i]->old);
    }
    sb_puts(f->b, ") computes(");
    for (int i = 0; i < k->computes.n; i++) {
        if (i) sb_puts(f->b, ", ");
        op_name(f, k->computes.v[i]);
    }
    sb_puts(f->b, ")");
}

/* Runs of statements that have one source position. */
typedef struct {
    const Facts *f;
    Span at;
    int n, n_runs;
} Places;

/* Whether two positions are the same. */
static bool same_place(Span x, Span y) {
    return x.file == y.file && x.line == y.line && x.col == y.col && x.end_line == y.end_line &&
           x.end_col == y.end_col;
}

/* Prints a run. */
static void end_run(Places *l) {
    if (!l->n) return;
    sb_printf(l->f->b, "%s%d", l->n_runs++ ? ", " : "", l->n);
    ir_span_print(l->f->b, l->f->p->m->ctx, l->f->p->text_file, false, l->at);
    l->n = 0;
}

/* Prints the positions of statements. */
static void places(Places *l, const LStmt *s) {
    for (; s; s = s->next) {
        if (!loop_has_place(s)) {
            places(l, s->body);
            continue;
        }
        Span at = s->span.line && s->span.file != l->f->p->text_file ? s->span : (Span){0};
        if (!same_place(l->at, at)) end_run(l);
        l->at = at;
        l->n++;
        places(l, s->body);
    }
}

/* Prints a buffer. */
static void buf(const Facts *f, const char *what, int id) {
    sb_printf(f->b, " %s=%s", what, id < 0 ? "-" : f->p->bufs.v[id]->name);
}

/* Prints a size. */
static void size(const Facts *f, const char *what, const Expr *e) {
    sb_printf(f->b, " %s=", what);
    expr_print(f->b, e);
}

/* Prints a sparse product. */
static void spmm(const Facts *f, const PSpmm *x) {
    sb_puts(f->b, " product");
    buf(f, "ptr", x->ptr);
    buf(f, "idx", x->idx);
    buf(f, "perm", x->perm);
    buf(f, "weight", x->weight);
    buf(f, "dense", x->dense);
    buf(f, "out", x->out);
    size(f, "rows", x->rows);
    size(f, "cols", x->cols);
    size(f, "entries", x->entries);
    size(f, "width", x->width);
    size(f, "own", x->own);
    size(f, "library", x->library);
    if (x->more) sb_puts(f->b, " more");
}

/* Prints what a step is for. */
static void step(const Facts *f, int i, const PStep *s) {
    sb_printf(f->b, "  %d: ", i);
    op_name(f, s->op);
    if (s->pred_at.line) {
        sb_puts(f->b, " decided");
        ir_span_print(f->b, f->p->m->ctx, f->p->text_file, true, s->pred_at);
    }
    if (s->kernel) {
        Places l = {.f = f};
        args(f, s->kernel);
        sb_puts(f->b, " at(");
        places(&l, s->kernel->body);
        for (int k = 0; k < s->kernel->stages.n; k++) places(&l, s->kernel->stages.v[k]->body);
        end_run(&l);
        sb_puts(f->b, ")");
    }
    if (s->spmm) spmm(f, s->spmm);
    sb_puts(f->b, "\n");
}

/* Prints a text of the plan, if there is one. */
static void text_field(StrBuf *b, const char *what, const char *text) {
    if (!text) return;
    sb_printf(b, "  %s ", what);
    ir_string_print(b, text);
    sb_puts(b, "\n");
}

/* Prints what holds of the whole plan. */
static void header(StrBuf *b, const Plan *p) {
    sb_puts(b, "plan {\n");
    text_field(b, "arranged", p->arranged);
    text_field(b, "device", p->device);
    if (p->device && p->host_too) sb_puts(b, "  host\n");
    if (p->spmm) sb_printf(b, "  spmm %s\n", spmm_words[p->spmm]);
    if (p->tf32) sb_puts(b, "  tf32\n");
    if (p->by_parts) sb_puts(b, "  by_parts\n");
    text_field(b, "options", p->options);
    text_field(b, "name", p->c_name);
    if (p->fingerprint) sb_printf(b, "  fingerprint \"%016" PRIx64 "\"\n", p->fingerprint);
    if (p->has) sb_puts(b, "  has");
    for (int i = 0; i < plan_fact_words.n; i++)
        if (p->has & 1u << i) sb_printf(b, " %s", fact_words[i]);
    if (p->has) sb_puts(b, "\n");
    for (int i = 0; i < p->m->maps.n; i++) {
        sb_puts(b, i ? ", " : "  maps ");
        ir_map_print(b, p->m->maps.v[i]);
    }
    sb_puts(b, p->m->maps.n ? "\n}\n" : "}\n");
}

/* Prints the sources. */
static void sources(StrBuf *b, const Plan *p) {
    sb_puts(b, "sources {\n");
    module_print_sources(b, p->m, p->text_file);
    sb_puts(b, "}\n");
}

void plan_print_facts(StrBuf *b, const Plan *p) {
    Facts f = {.b = b, .p = p};
    f.names = NEWN(b->a, const char **, (size_t)p->m->funcs.n + 1);
    for (int i = 0; i < p->m->funcs.n; i++) f.names[i] = ir_value_names(b->a, p->m->funcs.v[i]);
    for (int i = 0; i < p->phases.n; i++) {
        const PPhase *ph = p->phases.v[i];
        f.f = ph->func;
        sb_puts(b, "facts @");
        ir_name_print(b, ph->name);
        sb_puts(b, " {\n");
        for (int k = 0; k < ph->steps.n; k++) step(&f, k, ph->steps.v[k]);
        sb_puts(b, "}\n");
    }
    header(b, p);
    sources(b, p);
}
