/* Steps of a plan's text (plan_print.c):
 *
 *     0: gemm(x, w, z) batch=1 m=N_v .. c_row=16 epilogue adds a bias, b, for 1 [alone: ..]  ; z =
 * .. steps 1..2 in blocks of N_v 1: kernel gcn_train_h_3(h, z) over=N_v balanced dst(e) within 0  ;
 * h = add z, b
 *
 * The parts that are words for people are told by what they begin with, and taken as they are. */
#include "codegen/plan/plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the line *end where `begin` stands in it, and returns the text behind that; NULL: it does
 * not stand there. */
static const char *cut_tail(Arena *a, const char *from, const char **end, const char *begin) {
    size_t n = strlen(begin);
    const char *at = memmem(from, (size_t)(*end - from), begin, n);
    if (!at) return NULL;
    const char *text = arena_strndup(a, at + n, (size_t)(*end - at) - n);
    *end = at;
    return text;
}

/* Cuts the texts for people off the line of a step. */
static PlanTails cut_tails(PlanReader *r, const char *end) {
    Arena *a = r->p.a;
    const char *from = r->p.p;
    while (end > from && strchr(" \r\n", end[-1])) end--;
    cut_tail(a, from, &end, PLAN_INSTANCE); /* the operation's position says it, too */
    PlanTails t = {.note = cut_tail(a, from, &end, "  ; ")};
    cut_tail(a, from, &end, " within "); /* the product says it, too */
    t.spmm = cut_tail(a, from, &end, " spmm ");
    t.call = cut_tail(a, from, &end, " [");
    t.epilogue = cut_tail(a, from, &end, " epilogue ");
    r->p.end = end;
    return t;
}

/* Adds an error; false. */
static bool report(PlanReader *r, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "%s", what);
}

/* ---- what the lexer reads ----------------------------------------------------------------- */
/* Reads the buffers of a step. */
static bool parse_step_bufs(PlanReader *r, int **bufs, int *n) {
    VEC(int) ids = {0};
    if (!parse_expect(&r->p, '(')) return false;
    while (!parse_is(&r->p, ')')) {
        int id = -1;
        if (!plan_parse_buf(r, &id)) return false;
        vec_push(r->p.a, &ids, id);
        if (!parse_accept(&r->p, ',')) break;
    }
    *n = ids.n;
    *bufs = NEWN(r->p.a, int, (size_t)ids.n + 1);
    if (ids.n) memcpy(*bufs, ids.v, (size_t)ids.n * sizeof *ids.v);
    return parse_expect(&r->p, ')');
}

/* Reads a size behind a word. */
static bool parse_size_field(PlanReader *r, const char *name, const Expr **e) {
    if (!parse_accept_word(&r->p, name))
        return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "expected '%s=' and a size", name);
    return parse_expect(&r->p, '=') && parse_expr(&r->p, e);
}

/* Reads the sizes of a matrix product. */
static bool parse_gemm(PlanReader *r, PGemm *g) {
    bool ok =
        parse_size_field(r, "batch", &g->batch) && parse_size_field(r, "m", &g->m) &&
        parse_size_field(r, "n", &g->n) && parse_size_field(r, "k", &g->k) &&
        parse_size_field(r, "a_batch", &g->a_batch) && parse_size_field(r, "a_row", &g->a_row) &&
        parse_size_field(r, "a_col", &g->a_col) && parse_size_field(r, "b_batch", &g->b_batch) &&
        parse_size_field(r, "b_row", &g->b_row) && parse_size_field(r, "b_col", &g->b_col) &&
        parse_size_field(r, "c_batch", &g->c_batch) && parse_size_field(r, "c_row", &g->c_row);
    g->long_k = ok && parse_accept_word(&r->p, "long_k");
    return ok;
}

/* Reads the maps whose numbers of entries divide the kernel's rows among threads. */
static bool parse_balance(PlanReader *r, MapList *maps) {
    do {
        Map *m = NULL;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, maps, m);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the condition of a step. */
static bool parse_condition(PlanReader *r, PStep *s) {
    s->pred_not = parse_accept_word(&r->p, "not");
    return plan_parse_buf(r, &s->pred);
}

/* A kernel that no step has yet. */
static bool kernel(PlanReader *r, LKernel **to) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "the name of what is called", &name)) return false;
    *to = strmap_get(&r->kernels, name);
    if (*to) strmap_put(r->p.a, &r->kernels, name, NULL);
    return *to || parse_fail(&r->p, DIAG_E0542, at,
                             "'%s' is no kernel, or of a step before this one", name);
}

static bool clears(PlanReader *r, PStep *s) {
    PClear *c = s->clear = NEW(r->p.a, PClear);
    int *bufs = NULL;
    if (!kernel(r, &c->kernel) || !parse_step_bufs(r, &bufs, &c->n_bufs)) return false;
    if (c->n_bufs < 1 || c->n_bufs > 2) return report(r, "one operand or two are cleared");
    memcpy(c->bufs, bufs, (size_t)c->n_bufs * sizeof *bufs);
    return true;
}

/* Reads what stands between the kind and the buffers: of a call its function, which the facts name.
 */
static bool parse_subject(PlanReader *r, PStep *s) {
    const char *name = NULL;
    if (s->kind == PS_RELATION) return parse_space(&r->p, &s->space);
    if (s->kind == PS_KERNEL) return kernel(r, &s->kernel);
    return s->kind != PS_CALL || parse_name(&r->p, "the name of what is called", &name);
}

/* Reads the halos of an exchange: a partitioned space, and the index arrays that lead from its
 * local rows to the remote rows that are needed. */
static bool parse_halos(PlanReader *r, PStep *s) {
    do {
        PHalo x = {0};
        if (!parse_space(&r->p, &x.from) || !parse_expect(&r->p, '(')) return false;
        do {
            if (x.n_via == PLAN_HALO_DEPTH_MAX)
                return report(r, "rows are reached through too many arrays");
            if (!plan_parse_buf(r, &x.via[x.n_via++])) return false;
        } while (parse_accept(&r->p, ','));
        if (!parse_expect(&r->p, ')')) return false;
        vec_push(r->p.a, &s->halos, x);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the partitioned space whose local rows a step computes; of an exchange, which remote rows
 * it fetches. */
static bool parse_partition(PlanReader *r, PStep *s) {
    s->partials = parse_accept_word(&r->p, "cuts");
    if (s->partials && !parse_accept_word(&r->p, "of")) return parse_expected(&r->p, "'of'");
    if (!parse_space(&r->p, &s->partition)) return false;
    if (s->kind != PS_EXCHANGE || parse_accept_word(&r->p, "all")) return true;
    s->folds = s->partials && parse_accept_word(&r->p, "sum");
    s->to_first = !s->folds && parse_accept_word(&r->p, "first");
    if (s->folds || s->to_first) return true;
    if (!parse_accept_word(&r->p, "reach")) return parse_expected(&r->p, "'all' or 'reach'");
    return parse_halos(r, s);
}

/* Reads the rest of a step's line. */
static bool parse_step_words(PlanReader *r, PStep *s) {
    int64_t limit = 0;
    if (s->kind == PS_GEMM && !parse_gemm(r, &s->gemm)) return false;
    if (r->p.tok.kind == T_NAME && !strcmp(r->p.tok.s, "over") &&
        !parse_size_field(r, "over", &s->extent))
        return false;
    if (parse_accept_word(&r->p, "balanced") && !parse_balance(r, &s->balance)) return false;
    if (parse_accept_word(&r->p, "limit") && !parse_int(&r->p, "a limit", 1, INT32_MAX, &limit))
        return false;
    s->limit = limit;
    s->recorded = parse_accept_word(&r->p, "recorded");
    s->by_chunk = parse_accept_word(&r->p, "by_chunk");
    if (parse_accept_word(&r->p, "own") && !parse_partition(r, s)) return false;
    if (parse_accept_word(&r->p, "when") && !parse_condition(r, s)) return false;
    if (parse_accept_word(&r->p, "clears") && !clears(r, s)) return false;
    return r->p.tok.kind == T_END || parse_expected(&r->p, "the end of the step");
}

/* Reads a loop over blocks of rows. */
static bool parse_blocks(PlanReader *r) {
    PBlocks b = {0};
    if (!plan_parse_range(r, &b.first, &b.last)) return false;
    if (!parse_accept_word(&r->p, "in") || !parse_accept_word(&r->p, "blocks") ||
        !parse_accept_word(&r->p, "of"))
        return parse_expected(&r->p, "'in blocks of' and a number of rows");
    if (!parse_expr(&r->p, &b.rows)) return false;
    int after = r->ph->blocks.n ? r->ph->blocks.v[r->ph->blocks.n - 1].last : -1;
    if (b.first <= after || b.first != r->ph->steps.n || b.last < b.first)
        return report(r,
                      "a loop over blocks stands before its first step, behind the one before it");
    vec_push(r->p.a, &r->ph->blocks, b);
    return true;
}

bool plan_parse_step(PlanReader *r, const char *end) {
    int kind = 0;
    int64_t number = 0;
    if (r->p.tok.kind == T_NAME && !strcmp(r->p.tok.s, "steps")) return parse_blocks(r);
    PlanTails t = cut_tails(r, end);
    PStep *s = NEW(r->p.a, PStep);
    s->pred = -1;
    s->note = t.note;
    s->span = r->p.tok.span;
    if (!parse_int(&r->p, "the step's number", r->ph->steps.n, r->ph->steps.n, &number) ||
        !parse_expect(&r->p, ':') || !parse_word(&r->p, &text_PStepKind, "a kind of steps", &kind))
        return false;
    s->kind = (PStepKind)kind;
    if (!parse_subject(r, s) || !parse_step_bufs(r, &s->bufs, &s->n_bufs) ||
        !parse_step_words(r, s))
        return false;
    vec_push(r->p.a, &r->ph->steps, s);
    vec_push(r->p.a, &r->tails, t);
    return true;
}

/* ---- what needs all steps of the phase ---------------------------------------------------- */
/* Adds an error about a step; false. */
static bool report_step(PlanReader *r, int i, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->ph->steps.v[i]->span, "step %d: %s", i, what);
}

/* Reads the steps that a product covers: "3 4". */
static bool parse_covers(PlanReader *r, int at, PEpilogue *e, const char *text) {
    int most = e->kind == PE_SUM_A || e->kind == PE_SUM_B ? 2 : 1;
    for (char *end; *text; text = end) {
        long i = strtol(text, &end, 10);
        PStep *s = end > text && i >= 0 && i < r->ph->steps.n ? r->ph->steps.v[i] : NULL;
        if (!s || s->kind != PS_KERNEL || s->covered_by || e->n_covers == most)
            return report_step(r, at, "it covers a step that it cannot");
        s->covered_by = r->ph->steps.v[at];
        e->covers[e->n_covers++] = s;
    }
    if (e->n_covers < most) return report_step(r, at, "it covers too few steps");
    const PStep *end = e->covers[0];
    for (int i = 0; i < end->n_bufs && i < end->kernel->bufs.n; i++)
        if (most == 1 && end->kernel->bufs.v[i]->written) e->out = end->bufs[i];
    if (most == 2) e->out = r->ph->steps.v[at]->bufs[2];
    return e->out >= 0 || report_step(r, at, "it covers a kernel without a result");
}

/* Reads the epilogue of a product. */
static bool parse_epilogue(PlanReader *r, int at, const char *text) {
    PEpilogue *e = r->ph->steps.v[at]->epilogue = NEW(r->p.a, PEpilogue);
    *e = (PEpilogue){.side = -1, .out = -1};
    bool none = !strncmp(text, "none: ", 6);
    if (none) e->why_not = text + 6;
    if (none) return true;
    const char *of = strstr(text, ", for ");
    if (!of) return report_step(r, at, "an epilogue says of which steps it is: ', for 3'");
    const char *what = arena_strndup(r->p.a, text, (size_t)(of - text)), *side = strstr(what, ", ");
    const PBuf *b = side ? strmap_get(&r->bufs, side + 2) : NULL;
    size_t n = side ? (size_t)(side - what) : strlen(what);
    int kind = text_find(&text_PEpilogueKind, what, n);
    if (kind <= PE_NONE || (kind != PE_RELU) != (b != NULL))
        return report_step(r, at, "there is no such epilogue, or no such buffer");
    e->kind = (PEpilogueKind)kind;
    e->side = b ? b->id : -1;
    return parse_covers(r, at, e, of + 6);
}

/* Makes a group of the products first .. last, which one call makes; equal: all have one shape. */
static bool set_group(PlanReader *r, int at, int first, int last, bool same_shape) {
    PPhase *ph = r->ph;
    if (first < 0 || last <= first || last >= ph->steps.n || at < first || at > last)
        return report_step(r, at, "a group has two steps or more, and it is one of them");
    if (at > first) {
        PGroup *g = ph->steps.v[first]->group;
        bool in = g && at - first < g->steps.n && g->steps.v[at - first] == ph->steps.v[at];
        return in || report_step(r, at, "its group is another one");
    }
    PGroup *g = NEW(r->p.a, PGroup);
    g->same_shape = same_shape;
    for (int i = first; i <= last; i++) {
        if (ph->steps.v[i]->kind != PS_GEMM || ph->steps.v[i]->group)
            return report_step(r, i, "a group is of products, each in one");
        ph->steps.v[i]->group = g;
        vec_push(r->p.a, &g->steps, ph->steps.v[i]);
    }
    return true;
}

/* Reads `group 3..5, of one shape]` or `alone: why (with 3)]`. */
static bool parse_call_note(PlanReader *r, int at, const char *text) {
    PStep *s = r->ph->steps.v[at];
    size_t n = strlen(text);
    int first = 0, last = 0;
    if (!n || text[n - 1] != ']') return report_step(r, at, "']' is missing");
    if (sscanf(text, "group %9d..%9d", &first, &last) == 2)
        return set_group(r, at, first, last, strstr(text, "of one shape") != NULL);
    if (strncmp(text, "alone: ", 7) != 0)
        return report_step(r, at, "a product is in a group, or alone");
    const char *with = strstr(text, " (with ");
    s->separate_because = arena_strndup(r->p.a, text + 7, with ? (size_t)(with - text) - 7 : n - 8);
    if (!with) return true;
    if (sscanf(with, " (with %9d", &first) != 1 || first < 0 || first >= r->ph->steps.n)
        return report_step(r, at, "there is no such step");
    s->separate_from = r->ph->steps.v[first];
    return true;
}

/* Reads whether the library may do a sparse product; the facts say the rest. */
static bool parse_spmm_note(PlanReader *r, int at, const char *text) {
    PSpmm *x = r->ph->steps.v[at]->spmm = NEW(r->p.a, PSpmm); /* the facts say the rest */
    x->index = -1;
    if (!strncmp(text, "none: ", 6)) x->why_not = text + 6;
    if (x->why_not) return true;
    bool next = sscanf(text, "%9d", &x->index) == 1 && x->index == r->n_spmm++;
    return next || report_step(r, at, "sparse products are numbered from 0 on");
}

/* Lets the ends of loops refer to each other's positions. */
static bool match_loops(PlanReader *r) {
    VEC(int) open = {0};
    PPhase *ph = r->ph;
    for (int i = 0; i < ph->steps.n; i++) {
        if (ph->steps.v[i]->kind == PS_LOOP) vec_push(r->p.a, &open, i);
        if (ph->steps.v[i]->kind != PS_END) continue;
        if (!open.n) return report_step(r, i, "no loop is open");
        ph->steps.v[i]->other = open.v[--open.n];
        ph->steps.v[open.v[open.n]]->other = i;
    }
    return !open.n || report_step(r, open.v[open.n - 1], "the loop has no end");
}

/* Finds the loop over blocks that each local temporary belongs to. */
static bool find_blocks(PlanReader *r) {
    PPhase *ph = r->ph;
    if (ph->blocks.n && ph->blocks.v[ph->blocks.n - 1].last >= ph->steps.n)
        return report_step(r, ph->steps.n - 1, "the last loop over blocks goes on");
    for (int i = 0; i < ph->blocks.n; i++)
        for (int k = ph->blocks.v[i].first; k <= ph->blocks.v[i].last; k++)
            for (int j = 0; j < ph->steps.v[k]->n_bufs; j++) {
                PBuf *b = r->plan->bufs.v[ph->steps.v[k]->bufs[j]];
                if (b->block >= 0) b->block = i;
            }
    return true;
}

bool plan_parse_match(PlanReader *r) {
    for (int i = 0; i < r->ph->steps.n; i++) {
        const PlanTails *t = &r->tails.v[i];
        const PStep *s = r->ph->steps.v[i];
        bool product = s->kind == PS_GEMM && s->n_bufs == 3;
        if ((t->epilogue || t->call) && !product) return report_step(r, i, "it is no product");
        if (t->spmm && !s->kernel) return report_step(r, i, "it is no kernel");
        if ((t->epilogue && !parse_epilogue(r, i, t->epilogue)) ||
            (t->call && !parse_call_note(r, i, t->call)) ||
            (t->spmm && !parse_spmm_note(r, i, t->spmm)))
            return false;
    }
    r->tails.n = 0;
    return match_loops(r) && find_blocks(r);
}
