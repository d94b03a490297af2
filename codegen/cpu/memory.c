/* Loads, stores and accumulation, for one lane or many.
 *
 * Where the last index of a row-major buffer is the vector loop's counter, lanes
 * are neighbours in memory: a vector access.  Any other lane-dependent address is
 * a gather; stores scatter; accumulation runs lane by lane, since two lanes may
 * meet in one address. */
#include "codegen/cpu/cpu.h"

/* Where an element of a buffer is, or one per lane. */
typedef struct {
    LLVMValueRef off; /* in elements; SHAPE_VARYING: a vector of i64, else lane 0's, scalar */
    CgShape form;
    bool aligned; /* a whole vector of a padded local array */
} CgAddr;

/* Where local array b is, as recorded in f; NULL: b is a buffer that the kernel gets as
 * argument. */
CgLocal *cpu_local_of(CgFn *f, const LBuf *b) {
    if (b->kind != LB_LOCAL) return NULL;
    for (int i = 0; i < f->k->locals.n; i++)
        if (f->k->locals.v[i] == b) return &f->local[i];
    ctx_fault(f->g->c, f->k->span, "the local array '%s' is not listed in its kernel", b->name);
}

/* The pointer to the first element of a buffer or local array. */
static LLVMValueRef base_of(CgFn *f, const LBuf *b) {
    CgLocal *l = cpu_local_of(f, b);
    return l ? l->at : f->buf[b->id];
}

/* Attaches metadata to an access to buffer b that tells LLVM which other buffers it cannot alias;
 * returns the access. */
static LLVMValueRef with_scopes(CgFn *f, const LBuf *b, LLVMValueRef access) {
    if (b->kind == LB_LOCAL) return access;
    LLVMSetMetadata(access, f->g->md_scope, f->scope[b->id]);
    LLVMSetMetadata(access, f->g->md_noalias, f->noalias[b->id]);
    return access;
}

/* Whether the axis has extent 1 and a uniform index, which need not be added to an offset. (An
 * index that differs by lane must be: lanes are addresses, even if only the first is active.) */
static bool is_unit_axis(CgFn *f, const LBuf *b, LReg *const *idx, int axis) {
    int64_t n;
    return expr_is_const(b->dim[axis], &n) && n == 1 &&
           f->reg[idx[axis]->id].shape == SHAPE_UNIFORM;
}

/* The extent of an axis in memory: that of a local array's last axis is padded to whole vectors. */
static LLVMValueRef axis_stride(CgFn *f, const LBuf *b, int axis) {
    CgLocal *l = cpu_local_of(f, b);
    return l && axis == b->rank - 1 ? cpu_i64(f->g, l->row_stride) : cpu_size(f, b->dim[axis]);
}

/* The offset of element idx[] of b, by Horner's scheme. It is one scalar for as long as indices are
 * uniform, or the last one is consecutive over the lanes; else a vector with an offset per lane. */
static CgAddr element_address(CgFn *f, const LBuf *b, LReg *const *idx) {
    Cg *g = f->g;
    CgAddr a = {cpu_i64(g, 0), SHAPE_UNIFORM, false};
    int last = b->rank - 1;
    while (last > 0 && is_unit_axis(f, b, idx, last)) last--;
    for (int i = 0; i <= last; i++) {
        if (is_unit_axis(f, b, idx, i)) continue;
        CgVal x = f->reg[idx[i]->id];
        bool lanes = a.form == SHAPE_VARYING || x.shape == SHAPE_VARYING ||
                     (x.shape == SHAPE_CONSECUTIVE && i < last);
        if (lanes && a.form != SHAPE_VARYING)
            a.off = cpu_splat(g, a.off, f->lanes), a.form = SHAPE_VARYING;
        LLVMValueRef step = axis_stride(f, b, i), v = lanes ? cpu_broadcast_to_lanes(f, x) : x.v;
        if (lanes) step = cpu_splat(g, step, f->lanes);
        a.off = LLVMBuildNSWAdd(g->b, LLVMBuildNSWMul(g->b, a.off, step, ""), v, "");
        if (!lanes && x.shape == SHAPE_CONSECUTIVE)
            a.form = SHAPE_CONSECUTIVE,
            a.aligned = x.is_var && b->kind == LB_LOCAL && i == b->rank - 1;
    }
    return a;
}

/* The pointer to the element of type t at offset off of b, or a pointer per lane if off is a
 * vector. */
static LLVMValueRef element_pointer(CgFn *f, const LBuf *b, LLVMTypeRef t, LLVMValueRef off) {
    return LLVMBuildInBoundsGEP2(f->g->b, t, base_of(f, b), &off, 1, "");
}

/* A mask with all of the current lanes set. */
static LLVMValueRef all_lanes_mask(CgFn *f) {
    return LLVMConstAllOnes(cpu_vector_type(f->g->i1, f->lanes));
}

/* ---- one element ------------------------------------------------------------------- */

/* Loads one element of b, at scalar offset off, and converts it to the type that registers have. */
LLVMValueRef cpu_load_at(CgFn *f, const LBuf *b, LLVMValueRef off) {
    LLVMTypeRef t = cpu_mem_type(f->g, b->dt);
    LLVMValueRef v = LLVMBuildLoad2(f->g->b, t, element_pointer(f, b, t, off), "");
    return cpu_from_mem(f->g, b->dt, with_scopes(f, b, v));
}

/* Stores one element at scalar offset off of b. raw: already in the type that memory has. */
static void store_raw_at(CgFn *f, const LBuf *b, LLVMValueRef off, LLVMValueRef raw) {
    LLVMTypeRef t = cpu_mem_type(f->g, b->dt);
    with_scopes(f, b, LLVMBuildStore(f->g->b, raw, element_pointer(f, b, t, off)));
}

/* Stores one element at scalar offset off of b, converted to the type that memory has. */
void cpu_store_at(CgFn *f, const LBuf *b, LLVMValueRef off, LLVMValueRef v) {
    store_raw_at(f, b, off, cpu_to_mem(f->g, b->dt, v));
}

/* ---- a vector ------------------------------------------------------------------------ */

/* The alignment of an element of b in bytes, as an argument of LLVM's intrinsics. */
static LLVMValueRef alignment(CgFn *f, const LBuf *b) {
    return LLVMConstInt(f->g->i32, (unsigned)dtype_bytes(b->dt), 0);
}

/* Loads one element per lane from consecutive addresses, as they are in memory; inactive lanes are
 * not accessed unless a is in a padded local array. */
static LLVMValueRef load_contiguous(CgFn *f, const LBuf *b, CgAddr a) {
    Cg *g = f->g;
    LLVMTypeRef t = cpu_mem_type(g, b->dt), vt = cpu_vector_type(t, f->lanes);
    LLVMValueRef at = element_pointer(f, b, t, a.off);
    if (!f->mask || a.aligned) {
        LLVMValueRef v = LLVMBuildLoad2(g->b, vt, at, "");
        LLVMSetAlignment(v, (unsigned)dtype_bytes(b->dt));
        return with_scopes(f, b, v);
    }
    LLVMTypeRef over[2] = {vt, g->ptr};
    LLVMValueRef arg[4] = {at, alignment(f, b), f->mask, LLVMConstNull(vt)};
    return with_scopes(f, b, cpu_call(g, "llvm.masked.load", over, 2, arg, 4));
}

/* Loads one element per active lane from arbitrary addresses, as they are in memory. */
static LLVMValueRef load_gather(CgFn *f, const LBuf *b, CgAddr a) {
    Cg *g = f->g;
    LLVMTypeRef t = cpu_mem_type(g, b->dt), vt = cpu_vector_type(t, f->lanes);
    LLVMTypeRef over[2] = {vt, cpu_vector_type(g->ptr, f->lanes)};
    LLVMValueRef mask = f->mask ? f->mask : all_lanes_mask(f);
    LLVMValueRef arg[4] = {element_pointer(f, b, t, a.off), alignment(f, b), mask,
                           LLVMConstNull(vt)};
    return with_scopes(f, b, cpu_call(g, "llvm.masked.gather", over, 2, arg, 4));
}

/* Loads the vector of a local array that has an element per lane, as it is in memory. */
static LLVMValueRef load_private(CgFn *f, const LBuf *b, CgAddr a) {
    LLVMTypeRef vt = cpu_vector_type(cpu_mem_type(f->g, b->dt), f->lanes);
    return LLVMBuildLoad2(f->g->b, vt, element_pointer(f, b, vt, a.off), "");
}

/* Whether b is a local array of a vector loop, with an element per lane. */
static bool is_private(CgFn *f, const LBuf *b) {
    CgLocal *l = cpu_local_of(f, b);
    return l && l->lanes > 1;
}

/* Loads one element per lane at address a of b, in the way that suits it, converted to the type
 * that registers have. */
static LLVMValueRef load_lanes(CgFn *f, const LBuf *b, CgAddr a) {
    LLVMValueRef raw = is_private(f, b)              ? load_private(f, b, a)
                       : a.form == SHAPE_CONSECUTIVE ? load_contiguous(f, b, a)
                                                     : load_gather(f, b, a);
    return cpu_from_mem(f->g, b->dt, raw);
}

/* Stores one element per active lane to consecutive addresses. Lanes behind the end of a row may be
 * written where b is a padded local array. */
static void store_contiguous(CgFn *f, const LBuf *b, CgAddr a, LLVMValueRef raw) {
    Cg *g = f->g;
    LLVMTypeRef t = cpu_mem_type(g, b->dt);
    LLVMValueRef at = element_pointer(f, b, t, a.off);
    if (!f->mask || (a.aligned && f->mask == f->tail_mask)) {
        LLVMValueRef st = LLVMBuildStore(g->b, raw, at);
        LLVMSetAlignment(st, (unsigned)dtype_bytes(b->dt));
        with_scopes(f, b, st);
        return;
    }
    LLVMTypeRef over[2] = {LLVMTypeOf(raw), g->ptr};
    LLVMValueRef arg[4] = {raw, at, alignment(f, b), f->mask};
    with_scopes(f, b, cpu_call(g, "llvm.masked.store", over, 2, arg, 4));
}

/* Stores one element per active lane to arbitrary addresses. */
static void store_scatter(CgFn *f, const LBuf *b, CgAddr a, LLVMValueRef raw) {
    Cg *g = f->g;
    LLVMTypeRef over[2] = {LLVMTypeOf(raw), cpu_vector_type(g->ptr, f->lanes)};
    LLVMValueRef at = element_pointer(f, b, cpu_mem_type(g, b->dt), a.off);
    LLVMValueRef arg[4] = {raw, at, alignment(f, b), f->mask ? f->mask : all_lanes_mask(f)};
    with_scopes(f, b, cpu_call(g, "llvm.masked.scatter", over, 2, arg, 4));
}

/* Stores the vector of a local array that has an element per lane. Lanes that a condition excludes
 * keep their value. */
static void store_private(CgFn *f, const LBuf *b, CgAddr a, LLVMValueRef raw) {
    Cg *g = f->g;
    LLVMValueRef at = element_pointer(f, b, LLVMTypeOf(raw), a.off);
    if (f->mask && f->mask != f->tail_mask) {
        LLVMValueRef old = LLVMBuildLoad2(g->b, LLVMTypeOf(raw), at, "");
        raw = LLVMBuildSelect(g->b, f->mask, raw, old, "");
    }
    LLVMBuildStore(g->b, raw, at);
}

/* Stores one element per lane at address a of b, in the way that suits it. raw: already in the type
 * that memory has. */
static void store_raw(CgFn *f, const LBuf *b, CgAddr a, LLVMValueRef raw) {
    if (is_private(f, b))
        store_private(f, b, a, raw);
    else if (a.form == SHAPE_CONSECUTIVE)
        store_contiguous(f, b, a, raw);
    else
        store_scatter(f, b, a, raw);
}

/* Stores one element per lane at address a of b, converted to the type that memory has. */
static void store_lanes(CgFn *f, const LBuf *b, CgAddr a, LLVMValueRef v) {
    store_raw(f, b, a, cpu_to_mem(f->g, b->dt, v));
}

/* ---- rows in registers ----------------------------------------------------------------- */

/* The register (an alloca) with the vector of b's row that is being computed, if a tile keeps that
 * row in registers; NULL: it is in memory. */
static LLVMValueRef find_cell(CgFn *f, const LBuf *b) {
    for (int i = 0; f->lanes > 1 && i < f->n_cell; i++)
        if (f->cell[i].first->buf == b) return f->cell[i].at[f->vector];
    return NULL;
}

/* Reads the current vector of b's row from its register. */
static LLVMValueRef load_cell(CgFn *f, const LBuf *b, LLVMValueRef cell) {
    return LLVMBuildLoad2(f->g->b, cpu_vector_type(cpu_type(f->g, b->dt), f->lanes), cell, "");
}

/* Writes the current vector of b's row to its register: lanes behind the end of the row may get any
 * value, those that a condition excludes keep theirs. */
static void store_cell(CgFn *f, const LBuf *b, LLVMValueRef cell, LLVMValueRef v) {
    if (f->mask != f->tail_mask)
        v = LLVMBuildSelect(f->g->b, f->mask, v, load_cell(f, b, cell), "");
    LLVMBuildStore(f->g->b, v, cell);
}

/* Loads the current vector of a row from memory into its register, before a tile. */
void cpu_cell_fill(CgFn *f, CgCell *c) {
    CgAddr a = element_address(f, c->first->buf, c->first->idx);
    LLVMBuildStore(f->g->b, load_lanes(f, c->first->buf, a), c->at[f->vector]);
}

/* Stores the current vector of a row from its register to memory, after a tile. */
void cpu_cell_flush(CgFn *f, CgCell *c) {
    CgAddr a = element_address(f, c->first->buf, c->first->idx);
    store_lanes(f, c->first->buf, a, load_cell(f, c->first->buf, c->at[f->vector]));
}

/* ---- statements --------------------------------------------------------------------- */

CgVal cpu_load(CgFn *f, const LStmt *s) {
    LLVMValueRef cell = find_cell(f, s->buf);
    if (cell) {
        LLVMValueRef v = load_cell(f, s->buf, cell);
        return (CgVal){cpu_cast(f, v, s->buf->dt, s->dst->dt), SHAPE_VARYING, false};
    }
    CgAddr a = element_address(f, s->buf, s->idx);
    bool one = a.form == SHAPE_UNIFORM && !is_private(f, s->buf);
    LLVMValueRef v = one ? cpu_load_at(f, s->buf, a.off) : load_lanes(f, s->buf, a);
    return (CgVal){cpu_cast(f, v, s->buf->dt, s->dst->dt), one ? SHAPE_UNIFORM : SHAPE_VARYING,
                   false};
}

void cpu_store(CgFn *f, const LStmt *s) {
    CgVal x = f->reg[s->src->id];
    LLVMValueRef cell = find_cell(f, s->buf);
    if (cell) {
        store_cell(f, s->buf, cell,
                   cpu_cast(f, cpu_broadcast_to_lanes(f, x), s->src->dt, s->buf->dt));
        return;
    }
    Cg *g = f->g;
    CgAddr a = element_address(f, s->buf, s->idx);
    bool one = a.form == SHAPE_UNIFORM && !is_private(f, s->buf);
    LLVMValueRef v = cpu_cast(f, one ? x.v : cpu_broadcast_to_lanes(f, x), s->src->dt, s->buf->dt);
    bool rounded = s->src->dt == s->buf->dt; /* where it was computed (cpu_let) or loaded */
    v = rounded ? cpu_to_mem_exact(g, s->buf->dt, v) : cpu_to_mem(g, s->buf->dt, v);
    if (one)
        store_raw_at(f, s->buf, a.off, v);
    else
        store_raw(f, s->buf, a, v);
}

/* Emits acc combined with the source of accumulation s. A product that is added up is one fused
 * multiply-add where the machine has it, in scalar and vector code alike. */
static LLVMValueRef emit_combined(CgFn *f, const LStmt *s, LLVMValueRef acc) {
    Cg *g = f->g;
    const LStmt *d = f->def[s->src->id];
    bool f_mul = d && d->fn == L_FN_OP && d->op == OP_MUL && dtype_is_float(s->src->dt);
    if (s->red != RED_SUM || !f_mul || s->src->dt != s->buf->dt || !g->machine.fma)
        return cpu_combine(
            f, s->red, s->buf->dt, acc,
            cpu_cast(f, cpu_broadcast_to_lanes(f, f->reg[s->src->id]), s->src->dt, s->buf->dt));
    LLVMTypeRef t = LLVMTypeOf(acc);
    LLVMValueRef arg[3] = {cpu_broadcast_to_lanes(f, f->reg[d->arg[0]->id]),
                           cpu_broadcast_to_lanes(f, f->reg[d->arg[1]->id]), acc};
    return cpu_call(g, "llvm.fma", &t, 1, arg, 3);
}

/* The vector that collects the sums of accumulation s per lane during a vector loop; NULL: there is
 * none. */
static CgAccumulator *find_accumulator(CgFn *f, const LStmt *s) {
    for (int i = 0; i < f->n_accumulators; i++)
        if (f->accumulator[i].acc == s) return &f->accumulator[i];
    return NULL;
}

/* Accumulates the source of s into the vector of accumulator `fold`, in the active lanes. */
static void accumulate_in_register(CgFn *f, const LStmt *s, CgAccumulator *fold) {
    Cg *g = f->g;
    LLVMTypeRef t = cpu_vector_type(cpu_type(g, s->buf->dt), f->lanes);
    LLVMValueRef old = LLVMBuildLoad2(g->b, t, fold->at, ""), now = emit_combined(f, s, old);
    if (f->mask) now = LLVMBuildSelect(g->b, f->mask, now, old, "");
    LLVMBuildStore(g->b, now, fold->at);
}

/* Accumulates the source of s in all active lanes into the one address a: the lanes are reduced in
 * a fixed tree, then combined with the element. */
static void accumulate_reduced(CgFn *f, const LStmt *s, CgAddr a) {
    DType dt = s->buf->dt;
    LLVMValueRef x = cpu_cast(f, cpu_broadcast_to_lanes(f, f->reg[s->src->id]), s->src->dt, dt);
    if (f->mask)
        x = LLVMBuildSelect(f->g->b, f->mask, x, cpu_identity(f, s->red, dt, f->lanes), "");
    x = cpu_reduce_lanes(f, s->red, dt, x);
    cpu_store_at(f, s->buf, a.off, cpu_combine(f, s->red, dt, cpu_load_at(f, s->buf, a.off), x));
}

/* Combines scalar x with the element that accumulation s adds to. */
void cpu_acc_value(CgFn *f, const LStmt *s, LLVMValueRef x) {
    LLVMValueRef at = element_address(f, s->buf, s->idx).off;
    cpu_store_at(f, s->buf, at, cpu_combine(f, s->red, s->buf->dt, cpu_load_at(f, s->buf, at), x));
}

/* Accumulates the source of s lane after lane, in a loop, since two lanes may have the same
 * address. */
static void accumulate_by_lane(CgFn *f, const LStmt *s, CgAddr a) {
    Cg *g = f->g;
    DType dt = s->buf->dt;
    LLVMValueRef x = cpu_cast(f, cpu_broadcast_to_lanes(f, f->reg[s->src->id]), s->src->dt, dt);
    LLVMValueRef mask = f->mask ? f->mask : all_lanes_mask(f);
    CgLoop l = cpu_loop_begin(f, cpu_i64(g, 0), cpu_i64(g, f->lanes), 1);
    LLVMBasicBlockRef then = cpu_new_block(f, "lane"), end = cpu_new_block(f, "next");
    LLVMBuildCondBr(g->b, LLVMBuildExtractElement(g->b, mask, l.i, ""), then, end);
    LLVMPositionBuilderAtEnd(g->b, then);
    LLVMValueRef off = LLVMBuildExtractElement(g->b, a.off, l.i, "");
    LLVMValueRef xi = LLVMBuildExtractElement(g->b, x, l.i, "");
    cpu_store_at(f, s->buf, off, cpu_combine(f, s->red, dt, cpu_load_at(f, s->buf, off), xi));
    LLVMBuildBr(g->b, end);
    LLVMPositionBuilderAtEnd(g->b, end);
    cpu_loop_end(f, &l);
}

void cpu_acc(CgFn *f, const LStmt *s) {
    CgAccumulator *fold = find_accumulator(f, s);
    if (fold) {
        accumulate_in_register(f, s, fold);
        return;
    }
    LLVMValueRef cell = find_cell(f, s->buf);
    if (cell) {
        store_cell(f, s->buf, cell, emit_combined(f, s, load_cell(f, s->buf, cell)));
        return;
    }
    CgAddr a = element_address(f, s->buf, s->idx);
    bool private = is_private(f, s->buf);
    if (f->lanes == 1)
        cpu_store_at(f, s->buf, a.off, emit_combined(f, s, cpu_load_at(f, s->buf, a.off)));
    else if (private || a.form == SHAPE_CONSECUTIVE)
        store_lanes(f, s->buf, a, emit_combined(f, s, load_lanes(f, s->buf, a)));
    else if (a.form == SHAPE_UNIFORM)
        accumulate_reduced(f, s, a);
    else
        accumulate_by_lane(f, s, a);
}

/* The width n of a row, padded to whole vectors of the width that a loop over the row gets. */
static int64_t padded_width(CgFn *f, int64_t n) {
    int w = 1;
    while (w < n && w < f->g->machine.lanes) w *= 2;
    return (n + w - 1) / w * w;
}

/* Reserves stack memory for the local array of statement s, with an element per lane in a vector
 * loop; outside, rows are padded to whole vectors. */
void cpu_local(CgFn *f, const LStmt *s) {
    CgLocal *l = cpu_local_of(f, s->buf);
    LLVMTypeRef t = cpu_vector_type(cpu_mem_type(f->g, s->buf->dt), f->lanes);
    int64_t count = 1, n = 1;
    for (int i = 0; i < s->buf->rank; i++) {
        bool constant = expr_is_const(s->buf->dim[i], &n);
        CTX_HOLDS(f->g->c, constant, s->span);
        if (i == s->buf->rank - 1 && f->lanes == 1) n = padded_width(f, n);
        count *= n;
    }
    *l = (CgLocal){cpu_alloca(f, t, count ? count : 1), f->lanes, s->buf->rank ? n : 1};
}
