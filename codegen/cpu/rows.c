/* Rows in lanes: what is computed from a narrow row whose width only data knows.
 *
 *     for v in N parallel {                    for v in N by 16 {
 *       h[v, :] = sum over entries of v          for each of the 16: h[v, :] = sum over entries
 *       m = max over c of h[v, c]          =>    in 16 lanes: m, s, log s, d[v, 0 .. C)
 *       s = sum over c of exp(h[v, c] - m)     }
 *       d[v, :] = exp(h[v, :] - m) / s - ..
 *     }
 *
 * A row of 7 classes in a vector of 16 lanes leaves nine of them idle, and each maximum and sum
 * ends in a chain of shuffles; the loss of 2708 rows took 40 % of a training step of GCN on Cora.
 * With a row in each lane nothing is folded, and a logarithm is one for 16 rows; loads of h become
 * gathers. Which form runs is decided by the width, when it is known; both are in the kernel.
 *
 * It is lanes.c's cut, made in the parallel loop: its iterations write disjoint elements, so
 * statements may go one after the other over a block of them. */
#include "codegen/cpu/cpu.h"

typedef struct {
    CgFn *f;
    const LStmt *loop;
    const Expr *width; /* of the rows */
    bool heavy;
    bool *varies;       /* [n_regs] */
    CgKept *kept;       /* [n_regs] */
    CgLocal *local;     /* [locals] */
    LLVMValueRef at, n; /* first row of the block, how many */
} Rows;

/* ---- which statements go row by row ------------------------------------------------------ */

static bool has_entries(const LStmt *s) {
    for (; s; s = s->next)
        if ((s->kind == L_FOR && s->range != LR_EXTENT) || has_entries(s->body)) return true;
    return false;
}

static bool is_entry_loop(const LStmt *s) {
    return s->kind == L_FOR && (s->range != LR_EXTENT || has_entries(s->body));
}

static const LBuf *first_stored(const LStmt *s) {
    const LBuf *b = NULL;
    for (; s && !b; s = s->next) b = s->kind == L_STORE ? s->buf : first_stored(s->body);
    return b;
}

/* The loop over entries before s, if only loops over rows lie between them. */
static const LStmt *entries_before(const LStmt *loop, const LStmt *s) {
    const LStmt *entries = NULL;
    for (const LStmt *p = loop->body; p != s; p = p->next)
        entries = is_entry_loop(p) ? p : p->kind == L_FOR ? entries : NULL;
    return entries;
}

static const LStmt *entries_after(const LStmt *s) {
    const LStmt *next = s->next;
    while (next && next->kind == L_FOR && !is_entry_loop(next)) next = next->next;
    return next && next->kind == L_FOR ? next : NULL;
}

static bool has_sum(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_ACC || has_sum(s->body)) return true;
    return false;
}

/* Loops over entries, what fills the row of sums before them, and what ends it after them (a bias):
 * the row stays in registers from one to the other (tile.c). */
static bool by_row(const LStmt *loop, const LStmt *s) {
    if (s->kind != L_FOR) return false;
    if (is_entry_loop(s)) return true;
    const LBuf *b = first_stored(s->body);
    const LStmt *after = entries_after(s), *before = entries_before(loop, s);
    if (b && after && cpu_writes(after->body, b)) return true;
    bool ends = b && before && cpu_writes(before->body, b);
    return ends && !has_sum(s->body) && !cpu_has_heavy(s->body, NULL);
}

/* ---- may the others go in lanes? ------------------------------------------------------------ */

static bool loops_are_fine(Rows *r, const LStmt *s) {
    for (; s; s = s->next) {
        int64_t n;
        if (s->kind == L_ACC && s->buf->kind != LB_LOCAL) return false;
        if (s->kind == L_LOCAL && s->buf->rank > 0) return false;
        if (s->kind == L_FOR && !expr_is_const(s->extent, &n)) {
            if (r->width && !expr_eq(r->width, s->extent)) return false;
            r->width = s->extent;
            r->heavy |= cpu_has_heavy(s->body, NULL);
        }
        if (!loops_are_fine(r, s->body)) return false;
    }
    return true;
}

/* A local array of one element is as good as a scalar. */
static bool is_small(const LBuf *b) {
    int64_t n;
    for (int i = 0; i < b->rank; i++)
        if (!expr_is_const(b->dim[i], &n) || n != 1) return false;
    return true;
}

static bool is_fine(Rows *r) {
    for (const LStmt *s = r->loop->body; s; s = s->next) {
        if (s->kind == L_LOCAL ? !is_small(s->buf) : s->kind == L_IF && has_entries(s->body))
            return false;
        if (by_row(r->loop, s) || s->kind == L_LOCAL) continue;
        LStmt one = *s;
        one.next = NULL;
        if (!loops_are_fine(r, &one) || !cpu_look(r->f, r->loop, &one, r->varies)) return false;
    }
    return r->width && r->heavy;
}

/* ---- emission -------------------------------------------------------------------------------- */

/* The statements from s up to the first of the other kind, as a block of their own. */
static LStmt *run_of(Rows *r, const LStmt *s, const LStmt **after) {
    LStmt *first = NULL, **tail = &first;
    bool rows = by_row(r->loop, s);
    for (; s && by_row(r->loop, s) == rows; s = s->next) {
        *tail = NEW(r->f->g->a, LStmt);
        **tail = *s;
        (*tail)->next = NULL;
        tail = &(*tail)->next;
    }
    *after = s;
    return first;
}

static void emit_lanes(Rows *r, const LStmt *run) {
    CgFn *f = r->f;
    f->w = f->g->machine.lanes;
    f->mask = f->rest = cpu_first_lanes(f, r->n);
    f->reg[r->loop->var->id] = (CgVal){r->at, FORM_SEQ, false};
    for (const LStmt *s = run; s; s = s->next) {
        cpu_stmt(f, s);
        if (s->dst) cpu_keep(f, s->dst, &r->kept[s->dst->id]);
        if (s->kind == L_LOCAL) r->local[s->buf->id] = f->local[s->buf->id];
    }
    f->w = 1, f->mask = f->rest = NULL;
}

/* What lanes have computed before `end`, as the row in this lane, or (NULL) as all see it. */
static void see(Rows *r, const LStmt *end, LLVMValueRef lane) {
    CgFn *f = r->f;
    for (const LStmt *s = r->loop->body; s != end; s = s->next) {
        if (s->dst && lane) cpu_pick(f, s->dst, &r->kept[s->dst->id], lane);
        if (s->dst && !lane) f->reg[s->dst->id] = r->kept[s->dst->id].lanes;
        if (s->kind == L_LOCAL)
            f->local[s->buf->id] =
                lane ? cpu_local_lane(f, s->buf, r->local[s->buf->id], lane) : r->local[s->buf->id];
    }
}

static void emit_rows(Rows *r, const LStmt *run, const LStmt *end) {
    CgFn *f = r->f;
    Cg *g = f->g;
    CgLoop l = cpu_loop_begin(f, cpu_i64(g, 0), r->n, 1);
    LLVMValueRef v = LLVMBuildNSWAdd(g->b, r->at, l.i, "");
    f->reg[r->loop->var->id] = (CgVal){v, FORM_ONE, false};
    see(r, end, l.i);
    cpu_block(f, run);
    cpu_loop_end(f, &l);
    see(r, end, NULL);
}

static void emit_blocks(Rows *r) {
    CgFn *f = r->f;
    Cg *g = f->g;
    LLVMValueRef w = cpu_i64(g, g->machine.lanes);
    CgLoop l = cpu_loop_begin(f, f->lo, f->hi, g->machine.lanes);
    LLVMValueRef left = LLVMBuildNSWSub(g->b, f->hi, l.i, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLT, left, w, "");
    r->at = l.i, r->n = LLVMBuildSelect(g->b, few, left, w, "");
    const LStmt *after;
    for (const LStmt *s = r->loop->body; s; s = after) {
        LStmt *run = run_of(r, s, &after);
        if (by_row(r->loop, s))
            emit_rows(r, run, s);
        else
            emit_lanes(r, run);
    }
    cpu_loop_end(f, &l);
}

bool cpu_rows_in_lanes(CgFn *f, const LStmt *loop, CpuBody *otherwise) {
    Cg *g = f->g;
    Rows r = {.f = f, .loop = loop};
    r.varies = NEWN(g->a, bool, f->k->n_regs + 1);
    r.varies[loop->var->id] = true;
    if (g->machine.lanes == 1 || !is_fine(&r)) return false;
    r.kept = NEWN(g->a, CgKept, f->k->n_regs + 1);
    r.local = NEWN(g->a, CgLocal, f->k->locals.n + 1);
    LLVMBasicBlockRef narrow = cpu_new_block(f, "narrow"), wide = cpu_new_block(f, "wide"),
                      end = cpu_new_block(f, "end");
    LLVMValueRef most = cpu_i64(g, g->machine.lanes);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLE, cpu_size(f, r.width), most, ""), narrow,
                    wide);
    LLVMPositionBuilderAtEnd(g->b, narrow);
    emit_blocks(&r);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(wide, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, wide);
    otherwise(f, loop, NULL);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
    return true;
}
