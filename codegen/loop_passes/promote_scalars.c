/* A number of a row that its entries are added up to in memory, for each of the 64 parts of a long
 * sum: in a register, and stored when the row is done, so that a team can have the entries.
 *
 *     store y[c, h] 0                         local acc
 *     for i in chunk c {                      store acc 0
 *       ..                                    for i in chunk c { ..  acc sum acc v }
 *       acc sum y[c, h] v                     store y[c, h] acc
 *     }                                                                                       */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* A candidate: an element of a result that a row accumulates in memory. */
typedef struct {
    const LStmt *list, *first; /* of the accesses: a store of the row's own list */
    const LBuf *buf;
    int n_acc;
    const char *why; /* it cannot be in a register; NULL: it can */
} ScalarSum;

/* Checks all accesses to the element; sets a reason where it cannot be in a register. top: s is the
 * row's own list. */
static void check_accesses(ScalarSum *x, const LStmt *s, bool top) {
    for (; s && !x->why; s = s->next) {
        if (loop_has_body(s)) check_accesses(x, s->body, false);
        if (!loop_is_access(s) || s->buf != x->buf) continue;
        if (!x->first) x->first = top && s->kind == L_STORE ? s : NULL;
        x->n_acc += s->kind == L_ACC && !top;
        if (!x->first) x->why = "the row does not store it first";
        for (int i = 0; !x->why && i < s->buf->rank; i++)
            if (s->idx[i] != x->first->idx[i] || loop_defines(x->list, s->idx[i]))
                x->why = "the row has several elements of it";
    }
}

/* Lets the accesses to b use the local scalar instead. */
static void redirect(LStmt *s, const LBuf *b, LBuf *local) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) redirect(s->body, b, local);
        if (loop_is_access(s) && s->buf == b) s->buf = local;
    }
}

/* Appends the store of the scalar to memory to the row. */
static void append_store(Arena *a, LKernel *k, LStmt *row, LBuf *local, const LStmt *to) {
    LStmt *load = NEW(a, LStmt), *store = NEW(a, LStmt);
    *load = (LStmt){.kind = L_LOAD, .buf = local, .span = to->span, .next = store};
    load->dst = loop_new_register(a, k, local->dt, local->name, load);
    *store = *to;
    store->src = load->dst;
    store->next = NULL;
    while (row->next) row = row->next;
    row->next = load;
}

/* Replaces the element by a local scalar; returns the row's list, which begins with its
 * declaration. */
static LStmt *promote(Arena *a, LKernel *k, LStmt *row, const ScalarSum *x) {
    LBuf *local = NEW(a, LBuf);
    LStmt *declared = NEW(a, LStmt), to = *x->first;
    const int id = k->locals.n;
    *local = (LBuf){.kind = LB_LOCAL, .id = id, .dt = x->buf->dt, .written = true};
    local->name = loop_unique_name(a, k, "sum");
    *declared = (LStmt){.kind = L_LOCAL, .buf = local, .span = to.span, .next = row};
    vec_push(a, &k->locals, local);
    redirect(row, x->buf, local);
    append_store(a, k, row, local, &to);
    return declared;
}

/* For loop_find: does the statement accumulate into b? */
static bool adds_to(const LStmt *s, const void *b) {
    return s->kind == L_ACC && s->buf == b;
}

/* Promotes the sums of rows that are chunks of a long sum. */
static bool promote_sums(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    bool any = false;
    if (!row || !loop_has_range(*row, LR_CHUNK)) return false;
    for (int i = 0; i < k->bufs.n; i++) {
        ScalarSum x = {.list = *row, .buf = k->bufs.v[i]};
        if (!x.buf->written || !loop_find(*row, adds_to, x.buf)) continue;
        check_accesses(&x, *row, true);
        if (!x.why && !x.n_acc) x.why = "nothing is added to it in a loop";
        if (x.why) {
            pass_refusal(l->pass, k->span, "promote-scalars", "%s: not %s: %s", k->name,
                         x.buf->name, x.why);
            continue;
        }
        pass_remark(l->pass, k->span, "promote-scalars", "%s: %s is in a register", k->name,
                    x.buf->name);
        *row = promote(l->a, k, *row, &x);
        any = true;
    }
    return any;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, promote_sums);
}

const Pass loop_pass_promote_scalars = {
    .name = "promote-scalars",
    .summary = "numbers that parts of a long sum are added up to are in registers",
    .run_loops = run,
};
