/* A team of threads for each row: what the text of a kernel says that they do, and whether that is
 * safe.
 *
 *     for v in N parallel {                         a team of 16 x 2 threads takes row v
 *       columns 16 by lanes {
 *         local acc: f32[16]
 *         for f in 16 vector { store acc[f] 0 }      lane f has column f, in registers
 *         for e in segment ptr[v] by ways {          entries go to the team's 2 *ways* by turns,
 *           scalars of e                             each adds up its own, and at the end of
 *           for f in 16 vector { acc sum acc[f] .. } the entries they are added
 *         }
 *         for f in 16 vector { .. acc[f] .. }
 *       }
 *     }
 *
 * Outside `columns` all threads of a team do the same, but that the first one alone writes.  A sum
 * over a vector loop into one place is made by each lane for its columns and then added
 * across lanes.  All additions are in an order that team and sizes fix.
 *
 * What must hold so that no thread reads what another one wrote: among columns a written buffer is
 * reached through the column, always at the same distance from it; elsewhere it is only
 * written, by the first thread.  What others have written is read behind a barrier. */
#include "codegen/loop_passes/team.h"

/* Records the first reason why a team cannot have the kernel. */
static void set_fault(LoopTeam *t, Span at, const char *what) {
    if (!t->fault) t->span = at;
    if (!t->fault) t->fault = what;
}

/* The record of an access inside a column loop (NULL: outside): which of its indices follows the
 * column. */
static LoopAccess new_access(const LStmt *s, const LStmt *loop) {
    LoopAccess a = {.s = s, .loop = loop, .column_dim = -1};
    for (int i = 0; loop && i < s->buf->rank && a.column_dim < 0; i++) {
        a.distance = loop_column_distance(loop, s->idx[i]);
        if (a.distance.ok) a.column_dim = i;
    }
    return a;
}

/* ---- what the text says --------------------------------------------------------------------- */
/* Records an access, with the number of barriers before it. */
static LoopAccess *record_access(LoopTeam *t, const LStmt *s, const LStmt *loop) {
    vec_push(t->a, &t->accesses, new_access(s, loop));
    LoopAccess *a = &t->accesses.v[t->accesses.n - 1];
    a->region = -1;
    a->barriers = t->barriers;
    return a;
}

/* Whether the loop is in the region's own list. */
static bool is_in_region_list(const LoopColumns *r, const LStmt *loop) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s == loop) return true;
    }
    return false;
}

/* Records the accesses in a region. */
static void record_region_accesses(LoopTeam *t, const LoopColumns *r, const LStmt *s,
                                   const LStmt *loop) {
    for (; s; s = s->next) {
        if (loop_is_access(s)) {
            LoopAccess *a = record_access(t, s, loop);
            a->region = t->regions.n - 1;
            a->reduces_columns = loop && s->kind == L_ACC && !loop_is_column_array(r, s->buf) &&
                                 !(s->buf->kind == LB_LOCAL && loop_declares(loop->body, s->buf)) &&
                                 !loop_follows_column(s, loop) &&
                                 !loop_is_declared_inside(r, s->buf);
            a->direct = loop && is_in_region_list(r, loop);
            a->round_robin = loop && loop_is_round_robin(r, loop);
        }
        bool own = loop && loop->range == LR_SEGMENT;
        if (loop_has_body(s))
            record_region_accesses(t, r, s->body, !own && loop_is_columns(s) ? s : loop);
    }
}

/* Records the region of a statement `columns`, if its text says what the statements allow. */
static void record_region(LoopTeam *t, LStmt *s, bool top) {
    LoopColumns r = {.stmt = s, .first = s->body, .in_row_list = top, .barriers = t->barriers};
    bool shared = s->body && loop_check_region(t, &r);
    bool same = shared && s->range == r.range->range && s->at == r.range->at &&
                s->ptr == r.range->ptr &&
                (s->range == LR_SEGMENT || expr_eq(s->extent, r.range->extent)) &&
                (s->range != LR_CHUNK || expr_eq(s->n_chunks, r.range->n_chunks));
    r.all_threads = s->sched.share == LS_TEAM;
    bool alone = shared && !r.first->next && loop_is_columns(r.first);
    if (!same || r.one_pass != (s->sched.share == LS_EACH) || (r.all_threads && !alone)) {
        set_fault(t, s->span, "what stands there does not share columns like this");
        return;
    }
    vec_push(t->a, &t->regions, r);
    record_region_accesses(t, &t->regions.v[t->regions.n - 1], r.first, NULL);
}

/* Records the accesses and regions of a list. top: it is the row's own list. */
static void record_list(LoopTeam *t, LStmt *s, bool top) {
    for (; s && !t->fault; s = s->next) {
        if (s->kind == L_COLUMNS) {
            record_region(t, s, top);
            continue;
        }
        t->barriers += s->kind == L_BARRIER && top;
        if (loop_is_access(s)) record_access(t, s, NULL)->direct = top;
        if (loop_is_columns(s)) set_fault(t, s->span, "a loop over columns has no lanes");
        if (s->kind == L_LOCAL && s->buf->rank)
            set_fault(t, s->span, "a local array is of a whole row");
        if (loop_has_body(s)) record_list(t, s->body, false);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */
/* Whether two accesses have the column at the same index, at the same distance. */
static bool same_distance(const LoopAccess *x, const LoopAccess *y) {
    return x->column_dim == y->column_dim && x->distance.fn == y->distance.fn &&
           x->distance.offset == y->distance.offset && loop_same_range(x->loop, y->loop);
}

/* The number of the last region that writes b, if only regions of the row's own list write it; -1 =
 * there is none. */
int loop_last_writing_region(const LoopTeam *t, const LBuf *b) {
    int run = -1;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || a->s->kind == L_LOAD) continue;
        if (a->region < 0 || a->reduces_columns || !t->regions.v[a->region].in_row_list) return -1;
        if (a->region > run) run = a->region;
    }
    return run;
}

/* Whether a barrier stands between the region and the access. */
static bool is_behind_barrier(const LoopTeam *t, const LoopAccess *a, int columns) {
    return !t->needs_barriers || a->barriers > t->regions.v[columns].barriers;
}

/* Whether the access is a load behind a barrier that follows all writes to its buffer: it cannot
 * race. */
bool loop_is_after_barrier(const LoopTeam *t, const LoopAccess *a) {
    if (a->s->kind != L_LOAD || a->s->buf->kind == LB_LOCAL) return false;
    int run = loop_last_writing_region(t, a->s->buf);
    if (run < 0 || !is_behind_barrier(t, a, run)) return false;
    if (a->region >= 0) return a->region > run;
    for (int i = 0; &t->accesses.v[i] < a; i++)
        if (t->accesses.v[i].region == run && t->accesses.v[i].s->buf == a->s->buf) return true;
    return false;
}

/* Whether all accesses to b are outside regions and all loads come before the first write. */
bool loop_is_read_before_written(const LoopTeam *t, const LBuf *b) {
    bool written = false;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b) continue;
        if (a->region >= 0 || !a->direct || (a->s->kind == L_LOAD && written)) return false;
        written = written || a->s->kind != L_LOAD;
    }
    return true;
}

/* Whether a barrier stands between those loads and the first write. */
static bool has_barrier_before_write(const LoopTeam *t, const LBuf *b) {
    int read = -1;
    for (int i = 0; i < t->accesses.n && t->needs_barriers; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b) continue;
        if (a->s->kind == L_LOAD && a->barriers > read) read = a->barriers;
        if (a->s->kind != L_LOAD && a->barriers <= read) return false;
    }
    return true;
}

/* Whether the threads' accesses to b are free of races: only the first thread accesses it, or each
 * thread its own element. *own_lane is set if lanes have elements of their own. */
static bool buffer_is_race_free(const LoopTeam *t, const LBuf *b, bool *lane_private) {
    const LoopAccess *first = NULL;
    int n = 0, n_column = 0, n_first = 0, n_load = 0;
    bool same = true;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || loop_is_after_barrier(t, a)) continue;
        if (a->round_robin) return false;
        n++;
        n_load += a->s->kind == L_LOAD;
        if (!a->loop || a->reduces_columns) {
            n_first++;
            continue;
        }
        n_column++;
        if (!first) first = a;
        same = same && a->column_dim >= 0 && same_distance(a, first);
    }
    if (n_column == 0) /* the first thread writes */
        return n_load == 0 || (loop_is_read_before_written(t, b) && has_barrier_before_write(t, b));
    if (n == 1 && first->s->kind != L_ACC) return n_load == 0; /* each its own element, once */
    *lane_private = true;
    return n_first == 0 && same;
}

/* Whether a scalar that column loops accumulate into is used in no other way in the region: until
 * its fold the threads have only partial sums. */
static bool sum_is_unused(const LoopTeam *t, const LoopAccess *fold) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != fold->s->buf || a->region != fold->region) continue;
        if (!a->reduces_columns || a->s->red != fold->s->red) return false;
    }
    return true;
}

/* Whether all accesses to a local array have the column at the same distance, so that each lane
 * needs only its own. */
static bool array_is_lane_private(const LoopTeam *t, const LBuf *b) {
    const LoopAccess *first = NULL;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || !a->loop) continue;
        if (!first) first = a;
        if (!same_distance(a, first)) return false;
    }
    return true;
}

/* Whether lanes have elements of their own in memory, so that regions over columns must not go to
 * all threads. */
bool loop_has_lane_private_elements(const LoopTeam *t) {
    bool own = false;
    for (int i = 0; i < t->k->bufs.n; i++)
        if (t->k->bufs.v[i]->written) (void)buffer_is_race_free(t, t->k->bufs.v[i], &own);
    return own;
}

/* Checks that no access of the kernel races. */
static void check_memory(LoopTeam *t) {
    const LKernel *k = t->k;
    bool own;
    for (int i = 0; i < k->bufs.n; i++)
        if (k->bufs.v[i]->written && !buffer_is_race_free(t, k->bufs.v[i], &own))
            set_fault(t, k->span,
                      arena_printf(t->a,
                                   "a thread could read or write what another one "
                                   "writes of %s",
                                   k->bufs.v[i]->name));
    for (int i = 0; i < k->locals.n; i++)
        if (k->locals.v[i]->rank && !array_is_lane_private(t, k->locals.v[i]))
            set_fault(t, k->span,
                      arena_printf(t->a, "lanes have other columns of %s in other places",
                                   k->locals.v[i]->name));
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].reduces_columns && !sum_is_unused(t, &t->accesses.v[i]))
            set_fault(t, t->accesses.v[i].s->span, "a sum over lanes is used before it is made");
}

/* ---- registers for rows ------------------------------------------------------------ */
/* Whether register r is defined inside a loop of the region. */
static bool is_defined_in_loops(const LoopColumns *c, const LReg *r) {
    for (const LStmt *s = c->first; s != c->end; s = s->next) {
        if (s->kind == L_FOR && s->var == r) return true;
        if (loop_has_body(s) && loop_defines(s->body, r)) return true;
    }
    return false;
}

/* Why a lane does not have exactly one element of b in one region; NULL: it has. */
const char *loop_one_element_fault(const LoopTeam *t, const LBuf *b) {
    const LoopAccess *first = NULL;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || loop_is_after_barrier(t, a)) continue;
        if (!first) first = a;
        if (a->region < 0) return "it is reached outside columns";
        if (a->region != first->region) return "other columns reach it, too";
        if (a->reduces_columns || !a->loop) return "all lanes reach one element of it";
        for (int k = 0; k < b->rank; k++) {
            if (k == a->column_dim || loop_is_unit_extent(b->dim[k])) continue;
            bool inner = is_defined_in_loops(&t->regions.v[a->region], a->s->idx[k]);
            if (inner || a->s->idx[k] != first->s->idx[k])
                return "lanes have several elements of it";
        }
    }
    return first ? NULL : "nothing reaches it before a barrier";
}

/* Whether it has. */
bool loop_is_one_element_per_lane(const LoopTeam *t, const LBuf *b) {
    return !loop_one_element_fault(t, b);
}

/* Whether something accumulates into b, other than sums over columns. */
static bool is_accumulated(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].s->buf == b && t->accesses.v[i].s->kind == L_ACC &&
            !t->accesses.v[i].reduces_columns)
            return true;
    return false;
}

/* Whether b is loaded without a barrier after its writes. */
static bool is_loaded_unsynchronised(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].s->buf == b && t->accesses.v[i].s->kind == L_LOAD &&
            !loop_is_after_barrier(t, &t->accesses.v[i]))
            return true;
    return false;
}

/* Whether the value of an element of b is needed while it is written: it is accumulated into, or
 * loaded. */
bool loop_is_read_or_accumulated(const LoopTeam *t, const LBuf *b) {
    return is_accumulated(t, b) || is_loaded_unsynchronised(t, b);
}

/* Whether the region holds rows of b in registers. */
bool loop_is_promoted(const LStmt *columns, const LBuf *b) {
    for (int i = 0; i < columns->promoted.n; i++)
        if (columns->promoted.v[i] == b) return true;
    return false;
}

/* The region that holds rows of b in registers, or NULL. */
static const LStmt *promoting_region(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->regions.n; i++)
        if (loop_is_promoted(t->regions.v[i].stmt, b)) return t->regions.v[i].stmt;
    return NULL;
}

/* Whether all accesses to b, but for loads behind barriers, are in the region. */
static bool is_used_only_in(const LoopTeam *t, const LBuf *b, const LStmt *columns) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && !loop_is_after_barrier(t, a) &&
            t->regions.v[a->region].stmt != columns)
            return false;
    }
    return true;
}

/* Checks that promoted rows are used in their region only. */
static void check_promoted(LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++) {
        const LStmt *c = t->regions.v[i].stmt;
        for (int k = 0; k < c->promoted.n; k++) {
            const LBuf *b = c->promoted.v[k];
            if (!loop_is_one_element_per_lane(t, b) || !is_used_only_in(t, b, c))
                set_fault(t, c->span,
                          arena_printf(t->a, "a row of %s cannot be in registers there", b->name));
        }
    }
}

/* ---- entries that ways share ---------------------------------------------------------------- */
/* Whether the entries of a column must stay with one thread: others would access memory that is not
 * held in registers. */
static bool has_serial_entries(const LoopTeam *t) {
    for (int i = 0; i < t->k->bufs.n; i++) {
        const LBuf *b = t->k->bufs.v[i];
        if (!b->written || (is_loaded_unsynchronised(t, b) && loop_is_read_before_written(t, b)))
            continue;
        if (loop_is_read_or_accumulated(t, b) && !promoting_region(t, b)) return true;
    }
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].reduces_columns && !t->accesses.v[i].direct &&
            !t->regions.v[t->accesses.v[i].region].all_threads)
            return true;
    return false;
}

/* A loop over entries whose effects are being checked. */
typedef struct {
    const LoopTeam *t;
    const LStmt *body;
    int run; /* which columns it is among */
    const LBuf **target;
    int n;
} EntryLoop;

/* Whether s accumulates into a register of a column or of the row, and nothing else accesses that;
 * records it as a target. */
static bool adds_to_register(EntryLoop *e, const LStmt *s) {
    const LBuf *b = s->buf;
    bool in_register = b->kind == LB_LOCAL || promoting_region(e->t, b);
    if (s->kind != L_ACC || !in_register) return false;
    for (int i = 0; i < e->n; i++)
        if (e->target[i] == b) return false;
    if (e->n == LOOP_TARGETS_MAX) return false;
    e->target[e->n++] = b;
    return true;
}

/* Whether s loads something that nothing can be writing. */
static bool only_reads(const EntryLoop *e, const LStmt *s) {
    const LBuf *b = s->buf;
    if (s->kind != L_LOAD) return false;
    if (b->kind == LB_LOCAL) return b->rank == 0;
    const int writes = b->written ? loop_last_writing_region(e->t, b) : -1;
    return !b->written || (writes >= 0 && e->run > writes);
}

/* The first statement whose effect is neither a private sum nor a read; or NULL. */
static const LStmt *other_effect(EntryLoop *e, const LStmt *s) {
    for (; s; s = s->next) {
        const LStmt *in = loop_has_body(s) ? other_effect(e, s->body) : NULL;
        if (in) return in;
        if (!loop_is_access(s)) continue;
        bool own = s->buf->kind == LB_LOCAL && loop_declares(e->body, s->buf);
        if (!own && !only_reads(e, s) && !adds_to_register(e, s)) return s;
    }
    return NULL;
}

/* Whether the loop has enough iterations to be shared. */
static bool is_long(const LStmt *s) {
    int64_t n;
    return s->range != LR_EXTENT || !expr_is_const(s->extent, &n) || n >= 32;
}

/* That effect in words. */
static const char *effect_text(const LoopTeam *t, const LStmt *s) {
    const char *name = s->buf->name;
    if (s->kind == L_STORE) return arena_printf(t->a, "they store %s", name);
    if (s->kind == L_LOAD) return arena_printf(t->a, "they read %s, which the row writes", name);
    return arena_printf(t->a, "they add to %s, which is in no register of its own", name);
}

/* Why the threads cannot share the loop's entries with a private sum each; NULL: they can. */
const char *loop_private_fault(const LoopTeam *t, const LStmt *s, const LBuf **target, int *n) {
    EntryLoop e = {.t = t, .body = s->body, .run = -1, .target = target};
    if (s->kind != L_FOR || loop_is_columns(s)) return "it is a loop over columns";
    if (!is_long(s)) return "they are too few";
    if (t->serial_entries) return "a row of memory, or a sum over lanes, is one thread's";
    for (int i = 0; i < t->regions.n && e.run < 0; i++)
        if (is_in_region_list(&t->regions.v[i], s)) e.run = i;
    if (e.run < 0) return "another loop is around them";
    const LStmt *other = other_effect(&e, s->body);
    if (other) return effect_text(t, other);
    for (int i = 0; i < e.n; i++)
        if (loop_loads(s->body, target[i]))
            return arena_printf(t->a, "they read the sum %s", target[i]->name);
    *n = e.n;
    return e.n ? NULL : "they add up nothing";
}

/* The accumulators of a loop whose entries can be shared; 0 = they cannot. */
int loop_private_sums(const LoopTeam *t, const LStmt *s, const LBuf **target) {
    int n = 0;
    return loop_private_fault(t, s, target, &n) ? 0 : n;
}

/* The way of dividing the loop's iterations that its statements allow. */
static LShare legal_share(const LoopTeam *t, const LStmt *s, const LoopColumns *in, bool direct) {
    const LBuf *target[LOOP_TARGETS_MAX];
    if (loop_is_columns(s)) {
        if (s->range == LR_SEGMENT)
            return in && in->all_threads && loop_only_sums_leave(t, s) ? LS_TEAM : LS_EACH;
        return in && loop_is_round_robin(in, s) ? LS_LANES : LS_EACH;
    }
    bool ways = direct && s->sched.share == LS_WAYS && loop_private_sums(t, s, target);
    return ways ? LS_WAYS : LS_EACH;
}

/* Checks that the text divides each loop as its statements allow. */
static void check_shares(LoopTeam *t, const LStmt *s, const LoopColumns *in, bool direct) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->sched.share != legal_share(t, s, in, direct))
            set_fault(t, s->span, "its threads cannot share a loop like this");
        if (s->sched.split_entries && !loop_may_split(t, s))
            set_fault(t, s->span, "blocks cannot share a loop like this");
        const LoopColumns *inner = in;
        for (int i = 0; s->kind == L_COLUMNS && i < t->regions.n; i++)
            if (t->regions.v[i].stmt == s) inner = &t->regions.v[i];
        if (loop_has_body(s)) check_shares(t, s->body, inner, s->kind == L_COLUMNS);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */
/* Reads what the text of a kernel says of its threads: its regions and accesses, and the first
 * fault. */
LoopTeam loop_team(Arena *a, const Target *on, const LKernel *k, bool strict) {
    LoopTeam t = {
        .a = a, .on = on, .k = k, .columns = k->threads.columns, .needs_barriers = strict};
    const LStmt *parallel = loop_parallel(k);
    if (loop_is_joined(k)) set_fault(&t, k->span, "several loops share its launch");
    LStmt *row = k->body;
    if (parallel) row = parallel->body;
    for (LStmt *in; (in = loop_collapsed(row));) row = in->body;
    record_list(&t, row, true);
    if (!t.fault && t.regions.n == 0)
        set_fault(&t, k->span, "nothing in it can be shared out to lanes");
    if (!t.fault) check_memory(&t);
    if (!t.fault) t.serial_entries = has_serial_entries(&t);
    return t;
}

/* Checks that each partial sum is combined by a fold, and that there are no other folds. */
static void check_folds(LoopTeam *t, const LoopFolds *all, const LStmt *s) {
    if (s && s->kind == L_FOLD) set_fault(t, s->span, "a fold is behind nothing that is shared");
    for (; s; s = s->next) {
        if (!loop_has_required_folds(all, s))
            set_fault(t, s->span, "what its threads add up each by itself is not folded behind it");
        if (loop_has_body(s)) check_folds(t, all, s->body);
    }
}

/* Whether the kernel's threads race nowhere, share loops legally and combine all partial sums. */
bool loop_team_is_race_free(LoopTeam *t) {
    if (!t->fault) check_promoted(t);
    if (!t->fault) check_shares(t, t->k->body, NULL, false);
    if (t->fault) return false;
    const LoopFolds all = loop_required_folds(t);
    check_folds(t, &all, t->k->body);
    return !t->fault;
}
