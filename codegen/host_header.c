/* The C header of a model's library: its symbol, and what it reads and gives, by name and shape,
 * as comments and as constants. */
#include "codegen/host.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* The macros' names so far, and what they begin with: "CHURN". */
typedef struct {
    Host h;
    const char *prefix;
    VEC(const char *) macros;
} Header;

static const char *upper(Arena *a, const char *s) {
    char *t = arena_strndup(a, s, strlen(s));
    for (char *p = t; *p; p++) *p = (char)toupper((unsigned char)*p);
    return t;
}

/* CHURN_<kind>_<name>, in capitals, unique. */
static const char *macro(Header *d, const char *kind, const char *name) {
    Arena *a = d->h.a;
    const char *prefix = arena_printf(a, "%s_%s", d->prefix, kind);
    const char *s = upper(a, host_unique(a, prefix, upper(a, name), d->macros.v, d->macros.n));
    vec_push(a, &d->macros, s);
    return s;
}

/* A batch's rows are told of as the whole graph's. */
static const Space *whole(const Space *s) {
    return s->whole ? s->whole : s;
}

/* -1: data or weights bring it. */
static int64_t size_of(const Space *s) {
    int64_t size;
    return expr_is_const(whole(s)->size, &size) ? size : -1;
}

static void shape_text(Host *h, const Type *t, int from) {
    for (int i = from; i < t->rank; i++) {
        host_puts(h, i > from ? ", " : "[");
        host_comment(h, whole(t->dim[i])->name);
        if (size_of(t->dim[i]) >= 0) host_printf(h, " = %" PRId64, size_of(t->dim[i]));
    }
    if (t->rank > from) host_puts(h, "]");
}

static void shape_constant(Header *d, const char *name, const Type *t) {
    Host *h = &d->h;
    host_printf(h, "#define %s_RANK %d\n", name, t->rank);
    if (t->rank == 0) return;
    host_printf(h, "#define %s_SHAPE {", name);
    for (int i = 0; i < t->rank; i++)
        host_printf(h, "%s%" PRId64, i ? ", " : "", size_of(t->dim[i]));
    host_puts(h, "}\n");
}

/* ---- what it reads ------------------------------------------------------------------------- */
static void column_comment(Host *h, const Column *c, bool is_label) {
    host_puts(h, " *       ");
    host_comment(h, c->name);
    host_printf(h, ": %s", column_facts[c->kind].said);
    if (c->cat) {
        host_puts(h, "[");
        host_comment(h, c->cat->name);
        host_puts(h, "]");
    }
    shape_text(h, &c->type, 1);
    host_puts(h, is_label ? "    (to train and evaluate)\n" : "\n");
}

static bool table_comment(Host *h, const Space *s) {
    bool edges = s->kind == SP_EDGE && s->rel == REL_BASE;
    if (s->whole || (s->kind != SP_NODE && s->kind != SP_GRAPH && !edges)) return false;
    host_printf(h, " *     %s ", edges ? "edge" : s->kind == SP_NODE ? "node" : "graph");
    host_comment(h, s->name);
    if (edges) {
        host_puts(h, ": ");
        host_comment(h, s->src->name);
        host_puts(h, " -> ");
        host_comment(h, s->dst->name);
    }
    host_puts(h, "\n");
    return true;
}

static void inputs_comment(Host *h) {
    const bool *labels = host_labels(h->a, h->m);
    host_puts(h, " *\n * It reads\n");
    for (int i = 0; i < h->m->spaces.n; i++) {
        const Space *s = h->m->spaces.v[i];
        if (!table_comment(h, s)) continue;
        for (int k = 0; k < h->m->cols.n; k++)
            if (h->m->cols.v[k]->space == s) column_comment(h, h->m->cols.v[k], labels[k]);
    }
}

static void input_constants(Header *d) {
    Host *h = &d->h;
    for (int i = 0; i < h->m->cols.n; i++) {
        const Column *c = h->m->cols.v[i];
        const char *path = arena_printf(h->a, "%s.%s", c->space->name, c->name);
        const char *name = macro(d, "INPUT", path);
        host_printf(h, "#define %s ", name);
        host_string(h, path);
        host_puts(h, "\n");
        shape_constant(d, name, &c->type);
    }
}

/* ---- what it gives -------------------------------------------------------------------------- */
static const char *given_name(const PBuf *b) {
    bool given = b->kind == PB_OUTPUT && (b->use.role == OUT_PRED || b->use.role == OUT_EMBED);
    return !given ? NULL : b->use.role == OUT_EMBED && b->use.of ? b->use.of : b->io_name;
}

static bool is_given_again(const Plan *p, int i) {
    for (int k = 0; k < i; k++) {
        const char *name = given_name(p->bufs.v[k]);
        if (name && !strcmp(name, given_name(p->bufs.v[i])) &&
            p->bufs.v[k]->use.role == p->bufs.v[i]->use.role)
            return true;
    }
    return false;
}

static void outputs_comment(Host *h) {
    host_puts(h, " *\n * It gives, as f32\n");
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        if (!given_name(b) || is_given_again(h->p, i)) continue;
        host_puts(h, " *     ");
        host_comment(h, given_name(b));
        shape_text(h, &b->type, 0);
        host_puts(h, b->use.role == OUT_PRED ? "    gnnc_trainer_predict\n"
                                             : "    gnnc_trainer_embed, by that name\n");
    }
}

static void output_constants(Header *d) {
    Host *h = &d->h;
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        if (!given_name(b) || is_given_again(h->p, i)) continue;
        const char *name = macro(d, b->use.role == OUT_PRED ? "OUTPUT" : "LAYER", given_name(b));
        host_printf(h, "#define %s ", name);
        host_string(h, given_name(b));
        host_puts(h, "\n");
        shape_constant(d, name, &b->type);
    }
}

/* ---- the file ----------------------------------------------------------------------------- */
static void title(Host *h, const char *model) {
    host_puts(h, "/* The model ");
    host_comment(h, model);
    host_puts(h, " of ");
    host_comment(h, h->m->source_path ? h->m->source_path : h->m->name);
    host_puts(h, ", compiled by gnnc");
    if (h->p->options) {
        host_puts(h, " ");
        host_comment(h, h->p->options);
    }
    host_printf(h, ".\n *\n *     gnnc_trainer_create(&t, &%s)    (gnnc.h)\n", host_symbol(h));
}

const char *host_header(Ctx *c, const Plan *p) {
    Header d = {.h = {.c = c, .a = c->a, .p = p, .m = p->m, .b = sb_new(c->a)}};
    Host *h = &d.h;
    const char *model = p->m->recipe.model_name ? p->m->recipe.model_name : p->m->name;
    d.prefix = upper(c->a, p->c_name);
    title(h, model);
    inputs_comment(h);
    outputs_comment(h);
    host_printf(h,
                " */\n#ifndef %s_PROGRAM_H\n#define %s_PROGRAM_H\n\n#include <gnnc.h>\n\n"
                "#define %s_MODEL ",
                d.prefix, d.prefix, d.prefix);
    host_string(h, model);
    host_puts(h, "\n\n/* Names of columns in schema.json.  In shapes, -1 is a size that data or "
                 "weights bring. */\n");
    input_constants(&d);
    host_puts(h, "\n");
    output_constants(&d);
    host_printf(h,
                "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const gnnc_program %s;\n"
                "#ifdef __cplusplus\n}\n#endif\n#endif\n",
                host_symbol(h));
    return h->b.s;
}
