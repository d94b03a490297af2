/* Writing the C of the host driver: text, strings, comments, sizes and names. */
#include "codegen/host/host.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Appends s to the driver's text. */
void host_puts(Host *h, const char *s) {
    sb_puts(&h->b, s);
}

/* Appends formatted text to the driver's, as printf() does. */
void host_printf(Host *h, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    sb_puts(&h->b, arena_vprintf(h->a, fmt, ap));
    va_end(ap);
}

/* Appends s as a C string literal; NULL as NULL. Octal escapes end after three digits, so what
 * follows cannot join them. */
void host_string(Host *h, const char *s) {
    if (!s) {
        host_puts(h, "NULL");
        return;
    }
    host_puts(h, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\' || c == '?')
            host_printf(h, "\\%c", c); /* "??" starts a trigraph */
        else if (isprint(c))
            sb_put(&h->b, s, 1);
        else
            host_printf(h, "\\%03o", c);
    }
    host_puts(h, "\"");
}

/* Appends s as part of a C comment, which it cannot end. */
void host_comment(Host *h, const char *s) {
    target_comment(&h->b, s);
}

/* Appends the size e as a C expression over the run-time table of sizes n[S_..]. */
void host_expr(Host *h, const Expr *e) {
    static const char *const call[] = {
        [EX_CEILDIV] = "rt_ceildiv", [EX_MAX] = "rt_max64", [EX_MIN] = "rt_min64"};
    bool infix = e->kind == EX_ADD || e->kind == EX_MUL;
    if (e->kind == EX_CONST) {
        host_printf(h, "%" PRId64, e->c);
        return;
    }
    if (e->kind == EX_SYM) {
        host_printf(h, "n[%s]", h->sym[e->sym->id]);
        return;
    }
    host_printf(h, "%s(", infix ? "" : call[e->kind]);
    host_expr(h, e->a);
    host_puts(h, e->kind == EX_ADD ? " + " : e->kind == EX_MUL ? " * " : ", ");
    host_expr(h, e->b);
    host_puts(h, ")");
}

/* The name of the program's public C symbol, "churn_program". */
const char *host_symbol(const Host *h) {
    return arena_printf(h->a, "%s_program", h->p->c_name ? h->p->c_name : "model");
}

/* Whether `name` is among the first n names. */
static bool is_taken(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

/* A C identifier PREFIX_NAME that is not among the first n names: other characters become '_', and
 * a number is appended if needed. */
const char *host_unique(Arena *a, const char *prefix, const char *name, const char *const *names,
                        int n) {
    char *s = arena_printf(a, "%s_%s", prefix, name);
    for (char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '_';
    const char *unique = s;
    for (int i = 2; is_taken(names, n, unique); i++) unique = arena_printf(a, "%s_%d", s, i);
    return unique;
}

/* The runtime's constant for an element type, as "RT_F32". */
const char *host_dtype(DType t) {
    static const char *const name[] = {
#define DTYPE(id, text, bytes, c) "RT_" #id,
#include "runtime/contract.def"
    };
    return name[t];
}
