/* What a plan's text says behind the steps (plan_facts.c): what each is for, and the whole plan. */
#include "codegen/plan/plan_text.h"
#include "codegen/target.h"

#include <stdlib.h>
#include <string.h>

/* Adds an error; false. */
static bool report(PlanReader *r, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "%s", what);
}

/* ---- operations --------------------------------------------------------------------------- */
/* The names of a function's values. */
static const ParseNames *names_of(const PlanReader *r, const Func *f) {
    for (int i = 0; i < r->names.n; i++)
        if (r->names.v[i].f == f) return &r->names.v[i];
    return NULL;
}

/* The op with this number, or NULL. */
static Op *op_by_id(const Func *f, int64_t n) {
    Op *op = f->first;
    while (op && op->id != n) op = op->next;
    return op;
}

/* Reads an op. */
static bool parse_op(PlanReader *r, const Op **op) {
    const Func *f = r->ph->func;
    int64_t n = 0;
    Span at = r->p.tok.span;
    *op = NULL;
    if (r->p.tok.kind == T_FUNC) {
        f = func_find(r->p.m, r->p.tok.s);
        if (!f) return report(r, "there is no such function");
        parse_lex_next(&r->p);
    }
    if (parse_accept_word(&r->p, "op")) {
        if (!parse_int(&r->p, "an operation's number", 0, INT32_MAX, &n)) return false;
        *op = op_by_id(f, n);
    } else if (r->p.tok.kind == T_VALUE) {
        const ParseNames *names = names_of(r, f);
        *op = names ? strmap_get(&names->values, r->p.tok.s) : NULL;
        parse_lex_next(&r->p);
    } else {
        return parse_expected(&r->p, "an operation, as '%h' or 'op 12'");
    }
    return *op || parse_fail(&r->p, DIAG_E0542, at, "@%s has no such operation", f->name);
}

/* Reads an op, or "-" for none. */
static bool parse_op_or_none(PlanReader *r, const Op **op) {
    *op = NULL;
    return parse_accept(&r->p, '-') || parse_op(r, op);
}

/* ---- kernels ------------------------------------------------------------------------------ */
/* Reads the values of a kernel's arguments. */
static bool parse_args(PlanReader *r, LKernel *k) {
    if (!parse_accept_word(&r->p, "args") || !parse_expect(&r->p, '('))
        return parse_expected(&r->p, "'args' and the values of the kernel's arguments");
    for (int i = 0; i < k->bufs.n; i++) {
        LBuf *b = k->bufs.v[i];
        if (i && !parse_expect(&r->p, ',')) return false;
        if (!parse_op_or_none(r, &b->value)) return false;
        if (parse_accept_word(&r->p, "was") && !parse_op(r, &b->value_before)) return false;
    }
    return parse_expect(&r->p, ')');
}

/* Reads the values that a kernel computes. */
static bool parse_computes(PlanReader *r, LKernel *k) {
    if (!parse_accept_word(&r->p, "computes") || !parse_expect(&r->p, '('))
        return parse_expected(&r->p, "'computes' and the values that the kernel computes");
    while (!parse_is(&r->p, ')')) {
        const Op *op = NULL;
        if (!parse_op(r, &op)) return false;
        vec_push(r->p.a, &k->computes, op);
        if (!parse_accept(&r->p, ',')) break;
    }
    return parse_expect(&r->p, ')');
}

/* Runs of statements, with the source position of each. */
typedef struct {
    PlanReader *r;
    int64_t remaining;
    bool is_known;
    Span at;
    bool ok;
} PositionRuns;

/* Reads the next run. */
static bool parse_run(PositionRuns *l) {
    PlanReader *r = l->r;
    l->at = (Span){0};
    if (!parse_int(&r->p, "a number of statements", 1, INT32_MAX, &l->remaining)) return false;
    l->is_known = parse_is(&r->p, '!');
    if (!parse_span(&r->p, &l->at)) return false;
    parse_accept(&r->p, ',');
    return true;
}

/* Reads the positions of statements. */
static void parse_positions(PositionRuns *l, LStmt *s) {
    for (; s && l->ok; s = s->next) {
        bool has = loop_has_place(s);
        if (has && !l->remaining && !parse_run(l)) l->ok = false;
        if (!l->ok) return;
        if (has && l->is_known) s->span = l->at;
        l->remaining -= has;
        parse_positions(l, s->body);
    }
}

/* Gives the stages of a kernel its values. */
static void set_stage_values(const LKernel *k) {
    for (int i = 0; i < k->stages.n; i++) {
        LKernel *stage = k->stages.v[i];
        stage->computes = k->computes;
        stage->span = k->span;
        for (int b = 0; b < k->bufs.n; b++) {
            stage->bufs.v[b]->value = k->bufs.v[b]->value;
            stage->bufs.v[b]->value_before = k->bufs.v[b]->value_before;
        }
    }
}

/* Reads what a kernel is for. */
static bool parse_kernel_facts(PlanReader *r, PStep *s) {
    PositionRuns l = {.r = r, .ok = true};
    if (!parse_args(r, s->kernel) || !parse_computes(r, s->kernel)) return false;
    if (!parse_accept_word(&r->p, "at") || !parse_expect(&r->p, '('))
        return parse_expected(&r->p, "'at' and where the kernel's statements come from");
    parse_positions(&l, s->kernel->body);
    for (int i = 0; i < s->kernel->stages.n; i++) parse_positions(&l, s->kernel->stages.v[i]->body);
    if (!l.ok) return false;
    s->kernel->span = s->op->span;
    set_stage_values(s->kernel);
    return l.remaining ? report(r, "the kernel has fewer statements") : parse_expect(&r->p, ')');
}

/* ---- sparse products ---------------------------------------------------------------------- */
/* Reads "word=". */
static bool parse_key(PlanReader *r, const char *word) {
    bool ok = parse_accept_word(&r->p, word);
    return ok ? parse_expect(&r->p, '=')
              : parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "expected '%s='", word);
}

/* Reads a buffer behind a word. */
static bool parse_buf_field(PlanReader *r, const char *word, int *id) {
    *id = -1;
    return parse_key(r, word) && (parse_accept(&r->p, '-') || plan_parse_buf(r, id));
}

/* Reads a size behind a word. */
static bool parse_size_field(PlanReader *r, const char *word, const Expr **e) {
    return parse_key(r, word) && parse_expr(&r->p, e);
}

/* Reads a sparse product. */
static bool parse_spmm(PlanReader *r, PSpmm *x) {
    if (!parse_accept_word(&r->p, "product")) return parse_expected(&r->p, "'product'");
    bool ok = parse_buf_field(r, "ptr", &x->ptr) && parse_buf_field(r, "idx", &x->idx) &&
              parse_buf_field(r, "perm", &x->perm) && parse_buf_field(r, "weight", &x->weight) &&
              parse_buf_field(r, "dense", &x->dense) && parse_buf_field(r, "out", &x->out) &&
              parse_size_field(r, "rows", &x->rows) && parse_size_field(r, "cols", &x->cols) &&
              parse_size_field(r, "entries", &x->entries) &&
              parse_size_field(r, "width", &x->width) &&
              parse_size_field(r, "own", &x->own_bytes) &&
              parse_size_field(r, "library", &x->library_bytes);
    x->has_rest = ok && parse_accept_word(&r->p, "more");
    bool needed = x->ptr >= 0 && x->idx >= 0 && x->dense >= 0 && (x->index < 0 || x->out >= 0);
    return ok && (needed || report(r, "a sparse product lacks a buffer"));
}

/* ---- steps -------------------------------------------------------------------------------- */
/* Whether the op may need a copy. */
static bool is_copied(const Op *op) {
    return op->kind == OP_OUTPUT || op->kind == OP_ASSIGN || op->kind == OP_NEXT ||
           op->kind == OP_LOOP;
}

/* Whether a step of this kind can be for the op. */
static bool may_be_for(const PStep *s, const Op *op) {
    switch (s->kind) {
    case PS_KERNEL:
        return op->type.dt != DT_VOID || op->n_in;
    case PS_GEMM:
        return op->kind == OP_CONTRACT && s->n_bufs == 3;
    case PS_RANK:
        return op->kind == OP_RANK && s->n_bufs == 3;
    case PS_RELATION:
        return op->kind == OP_OUTPUT && s->n_bufs == 1 && s->space->kind == SP_EDGE;
    case PS_COPY:
        return is_copied(op) && s->n_bufs == 2;
    case PS_CALL:
        return op->ext != NULL;
    case PS_LOOP:
    case PS_END:
        return op->kind == OP_LOOP && s->n_bufs == 1;
    case PS_PRINT:
        return op->kind == OP_PRINT;
    case PS_ASSERT:
        return op->kind == OP_ASSERT && s->n_bufs == 1;
    case PS_EXCHANGE:
        return s->n_bufs == 1 && s->partition;
    }
    return false;
}

/* Sets what the op says of the step. */
static bool set_from_op(PlanReader *r, PStep *s) {
    const Op *op = s->op;
    s->span = op->span;
    if (s->kind == PS_RANK) s->rank_axis = type_find(&op->in[0]->type, op->over[0]);
    if (s->kind == PS_PRINT || s->kind == PS_ASSERT) s->text = op->name;
    if (s->kind != PS_CALL) return true;
    int n = plan_call_types(r->p.a, op, &s->types, &s->n_in);
    return s->n_bufs == n || report(r, "the call has another number of buffers");
}

/* Reads what a step is for. */
static bool parse_step_facts(PlanReader *r) {
    int64_t i = 0;
    if (!parse_int(&r->p, "a step's number", 0, r->ph->steps.n - 1, &i)) return false;
    PStep *s = r->ph->steps.v[i];
    Span at = r->p.tok.span;
    if (s->op) return report(r, "this step was told of before");
    if (!parse_expect(&r->p, ':') || !parse_op(r, &s->op)) return false;
    if (!may_be_for(s, s->op))
        return parse_fail(&r->p, DIAG_E0542, at, "no step of its kind is for a '%s'",
                          op_mnemonic(s->op->kind));
    if (!set_from_op(r, s)) return false;
    if (parse_accept_word(&r->p, "decided") && !parse_span(&r->p, &s->pred_at)) return false;
    if (s->kernel && !parse_kernel_facts(r, s)) return false;
    return !s->spmm || parse_spmm(r, s->spmm);
}

bool plan_parse_facts(PlanReader *r) {
    while (!parse_is(&r->p, '}'))
        if (!parse_step_facts(r)) return false;
    return true;
}

/* ---- the whole plan ----------------------------------------------------------------------- */
/* Reads the flags of the plan: which passes it has been through. */
static bool parse_plan_flags(PlanReader *r) {
    int bit = 0;
    uint32_t line = r->p.prev_line;
    while (r->p.tok.kind == T_NAME && r->p.tok.span.line == line) {
        if (!parse_word(&r->p, &plan_fact_words, "what holds of the plan", &bit)) return false;
        r->plan->flags |= 1u << bit;
    }
    return true;
}

/* Reads the order of the module's maps, which the text of the module does not show. */
static bool parse_map_order(PlanReader *r) {
    MapList all = {0};
    do {
        Map *m = NULL;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, &all, m);
    } while (parse_accept(&r->p, ','));
    return module_order_maps(r->p.m, all.n, all.v) || report(r, "a map stands twice in this list");
}

/* Reads the fingerprint. */
static bool parse_fingerprint(PlanReader *r) {
    const char *text = NULL;
    char *end = NULL;
    if (!parse_text(&r->p, "16 digits in quotes", &text)) return false;
    r->plan->fingerprint = strtoull(text, &end, 16);
    return !*end || report(r, "this is no fingerprint");
}

/* Reads a field of the plan. */
static bool parse_plan_field(PlanReader *r) {
    Plan *p = r->plan;
    int word = 0;
    if (parse_accept_word(&r->p, "device")) {
        if (!parse_text(&r->p, "a device in quotes", &p->device)) return false;
        const Target *on = target_find(p->device);
        return (on && on->plan_passes) || report(r, "there is no such device");
    }
    if (parse_accept_word(&r->p, "arranged")) {
        if (!parse_text(&r->p, "a target in quotes", &p->scheduled_for)) return false;
        return target_find(p->scheduled_for) || report(r, "there is no such target");
    }
    if (parse_accept_word(&r->p, "host")) return p->with_host = true;
    if (parse_accept_word(&r->p, "tf32")) return p->tf32 = true;
    if (parse_accept_word(&r->p, "by_parts")) return p->partitioned = true;
    if (parse_accept_word(&r->p, "options"))
        return parse_text(&r->p, "options in quotes", &p->options);
    if (parse_accept_word(&r->p, "name")) return parse_text(&r->p, "a name", &p->c_name);
    if (parse_accept_word(&r->p, "fingerprint")) return parse_fingerprint(r);
    if (parse_accept_word(&r->p, "has")) return parse_plan_flags(r);
    if (parse_accept_word(&r->p, "maps")) return parse_map_order(r);
    if (!parse_accept_word(&r->p, "spmm")) return parse_expected(&r->p, "a fact of the plan");
    if (!parse_word(&r->p, &plan_spmm_words, "own, auto or cusparse", &word)) return false;
    p->spmm = (SpmmChoice)word;
    return true;
}

bool plan_parse_header(PlanReader *r) {
    while (!parse_is(&r->p, '}'))
        if (!parse_plan_field(r)) return false;
    r->plan->with_host |= !r->plan->device;
    return true;
}
