/* One launch for elementwise kernels of different sizes: the updates of all parameters, the last
 * sums of all split reductions.
 *
 *     kernel w { for i in 64*F parallel { .. } }           kernel w_x2 {
 *     kernel b { for j in 64   parallel { .. } }     =>      for i in 64*F parallel { .. }
 *                                                            for j in 64   parallel { .. }
 *                                                          }                over 64*F + 64
 *
 * The parallel loops lie one behind the other in one index range, which threads or a grid share: a
 * "multi-tensor" kernel (NVIDIA Apex), or horizontal fusion (Li et al., HFuse, CGO 2022), for any
 * elementwise work.  A launch costs about a microsecond, as much as the update of a small
 * parameter, and the work of the large ones is shared better; nothing else changes.
 *
 * Elementwise steps that stand next to each other (plan_delay.c brings them there) are put in the
 * order of their distance from the last one, and joined where none reads or writes what another one
 * writes.  One that does so at its own elements only (a parameter's update and the last sum of its
 * gradient) goes on in the other one's loop, so that the thread that wrote an element reads it.
 *
 * Sums over rows are made in parts, a few thousand rows each (lower_long.c).  Those over the same
 * number of parts share one loop over them, the bodies one after the other. */
#include <limits.h>
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* ---- one loop of two --------------------------------------------------------------------- */
/* Whether two arguments have the same type and dimensions. */
static bool same_dims(const LBuf *x, const LBuf *y) {
    bool same = x->rank == y->rank && x->dt == y->dt && x->kind == y->kind;
    for (int i = 0; i < x->rank && same; i++) same = expr_eq(x->dim[i], y->dim[i]);
    return same;
}

/* Whether the extent is 1. */
static bool is_unit(const Expr *e) {
    int64_t n;
    return expr_is_const(e, &n) && n == 1;
}

/* Whether the statements up to `end` access b. */
static bool accesses(const LStmt *s, const LBuf *b, const LStmt *end) {
    for (; s && s != end; s = s->next)
        if (s->buf == b || accesses(s->body, b, NULL)) return true;
    return false;
}

/* Whether the statements access b only at element `at`. */
static bool is_only_at(const LStmt *s, const LBuf *b, const LReg *at) {
    for (; s; s = s->next) {
        if (s->buf == b && b->rank && (b->rank > 1 || s->idx[0] != at)) return false;
        if (!is_only_at(s->body, b, at)) return false;
    }
    return true;
}

/* Whether the step accesses b only at the element of its iteration. */
static bool is_at_own_element(const PStep *s, const LBuf *b) {
    const LStmt *loop = plan_is_scalar(s) ? NULL : plan_first_loop(s->kernel);
    if (!loop) return b->rank == 0;
    if (b->rank == 0 && !is_unit(loop->extent)) return false;
    return !accesses(s->kernel->body, b, loop) && is_only_at(loop->body, b, loop->var);
}

/* Whether two kernels have the same number of iterations. */
static bool same_extent(const PStep *x, const PStep *y) {
    const LStmt *l = plan_is_scalar(x) ? NULL : plan_first_loop(x->kernel);
    const LStmt *m = plan_is_scalar(y) ? NULL : plan_first_loop(y->kernel);
    if (l && m) return expr_eq(l->extent, m->extent);
    return (!l || is_unit(l->extent)) && (!m || is_unit(m->extent));
}

/* Whether y can be computed after x in the body of one loop: they access common written buffers
 * only at the element of their own iteration. */
static bool may_follow(const PStep *x, const PStep *y) {
    if (!plan_is_elementwise(x) || !plan_is_elementwise(y) || !same_extent(x, y)) return false;
    for (int i = 0; i < x->n_bufs; i++)
        for (int k = 0; k < y->n_bufs; k++) {
            const LBuf *b = x->kernel->bufs.v[i], *c = y->kernel->bufs.v[k];
            if (x->bufs[i] != y->bufs[k] || (!b->written && !c->written)) continue;
            if (!same_dims(b, c) || !is_at_own_element(x, b) || !is_at_own_element(y, c))
                return false;
        }
    return true;
}

/* The step among s[0 .. n) in whose loop s[n] can be computed (host_kernel[i]: that of step i); n =
 * it gets a loop of its own; -1 = it can be in none, since it conflicts with several. */
static int choose_loop(PStep *const *s, const int *host_kernel, int n) {
    int chosen = n;
    for (int i = 0; i < n; i++) {
        if (!plan_steps_conflict(s[i], s[n])) continue;
        if ((chosen < n && chosen != host_kernel[i]) || !may_follow(s[i], s[n])) return -1;
        chosen = host_kernel[i];
    }
    return chosen;
}

/* ---- one kernel of two ------------------------------------------------------------------- */
typedef struct {
    Arena *a;
    LKernel *joined; /* being made */
    VEC(int) buf;
    VEC(int) writer; /* by argument: the first of the kernels that writes it; NO_WRITER: none */
    LBuf **mapped;   /* arguments of the kernel that is added, here */
} Join;

enum { NO_WRITER = INT_MAX };

/* Whether an argument or local of the new kernel has this name. */
static bool is_taken(const Join *j, const char *name) {
    for (int i = 0; i < j->joined->bufs.n; i++)
        if (!strcmp(j->joined->bufs.v[i]->name, name)) return true;
    for (int i = 0; i < j->joined->locals.n; i++)
        if (!strcmp(j->joined->locals.v[i]->name, name)) return true;
    return false;
}

/* A name that is not taken. */
static const char *free_name(const Join *j, const char *want) {
    const char *name = want;
    for (int n = 2; is_taken(j, name); n++) name = arena_printf(j->a, "%s_%d", want, n);
    return name;
}

/* Makes argument number `to` of the joined kernel also stand for b, an argument of kernel number n.
 * What the buffer held before the first kernel that writes it becomes the argument's old value. */
static void merge_argument(Join *j, int to, const LBuf *b, int n) {
    LBuf *have = j->joined->bufs.v[to];
    if (!b->written) return;
    if (!have->written) {
        have->value_before = have->value;
        j->writer.v[to] = n;
    }
    have->value = b->value;
    have->written = true;
}

/* The joined kernel's argument for b, an argument of kernel number n that is bound to buffer `buf`;
 * added if it is new. */
static LBuf *map_argument(Join *j, LBuf *b, int buf, int n) {
    for (int i = 0; i < j->joined->bufs.n; i++)
        if (j->buf.v[i] == buf && same_dims(j->joined->bufs.v[i], b)) {
            merge_argument(j, i, b, n);
            return j->joined->bufs.v[i];
        }
    b->name = free_name(j, b->name);
    vec_push(j->a, &j->joined->bufs, b);
    vec_push(j->a, &j->buf, buf);
    vec_push(j->a, &j->writer, b->written ? n : NO_WRITER);
    return b;
}

/* Makes the statements use the joined kernel's arguments. */
static void replace_arguments(Join *j, LStmt *s) {
    for (; s; s = s->next) {
        if (s->buf && s->buf->kind != LB_LOCAL) s->buf = j->mapped[s->buf->id];
        replace_arguments(j, s->body);
    }
}

/* Marks the loads of kernel number n that must read a buffer's old value: only a later kernel
 * writes it. */
static void mark_old_loads(const Join *j, LStmt *s, int n) {
    for (; s; s = s->next) {
        if (s->kind == L_LOAD && s->buf->kind != LB_LOCAL) {
            int writer = j->writer.v[s->buf->id];
            if (writer != n) s->before_write = writer != NO_WRITER && writer > n;
        }
        mark_old_loads(j, s->body, n);
    }
}

/* Adds the arguments and locals of a kernel. */
static void add_kernel(Join *j, const PStep *s, int n) {
    LKernel *k = s->kernel;
    j->mapped = NEWN(j->a, LBuf *, (size_t)k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) j->mapped[i] = map_argument(j, k->bufs.v[i], s->bufs[i], n);
    replace_arguments(j, k->body);
    for (int i = 0; i < k->locals.n; i++) {
        k->locals.v[i]->id = j->joined->locals.n;
        k->locals.v[i]->name = free_name(j, k->locals.v[i]->name);
        vec_push(j->a, &j->joined->locals, k->locals.v[i]);
    }
    for (int i = 0; i < k->computes.n; i++) vec_push(j->a, &j->joined->computes, k->computes.v[i]);
}

typedef struct {
    LStmt *head, **tail;
} List;

/* Appends a statement. */
static void append(List *l, LStmt *s) {
    s->next = NULL;
    *l->tail = s;
    l->tail = &s->next;
}

/* A loop of one iteration with all statements of a scalar kernel: another thread must not read what
 * this one writes. */
static LStmt *scalar_loop(Join *j, const PStep *step) {
    LStmt *loop = NEW(j->a, LStmt);
    *loop = (LStmt){.kind = L_FOR, .span = step->span, .body = step->kernel->body};
    loop->extent = expr_const(j->a, 1);
    loop->sched.parallel = true;
    loop->var = NEW(j->a, LReg);
    *loop->var = (LReg){.dt = DT_I64, .hint = "one", .def = loop};
    return loop;
}

/* Moves the values that a kernel computes before its loop to the scalars common to all; returns the
 * loop. */
static LStmt *move_scalars(Join *j, const PStep *step, List *scalars) {
    if (plan_is_scalar(step)) return scalar_loop(j, step);
    LStmt *s = step->kernel->body;
    for (LStmt *next; loop_is_value(s); s = next) {
        next = s->next;
        append(scalars, s);
    }
    return s;
}

/* Replaces a loop variable in the statements. */
static void replace_variable(LStmt *s, const LReg *was, LReg *is) {
    for (; s; s = s->next) {
        LReg **r[] = {&s->at, &s->cond, &s->src};
        for (size_t i = 0; i < sizeof r / sizeof *r; i++)
            if (*r[i] == was) *r[i] = is;
        for (int i = 0; i < s->n_arg; i++)
            if (s->arg[i] == was) s->arg[i] = is;
        for (int i = 0; s->buf && i < s->buf->rank; i++)
            if (s->idx[i] == was) s->idx[i] = is;
        replace_variable(s->body, was, is);
    }
}

/* Appends the body of loop `more` to that of another loop with the same range. */
static void append_body(LStmt *loop, LStmt *more) {
    LStmt **end = &loop->body;
    replace_variable(more->body, more->var, loop->var);
    while (*end) end = &(*end)->next;
    *end = more->body;
}

/* Makes one kernel of n: the scalars of all, then their loops. host_kernel[i]: the kernel whose
 * loop has the body of kernel i. */
static LKernel *join_kernels(Join *j, PStep *const *s, const int *host_kernel, int n) {
    LStmt **loop = NEWN(j->a, LStmt *, (size_t)n);
    List scalars = {.tail = &scalars.head}, loops = {.tail = &loops.head};
    const LKernel *first = s[0]->kernel;
    j->joined = NEW(j->a, LKernel);
    j->joined->name = arena_printf(j->a, "%s_x%d", first->name, n);
    j->joined->span = first->span;
    for (int i = 0; i < n; i++) add_kernel(j, s[i], i);
    for (int i = 0; i < j->joined->bufs.n; i++) j->joined->bufs.v[i]->id = i;
    for (int i = 0; i < n; i++) mark_old_loads(j, s[i]->kernel->body, i);
    for (int i = 0; i < n; i++) loop[i] = move_scalars(j, s[i], &scalars);
    for (int i = 0; i < n; i++) {
        if (host_kernel[i] == i)
            append(&loops, loop[i]);
        else
            append_body(loop[host_kernel[i]], loop[i]);
    }
    *scalars.tail = loops.head;
    j->joined->body = scalars.head;
    loop_number_registers(j->joined->body, &j->joined->n_regs);
    return j->joined;
}

/* ---- the phase's steps ---------------------------------------------------------------------- */
/* Replaces the n joined kernels by one in the plan's list of kernels. */
static void replace_kernels(Plan *p, PStep *const *s, int n, LKernel *by) {
    int to = 0;
    for (int i = 0; i < p->kernels.n; i++) {
        LKernel *k = p->kernels.v[i];
        bool gone = false;
        for (int m = 1; m < n; m++) gone |= k == s[m]->kernel;
        if (!gone) p->kernels.v[to++] = k == s[0]->kernel ? by : k;
    }
    p->kernels.n = to;
}

/* Makes one step, with one kernel, of n steps. */
static PStep *join_steps(PassCtx *pc, Plan *p, PStep *const *s, const int *host_kernel, int n) {
    Join j = {.a = pc->a};
    PStep *one = NEW(pc->a, PStep);
    *one = *s[0];
    LKernel *k = join_kernels(&j, s, host_kernel, n);
    replace_kernels(p, s, n, k);
    one->kernel = k;
    one->note = arena_printf(pc->a, "%s; and %d more", s[0]->note, n - 1);
    one->bufs = j.buf.v;
    one->n_bufs = j.buf.n;
    one->extent = expr_const(pc->a, 0);
    for (const LStmt *l = plan_first_loop(k); l; l = l->next)
        one->extent = expr_add(pc->a, one->extent, l->extent);
    pass_remark(pc, one->span, "join-kernels", "'%s' are one launch", one->note);
    return one;
}

/* Whether two steps are of kinds that one kernel can join: elementwise kernels, or sums over the
 * same number of chunks. */
static bool are_joinable_kinds(const PStep *x, const PStep *y) {
    return (plan_is_elementwise(x) && plan_is_elementwise(y)) || plan_same_chunks(x, y);
}

/* The step of s[0 .. n) that s[n] conflicts with. */
static const PStep *conflicting_step(PStep *const *s, int n) {
    int i = n - 1;
    while (i > 0 && !plan_steps_conflict(s[i], s[n])) i--;
    return s[i];
}

/* How many steps from s[0] on can be joined, and in whose loops; *why: why the next one cannot,
 * NULL if it is of another kind. */
static int count_joinable(const PassCtx *pc, PStep *const *s, int *host_kernel, int n,
                          const char **why) {
    bool is_chunked = plan_chunk_loop(s[0]) != NULL;
    int bufs = s[0]->n_bufs, count = 1, max_bufs = pass_threshold(pc->ctx, PASS_T_JOIN_BUFS);
    host_kernel[0] = 0;
    *why = NULL;
    for (; count < n && are_joinable_kinds(s[0], s[count]); count++) {
        bufs += s[count]->n_bufs;
        if (bufs > max_bufs)
            *why = arena_printf(pc->a, "together they have more than %d buffers", max_bufs);
        if (bufs > max_bufs) break;
        host_kernel[count] = choose_loop(s, host_kernel, count);
        if (is_chunked && host_kernel[count] == count)
            host_kernel[count] = 0;
        else if (host_kernel[count] < 0 || is_chunked) {
            *why = arena_printf(pc->a, "it needs all that '%s' makes, or the other way round",
                                conflicting_step(s, count)->note);
            break;
        }
    }
    return count;
}

/* Updates the positions by which a loop step and its end refer to each other. Until its end comes,
 * a loop step holds the position of the open loop around it. */
static void match_loop(PPhase *ph, int at, int *open) {
    PStep *s = ph->steps.v[at];
    if (s->kind == PS_LOOP) {
        s->other = *open;
        *open = at;
    } else if (s->kind == PS_END) {
        PStep *begin = ph->steps.v[*open];
        s->other = *open;
        *open = begin->other;
        begin->other = at;
    }
}

/* How many steps from position `at` on come before the next loop over blocks of rows; 0 if `at` is
 * in one. */
static int steps_to_block(const PPhase *ph, const PBlocks *next, int at) {
    return next ? (at < next->first ? next->first - at : 0) : ph->steps.n - at;
}

/* The largest dependence depth (plus one) of the steps that touch a buffer; 0 = none do. Operands
 * of one concatenation do not conflict, so the largest depth of steps for other ops is kept, too.
 */
typedef struct {
    int max, other;
    const Op *op; /* of `max` */
} FarDistance;

/* Records the dependence depth of a step for op. */
static void record_depth(FarDistance *f, int distance, const Op *op) {
    if (distance > f->max) {
        if (f->op != op) f->other = f->max;
        f->max = distance;
        f->op = op;
    } else if (distance > f->other && op != f->op) {
        f->other = distance;
    }
}

/* The largest recorded depth of a step that conflicts with s. */
static int depth_for(const FarDistance *f, const PStep *s) {
    return s->op == f->op && s->op->kind == OP_CONCAT ? f->other : f->max;
}

/* By buffer: of all steps that touch it, and of those that write there. */
typedef struct {
    FarDistance *all, *writing;
} Distances;

/* The dependence depth of step s: how many of the recorded (later) steps must come after it one
 * after the other. */
static int dependence_depth(const Distances *distances, const PStep *s) {
    int most = 0;
    for (int k = 0; k < s->n_bufs; k++) {
        const FarDistance *f = s->kernel->bufs.v[k]->written ? distances->all : distances->writing;
        int distance = depth_for(&f[s->bufs[k]], s);
        if (distance > most) most = distance;
    }
    return most;
}

/* Records, for each buffer that step s accesses, the step's dependence depth. */
static void record_step_depth(const Distances *distances, const PStep *s, int distance) {
    for (int k = 0; k < s->n_bufs; k++) {
        record_depth(&distances->all[s->bufs[k]], distance + 1, s->op);
        if (s->kernel->bufs.v[k]->written)
            record_depth(&distances->writing[s->bufs[k]], distance + 1, s->op);
    }
}

/* Clears the depths that n steps have recorded. */
static void clear_depths(const Distances *distances, PStep *const *s, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i]->n_bufs; k++)
            distances->all[s[i]->bufs[k]] = distances->writing[s[i]->bufs[k]] = (FarDistance){0};
}

/* Sorts n elementwise steps by dependence depth, deepest first: steps of equal depth do not
 * conflict, so they become neighbours that can be joined. */
static void sort_by_depth(Arena *a, const Distances *distances, PStep **s, int n) {
    int *distance = NEWN(a, int, (size_t)n + 1), *at = NEWN(a, int, (size_t)n + 1);
    PStep **old = NEWN(a, PStep *, (size_t)n + 1);
    for (int i = n - 1; i >= 0; i--) {
        distance[i] = dependence_depth(distances, s[i]);
        record_step_depth(distances, s[i], distance[i]);
        at[distance[i]]++;
        old[i] = s[i];
    }
    clear_depths(distances, s, n);
    for (int i = n - 1, first = 0; i >= 0; i--) { /* the first place of those so far */
        int many = at[i];
        at[i] = first;
        first += many;
    }
    for (int i = 0; i < n; i++) s[at[distance[i]]++] = old[i];
}

/* Joins kernels of a phase that stand outside of loops over blocks: sorts runs of elementwise
 * steps, then joins neighbours. */
static void join_phase(PassCtx *pc, Plan *p, PPhase *ph) {
    int n_kept = 0, open = -1, block = 0, *host_kernel = NEWN(pc->a, int, (size_t)ph->steps.n + 1);
    size_t n_bufs = (size_t)p->bufs.n + 1;
    const Distances distances = {NEWN(pc->a, FarDistance, n_bufs),
                                 NEWN(pc->a, FarDistance, n_bufs)};
    for (int i = 0, n; i < ph->steps.n;) {
        PBlocks *b = block < ph->blocks.n ? &ph->blocks.v[block] : NULL;
        int max_steps = steps_to_block(ph, b, i);
        for (n = 0; n < max_steps && plan_is_elementwise(ph->steps.v[i + n]);) n++;
        sort_by_depth(pc->a, &distances, &ph->steps.v[i], n);
        for (; n < max_steps && plan_same_chunks(ph->steps.v[i], ph->steps.v[i + n]);) n++;
        for (int end = i + (n ? n : 1); i < end; i += n, n_kept++) {
            PStep **s = &ph->steps.v[i];
            const char *why = NULL;
            n = max_steps ? count_joinable(pc, s, host_kernel, end - i, &why) : 1;
            if (why)
                pass_refusal(pc, s[n]->span, "join-kernels",
                             "'%s' (%s) is not one launch with '%s': %s", s[n]->note,
                             s[n]->kernel->name, s[0]->note, why);
            if (n > 1 && !pass_may_rewrite(pc)) n = 1;
            ph->steps.v[n_kept] = n > 1 ? join_steps(pc, p, s, host_kernel, n) : s[0];
            match_loop(ph, n_kept, &open);
        }
        if (b && i == b->last + 1) {
            b->first -= i - n_kept;
            b->last = n_kept - 1;
            block++;
        }
    }
    ph->steps.n = n_kept;
}

static bool run_join(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) join_phase(pc, p, p->phases.v[i]);
    return true;
}

const Pass plan_pass_join_kernels = {
    .name = "join-kernels",
    .summary = "make one launch of elementwise kernels, and of sums over the same parts",
    .needs = PLAN_STEPS,
    .gives = PLAN_JOINED,
    .breaks = PLAN_LIVES,
    .bars = PLAN_GROUPS | PLAN_OVERLAPPED | PLAN_STREAMS,
    .run_plan = run_join,
};
