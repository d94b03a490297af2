/* Remarks: what a pass did or declined to do, with the model's line, the user's own first. */
#include "passes/rewrite.h"

#include <string.h>

/* Prints file and line; files that came with the compiler are in "layers". */
static void print_place(const Ctx *c, StrBuf *b, Span at, const char *end) {
    if (!at.line || at.file >= (uint32_t)c->sources.n) return;
    const Source *s = &c->sources.v[at.file];
    const char *last = s->library ? strrchr(s->path, '/') : NULL;
    sb_printf(b, "%s%s:%u%s", last ? "layers" : "", last ? last : s->path, at.line, end);
}

/* The name of an operation for people: its name in the model, or its kind. */
const char *pass_named(const Op *op) {
    return op->hint ? op->hint : op_mnemonic(op->kind);
}

enum { OPS_NAMED_MAX = 8 };

/* Adds an operation to the list of a remark. */
void pass_ops_add(PassCtx *p, PassOps *to, const Op *op) {
    if (!p->remarks) return;
    to->n++;
    if (to->n_named == OPS_NAMED_MAX) return;
    StrBuf entry = sb_new(p->a);
    sb_printf(&entry, "'%s' (", pass_named(op));
    size_t n = entry.n;
    print_place(p->ctx, &entry, ctx_user_span(p->ctx, op->span), ")");
    const char *text = entry.n > n ? entry.s : arena_printf(p->a, "'%s'", pass_named(op));
    if (!to->text.a) to->text = sb_new(p->a);
    if (to->text.n && strstr(to->text.s, text)) return;
    sb_printf(&to->text, "%s %s", to->text.n ? "," : ":", text);
    to->n_named++;
}

const char *pass_ops_text(PassCtx *p, const PassOps *of) {
    if (!of->n) return "";
    if (of->n == of->n_named) return of->text.s;
    return arena_printf(p->a, "%s and %d more", of->text.s, of->n - of->n_named);
}

/* Prints the line "gat.gnn:14: fuse: text". */
static void print_remark_line(const Ctx *c, StrBuf *b, Span at, const char *pass,
                              const char *text) {
    Span user = ctx_user_span(c, at);
    print_place(c, b, user, ": ");
    sb_printf(b, "%s: %s", pass, text);
    if (user.file != at.file || user.line != at.line) {
        sb_puts(b, " [");
        if (at.site_name) sb_printf(b, "%s, ", at.site_name);
        print_place(c, b, at, "]");
    }
    sb_puts(b, "\n");
}

/* Adds a remark. */
static void print_remark(PassCtx *p, Span at, const char *pass, const char *text) {
    print_remark_line(p->ctx, p->remarks, at, pass, text);
}

/* Prints recorded refusals. */
void pass_refusals_put(Ctx *c, StrBuf *to, const PassRecord *from) {
    for (int i = 0; i < from->refusals.n; i++) {
        const PassRefusal *x = &from->refusals.v[i];
        print_remark_line(c, to, x->at, x->pass, x->text);
    }
}

/* Adds a remark. */
void pass_remark(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    print_remark(p, at, pass, arena_vprintf(p->a, fmt, ap));
    va_end(ap);
}

/* Adds and records a refusal. */
static void record_refusal(PassCtx *p, const PassRefusal *x) {
    print_remark(p, x->at, x->pass, x->text);
    if (p->record) vec_push(p->a, &p->record->refusals, *x);
}

/* Adds a remark about something that was not done and costs something. */
void pass_refusal(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    record_refusal(
        p, &(PassRefusal){.pass = pass, .of = p->of, .at = at, .text = text, .costs = true});
}

/* Adds a remark about something that was not done and costs nothing. */
void pass_declined(PassCtx *p, Span at, const char *pass, const char *fmt, ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    record_refusal(p, &(PassRefusal){.pass = pass, .of = p->of, .at = at, .text = text});
}

/* Adds a remark about a refusal because of which op lies in memory, with its remedy. */
void pass_refusal_of(PassCtx *p, const Op *op, const char *cure, const char *pass, const char *fmt,
                     ...) {
    if (!p->remarks) return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    record_refusal(p, &(PassRefusal){pass, p->of, op->span, text, op, cure, true});
}
