/* --report=missed: what could be better, the most bytes first, and what would change it.
 *
 * A value lies in memory for kernels which might have computed it themselves: that costs a write,
 * and a read for each of them.  If one of its readers needs memory, whatever is set, it is no
 * missed opportunity.  What passes over loops refused costs time that nobody knows; such remarks
 * stand behind, by what their kernel moves. */
#include "codegen/report/fusion_facts.h"
#include "passes/threshold.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, MAX_REMEDIES = 8 };

/* A missed opportunity: a value that need not be in memory, or a refusal of a pass. */
typedef struct {
    const PPhase *ph;
    int step;                /* that stores it, or whose kernel it is about; -1: none is known */
    const Op *value;         /* NULL: a remark */
    Reasons why;             /* of a value */
    const char *pass, *text; /* of a remark; pass NULL: of none */
    Span at;                 /* the model line that it is about */
    const Expr *bytes;       /* wasted; of a remark what the kernel moves, NULL: not known */
    int times, order;        /* how often the same was found; which was found first */
} Missed;
typedef VEC(Missed) Misses;

/* ---- values in memory -------- */
/* The number of steps other than `writer` that access the value which step number `writer` stores;
 * 0 also where its buffer is no temporary, so that it must be stored. */
static int count_readers(const Report *r, const PPhase *ph, int writer, const Op *value) {
    const PStep *s = ph->steps.v[writer];
    int buf = -1, n = 0;
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++)
        if (s->kernel->bufs.v[i]->value == value && s->kernel->bufs.v[i]->written) buf = s->bufs[i];
    if (buf < 0 || r->p->bufs.v[buf]->kind != PB_TEMP) return 0;
    for (int i = 0; i < ph->steps.n; i++)
        for (int k = 0; i != writer && k < ph->steps.v[i]->n_bufs; k++)
            if (ph->steps.v[i]->bufs[k] == buf) {
                n++;
                break;
            }
    return n;
}

/* Whether there are reasons, and each has a remedy: only then can the value be kept out of
 * memory. */
static bool is_fixable(const Reasons *why) {
    for (int i = 0; i < why->n; i++)
        if (!why->v[i].remedy) return false;
    return why->n > 0;
}

/* Why the value is stored, as the pass `fuse` says or else the planner. Empty, if a reason is one
 * that nobody can change. */
static Reasons fixable_reasons(const Report *r, const FusionFacts *f, const Op *op) {
    const PassRecord *rec = r->o->record;
    Reasons why = {0};
    for (int i = 0; rec && i < rec->refusals.n; i++) {
        const PassRefusal *x = &rec->refusals.v[i];
        if (x->op == op) vec_push(r->a, &why, ((Reason){.text = x->text, .remedy = x->cure}));
    }
    if (!why.n) why = fusion_reasons(r, f, op, true);
    return is_fixable(&why) ? why : (Reasons){0};
}

/* Adds to `all` the values of a phase that are stored though they need not be, with the bytes of
 * their write and reads. */
static void find_stored(Report *r, const PPhase *ph, Misses *all) {
    FusionFacts f = fusion_analyze(r, ph);
    for (int i = 0; i < ph->steps.n; i++)
        for (int k = 0; k < f.results[i].n; k++) {
            const Op *op = f.results[i].v[k];
            int n = count_readers(r, ph, i, op);
            Reasons why = n ? fixable_reasons(r, &f, op) : (Reasons){0};
            if (!why.n) continue;
            int64_t each = (int64_t)(n + 1) * dtype_bytes(op->type.dt);
            Missed m = {.ph = ph, .step = i, .value = op, .why = why, .at = op->span, .times = 1};
            m.bytes = expr_mul(r->a, type_count(r->a, &op->type), expr_const(r->a, each));
            vec_push(r->a, all, m);
        }
}

/* ---- remarks -------- */
/* Finds the step whose kernel has this name, and sets the remark's phase, step and bytes from
 * it. */
static void find_kernel(const Report *r, const char *name, Missed *m) {
    for (int p = 0; p < r->p->phases.n; p++)
        for (int i = 0; i < r->p->phases.v[p]->steps.n; i++) {
            const PStep *s = r->p->phases.v[p]->steps.v[i];
            if (!s->kernel || strcmp(s->kernel->name, name) != 0) continue;
            StepCost c = cg_step_cost(r->a, r->p, s);
            m->ph = r->p->phases.v[p];
            m->step = i;
            m->bytes = expr_add(r->a, c.read, c.written);
            return;
        }
}

/* Whether the refusal x says the same about the same model line as m. */
static bool same_remark(const Missed *m, const PassRefusal *x) {
    return !strcmp(m->pass, x->pass) && !strcmp(m->text, x->text) && m->at.file == x->at.file &&
           m->at.line == x->at.line;
}

/* Adds to `all` what passes refused to do where that costs time. Equal refusals become one with a
 * count; those about a stored value are left to find_stored(). */
static void find_refusals(Report *r, Misses *all) {
    const PassRecord *rec = r->o->record;
    int first = all->n;
    for (int i = 0; rec && i < rec->refusals.n; i++) {
        const PassRefusal *x = &rec->refusals.v[i];
        int k = first;
        if (x->op || !x->costs) continue;
        while (k < all->n && !same_remark(&all->v[k], x)) k++;
        if (k < all->n) {
            all->v[k].times++;
            continue;
        }
        Missed m = {.step = -1, .pass = x->pass, .text = x->text, .at = x->at, .times = 1};
        if (x->of) find_kernel(r, x->of, &m);
        vec_push(r->a, all, m);
    }
}

/* The options with which a pass's thresholds can be changed, with their values now; NULL: the pass
 * has none. */
static const char *thresholds_of(const Report *r, const char *pass) {
    StrBuf b = sb_new(r->a);
    int n = 0;
    for (int i = 0; i < N_PASS_THRESHOLDS && n < MAX_REMEDIES; i++) {
        const PassThresholdText *t = pass_threshold_text((PassThreshold)i);
        if (strcmp(t->pass, pass) != 0) continue;
        sb_printf(&b, "%s--%s.%s (is %d)", n++ ? ", " : "", t->pass, t->name,
                  pass_threshold(r->c, (PassThreshold)i));
    }
    return n ? b.s : NULL;
}

/* ---- all -------- */
/* Compares two opportunities for qsort_r: stored values come before refusals, more bytes come
 * first, then the order in which they were found. */
static int compare(const void *x, const void *y, void *report) {
    const Missed *a = x, *b = y;
    double of_a = a->bytes ? report_nominal(report, a->bytes) : 0;
    double of_b = b->bytes ? report_nominal(report, b->bytes) : 0;
    if (!a->value != !b->value) return a->value ? -1 : 1;
    if (of_a != of_b) return of_a < of_b ? 1 : -1;
    return a->order - b->order;
}

/* All missed opportunities of the plan, those that cost most bytes first. */
static Misses find_missed(Report *r) {
    Misses all = {0};
    for (int p = 0; p < r->p->phases.n; p++) find_stored(r, r->p->phases.v[p], &all);
    find_refusals(r, &all);
    for (int i = 0; i < all.n; i++) all.v[i].order = i;
    if (all.n) qsort_r(all.v, (size_t)all.n, sizeof *all.v, compare, r);
    return all;
}

/* The user's source line of a position; if that is inside a layer, followed by the layer's line in
 * brackets. */
static const char *user_at(const Report *r, Span at) {
    Span user = ctx_user_span(r->c, at);
    const char *layer_line = report_at(r, at);
    if (user.file == at.file && user.line == at.line) return layer_line;
    return arena_printf(r->a, "%s [%s]", report_at(r, user), layer_line);
}

/* Prints a value that is stored though it need not be: bytes, name, place, and for each reason what
 * would change it. */
static void print_value(Report *r, const Missed *m) {
    sb_printf(r->b, "  %10.4g MB  %s: %s  %s\n", 1e-6 * report_nominal(r, m->bytes),
              report_op_name(m->value), report_type(r, &m->value->type), user_at(r, m->at));
    sb_printf(r->b, "                 of @%s, stored by %s: ", m->ph->name,
              cg_step_name(m->ph->steps.v[m->step]));
    expr_print(r->b, m->bytes);
    sb_puts(r->b, " B\n");
    for (int i = 0; i < m->why.n; i++)
        sb_printf(r->b, "                 %s\n                 would change it: %s\n",
                  m->why.v[i].text, m->why.v[i].remedy);
}

/* Prints a refusal of a pass, and the thresholds that may change it. */
static void print_remark(Report *r, const Missed *m) {
    const char *cure = thresholds_of(r, m->pass);
    sb_printf(r->b, "    %s: %s: %s", user_at(r, m->at), m->pass, m->text);
    if (m->times > 1) sb_printf(r->b, " (%d times)", m->times);
    sb_puts(r->b, "\n");
    if (cure) sb_printf(r->b, "      may change it: %s\n", cure);
}

/* Prints the report as text: at most SHOWN stored values, then at most SHOWN refusals. */
static void print_text(Report *r, const Misses *all) {
    int n = 0, remarks = 0;
    sb_puts(r->b, "missed: bytes that values in memory cost which need not be there");
    sb_printf(r->b, "%s\n", r->known ? "" : ", by nominal sizes");
    for (int i = 0; i < all->n && all->v[i].value; i++)
        if (n++ < SHOWN) print_value(r, &all->v[i]);
    if (n > SHOWN) sb_printf(r->b, "  and %d more: --report-format=json has all\n", n - SHOWN);
    sb_puts(r->b, "  refused by passes, where most is moved first\n");
    for (int i = n; i < all->n; i++)
        if (remarks++ < SHOWN) print_remark(r, &all->v[i]);
    if (remarks > SHOWN)
        sb_printf(r->b, "    and %d more: --report-format=json has all\n", remarks - SHOWN);
}

/* Prints a missed opportunity as a JSON object. */
static void json_missed(Report *r, const Missed *m) {
    const char *cure = m->value ? NULL : thresholds_of(r, m->pass);
    Span user = ctx_user_span(r->c, m->at);
    json_object(r->j, NULL);
    json_text(r->j, "kind", m->value ? "stored" : "refused");
    if (m->ph) json_text(r->j, "phase", m->ph->name);
    if (m->step >= 0) json_text(r->j, "step", cg_step_name(m->ph->steps.v[m->step]));
    if (m->value) {
        json_text(r->j, "value", report_op_name(m->value));
        json_text(r->j, "type", report_type(r, &m->value->type));
    } else {
        json_text(r->j, "pass", m->pass);
        json_int(r->j, "times", m->times);
    }
    json_text(r->j, "site", report_at(r, user));
    json_text(r->j, "line", report_at(r, m->at));
    if (m->bytes) report_json_expr(r, "bytes", m->bytes);
    json_array(r->j, "why");
    if (!m->value) json_text(r->j, NULL, m->text);
    for (int i = 0; i < m->why.n; i++) json_text(r->j, NULL, m->why.v[i].text);
    json_end(r->j);
    json_array(r->j, "cures");
    if (cure) json_text(r->j, NULL, cure);
    for (int i = 0; i < m->why.n; i++) json_text(r->j, NULL, m->why.v[i].remedy);
    json_end(r->j);
    json_end(r->j);
}

int report_count_missed(Report *r) {
    Misses all = find_missed(r);
    int n = 0;
    for (int i = 0; i < all.n; i++) n += all.v[i].value != NULL;
    return n;
}

void report_missed(Report *r) {
    Misses all = find_missed(r);
    if (!r->j) {
        print_text(r, &all);
        return;
    }
    json_array(r->j, "missed");
    for (int i = 0; i < all.n; i++) json_missed(r, &all.v[i]);
    json_end(r->j);
}
