/* Values of a compiled step that are looked at (--dump-values=z,h), without another kernel for the
 * rest.
 *
 *     %a = fused mul %x, %w                  %a = fused mul %x, %w
 *     %z = fused add %a, %b                  %z = fused add %a, %b
 *     %y = segment sum dst(e) %z       ->    %y = segment sum dst(e) %z
 *                                            %a' = fused mul %x, %w
 *                                            %z' = apart add %a', %b
 *                                            output "train.z" %z' as dump
 *
 * A value that a step stores is read where it lies when the step ends; one that is computed inside
 * its users' kernels is computed once more of what is stored, by a kernel of its own (`apart`), so
 * that what was fused stays fused and what was stored stays stored.  A dump is f32.  Phases that
 * run once
 * (@load and the like) are left out, and so are bodies of loops: `gnnc run --values` shows those.
 */
#include "ir/text.h"
#include "passes/rewrite.h"

typedef struct {
    PassCtx *p;
    Op **copy; /* by Op.id: what is computed inside kernels, once more; NULL: not yet */
} Dump;

/* Whether values of the function can be dumped: it is a step, not a phase whose outputs are saved
 * for others. */
static bool is_dumped(const Func *f) {
    return !f->body && !phase_saves(f->phase);
}

/* The value itself if it is stored; else a copy of its computation that is not fused into other
 * kernels. */
static Op *stored_copy(Dump *d, Builder *b, Op *x) {
    if (!x->fused) return x;
    if (d->copy[x->id]) return d->copy[x->id];
    Op proto = *x;
    proto.in = NEWN(d->p->a, Op *, (size_t)x->n_in + 1);
    for (int i = 0; i < x->n_in; i++) proto.in[i] = stored_copy(d, b, x->in[i]);
    proto.ask = ASK_APART;
    return d->copy[x->id] = b_op(b, &proto);
}

/* The value that the output shows: an f32 copy, in a kernel of its own. */
static Op *dump_op(Dump *d, Builder *b, Op *x) {
    Op proto = {.kind = x->type.dt == DT_F32 ? OP_COPY : OP_CAST, .type = x->type, .n_in = 1};
    Op *in = stored_copy(d, b, x);
    proto.in = &in;
    proto.type.dt = DT_F32;
    if (in != x && x->type.dt == DT_F32) { /* the copy is the dump itself */
        in->fused = false;
        d->copy[x->id] = NULL;
    } else {
        in = b_op(b, &proto);
    }
    in->ask = ASK_APART;
    in->again = true;
    return in;
}

/* Adds outputs for the requested values of a function. */
static void dump_func(PassCtx *p, Module *m, Func *f, StrMap *found) {
    const char **name = ir_value_names(p->a, f);
    int n = f->n_ops; /* before dumps are added */
    Dump d = {.p = p, .copy = NEWN(p->a, Op *, (size_t)n + 1)};
    Op **all = NEWN(p->a, Op *, (size_t)n + 1);
    for (Op *op = f->first; op; op = op->next) all[op->id] = op;
    for (int i = 0; i < n; i++) {
        const char *term = op_has_result(all[i]) ? text_asked(p->a, p->dump_values, name[i]) : NULL;
        if (!term) continue;
        Builder b = b_for(m, f, all[i]->next, all[i]); /* before a variable changes */
        Op *out =
            b_output(&b, arena_printf(p->a, "%s.%s", f->name, name[i]), dump_op(&d, &b, all[i]));
        out->use.role = OUT_DUMP;
        out->use.of = name[i];
        strmap_put(p->a, found, term, f);
        pass_remark(p, all[i]->span, "dump-values", "'%%%s' of @%s is %s", name[i], f->name,
                    all[i]->fused ? "computed again, apart" : "read where it is stored");
    }
}

/* Runs the pass: outputs the values that --dump-values names, in all functions that may dump. False
 * with a diagnostic (E0520) if a name is of no value. */
static bool run(PassCtx *p, Module *m) {
    StrMap found = {0};
    for (int i = 0, n = m->funcs.n; i < n; i++)
        if (is_dumped(m->funcs.v[i])) dump_func(p, m, m->funcs.v[i], &found);
    const char *name = text_unmet(p->a, p->dump_values, &found);
    if (name)
        diag_add(
            p->ctx, DIAG_E0520, (Span){0},
            "no step has a value '%%%s' to be dumped; passes rename and remove them: --emit=ir "
            "shows which there are",
            name);
    return name == NULL;
}

const Pass pass_dump_values = {
    .name = "dump-values",
    .summary = "with --dump-values: values of a step as outputs, while the rest stays as it is",
    .needs = IR_TYPED,
    .run = run,
};
