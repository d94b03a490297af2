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

typedef struct {
    CgFn *f;
    const LStmt *loop;
    CgSpill *spills;       /* [n_regs] */
    CgLocal *local;        /* [locals] */
    LLVMValueRef first, n; /* first row of the block, how many */
} Rows;

/* Emits statements with a row per lane. */
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

/* Makes what lanes have computed before `end` available: as the row of one lane, or (NULL) in all
 * lanes. */
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

/* Emits statements row by row. */
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

/* The end of the statements that are all executed row by row, or all in lanes. */
static const LStmt *group_end(const LStmt *s, bool serial) {
    while (s && loop_is_serial(s) == serial) s = s->next;
    return s;
}

/* Emits a parallel loop with a row per lane (sched.rows). */
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
