/* Remarks: what a pass did or declined to do, with the model's line, the user's own first. */
#include "passes/rewrite.h"

#include <string.h>

/* What came with the compiler is in "layers". */
static void put_place(PassCtx *p, Span at, const char *end) {
    if (!at.line || at.file >= (uint32_t)p->ctx->sources.n) return;
    const Source *s = &p->ctx->sources.v[at.file];
    const char *last = s->library ? strrchr(s->path, '/') : NULL;
    sb_printf(p->remarks, "%s%s:%u%s", last ? "layers" : "", last ? last : s->path, at.line, end);
}

const char *pass_named(const Op *op) {
    return op->hint ? op->hint : op_mnemonic(op->kind);
}

/* A line: "gat.gnn:14: fuse: text". */
static void put_remark(PassCtx *p, Span at, const char *pass, const char *text) {
    Span user = ctx_user_span(p->ctx, at);
    put_place(p, user, ": ");
    sb_printf(p->remarks, "%s: %s", pass, text);
    if (user.file != at.file || user.line != at.line) {
        sb_puts(p->remarks, " [");
        put_place(p, at, "]");
    }
    sb_puts(p->remarks, "\n");
}

void pass_remark(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    put_remark(p, at, pass, arena_vprintf(p->a, fmt, ap));
    va_end(ap);
}

static void refuse(PassCtx *p, const PassRefusal *x) {
    put_remark(p, x->at, x->pass, x->text);
    if (p->record) vec_push(p->a, &p->record->refusals, *x);
}

void pass_refusal(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    refuse(p, &(PassRefusal){.pass = pass, .of = p->of, .at = at, .text = text});
}

void pass_refusal_of(PassCtx *p, const Op *op, const char *cure, const char *pass, const char *fmt,
                     ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    refuse(p, &(PassRefusal){pass, p->of, op->span, text, op, cure});
}
