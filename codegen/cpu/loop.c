/* Loops that run one iteration after the other.
 *
 * Over the entries of a segment, work on scalars per entry (a random number, an
 * exponential) comes before the vector work on its features.  Such a loop is cut into
 * strips: the scalar part of a whole strip first, one entry per lane, then its entries one
 * by one.  Each entry is still computed by the same operations. */
#include "codegen/cpu/cpu.h"

CgLoop cpu_loop_begin(CgFn *f, LLVMValueRef lo, LLVMValueRef hi, int64_t step) {
    Cg *g = f->g;
    CgLoop l = {.hi = hi, .step = cpu_i64(g, step)};
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    l.body = cpu_new_block(f, "loop");
    l.exit = cpu_new_block(f, "end");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, lo, hi, ""), l.body, l.exit);
    LLVMPositionBuilderAtEnd(g->b, l.body);
    l.i = LLVMBuildPhi(g->b, g->i64, "");
    LLVMAddIncoming(l.i, &lo, &from, 1);
    return l;
}

void cpu_loop_end(CgFn *f, CgLoop *l) {
    Cg *g = f->g;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMValueRef next = LLVMBuildNSWAdd(g->b, l->i, l->step, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, next, l->hi, ""), l->body, l->exit);
    LLVMAddIncoming(l->i, &next, &latch, 1);
    LLVMMoveBasicBlockAfter(l->exit, latch);
    LLVMPositionBuilderAtEnd(g->b, l->exit);
}

/* The value of a register that is the same in all lanes. */
static LLVMValueRef uniform_value(CgFn *f, const LReg *r) {
    bool is_one = f->reg[r->id].v && f->reg[r->id].shape == SHAPE_UNIFORM;
    CTX_HOLDS(f->g->c, is_one, f->k->span);
    return f->reg[r->id].v;
}

/* Loads the bounds of segment s->at, s->ptr[at] and s->ptr[at + 1]. */
static void load_bounds(CgFn *f, const LStmt *s, LLVMValueRef *lo, LLVMValueRef *hi) {
    LLVMValueRef at = uniform_value(f, s->at);
    *lo = cpu_load_at(f, s->ptr, at);
    *hi = cpu_load_at(f, s->ptr, LLVMBuildNSWAdd(f->g->b, at, cpu_i64(f->g, 1), ""));
}

/* Emits the range of a chunk: from given bounds (s->ptr), or CHUNK c of n_chunks covers [c*L,
 * min((c+1)*L, extent)), L = ceil(extent / n_chunks). */
static void chunk_range(CgFn *f, const LStmt *s, LLVMValueRef *lo, LLVMValueRef *hi) {
    Cg *g = f->g;
    if (s->ptr) {
        load_bounds(f, s, lo, hi);
        return;
    }
    LLVMValueRef extent = cpu_size(f, s->extent), n = cpu_size(f, s->n_chunks);
    LLVMValueRef len = LLVMBuildAdd(g->b, extent, LLVMBuildSub(g->b, n, cpu_i64(g, 1), ""), "");
    len = LLVMBuildSDiv(g->b, len, n, "");
    *lo = LLVMBuildNSWMul(g->b, uniform_value(f, s->at), len, "");
    LLVMValueRef end = LLVMBuildNSWAdd(g->b, *lo, len, "");
    LLVMValueRef over = LLVMBuildICmp(g->b, LLVMIntSGT, end, extent, "");
    *hi = LLVMBuildSelect(g->b, over, extent, end, "");
}

/* Emits the bounds of loop s, both i64: *lo is included, *hi is not. A parallel loop has the part
 * of its range that the function is called for. */
void cpu_range(CgFn *f, const LStmt *s, LLVMValueRef *lo, LLVMValueRef *hi) {
    Cg *g = f->g;
    if (s->sched.parallel) {
        *lo = f->lo, *hi = f->hi;
    } else if (s->range == LR_EXTENT) {
        *lo = cpu_i64(g, 0), *hi = cpu_size(f, s->extent);
    } else if (s->range == LR_SEGMENT) {
        load_bounds(f, s, lo, hi);
    } else {
        chunk_range(f, s, lo, hi);
    }
}

/* ---- strips ---------------------------------------------------------------------------- */

void cpu_spill(CgFn *f, const LReg *r, CgSpill *k) {
    Cg *g = f->g;
    k->val = f->reg[r->id];
    if (k->val.shape != SHAPE_VARYING) return;
    LLVMValueRef raw = cpu_to_mem(g, r->dt, k->val.v);
    k->slot = cpu_alloca(f, LLVMTypeOf(raw), 1);
    LLVMBuildStore(g->b, raw, k->slot);
}

/* Makes the value of one lane the register's value. */
void cpu_reload_lane(CgFn *f, const LReg *r, const CgSpill *k, LLVMValueRef lane) {
    Cg *g = f->g;
    CgVal v = {k->val.v, SHAPE_UNIFORM, false};
    if (k->val.shape == SHAPE_CONSECUTIVE) v.v = LLVMBuildNSWAdd(g->b, v.v, lane, "");
    if (k->val.shape == SHAPE_VARYING) {
        LLVMTypeRef t = cpu_mem_type(g, r->dt);
        LLVMValueRef at = LLVMBuildInBoundsGEP2(g->b, t, k->slot, &lane, 1, "");
        v.v = cpu_from_mem(g, r->dt, LLVMBuildLoad2(g->b, t, at, ""));
    }
    f->reg[r->id] = v;
}

/* Emits the scalars of entries i .. i + n - 1, one entry per vector lane. */
static void emit_strip_prefix(CgFn *f, const LStmt *s, const LStmt *rest, LLVMValueRef i,
                              LLVMValueRef n) {
    f->lanes = s->sched.strips;
    f->mask = f->tail_mask = cpu_first_lanes_mask(f, n);
    f->reg[s->var->id] = (CgVal){i, SHAPE_CONSECUTIVE, false};
    for (const LStmt *p = s->body; p != rest; p = p->next)
        if (p->dst) cpu_stmt(f, p);
}

/* Emits the loop over the entries of a strip, each with its scalars from the lanes. */
static void emit_strip_entries(CgFn *f, const LStmt *s, const LStmt *rest, LLVMValueRef n,
                               CpuBody *body, void *arg) {
    CgSpill *kept = NEWN(f->g->a, CgSpill, f->k->n_regs + 1);
    cpu_spill(f, s->var, &kept[s->var->id]);
    for (const LStmt *p = s->body; p != rest; p = p->next) {
        if (p->dst && !p->remat) cpu_spill(f, p->dst, &kept[p->dst->id]);
    }
    f->lanes = 1, f->mask = f->tail_mask = NULL;
    CgLoop l = cpu_loop_begin(f, cpu_i64(f->g, 0), n, 1);
    cpu_reload_lane(f, s->var, &kept[s->var->id], l.i);
    for (const LStmt *p = s->body; p != rest; p = p->next) {
        if (!p->dst || p->remat)
            cpu_stmt(f, p);
        else
            cpu_reload_lane(f, p->dst, &kept[p->dst->id], l.i);
    }
    body(f, rest, arg);
    cpu_loop_end(f, &l);
}

/* Emits a strip-mined loop over entries (edges): for a strip of entries at a time the scalars at
 * the start of the loop's body are computed in vector lanes; `body` emits the rest, with its
 * argument `arg`, entry by entry. */
static void emit_strips(CgFn *f, const LStmt *s, CpuBody *body, void *arg) {
    Cg *g = f->g;
    const LStmt *rest = loop_end_of_prefix(s, false);
    LLVMValueRef lo, hi, w = cpu_i64(g, s->sched.strips);
    cpu_range(f, s, &lo, &hi);
    CgLoop l = cpu_loop_begin(f, lo, hi, s->sched.strips);
    LLVMValueRef left = LLVMBuildNSWSub(g->b, hi, l.i, "");
    LLVMValueRef n =
        LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, left, w, ""), left, w, "");
    emit_strip_prefix(f, s, rest, l.i, n);
    emit_strip_entries(f, s, rest, n, body, arg);
    cpu_loop_end(f, &l);
}

/* ---- constant loops ------------------------------------------------------------------------ */
/* Emits the iterations of a constant loop one after the other. */
static void emit_unrolled_loop(CgFn *f, const LStmt *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        f->reg[s->var->id] = (CgVal){cpu_i64(f->g, i), SHAPE_UNIFORM, false};
        cpu_block(f, s->body);
    }
}

/* ---- any loop ------------------------------------------------------------------------------ */

/* Emits a loop over entries; the function `body` emits the statements of an iteration, `arg` is its
 * own. */
void cpu_entry_loop(CgFn *f, const LStmt *s, CpuBody *body, void *arg) {
    if (f->lanes == 1 && s->sched.strips) {
        emit_strips(f, s, body, arg);
        return;
    }
    LLVMValueRef lo, hi;
    cpu_range(f, s, &lo, &hi);
    CgLoop l = cpu_loop_begin(f, lo, hi, 1);
    f->reg[s->var->id] = (CgVal){l.i, SHAPE_UNIFORM, false};
    body(f, s->body, arg);
    cpu_loop_end(f, &l);
}

/* Emits the statements of a body. */
static void emit_plain_body(CgFn *f, const LStmt *s, void *arg) {
    (void)arg;
    cpu_block(f, s);
}

/* Emits a loop without vectors. */
static void emit_plain_loop(CgFn *f, const LStmt *s) {
    cpu_entry_loop(f, s, emit_plain_body, NULL);
}

void cpu_for(CgFn *f, const LStmt *s) {
    const LSched *c = &s->sched;
    int64_t n = 0;
    if (c->lanes && f->lanes == 1)
        cpu_vector_loop(f, s);
    else if (c->jam && f->lanes == 1)
        cpu_jammed_loop(f, s);
    else if (c->rows)
        cpu_rows_in_lanes(f, s);
    else if (!loop_extent(s, &n) || c->parallel)
        emit_plain_loop(f, s);
    else if (c->flat && f->lanes == 1)
        cpu_flat_loop(f, s, n);
    else if (c->expand && f->lanes == 1)
        cpu_expanded_loop(f, s, n);
    else if (c->unroll && loop_is_unrolled_fully(s, &n))
        emit_unrolled_loop(f, s, n);
    else
        emit_plain_loop(f, s);
}
