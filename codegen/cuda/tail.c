/* Zeros behind a batch's rows, where a product of rounded size sums over them
 * (codegen/plan_passes/plan_buckets.c). */
#include "codegen/cuda/cuda.h"

static const char *operand(CuFn *f, const PGemm *g, const PTail *t) {
    return arena_printf(f->a, "{%s, %s, %s, %s, %s, %s}", cu_host_expr(f, g->batch),
                        cu_host_expr(f, t->n), cu_host_expr(f, g->k), cu_host_expr(f, t->batch),
                        cu_host_expr(f, t->row), cu_host_expr(f, t->step));
}

static void tail(Cu *cu, const PStep *s, const PTail t[2], const char *name) {
    CuFn fn = {.cu = cu, .a = cu->a}, *f = &fn;
    const char *type = cu_mem_type(cu->plan->bufs.v[t[0].buf]->dt);
    cu_line(f, "/*\n * kernel %s: zeros behind the rows that %s sums over\n */", name,
            s->note ? s->note : "a product");
    cu_open(f,
            "static __global__ void __launch_bounds__(GN_THREADS) %s(%s *a, GnTail in_a, %s *b, "
            "GnTail in_b, const int64_t *n) {",
            name, type, type);
    cu_line(f, "gn_clear_tail(a, in_a, %s);", cu_host_expr(f, t[0].own));
    cu_line(f, "gn_clear_tail(b, in_b, %s);", cu_host_expr(f, t[1].own));
    cu_close(f);
    cu_open(f, "extern \"C\" int %s_cuda(void *const *arg, const int64_t *n, void *stream) {",
            name);
    cu_line(f, "%s *a = (%s *)arg[0], *b = (%s *)arg[1];", type, type, type);
    cu_line(f, "const int64_t *own = (const int64_t *)arg[2];");
    cu_line(f, "(void)n;");
    cu_line(f, "GnTail in_a = %s, in_b = %s;", operand(f, &s->gemm, &t[0]),
            operand(f, &s->gemm, &t[1]));
    cu_line(f, "void *args[] = {&a, &in_a, &b, &in_b, &own};");
    cu_line(f, "return gn_launch(%s, GN_TAIL_BLOCKS * GN_THREADS, args, stream);", name);
    cu_close(f);
    cu_line(f, "%s", "");
}

void cu_tails(Cu *cu) {
    const Plan *p = cu->plan;
    for (int i = 0; i < p->phases.n; i++) {
        const PPhase *ph = p->phases.v[i];
        if (!plan_has_buckets(cu->a, p, ph)) continue;
        for (int k = 0; k < ph->steps.n; k++) {
            PTail t[2];
            if (plan_tails(cu->a, p, ph->steps.v[k], t))
                tail(cu, ph->steps.v[k], t, plan_tail_name(cu->a, p, ph, k));
        }
    }
}
