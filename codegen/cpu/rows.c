/* Rows in lanes: what is computed from a narrow row.
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
 * gathers. Where only data know the width, both forms are in the kernel. Where it is constant, rows
 * that are summed to something go in lanes; what is made element by element is left as it lies.
 *
 * It is lanes.c's cut, made in the parallel loop: its iterations write disjoint elements, so
 * statements may go one after the other over a block of them.  What goes row by row is moved up to
 * the last that does, where nothing in between has to do with it: a row of sums then stays in
 * registers from the entries that it sums to its division or bias. */
#include "codegen/cpu/cpu.h"

/* Statements of the loop, copied, that go in lanes or row by row. */
typedef struct Run Run;
struct Run {
    bool by_row;
    LStmt *first, **end;
    Run *next, *before;
};

typedef struct {
    CgFn *f;
    const LStmt *loop;
    Run *runs, *last;
    const Expr *width;  /* of the rows, where only data know it */
    int64_t most;       /* the longest row of constant width */
    bool heavy;         /* work that lanes save: on rows of unknown width, */
    bool heavy_short;   /* of constant width, */
    bool sums;          /* and sums along those */
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

/* A local array of one element is as good as a scalar. */
static bool is_small(const LBuf *b) {
    int64_t n;
    for (int i = 0; i < b->rank; i++)
        if (!expr_is_const(b->dim[i], &n) || n != 1) return false;
    return true;
}

/* A row of sums of constant width: it lies in registers, of one row at a time. */
static bool touches_row(const LStmt *s) {
    for (; s; s = s->next) {
        bool local = loop_is_access(s) && s->buf->kind == LB_LOCAL;
        if ((local && !is_small(s->buf)) || touches_row(s->body)) return true;
    }
    return false;
}

/* Loops over entries, what fills the row of sums before them, and what ends it after them (a bias):
 * the row stays in registers from one to the other (tile.c). */
static bool goes_by_row(const LStmt *loop, const LStmt *s) {
    if (s->kind == L_LOCAL) return !is_small(s->buf);
    if (s->kind != L_FOR) return false;
    if (is_entry_loop(s) || touches_row(s->body)) return true;
    const LBuf *b = first_stored(s->body);
    const LStmt *after = entries_after(s), *before = entries_before(loop, s);
    if (b && after && loop_writes(after->body, b)) return true;
    bool ends = b && before && loop_writes(before->body, b);
    return ends && !has_sum(s->body) && !loop_has_heavy(s->body, NULL);
}

/* ---- runs of statements ------------------------------------------------------------------- */

/* Must s, alone, stay behind the statements of a run? */
static bool depends_on(const LStmt *s, const Run *run) {
    for (const LStmt *t = run->first; t; t = t->next)
        if (loop_depends(s, t)) return true;
    return false;
}

static Run *add_run(Rows *r, bool by_row) {
    Run *run = NEW(r->f->g->a, Run);
    *run = (Run){.by_row = by_row, .end = &run->first, .before = r->last};
    *(r->last ? &r->last->next : &r->runs) = run;
    return r->last = run;
}

/* A row's statement joins the rows before it where it ends what those have begun; a scalar in
 * memory is had before them, so that it does not come between. */
static Run *run_for(Rows *r, const LStmt *s, bool by_row) {
    Run *last = r->last, *rows = last->by_row ? last : last->before;
    bool past = rows && (last == rows || !depends_on(s, last));
    if (!by_row && past && (s->kind == L_LET || s->kind == L_LOAD) && !depends_on(s, rows))
        return rows->before;
    if (last->by_row == by_row) return last;
    return by_row && past && depends_on(s, rows) ? rows : add_run(r, by_row);
}

static void cut(Rows *r) {
    add_run(r, false);
    for (const LStmt *s = r->loop->body; s; s = s->next) {
        LStmt *copy = NEW(r->f->g->a, LStmt);
        *copy = *s;
        copy->next = NULL;
        Run *run = run_for(r, copy, goes_by_row(r->loop, s));
        *run->end = copy;
        run->end = &copy->next;
    }
}

/* ---- may the others go in lanes? ------------------------------------------------------------ */

/* `around`: s is done for so many elements of a row of constant width. */
static bool loops_are_fine(Rows *r, const LStmt *s, int64_t around) {
    for (; s; s = s->next) {
        int64_t n = 1;
        if (s->kind == L_ACC && s->buf->kind != LB_LOCAL) return false;
        if (s->kind == L_LOCAL && s->buf->rank > 0) return false;
        r->sums |= s->kind == L_ACC && around > 1;
        if (s->kind == L_FOR && !expr_is_const(s->extent, &n)) {
            if (r->width && !expr_eq(r->width, s->extent)) return false;
            r->width = s->extent;
            r->heavy |= loop_has_heavy(s->body, NULL);
            n = 1;
        }
        if (around * n > r->most) r->most = around * n;
        r->heavy_short |= around * n > 1 && loop_has_heavy(s->body, NULL);
        if (!loops_are_fine(r, s->body, around * n)) return false;
    }
    return true;
}

/* A row in registers belongs to one run: the next row takes its place. */
static bool is_within(const Rows *r, const Run *run, const LBuf *row) {
    return loop_count_accesses(run->first, row) == loop_count_accesses(r->loop->body, row);
}

static bool runs_by_row(const Rows *r, const Run *run) {
    for (const LStmt *s = run->first; s; s = s->next)
        if (s->kind == L_LOCAL && !is_within(r, run, s->buf)) return false;
    return true;
}

static bool runs_in_lanes(Rows *r, const Run *run) {
    for (const LStmt *s = run->first; s; s = s->next) {
        if (s->kind == L_LOCAL) continue;
        LStmt one = *s;
        one.next = NULL;
        if (s->kind == L_IF && has_entries(s->body)) return false;
        if (!loops_are_fine(r, &one, 1) || !loop_look(r->loop, &one, r->varies)) return false;
    }
    return true;
}

static bool is_fine(Rows *r) {
    for (const Run *run = r->runs; run; run = run->next)
        if (run->by_row ? !runs_by_row(r, run) : !runs_in_lanes(r, run)) return false;
    if (r->width) return r->heavy;
    return r->most <= r->f->g->machine.lanes && r->sums && r->heavy_short;
}

/* ---- emission -------------------------------------------------------------------------------- */

static void emit_lanes(Rows *r, const Run *run) {
    CgFn *f = r->f;
    f->w = f->g->machine.lanes;
    f->mask = f->rest = cpu_first_lanes(f, r->n);
    f->reg[r->loop->var->id] = (CgVal){r->at, FORM_SEQ, false};
    for (const LStmt *s = run->first; s; s = s->next) {
        cpu_stmt(f, s);
        if (s->dst) cpu_keep(f, s->dst, &r->kept[s->dst->id]);
        if (s->kind == L_LOCAL) r->local[s->buf->id] = f->local[s->buf->id];
    }
    f->w = 1, f->mask = f->rest = NULL;
}

/* What lanes have computed before `end`, as the row in this lane, or (NULL) as all see it. */
static void see(Rows *r, const Run *end, LLVMValueRef lane) {
    CgFn *f = r->f;
    for (const Run *run = r->runs; run != end; run = run->next)
        for (const LStmt *s = run->by_row ? NULL : run->first; s; s = s->next) {
            if (s->dst && lane) cpu_pick(f, s->dst, &r->kept[s->dst->id], lane);
            if (s->dst && !lane) f->reg[s->dst->id] = r->kept[s->dst->id].lanes;
            if (s->kind == L_LOCAL)
                f->local[s->buf->id] = lane ? cpu_local_lane(f, s->buf, r->local[s->buf->id], lane)
                                            : r->local[s->buf->id];
        }
}

static void emit_rows(Rows *r, const Run *run) {
    CgFn *f = r->f;
    Cg *g = f->g;
    CgLoop l = cpu_loop_begin(f, cpu_i64(g, 0), r->n, 1);
    LLVMValueRef v = LLVMBuildNSWAdd(g->b, r->at, l.i, "");
    f->reg[r->loop->var->id] = (CgVal){v, FORM_ONE, false};
    see(r, run, l.i);
    cpu_block(f, run->first);
    cpu_loop_end(f, &l);
    see(r, run, NULL);
}

static void emit_blocks(Rows *r) {
    CgFn *f = r->f;
    Cg *g = f->g;
    LLVMValueRef w = cpu_i64(g, g->machine.lanes);
    CgLoop l = cpu_loop_begin(f, f->lo, f->hi, g->machine.lanes);
    LLVMValueRef left = LLVMBuildNSWSub(g->b, f->hi, l.i, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLT, left, w, "");
    r->at = l.i, r->n = LLVMBuildSelect(g->b, few, left, w, "");
    for (const Run *run = r->runs; run; run = run->next)
        if (run->by_row)
            emit_rows(r, run);
        else
            emit_lanes(r, run);
    cpu_loop_end(f, &l);
}

bool cpu_rows_in_lanes(CgFn *f, const LStmt *loop, CpuBody *otherwise) {
    Cg *g = f->g;
    Rows r = {.f = f, .loop = loop};
    if (g->machine.lanes == 1) return false;
    cut(&r);
    r.varies = NEWN(g->a, bool, f->k->n_regs + 1);
    r.varies[loop->var->id] = true;
    if (!is_fine(&r)) return false;
    r.kept = NEWN(g->a, CgKept, f->k->n_regs + 1);
    r.local = NEWN(g->a, CgLocal, f->k->locals.n + 1);
    if (!r.width) {
        emit_blocks(&r);
        return true;
    }
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
