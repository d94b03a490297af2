/* The C header of a model's library: its symbol, and what it reads and gives, by name and shape,
 * as comments and as constants. */
#include "codegen/host/host.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* A header while it is written. */
typedef struct {
    Host h;
    const char *prefix;       /* of all macros: "CHURN" */
    VEC(const char *) macros; /* their names so far */
} Header;

/* A copy of s in upper case. */
static const char *to_upper(Arena *a, const char *s) {
    char *t = arena_strndup(a, s, strlen(s));
    for (char *p = t; *p; p++) *p = (char)toupper((unsigned char)*p);
    return t;
}

/* Makes a macro name, PREFIX_KIND_NAME in upper case, that differs from all before it. */
static const char *new_macro(Header *d, const char *kind, const char *name) {
    Arena *a = d->h.a;
    const char *prefix = arena_printf(a, "%s_%s", d->prefix, kind);
    const char *s =
        to_upper(a, host_unique(a, prefix, to_upper(a, name), d->macros.v, d->macros.n));
    vec_push(a, &d->macros, s);
    return s;
}

/* Writes the macros name_RANK and name_SHAPE for type t. A size that only data or weights bring is
 * -1. */
static void emit_shape_constants(Header *d, const char *name, const Type *t) {
    Host *h = &d->h;
    host_printf(h, "#define %s_RANK %d\n", name, t->rank);
    if (t->rank == 0) return;
    host_printf(h, "#define %s_SHAPE {", name);
    for (int i = 0; i < t->rank; i++)
        host_printf(h, "%s%" PRId64, i ? ", " : "", host_known_size(t->dim[i]));
    host_puts(h, "}\n");
}

/* Writes, for each column of the data, a macro with its name "table.column" and macros for its rank
 * and shape. */
static void emit_input_constants(Header *d) {
    Host *h = &d->h;
    for (int i = 0; i < h->m->cols.n; i++) {
        const Column *c = h->m->cols.v[i];
        const char *path = arena_printf(h->a, "%s.%s", c->space->name, c->name);
        const char *name = new_macro(d, "INPUT", path);
        host_printf(h, "#define %s ", name);
        host_string(h, path);
        host_puts(h, "\n");
        emit_shape_constants(d, name, &c->type);
    }
}

/* Writes, for each prediction and hidden layer, a macro with its name and macros for its rank and
 * shape. */
static void emit_output_constants(Header *d) {
    Host *h = &d->h;
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        const char *given = host_given(h->p, i);
        if (!given) continue;
        const char *name = new_macro(d, b->use.role == OUT_PRED ? "OUTPUT" : "LAYER", given);
        host_printf(h, "#define %s ", name);
        host_string(h, given);
        host_puts(h, "\n");
        emit_shape_constants(d, name, &b->type);
    }
}

/* ---- the file ----------------------------------------------------------------------------- */
/* Writes a text, which ends with a line break, as a C comment. */
static void put_comment(Host *h, const char *text) {
    const char *begin = text;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        host_puts(h, text == begin ? "/* " : end == text ? " *" : " * ");
        sb_put(&h->b, text, (size_t)(end - text + 1));
    }
    host_puts(h, " */\n");
}

/* Writes the comment at the top of the header: the model, the call that creates it, what it reads
 * and what it returns. */
static void emit_comment(Host *h) {
    Host text = {.c = h->c, .a = h->a, .p = h->p, .m = h->m, .b = sb_new(h->a)};
    const Sampling *sampling = &h->m->recipe.sample;
    host_title(&text);
    host_printf(&text, "\n    gnnc_%s, &%s)    (gnnc.h)\n",
                sampling->serve ? "model_create(&m" : "trainer_create(&t", host_symbol(h));
    host_describe(&text,
                  !sampling->serve ? "gnnc_trainer_predict"
                  : sampling->request_columns.n || (sampling->train_links && sampling->n_hops)
                      ? "gnnc_session_predict_pairs"
                  : sampling->train_links ? "gnnc_session_predict_links"
                                          : "gnnc_session_predict",
                  sampling->serve ? "gnnc_session_embed, by that name"
                                  : "gnnc_trainer_embed, by that name");
    put_comment(h, text.b.s);
}

/* The text of the C header of the library that is made of plan p: its symbol, the names and shapes
 * of its inputs and results. */
const char *host_header(Ctx *c, const Plan *p) {
    Header d = {.h = {.c = c, .a = c->a, .p = p, .m = p->m, .b = sb_new(c->a)}};
    Host *h = &d.h;
    d.prefix = to_upper(c->a, p->c_name);
    emit_comment(h);
    host_printf(h,
                "#ifndef %s_PROGRAM_H\n#define %s_PROGRAM_H\n\n#include <gnnc.h>\n\n"
                "#define %s_MODEL ",
                d.prefix, d.prefix, d.prefix);
    host_string(h, host_model_name(p));
    host_puts(h, "\n\n/* Names of columns in schema.json.  In shapes, -1 is a size that data or "
                 "weights bring. */\n");
    emit_input_constants(&d);
    host_puts(h, "\n");
    emit_output_constants(&d);
    host_printf(h,
                "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const gnnc_program %s;\n"
                "#ifdef __cplusplus\n}\n#endif\n#endif\n",
                host_symbol(h));
    return h->b.s;
}
