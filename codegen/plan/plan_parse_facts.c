/* What a plan's text says behind the steps (plan_facts.c): what each is for, and the whole plan. */
#include "codegen/plan/plan_text.h"
#include "codegen/target.h"

#include <stdlib.h>
#include <string.h>

/* Adds an error at the current token; returns false. */
static bool fact_error(PlanReader *r, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "%s", what);
}

/* ---- operations --------------------------------------------------------------------------- */
/* The values of a function by the names that the module's text gives them. */
static const ParseNames *value_names_of(const PlanReader *r, const Func *f) {
    for (int i = 0; i < r->names.n; i++)
        if (r->names.v[i].f == f) return &r->names.v[i];
    return NULL;
}

/* The op of the function with this number; NULL = there is none. */
static Op *op_by_id(const Func *f, int64_t n) {
    Op *op = f->first;
    while (op && op->id != n) op = op->next;
    return op;
}

/* Reads an op: "%h" by name or "op 12" by number, in the phase's function or in one named before
 * it, "@f %h". */
static bool parse_op(PlanReader *r, const Op **op) {
    const Func *f = r->ph->func;
    int64_t n = 0;
    Span at = r->p.tok.span;
    *op = NULL;
    if (r->p.tok.kind == T_FUNC) {
        f = func_find(r->p.m, r->p.tok.s);
        if (!f) return fact_error(r, "there is no such function");
        parse_lex_next(&r->p);
    }
    if (parse_accept_word(&r->p, "op")) {
        if (!parse_int(&r->p, "an operation's number", 0, INT32_MAX, &n)) return false;
        *op = op_by_id(f, n);
    } else if (r->p.tok.kind == T_VALUE) {
        const ParseNames *names = value_names_of(r, f);
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
/* Reads which values the kernel's arguments hold, and which they held before the kernel ("was"). */
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

/* Reads the list of values that a kernel computes. */
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

/* Reads how many statements come from one position of the model, and that position. */
static bool parse_position_run(PositionRuns *run) {
    PlanReader *r = run->r;
    run->at = (Span){0};
    if (!parse_int(&r->p, "a number of statements", 1, INT32_MAX, &run->remaining)) return false;
    run->is_known = parse_is(&r->p, '!');
    if (!parse_span(&r->p, &run->at)) return false;
    parse_accept(&r->p, ',');
    return true;
}

/* Gives each statement of the list its source position; its own in the text is kept. */
static void parse_positions(PositionRuns *run, LStmt *s) {
    for (; s && run->ok; s = s->next) {
        bool has_position = loop_has_place(s);
        if (!s->text_line) s->text_line = s->span.line;
        if (has_position && !run->remaining && !parse_position_run(run)) run->ok = false;
        if (!run->ok) return;
        if (has_position && run->is_known) s->span = run->at;
        run->remaining -= has_position;
        parse_positions(run, s->body);
    }
}

/* Gives the stages of a kernel the kernel's values, position and arguments. */
static void set_stage_values(const LKernel *k) {
    for (int i = 0; i < k->stages.n; i++) {
        LKernel *stage = k->stages.v[i];
        stage->computes = k->computes;
        stage->in_text = span_or(stage->in_text, stage->span);
        stage->span = k->span;
        for (int b = 0; b < k->bufs.n; b++) {
            stage->bufs.v[b]->value = k->bufs.v[b]->value;
            stage->bufs.v[b]->value_before = k->bufs.v[b]->value_before;
        }
    }
}

/* Reads what a kernel computes, and where its statements come from. */
static bool parse_kernel_facts(PlanReader *r, PStep *s) {
    PositionRuns run = {.r = r, .ok = true};
    if (!parse_args(r, s->kernel) || !parse_computes(r, s->kernel)) return false;
    if (!parse_accept_word(&r->p, "at") || !parse_expect(&r->p, '('))
        return parse_expected(&r->p, "'at' and where the kernel's statements come from");
    parse_positions(&run, s->kernel->body);
    for (int i = 0; i < s->kernel->stages.n; i++)
        parse_positions(&run, s->kernel->stages.v[i]->body);
    if (!run.ok) return false;
    s->kernel->in_text = span_or(s->kernel->in_text, s->kernel->span);
    s->kernel->span = s->op->span;
    set_stage_values(s->kernel);
    return run.remaining ? fact_error(r, "the kernel has fewer statements")
                         : parse_expect(&r->p, ')');
}

/* ---- sparse products ---------------------------------------------------------------------- */
/* Reads "word=". False after a diagnostic. */
static bool parse_key(PlanReader *r, const char *word) {
    bool ok = parse_accept_word(&r->p, word);
    return ok ? parse_expect(&r->p, '=')
              : parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "expected '%s='", word);
}

/* Reads "word=BUFFER", or "word=-" for none (-1). */
static bool parse_buf_field(PlanReader *r, const char *word, int *id) {
    *id = -1;
    return parse_key(r, word) && (parse_accept(&r->p, '-') || plan_parse_buf(r, id));
}

/* Reads "word=SIZE". */
static bool parse_size_field(PlanReader *r, const char *word, const Expr **e) {
    return parse_key(r, word) && parse_expr(&r->p, e);
}

/* Reads the operands and sizes of a sparse-dense matrix product that a library may do. */
static bool parse_spmm(PlanReader *r, PSpmm *product) {
    if (!parse_accept_word(&r->p, "product")) return parse_expected(&r->p, "'product'");
    bool ok =
        parse_buf_field(r, "ptr", &product->ptr) && parse_buf_field(r, "idx", &product->idx) &&
        parse_buf_field(r, "perm", &product->perm) &&
        parse_buf_field(r, "weight", &product->weight) &&
        parse_buf_field(r, "dense", &product->dense) && parse_buf_field(r, "out", &product->out) &&
        parse_size_field(r, "rows", &product->rows) &&
        parse_size_field(r, "cols", &product->cols) &&
        parse_size_field(r, "entries", &product->entries) &&
        parse_size_field(r, "width", &product->width) &&
        parse_size_field(r, "own", &product->own_bytes) &&
        parse_size_field(r, "library", &product->library_bytes);
    product->has_rest = ok && parse_accept_word(&r->p, "more");
    bool is_complete = product->ptr >= 0 && product->idx >= 0 && product->dense >= 0 &&
                       (product->index < 0 || product->out >= 0);
    return ok && (is_complete || fact_error(r, "a sparse product lacks a buffer"));
}

/* ---- steps -------------------------------------------------------------------------------- */
/* Whether a copy step can be for the op. */
static bool is_copied(const Op *op) {
    return op->kind == OP_OUTPUT || op->kind == OP_ASSIGN || op->kind == OP_NEXT ||
           op->kind == OP_LOOP;
}

/* Whether a step of this kind can be for the op. */
static bool step_kind_fits_op(const PStep *s, const Op *op) {
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

/* Sets the fields of the step that follow from its op: position, text, axis, argument types. */
static bool set_fields_from_op(PlanReader *r, PStep *s) {
    const Op *op = s->op;
    s->span = op->span;
    if (s->kind == PS_RANK) s->rank_axis = type_find(&op->in[0]->type, op->over[0]);
    if (s->kind == PS_PRINT || s->kind == PS_ASSERT) s->text = op->name;
    if (s->kind != PS_CALL) return true;
    int n = plan_call_types(r->p.a, op, &s->types, &s->n_in);
    return s->n_bufs == n || fact_error(r, "the call has another number of buffers");
}

/* Reads which op a step is for, and what its kernel or product computes. */
static bool parse_step_facts(PlanReader *r) {
    int64_t i = 0;
    if (!parse_int(&r->p, "a step's number", 0, r->ph->steps.n - 1, &i)) return false;
    PStep *s = r->ph->steps.v[i];
    Span at = r->p.tok.span;
    if (s->op) return fact_error(r, "this step was told of before");
    if (!parse_expect(&r->p, ':') || !parse_op(r, &s->op)) return false;
    if (!step_kind_fits_op(s, s->op))
        return parse_fail(&r->p, DIAG_E0542, at, "no step of its kind is for a '%s'",
                          op_mnemonic(s->op->kind));
    if (!set_fields_from_op(r, s)) return false;
    if (parse_accept_word(&r->p, "decided") && !parse_span(&r->p, &s->pred_at)) return false;
    if (s->kernel && !parse_kernel_facts(r, s)) return false;
    return !s->spmm || parse_spmm(r, s->spmm);
}

/* Reads the section "facts" of a phase: a line for each step. */
bool plan_parse_facts(PlanReader *r) {
    while (!parse_is(&r->p, '}'))
        if (!parse_step_facts(r)) return false;
    return true;
}

/* ---- fusions ------------------------------------------------------------------------------ */
/* Reads the values of a fusion, "%h, %s". */
static bool parse_roots(PlanReader *r, PFusion *f) {
    do {
        const Op *op = NULL;
        if (!parse_op(r, &op)) return false;
        vec_push(r->p.a, &f->roots, op);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the buffers of a fusion, "train_h_3, -". */
static bool parse_fusion_bufs(PlanReader *r, PFusion *f) {
    VEC(int) ids = {0};
    do {
        int id = -1;
        if (!parse_accept(&r->p, '-') && !plan_parse_buf(r, &id)) return false;
        vec_push(r->p.a, &ids, id);
    } while (parse_accept(&r->p, ','));
    f->n_bufs = ids.n;
    f->bufs = ids.v;
    return true;
}

/* Reads fusions up to the closing brace of the list. */
static bool parse_fusion_list(PlanReader *r, PFusions *list, int depth) {
    enum { DEPTH_MAX = 100 };
    if (depth > DEPTH_MAX) return fact_error(r, "loops are in too many others");
    while (!parse_is(&r->p, '}')) {
        PFusion *f = NEW(r->p.a, PFusion);
        int kind = 0;
        f->in_text = r->p.tok.span;
        if (!parse_word(&r->p, &plan_fusion_words, "a kind of fusions", &kind)) return false;
        f->kind = (PFusionKind)kind;
        if (!parse_roots(r, f)) return false;
        if (parse_accept_word(&r->p, "in") && !parse_fusion_bufs(r, f)) return false;
        vec_push(r->p.a, list, f);
        if (f->kind != PF_LOOP) continue;
        if (!parse_expect(&r->p, '{') || !parse_fusion_list(r, &f->body, depth + 1) ||
            !parse_expect(&r->p, '}'))
            return false;
    }
    return true;
}

/* Reads the section "fusions" of a phase. */
bool plan_parse_fusions(PlanReader *r) {
    if (r->ph->fusions.n || r->ph->steps.n)
        return fact_error(r, "a phase has one list of fusions, or steps");
    return parse_fusion_list(r, &r->ph->fusions, 0);
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

/* Reads the order of the module's maps, which the module's text does not show. */
static bool parse_map_order(PlanReader *r) {
    MapList maps = {0};
    do {
        Map *m = NULL;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, &maps, m);
    } while (parse_accept(&r->p, ','));
    return module_order_maps(r->p.m, maps.n, maps.v) ||
           fact_error(r, "a map stands twice in this list");
}

/* Reads the hash of what is computed, 16 hexadecimal digits. */
static bool parse_fingerprint(PlanReader *r) {
    const char *text = NULL;
    char *end = NULL;
    if (!parse_text(&r->p, "16 digits in quotes", &text)) return false;
    r->plan->fingerprint = strtoull(text, &end, 16);
    return !*end || fact_error(r, "this is no fingerprint");
}

/* Reads one field of the section "plan", such as the device, the options or a flag. False after a
 * diagnostic. */
static bool parse_plan_field(PlanReader *r) {
    Plan *p = r->plan;
    int choice = 0;
    if (parse_accept_word(&r->p, "device")) {
        if (!parse_text(&r->p, "a device in quotes", &p->device)) return false;
        const Target *target = target_find(p->device);
        return (target && target->plan_passes) || fact_error(r, "there is no such device");
    }
    if (parse_accept_word(&r->p, "arranged")) {
        if (!parse_text(&r->p, "a target in quotes", &p->scheduled_for)) return false;
        return target_find(p->scheduled_for) || fact_error(r, "there is no such target");
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
    if (!parse_word(&r->p, &plan_spmm_words, "own, auto or cusparse", &choice)) return false;
    p->spmm = (SpmmChoice)choice;
    return true;
}

/* Reads the section "plan": device, options and flags of the whole plan. */
bool plan_parse_header(PlanReader *r) {
    while (!parse_is(&r->p, '}'))
        if (!parse_plan_field(r)) return false;
    r->plan->with_host |= !r->plan->device;
    return true;
}
