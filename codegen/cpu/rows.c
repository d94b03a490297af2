/* A parallel loop whose iterations are side by side in lanes (sched.rows), as the pass
 * vectorise-outer has made it:
 *
 *     for v in N parallel rows 16 {            for v in N by 16 {
 *       scalars of v                             in 16 lanes: scalars of v
 *       for e in segment ptr[v] serial { .. } =>   for each of the 16: its entries
 *       for c in C { .. }                        in 16 lanes: for c in C { .. }
 *     }                                        }
 *
 * It is lanes.c's cut, made in the parallel loop. */
#include "codegen/cpu/cpu.h"

/* A parallel loop with a block of rows in lanes. */
typedef struct {
    CgFn *f;
    const LStmt *loop;
    CgSpill *spills;       /* [n_regs] values that were computed in lanes */
    CgLocal *local;        /* [locals] arrays with an element per lane */
    LLVMValueRef first, n; /* first row of the block, how many */
} Rows;

/* Emits the statements from .. to (exclusive) for a block of rows at once, one row per lane. Lanes
 * behind the last row are masked. */
static void emit_lanes(Rows *r, const LStmt *from, const LStmt *to) {
    CgFn *f = r->f;
    f->lanes = r->loop->sched.rows;
    f->mask = f->tail_mask = cpu_first_lanes_mask(f, r->n);
    f->reg[r->loop->var->id] = (CgVal){r->first, SHAPE_CONSECUTIVE, false};
    for (const LStmt *s = from; s != to; s = s->next) {
        cpu_stmt(f, s);
        if (s->dst) cpu_spill(f, s->dst, &r->spills[s->dst->id]);
        if (s->kind == L_LOCAL) r->local[s->buf->id] = f->local[s->buf->id];
    }
    f->lanes = 1, f->mask = f->tail_mask = NULL;
}

/* Makes scalars and local arrays that were computed in lanes, by statements before `end`, available
 * to what follows. lane: to scalar code, for the row in that lane; NULL: to code in all lanes. */
static void use_lanes(Rows *r, const LStmt *end, LLVMValueRef lane) {
    CgFn *f = r->f;
    for (const LStmt *s = r->loop->body; s != end; s = s->next) {
        if (loop_is_serial(s)) continue;
        if (s->dst && lane) cpu_reload_lane(f, s->dst, &r->spills[s->dst->id], lane);
        if (s->dst && !lane) f->reg[s->dst->id] = r->spills[s->dst->id].val;
        if (s->kind == L_LOCAL)
            f->local[s->buf->id] =
                lane ? cpu_local_lane(f, s->buf, r->local[s->buf->id], lane) : r->local[s->buf->id];
    }
}

/* Emits the statements from .. to (exclusive) as a loop over the rows of the block, one row after
 * the other. */
static void emit_rows(Rows *r, const LStmt *from, const LStmt *to) {
    CgFn *f = r->f;
    Cg *g = f->g;
    CgLoop l = cpu_loop_begin(f, cpu_i64(g, 0), r->n, 1);
    LLVMValueRef v = LLVMBuildNSWAdd(g->b, r->first, l.i, "");
    f->reg[r->loop->var->id] = (CgVal){v, SHAPE_UNIFORM, false};
    use_lanes(r, from, l.i);
    cpu_block_until(f, from, to);
    cpu_loop_end(f, &l);
    use_lanes(r, from, NULL);
}

/* The first statement from s on that is unlike `serial`: statements that are executed row by row
 * are serial, those in lanes are not. NULL: all to the end of the body are alike. */
static const LStmt *group_end(const LStmt *s, bool serial) {
    while (s && loop_is_serial(s) == serial) s = s->next;
    return s;
}

void cpu_rows_in_lanes(CgFn *f, const LStmt *loop) {
    Cg *g = f->g;
    Rows r = {.f = f, .loop = loop};
    r.spills = NEWN(g->a, CgSpill, f->k->n_regs + 1);
    r.local = NEWN(g->a, CgLocal, f->k->locals.n + 1);
    LLVMValueRef w = cpu_i64(g, loop->sched.rows);
    CgLoop l = cpu_loop_begin(f, f->lo, f->hi, loop->sched.rows);
    LLVMValueRef left = LLVMBuildNSWSub(g->b, f->hi, l.i, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLT, left, w, "");
    r.first = l.i, r.n = LLVMBuildSelect(g->b, few, left, w, "");
    for (const LStmt *s = loop->body; s;) {
        const LStmt *rows = group_end(s, false), *end = group_end(rows, true);
        emit_lanes(&r, s, rows);
        if (rows) emit_rows(&r, rows, end);
        s = end;
    }
    cpu_loop_end(f, &l);
}
