/* The driver's side of the user's C functions: prototypes, which the user's own file is compiled
 * against too, a function per call that spreads its arguments, and the call. */
#include "codegen/host/host.h"

#include <errno.h>
#include <string.h>

/* The C functions that have a prototype already. */
typedef struct {
    StrMap symbols; /* by C symbol; the values are of no matter */
} Declared;

/* Writes the prototype of the C function that step s calls, unless d has it already: int f(const
 * gnnc_tensor *, gnnc_tensor *). A device function gets the stream, too. */
static void emit_prototype(Host *h, Declared *d, const PStep *s) {
    const char *symbol = cg_symbol(s->op);
    if (strmap_has(&d->symbols, symbol)) return;
    strmap_put(h->a, &d->symbols, symbol, h);
    host_printf(h, "int %s(", symbol);
    for (int i = 0; i < s->n_bufs; i++)
        host_printf(h, "%s%sgnnc_tensor *", i ? ", " : "", i < s->n_in ? "const " : "");
    if (s->op->ext->device) host_printf(h, "%svoid *stream", s->n_bufs ? ", " : "");
    host_puts(h, s->n_bufs || s->op->ext->device ? ");\n" : "void);\n");
}

/* Writes the prototypes of all C functions that the plan's steps call, each once. */
void host_call_prototypes(Host *h) {
    Declared d = {0};
    for (int i = 0; i < h->p->phases.n; i++)
        for (int k = 0; k < h->p->phases.v[i]->steps.n; k++) {
            const PStep *s = h->p->phases.v[i]->steps.v[k];
            if (s->kind == PS_CALL) emit_prototype(h, &d, s);
        }
}

/* Writes a header with the prototypes of the user's C functions to the file `path`, for the user's
 * own code to include. False after diagnostics. */
bool host_externs(Ctx *c, const Plan *p, const char *path) {
    Host h = {.c = c, .a = c->a, .p = p, .m = p->m, .b = sb_new(c->a)};
    host_puts(&h, "/* What the model says of its C functions. */\n#include <gnnc_extern.h>\n"
                  "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    host_call_prototypes(&h);
    host_puts(&h, "#ifdef __cplusplus\n}\n#endif\n");
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(h.b.s, 1, h.b.n, f) == h.b.n;
    if (f && fclose(f) != 0) ok = false;
    if (!ok) diag_add(c, DIAG_E0003, (Span){0}, "%s: %s", path, strerror(errno));
    return ok;
}

/* Writes a function with one signature for all calls, which calls the C function of step number
 * `index` with its tensors as separate arguments. */
static void emit_wrapper(Host *h, int index, const PStep *s) {
    host_printf(h,
                "static int call_%d_%d(gnnc_tensor *t, void *stream) {\n"
                "    (void)t, (void)stream;\n    return %s(",
                h->phase, index, cg_symbol(s->op));
    for (int i = 0; i < s->n_bufs; i++) host_printf(h, "%s&t[%d]", i ? ", " : "", i);
    if (s->op->ext->device) host_printf(h, "%sstream", s->n_bufs ? ", " : "");
    host_puts(h, ");\n}\n\n");
}

/* Writes the wrapper function of each call of a C function in the phase. */
void host_call_wrappers(Host *h, const PPhase *ph) {
    for (int k = 0; k < ph->steps.n; k++)
        if (ph->steps.v[k]->kind == PS_CALL) emit_wrapper(h, k, ph->steps.v[k]);
}

/* Writes the i-th tensor of the call s as an initializer: buffer, element type, rank and shape. */
static void emit_argument(Host *h, const PStep *s, int i) {
    const Type *t = s->types[i];
    host_printf(h, "            {B_%s, %s, %d, {", h->p->bufs.v[s->bufs[i]]->name,
                host_dtype(t->dt), t->rank);
    for (int k = 0; k < t->rank; k++) {
        host_puts(h, k ? ", " : "");
        host_expr(h, t->dim[k]->size);
    }
    host_puts(h, t->rank ? "}},\n" : "0}},\n");
}

/* The position of a step in the model as "file:line"; the module's name if the position is not
 * known. */
const char *host_line(const Host *h, const PStep *s) {
    const Span at = s->span;
    bool known = at.line && (int)at.file < h->c->sources.n;
    return known ? arena_printf(h->a, "%s:%u", ctx_source_name(h->c, at.file), at.line)
                 : h->m->name;
}

/* Writes the step that calls a C function. In its table, .host says that the host waits for the
 * device, and .when is the buffer of its condition, or -1. */
void host_call(Host *h, int index, const PStep *s) {
    host_puts(h, "    st = rt_call(x, &(const rt_extern){\n        .name = ");
    host_string(h, cg_symbol(s->op));
    host_puts(h, ", .line = ");
    host_string(h, host_line(h, s));
    host_printf(h,
                ",\n        .fn = call_%d_%d, .n_in = %d, .n_out = %d, .device = %s, .host = %s,\n "
                "       .when = ",
                h->phase, index, s->n_in, s->n_bufs - s->n_in,
                s->op->ext->device ? "true" : "false",
                plan_step_interrupts(s, h->device) ? "true" : "false");
    if (s->pred >= 0)
        host_printf(h, "B_%s", h->p->bufs.v[s->pred]->name);
    else
        host_puts(h, "-1");
    host_puts(h, s->n_bufs ? "},\n        (const rt_arg[]){\n" : "}, NULL);\n");
    for (int i = 0; i < s->n_bufs; i++) emit_argument(h, s, i);
    if (s->n_bufs) host_puts(h, "        });\n");
}
