/* Questions about statements that passes and targets ask. */
#include "codegen/loop/loop.h"

const unsigned loop_parts[LOOP_N_STMTS] = {
#define STMT(id, word, place, parts) [L_##id] = place parts,
#define PART(part, when, word, field, least, most) | LP_##part
#define CHOICE(when, first, second, field) | LP_CHOICE
#include "codegen/loop/statements.def"
};

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
    return reg && loop_result(s) == reg;
}

static bool is_loop(const LStmt *s, const void *what) {
    (void)what;
    return s->kind == L_FOR;
}

static bool is_write(const LStmt *s, const void *buf) {
    return loop_is_write(s) && s->buf == buf;
}

static bool is_accumulation(const LStmt *s, const void *buf) {
    return s->kind == L_ACC && s->buf == buf;
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

bool loop_has_loop(const LStmt *s) {
    return loop_find(s, is_loop, NULL);
}

bool loop_writes(const LStmt *s, const LBuf *b) {
    return loop_find(s, is_write, b);
}

bool loop_accumulates_into(const LStmt *s, const LBuf *b) {
    return loop_find(s, is_accumulation, b);
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

int loop_n_arguments(const LKernel *k) {
    int n = k->bufs.n;
    while (n && k->bufs.v[n - 1]->kind == LB_ROOM) n--;
    return n;
}

/* ---- registers --------------------------------------------------------------------- */
void loop_count_reads(const LStmt *s, int *n_reads) {
    for (; s; s = s->next) {
        LReg *const *r;
        for (int i = 0; (r = loop_operand(s, i)); i++) n_reads[(*r)->id]++;
        loop_count_reads(s->body, n_reads);
    }
}

int loop_drop_values(LStmt **at, const int *n_reads) {
    int n_dropped = 0;
    for (LStmt *s = *at; s; s = *at) {
        n_dropped += loop_drop_values(&s->body, n_reads);
        if (s->dst && n_reads[s->dst->id] == 0) {
            *at = s->next;
            n_dropped++;
        } else {
            at = &s->next;
        }
    }
    return n_dropped;
}

void loop_number_registers(LStmt *s, int *next) {
    for (; s; s = s->next) {
        LReg *defines = loop_result(s);
        if (defines) defines->id = (*next)++;
        loop_number_registers(s->body, next);
    }
}

/* ---- order ------------------------------------------------------------------------- */
bool loop_reads(const LStmt *s, const LReg *r) {
    LReg *const *operand;
    for (int i = 0; (operand = loop_operand(s, i)); i++)
        if (*operand == r) return true;
    for (const LStmt *inner = s->body; inner; inner = inner->next)
        if (loop_reads(inner, r)) return true;
    return false;
}

/* Whether the statement accesses or declares its buffer. */
static bool uses_buffer(const LStmt *s) {
    return loop_has_part(s, LP_ELEMENT | LP_DECLARATION | LP_BUFFER);
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
