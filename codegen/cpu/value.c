/* Types, constants, sizes and lane forms of LLVM values; blocks and memory of a function. */
#include "codegen/cpu/cpu.h"

/* The LLVM type that a value of element type dt has in a register: values of 16 bits are computed
 * in f32. */
LLVMTypeRef cpu_type(Cg *g, DType dt) {
    switch (dt) {
    case DT_F16:
    case DT_BF16:
    case DT_F32:
        return g->f32;
    case DT_F64:
        return g->f64;
    case DT_I32:
        return g->i32;
    case DT_I64:
        return g->i64;
    case DT_I1:
        return g->i1;
    default:
        return g->void_;
    }
}

/* The LLVM type that an element of type dt has in memory: i16 for values of 16 bits, i8 for
 * bools. */
LLVMTypeRef cpu_mem_type(Cg *g, DType dt) {
    switch (dt) {
    case DT_F16:
    case DT_BF16:
        return g->i16;
    case DT_I1:
        return g->i8;
    default:
        return cpu_type(g, dt);
    }
}

/* The vector type with w lanes; t itself for one. */
LLVMTypeRef cpu_vector_type(LLVMTypeRef t, int w) {
    return w == 1 ? t : LLVMVectorType(t, (unsigned)w);
}

LLVMValueRef cpu_i64(Cg *g, int64_t v) {
    return LLVMConstInt(g->i64, (unsigned long long)v, 1);
}

/* The value v in each of w lanes; v itself for one lane. */
LLVMValueRef cpu_splat(Cg *g, LLVMValueRef v, int w) {
    if (w == 1) return v;
    if (LLVMIsConstant(v)) {
        LLVMValueRef e[64];
        for (int i = 0; i < w; i++) e[i] = v;
        return LLVMConstVector(e, (unsigned)w);
    }
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(v), (unsigned)w);
    LLVMTypeRef mt = LLVMVectorType(g->i32, (unsigned)w);
    LLVMValueRef one =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(t), v, LLVMConstInt(g->i32, 0, 0), "");
    return LLVMBuildShuffleVector(g->b, one, LLVMGetPoison(t), LLVMConstNull(mt), "");
}

/* The integers 0, 1, .. w - 1, one per lane. */
LLVMValueRef cpu_iota(Cg *g, LLVMTypeRef int_type, int w) {
    (void)g;
    if (w == 1) return LLVMConstNull(int_type);
    LLVMValueRef e[64];
    for (int i = 0; i < w; i++) e[i] = LLVMConstInt(int_type, (unsigned)i, 0);
    return LLVMConstVector(e, (unsigned)w);
}

/* The value as a vector of the current number of lanes. */
LLVMValueRef cpu_broadcast_to_lanes(CgFn *f, CgVal v) {
    Cg *g = f->g;
    if (v.shape == SHAPE_VARYING || f->lanes == 1) return v.v;
    LLVMValueRef s = cpu_splat(g, v.v, f->lanes);
    if (v.shape == SHAPE_UNIFORM) return s;
    return LLVMBuildAdd(g->b, s, cpu_iota(g, LLVMTypeOf(v.v), f->lanes), "");
}

LLVMValueRef cpu_call(Cg *g, const char *intrinsic, LLVMTypeRef *over, int n_over,
                      LLVMValueRef *arg, int n_arg) {
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    assert(id != 0);
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(g->mod, id, over, (size_t)n_over);
    return LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, arg, (unsigned)n_arg, "");
}

LLVMValueRef cpu_any_lane(CgFn *f, LLVMValueRef mask) {
    if (f->lanes == 1 || cpu_width(mask) == 1) return mask; /* one for all lanes */
    LLVMTypeRef t = LLVMTypeOf(mask);
    return cpu_call(f->g, "llvm.vector.reduce.or", &t, 1, &mask, 1);
}

int cpu_width(LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

/* An integer constant, in as many lanes as `like`. */
LLVMValueRef cpu_const_int(LLVMValueRef like, LLVMTypeRef t, int64_t v) {
    LLVMValueRef e[64], one = LLVMConstInt(t, (unsigned long long)v, 1);
    int w = cpu_width(like);
    if (w == 1) return one;
    for (int i = 0; i < w; i++) e[i] = one;
    return LLVMConstVector(e, (unsigned)w);
}

/* Converts bf16, the upper half of an f32, to f32, by lane. */
static LLVMValueRef bf16_to_f32(Cg *g, LLVMValueRef raw) {
    int w = cpu_width(raw);
    LLVMValueRef x = LLVMBuildZExt(g->b, raw, cpu_vector_type(g->i32, w), "");
    x = LLVMBuildShl(g->b, x, cpu_const_int(x, g->i32, 16), "");
    return LLVMBuildBitCast(g->b, x, cpu_vector_type(g->f32, w), "");
}

/* Converts f32 to bf16, by lane: rounds to nearest, ties to even, and keeps NaN. */
static LLVMValueRef f32_to_bf16(Cg *g, LLVMValueRef v) {
    int w = cpu_width(v);
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, "");
    LLVMValueRef x = LLVMBuildBitCast(g->b, v, cpu_vector_type(g->i32, w), "");
    LLVMValueRef sixteen = cpu_const_int(x, g->i32, 16);
    LLVMValueRef odd = LLVMBuildLShr(g->b, x, sixteen, "");
    odd = LLVMBuildAnd(g->b, odd, cpu_const_int(x, g->i32, 1), "");
    LLVMValueRef up = LLVMBuildAdd(g->b, odd, cpu_const_int(x, g->i32, 0x7fff), "");
    LLVMValueRef rounded = LLVMBuildAdd(g->b, x, up, "");
    LLVMValueRef quiet = LLVMBuildOr(g->b, x, cpu_const_int(x, g->i32, 0x400000), "");
    x = LLVMBuildLShr(g->b, LLVMBuildSelect(g->b, nan, quiet, rounded, ""), sixteen, "");
    return LLVMBuildTrunc(g->b, x, cpu_vector_type(g->i16, w), "");
}

/* Converts an element from memory to the type of registers. */
LLVMValueRef cpu_from_mem(Cg *g, DType dt, LLVMValueRef raw) {
    int w = cpu_width(raw);
    if (dt == DT_I1) return LLVMBuildICmp(g->b, LLVMIntNE, raw, LLVMConstNull(LLVMTypeOf(raw)), "");
    if (dt == DT_BF16) return bf16_to_f32(g, raw);
    if (dt != DT_F16) return raw;
    raw = LLVMBuildBitCast(g->b, raw, cpu_vector_type(g->f16, w), "");
    return LLVMBuildFPExt(g->b, raw, cpu_vector_type(g->f32, w), "");
}

/* The same of a bf16 value that is already rounded: truncation is enough. */
LLVMValueRef cpu_to_mem_exact(Cg *g, DType dt, LLVMValueRef v) {
    if (dt != DT_BF16) return cpu_to_mem(g, dt, v);
    int w = cpu_width(v);
    LLVMValueRef x = LLVMBuildBitCast(g->b, v, cpu_vector_type(g->i32, w), "");
    x = LLVMBuildLShr(g->b, x, cpu_const_int(x, g->i32, 16), "");
    return LLVMBuildTrunc(g->b, x, cpu_vector_type(g->i16, w), "");
}

LLVMValueRef cpu_to_mem(Cg *g, DType dt, LLVMValueRef v) {
    int w = cpu_width(v);
    if (dt == DT_I1) return LLVMBuildZExt(g->b, v, cpu_vector_type(g->i8, w), "");
    if (dt == DT_BF16) return f32_to_bf16(g, v);
    if (dt != DT_F16) return v;
    v = LLVMBuildFPTrunc(g->b, v, cpu_vector_type(g->f16, w), "");
    return LLVMBuildBitCast(g->b, v, cpu_vector_type(g->i16, w), "");
}

/* ---- blocks, and memory of the function -------- */
LLVMBasicBlockRef cpu_new_block(CgFn *f, const char *name) {
    return LLVMAppendBasicBlockInContext(f->g->lc, f->fn, name);
}

LLVMValueRef cpu_alloca(CgFn *f, LLVMTypeRef t, int64_t count) {
    LLVMTypeRef type = count == 1 ? t : LLVMArrayType2(t, (uint64_t)count);
    LLVMValueRef at = LLVMBuildAlloca(f->g->entry, type, "");
    LLVMSetAlignment(at, 64);
    return at;
}

/* ---- symbolic sizes: evaluated once, in the entry block -------- */
/* The size of a symbol, loaded once in the entry block. */
static LLVMValueRef load_size(CgFn *f, const Sym *s) {
    Cg *g = f->g;
    if (f->sym[s->id]) return f->sym[s->id];
    LLVMValueRef at = cpu_i64(g, s->id);
    at = LLVMBuildInBoundsGEP2(g->entry, g->i64, f->n, &at, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(g->entry, g->i64, at, s->name);
    LLVMSetMetadata(v, g->md_invariant,
                    LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, NULL, 0)));
    return f->sym[s->id] = v;
}

/* The larger or smaller of two sizes, as the predicate says. */
LLVMValueRef cpu_select_size(Cg *g, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y) {
    return LLVMBuildSelect(g->entry, LLVMBuildICmp(g->entry, p, x, y, ""), x, y, "");
}

LLVMValueRef cpu_size(CgFn *f, const Expr *e) {
    Cg *g = f->g;
    if (e->kind == EX_CONST) return cpu_i64(g, e->c);
    if (e->kind == EX_SYM) return load_size(f, e->sym);
    LLVMValueRef x = cpu_size(f, e->a), y = cpu_size(f, e->b);
    switch (e->kind) {
    case EX_ADD:
        return LLVMBuildNSWAdd(g->entry, x, y, "");
    case EX_MUL:
        return LLVMBuildNSWMul(g->entry, x, y, "");
    case EX_CEILDIV:
        x = LLVMBuildAdd(g->entry, x, LLVMBuildSub(g->entry, y, cpu_i64(g, 1), ""), "");
        return LLVMBuildSDiv(g->entry, x, y, "");
    case EX_MAX:
        return cpu_select_size(g, LLVMIntSGT, x, y);
    default:
        assert(e->kind == EX_MIN);
        return cpu_select_size(g, LLVMIntSLT, x, y);
    }
}
