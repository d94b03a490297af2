/* The pass driver: runs a list of passes by name, checks what each needs,
 * verifies and prints in between, and blames the pass that broke the IR.
 *
 * Facts (IR_GRAD and the like) are kept in Module.has.  A module that came from
 * text carries none, so the facts that can be read off the operations are read
 * off them: `gnnc opt` then runs any pass on any IR that satisfies it.  Printing
 * only what changed is Halide's habit (src/Lower.cpp). */
#include "passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "passes/dump.h"
#include "runtime/clock.h"

static const Pass *const passes[] = {
#define PASS(id) &pass_##id,
#include "passes.def"
#undef PASS
};

/* The number of passes over the graph IR. */
int pass_count(void) {
    return (int)COUNT(passes);
}

/* Pass i. */
const Pass *pass_at(int i) {
    return passes[i];
}

/* The pass of that name, or NULL. */
const Pass *pass_find(const char *name) {
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strcmp(passes[i]->name, name) == 0) return passes[i];
    return NULL;
}

/* Parses "dce#2": the length of the name, and which run of the pass is meant (0: all; -1: not a
 * number). */
size_t pass_name_len(const char *text, int *nth) {
    enum { MOST = 1000000 };
    size_t n = strcspn(text, ",#");
    *nth = 0;
    if (text[n] != '#') return n;
    const char *digits = text + n + 1;
    for (; *digits >= '0' && *digits <= '9' && *nth < MOST; digits++)
        *nth = *nth * 10 + (*digits - '0');
    if (*nth == 0 || (*digits && *digits != ',')) *nth = -1;
    return n;
}

/* Whether the nth run of the pass is in a list of names. */
bool pass_is_listed(const char *names, const char *name, int nth) {
    size_t n = strlen(name), all;
    for (; names && *names; names += all + (names[all] == ',')) {
        int which;
        all = strcspn(names, ",");
        bool same = pass_name_len(names, &which) == n && memcmp(names, name, n) == 0;
        if (same && (which == 0 || nth == 0 || which == nth)) return true;
    }
    return false;
}

/* The pipeline of a training program. */
const char *pass_pipeline_named(int opt_level, bool keep_grads) {
    if (opt_level == 0)
        return keep_grads
                   ? "shape-propagation,unroll,sample-boundary,autodiff,dce,lower-csr,precision"
                   : "shape-propagation,unroll,sample-boundary,loss-scale,autodiff,"
                     "optimizer,dce,lower-csr,precision";
#define UP_TO_GRADIENTS                                                                            \
    "shape-propagation,density,canon,cse,dce,one-hot,reorder,cse,factor,narrow,unroll,trim,"       \
    "distinct,sample-boundary,"
#define AFTER_GRADIENTS                                                                            \
    "canon,cse,dce,aggregate,recompute-masks,reuse-dot-sums,late-division,lower-csr,hoist,canon,"  \
    "cse,dce,"
#define AT_THE_END "graph-break-elimination,fuse,remat,precision,round-weights"
    return keep_grads ? UP_TO_GRADIENTS "autodiff," AFTER_GRADIENTS AT_THE_END
                      : UP_TO_GRADIENTS "loss-scale,autodiff,optimizer," AFTER_GRADIENTS
                                        "transpose-weights," AT_THE_END;
#undef UP_TO_GRADIENTS
#undef AFTER_GRADIENTS
#undef AT_THE_END
}

#define INFER(EXPLAIN) "shape-propagation,canon,cse,dce,serve," EXPLAIN "dce,lower-csr,precision"
#define INFER_O2(EXPLAIN)                                                                          \
    "shape-propagation,canon,cse,dce,one-hot,reorder,cse,factor,narrow,serve,trim," EXPLAIN        \
    "canon,cse,dce,reuse-dot-sums,late-division,"                                                  \
    "lower-csr,hoist,canon,cse,dce,graph-break-elimination,fuse,precision,round-weights"

/* The pipeline of an inference program. */
const char *pass_pipeline_infer(int opt_level, bool explain) {
    if (explain) return opt_level == 0 ? INFER("explain,") : INFER_O2("explain,");
    return opt_level == 0 ? INFER("") : INFER_O2("");
}

/* The facts that can be derived from the operations. */
static unsigned derive_facts(const Module *m) {
    unsigned has = IR_TYPED | IR_NO_CSR;
    for (int i = 0; i < m->funcs.n; i++) {
        if (pass_has_gradients(m->funcs.v[i])) has |= IR_GRAD;
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next) {
            if (pass_is_update(op)) has |= IR_OPTIM;
            if (op->fused) has |= IR_FUSED;
            if (op->type.dt != DT_VOID && op->type.layout == LAYOUT_CSR)
                has &= ~(unsigned)IR_NO_CSR;
            if (op->untyped) has &= ~(unsigned)(IR_TYPED | IR_NO_CSR);
        }
    }
    return has;
}

/* Clears all fusion decisions. */
static void clear_fused(Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next) op->fused = false;
}

/* Clears all tags and lists of users. */
static void clear_tags(Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        for (Op *op = m->funcs.v[i]->first; op; op = op->next) op->tag = NULL;
        if (m->funcs.v[i]->users) func_drop_users(m->funcs.v[i]);
    }
}

/* A missing fact, in words. */
static const char *fact_name(unsigned missing) {
    if (missing & IR_GRAD) return "explicit gradients (run autodiff first)";
    if (missing & IR_OPTIM) return "explicit parameter updates (run optimizer first)";
    if (missing & IR_NO_CSR) return "no CSR values (run lower-csr first)";
    if (missing & IR_FUSED) return "fusion decisions (run fuse first)";
    return "typed operations (run shape-propagation first)";
}

/* One run of a pass in a pipeline. */
typedef struct {
    const Pass *p;
    int nth;    /* which run of it, from 1 on */
    int number; /* of those that a program can do without, from 1 on; 0: of a required one */
} Run;

/* Whether an option selects this run of the pass. */
static bool is_selected(const char *which, const Run *r) {
    return which && (strcmp(which, "all") == 0 || pass_is_listed(which, r->p->name, r->nth));
}

/* The text of the pass's subject. */
static const char *text_of(Ctx *c, const PassSubject *s) {
    StrBuf b = sb_new(c->a);
    s->print(&b, s->what);
    return b.s ? b.s : "";
}

/* Prints a text with a heading; an empty text only if no filter is set. */
static void print_dump(const PassOptions *o, const char *when, const Run *r, const char *text) {
    if (*text || !o->print_filter)
        fprintf(o->dump, "// ---- %s %s#%d\n%s", when, r->p->name, r->nth, text);
}

/* Prints the pass's subject, filtered. */
static void dump_subject(Ctx *c, const PassSubject *s, const PassOptions *o, const char *when,
                         const Run *r) {
    print_dump(o, when, r, dump_filter(c->a, text_of(c, s), o->print_filter));
}

/* Prints what the pass changed, if it did. */
static void dump_change(Ctx *c, const PassOptions *o, const Run *r, const char *before,
                        const char *after) {
    if (strcmp(before, after) == 0) return;
    if (o->print_diff) before = dump_renamed(c->a, before, after);
    before = dump_filter(c->a, before, o->print_filter);
    after = dump_filter(c->a, after, o->print_filter);
    if (strcmp(before, after) == 0) return;
    StrBuf b = sb_new(c->a);
    if (o->print_diff)
        dump_diff(&b, before, after);
    else
        sb_puts(&b, after);
    print_dump(o, "changed by", r, b.s);
}

/* Whether this is the last optional run of a pass that the bisection allows. */
static bool is_last_optional(const PassOptions *o, const Run *r) {
    return r->number > 0 && r->number == o->leave_from - 1;
}

/* Adds a run's time to the table. */
static void add_time(Arena *a, PassTimes *t, const Pass *p, double seconds) {
    int i = 0;
    while (i < t->n && t->v[i].pass != p) i++;
    if (i == t->n) vec_push(a, t, ((PassTime){.pass = p}));
    t->v[i].seconds += seconds;
    t->v[i].n++;
}

/* Prints the table of times. */
void pass_times_print(FILE *to, const PassTimes *t) {
    for (int i = 0; i < t->n; i++)
        fprintf(to, "%9.3f ms  %s  [loops of %d kernels]\n", 1e3 * t->v[i].seconds,
                t->v[i].pass->name, t->v[i].n);
}

/* Runs the pass, takes its time and updates the facts as the pass declares. */
static bool run_timed(Ctx *c, const PassSubject *s, const Run *r, const PassOptions *o,
                      int *n_rewrites, double *took) {
    const Pass *p = r->p;
    PassCtx pc = {.ctx = c,
                  .a = c->a,
                  .remarks = o->remarks,
                  .record = o->record,
                  .of = o->of,
                  .choices = o->choices,
                  .precision = o->precision,
                  .ranges = o->ranges,
                  .scale = o->scale,
                  .dump_values = o->dump_values,
                  .rewrite_from = is_last_optional(o, r) ? o->rewrite_from : 0};
    double start = rt_now();
    c->stage = arena_printf(c->a, "pass '%s'", p->name);
    bool ok = s->run(&pc, p, s->what);
    c->stage = NULL;
    *took = rt_now() - start;
    if (o->times)
        add_time(c->a, o->times, p, *took);
    else if (o->time_passes && o->dump)
        fprintf(o->dump, "%9.3f ms  %s\n", 1e3 * *took, p->name);
    *s->has = (*s->has & ~p->breaks) | p->gives;
    *n_rewrites = pc.n_rewrites;
    return ok;
}

/* Whether the facts that the pass needs hold; else a diagnostic. */
static bool check_needs(Ctx *c, const PassSubject *s, const Pass *p) {
    unsigned missing = p->needs & ~*s->has, barred = p->bars & *s->has;
    if (missing)
        diag_add(c, DIAG_E0510, (Span){0}, "pass '%s' needs %s", p->name, s->fact(missing));
    else if (barred)
        diag_add(c, DIAG_E0510, (Span){0}, "pass '%s' comes before %s", p->name, s->fact(barred));
    return !missing && !barred;
}

/* Records the text before and after the run for the bisection: of the first program that it
 * changed, if a compile makes several. */
static void record_change(PassTold *t, const Run *r, const char *before, const char *after,
                          int n_rewrites) {
    if (t->last && (strcmp(t->before, t->after) != 0 || strcmp(before, after) == 0)) return;
    t->last = r->p;
    t->nth = r->nth;
    t->n_rewrites = n_rewrites;
    t->before = before;
    t->after = after;
}

/* The difference of two texts. */
static const char *diff_of(Ctx *c, const char *before, const char *after) {
    if (strcmp(before, after) == 0) return "";
    StrBuf b = sb_new(c->a);
    dump_diff(&b, dump_renamed(c->a, before, after), after);
    return b.s ? b.s : "";
}

/* Runs a pass with all dumps and records that options ask for. */
static bool run_one(Ctx *c, const PassSubject *s, const Run *r, const PassOptions *o) {
    int n_rewrites;
    double took;
    if (!check_needs(c, s, r->p)) return false;
    bool shown = o->print_changed && o->dump, bisected = o->told && is_last_optional(o, r);
    bool recorded = o->record && o->record_diffs;
    const char *before = shown || bisected || recorded ? text_of(c, s) : NULL;
    if (o->dump && is_selected(o->print_before, r)) dump_subject(c, s, o, "before", r);
    if (!run_timed(c, s, r, o, &n_rewrites, &took)) return false;
    if (o->dump && is_selected(o->print_after, r)) dump_subject(c, s, o, "after", r);
    const char *after = before ? text_of(c, s) : NULL;
    if (shown) dump_change(c, o, r, before, after);
    if (bisected) record_change(o->told, r, before, after, n_rewrites);
    if (recorded)
        vec_push(c->a, &o->record->events,
                 ((PassEvent){r->p, o->of, r->nth, took, diff_of(c, before, after)}));
    return !o->verify_each || s->verify(c, s->what, r->p->name);
}

/* Counts a run of a pass. */
static Run begin_run(Ctx *c, PassProgress *at, const Pass *p, PassTold *told) {
    Run r = {.p = p, .nth = 1, .number = p->required ? 0 : ++at->n_spare};
    for (int i = 0; i < at->met.n; i++) r.nth += at->met.v[i] == p;
    vec_push(c->a, &at->met, p);
    if (told && told->n_spare < at->n_spare) told->n_spare = at->n_spare;
    return r;
}

/* Counts a finished run and says whether options stop the compile here. */
static bool is_stop(PassProgress *at, const PassOptions *o, const Run *r) {
    at->n++;
    at->last = r->p;
    at->nth = r->nth;
    if (!o->stop_after) return false;
    bool by_name = pass_is_listed(o->stop_after, r->p->name, r->nth);
    return at->stopped = by_name || strtol(o->stop_after, NULL, 10) == at->n;
}

/* Whether options skip the pass. So is one that needs a fact which only a skipped pass would have
 * given. */
static bool is_skipped(const PassSubject *s, const Run *r, const PassOptions *o, unsigned *lost) {
    unsigned missing = r->p->needs & ~*s->has;
    bool out = pass_is_listed(o->disable, r->p->name, r->nth) ||
               (o->leave_from && r->number >= o->leave_from) || (missing && !(missing & ~*lost));
    if (!out || r->p->required) return false;
    *lost |= r->p->gives;
    return true;
}

/* Runs a list of passes. */
bool pass_run_list(Ctx *c, const PassSubject *s, const char *names, const PassOptions *opt) {
    static const PassOptions none = {0};
    const PassOptions *o = opt ? opt : &none;
    PassProgress local = {0}, *at = o->progress ? o->progress : &local;
    unsigned lost = 0;
    for (size_t n; *names; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        const Pass *p = s->find(arena_strndup(c->a, names, n));
        if (!p) {
            diag_add(c, DIAG_E0511, (Span){0}, "there is no pass named '%.*s'", (int)n, names);
            return false;
        }
        Run r = begin_run(c, at, p, o->told);
        if (s->ran) *s->ran = names + n;
        if (is_skipped(s, &r, o, &lost)) continue;
        ctx_poll(c);
        if (!run_one(c, s, &r, o)) return false;
        if (is_stop(at, o, &r)) return true;
    }
    return true;
}

/* What is left of a pipeline after these passes, of which those up to `to` ran. */
static const char *still_pending(const char *pending, const char *names, const char *to) {
    while (pending && *pending && names < to) {
        size_t n = strcspn(names, ","), m = strcspn(pending, ",");
        if (n == m && memcmp(names, pending, n) == 0) pending += m + (pending[m] == ',');
        names += n + (names[n] == ',');
    }
    return pending;
}

/* ---- the graph IR ------------------------------------------------------------------------- */
/* Prints a module. */
static void print_graph(StrBuf *b, const void *m) {
    module_print(b, m);
}

/* Verifies a module. */
static bool verify_graph(Ctx *c, void *m, const char *after) {
    return module_verify(c, m, after);
}

/* Runs a pass on a module. */
static bool run_graph(PassCtx *pc, const Pass *p, void *m) {
    bool ok = p->run(pc, m);
    clear_tags(m);
    if (p->breaks & IR_FUSED) clear_fused(m);
    return ok;
}

/* Runs a list of passes on a module. */
bool pass_run_all(Ctx *c, Module *m, const char *names, const PassOptions *o) {
    m->has = (m->has & ~(unsigned)IR_TYPED) | derive_facts(m);
    const char *ran = names;
    PassSubject s = {m, &m->has, print_graph, verify_graph, run_graph, fact_name, pass_find, &ran};
    bool ok = pass_run_list(c, &s, names, o);
    m->pending = still_pending(m->pending, names, ran);
    return ok;
}
