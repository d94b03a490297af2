/* Fuzz target: any bytes as a step plan.  A plan that parses and verifies must print to a text that
 * parses again and prints the same, and its matrix products stay within their buffers, whatever the
 * sizes of the data are. */
#include "codegen/plan/plan.h"

#include "round_trip.h"

/* The last element that n[] neighbours, stride[] apart, reach; -1 where there are none. */
static int64_t last_element(const int64_t n[3], const int64_t stride[3]) {
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (n[i] < 0 || stride[i] < 0) __builtin_trap();
        if (n[i] == 0) return -1;
        at += (n[i] - 1) * stride[i];
    }
    return at;
}

static void check_matrix(const PBuf *b, const int64_t *size, const Expr *const n[3],
                         const Expr *const stride[3]) {
    int64_t length[3], step[3];
    for (int i = 0; i < 3; i++) length[i] = expr_eval(n[i], size);
    for (int i = 0; i < 3; i++) step[i] = stride[i] ? expr_eval(stride[i], size) : 1;
    if (last_element(length, step) >= expr_eval(b->count, size)) __builtin_trap();
}

static void check_product(const Plan *p, const PStep *s, const int64_t *size) {
    const PGemm *g = &s->gemm;
    const Expr *const n[3][3] = {
        {g->batch, g->m, g->k}, {g->batch, g->k, g->n}, {g->batch, g->m, g->n}};
    const Expr *const stride[3][3] = {{g->a_batch, g->a_row, g->a_col},
                                      {g->b_batch, g->b_row, g->b_col},
                                      {g->c_batch, g->c_row, NULL}};
    for (int i = 0; i < 3; i++) check_matrix(p->bufs.v[s->bufs[i]], size, n[i], stride[i]);
}

static void check_products(Ctx *c, const Plan *p) {
    int64_t *size = NEWN(c->a, int64_t, (size_t)p->m->syms.n + 1);
    for (int few = 0; few < 2; few++) {
        for (int i = 0; i < p->m->syms.n; i++)
            size[i] = few ? 2 : 1000 - 3 * i; /* first rows have later symbols */
        for (int i = 0; i < p->phases.n; i++)
            for (int k = 0; k < p->phases.v[i]->steps.n; k++)
                if (p->phases.v[i]->steps.v[k]->kind == PS_GEMM)
                    check_product(p, p->phases.v[i]->steps.v[k], size);
    }
}

static void run(Ctx *c, void *arg) {
    Text *r = arg;
    Plan *p = plan_parse(c, ctx_add_text(c, "fuzz.plan", r->text, r->n));
    if (!p || !module_verify(c, p->m, "parse") || !plan_verify(c, p)) return;
    check_products(c, p);
    StrBuf b = sb_new(c->a);
    plan_print(&b, p);
    r->printed = strdup(b.s);
}

ROUND_TRIP_FUZZER(run)
