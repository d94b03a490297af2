/* Questions about statements that several targets ask. */
#include "codegen/loop/loop.h"

/* The first statement among s, those after it and their bodies for which is(statement, what) holds;
 * NULL = none. */
const LStmt *loop_find(const LStmt *s, bool (*is)(const LStmt *s, const void *what),
                       const void *what) {
    for (const LStmt *found; s; s = s->next) {
        if (is(s, what)) return s;
        if (loop_has_body(s) && (found = loop_find(s->body, is, what))) return found;
    }
    return NULL;
}

static bool is_same(const LStmt *s, const void *one) {
    return s == one;
}

static bool is_declaration(const LStmt *s, const void *buf) {
    return s->kind == L_LOCAL && s->buf == buf;
}

static bool is_load(const LStmt *s, const void *buf) {
    return s->kind == L_LOAD && s->buf == buf;
}

static bool is_value_of(const LStmt *s, const void *reg) {
    return loop_is_value(s) && s->dst == reg;
}

static bool is_definition(const LStmt *s, const void *reg) {
    return is_value_of(s, reg) || (s->kind == L_FOR && s->var == reg);
}

static bool is_over(const LStmt *s, const void *range) {
    return s->kind == L_FOR && s->range == *(const LRangeKind *)range;
}

bool loop_has(const LStmt *s, const LStmt *one) {
    return loop_find(s, is_same, one);
}

bool loop_declares(const LStmt *s, const LBuf *b) {
    return loop_find(s, is_declaration, b);
}

bool loop_computes(const LStmt *s, const LReg *r) {
    return loop_find(s, is_value_of, r);
}

bool loop_defines(const LStmt *s, const LReg *r) {
    return loop_find(s, is_definition, r);
}

bool loop_loads(const LStmt *s, const LBuf *b) {
    return loop_find(s, is_load, b);
}

bool loop_has_range(const LStmt *s, LRangeKind range) {
    return loop_find(s, is_over, &range);
}

int loop_count_accesses(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        n += loop_is_access(s) && s->buf == b;
        if (loop_has_body(s)) n += loop_count_accesses(s->body, b);
    }
    return n;
}

/* How many loops over the entries of a row the statements contain. */
int loop_count_entry_loops(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        n += s->kind == L_FOR && s->range == LR_SEGMENT;
        if (loop_has_body(s)) n += loop_count_entry_loops(s->body);
    }
    return n;
}

/* For loop_find: does the statement say how a CPU executes loops? */
static bool is_cpu_schedule(const LStmt *s, const void *what) {
    (void)what;
    return s->kind == L_TILE || s->kind == L_PREFETCH ||
           (s->kind == L_FOR && (s->sched.where || s->sched.jam));
}

bool loop_is_scheduled_for_cpu(const LKernel *k) {
    return loop_find(k->body, is_cpu_schedule, NULL);
}

/* Predicate for loop_find(): is it a loop over padding rows, those behind a batch's own? */
static bool is_behind(const LStmt *s, const void *what) {
    (void)what;
    return s->kind == L_FOR && s->range == LR_BEHIND;
}

bool loop_is_behind(const LKernel *k) {
    for (int i = 0; i < k->stages.n; i++)
        if (loop_find(k->stages.v[i]->body, is_behind, NULL)) return true;
    return loop_find(k->body, is_behind, NULL);
}

/* ---- order ------------------------------------------------------------------------- */
bool loop_reads(const LStmt *s, const LReg *r) {
    if (s->src == r || s->cond == r || s->at == r) return true;
    for (int i = 0; i < s->n_arg; i++)
        if (s->arg[i] == r) return true;
    for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
        if (s->idx[i] == r) return true;
    for (const LStmt *inner = loop_has_body(s) ? s->body : NULL; inner; inner = inner->next)
        if (loop_reads(inner, r)) return true;
    return false;
}

/* Whether the statement accesses or declares its buffer. */
static bool uses_buffer(const LStmt *s) {
    return loop_is_access(s) || s->kind == L_LOCAL || s->kind == L_FOLD;
}

/* Whether the statement, or one in its body, accesses buffer b; only_writes: writes it. */
static bool accesses_buffer(const LStmt *s, const LBuf *b, bool only_writes) {
    bool is_own = uses_buffer(s) && s->buf == b;
    if (is_own && !(only_writes && s->kind == L_LOAD)) return true;
    for (const LStmt *inner = loop_has_body(s) ? s->body : NULL; inner; inner = inner->next)
        if (accesses_buffer(inner, b, only_writes)) return true;
    return false;
}

/* Whether the two statements access a buffer that one of them writes. */
static bool conflict_in_memory(const LStmt *x, const LStmt *y) {
    if (uses_buffer(x) && accesses_buffer(y, x->buf, x->kind == L_LOAD)) return true;
    for (const LStmt *inner = loop_has_body(x) ? x->body : NULL; inner; inner = inner->next)
        if (conflict_in_memory(inner, y)) return true;
    return false;
}

/* Whether statement `later` must stay after `earlier`: it reads a register that this defines, or
 * they conflict in memory. */
bool loop_depends(const LStmt *later, const LStmt *earlier) {
    return (loop_is_value(earlier) && loop_reads(later, earlier->dst)) ||
           conflict_in_memory(later, earlier);
}
