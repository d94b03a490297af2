/* Dynamic loss scaling: gradients of f16 values that would be zero, or infinite.
 *
 *     %g = .. d(loss)             %s = var "opt.loss_scale"
 *     assign "w", %w - lr %g  ->  %g = .. d(loss) times %s
 *                                 %u = mul %g, 1 / %s
 *                                 %ok = lt (sum of %u * %u of all gradients), inf
 *                                 assign "w", select %ok, %w - lr %u, %w
 *                                 assign "opt.loss_scale", select %ok, .., %s / 2
 *
 * Gradients in f16 keep small values so.  Whether one lies in f16 the precision pass, much later,
 * decides; where none does the compiler runs the passes once more, told to leave the scale out.
 * A step whose gradients are not finite changes no parameter and no moment, is counted, and halves
 * the scale; 2000 good steps in a row double it.  All of that is in the step: nothing is read
 * back.  The scale and its counters are optimizer state, saved and resumed with it, and steps that
 * were skipped are none to Adam's bias corrections.
 *
 * Micikevicius et al. 2018, section 3.2; the numbers are torch.amp.GradScaler's. */
#include "passes/rewrite.h"

#include <math.h>

static const double first_scale = 65536, largest_scale = 16777216, interval = 2000;

/* An f32 constant. */
static Op *num(Builder *b, double x) {
    return b_const(b, DT_F32, x);
}

/* Adds a scalar variable to the optimizer state. */
static void add_scalar_slot(Module *m, VarRole role, const char *path, double first) {
    Init init = {.kind = INIT_CONST, .a = first};
    var_new(m, VAR_SLOT, path, type_scalar(DT_F32), init, (Span){0})->role = role;
}

/* Reads a variable of the state. */
static Op *read(Builder *b, VarRole role) {
    return b_var(b, var_of_role(b->m, role));
}

/* Assigns a variable of the state. */
static void write(Builder *b, VarRole role, Op *x) {
    b_assign(b, var_of_role(b->m, role), x);
}

/* Whether the function scales its loss. */
bool pass_loss_is_scaled(const Module *m, const Func *f) {
    return var_of_role(m, ROLE_LOSS_SCALE) && f->phase == PHASE_TRAIN;
}

/* The scale of this step. */
Op *pass_loss_scale_now(Builder *b) {
    return read(b, ROLE_LOSS_SCALE);
}

/* The number of skipped steps. */
Op *pass_loss_skipped(Builder *b) {
    return read(b, ROLE_SKIPPED_STEPS);
}

/* Sets the initial scale. */
void pass_loss_scale_start(Module *m, double scale) {
    Var *v = var_of_role(m, ROLE_LOSS_SCALE);
    if (v) v->init.a = fmin(fmax(exp2(floor(log2(scale))), 1), first_scale);
}

/* By op id: whether the value depends on the scale. New operations, without a number, are skipped.
 */
bool *pass_loss_scaled_ops(Arena *a, const Module *m, const Func *f) {
    bool *scaled = NEWN(a, bool, (size_t)f->n_ops + 1);
    const Var *scale = var_of_role(m, ROLE_LOSS_SCALE);
    for (const Op *op = f->first; scale && op; op = op->next) {
        if (op->id == 0 && op != f->first) continue;
        scaled[op->id] = op->kind == OP_VAR && op->var == scale;
        for (int i = 0; i < op->n_in; i++) scaled[op->id] |= scaled[op->in[i]->id];
    }
    return scaled;
}

bool pass_loss_needs_scale(Arena *a, const Module *m) {
    Func *f = func_of(m, PHASE_TRAIN);
    if (!f || !pass_loss_is_scaled(m, f)) return false;
    func_number(f);
    const bool *scaled = pass_loss_scaled_ops(a, m, f);
    for (const Op *op = f->first; op; op = op->next)
        if (scaled[op->id] && op->type.dt == DT_F16) return true;
    return false;
}

/* Updates the scale and its counters: halved after a step that is not finite, doubled after 2000
 * good ones. due: the steps that update; NULL: each. */
void pass_loss_scale_next(Builder *b, Op *finite, Op *due) {
    Op *zero = num(b, 0), *one = num(b, 1), *s = read(b, ROLE_LOSS_SCALE);
    Op *good = b_binary(b, OP_ADD, read(b, ROLE_GOOD_STEPS), one);
    Op *grows = b_binary(b, OP_LE, num(b, interval), good);
    Op *twice = b_binary(b, OP_MIN, b_binary(b, OP_MUL, s, num(b, 2)), num(b, largest_scale));
    Op *half = b_binary(b, OP_MAX, b_binary(b, OP_MUL, s, num(b, 0.5)), one);
    Op *skipped = b_binary(b, OP_ADD, read(b, ROLE_SKIPPED_STEPS), one);
    Op *next = b_select(b, finite, b_select(b, grows, twice, s), half);
    Op *count = b_select(b, finite, b_select(b, grows, zero, good), zero);
    Op *missed = b_select(b, finite, read(b, ROLE_SKIPPED_STEPS), skipped);
    write(b, ROLE_LOSS_SCALE, due ? b_select(b, due, next, s) : next);
    write(b, ROLE_GOOD_STEPS, due ? b_select(b, due, count, read(b, ROLE_GOOD_STEPS)) : count);
    write(b, ROLE_SKIPPED_STEPS,
          due ? b_select(b, due, missed, read(b, ROLE_SKIPPED_STEPS)) : missed);
}

/* Whether the step keeps values in f16. */
static bool has_f16(const PassCtx *p, const Func *f) {
    if (p->precision == DT_F16 && !pass_is_in_f32(p)) return true;
    for (const Op *op = f->first; op; op = op->next)
        if (op->want == DT_F16 || (op->kind == OP_STORE_AS && op->dtype == DT_F16)) return true;
    return false;
}

/* The variables: whether they are there tells the passes behind that the loss is scaled. */
static bool run(PassCtx *p, Module *m) {
    const Func *f = func_of(m, PHASE_TRAIN);
    const char *why = !f                                ? NULL
                      : p->scale && p->scale->off       ? "no gradient lies in f16"
                      : !has_f16(p, f)                  ? "nothing is kept in f16"
                      : m->recipe.optim == OPTIM_NONE   ? "nothing is updated"
                      : var_of_role(m, ROLE_LOSS_SCALE) ? "it is already"
                                                        : NULL;
    if (why) pass_declined(p, f->span, "loss-scale", "the loss is not scaled: %s", why);
    if (!f || why) return true;
    pass_remark(p, f->span, "loss-scale", "the loss is scaled, by %g at first", first_scale);
    add_scalar_slot(m, ROLE_LOSS_SCALE, "opt.loss_scale", first_scale);
    add_scalar_slot(m, ROLE_GOOD_STEPS, "opt.loss_scale.good", 0);
    add_scalar_slot(m, ROLE_SKIPPED_STEPS, "opt.loss_scale.skipped", 0);
    if (p->scale) p->scale->scaled = true;
    return true;
}

const Pass pass_loss_scale = {
    .name = "loss-scale",
    .summary = "with f16, scale the loss so that gradients neither vanish nor overflow",
    .needs = IR_TYPED,
    .run = run,
};
