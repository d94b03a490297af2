/* The part of a plan's text that says which values of the module's functions its steps and their
 * kernels are for, and where in the model each statement comes from:
 *
 *     facts @train {
 *       2: %h args(%h was %x, -, %z) computes(%h, %s) at(3 !gcn.gnn:15:3-20, 12 !gcn.gnn:18:7)
 *
 * and, before there are steps, which values are made together, in which buffers:
 *
 *     fusions @train {
 *       rows %h, %s in train_h_3, train_s_4
 *
 * An operation without a result is called `op 12`, by its place in its function; one of another
 * function than the phase's, as of a loop's body, has that in front: `@train.loop %x`. */
#include "codegen/plan/plan_text.h"

#include <inttypes.h>
#include <string.h>

static const char *const fact_words[] = {"steps",  "blocks",  "epilogues",  "joined",
                                         "groups", "lives",   "sparse",     "fusions",
                                         "formed", "buffers", "overlapped", "streams"};
const Words plan_fact_words = {fact_words, COUNT(fact_words)};
static const char *const spmm_words[] = {
    [SPMM_OWN] = "own", [SPMM_AUTO] = "auto", [SPMM_LIBRARY] = "cusparse"};
static const char *const fusion_words[] = {
    [PF_ROWS] = "rows", [PF_SUM] = "sum",       [PF_CONCAT] = "concat",
    [PF_GEMM] = "gemm", [PF_RANK] = "rank",     [PF_CALL] = "call",
    [PF_LOOP] = "loop", [PF_EFFECT] = "effect", [PF_COPY] = "copy"};
const Words plan_fusion_words = {fusion_words, COUNT(fusion_words)};
const Words plan_spmm_words = {spmm_words, COUNT(spmm_words)};

/* The facts of a plan while they are printed. */
typedef struct {
    StrBuf *b;
    const Plan *p;
    const Func *f;       /* the phase's */
    const char ***names; /* by function, of their values */
} Facts;

/* The number of a function in the module. */
static int func_index(const Module *m, const Func *f) {
    int i = 0;
    while (m->funcs.v[i] != f) i++;
    return i;
}

/* Prints the name of an op, "-" for NULL. */
static void print_op_name(const Facts *f, const Op *op) {
    if (!op) {
        sb_puts(f->b, "-");
        return;
    }
    if (op->func != f->f) {
        sb_puts(f->b, "@");
        ir_name_print(f->b, op->func->name);
        sb_puts(f->b, " ");
    }
    const char *name = f->names[func_index(f->p->m, op->func)][op->id];
    if (name)
        sb_printf(f->b, "%%%s", name);
    else
        sb_printf(f->b, "op %d", op->id);
}

/* Prints which values the kernel's arguments hold, with those that they held before it ("was"), and
 * what it computes. */
static void print_args(const Facts *f, const LKernel *k) {
    sb_puts(f->b, " args(");
    for (int i = 0; i < k->bufs.n; i++) {
        if (i) sb_puts(f->b, ", ");
        print_op_name(f, k->bufs.v[i]->value);
        if (!k->bufs.v[i]->value_before) continue;
        sb_puts(f->b, " was ");
        print_op_name(f, k->bufs.v[i]->value_before);
    }
    sb_puts(f->b, ") computes(");
    for (int i = 0; i < k->computes.n; i++) {
        if (i) sb_puts(f->b, ", ");
        print_op_name(f, k->computes.v[i]);
    }
    sb_puts(f->b, ")");
}

/* Runs of statements that have one source position. */
typedef struct {
    const Facts *f;
    Span at;
    int n, n_written;
} PositionRuns;

/* Whether two positions are the same. */
static bool is_same_position(Span x, Span y) {
    return x.file == y.file && x.line == y.line && x.col == y.col && x.end_line == y.end_line &&
           x.end_col == y.end_col;
}

/* Prints how many statements have the same source position, and the position. */
static void print_position_run(PositionRuns *run) {
    if (!run->n) return;
    sb_printf(run->f->b, "%s%d", run->n_written++ ? ", " : "", run->n);
    ir_span_print(run->f->b, run->f->p->m->ctx, run->f->p->text_file, false, run->at);
    run->n = 0;
}

/* Prints the source positions of the statements. */
static void print_positions(PositionRuns *run, const LStmt *s) {
    for (; s; s = s->next) {
        if (!loop_has_place(s)) {
            print_positions(run, s->body);
            continue;
        }
        Span at = s->span.line && s->span.file != run->f->p->text_file ? s->span : (Span){0};
        if (!is_same_position(run->at, at)) print_position_run(run);
        run->at = at;
        run->n++;
        print_positions(run, s->body);
    }
}

/* Prints a buffer. */
static void print_buf(const Facts *f, const char *what, int id) {
    sb_printf(f->b, " %s=%s", what, id < 0 ? "-" : f->p->bufs.v[id]->name);
}

/* Prints a size. */
static void print_size(const Facts *f, const char *what, const Expr *e) {
    sb_printf(f->b, " %s=", what);
    expr_print(f->b, e);
}

/* Prints the operands and sizes of a sparse-dense matrix product. */
static void print_spmm(const Facts *f, const PSpmm *x) {
    sb_puts(f->b, " product");
    print_buf(f, "ptr", x->ptr);
    print_buf(f, "idx", x->idx);
    print_buf(f, "perm", x->perm);
    print_buf(f, "weight", x->weight);
    print_buf(f, "dense", x->dense);
    print_buf(f, "out", x->out);
    print_size(f, "rows", x->rows);
    print_size(f, "cols", x->cols);
    print_size(f, "entries", x->entries);
    print_size(f, "width", x->width);
    print_size(f, "own", x->own_bytes);
    print_size(f, "library", x->library_bytes);
    if (x->has_rest) sb_puts(f->b, " more");
}

/* Prints which op a step is for, and what its kernel or product computes. */
static void print_step_facts(const Facts *f, int i, const PStep *s) {
    sb_printf(f->b, "  %d: ", i);
    print_op_name(f, s->op);
    if (s->pred_at.line) {
        sb_puts(f->b, " decided");
        ir_span_print(f->b, f->p->m->ctx, f->p->text_file, true, s->pred_at);
    }
    if (s->kernel) {
        PositionRuns l = {.f = f};
        print_args(f, s->kernel);
        sb_puts(f->b, " at(");
        print_positions(&l, s->kernel->body);
        for (int k = 0; k < s->kernel->stages.n; k++)
            print_positions(&l, s->kernel->stages.v[k]->body);
        print_position_run(&l);
        sb_puts(f->b, ")");
    }
    if (s->spmm) print_spmm(f, s->spmm);
    sb_puts(f->b, "\n");
}

/* Prints a fusion: its kind, its values, their buffers; of a loop also the fusions of its body. */
static void print_fusion(const Facts *f, const PFusion *x, int depth) {
    sb_printf(f->b, "%*s%s", 2 * depth, "", plan_fusion_words.word[x->kind]);
    for (int i = 0; i < x->roots.n; i++) {
        sb_puts(f->b, i ? ", " : " ");
        print_op_name(f, x->roots.v[i]);
    }
    for (int i = 0; i < x->n_bufs; i++)
        sb_printf(f->b, "%s%s", i ? ", " : " in ",
                  x->bufs[i] < 0 ? "-" : f->p->bufs.v[x->bufs[i]]->name);
    if (x->kind == PF_LOOP) {
        sb_puts(f->b, " {\n");
        for (int i = 0; i < x->body.n; i++) print_fusion(f, x->body.v[i], depth + 1);
        sb_printf(f->b, "%*s}", 2 * depth, "");
    }
    sb_puts(f->b, "\n");
}

/* Prints the section "fusions" of a phase. */
static void print_fusions(const Facts *f, const PPhase *ph) {
    sb_puts(f->b, "fusions @");
    ir_name_print(f->b, ph->name);
    sb_puts(f->b, " {\n");
    for (int i = 0; i < ph->fusions.n; i++) print_fusion(f, ph->fusions.v[i], 1);
    sb_puts(f->b, "}\n");
}

/* Prints a text of the plan, if there is one. */
static void print_text_field(StrBuf *b, const char *what, const char *text) {
    if (!text) return;
    sb_printf(b, "  %s ", what);
    ir_string_print(b, text);
    sb_puts(b, "\n");
}

/* Prints the section "plan": device, options and flags of the whole plan, and the maps in the order
 * of their ids. */
static void print_header(StrBuf *b, const Plan *p) {
    sb_puts(b, "plan {\n");
    print_text_field(b, "arranged", p->scheduled_for);
    print_text_field(b, "device", p->device);
    if (p->device && p->with_host) sb_puts(b, "  host\n");
    if (p->spmm) sb_printf(b, "  spmm %s\n", spmm_words[p->spmm]);
    if (p->tf32) sb_puts(b, "  tf32\n");
    if (p->partitioned) sb_puts(b, "  by_parts\n");
    print_text_field(b, "options", p->options);
    print_text_field(b, "name", p->c_name);
    if (p->fingerprint) sb_printf(b, "  fingerprint \"%016" PRIx64 "\"\n", p->fingerprint);
    if (p->flags) sb_puts(b, "  has");
    for (int i = 0; i < plan_fact_words.n; i++)
        if (p->flags & 1u << i) sb_printf(b, " %s", fact_words[i]);
    if (p->flags) sb_puts(b, "\n");
    for (int i = 0; i < p->m->maps.n; i++) {
        sb_puts(b, i ? ", " : "  maps ");
        ir_map_print(b, p->m->maps.v[i]);
    }
    sb_puts(b, p->m->maps.n ? "\n}\n" : "}\n");
}

/* Prints the section "sources": the model's files that positions in the text name. */
static void print_sources(StrBuf *b, const Plan *p) {
    sb_puts(b, "sources {\n");
    module_print_sources(b, p->m, p->text_file);
    sb_puts(b, "}\n");
}

/* Prints the sections "facts" (values of steps) or "fusions", "plan" and "sources". */
void plan_print_facts(StrBuf *b, const Plan *p) {
    Facts f = {.b = b, .p = p};
    f.names = NEWN(b->a, const char **, (size_t)p->m->funcs.n + 1);
    for (int i = 0; i < p->m->funcs.n; i++) f.names[i] = ir_value_names(b->a, p->m->funcs.v[i]);
    for (int i = 0; i < p->phases.n; i++) {
        const PPhase *ph = p->phases.v[i];
        f.f = ph->func;
        if (p->flags & PLAN_FUSIONS) {
            print_fusions(&f, ph);
            continue;
        }
        sb_puts(b, "facts @");
        ir_name_print(b, ph->name);
        sb_puts(b, " {\n");
        for (int k = 0; k < ph->steps.n; k++) print_step_facts(&f, k, ph->steps.v[k]);
        sb_puts(b, "}\n");
    }
    print_header(b, p);
    print_sources(b, p);
}
