/* Ranges of values, for --precision=auto: which of them would a type of 16 bits not hold?
 *
 *     %a = fused abs %x                      output "range.3.most", reduce max %a
 *     %b = fused lt 0, %a                    output "range.3.some", reduce sum (cast %b)
 *     %c = fused and %b, lt %a, %least       output "range.3.small", reduce sum (cast %c)
 *
 * The program with these outputs, all in f32, runs a few steps on data
 * (frontend/cli/cli_measure.c); what it tells comes back in PassRanges, by phase and place of the
 * value: the passes before make the same program both times.  So measuring needs no run-time
 * library of its own, and costs the program that is built in the end nothing.
 *
 * A value stays f32 where its largest element, HEADROOM times over (training goes on after the
 * steps that are measured), is more than the type holds, or where more than FEW of what is not zero
 * lies below the smallest normal number.  Gradients are those of a scaled loss (loss_scale.c), and
 * the scale is one for all: it goes down until the largest fits, so what counts is how far others
 * lie below that.  A gradient is what depends on the scale.
 *
 * Micikevicius et al. 2018, section 3.2 and figure 3; Zhao et al. 2022, "Adaptive Loss Scaling for
 * Mixed Precision Training", give each layer a scale where we give it f32. */
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

static const double HEADROOM = 8, FEW = 0.1;

/* The largest number of a 16-bit type. */
static double largest_of(DType dt) {
    return dt == DT_F16 ? 65504 : ldexp(2 - ldexp(1, -7), 127);
}

/* The smallest normal number of a 16-bit type. */
static double smallest_of(DType dt) {
    return ldexp(1, dt == DT_F16 ? -14 : -126);
}

/* The key of a value in PassRanges. What a phase reads of @load is one value to all phases. */
static const char *key_of(Arena *a, const Op *op) {
    if (op->kind == OP_SAVED) return arena_printf(a, "saved %s", op->name);
    return arena_printf(a, "%d", op->id);
}

/* ---- measuring -------- */
typedef struct {
    Builder b;
    DType dt; /* what it is measured for */
    Op *scale;
} Ranges;

/* An f32 constant. */
static Op *num(Ranges *r, double x) {
    return b_const(&r->b, DT_F32, x);
}

/* A binary operation. */
static Op *binary(Ranges *r, OpKind k, Op *x, Op *y) {
    return b_binary(&r->b, k, x, y);
}

/* Marks x as computed inside its user's kernel. */
static Op *fused(Op *x) {
    x->fused = x->type.rank > 0;
    return x;
}

/* Reduces all elements of x. */
static Op *over_all(Ranges *r, RedKind red, Op *x) {
    return x->type.rank ? b_reduce(&r->b, red, x, x->type.rank, x->type.dim) : x;
}

/* The number of elements for which a condition holds. */
static Op *count(Ranges *r, Op *holds) {
    return over_all(r, RED_SUM, fused(b_cast(&r->b, holds, DT_F32)));
}

/* Adds the output "range.<i>.<what>". */
static void tell(Ranges *r, int i, const char *what, Op *x) {
    b_output(&r->b, arena_printf(r->b.m->a, "range.%d.%s", i, what), x);
}

/* The first assignment of the function, or NULL. */
static Op *first_change(const Func *f) {
    Op *op = f->first;
    while (op && op->kind != OP_ASSIGN) op = op->next;
    return op;
}

/* The factor by which the loss scale must shrink so that twice the largest gradient fits (the scale
 * moves by two); NULL: there are no gradients. */
static Op *factor(Ranges *r, int n, Op *const *most, const bool *gradient) {
    Op *all = NULL;
    for (int i = 0; i < n; i++)
        if (gradient[i]) all = all ? binary(r, OP_MAX, all, most[i]) : most[i];
    if (!all) return NULL;
    return binary(r, OP_MIN, num(r, 1), binary(r, OP_DIV, num(r, largest_of(r->dt) / 2), all));
}

/* Adds the outputs that measure value i. `most` is its largest magnitude, `down` the loss scale's
 * factor for a gradient. */
static void measure(Ranges *r, int i, Op *x, Op *most, Op *down) {
    Op *a = fused(b_unary(&r->b, OP_ABS, x)), *least = num(r, smallest_of(r->dt));
    if (down) least = binary(r, OP_DIV, least, down);
    Op *some = fused(binary(r, OP_LT, num(r, 0), a)), *low = fused(binary(r, OP_LT, a, least));
    tell(r, i, "most", down ? binary(r, OP_MUL, most, down) : most);
    tell(r, i, "some", count(r, some));
    tell(r, i, "small", count(r, fused(binary(r, OP_AND, some, low))));
    if (down) tell(r, i, "scale", binary(r, OP_MUL, r->scale, down));
}

/* Adds outputs that measure the ranges of n values. */
void pass_ranges_add(PassCtx *p, Module *m, Func *f, int n, Op *const *value) {
    Ranges r = {.b = {.m = m, .f = f, .at = first_change(f)}, .dt = p->precision};
    bool scaled = pass_loss_is_scaled(m, f), *is_gradient;
    Op **most = NEWN(p->a, Op *, (size_t)n + 1);
    bool *of = NEWN(p->a, bool, (size_t)n + 1);
    if (scaled) r.scale = pass_loss_scale_now(&r.b);
    is_gradient = pass_loss_scaled_ops(p->a, m, f);
    for (int i = 0; i < n; i++) {
        b_like(&r.b, value[i]);
        most[i] = over_all(&r, RED_MAX, fused(b_unary(&r.b, OP_ABS, value[i])));
        of[i] = is_gradient[value[i]->id];
    }
    Op *down = factor(&r, n, most, of);
    for (int i = 0; i < n; i++) {
        b_like(&r.b, value[i]);
        PassRange range = {f->name, .key = key_of(p->a, value[i]), .gradient = of[i]};
        measure(&r, p->ranges->of.n, value[i], most[i], of[i] ? down : NULL);
        vec_push(p->a, &p->ranges->of, range);
    }
}

/* ---- what was measured -------- */
/* The measured range of a value, or NULL. */
static const PassRange *find(const PassCtx *p, const char *func, const char *key) {
    const PassRanges *all = p->ranges;
    for (int i = 0; i < all->of.n; i++) {
        const PassRange *r = &all->of.v[i];
        if (r->known && !strcmp(r->func, func) && !strcmp(r->key, key)) return r;
    }
    return NULL;
}

/* The percentage of nonzero elements below the smallest normal number. */
static double share(const PassRange *r) {
    return r->some > 0 ? 100 * r->small / r->some : 0;
}

/* The loss scale, in words. */
static const char *at_scale(const PassCtx *p, const PassRange *r) {
    if (!r->gradient) return "";
    return arena_printf(p->a, " with the loss times %.0f", exp2(floor(log2(r->scale))));
}

/* Why the type does not hold the range; NULL: it does. */
static const char *refuses(const PassCtx *p, const PassRange *r) {
    const char *type = dtype_name(p->precision);
    double least = smallest_of(p->precision), largest = largest_of(p->precision);
    if (!r) return "its range was not measured";
    if (!isfinite(r->most)) return "it is not always finite";
    if (!r->gradient && r->most * HEADROOM > largest)
        return arena_printf(p->a, "at most %.2g, and %s ends at %.5g", r->most, type, largest);
    if (share(r) > 100 * FEW)
        return arena_printf(p->a, "%.0f %% of it are below %.1g, the smallest normal %s%s",
                            share(r), least, type, at_scale(p, r));
    return NULL;
}

/* The same of a value that @load saves, in all phases that read it. */
const char *pass_range_refuses_saved(const PassCtx *p, const char *name) {
    const char *key = arena_printf(p->a, "saved %s", name), *why = NULL;
    bool read = false;
    for (int i = 0; i < p->ranges->of.n; i++) {
        const PassRange *r = &p->ranges->of.v[i];
        if (!r->known || strcmp(r->key, key)) continue;
        if (!why) why = refuses(p, r);
        read = true;
    }
    return read ? why : refuses(p, NULL);
}

/* Why the type does not hold the value; NULL: it does. */
const char *pass_range_refuses(const PassCtx *p, const Func *f, const Op *op) {
    if (op->kind == OP_SAVED) return pass_range_refuses_saved(p, op->name);
    return refuses(p, find(p, f->name, key_of(p->a, op)));
}

/* The loss scale that suits the largest gradient; infinite: there are none. */
double pass_range_scale(const PassCtx *p) {
    double least = INFINITY;
    for (int i = 0; i < p->ranges->of.n; i++) {
        const PassRange *r = &p->ranges->of.v[i];
        if (r->known && r->gradient && r->scale < least) least = r->scale;
    }
    return least;
}

/* The measured range, in words; NULL: it was not measured. */
const char *pass_range_text(const PassCtx *p, const Func *f, const Op *op) {
    const PassRange *r = find(p, f->name, key_of(p->a, op));
    if (!r) return NULL;
    if (share(r) < 0.5) return arena_printf(p->a, "at most %.2g%s", r->most, at_scale(p, r));
    return arena_printf(p->a, "at most %.2g%s, %.0f %% of it below %.1g", r->most, at_scale(p, r),
                        share(r), smallest_of(p->precision));
}
