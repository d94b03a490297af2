/* --report=communication: what processes send to each other.  Those that share steps send
 * gradients, and, where they pull rows (runtime/batch/pull.h), rows of columns that batches read.
 * Of those that share rows, in a run of each phase, all n of them together:
 *
 *     halo   rows that a process reads and another owns, each once: which they are, data tell;
 *            beside: rows that need none of them are computed meanwhile
 *     rows   all of a value's rows, to all
 *     saved  all of a value's rows, to the first process, which saves them
 *     sums   over rows (runtime/exec/sum_parts.c)
 *
 * With data, the trainer's `info --processes n` counts the same. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/report/report.h"

#include "runtime/exec/blocks.h"

/* What is sent: see above. */
typedef enum { SENDS_HALO, SENDS_ROWS, SENDS_SAVED, SENDS_SUMS, SENDS_COUNT } MessageKind;
static const char *const sends_word[] = {"halo", "rows", "saved", "sums"};

/* What processes send to each other in a step. */
typedef struct {
    const PStep *step;
    const PBuf *value; /* whose rows, or which sum */
    MessageKind what;
    const Expr *bytes; /* of a row, of all rows, of the sum */
} Message;

/* Finds what processes that share rows send to each other in step s, and how much: of a halo one
 * row (only the data know how many there are), of partial sums what one chunk makes, else the whole
 * buffer. False: the step sends nothing. */
static bool find_message(const Report *r, const PStep *s, Message *out) {
    bool distributed_product = s->kind == PS_GEMM && s->partition && s->gemm.long_k;
    if (s->kind != PS_EXCHANGE && !distributed_product) return false;
    const PBuf *b = r->p->bufs.v[s->bufs[distributed_product ? 2 : 0]];
    *out = (Message){s, b, SENDS_ROWS, report_buffer_bytes(r, b)};
    if (s->halos.n) {
        out->what = SENDS_HALO;
        out->bytes = expr_const(r->a, dtype_bytes(b->dt));
        for (int i = 1; i < b->type.rank; i++)
            out->bytes = expr_mul(r->a, out->bytes, b->type.dim[i]->size);
    }
    if (s->to_first) out->what = SENDS_SAVED;
    if (distributed_product || s->folds) out->what = SENDS_SUMS;
    if (s->folds) out->bytes = expr_ceildiv(r->a, out->bytes, expr_const(r->a, RT_SUM_CHUNKS));
    return true;
}

/* Prints a line about a message: its value, its size in bytes, and how often processes send that,
 * all of them together. */
static void print_message(Report *r, const Message *x) {
    static const char *const times[] = {"each row once: ", "(n - 1) times ", "(n - 1) / n of ",
                                        "at least 2 (n - 1) times "};
    const char *at = cg_step_site(r->p->m, r->a, x->step);
    sb_printf(r->b, "    %s%s%s  %s", at, *at ? " " : "", x->value->name, times[x->what]);
    report_amount(r, x->bytes, "B");
    sb_printf(r->b, "  %s%s\n", x->step->note,
              x->step->beside.n ? ", while other rows are computed" : "");
}

/* Prints a message as a JSON object: the value, its model line, the kind of message, and its
 * bytes. */
static void json_message(Report *r, const Message *x) {
    json_object(r->j, NULL);
    json_text(r->j, "value", x->value->name);
    json_text(r->j, "line", cg_step_site(r->p->m, r->a, x->step));
    json_text(r->j, "kind", sends_word[x->what]);
    report_json_expr(r, "bytes", x->bytes);
    if (x->what == SENDS_HALO) json_bool(r->j, "beside", x->step->beside.n > 0);
    json_text(r->j, "note", x->step->note);
    json_end(r->j);
}

/* Prints the messages of a phase, as text or JSON, after the number of each kind. */
static void report_phase(Report *r, const PPhase *ph) {
    int n[SENDS_COUNT] = {0};
    Message x;
    for (int i = 0; i < ph->steps.n; i++)
        if (find_message(r, ph->steps.v[i], &x)) n[x.what]++;
    if (r->j) {
        json_object(r->j, NULL);
        json_text(r->j, "phase", ph->name);
        json_array(r->j, "exchanges");
    } else {
        sb_printf(r->b,
                  "  @%s: %d of halo rows, %d of all rows, %d of rows to be saved, %d of sums\n",
                  ph->name, n[SENDS_HALO], n[SENDS_ROWS], n[SENDS_SAVED], n[SENDS_SUMS]);
    }
    for (int i = 0; i < ph->steps.n; i++)
        if (find_message(r, ph->steps.v[i], &x)) (r->j ? json_message : print_message)(r, &x);
    if (r->j) json_end(r->j), json_end(r->j);
}

/* Is the buffer's content of the column: its values, or an index array made of them? */
static bool is_of_column(const PBuf *b, const Column *c) {
    if (b->kind == PB_DATA) return b->col == c;
    return b->kind == PB_MAP &&
           (map_is_of_column(b->map, c) || (b->by && map_is_of_column(b->by, c)));
}

/* Does a phase read the column: one over batches, or over the whole data? */
static bool is_read(const Report *r, const Column *c, bool batches) {
    for (int i = 0; i < r->p->phases.n; i++) {
        const PPhase *ph = r->p->phases.v[i];
        for (int k = 0; k < ph->steps.n && plan_runs_on_batches(r->p, ph) == batches; k++)
            for (int j = 0; j < plan_n_touched(ph->steps.v[k]); j++) {
                int buf = plan_touched(ph->steps.v[k], j);
                if (buf >= 0 && is_of_column(r->p->bufs.v[buf], c)) return true;
            }
    }
    return false;
}

/* May rows of this column be pulled: of nodes, other than the labels, that a phase over batches
 * reads (can_pull() in runtime/batch/pull_open.c)? */
static bool is_pulled(const Report *r, const Column *c) {
    const Module *m = r->p->m;
    bool numbers = c->kind == COL_FLOAT,
         indexes = (c->kind == COL_CAT || c->kind == COL_CSR) && !is_read(r, c, false);
    if (r->p->partitioned || m->recipe.sample.train_links || c->space->kind != SP_NODE)
        return false;
    return (numbers || indexes) && c != module_target(m, false) && is_read(r, c, true);
}

/* Bytes of a row of the column, as the program reads it; of a csr one of its length. */
static const Expr *row_bytes(const Report *r, const Column *c) {
    DType dt = c->type.dt;
    if (c->kind == COL_CSR) return expr_const(r->a, sizeof(int32_t));
    for (int i = 0; i < r->p->bufs.n; i++)
        if (r->p->bufs.v[i]->kind == PB_DATA && r->p->bufs.v[i]->col == c) dt = r->p->bufs.v[i]->dt;
    const Expr *bytes = expr_const(r->a, dtype_bytes(dt));
    for (int d = 1; d < c->type.rank; d++) bytes = expr_mul(r->a, bytes, c->type.dim[d]->size);
    return bytes;
}

/* Prints the columns of which processes that share steps pull rows, with the bytes of a row. */
static void report_pulls(Report *r) {
    const int entry_bytes =
        sizeof(int32_t) + sizeof(float); /* of a csr column: its column, value */
    int n = 0;
    if (r->j) json_array(r->j, "pulls");
    for (int i = 0; i < r->p->m->cols.n; i++) {
        const Column *c = r->p->m->cols.v[i];
        if (!is_pulled(r, c)) continue;
        const char *column = arena_printf(r->a, "%s.%s", c->space->name, c->name);
        if (r->j) {
            json_object(r->j, NULL);
            json_text(r->j, "column", column);
            report_json_expr(r, "bytes", row_bytes(r, c));
            if (c->kind == COL_CSR) json_int(r->j, "entry_bytes", entry_bytes);
            json_end(r->j);
            continue;
        }
        if (!n++)
            sb_puts(r->b,
                    "  with --pull-rows, rows that a batch reads and others own, each once:\n");
        sb_printf(r->b, "    %s  ", column);
        report_amount(r, row_bytes(r, c), "B");
        if (c->kind == COL_CSR) sb_printf(r->b, " and %d B for each stored entry", entry_bytes);
        sb_puts(r->b, "\n");
    }
    if (r->j) json_end(r->j);
}

/* Prints the report; a program that shares no rows has no phases in it. */
void report_communication(Report *r) {
    if (r->j) {
        json_object(r->j, "communication");
        json_bool(r->j, "shares_rows", r->p->partitioned);
        json_array(r->j, "phases");
    } else {
        sb_puts(r->b, r->p->partitioned
                          ? "communication of processes that share rows\n"
                          : "communication: none, the program shares no rows (--mpi or "
                            "--parts, of a model without 'sample')\n");
    }
    for (int i = 0; i < r->p->phases.n && r->p->partitioned; i++)
        report_phase(r, r->p->phases.v[i]);
    if (r->j) json_end(r->j);
    report_pulls(r);
    if (r->j) json_end(r->j);
}
