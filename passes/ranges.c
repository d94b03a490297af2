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

static const double HEADROOM = 8, MAX_SUBNORMAL_SHARE = 0.1;

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
static Op *mark_fused(Op *x) {
    x->fused = x->type.rank > 0;
    return x;
}

/* Reduces all elements of x. */
static Op *reduce_all(Ranges *r, RedKind red, Op *x) {
    return x->type.rank ? b_reduce(&r->b, red, x, x->type.rank, x->type.dim) : x;
}

/* The number of elements for which a condition holds. */
static Op *count_true(Ranges *r, Op *holds) {
    return reduce_all(r, RED_SUM, mark_fused(b_cast(&r->b, holds, DT_F32)));
}

/* Adds the output "range.<i>.<what>". */
static void emit_range_output(Ranges *r, int i, const char *what, Op *x) {
    b_output(&r->b, arena_printf(r->b.m->a, "range.%d.%s", i, what), x);
}

/* The first assignment of the function, or NULL. */
static Op *first_assign(const Func *f) {
    Op *op = f->first;
    while (op && op->kind != OP_ASSIGN) op = op->next;
    return op;
}

/* The factor by which the loss scale must shrink so that twice the largest gradient fits (the scale
 * moves by two); NULL: there are no gradients. */
static Op *scale_factor(Ranges *r, int n, Op *const *max_abs, const bool *gradient) {
    Op *all = NULL;
    for (int i = 0; i < n; i++)
        if (gradient[i]) all = all ? binary(r, OP_MAX, all, max_abs[i]) : max_abs[i];
    if (!all) return NULL;
    return binary(r, OP_MIN, num(r, 1), binary(r, OP_DIV, num(r, largest_of(r->dt) / 2), all));
}

/* Adds the outputs that measure value i. `max_abs` is its largest magnitude, `down` the loss
 * scale's factor for a gradient. */
static void add_measurement(Ranges *r, int i, Op *x, Op *max_abs, Op *factor) {
    Op *a = mark_fused(b_unary(&r->b, OP_ABS, x)), *smallest = num(r, smallest_of(r->dt));
    if (factor) smallest = binary(r, OP_DIV, smallest, factor);
    Op *nonzero = mark_fused(binary(r, OP_LT, num(r, 0), a)),
       *subnormal = mark_fused(binary(r, OP_LT, a, smallest));
    emit_range_output(r, i, "most", factor ? binary(r, OP_MUL, max_abs, factor) : max_abs);
    emit_range_output(r, i, "some", count_true(r, nonzero));
    emit_range_output(r, i, "small",
                      count_true(r, mark_fused(binary(r, OP_AND, nonzero, subnormal))));
    if (factor) emit_range_output(r, i, "scale", binary(r, OP_MUL, r->scale, factor));
}

/* Adds outputs that measure the ranges of n values. */
void pass_ranges_add(PassCtx *p, Module *m, Func *f, int n, Op *const *value) {
    Ranges r = {.b = {.m = m, .f = f, .at = first_assign(f)}, .dt = p->precision};
    bool scaled = pass_loss_is_scaled(m, f), *is_gradient;
    Op **max_abs = NEWN(p->a, Op *, (size_t)n + 1);
    bool *is_scaled = NEWN(p->a, bool, (size_t)n + 1);
    if (scaled) r.scale = pass_loss_scale_now(&r.b);
    is_gradient = pass_loss_scaled_ops(p->a, m, f);
    for (int i = 0; i < n; i++) {
        b_like(&r.b, value[i]);
        max_abs[i] = reduce_all(&r, RED_MAX, mark_fused(b_unary(&r.b, OP_ABS, value[i])));
        is_scaled[i] = is_gradient[value[i]->id];
    }
    Op *factor = scale_factor(&r, n, max_abs, is_scaled);
    for (int i = 0; i < n; i++) {
        b_like(&r.b, value[i]);
        PassRange range = {f->name, .key = key_of(p->a, value[i]), .gradient = is_scaled[i]};
        add_measurement(&r, p->ranges->values.n, value[i], max_abs[i],
                        is_scaled[i] ? factor : NULL);
        vec_push(p->a, &p->ranges->values, range);
    }
}

/* ---- what was measured -------- */
/* The measured range of a value, or NULL. */
static const PassRange *find_range(const PassCtx *p, const char *func, const char *key) {
    const PassRanges *all = p->ranges;
    for (int i = 0; i < all->values.n; i++) {
        const PassRange *r = &all->values.v[i];
        if (r->known && !strcmp(r->func, func) && !strcmp(r->key, key)) return r;
    }
    return NULL;
}

/* The percentage of nonzero elements below the smallest normal number. */
static double subnormal_percent(const PassRange *r) {
    return r->n_nonzero > 0 ? 100 * r->n_subnormal / r->n_nonzero : 0;
}

/* The loss scale, in words. */
static const char *scale_text(const PassCtx *p, const PassRange *r) {
    if (!r->gradient) return "";
    return arena_printf(p->a, " with the loss times %.0f", exp2(floor(log2(r->scale))));
}

/* Why the type does not hold the range; NULL: it does. */
static const char *range_reason(const PassCtx *p, const PassRange *r) {
    const char *type = dtype_name(p->precision);
    double least = smallest_of(p->precision), largest = largest_of(p->precision);
    if (!r) return "its range was not measured";
    if (!isfinite(r->max_abs)) return "it is not always finite";
    if (!r->gradient && r->max_abs * HEADROOM > largest)
        return arena_printf(p->a, "at most %.2g, and %s ends at %.5g", r->max_abs, type, largest);
    if (subnormal_percent(r) > 100 * MAX_SUBNORMAL_SHARE)
        return arena_printf(p->a, "%.0f %% of it are below %.1g, the smallest normal %s%s",
                            subnormal_percent(r), least, type, scale_text(p, r));
    return NULL;
}

/* The same of a value that @load saves, in all phases that read it. */
const char *pass_range_refuses_saved(const PassCtx *p, const char *name) {
    const char *key = arena_printf(p->a, "saved %s", name), *why = NULL;
    bool read = false;
    for (int i = 0; i < p->ranges->values.n; i++) {
        const PassRange *r = &p->ranges->values.v[i];
        if (!r->known || strcmp(r->key, key)) continue;
        if (!why) why = range_reason(p, r);
        read = true;
    }
    return read ? why : range_reason(p, NULL);
}

const char *pass_range_refuses(const PassCtx *p, const Func *f, const Op *op) {
    if (op->kind == OP_SAVED) return pass_range_refuses_saved(p, op->name);
    return range_reason(p, find_range(p, f->name, key_of(p->a, op)));
}

double pass_range_scale(const PassCtx *p) {
    double least = INFINITY;
    for (int i = 0; i < p->ranges->values.n; i++) {
        const PassRange *r = &p->ranges->values.v[i];
        if (r->known && r->gradient && r->scale < least) least = r->scale;
    }
    return least;
}

/* The measured range, in words; NULL: it was not measured. */
const char *pass_range_text(const PassCtx *p, const Func *f, const Op *op) {
    const PassRange *r = find_range(p, f->name, key_of(p->a, op));
    if (!r) return NULL;
    if (subnormal_percent(r) < 0.5)
        return arena_printf(p->a, "at most %.2g%s", r->max_abs, scale_text(p, r));
    return arena_printf(p->a, "at most %.2g%s, %.0f %% of it below %.1g", r->max_abs,
                        scale_text(p, r), subnormal_percent(r), smallest_of(p->precision));
}
