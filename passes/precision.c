/* Mixed precision: what is large is kept in 16 bits, everything is computed in f32.
 *
 *     %z = contract %x, %w : f32[N, H]          %x.1 = saved "paper.x bf16" : bf16[N, F]
 *     %m = fused gather src(e) %z               %w.1 = cast %w : bf16[H, F]
 *     %s = segment sum dst(e) %m         ->     %z = contract %x.1, %w.1 : bf16[N, H]
 *     %y = contract %s, %v                      %z.1 = fused cast %z : f32[N, H]
 *                                               %m = fused gather src(e) %z.1
 *                                               %s = fused segment sum dst(e) %m
 *                                               %s.1 = cast %s : bf16[N, H]
 *                                               ..
 *
 * A stored value becomes a `cast` of itself, which its producer's kernel stores and each reader
 * widens as it loads: both casts are fused, so arithmetic and sums stay f32, and half the bytes
 * move.  Matrix products read 16-bit operands as they are and sum in f32; parameters stay f32
 * (master copies), and products get a rounded copy of them.  After fuse, because what is
 * never stored is never rounded.
 *
 * Kept in f32: what is small (a value per row: scores, statistics, sums of a softmax), parameters,
 * their gradients and the optimizer's state, results of functions with a wide range (the table's
 * `range`: exp, log, ..) and what a softmax or loss reads, what leaves the step.
 *
 * The model's own words (`x @bf16`: the operation store_as; `conv @bf16`: Op.want of all that
 * the layer computes) come before the command line's; a value's come before these rules, too.
 *
 * Micikevicius, Narang, Alben, Diamos et al. 2018, "Mixed Precision Training"; for the rules by
 * operation torch.autocast's lists.  There casts stand at operations' borders; here at memory's. */
#include "passes/precision.h"

#include <string.h>

/* ---- rewriting ------------------------------------------------------------------------------ */
/* Inserts an operation behind x. */
static Op *insert_after(Precision *p, Op *x, const Op *proto) {
    Builder b = b_for(p->m, p->f, x->next, x);
    Op *y = b_op(&b, proto);
    y->hint = x->hint;
    return y;
}

/* Inserts a cast of x. */
static Op *cast_after(Precision *p, Op *x, DType dt, bool fused) {
    Op *y = insert_after(p, x, &(Op){.kind = OP_CAST, .n_in = 1, .in = &x, .type = {.dt = dt}});
    y->fused = fused;
    return y;
}

/* Replaces an operand. */
static void replace_operand(const Op *old, Op *with, Op *in) {
    for (int i = 0; i < in->n_in; i++)
        if (in->in[i] == old) in->in[i] = with;
}

/* Makes the readers of a value, which now has 16 bits, read x: products and casts take it as it is,
 * views change their type, others read a cast to f32. */
static void update_readers(Precision *p, const Op *old, Op *x) {
    Op *up = NULL;
    for (int i = 0; i < p->n_users[old->id]; i++) {
        Op *u = p->op[p->user[old->id][i]];
        if (u == x) continue;
        if (prec_is_view(u)) {
            u->type.dt = x->type.dt;
            u->why = x->why;
            replace_operand(old, x, u);
            update_readers(p, u, u);
        } else if ((prec_is_product(u) && !prec_is_f32_product(p, u)) || u->kind == OP_CAST) {
            replace_operand(old, x, u);
        } else {
            if (!up) up = cast_after(p, x, DT_F32, true);
            replace_operand(old, up, u);
        }
    }
}

/* Rounds what a stored view shows. */
static Op *round_viewed(Precision *p, Op *view, DType dt) {
    Op *x = view->in[0];
    Op *y = x->kind == OP_VIEW && x->fused ? round_viewed(p, x, dt) : cast_after(p, x, dt, true);
    if (y != x) view->in[0] = y;
    view->type.dt = dt;
    return view;
}

/* Whether the stored view is the only reader of what it shows. */
static bool is_only_reader(const Precision *p, const Op *view) {
    while (view->kind == OP_VIEW && view->in[0]->fused && view->in[0]->kind == OP_VIEW) {
        view = view->in[0];
        if (p->n_users[view->id] != 1) return false;
    }
    return true;
}

/* Makes a stored value have 16 bits; what is stored then. */
static Op *narrow_value(Precision *p, Op *op, DType dt) {
    if (prec_is_product(op) && prec_product_type(p, op) != dt) return cast_after(p, op, dt, false);
    if (prec_is_product(op)) {
        op->type.dt = dt;
        return op;
    }
    if (op->kind == OP_VIEW) return round_viewed(p, op, dt);
    if (op->kind == OP_CONCAT) { /* each part by a kernel of its own */
        for (int i = 0; i < 2; i++) {
            Builder b = b_for(p->m, p->f, op, op);
            op->in[i] = b_cast(&b, op->in[i], dt);
            op->in[i]->fused = true;
        }
        op->type.dt = dt;
        return op;
    }
    Op *low = cast_after(p, op, dt, false);
    low->again = op->again;
    op->again = false;
    op->fused = true;
    return low;
}

/* Whether the operation is a view that stores a fused value. */
static bool is_stored_view(const Op *op) {
    return op->kind == OP_VIEW && op->type.dt == DT_F32 && !op->fused && op->in[0]->fused;
}

/* Adds the measured range to the reason. */
static void add_range_text(const Precision *p, const Op *op, Op *low) {
    const char *range = p->p->ranges ? pass_range_text(p->p, p->f, op) : NULL;
    if (range) low->why = arena_printf(p->p->a, "%s; %s", low->why, range);
}

/* Narrows a computed value, unless the rules refuse it. */
static void narrow_computed(Precision *p, Op *op) {
    const char *why = prec_refuses(p, op);
    if (!why && is_stored_view(op) && !is_only_reader(p, op)) why = "it is shown in several ways";
    op->why = why;
    if (why) return;
    Op *low = narrow_value(p, op, prec_type_for(p, op));
    low->why = prec_requested(p, op) ? "the model says so"
               : prec_is_product(op) ? "a wide result of a matrix product"
                                     : "wide and stored";
    add_range_text(p, op, low);
    update_readers(p, op, low);
}

/* ---- products ----------------------------------------------------------------------------- */
/* The rounded copies of a value, on its tag: one of each type, for all products that read it. */
typedef struct RoundedCopy {
    Op *op;
    struct RoundedCopy *next;
} RoundedCopy;

/* The copy of x, rounded to the type, for products; one of each type. */
static Op *rounded_copy(Precision *p, Op *x, DType dt) {
    if (x->type.dt == dt) return x;
    for (const RoundedCopy *c = x->tag; c; c = c->next)
        if (c->op->type.dt == dt) return c->op;
    RoundedCopy *c = NEW(p->p->a, RoundedCopy);
    *c = (RoundedCopy){cast_after(p, x, dt, false), x->tag};
    c->op->why = x->kind == OP_VAR ? "a parameter's copy for products" : "an operand of a product";
    x->tag = c;
    return c->op;
}

/* Rounds the operands of a product. */
static void round_operands(Precision *p, Op *op) {
    DType dt = prec_product_type(p, op);
    if (op->type.layout != LAYOUT_DENSE || !prec_is_half(dt)) return;
    for (int i = 0; i < 2; i++) op->in[i] = rounded_copy(p, op->in[i], dt);
}

/* ---- what is loaded -------------------------------------------------------------------------- */
/* Whether the function is @load. */
static bool is_load(const Func *f) {
    return f->phase == PHASE_LOAD;
}

/* The function @load, created if necessary. */
static Func *load_func(Precision *p) {
    Func *load = func_of(p->m, PHASE_LOAD);
    if (load) return load;
    load = func_new_phase(p->m, PHASE_LOAD);
    for (int i = p->m->funcs.n - 1; i > 0; i--) p->m->funcs.v[i] = p->m->funcs.v[i - 1];
    return p->m->funcs.v[0] = load;
}

/* The name of a column that @load saves in 16 bits. */
static const char *saved_column(Precision *p, const Op *data, DType dt) {
    const Column *c = data->col;
    const char *name = arena_printf(p->m->a, "%s.%s %s", c->space->name, c->name, dtype_name(dt));
    Func *load = load_func(p);
    if (func_output(load, name)) return name;
    Builder b = b_for(p->m, load, NULL, data);
    Op *x = b_data(&b, data->col);
    x->hint = data->hint;
    x = b_cast(&b, x, dt);
    x->why = "features, rounded when data are loaded";
    b_output(&b, name, x);
    return name;
}

/* Whether the column holds features: the target stays in f32, since a loss or metric of rounded
 * numbers would be another one. */
static bool may_narrow(const Precision *p, const Op *data) {
    const Column *c = data->col;
    return c->kind == COL_FLOAT && c != module_target(p->m, false);
}

/* Gives a column the type that its readers' layer requests, if all agree. A column is in no layer
 * itself. */
static void take_layer_of_readers(const Precision *p, Op *op) {
    DType want = DT_VOID;
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        if (i > 0 && u->want != want) {
            want = DT_VOID;
            break;
        }
        want = u->want;
    }
    op->want = want;
}

/* The type that suits all readers of a column in this function. */
static DType column_type(Precision *p, Op *op) {
    if (!prec_is_loaded(op) || is_load(p->f) || !may_narrow(p, op)) return op->type.dt;
    take_layer_of_readers(p, op);
    DType dt = prec_type_for(p, op);
    bool asked = prec_is_half(dt) || prec_requested(p, op) || op->want;
    const char *why = asked ? prec_refuses(p, op) : NULL;
    if (why) op->why = why;
    return why ? DT_F32 : dt;
}

/* Whether the sampler draws by the column. */
static bool is_sampling_weight(const Module *m, const Column *c) {
    for (int i = 0; i < m->recipe.sample.weights.n; i++)
        if (m->recipe.sample.weights.v[i] == c) return true;
    return false;
}

/* Whether all functions read the column in the type, and no sampler reads it. */
static bool is_read_as(const Precision *p, const Column *c, DType dt) {
    for (int k = 0; k < p->n_all; k++)
        for (int i = 0; i < p->all[k].n; i++) {
            const Op *op = p->all[k].op[i];
            if (op->kind == OP_DATA && op->col == c && p->all[k].column_type[i] != dt) return false;
        }
    return !is_sampling_weight(p->m, c);
}

/* Reads a column in 16 bits. If nobody reads it in f32, the runtime gives it so: as it lies in the
 * file, or rounded once; neither memory nor a device then holds it twice. Else a rounded copy is
 * saved by @load; batches have none. */
static void narrow_data(Precision *p, Op *op) {
    DType dt = p->column_type[op->id];
    Type t = op->type;
    Op *low = op;
    if (!prec_is_half(dt) || prec_is_half(t.dt)) return;
    t.dt = dt;
    if (is_read_as(p, op->col, dt)) {
        op->type = t;
    } else if (p->sampled || space_is_drawn(op->type.dim[0])) {
        op->why = "something reads it in f32, and batches have no second copy";
        return;
    } else {
        low = insert_after(p, op,
                           &(Op){.kind = OP_SAVED, .name = saved_column(p, op, dt), .type = t});
    }
    low->why =
        prec_requested(p, op) ? "the model says so" : "features, rounded when data are loaded";
    add_range_text(p, op, low);
    update_readers(p, op, low);
}

/* Whether a phase needs what is saved as `name` in f32. */
static bool saved_needs_f32(const Precision *p, const char *name) {
    for (int k = 0; k < p->n_all; k++) {
        const Precision *q = &p->all[k];
        for (int i = 0; i < q->n; i++) {
            const Op *op = q->op[i];
            if (op->kind != OP_SAVED || strcmp(op->name, name)) continue;
            if (prec_requested(q, op) == DT_F32 || prec_reader_refuses(q, op)) return true;
        }
    }
    return false;
}

/* Whether a phase reads what is saved as `name`. */
static bool is_saved_read(const Precision *p, const char *name) {
    for (int i = 0; i < p->m->funcs.n; i++)
        for (const Op *op = p->m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_SAVED && !strcmp(op->name, name)) return true;
    return false;
}

/* Narrows what @load and @encode save for other phases. */
static void narrow_saved(Precision *p, Op *out) {
    Op *x = out->in[0];
    bool fits = x->type.dt == DT_F32 && prec_is_wide(p, &x->type) && !op_has(x, OPT_RANGE);
    fits = fits && prec_is_half(prec_type_for(p, x));
    if (!fits || !is_saved_read(p, out->name)) return;
    const char *why = saved_needs_f32(p, out->name) ? "a phase reads it in f32"
                      : p->p->ranges                ? pass_range_refuses_saved(p->p, out->name)
                                                    : NULL;
    if (why) x->why = why;
    if (why) return;
    bool only_use = prec_is_computed(x) && p->n_users[x->id] == 1;
    Op *low = cast_after(p, x, prec_type_for(p, x), false);
    x->fused = x->fused || (only_use && !prec_is_product(x) && !prec_sums_in_row(p, x));
    low->why = "wide and saved for the steps";
    out->in[0] = low;
}

/* Gives a `saved` the type that its value was narrowed to. */
static void narrow_saved_reader(Precision *p, Op *op) {
    const Op *out = module_saved(p->m, op->name);
    if (!out) return;
    op->why = out->in[0]->why;
    if (!prec_is_half(out->in[0]->type.dt)) return;
    op->type.dt = out->in[0]->type.dt;
    update_readers(p, op, op);
}

/* ---- the pass -------- */
/* Lists the users of each value. */
static void link_users(Precision *p) {
    int *count = func_use_counts(p->p->a, p->f), n = 0;
    p->n = p->f->n_ops;
    size_t size = (size_t)p->n + 1;
    p->user = NEWN(p->p->a, int *, size);
    p->n_users = NEWN(p->p->a, int, size);
    p->op = NEWN(p->p->a, Op *, size);
    p->marks = NEW(p->p->a, IrMarks);
    *p->marks = ir_marks_new(p->p->a, p->n);
    p->fact = NEWN(p->p->a, unsigned char, size);
    p->requested = NEWN(p->p->a, DType, size);
    p->range_reason = NEWN(p->p->a, const char *, size);
    p->column_type = NEWN(p->p->a, DType, size);
    p->product = NEWN(p->p->a, DType, size);
    for (Op *op = p->f->first; op; op = op->next) p->op[n++] = op;
    for (int i = 0; i < n; i++) p->user[i] = NEWN(p->p->a, int, (size_t)count[i] + 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p->op[i]->n_in; k++) {
            int x = p->op[i]->in[k]->id;
            p->user[x][p->n_users[x]++] = i;
        }
}

/* Takes the model's requests (`store_as`) as requests for the value in memory, and removes these
 * operations. */
static void take_requests(Precision *p) {
    VEC(Op *) value = {0};
    VEC(DType) wish = {0};
    func_keep_users(p->p->a, p->f);
    for (Op *op = p->f->first, *next; op; op = next) {
        next = op->next;
        if (op->kind != OP_STORE_AS) continue;
        Op *x = op->in[0];
        if (!op->fused) x->fused = false;
        if (!x->hint) x->hint = op->hint;
        vec_push(p->p->a, &value, x);
        vec_push(p->p->a, &wish, op->dtype);
        op_replace_uses(p->f, op, x);
        op_remove(op);
    }
    func_drop_users(p->f);
    link_users(p);
    prec_find_facts(p);
    for (int i = 0; i < value.n; i++) {
        Op *x = value.v[i];
        while (prec_is_view(x) && !x->in[0]->fused) x = x->in[0];
        p->requested[x->id] = wish.v[i];
    }
}

/* ---- ranges -------- */
typedef VEC(Op *) Ops;

/* Whether the rules would round the value, the model saying nothing. */
static bool is_rounded(Precision *p, Op *op) {
    if (op->type.dt != DT_F32 || prec_requested(p, op) || op->want) return false;
    if (op->kind == OP_SAVED) return prec_is_wide(p, &op->type) && !prec_reader_refuses(p, op);
    if (op->kind == OP_DATA) return prec_is_loaded(op) && may_narrow(p, op) && !prec_refuses(p, op);
    return (prec_is_computed(op) || is_stored_view(op)) && !prec_refuses(p, op);
}

/* Adds a value in memory to a list, once. */
static void add_value(Precision *p, Ops *to, Op *x) {
    while (prec_is_view(x) && !x->in[0]->fused) x = x->in[0];
    if (x->type.dt != DT_F32 || prec_requested(p, x) || x->want) return;
    for (int i = 0; i < to->n; i++)
        if (to->v[i] == x) return;
    vec_push(p->p->a, to, x);
}

/* All values of f that would be rounded: values in memory, and operands of products. */
static Ops rounded_values(Precision *p) {
    Ops all = {0};
    for (int i = 0; i < p->n; i++)
        if (is_rounded(p, p->op[i])) add_value(p, &all, p->op[i]);
    for (int i = 0; i < p->n; i++) {
        Op *op = p->op[i];
        if (!prec_is_product(op) || op->type.layout != LAYOUT_DENSE ||
            !prec_is_half(prec_product_type(p, op)))
            continue;
        for (int k = 0; k < 2; k++) add_value(p, &all, op->in[k]);
    }
    return all;
}

/* Requests f32 for values whose measured range 16 bits do not hold. */
static void take_ranges(Precision *p) {
    Ops all = rounded_values(p);
    for (int i = 0; i < all.n; i++) {
        const char *why = pass_range_refuses(p->p, p->f, all.v[i]);
        if (!why) continue;
        p->requested[all.v[i]->id] = DT_F32;
        p->range_reason[all.v[i]->id] = all.v[i]->why = why;
    }
}

/* Finds what is known of f before anything is rounded. */
static void analyse_func(Precision *p, Func *f) {
    p->f = f;
    take_requests(p);
    prec_find_products(p);
    if (p->p->ranges && p->p->ranges->measured) {
        take_ranges(p);
        prec_find_products(p);
    }
    for (int i = 0; i < p->n; i++)
        if (p->op[i]->kind == OP_DATA) p->column_type[i] = column_type(p, p->op[i]);
}

/* Adds outputs that measure the ranges of the values. */
static void add_measurements(Precision *p) {
    Ops all = rounded_values(p);
    if (!is_load(p->f)) pass_ranges_add(p->p, p->m, p->f, all.n, all.v);
}

/* Adds the remarks about a function. */
static void report_types(const Precision *p) {
    int n = 0;
    for (const Op *op = p->f->first; op; op = op->next)
        n += prec_is_half(op->type.dt) && !op->fused;
    if (!n && !prec_is_half(p->default_type)) return;
    pass_remark(p->p, p->f->span, "precision", "@%s: %d values in memory have 16 bits", p->f->name,
                n);
    for (const Op *op = p->f->first; op; op = op->next)
        if (op->why && op->type.dt == DT_F32 && !op->fused && prec_is_wide(p, &op->type))
            pass_refusal(p->p, op->span, "precision", "'%s' of @%s stays f32: %s", pass_named(op),
                         p->f->name, op->why);
}

/* Narrows the values of a function. New operations have no number and are not looked at. */
static void narrow_func(Precision *p) {
    for (int i = 0; i < p->n; i++) {
        Op *op = p->op[i];
        if (op->kind == OP_SAVED && op->type.dt == DT_F32)
            narrow_saved_reader(p, op);
        else if (op->kind == OP_DATA)
            narrow_data(p, op);
        else if (op->kind == OP_OUTPUT && phase_saves(p->f->phase))
            narrow_saved(p, op);
        else if (prec_is_computed(op) || is_stored_view(op))
            narrow_computed(p, op);
        else if (op->kind == OP_CAST)
            op->why = prec_is_next(p, op);
    }
    for (int i = 0; i < p->n; i++)
        if (prec_is_product(p->op[i])) round_operands(p, p->op[i]);
    if (p->p->remarks) report_types(p);
    pass_dce_func(p->p->a, p->f);
}

/* Whether any value in memory is wide. */
static bool has_wide(PassCtx *c, const Module *m) {
    const Precision p = {.p = c};
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->type.dt == DT_F32 && !op->fused && prec_is_wide(&p, &op->type)) return true;
    return false;
}

/* The type of large values that the model says nothing of.  What lies in caches in f32 is not read
 * faster in 16 bits, but widened and rounded all the same: the program has a variant without for
 * small data. */
static DType general_type(PassCtx *c, const Module *m) {
    DType dt = c->precision ? c->precision : DT_F32;
    int most = pass_threshold(c->ctx, PASS_T_PRECISION_SMALL);
    if (!prec_is_half(dt) || !most || !has_wide(c, m)) return dt;
    const char *low = arena_printf(c->a, "keeps large values in %s", dtype_name(dt));
    const char *f32 = arena_printf(c->a, "keeps values in f32, as %s pays from %d MiB of them on",
                                   dtype_name(dt), most);
    return pass_chooses_f32(c, low, f32) ? DT_F32 : dt;
}

/* @load comes first, then @encode: others follow what they save. */
static bool run(PassCtx *c, Module *m) {
    DType general = general_type(c, m);
    int n = m->funcs.n; /* and @load, if columns need one */
    Precision *all = NEWN(c->a, Precision, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        Func *f = m->funcs.v[i];
        bool in_loop = f->body && c->ranges; /* iterations of a loop have no ranges */
        all[i] = (Precision){.p = c,
                             .m = m,
                             .all = all,
                             .n_all = n,
                             .default_type = in_loop ? DT_F32 : general,
                             .sampled = module_runs_on_batches(m, f->phase)};
        analyse_func(&all[i], f);
    }
    bool measures = c->ranges && !c->ranges->measured;
    for (int first = 1; first >= 0; first--)
        for (int i = 0; i < n; i++) {
            if (phase_saves(all[i].f->phase) != first) continue;
            if (measures)
                add_measurements(&all[i]);
            else
                narrow_func(&all[i]);
        }
    if (!measures && c->ranges) pass_loss_scale_start(m, pass_range_scale(c));
    if (c->scale && !measures) c->scale->needed |= pass_loss_needs_scale(c->a, m);
    return true;
}

const Pass pass_precision = {
    .name = "precision",
    .summary = "keep large values in 16 bits where that is asked for",
    .needs = IR_TYPED | IR_NO_CSR,
    .run = run,
    .required = true,
};
