/* The host function of a kernel: argument table and size table in, one launch out.
 *
 *     extern "C" int NAME_cuda(void *const *arg, const int64_t *n, void *stream);
 *
 * Returns a cudaError_t. */
#include "codegen/cuda/cuda.h"

static const char *extent(CuFn *f) {
    const CuSched *c = &f->sched;
    if (!c->parallel) return "1";
    const char *n = cu_expr(f, c->parallel->extent);
    for (int i = 0; i < c->n_inner; i++)
        n = arena_printf(f->a, "(%s) * (%s)", n, cu_expr(f, c->inner[i]->extent));
    return n;
}

void cu_launch(CuFn *f) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    StrBuf names = sb_new(f->a);
    f->depth = 0;
    cu_line(f, "extern \"C\" int %s_cuda(void *const *arg, const int64_t *n, void *stream) {",
            k->name);
    f->depth = 1;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        const char *type =
            arena_printf(f->a, "%s%s *", b->written ? "" : "const ", cu_mem_type(b->dt));
        cu_line(f, "%s%s = (%s)arg[%d];", type, f->buf[i], type, i);
        sb_printf(&names, "&%s, ", f->buf[i]);
    }
    for (int i = 0; i < m->syms.n; i++) {
        if (!f->sym[i]) continue;
        cu_line(f, "int64_t %s = n[%d];", f->sym[i], i);
        sb_printf(&names, "&%s, ", f->sym[i]);
    }
    cu_line(f, "int64_t gn_extent = %s;", extent(f));
    cu_line(f, "void *args[] = {%s&gn_extent};", names.s ? names.s : "");
    cu_line(f, "return gn_launch(%s, gn_extent, args, stream);", k->name);
    f->depth = 0;
    cu_line(f, "}\n");
}
