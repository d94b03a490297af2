/* Remarks: what a pass did or declined to do, with the model's line. */
#include "passes/rewrite.h"

void pass_remark(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    if (at.line && at.file < (uint32_t)p->ctx->sources.n)
        sb_printf(p->remarks, "%s:%u: ", p->ctx->sources.v[at.file].path, at.line);
    sb_printf(p->remarks, "%s: ", pass);
    va_list ap;
    va_start(ap, fmt);
    sb_puts(p->remarks, arena_vprintf(p->a, fmt, ap));
    va_end(ap);
    sb_puts(p->remarks, "\n");
}
