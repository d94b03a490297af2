/* One launch for neighbouring elementwise kernels of different sizes: the updates of all
 * parameters.
 *
 *     kernel w { for i in 64*F parallel { .. } }           kernel w_x2 {
 *     kernel b { for j in 64   parallel { .. } }     =>      for i in 64*F parallel { .. }
 *                                                            for j in 64   parallel { .. }
 *                                                          }                over 64*F + 64
 *
 * The parallel loops lie one behind the other in one index range, which threads or a grid share: a
 * "multi-tensor" kernel (NVIDIA Apex), or horizontal fusion (Li et al., HFuse, CGO 2022), for any
 * elementwise work.  A launch costs about a microsecond, as much as the update of a small
 * parameter, and the work of the large ones is shared better; nothing else changes.  Joined are
 * steps next to each other of which none reads or writes what another one writes. */
#include "codegen/lower.h"

#include <string.h>

/* Pointers are a kernel's parameters; a device takes 4 KiB of them. */
enum { BUFS_MAX = 256 };

static bool is_pure(const LStmt *s) {
    return s->kind == L_LET || s->kind == L_LOAD;
}

static const LStmt *first_loop(const LKernel *k) {
    const LStmt *s = k->body;
    while (s && is_pure(s)) s = s->next;
    return s;
}

/* Scalars, then parallel loops over elements. */
static bool is_elementwise(const PStep *s) {
    if (s->kind != PS_KERNEL || s->pred >= 0) return false;
    const LStmt *l = first_loop(s->kernel);
    for (const LStmt *p = l; p; p = p->next)
        if (p->kind != L_FOR || !p->sched.parallel || !p->sched.vector || p->sched.balanced)
            return false;
    return l && s->kernel->locals.n == 0;
}

static bool writes(const PStep *s, int buf) {
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == buf && s->kernel->bufs.v[i]->written) return true;
    return false;
}

static bool meet(const PStep *x, const PStep *y) {
    for (int i = 0; i < x->n_bufs; i++)
        for (int k = 0; k < y->n_bufs; k++)
            if (x->bufs[i] == y->bufs[k] && (writes(x, x->bufs[i]) || writes(y, x->bufs[i])))
                return true;
    return false;
}

/* ---- one kernel of two ------------------------------------------------------------------- */
typedef struct {
    Arena *a;
    LKernel *k; /* being made */
    VEC(int) buf;
    LBuf **as; /* arguments of the kernel that is added, here */
} Join;

static bool same_dims(const LBuf *x, const LBuf *y) {
    bool same = x->rank == y->rank && x->dt == y->dt && x->kind == y->kind;
    for (int i = 0; i < x->rank && same; i++) same = expr_eq(x->dim[i], y->dim[i]);
    return same;
}

static const char *free_name(const Join *j, const char *want) {
    const char *name = want;
    for (int i = 0, n = 2; i < j->k->bufs.n; i++)
        if (!strcmp(j->k->bufs.v[i]->name, name)) {
            name = arena_printf(j->a, "%s_%d", want, n++);
            i = -1;
        }
    return name;
}

static LBuf *argument(Join *j, LBuf *b, int buf) {
    for (int i = 0; i < j->k->bufs.n; i++)
        if (j->buf.v[i] == buf && same_dims(j->k->bufs.v[i], b)) return j->k->bufs.v[i];
    b->name = free_name(j, b->name);
    vec_push(j->a, &j->k->bufs, b);
    vec_push(j->a, &j->buf, buf);
    return b;
}

/* The statements' registers and arguments as the joined kernel numbers them. */
static void renumber(Join *j, LStmt *s) {
    for (; s; s = s->next) {
        LReg *defined = s->kind == L_FOR ? s->var : s->dst;
        if (defined) defined->id = j->k->n_regs++;
        if (s->buf) s->buf = j->as[s->buf->id];
        renumber(j, s->body);
    }
}

static void add_kernel(Join *j, const PStep *s) {
    LKernel *k = s->kernel;
    j->as = NEWN(j->a, LBuf *, (size_t)k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) j->as[i] = argument(j, k->bufs.v[i], s->bufs[i]);
    renumber(j, k->body);
    for (int i = 0; i < k->computes.n; i++) vec_push(j->a, &j->k->computes, k->computes.v[i]);
}

/* The scalars of all, then the loops of all. */
static void add_body(LStmt *s, LStmt ***scalars, LStmt ***loops) {
    for (LStmt *next; s; s = next) {
        LStmt ***tail = is_pure(s) ? scalars : loops;
        next = s->next;
        s->next = NULL;
        **tail = s;
        *tail = &s->next;
    }
}

static LKernel *join_kernels(Join *j, PStep *const *s, int n) {
    LStmt *scalars = NULL, *loops = NULL, **scalar_tail = &scalars, **loop_tail = &loops;
    const LKernel *first = s[0]->kernel;
    j->k = NEW(j->a, LKernel);
    j->k->name = arena_printf(j->a, "%s_x%d", first->name, n);
    j->k->span = first->span;
    for (int i = 0; i < n; i++) add_kernel(j, s[i]);
    for (int i = 0; i < j->k->bufs.n; i++) j->k->bufs.v[i]->id = i;
    for (int i = 0; i < n; i++) add_body(s[i]->kernel->body, &scalar_tail, &loop_tail);
    *scalar_tail = loops;
    j->k->body = scalars ? scalars : loops;
    return j->k;
}

/* ---- the phase's steps ---------------------------------------------------------------------- */
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

static PStep *join(Lower *lo, PStep *const *s, int n) {
    Join j = {.a = lo->a};
    PStep *one = NEW(lo->a, PStep);
    *one = *s[0];
    LKernel *k = join_kernels(&j, s, n);
    replace_kernels(lo->p, s, n, k);
    one->kernel = k;
    one->note = arena_printf(lo->a, "%s; and %d more", s[0]->note, n - 1);
    one->bufs = j.buf.v;
    one->n_bufs = j.buf.n;
    for (int i = 1; i < n; i++) one->extent = expr_add(lo->a, one->extent, s[i]->extent);
    return one;
}

/* How many steps from s on may be one. */
static int run_of(PStep *const *s, int n) {
    int bufs = s[0]->n_bufs, count = 1;
    if (!is_elementwise(s[0])) return 1;
    for (; count < n && is_elementwise(s[count]); count++) {
        bufs += s[count]->n_bufs;
        if (bufs > BUFS_MAX) break;
        for (int i = 0; i < count; i++)
            if (meet(s[i], s[count])) return count;
    }
    return count;
}

/* The ends of loops name each other by their places, which change: a PS_LOOP that waits for its end
 * holds the place of the one around it. */
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

/* How many steps from `at` on lie before the next loop over blocks; none if `at` is in one. */
static int free_steps(const PPhase *ph, const PBlocks *next, int at) {
    return next ? (at < next->first ? next->first - at : 0) : ph->steps.n - at;
}

void cg_join_steps(Lower *lo, int phase) {
    PPhase *ph = lo->p->phases.v[phase];
    int to = 0, open = -1, block = 0;
    for (int i = 0, n; i < ph->steps.n; i += n, to++) {
        PBlocks *b = block < ph->blocks.n ? &ph->blocks.v[block] : NULL;
        PStep **s = &ph->steps.v[i];
        int most = free_steps(ph, b, i);
        n = most ? run_of(s, most) : 1;
        ph->steps.v[to] = n > 1 ? join(lo, s, n) : s[0];
        match_loop(ph, to, &open);
        if (b && i == b->last) {
            b->first -= i - to;
            b->last = to;
            block++;
        }
    }
    ph->steps.n = to;
}
