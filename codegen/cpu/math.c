/* Elementary functions of f32 as straight-line IR, the same for one lane and for
 * many, so that scalar and vector code agree to the bit; f64 calls libm lane by lane.
 *
 * Each is a range reduction and a polynomial (J.-M. Muller, Elementary Functions,
 * 3rd ed., 2016; the reductions of exp, log and tanh are those of Cody and Waite,
 * Software Manual for the Elementary Functions, 1980, as Moshier's Cephes uses
 * them).  The coefficients are our own: minimax fits by Remez exchange on the
 * reduced interval for relative error, rounded to f32.  tests/unit/cpu_test.c
 * sweeps all of them against libm in double and bounds the error in ulp. */
#include "codegen/cpu/cpu.h"

typedef LLVMValueRef V;

/* ---- a small algebra over f32, i32, f64 values of w lanes ------------------------- */

/* An f32 constant, in as many lanes as `like`. */
static V c32(Cg *g, V like, double x) {
    return cpu_splat(g, LLVMConstReal(g->f32, x), cpu_width(like));
}

/* An f64 constant, in as many lanes as `like`. */
static V c64(Cg *g, V like, double x) {
    return cpu_splat(g, LLVMConstReal(g->f64, x), cpu_width(like));
}

/* An i32 constant, in as many lanes as `like`. */
static V ci(Cg *g, V like, int64_t x) {
    return cpu_const_int(like, g->i32, x);
}

/* An i64 constant, in as many lanes as `like`. */
static V cl(Cg *g, V like, int64_t x) {
    return cpu_const_int(like, g->i64, x);
}
static V add(Cg *g, V x, V y) {
    return LLVMBuildFAdd(g->b, x, y, "");
}
static V sub(Cg *g, V x, V y) {
    return LLVMBuildFSub(g->b, x, y, "");
}
static V mul(Cg *g, V x, V y) {
    return LLVMBuildFMul(g->b, x, y, "");
}
static V quot(Cg *g, V x, V y) {
    return LLVMBuildFDiv(g->b, x, y, "");
}

/* x in the lanes where c holds, y in the others. */
static V sel(Cg *g, V c, V x, V y) {
    return LLVMBuildSelect(g->b, c, x, y, "");
}

/* Whether x < y, by lane; false where one is NaN. */
static V less(Cg *g, V x, V y) {
    return LLVMBuildFCmp(g->b, LLVMRealOLT, x, y, "");
}

/* Whether x = y, by lane; false where one is NaN. */
static V same(Cg *g, V x, V y) {
    return LLVMBuildFCmp(g->b, LLVMRealOEQ, x, y, "");
}

/* Whether x or y is NaN, by lane. */
static V unordered(Cg *g, V x, V y) {
    return LLVMBuildFCmp(g->b, LLVMRealUNO, x, y, "");
}
static V both(Cg *g, V x, V y) {
    return LLVMBuildAnd(g->b, x, y, "");
}

/* The bits of x as values of type t, by lane. */
static V as(Cg *g, V x, LLVMTypeRef t) {
    return LLVMBuildBitCast(g->b, x, cpu_vector_type(t, cpu_width(x)), "");
}

/* A call of an LLVM intrinsic with one argument, which it is overloaded on. */
static V call1(Cg *g, const char *name, V x) {
    LLVMTypeRef t = LLVMTypeOf(x);
    return cpu_call(g, name, &t, 1, &x, 1);
}

/* The absolute value of x. */
static V magnitude(Cg *g, V x) {
    return call1(g, "llvm.fabs", x);
}

/* The magnitude of x with the sign of `sign`. */
static V with_sign_of(Cg *g, V x, V sign) {
    LLVMTypeRef t = LLVMTypeOf(x);
    V arg[2] = {x, sign};
    return cpu_call(g, "llvm.copysign", &t, 1, arg, 2);
}

/* x * y + z, as one fused operation where the machine has it. */
static V mad(Cg *g, V x, V y, V z) {
    if (!g->machine.fma) return add(g, mul(g, x, y), z);
    LLVMTypeRef t = LLVMTypeOf(x);
    V arg[3] = {x, y, z};
    return cpu_call(g, "llvm.fma", &t, 1, arg, 3);
}

/* The polynomial c[0] + c[1] x + .. + c[n - 1] x^(n - 1) by Horner's scheme, in f32 or f64 as x
 * is. */
static V poly(Cg *g, V x, const double *c, int n) {
    bool wide = LLVMTypeOf(x) == cpu_vector_type(g->f64, cpu_width(x));
    V r = wide ? c64(g, x, c[n - 1]) : c32(g, x, c[n - 1]);
    for (int i = n - 2; i >= 0; i--) r = mad(g, r, x, wide ? c64(g, x, c[i]) : c32(g, x, c[i]));
    return r;
}
#define POLY(g, x, ...)                                                                            \
    poly((g), (x), (const double[]){__VA_ARGS__},                                                  \
         sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* x limited to [lo, hi], by lane. */
static V clamp(Cg *g, V x, double lo, double hi) { /* NaN stays */
    x = sel(g, less(g, x, c32(g, x, lo)), c32(g, x, lo), x);
    return sel(g, less(g, c32(g, x, hi), x), c32(g, x, hi), x);
}

/* 2^n as f32, for i32 lanes n in [-126, 127]: n is put into the exponent bits. */
static V pow2i(Cg *g, V n) {
    V e = LLVMBuildAdd(g->b, n, ci(g, n, 127), "");
    return as(g, LLVMBuildShl(g->b, e, ci(g, n, 23), ""), g->f32);
}

/* Converts x to i32. NaN and what does not fit give an arbitrary number. (llvm.fptosi.sat would be
 * done lane by lane: 100 cycles for 16 of them, more than all the rest of exp.) */
static V to_int(Cg *g, V x) {
    V n = LLVMBuildFPToSI(g->b, x, cpu_vector_type(g->i32, cpu_width(x)), "");
    return LLVMBuildFreeze(g->b, n, "");
}

/* ---- exp, expm1, sigmoid, tanh ------------------------------------------------------- */

/* Splits x = n ln 2 + r with |r| <= ln 2 / 2; returns r, and n as i32. The first part of ln 2 has 9
 * trailing zero bits, so n times it is exact. */
static V reduce_ln2(Cg *g, V x, V *n) {
    V k = call1(g, "llvm.rint", mul(g, x, c32(g, x, 0x1.715476p+0)));
    V r = mad(g, k, c32(g, x, -0x1.62e4p-1), x);
    *n = to_int(g, k);
    return mad(g, k, c32(g, x, -0x1.7f7d1cp-20), r);
}

/* e^r - 1 = r + r^2 P(r), for |r| <= ln 2 / 2. */
static V expm1_small(Cg *g, V r) {
    V p = POLY(g, r, 0.5, 0.166666672, 0.041666355, 0.00833327323, 0.00139410456, 0.000199142261);
    return mad(g, mul(g, r, r), p, r);
}

/* e^x = 2^n e^r. Arguments are clamped to [-105, 90], beyond which the result is 0 or infinite
 * anyway. */
static V emit_exp(Cg *g, V x) {
    V n, r = reduce_ln2(g, clamp(g, x, -105, 90), &n);
    V p = add(g, expm1_small(g, r), c32(g, x, 1));
    V half = LLVMBuildAShr(g->b, n, ci(g, n, 1), ""); /* in two steps: results may be subnormal */
    p = mul(g, p, pow2i(g, half));
    return mul(g, p, pow2i(g, LLVMBuildSub(g->b, n, half, "")));
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1), halved and doubled as 2^128 does not fit. */
static V emit_expm1(Cg *g, V x) {
    V n, r = reduce_ln2(g, clamp(g, x, -25, 90), &n);
    V s = pow2i(g, LLVMBuildSub(g->b, n, ci(g, n, 1), ""));
    V big = LLVMBuildICmp(g->b, LLVMIntSGT, n, ci(g, n, 128), "");
    V p = mad(g, s, expm1_small(g, r), sub(g, s, c32(g, x, 0.5)));
    p = sel(g, big, c32(g, x, __builtin_inf()), add(g, p, p));
    p = sel(g, LLVMBuildICmp(g->b, LLVMIntEQ, n, ci(g, n, 0), ""), expm1_small(g, r), p);
    return sel(g, same(g, x, c32(g, x, 0)), x, p); /* keeps -0 */
}

/* 1 / (1 + e^-x), from e^-|x| so that nothing overflows. */
static V emit_sigmoid(Cg *g, V x) {
    V z = emit_exp(g, LLVMBuildFNeg(g->b, magnitude(g, x), ""));
    V one = c32(g, x, 1);
    return quot(g, sel(g, less(g, x, c32(g, x, 0)), z, one), add(g, one, z));
}

/* tanh x: an odd polynomial for |x| < 0.625, else 1 - 2 / (e^(2 |x|) + 1) with the sign of x. */
static V emit_tanh(Cg *g, V x) {
    V a = magnitude(g, x), u = mul(g, x, x);
    V p = POLY(g, u, -0.333332717, 0.133311525, -0.0537141263, 0.0205517672, -0.00560395932);
    V near = mad(g, mul(g, u, p), x, x);
    V e = emit_exp(g, add(g, a, a));
    V far = sub(g, c32(g, x, 1), quot(g, c32(g, x, 2), add(g, e, c32(g, x, 1))));
    return sel(g, less(g, a, c32(g, x, 0.625)), near, with_sign_of(g, far, x));
}

/* ---- log, log1p ------------------------------------------------------------------------ */

/* log x for positive finite x = 2^n m with m in [sqrt(1/2), sqrt 2): n ln 2 + f - f^2/2 + f^3 Q(f),
 * f = m - 1. */
static V log_positive(Cg *g, V x) {
    V tiny = less(g, x, c32(g, x, 0x1p-126));
    V bits = as(g, sel(g, tiny, mul(g, x, c32(g, x, 0x1p23)), x), g->i32);
    V off = LLVMBuildSub(g->b, bits, ci(g, bits, 0x3f3504f3), ""); /* sqrt(1/2) */
    V n = LLVMBuildAShr(g->b, off, ci(g, bits, 23), "");
    V m = LLVMBuildSub(g->b, bits, LLVMBuildShl(g->b, n, ci(g, bits, 23), ""), "");
    n = LLVMBuildSub(g->b, n, sel(g, tiny, ci(g, n, 23), ci(g, n, 0)), "");
    V f = sub(g, as(g, m, g->f32), c32(g, x, 1)), u = mul(g, f, f);
    V k = LLVMBuildSIToFP(g->b, n, LLVMTypeOf(x), "");
    V q = POLY(g, f, 0.333333105, -0.249999866, 0.200022176, -0.16669248, 0.142188013, -0.123844579,
               0.118721411, -0.117889427, 0.0691609308);
    V low = mad(g, k, c32(g, x, 0x1.7f7d1cp-20), mul(g, mul(g, f, u), q));
    low = mad(g, u, c32(g, x, -0.5), low);
    return mad(g, k, c32(g, x, 0x1.62e4p-1), add(g, f, low));
}

/* log x, with the special cases of C: -inf at 0, NaN below it, inf at inf. */
static V emit_log(Cg *g, V x) {
    V zero = c32(g, x, 0), inf = c32(g, x, __builtin_inf());
    V r = log_positive(g, x);
    r = sel(g, same(g, x, inf), inf, r);
    r = sel(g, same(g, x, zero), c32(g, x, -__builtin_inf()), r);
    V bad = LLVMBuildFCmp(g->b, LLVMRealULT, x, zero, "");
    return sel(g, bad, c32(g, x, __builtin_nan("")), r);
}

/* log(1 + x) = log u + (x - (u - 1)) / u with u = 1 + x rounded: the second term puts back what
 * rounding lost (Goldberg 1991, theorem 4, in the additive form of fdlibm). */
static V emit_log1p(Cg *g, V x) {
    V one = c32(g, x, 1), u = add(g, one, x);
    V lost = sel(g, less(g, x, one), sub(g, x, sub(g, u, one)), sub(g, one, sub(g, u, x)));
    V usable = both(g, less(g, c32(g, x, 0), u), less(g, u, c32(g, x, 0x1p60)));
    V r = add(g, emit_log(g, u), sel(g, usable, quot(g, lost, u), c32(g, x, 0)));
    return sel(g, same(g, x, c32(g, x, 0)), x, r); /* keeps -0 */
}

/* ---- erf ---------------------------------------------------------------------------------- */

/* erf x: near 0 x + x Q(x^2); else 1 - exp(-G(|x|)) with the sign of x, where G = -log erfc is
 * smooth. */
static V emit_erf(Cg *g, V x) {
    V a = magnitude(g, x), u = mul(g, x, x);
    V q = POLY(g, u, 0.128379166, -0.376126349, 0.112836942, -0.0268592704, 0.00520063424,
               -0.000813743798, 8.34522725e-05);
    V near = mad(g, x, q, x);
    V t = clamp(g, a, 0, 3.95);
    V p = POLY(g, t, -0.000175873618, 1.12952077, 0.633334637, 0.108293936, -0.025128616,
               0.00417463947, -0.000435218128, 2.11618371e-05);
    V far = sub(g, c32(g, x, 1), emit_exp(g, LLVMBuildFNeg(g->b, p, "")));
    return sel(g, less(g, a, c32(g, x, 0.921875)), near, with_sign_of(g, far, x));
}

/* ---- sin, cos -------------------------------------------------------------------------------- */

/* The table of a word of zeros, then the first 224 bits of 2/pi, 32 bits a word: a constant of the
 * module, added on first use. */
static V two_over_pi(Cg *g) {
    static const uint32_t bits[8] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                     0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    if (g->pio2_bits) return g->pio2_bits;
    V word[8];
    for (int i = 0; i < 8; i++) word[i] = LLVMConstInt(g->i32, bits[i], 0);
    V init = LLVMConstArray2(g->i32, word, 8);
    g->pio2_bits = LLVMAddGlobal(g->mod, LLVMTypeOf(init), "gnnc.two_over_pi");
    LLVMSetInitializer(g->pio2_bits, init);
    LLVMSetGlobalConstant(g->pio2_bits, 1);
    LLVMSetLinkage(g->pio2_bits, LLVMPrivateLinkage);
    return g->pio2_bits;
}

/* Word number `index` of the table two_over_pi(), by lane. */
static V table_word(Cg *g, V index) { /* i64 index -> i64 of one 32-bit word */
    int w = cpu_width(index);
    V at = LLVMBuildInBoundsGEP2(g->b, g->i32, two_over_pi(g), &index, 1, ""), v;
    if (w == 1)
        v = LLVMBuildLoad2(g->b, g->i32, at, "");
    else {
        LLVMTypeRef t = cpu_vector_type(g->i32, w), over[2] = {t, LLVMTypeOf(at)};
        V arg[4] = {at, LLVMConstInt(g->i32, 4, 0), LLVMConstAllOnes(cpu_vector_type(g->i1, w)),
                    LLVMConstNull(t)};
        v = cpu_call(g, "llvm.masked.gather", over, 2, arg, 4);
    }
    return LLVMBuildZExt(g->b, v, cpu_vector_type(g->i64, w), "");
}

/* The upper 64 bits of the 128-bit number (hi, lo) shifted left by `by` bits, by lane. */
static V funnel_shift(Cg *g, V hi, V lo, V by) {
    LLVMTypeRef t = LLVMTypeOf(hi);
    V arg[3] = {hi, lo, by};
    return cpu_call(g, "llvm.fshl", &t, 1, arg, 3);
}

/* For |x| = a >= 1: the angle that is left of a after quarter turns, in radians as f64, and *q: how
 * many these are, modulo 4. a = m 2^e with a 24-bit m: of 2^e * 2/pi only the bits below weight 4
 * matter, and 96 of them times m leave 62 correct ones behind the point, enough for any f32 (Payne
 * and Hanek 1983). */
static V reduce_huge(Cg *g, V a, V *q) {
    int w = cpu_width(a);
    LLVMTypeRef i64 = cpu_vector_type(g->i64, w);
    V bits = LLVMBuildZExt(g->b, as(g, a, g->i32), i64, "");
    V m = LLVMBuildOr(g->b, LLVMBuildAnd(g->b, bits, cl(g, bits, 0x7fffff), ""),
                      cl(g, bits, 0x800000), "");
    V e = LLVMBuildLShr(g->b, bits, cl(g, bits, 23), "");
    V small = LLVMBuildICmp(g->b, LLVMIntULT, e, cl(g, e, 120), "");
    V huge =
        LLVMBuildICmp(g->b, LLVMIntUGT, e, cl(g, e, 254), ""); /* inf, NaN: kept in the table */
    e = sel(g, small, cl(g, e, 120), sel(g, huge, cl(g, e, 254), e));
    V start = LLVMBuildSub(g->b, e, cl(g, e, 120), ""); /* first bit wanted: e - 1, in the table */
    V word = LLVMBuildLShr(g->b, start, cl(g, e, 5), ""),
      by = LLVMBuildAnd(g->b, start, cl(g, e, 31), "");
    V t[4];
    for (int i = 0; i < 4; i++) t[i] = table_word(g, LLVMBuildAdd(g->b, word, cl(g, e, i), ""));
    V hi = LLVMBuildOr(g->b, LLVMBuildShl(g->b, t[0], cl(g, e, 32), ""), t[1], "");
    V lo = LLVMBuildOr(g->b, LLVMBuildShl(g->b, t[2], cl(g, e, 32), ""), t[3], "");
    V low = LLVMBuildLShr(g->b, funnel_shift(g, lo, cl(g, e, 0), by), cl(g, e, 32), "");
    V p = LLVMBuildMul(g->b, m, funnel_shift(g, hi, lo, by), "");
    p = LLVMBuildAdd(g->b, p, LLVMBuildLShr(g->b, LLVMBuildMul(g->b, m, low, ""), cl(g, e, 32), ""),
                     "");
    V turns = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, p, cl(g, p, (int64_t)1 << 61), ""),
                            cl(g, p, 62), "");
    p = LLVMBuildSub(g->b, p, LLVMBuildShl(g->b, turns, cl(g, p, 62), ""), "");
    *q = LLVMBuildTrunc(g->b, turns, cpu_vector_type(g->i32, w), "");
    V r = LLVMBuildSIToFP(g->b, p, cpu_vector_type(g->f64, w), "");
    return mul(g, r, c64(g, r, 0x1.921fb54442d18p-62));
}

/* What reduce_huge() does, for a below 2^18 and in f64: *q = rint(a 2/pi), and a - *q pi/2 is left.
 * *q times the first part of pi/2 (33 bits) is exact. */
static V reduce_common(Cg *g, V a, V *q) {
    int w = cpu_width(a);
    V x = LLVMBuildFPExt(g->b, a, cpu_vector_type(g->f64, w), "");
    V k = call1(g, "llvm.rint", mul(g, x, c64(g, x, 0x1.45f306dc9c883p-1)));
    *q = to_int(g, k);
    V r = sub(g, x, mul(g, k, c64(g, x, 0x1.921fb544p+0)));
    return sub(g, r, mul(g, k, c64(g, x, 0x1.0b4611a626331p-34)));
}

/* Splits a >= 0 into *q quarter turns and the angle that is left, in radians, for any a. The
 * reduction of huge arguments is a branch of its own, taken when any lane needs it. */
static V reduce_turns(CgFn *f, V a, V *q) {
    Cg *g = f->g;
    V common = reduce_common(g, a, q), q_common = *q, q_huge;
    V huge = LLVMBuildFCmp(g->b, LLVMRealOGE, a, c32(g, a, 0x1p18), "");
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef then = cpu_new_block(f, "huge"), end = cpu_new_block(f, "reduced");
    LLVMBuildCondBr(g->b, cpu_any_lane(f, huge), then, end);
    LLVMPositionBuilderAtEnd(g->b, then);
    V r = reduce_huge(g, a, &q_huge);
    r = sel(g, huge, r, common);
    q_huge = sel(g, huge, q_huge, q_common);
    LLVMBuildBr(g->b, end);
    then = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, end);
    V out = LLVMBuildPhi(g->b, LLVMTypeOf(r), ""),
      turns = LLVMBuildPhi(g->b, LLVMTypeOf(q_huge), "");
    LLVMAddIncoming(out, (V[]){common, r}, (LLVMBasicBlockRef[]){from, then}, 2);
    LLVMAddIncoming(turns, (V[]){q_common, q_huge}, (LLVMBasicBlockRef[]){from, then}, 2);
    *q = turns;
    return LLVMBuildFPTrunc(g->b, out, LLVMTypeOf(a), "");
}

/* x with its sign flipped where `bit` is odd, by lane. */
static V negate_if(Cg *g, V bit, V x) { /* bit: i32 lanes, sign flips where it is odd */
    V sign = LLVMBuildShl(g->b, bit, ci(g, bit, 31), "");
    return as(g, LLVMBuildXor(g->b, as(g, x, g->i32), sign, ""), g->f32);
}

/* sin x or cos x: one of two polynomials in the angle left after quarter turns, whose number
 * decides which and the sign. */
static V emit_sincos(CgFn *f, V x, bool cosine) {
    Cg *g = f->g;
    V q, r = reduce_turns(f, magnitude(g, x), &q), u = mul(g, r, r);
    V s = POLY(g, u, -0.166666672, 0.00833332911, -0.000198393274, 2.71823774e-06);
    V c = POLY(g, u, 0.0416666679, -0.00138888834, 2.47995122e-05, -2.72095662e-07);
    s = mad(g, mul(g, u, s), r, r);
    c = mad(g, mul(g, u, u), c, mad(g, u, c32(g, u, -0.5), c32(g, u, 1)));
    if (cosine) q = LLVMBuildAdd(g->b, q, ci(g, q, 1), ""); /* cos r = sin(r + a quarter turn) */
    V odd = LLVMBuildTrunc(g->b, q, cpu_vector_type(g->i1, cpu_width(q)), "");
    V y = negate_if(g, LLVMBuildLShr(g->b, q, ci(g, q, 1), ""), sel(g, odd, c, s));
    if (!cosine) y = negate_if(g, LLVMBuildLShr(g->b, as(g, x, g->i32), ci(g, q, 31), ""), y);
    V infinite = same(g, magnitude(g, x), c32(g, x, __builtin_inf()));
    y = sel(g, unordered(g, x, x), x, y);
    return sel(g, infinite, c32(g, x, __builtin_nan("")), y);
}

/* ---- pow: 2^(y log2 |x|) in double -------- */

/* log2 x as f64, for a positive finite f64 that was converted from an f32: n + s (2/ln 2) (1 +
 * s^2/3 + ..), x = 2^n m, s = (m - 1)/(m + 1). */
static V log2_wide(Cg *g, V x) {
    V bits = as(g, x, g->i64);
    V off = LLVMBuildSub(g->b, bits, cl(g, bits, 0x3fe6a09e667f3bcd), "");
    V n = LLVMBuildAShr(g->b, off, cl(g, bits, 52), "");
    V m = as(g, LLVMBuildSub(g->b, bits, LLVMBuildShl(g->b, n, cl(g, bits, 52), ""), ""), g->f64);
    V s = quot(g, sub(g, m, c64(g, x, 1)), add(g, m, c64(g, x, 1))), u = mul(g, s, s);
    const double k = 2 * 1.4426950408889634;
    V p = POLY(g, u, k, k / 3, k / 5, k / 7, k / 9, k / 11, k / 13, k / 15);
    n = LLVMBuildSIToFP(g->b, n, LLVMTypeOf(x), "");
    return mad(g, s, p, n);
}

/* 2^t as f64: e^f with f = (t - rint t) ln 2 by its series, times a power of two. */
static V exp2_wide(Cg *g, V t) { /* |t| <= 200 */
    V k = call1(g, "llvm.rint", t), f = mul(g, sub(g, t, k), c64(g, t, 0.69314718055994531));
    V p = POLY(g, f, 1, 1, 1 / 2., 1 / 6., 1 / 24., 1 / 120., 1 / 720., 1 / 5040., 1 / 40320.,
               1 / 362880.);
    V n = LLVMBuildZExt(g->b, LLVMBuildAdd(g->b, to_int(g, k), ci(g, k, 1023), ""),
                        cpu_vector_type(g->i64, cpu_width(t)), "");
    return mul(g, p, as(g, LLVMBuildShl(g->b, n, cl(g, n, 52), ""), g->f64));
}

/* a^y for a >= 0, as 2^(y log2 a) in f64, rounded to f32. */
static V pow_magnitude(Cg *g, V a, V y) {
    LLVMTypeRef wide = cpu_vector_type(g->f64, cpu_width(a));
    V inf = c32(g, a, __builtin_inf()), zero = c64(g, a, 0);
    V l = log2_wide(g, LLVMBuildFPExt(g->b, a, wide, ""));
    l = sel(g, same(g, a, c32(g, a, 0)), c64(g, a, -__builtin_inf()), l);
    l = sel(g, same(g, a, inf), c64(g, a, __builtin_inf()), l);
    V t = mul(g, l, LLVMBuildFPExt(g->b, y, wide, ""));
    t = sel(g, same(g, l, zero), zero, t); /* 1^inf = 1 */
    t = sel(g, less(g, t, c64(g, t, -200)), c64(g, t, -200), t);
    t = sel(g, less(g, c64(g, t, 200), t), c64(g, t, 200), t);
    return LLVMBuildFPTrunc(g->b, exp2_wide(g, t), LLVMTypeOf(a), "");
}

/* x^y, with the special cases of C17 F.10.4.4. */
static V emit_pow(Cg *g, V x, V y) {
    V zero = c32(g, x, 0), one = c32(g, x, 1), half = mul(g, y, c32(g, y, 0.5));
    V r = pow_magnitude(g, magnitude(g, x), y);
    V whole = same(g, call1(g, "llvm.floor", y), y);
    V odd = both(g, whole, LLVMBuildNot(g->b, same(g, call1(g, "llvm.floor", half), half), ""));
    V minus = LLVMBuildICmp(g->b, LLVMIntSLT, as(g, x, g->i32), ci(g, x, 0), "");
    r = sel(g, both(g, minus, odd), LLVMBuildFNeg(g->b, r, ""), r);
    V finite = less(g, magnitude(g, x), c32(g, x, __builtin_inf()));
    V undefined = both(g, both(g, less(g, x, zero), finite), LLVMBuildNot(g->b, whole, ""));
    r = sel(g, undefined, c32(g, x, __builtin_nan("")), r);
    r = sel(g, unordered(g, x, y), add(g, x, y), r);
    return sel(g, LLVMBuildOr(g->b, same(g, x, one), same(g, y, zero), ""), one, r);
}

/* ---- f64: libm -------- */

/* A call of a libm function with n arguments of f64 (one or two), for one lane. The function is
 * declared on first use. */
static V libm_one(Cg *g, const char *name, V *x, int n) {
    LLVMTypeRef t[2] = {g->f64, g->f64}, ft = LLVMFunctionType(g->f64, t, (unsigned)n, 0);
    V fn = LLVMGetNamedFunction(g->mod, name);
    if (!fn) fn = LLVMAddFunction(g->mod, name, ft);
    return LLVMBuildCall2(g->b, ft, fn, x, (unsigned)n, "");
}

/* A libm function of f64 vectors: a call for each lane. y: the second argument, or NULL. */
static V libm(Cg *g, const char *name, V x, V y) {
    int w = cpu_width(x), n = y ? 2 : 1;
    V arg[2] = {x, y};
    if (w == 1) return libm_one(g, name, arg, n);
    V out = LLVMGetPoison(LLVMTypeOf(x));
    for (int i = 0; i < w; i++) {
        V at = LLVMConstInt(g->i32, (unsigned)i, 0);
        V e[2] = {LLVMBuildExtractElement(g->b, x, at, ""), NULL};
        if (y) e[1] = LLVMBuildExtractElement(g->b, y, at, "");
        out = LLVMBuildInsertElement(g->b, out, libm_one(g, name, e, n), at, "");
    }
    return out;
}

/* An elementary function of f64: libm's of the same name; the sigmoid is made of exp. */
static V wide_math(Cg *g, OpKind op, V x, V y) {
    if (op != OP_SIGMOID) return libm(g, op_mnemonic(op), x, y); /* named as in libm */
    V one = c64(g, x, 1);
    return quot(g, one, add(g, one, libm(g, "exp", LLVMBuildFNeg(g->b, x, ""), NULL)));
}

LLVMValueRef cpu_math(CgFn *f, OpKind op, DType dt, LLVMValueRef x, LLVMValueRef y) {
    Cg *g = f->g;
    if (dt == DT_F64) return wide_math(g, op, x, y);
    switch (op) {
    case OP_EXP:
        return emit_exp(g, x);
    case OP_EXPM1:
        return emit_expm1(g, x);
    case OP_LOG:
        return emit_log(g, x);
    case OP_LOG1P:
        return emit_log1p(g, x);
    case OP_TANH:
        return emit_tanh(g, x);
    case OP_SIGMOID:
        return emit_sigmoid(g, x);
    case OP_ERF:
        return emit_erf(g, x);
    case OP_SIN:
        return emit_sincos(f, x, false);
    case OP_COS:
        return emit_sincos(f, x, true);
    case OP_POW:
        return emit_pow(g, x, y);
    default:
        ctx_fault(g->c, f->k->span, "'%s' has no code", op_mnemonic(op));
    }
}
