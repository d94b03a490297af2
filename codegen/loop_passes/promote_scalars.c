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

/* Whether register r is another one in each iteration of a loop of the list. */
static bool varies_in_loops(const LStmt *s, const LReg *r) {
    for (; s; s = s->next)
        if (loop_has_body(s) && (s->var == r || loop_defines(s->body, r))) return true;
    return false;
}

/* Checks all accesses to the element that the row accumulates in memory; sets sum->why where it
 * cannot be in a register. is_row_list: s is the row's own list, not a nested one. */
static void check_accesses(ScalarSum *sum, const LStmt *s, bool is_row_list) {
    for (; s && !sum->why; s = s->next) {
        if (loop_has_body(s)) check_accesses(sum, s->body, false);
        if (!loop_is_access(s) || s->buf != sum->buf) continue;
        if (!sum->first) sum->first = is_row_list && s->kind == L_STORE ? s : NULL;
        sum->n_acc += s->kind == L_ACC && !is_row_list;
        if (!sum->first) sum->why = "the row does not store it first";
        for (int i = 0; !sum->why && i < s->buf->rank; i++)
            if (s->idx[i] != sum->first->idx[i] || varies_in_loops(sum->list, s->idx[i]))
                sum->why = "the row has several elements of it";
    }
}

/* Makes the accesses to buffer b use the local scalar instead. */
static void redirect_accesses(LStmt *s, const LBuf *b, LBuf *local) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) redirect_accesses(s->body, b, local);
        if (loop_is_access(s) && s->buf == b) s->buf = local;
    }
}

/* Appends to the row a load of the scalar and a store to memory, at the place where the store
 * `like` has it. */
static void append_store(Arena *a, LKernel *k, LStmt *row, LBuf *local, const LStmt *like) {
    LStmt *load = NEW(a, LStmt), *store = NEW(a, LStmt);
    *load = (LStmt){.kind = L_LOAD, .buf = local, .span = like->span, .next = store};
    load->dst = loop_new_register(a, k, local->dt, local->name, load);
    *store = *like;
    store->src = load->dst;
    store->next = NULL;
    while (row->next) row = row->next;
    row->next = load;
}

/* Replaces the element by a local scalar, which is stored once at the end of the row; returns the
 * row's new list, which begins with the scalar's declaration. */
static LStmt *promote_to_scalar(Arena *a, LKernel *k, LStmt *row, const ScalarSum *sum) {
    LBuf *local = NEW(a, LBuf);
    LStmt *declaration = NEW(a, LStmt), first_store = *sum->first;
    const int id = k->locals.n;
    *local = (LBuf){.kind = LB_LOCAL, .id = id, .dt = sum->buf->dt, .written = true};
    local->name = loop_unique_name(a, k, "sum");
    *declaration = (LStmt){.kind = L_LOCAL, .buf = local, .span = first_store.span, .next = row};
    vec_push(a, &k->locals, local);
    redirect_accesses(row, sum->buf, local);
    append_store(a, k, row, local, &first_store);
    return declaration;
}

/* Promotes elements that the chunks of a long sum accumulate in memory to registers. True if the
 * kernel changed. */
static bool promote_sums(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    bool changed = false;
    if (!row || !loop_has_range(*row, LR_CHUNK)) return false;
    for (int i = 0; i < k->bufs.n; i++) {
        ScalarSum sum = {.list = *row, .buf = k->bufs.v[i]};
        if (!sum.buf->written || !loop_accumulates_into(*row, sum.buf)) continue;
        check_accesses(&sum, *row, true);
        if (!sum.why && !sum.n_acc) sum.why = "nothing is added to it in a loop";
        if (sum.why) {
            pass_refusal(l->pass, k->span, "promote-scalars", "%s: not %s: %s", k->name,
                         sum.buf->name, sum.why);
            continue;
        }
        pass_remark(l->pass, k->span, "promote-scalars", "%s: %s is in a register", k->name,
                    sum.buf->name);
        *row = promote_to_scalar(l->a, k, *row, &sum);
        changed = true;
    }
    return changed;
}

/* Runs the pass (scalar promotion) on all kernels. */
static bool run_promote_scalars(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, promote_sums);
}

const Pass loop_pass_promote_scalars = {
    .name = "promote-scalars",
    .summary = "numbers that parts of a long sum are added up to are in registers",
    .run_loops = run_promote_scalars,
};
