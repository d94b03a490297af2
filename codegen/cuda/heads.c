/* Rows that need more than a loop over columns: a kernel in another order, so that a team can
 * have each of its rows (schedule.c asks for it where a team cannot have the kernel as it is).
 *
 *     for v in N parallel {                         for v in N parallel {
 *       local m: f32[8]                               for h in 8 {
 *       for f in 8 { store m[f] -inf }                  local m: f32
 *       for e in segment ptr[v] {                       store m -inf
 *         scalars of e                                  for e in segment ptr[v] {
 *         for f in 8 { acc max m[f] .. }                  scalars of e
 *       }                                                 acc max m ..
 *       local y: f32[8, 16]                             }
 *       for e in segment ptr[v] {                       local y: f32[16]
 *         for f in 8 {                                  for e in segment ptr[v] {
 *           scalars of e, f, m[f]                         scalars of e, h, m
 *           for c in 16 vector { acc y[f, c] .. }         for c in 16 vector { acc y[c] .. }
 *         }                                             }
 *       }                                             }
 *     }                                             }
 *
 * Heads do not need each other, so each has a team: a sum over entries into one number is then
 * dealt to all of its threads, and one into columns to lanes and ways.  What is read once for all
 * heads of a row is read by each, out of the cache that neighbouring teams share.
 *
 * Loops and dimensions of one iteration go, and loops over columns that hang on nothing but their
 * column become vector loops.  A number that is stored and then read is handed on instead, as the
 * first thread alone would have it.  Then sums that need loops of their own get them (sums.c), and
 * what stands between two loops without need moves out of the way (order.c). */
#include "codegen/cuda/cuda.h"

typedef struct {
    Arena *a;
    LReg **reg;      /* [n_regs] what stands for it; NULL = itself */
    LBuf **local;    /* [locals] */
    int *head_place; /* [locals] which dimension heads are; -1 = none */
    LReg *zero, *head;
    int64_t n_heads; /* 0 = they stay where they are */
    bool ok;
} Turn;

static bool extent(const LStmt *s, int64_t *n) {
    return s->kind == L_FOR && s->range == LR_EXTENT && expr_is_const(s->extent, n);
}

static bool is_once(const LStmt *s) {
    int64_t n;
    return extent(s, &n) && n == 1 && !s->sched.parallel;
}

/* ---- heads ------------------------------------------------------------------------- */
/* The extent of the first loop of a known extent; 0 = there is none. */
static int64_t find_heads(const LStmt *s) {
    for (int64_t n; s; s = s->next) {
        if (!is_once(s) && extent(s, &n)) return n;
        if (loop_has_body(s) && (n = find_heads(s->body))) return n;
    }
    return 0;
}

/* Where local arrays have the head: always at one place.  loop: over heads, whose own locals are
 * each head's already. */
static void find_places(Turn *t, const LStmt *s, const LStmt *loop) {
    for (; s && t->ok; s = s->next) {
        int64_t n;
        bool heads = !loop && !is_once(s) && extent(s, &n);
        if (heads && n != t->n_heads) t->ok = false;
        if (loop_has_body(s)) find_places(t, s->body, heads ? s : loop);
        if (s->kind == L_FOR && s->range == LR_EXTENT && !heads && !loop && !is_once(s))
            t->ok = false;
        if ((s->kind == L_STORE || s->kind == L_ACC) && !loop) t->ok = false;
        if (!loop_is_access(s) || s->buf->kind != LB_LOCAL) continue;
        if (loop && loop_declares(loop->body, s->buf)) continue;
        int at = -1, *place = &t->head_place[s->buf->id];
        for (int i = 0; loop && i < s->buf->rank; i++)
            if (s->idx[i] == loop->var && (*place < 0 || *place == i)) at = i;
        if (at < 0) t->ok = false;
        *place = at;
    }
}

/* ---- the copy ---------------------------------------------------------------------- */
static LReg *reg_of(const Turn *t, LReg *r) {
    return r && t->reg[r->id] ? t->reg[r->id] : r;
}

static bool is_left_out(const Turn *t, const LBuf *b, int i) {
    return b->kind == LB_LOCAL && (cu_is_one(b->dim[i]) || i == t->head_place[b->id]);
}

static void copy_local(Turn *t, const LBuf *b) {
    LBuf *to = NEW(t->a, LBuf);
    *to = *b;
    to->rank = 0;
    for (int i = 0; i < b->rank; i++)
        if (!is_left_out(t, b, i)) to->dim[to->rank++] = b->dim[i];
    t->local[b->id] = to;
}

static LStmt *copy_one(Turn *t, const LStmt *s) {
    LStmt *c = NEW(t->a, LStmt);
    *c = *s;
    c->next = NULL;
    c->src = reg_of(t, s->src);
    c->cond = reg_of(t, s->cond);
    c->at = reg_of(t, s->at);
    for (int i = 0; i < s->n_arg; i++) c->arg[i] = reg_of(t, s->arg[i]);
    if (s->buf && s->buf->kind == LB_LOCAL) c->buf = t->local[s->buf->id];
    if (s->dst) s->dst->def = c;
    if (s->var) s->var->def = c;
    int n = 0;
    for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
        if (!is_left_out(t, s->buf, i)) c->idx[n++] = reg_of(t, s->idx[i]);
    return c;
}

/* Appends what stands for the list; loops over heads and of one iteration dissolve. */
static LStmt **copy(Turn *t, const LStmt *s, bool in_head, LStmt **tail) {
    for (; s; s = s->next) {
        int64_t n;
        bool heads = t->n_heads && !in_head && !is_once(s) && extent(s, &n);
        if (is_once(s) || heads) {
            t->reg[s->var->id] = heads ? t->head : t->zero;
            tail = copy(t, s->body, in_head || heads, tail);
            continue;
        }
        LStmt *c = *tail = copy_one(t, s);
        tail = &c->next;
        if (!loop_has_body(s)) continue;
        c->body = NULL;
        copy(t, s->body, in_head, &c->body);
    }
    return tail;
}

/* ---- loops over columns ------------------------------------------------------------------ */
/* Every access to b has r among its indices, at one place. */
static bool is_at(const LStmt *s, const LBuf *b, const LReg *r, int *place) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !is_at(s->body, b, r, place)) return false;
        if (!loop_is_access(s) || s->buf != b) continue;
        int at = -1;
        for (int i = 0; i < b->rank; i++)
            if (s->idx[i] == r && (*place < 0 || *place == i)) at = i;
        if (at < 0) return false;
        *place = at;
    }
    return true;
}

/* Iterations reach nothing of each other's. */
static bool is_alone(const LStmt *s, const LStmt *body, const LReg *r) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR || (s->kind == L_LOCAL && s->buf->rank)) return false;
        if (s->kind == L_IF && !is_alone(s->body, body, r)) return false;
        if (!loop_is_access(s)) continue;
        const LBuf *b = s->buf;
        if (b->kind == LB_LOCAL && loop_declares(body, b)) continue;
        if (s->kind == L_LOAD && (b->kind == LB_LOCAL || !b->written)) continue;
        int place = -1;
        if (b->kind == LB_LOCAL || !is_at(body, b, r, &place)) return false;
    }
    return true;
}

static void make_vectors(LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_EXTENT && is_alone(s->body, s->body, s->var))
            s->sched.vector = true;
        if (loop_has_body(s)) make_vectors(s->body);
    }
}

/* ---- what has been stored ------------------------------------------------------------- */
static int count_writes(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        n += (s->kind == L_STORE || s->kind == L_ACC) && s->buf == b;
        if (loop_has_body(s)) n += count_writes(s->body, b);
    }
    return n;
}

static bool same_place(const LStmt *x, const LStmt *y) {
    if (x->buf != y->buf) return false;
    for (int i = 0; i < x->buf->rank; i++)
        if (x->idx[i] != y->idx[i] && !cu_is_one(x->buf->dim[i])) return false;
    return true;
}

/* A number that the row stores is not read again. */
static void forward(LStmt *s, const LStmt *store) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) forward(s->body, store);
        if (s->kind != L_LOAD || !same_place(s, store)) continue;
        LReg *dst = s->dst;
        LStmt *next = s->next;
        *s = (LStmt){.kind = L_LET, .next = next, .span = s->span, .dst = dst};
        s->fn = L_FN_OP;
        s->op = OP_CAST;
        s->n_arg = 1;
        s->arg[0] = store->src;
    }
}

static void forward_stored(LStmt *row) {
    for (LStmt *s = row; s; s = s->next)
        if (s->kind == L_STORE && s->buf->kind != LB_LOCAL && s->src->dt == s->buf->dt &&
            count_writes(row, s->buf) == 1)
            forward(s->next, s);
}

/* ---- one of each ----------------------------------------------------------------------- */
static bool same_let(const LStmt *x, const LStmt *y) {
    bool same = x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
                x->dst->dt == y->dst->dt && x->n_arg == y->n_arg && x->n_arg > 0;
    for (int i = 0; same && i < x->n_arg; i++) same = x->arg[i] == y->arg[i];
    return same;
}

/* Indices that are computed anew for each loop of a list are one: runs ask how far columns are
 * apart by comparing registers. */
static void merge_lets(LStmt *list) {
    for (LStmt *s = list; s; s = s->next) {
        if (loop_has_body(s)) merge_lets(s->body);
        for (LStmt **at = &s->next; *at;) {
            LStmt *other = *at;
            if (!same_let(s, other)) {
                at = &other->next;
                continue;
            }
            *at = other->next;
            cu_replace(*at, other->dst, s->dst);
        }
    }
}

/* ---- the kernel -------------------------------------------------------------------- */
static LReg *new_reg(Turn *t, LKernel *k, const char *hint) {
    LReg *r = NEW(t->a, LReg);
    *r = (LReg){.id = k->n_regs++, .dt = DT_I64, .hint = hint};
    return r;
}

static LStmt *zero_of(Turn *t, LKernel *k) {
    LStmt *s = NEW(t->a, LStmt);
    t->zero = new_reg(t, k, "n");
    *s = (LStmt){.kind = L_LET,
                 .dst = t->zero,
                 .fn = L_FN_SIZE,
                 .size = expr_const(t->a, 0),
                 .span = k->span};
    t->zero->def = s;
    return s;
}

/* The loop over heads around a row. */
static LStmt *over_heads(Turn *t, LKernel *k, LStmt *body) {
    LStmt *s = NEW(t->a, LStmt);
    *s = (LStmt){.kind = L_FOR,
                 .var = t->head,
                 .range = LR_EXTENT,
                 .extent = expr_const(t->a, t->n_heads),
                 .body = body,
                 .span = k->span};
    t->head->def = s;
    return s;
}

const LKernel *cu_turn_rows(Arena *a, const LKernel *plan, bool heads, bool wide) {
    const LKernel *from = loop_copy(a, plan);
    const LStmt *parallel = cu_parallel_loop(from);
    Turn t = {.a = a, .ok = true};
    LKernel *k = NEW(a, LKernel);
    *k = *from;
    t.reg = NEWN(a, LReg *, from->n_regs + 1);
    t.local = NEWN(a, LBuf *, from->locals.n + 1);
    t.head_place = NEWN(a, int, from->locals.n + 1);
    for (int i = 0; i < from->locals.n; i++) t.head_place[i] = -1;
    if (heads) {
        t.n_heads = find_heads(parallel->body);
        if (t.n_heads) find_places(&t, parallel->body, NULL);
        if (!t.n_heads || !t.ok) return NULL;
    }
    for (int i = 0; i < from->locals.n; i++) copy_local(&t, from->locals.v[i]);
    k->locals.v = t.local;
    k->locals.cap = k->locals.n;
    LStmt *zero = zero_of(&t, k), **tail = &zero->next, *row = NULL;
    if (heads) t.head = new_reg(&t, k, "h");
    for (const LStmt *s = from->body; s != parallel; s = s->next) {
        *tail = copy_one(&t, s);
        tail = &(*tail)->next;
    }
    LStmt *loop = *tail = copy_one(&t, parallel);
    copy(&t, parallel->body, false, &row);
    if (loop_has_range(row, LR_CHUNK)) row = cu_keep_numbers(a, k, row);
    make_vectors(row);
    merge_lets(row);
    forward_stored(row);
    cu_split_sums(a, k, row, wide);
    row = cu_reordered(a, row);
    loop->body = heads ? over_heads(&t, k, row) : row;
    k->body = zero;
    return k;
}
