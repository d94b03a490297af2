/* What several entries of a row load is loaded before the first of them is used.
 *
 *     for %e in segment p[%v] by ways {            for %e in segment p[%v] by ways ahead 4 {
 *       %s = load src[%e]                  =>        (the same)
 *       for %f in 128 vector {
 *         %x = load x[%s, %f] pack
 *         acc sum acc[%f] %x
 *
 * Unroll and jam of the loads alone: a thread that adds a gathered row before it asks for the next
 * one waits for memory once for each row, and has one row on the way (GE-SpMM, Huang et al. 2020,
 * and dgSPARSE have several, too).  Loads need nothing of the sums, as ways share the loop; sums
 * are made entry after entry as before, so the bits are the same.  How many: by the registers that
 * keep what was loaded, beside the sums and columns that a thread keeps all the while.  Fewer
 * threads run at a time where each has more registers, and what finds none is spilled to memory: a
 * row that keeps much is better off with an entry at a time. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

enum { REGISTER_BYTES = 4, MANY = 1024 };

/* The loop over a row's entries, and which lanes have what of its columns. */
typedef struct {
    const LoopTeam *t;
    const LoopColumns *region;
    bool *differs; /* [n_regs] registers that differ by entry */
    LoopAhead of;
} EarlyCheck;

/* Why the statements of an entry, or of a loop over columns in it, are not of the kinds whose loads
 * come first, in words; NULL: they are. */
static const char *kind_fault(const EarlyCheck *check, const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind != L_FOR && !loop_has_body(s)) continue;
        if (s->kind != L_FOR || !loop_is_columns(s))
            return "an entry has loops or conditions of its own";
        if (loop_is_round_robin(check->region, s)) return "lanes take an entry's columns in turn";
        const char *why = kind_fault(check, s->body);
        if (why) return why;
    }
    return NULL;
}

/* Whether the statement reads a register that differs by entry. */
static bool reads_entry(const EarlyCheck *check, const LStmt *s) {
    LReg *const *r;
    for (int i = 0; (r = loop_operand(s, i)); i++)
        if (check->differs[(*r)->id]) return true;
    return false;
}

/* Marks the loads from memory that can come first: of what differs by entry those that stand by
 * themselves, and of a lane's columns those that bring all of them. */
static void mark_loads(EarlyCheck *check, const LStmt *s, bool is_in_columns) {
    const bool one_column = loop_pack(check->t->k) == 1;
    for (; s; s = s->next) {
        if (loop_has_body(s)) mark_loads(check, s->body, true);
        if (!loop_is_value(s)) continue;
        const bool is_variable = s->kind == L_LOAD && s->buf->kind == LB_LOCAL;
        check->differs[s->dst->id] = is_variable || reads_entry(check, s);
        if (s->kind != L_LOAD || is_variable || !check->differs[s->dst->id]) continue;
        if (is_in_columns && !s->packed && !one_column) continue;
        check->of.early[s->dst->id] = true;
        check->of.n_loads++;
    }
}

/* Whether an early value is a variable that the entry itself sets. */
static bool needs_variable(const EarlyCheck *check, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && needs_variable(check, s->body)) return true;
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL && check->of.early[s->dst->id])
            return true;
    }
    return false;
}

/* Marks what early values are made of: registers are defined before they are read, so it goes from
 * the last statement to the first. */
static void mark_operands(EarlyCheck *check, const LStmt *s) {
    if (!s) return;
    mark_operands(check, s->next);
    if (loop_has_body(s)) mark_operands(check, s->body);
    if (!loop_is_value(s) || !check->of.early[s->dst->id]) return;
    LReg *const *r;
    for (int i = 0; (r = loop_operand(s, i)); i++) check->of.early[(*r)->id] = true;
}

/* Marks what the statements that are not early read. */
static void mark_kept(EarlyCheck *check, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) mark_kept(check, s->body);
        if (loop_is_value(s) && check->of.early[s->dst->id]) continue;
        LReg *const *r;
        for (int i = 0; (r = loop_operand(s, i)); i++) check->of.is_kept[(*r)->id] = true;
    }
}

/* Adds up the bytes of the registers that keep early values. */
static void count_bytes(EarlyCheck *check, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) count_bytes(check, s->body);
        if (!loop_is_value(s) || !check->of.early[s->dst->id]) continue;
        const int pack = s->packed ? loop_pack(check->t->k) : 1;
        const int bytes = (int)dtype_bytes(s->packed ? s->buf->dt : s->dst->dt) * pack;
        if (check->of.is_kept[s->dst->id])
            check->of.bytes += bytes > REGISTER_BYTES ? bytes : REGISTER_BYTES;
    }
}

/* The elements of a local variable, or of a row in registers, that a thread has; MANY: or more. */
static int elements_of_thread(const EarlyCheck *check, const LBuf *b) {
    int64_t n = b->rank ? loop_pack(check->t->k) : 1, other;
    for (int i = 0; b->kind == LB_LOCAL && i + 1 < b->rank && n < MANY; i++)
        n *= expr_is_const(b->dim[i], &other) && other < MANY ? other : MANY;
    return n < MANY ? (int)n : MANY;
}

/* Adds up the bytes of the registers that a thread has in the region beside loop `own`: sums,
 * columns, rows of the result. */
static void count_held(EarlyCheck *check, const LStmt *s, const LStmt *own) {
    for (; s; s = s->next) {
        if (s == own) continue;
        if (loop_has_body(s)) count_held(check, s->body, own);
        if (s->kind == L_LOCAL && check->of.held < MANY)
            check->of.held += REGISTER_BYTES * elements_of_thread(check, s->buf);
    }
}

/* Finds what of loop s is early. */
static EarlyCheck check_early(const LoopTeam *t, const LStmt *s) {
    const size_t n = (size_t)t->k->n_regs + 1;
    EarlyCheck check = {.t = t, .region = loop_region_of(t, s)};
    const LStmt *columns = check.region ? check.region->stmt : NULL;
    check.differs = NEWN(t->a, bool, n);
    check.of.early = NEWN(t->a, bool, n);
    check.of.is_kept = NEWN(t->a, bool, n);
    check.differs[s->var->id] = true;
    mark_loads(&check, s->body, false);
    mark_operands(&check, s->body);
    mark_kept(&check, s->body);
    count_bytes(&check, s->body);
    if (columns) count_held(&check, columns->body, s);
    for (int i = 0; columns && i < columns->in_registers.n; i++)
        check.of.held += REGISTER_BYTES * elements_of_thread(&check, columns->in_registers.v[i]);
    return check;
}

LoopAhead loop_early_of(const LoopTeam *t, const LStmt *s) {
    return check_early(t, s).of;
}

const char *loop_ahead_fault(const LoopTeam *t, const LStmt *s) {
    if (s->kind != L_FOR || s->sched.share != LS_WAYS) return "no ways share them";
    const EarlyCheck check = check_early(t, s);
    const char *why = kind_fault(&check, s->body);
    if (why) return why;
    if (!check.of.n_loads) return "they load nothing of their own";
    return needs_variable(&check, s->body) ? "what an entry computes says what it loads" : NULL;
}

/* How many entries are loaded before the first is used: as many as registers keep. */
static int choose_entries(const Loops *l, const LoopAhead *of) {
    int n = pass_threshold(l->c, PASS_T_AHEAD_ENTRIES);
    while (n > 1 && of->held + n * of->bytes > pass_threshold(l->c, PASS_T_AHEAD_BYTES)) n /= 2;
    return n;
}

/* Marks one loop over entries, or says why not. */
static void mark_loop(PassCtx *p, const Loops *l, const LoopTeam *t, LStmt *s) {
    const char *name = t->k->name, *range = loop_range_text(l->a, s);
    const char *why = loop_ahead_fault(t, s);
    const LoopAhead of = why ? (LoopAhead){0} : loop_early_of(t, s);
    const int n = why ? 1 : choose_entries(l, &of);
    s->sched.ahead = n > 1 ? n : 0;
    if (n > 1)
        pass_remark(p, s->span, "load-ahead", "%s: %s: %d at a time, %d bytes of each", name, range,
                    n, of.bytes);
    else
        pass_refusal(p, s->span, "load-ahead", "%s: %s: one at a time: %s", name, range,
                     why ? why
                         : arena_printf(l->a, "each keeps %d bytes in registers, the row %d",
                                        of.bytes, of.held));
}

/* Runs the pass on the loops whose entries the ways of a team share. */
static bool run_load_ahead(PassCtx *p, Loops *l) {
    if (pass_threshold(l->c, PASS_T_AHEAD_ENTRIES) == 1) return true; /* nobody asks for more */
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        for (int c = 0; c < t.regions.n && !t.fault; c++)
            for (LStmt *s = t.regions.v[c].stmt->body; s; s = s->next)
                if (s->kind == L_FOR && s->sched.share == LS_WAYS && !s->sched.ahead)
                    mark_loop(p, l, &t, s);
    }
    return true;
}

const Pass loop_pass_load_ahead = {
    .name = "load-ahead",
    .summary = "what several entries of a row load is loaded before the first of them is used",
    .run_loops = run_load_ahead,
};
