/* L_LET: scalar functions, on one value or a vector of them. */
#include <math.h>

#include "codegen/cpu/cpu.h"

/* Whether v is of type f32 or f64, or a vector of these. */
static bool is_float(LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) t = LLVMGetElementType(t);
    return LLVMGetTypeKind(t) == LLVMFloatTypeKind || LLVMGetTypeKind(t) == LLVMDoubleTypeKind;
}

/* Whether v is of type i1, or a vector of it. */
static bool is_bool(LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) t = LLVMGetElementType(t);
    return LLVMGetTypeKind(t) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) == 1;
}

/* Zero, in the type of v. */
static LLVMValueRef zero_like(LLVMValueRef v) {
    return LLVMConstNull(LLVMTypeOf(v));
}

/* ---- casts --------------------------------------------------------------------------- */

/* Rounds v, which is computed in f32, as a value of type dt would be: to the 16 bits of f16 or
 * bf16. Other types stay as they are. */
static LLVMValueRef round_to(Cg *g, LLVMValueRef v, DType dt) {
    if (dt != DT_F16 && dt != DT_BF16) return v;
    return cpu_from_mem(g, dt, cpu_to_mem(g, dt, v));
}

/* Converts a float to type `to`: to bool by comparing with 0, to integers with saturation. */
static LLVMValueRef cast_float(Cg *g, LLVMValueRef v, DType to) {
    int w = cpu_width(v);
    LLVMTypeRef t = cpu_vector_type(cpu_type(g, to), w);
    if (to == DT_I1) return LLVMBuildFCmp(g->b, LLVMRealUNE, v, zero_like(v), "");
    if (dtype_is_float(to)) return LLVMBuildFPCast(g->b, v, t, "");
    LLVMTypeRef over[2] = {t, LLVMTypeOf(v)}; /* saturates; NaN gives 0 */
    return cpu_call(g, "llvm.fptosi.sat", over, 2, &v, 1);
}

/* Converts an integer or bool to type `to`. */
static LLVMValueRef cast_int(Cg *g, LLVMValueRef v, DType to) {
    LLVMTypeRef t = cpu_vector_type(cpu_type(g, to), cpu_width(v));
    if (to == DT_I1) return LLVMBuildICmp(g->b, LLVMIntNE, v, zero_like(v), "");
    if (dtype_is_float(to))
        return is_bool(v) ? LLVMBuildUIToFP(g->b, v, t, "") : LLVMBuildSIToFP(g->b, v, t, "");
    return is_bool(v) ? LLVMBuildZExt(g->b, v, t, "") : LLVMBuildIntCast2(g->b, v, t, 1, "");
}

LLVMValueRef cpu_cast(CgFn *f, LLVMValueRef v, DType from, DType to) {
    Cg *g = f->g;
    if (from == to) return v;
    return round_to(g, dtype_is_float(from) ? cast_float(g, v, to) : cast_int(g, v, to), to);
}

/* ---- arithmetic ------------------------------------------------------------------------ */

/* The greater (or the lesser) of x and y; y where one is NaN. */
static LLVMValueRef select_extreme(Cg *g, bool greater, LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef c =
        is_float(x)  ? LLVMBuildFCmp(g->b, greater ? LLVMRealOGT : LLVMRealOLT, x, y, "")
        : is_bool(x) ? LLVMBuildICmp(g->b, greater ? LLVMIntUGT : LLVMIntULT, x, y, "")
                     : LLVMBuildICmp(g->b, greater ? LLVMIntSGT : LLVMIntSLT, x, y, "");
    return LLVMBuildSelect(g->b, c, x, y, "");
}

LLVMValueRef cpu_combine(CgFn *f, RedKind r, DType dt, LLVMValueRef acc, LLVMValueRef x) {
    Cg *g = f->g;
    (void)dt;
    if (r != RED_SUM) return select_extreme(g, r == RED_MAX, x, acc);
    if (is_bool(acc)) return LLVMBuildOr(g->b, acc, x, "");
    return is_float(acc) ? LLVMBuildFAdd(g->b, acc, x, "") : LLVMBuildAdd(g->b, acc, x, "");
}

/* The quotient of integers, defined for all operands: x / 0 is 0. It is computed in 64 bits, where
 * no quotient of 32-bit values overflows; x / -1 is a negation. */
static LLVMValueRef int_div(Cg *g, LLVMValueRef x, LLVMValueRef y, DType dt) {
    LLVMTypeRef t = LLVMTypeOf(x), wide = cpu_vector_type(g->i64, cpu_width(x));
    LLVMValueRef zero = LLVMBuildICmp(g->b, LLVMIntEQ, y, zero_like(y), "");
    LLVMValueRef minus = LLVMBuildICmp(g->b, LLVMIntEQ, y, LLVMConstAllOnes(t), "");
    LLVMValueRef negated = LLVMBuildNeg(g->b, x, "");
    LLVMValueRef unsafe = LLVMBuildOr(g->b, zero, minus, "");
    LLVMValueRef by = LLVMBuildSelect(g->b, unsafe, cpu_const_int(y, cpu_type(g, dt), 1), y, "");
    LLVMValueRef q = LLVMBuildSDiv(g->b, LLVMBuildSExtOrBitCast(g->b, x, wide, ""),
                                   LLVMBuildSExtOrBitCast(g->b, by, wide, ""), "");
    q = LLVMBuildTruncOrBitCast(g->b, q, t, "");
    q = LLVMBuildSelect(g->b, minus, negated, q, "");
    return LLVMBuildSelect(g->b, zero, zero_like(x), q, "");
}

/* Emits a binary operation on two values of type dt; NULL: op is an elementary function
 * (math.c). */
static LLVMValueRef arithmetic(Cg *g, OpKind op, DType dt, LLVMValueRef x, LLVMValueRef y) {
    bool fl = is_float(x);
    switch (op) {
    case OP_ADD:
        return fl ? LLVMBuildFAdd(g->b, x, y, "") : LLVMBuildAdd(g->b, x, y, "");
    case OP_SUB:
        return fl ? LLVMBuildFSub(g->b, x, y, "") : LLVMBuildSub(g->b, x, y, "");
    case OP_MUL:
        return fl ? LLVMBuildFMul(g->b, x, y, "") : LLVMBuildMul(g->b, x, y, "");
    case OP_DIV:
        return fl ? LLVMBuildFDiv(g->b, x, y, "") : int_div(g, x, y, dt);
    case OP_MAX:
        return select_extreme(g, true, x, y);
    case OP_MIN:
        return select_extreme(g, false, x, y);
    case OP_AND:
        return LLVMBuildAnd(g->b, x, y, "");
    case OP_OR:
        return LLVMBuildOr(g->b, x, y, "");
    default:
        return NULL;
    }
}

/* Emits the comparison op (<, <= or =) of two values; false where one is NaN. */
static LLVMValueRef compare(Cg *g, OpKind op, LLVMValueRef x, LLVMValueRef y) {
    if (is_float(x)) {
        LLVMRealPredicate p = op == OP_LT ? LLVMRealOLT : op == OP_LE ? LLVMRealOLE : LLVMRealOEQ;
        return LLVMBuildFCmp(g->b, p, x, y, "");
    }
    bool u = is_bool(x);
    LLVMIntPredicate p = op == OP_LT   ? (u ? LLVMIntULT : LLVMIntSLT)
                         : op == OP_LE ? (u ? LLVMIntULE : LLVMIntSLE)
                                       : LLVMIntEQ;
    return LLVMBuildICmp(g->b, p, x, y, "");
}

/* A call of an LLVM intrinsic with one argument, which it is overloaded on. */
static LLVMValueRef intrinsic1(Cg *g, const char *name, LLVMValueRef x) {
    LLVMTypeRef t = LLVMTypeOf(x);
    return cpu_call(g, name, &t, 1, &x, 1);
}

/* The absolute value of a float, integer or bool. */
static LLVMValueRef absolute(Cg *g, LLVMValueRef x) {
    if (is_float(x)) return intrinsic1(g, "llvm.fabs", x);
    if (is_bool(x)) return x;
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSLT, x, zero_like(x), "");
    return LLVMBuildSelect(g->b, low, LLVMBuildNeg(g->b, x, ""), x, "");
}

/* Emits an operation with one operand of type dt. */
static LLVMValueRef unary(CgFn *f, OpKind op, DType dt, LLVMValueRef x) {
    Cg *g = f->g;
    switch (op) {
    case OP_NEG:
        return is_float(x) ? LLVMBuildFNeg(g->b, x, "") : LLVMBuildNeg(g->b, x, "");
    case OP_ABS:
        return absolute(g, x);
    case OP_NOT:
        return LLVMBuildNot(g->b, x, "");
    case OP_ISNAN:
        return is_float(x) ? LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "") : zero_like(x);
    case OP_DETACH:
    case OP_STORE_AS:
    case OP_COPY:
        return x;
    case OP_SQRT:
        return intrinsic1(g, "llvm.sqrt", x);
    case OP_FLOOR:
        return is_float(x) ? intrinsic1(g, "llvm.floor", x) : x;
    case OP_RSQRT: {
        LLVMValueRef one = LLVMConstReal(cpu_type(g, dt), 1.0);
        return LLVMBuildFDiv(g->b, cpu_splat(g, one, cpu_width(x)), intrinsic1(g, "llvm.sqrt", x),
                             "");
    }
    default:
        return cpu_math(f, op, dt, x, NULL);
    }
}

/* Emits the operation of the graph IR that statement s applies to its operands x[]. */
static LLVMValueRef elementwise(CgFn *f, const LStmt *s, LLVMValueRef *x) {
    Cg *g = f->g;
    DType dt = s->arg[0]->dt;
    if (s->op == OP_CAST) return cpu_cast(f, x[0], dt, s->dst->dt);
    if (s->op == OP_SELECT) {
        LLVMValueRef c = x[0];
        return LLVMBuildSelect(g->b, c, x[1], x[2], "");
    }
    if (s->n_arg == 1) return unary(f, s->op, dt, x[0]);
    if (op_traits(s->op) & OPT_CMP) return compare(g, s->op, x[0], x[1]);
    LLVMValueRef v = arithmetic(g, s->op, dt, x[0], x[1]);
    return v ? v : cpu_math(f, s->op, dt, x[0], x[1]);
}

/* ---- random numbers: runtime/exec/rng.h in IR -------- */

/* x xor (x >> bits), for 32-bit integers: a step of the hash. */
static LLVMValueRef shift_xor(Cg *g, LLVMValueRef x, int bits) {
    LLVMValueRef s = LLVMBuildLShr(g->b, x, cpu_const_int(x, g->i32, bits), "");
    return LLVMBuildXor(g->b, x, s, "");
}

/* Hashes 32 bits, as rt_mix32() does. */
static LLVMValueRef mix32(Cg *g, LLVMValueRef x) {
    x = LLVMBuildMul(g->b, shift_xor(g, x, 16), cpu_const_int(x, g->i32, 0x21f0aaad), "");
    x = LLVMBuildMul(g->b, shift_xor(g, x, 15), cpu_const_int(x, g->i32, 0xd35a2d97), "");
    return shift_xor(g, x, 15);
}

/* The 32 random bits that rt_uniform() of runtime/exec/rng.h makes its number of. x[0], x[1]: the
 * key of the stream; x[2], x[3]: row and column. */
static LLVMValueRef random_bits(Cg *g, LLVMValueRef *x) {
    LLVMTypeRef t = cpu_vector_type(g->i32, cpu_width(x[0]));
    LLVMValueRef row = LLVMBuildTrunc(g->b, x[2], t, ""), col = LLVMBuildTrunc(g->b, x[3], t, "");
    LLVMValueRef h = mix32(g, LLVMBuildXor(g->b, row, x[0], ""));
    col = LLVMBuildMul(g->b, col, cpu_const_int(col, g->i32, 0x9E3779B9), "");
    return mix32(g, LLVMBuildXor(g->b, h, LLVMBuildAdd(g->b, col, x[1], ""), ""));
}

/* A uniform random f32 in [0, 1): the upper 24 of the random bits of x[], times 2^-24. */
static LLVMValueRef random_unit(Cg *g, LLVMValueRef *x) {
    int w = cpu_width(x[0]);
    LLVMValueRef h = random_bits(g, x);
    h = LLVMBuildLShr(g->b, h, cpu_const_int(h, g->i32, 8), "");
    h = LLVMBuildSIToFP(g->b, h, cpu_vector_type(g->f32, w), ""); /* below 2^24: exact */
    return LLVMBuildFMul(g->b, h, cpu_splat(g, LLVMConstReal(g->f32, 0x1p-24), w), "");
}

/* Whether p <= the number that random_unit() would give. It compares the bits with an integer,
 * which is exact, as both the conversion and the product are. */
static LLVMValueRef at_most_random(Cg *g, double p, LLVMValueRef *x) {
    LLVMValueRef h = random_bits(g, x);
    LLVMValueRef bound = cpu_const_int(h, g->i32, (int64_t)ceil(p * 0x1p24) << 8);
    return LLVMBuildICmp(g->b, LLVMIntUGE, h, bound, "");
}

/* ---- the statement --------------------------------------------------------------------------- */

/* The constant of statement s, in its destination's type. */
static LLVMValueRef constant(Cg *g, const LStmt *s) {
    LLVMTypeRef t = cpu_type(g, s->dst->dt);
    if (dtype_is_float(s->dst->dt)) return round_to(g, LLVMConstReal(t, s->imm), s->dst->dt);
    return LLVMConstInt(t, (unsigned long long)(int64_t)s->imm, 1);
}

/* Emits an operation on index values (i64): arithmetic or a comparison. They cannot overflow. */
static LLVMValueRef index_op(Cg *g, LFn fn, LLVMValueRef x, LLVMValueRef y) {
    switch (fn) {
    case L_FN_IADD:
        return LLVMBuildNSWAdd(g->b, x, y, "");
    case L_FN_ISUB:
        return LLVMBuildNSWSub(g->b, x, y, "");
    case L_FN_IMUL:
        return LLVMBuildNSWMul(g->b, x, y, "");
    case L_FN_IDIV:
        return LLVMBuildSDiv(g->b, x, y, "");
    case L_FN_IREM:
        return LLVMBuildSRem(g->b, x, y, "");
    case L_FN_ILT:
        return LLVMBuildICmp(g->b, LLVMIntSLT, x, y, "");
    case L_FN_IGE:
        return LLVMBuildICmp(g->b, LLVMIntSGE, x, y, "");
    default:
        assert(fn == L_FN_IEQ);
        return LLVMBuildICmp(g->b, LLVMIntEQ, x, y, "");
    }
}

/* Whether the result of s increases by one from lane to lane, as one of its operands does: a
 * uniform value is added to that, or subtracted from it. */
static bool stays_consecutive(CgFn *f, const LStmt *s) {
    if (s->fn != L_FN_IADD && s->fn != L_FN_ISUB) return false;
    CgShape x = f->reg[s->arg[0]->id].shape, y = f->reg[s->arg[1]->id].shape;
    return (x == SHAPE_CONSECUTIVE && y == SHAPE_UNIFORM) ||
           (s->fn == L_FN_IADD && x == SHAPE_UNIFORM && y == SHAPE_CONSECUTIVE);
}

/* Whether the result of s is uniform, consecutive or varying over the lanes. It is uniform if all
 * operands are: as a vector operation, a division would be computed once per lane. */
static CgShape result_shape(CgFn *f, const LStmt *s) {
    if (stays_consecutive(f, s)) return SHAPE_CONSECUTIVE;
    for (int i = 0; i < s->n_arg; i++)
        if (f->reg[s->arg[i]->id].shape != SHAPE_UNIFORM) return SHAPE_VARYING;
    return SHAPE_UNIFORM;
}

CgVal cpu_let(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    CgVal out = {NULL, result_shape(f, s), false};
    LLVMValueRef x[4] = {0};
    for (int i = 0; i < s->n_arg; i++) {
        CgVal v = f->reg[s->arg[i]->id];
        x[i] = out.shape == SHAPE_VARYING ? cpu_broadcast_to_lanes(f, v) : v.v;
    }
    switch (s->fn) {
    case L_FN_OP:
        out.v = elementwise(f, s, x);
        if (s->op != OP_CAST) out.v = round_to(g, out.v, s->dst->dt); /* cpu_cast() has */
        break;
    case L_FN_CONST:
        out.v = constant(g, s);
        break;
    case L_FN_SIZE:
        out.v = cpu_size(f, s->size);
        break;
    case L_FN_RANDOM:
        out.v = random_unit(g, x);
        break;
    case L_FN_LE_RANDOM:
        out.v = at_most_random(g, s->imm, x);
        break;
    default:
        out.v = index_op(g, s->fn, x[0], x[1]);
        break;
    }
    return out;
}
