/* Host effects go where they interrupt nothing: to the end of the step, or, where later
 * operations need what they give, to its start.
 *
 *     %s = reduce sum %x                %s = reduce sum %x
 *     print "sum" %s            ->      %y = exp %x
 *     %y = exp %x                       output "y" %y
 *     output "y" %y                     print "sum" %s
 *
 * They keep their order.  A value is SSA and a `var` is its value at the start of the step, so
 * an effect sees the same wherever it stands; what a failing `assert` stops is then a finished
 * step.  What cannot move is told with its reason, by --report=breaks from the plan.  TorchDynamo
 * breaks the graph at each of these (Ansel et al., PyTorch 2, ASPLOS 2024, section 3.7). */
#include "passes/rewrite.h"

/* Whether the host executes the operation. */
static bool is_host_effect(const Op *op) {
    return op->kind == OP_PRINT || op->kind == OP_ASSERT || op->kind == OP_CALL_EFFECT;
}

/* Whether the operation is device work: a step of its own. */
static bool is_work(const Op *op) {
    return op_has(op, OPT_PURE) && !op_has(op, OPT_SOURCE) && op->n_in > 0;
}

/* The position of an operation. A moved operation takes the position of the one it is moved before.
 */
typedef struct {
    int place;      /* its number when the first one moved */
    int work;       /* how much work is before it */
    Op *first_user; /* but for effects, which follow in their order anyway */
} Place;

typedef struct {
    Place *place; /* by op id; the last one: the end */
    int n;
} Places;

/* The position of an operation; NULL: the end. */
static Place *place_of(const Places *p, const Op *op) {
    return &p->place[op ? op->id : p->n];
}

/* Finds the position of each operation and its first user. */
static Places find_places(Arena *a, Func *f) {
    func_number(f);
    Places p = {.place = NEWN(a, Place, (size_t)f->n_ops + 1), .n = f->n_ops};
    int work = 0;
    for (Op *op = f->first; op; op = op->next) {
        p.place[op->id] = (Place){.place = op->id, .work = work};
        work += is_work(op);
        for (int i = 0; i < op->n_in && !is_host_effect(op); i++) {
            Op **first = &p.place[op->in[i]->id].first_user;
            if (!*first) *first = op;
        }
    }
    p.place[p.n] = (Place){.place = p.n, .work = work};
    return p;
}

/* Records that an effect was moved. */
static void report_moved(PassCtx *p, Module *m, const Op *op, const char *where) {
    const char *what = op->kind == OP_CALL_EFFECT ? op->ext->name : op_mnemonic(op->kind);
    const char *text = arena_printf(m->a, "%s is moved to the %s of the step", what, where);
    module_note(m, op->func, op->span, false, text);
    pass_remark(p, op->span, "graph-break-elimination", "%s", text);
}

/* Moves effects to the end of the step, from the last to the first: as late as the next effect and
 * the first user allow. */
static void sink_effects(PassCtx *p, Module *m, Func *f) {
    const Places places = find_places(p->a, f);
    Op *limit = NULL;
    for (Op *op = f->last, *prev; op; op = prev) {
        prev = op->prev;
        if (op->kind == OP_LOOP && op_acts(op)) limit = op; /* what it does keeps its place */
        if (!is_host_effect(op)) continue;
        if (op->tag) return; /* this one and those before it stand at the start */
        Place *place = place_of(&places, op);
        Op *to = place->first_user;
        if (!to || place_of(&places, to)->place >= place_of(&places, limit)->place) to = limit;
        if (to && to != limit && place_of(&places, NULL)->work > place_of(&places, to)->work)
            pass_refusal(p, op->span, "graph-break-elimination",
                         "%s interrupts the step: '%s' needs what it gives",
                         op->kind == OP_CALL_EFFECT ? op->ext->name : op_mnemonic(op->kind),
                         pass_named(to));
        if (to != op->next) {
            bool matters = place_of(&places, to)->work > place->work;
            place->place = place_of(&places, to)->place;
            place->work = place_of(&places, to)->work;
            op_move_before(op, to);
            if (matters)
                report_moved(p, m, op, to && to != limit ? "place where it is needed" : "end");
        }
        limit = op;
    }
}

/* Whether an operand is computed in this step. Tagged operations stand at the start. */
static bool depends_on_step(const Op *op) {
    for (int i = 0; i < op->n_in; i++) {
        const Op *x = op->in[i];
        if (!op_has(x, OPT_SOURCE) && x->kind != OP_CONST && !x->tag) return true;
    }
    return false;
}

/* The first device work of the function. */
static Op *first_work(const Func *f) {
    Op *op = f->first;
    while (op && !is_work(op)) op = op->next;
    return op;
}

/* Moves effects to the start of the step, from the first on, as long as they do not depend on its
 * work. */
static void hoist_effects(PassCtx *p, Module *m, Func *f) {
    Op *at = first_work(f);
    func_number(f);
    for (Op *op = f->first, *next; at && op; op = next) {
        next = op->next;
        if (!is_host_effect(op)) continue;
        if (depends_on_step(op)) return;
        op->tag = op;
        if (op->id < at->id) continue;
        for (int i = 0; i < op->n_in; i++) {
            if (op->in[i]->tag || op->in[i]->id < at->id) continue;
            op_move_before(op->in[i], at);
            op->in[i]->tag = op;
        }
        op_move_before(op, at);
        report_moved(p, m, op, "start");
    }
}

/* Whether an operand is the result of an effect. */
static bool reads_an_effect(const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i]->kind == OP_CALL_EFFECT) return true;
    return false;
}

/* Whether the step computes with an effect's result. Outputs of results are moved to the end. */
static bool uses_effect_results(Func *f) {
    bool used = false;
    for (Op *op = f->first, *next, *last = f->last; op; op = op == last ? NULL : next) {
        next = op->next;
        if (!reads_an_effect(op)) continue;
        if (op->kind == OP_OUTPUT)
            op_move_before(op, NULL);
        else
            used = true;
    }
    return used;
}

/* Runs the pass: moves effects of the host (prints, assertions, calls) to the start or end of each
 * function, so that no effect interrupts the device's work. */
static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        if (uses_effect_results(f)) hoist_effects(p, m, f);
        sink_effects(p, m, f);
    }
    return true;
}

const Pass pass_graph_break_elimination = {
    .name = "graph-break-elimination",
    .summary = "move host effects to the end or the start of the step",
    .needs = IR_TYPED,
    .run = run,
};
