/* Symbolic sizes: equal polynomials are equal trees, print readably, and evaluate
 * as the numbers they stand for; nothing overflows. */
#include "ir/ir.h"
#include "test.h"

typedef struct {
    Ctx c;
    Arena *a;
    Module *m;
    const Expr *f, *h, *n;
} Fix;

static Fix setup(void) {
    Fix x;
    CHECK(ctx_init(&x.c, NULL));
    x.a = x.c.a;
    x.m = module_new(&x.c, "t");
    x.n = expr_sym(x.a, sym_new(x.m, "N"));
    x.f = expr_sym(x.a, sym_new(x.m, "F"));
    x.h = expr_sym(x.a, sym_new(x.m, "H"));
    return x;
}

static void check_text(Fix *x, const Expr *e, const char *want) {
    StrBuf b = sb_new(x->a);
    expr_print(&b, e);
    CHECK_STR(b.s, want);
}

#define C(k) expr_const(x.a, (k))
#define ADD(p, q) expr_add(x.a, (p), (q))
#define MUL(p, q) expr_mul(x.a, (p), (q))

TEST(sums_and_products_are_canonical) {
    Fix x = setup();
    const Expr *sum = ADD(x.f, x.h);
    check_text(&x, MUL(sum, sum), "F*F + 2*F*H + H*H");
    CHECK(expr_eq(MUL(sum, sum), ADD(ADD(MUL(x.h, x.h), MUL(x.f, x.f)), MUL(MUL(x.h, C(2)), x.f))));
    CHECK(expr_eq(MUL(x.h, MUL(x.n, x.f)), MUL(MUL(x.f, x.h), x.n)));
    CHECK(expr_eq(ADD(x.f, MUL(C(-1), x.f)), C(0)));
    CHECK(expr_eq(MUL(sum, C(0)), C(0)));
    CHECK(expr_eq(ADD(C(3), x.f), ADD(ADD(C(1), x.f), C(2))));
    CHECK(!expr_eq(x.f, x.h) && !expr_eq(MUL(x.f, C(2)), MUL(x.f, x.f)));
    ctx_free(&x.c);
}

TEST(text_is_readable) {
    Fix x = setup();
    check_text(&x, ADD(MUL(C(8), x.f), C(1)), "8*F + 1");
    check_text(&x, ADD(x.f, MUL(C(-1), x.h)), "F - H");
    check_text(&x, ADD(MUL(C(-1), x.f), C(-2)), "-1*F - 2");
    check_text(&x, ADD(x.n, MUL(C(-3), MUL(x.f, x.h))), "-3*F*H + N");
    check_text(&x, expr_ceildiv(x.a, ADD(x.f, C(7)), C(8)), "ceildiv(F + 7, 8)");
    check_text(&x, MUL(expr_max(x.a, x.f, C(2)), x.h), "H*max(2, F)");
    StrBuf b = sb_new(x.a);
    expr_print_c(&b, ADD(MUL(C(8), x.f), expr_min(x.a, x.h, C(1))), "n");
    CHECK_STR(b.s, "((8 * n[1]) + rt_min64(1, n[2]))");
    ctx_free(&x.c);
}

TEST(divisions_and_extrema_fold) {
    Fix x = setup();
    CHECK(expr_eq(expr_ceildiv(x.a, C(7), C(2)), C(4)));
    CHECK(expr_eq(expr_ceildiv(x.a, x.f, C(1)), x.f));
    CHECK(expr_eq(expr_ceildiv(x.a, ADD(MUL(C(8), x.f), C(16)), C(8)), ADD(x.f, C(2))));
    CHECK(expr_eq(expr_max(x.a, C(3), C(5)), C(5)) && expr_eq(expr_min(x.a, C(3), C(5)), C(3)));
    CHECK(expr_eq(expr_max(x.a, x.f, x.f), x.f));
    CHECK(expr_eq(expr_max(x.a, x.f, x.h), expr_max(x.a, x.h, x.f)));
    CHECK(!expr_eq(expr_max(x.a, x.f, x.h), expr_min(x.a, x.h, x.f)));
    ctx_free(&x.c);
}

TEST(constants_saturate) {
    Fix x = setup();
    const Expr *big = C(INT64_MAX);
    CHECK(expr_eq(MUL(big, C(2)), big) && expr_eq(ADD(big, C(1)), big));
    int64_t v[] = {INT64_MAX, 2, 0};
    CHECK(expr_eval(MUL(x.n, x.f), v) == INT64_MAX);
    CHECK(expr_eval(ADD(x.n, x.f), v) == INT64_MAX);
    CHECK(expr_eval(expr_ceildiv(x.a, x.n, x.h), v) == 0); /* by zero: no trap */
    ctx_free(&x.c);
}

/* Random expressions, built twice: canonical and as a plain number. */
static const Expr *grow(Fix *x, uint32_t *r, int depth, const int64_t *v, int64_t *want) {
    *r = *r * 1664525 + 1013904223;
    int pick = (int)(*r >> 20) % 9;
    if (depth == 0 || pick < 2) {
        const Expr *leaf[] = {x->n, x->f, x->h, expr_const(x->a, pick - 3)};
        const int64_t value[] = {v[0], v[1], v[2], pick - 3};
        *want = value[(*r >> 12) % 4];
        return leaf[(*r >> 12) % 4];
    }
    int64_t p, q;
    const Expr *a = grow(x, r, depth - 1, v, &p), *b = grow(x, r, depth - 1, v, &q);
    if (pick < 5) return *want = p + q, expr_add(x->a, a, b);
    if (pick < 7) return *want = p * q, expr_mul(x->a, a, b);
    if (pick == 7) return *want = p > q ? p : q, expr_max(x->a, a, b);
    return *want = p < q ? p : q, expr_min(x->a, a, b);
}

TEST(random_expressions_keep_their_value) {
    Fix x = setup();
    const int64_t v[] = {3, 5, 2};
    uint32_t r = 7;
    for (int i = 0; i < 500; i++) {
        int64_t want;
        const Expr *e = grow(&x, &r, 4, v, &want);
        CHECK(expr_eval(e, v) == want);
        CHECK(expr_eq(ADD(e, C(0)), e) && expr_eq(MUL(e, C(1)), e));
    }
    ctx_free(&x.c);
}

TEST(products_of_long_sums_stay_small) {
    Fix x = setup();
    const Expr *sum = C(1), *all = C(1);
    for (int i = 0; i < 60; i++)
        sum = ADD(sum, expr_sym(x.a, sym_new(x.m, arena_printf(x.a, "d%d", i))));
    for (int i = 0; i < 8; i++) all = MUL(all, sum);
    CHECK(arena_used_bytes(x.a) < 64u << 20);
    int64_t v[63] = {0};
    CHECK(expr_eval(all, v) == 1);
    ctx_free(&x.c);
}

TEST_MAIN()
