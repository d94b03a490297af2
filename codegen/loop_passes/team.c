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

/* Records the first reason why a team of threads cannot run the kernel, and its place. at: the
 * statement at fault, or NULL: the kernel. */
static void set_team_fault(LoopTeam *t, const LStmt *at, const char *what) {
    if (!t->fault) t->span = loop_place(t->k, at);
    if (!t->fault) t->fault = what;
}

/* A record of access s, with the index that follows the feature column. loop: the column loop
 * around it, or NULL. */
static LoopAccess new_access(const LStmt *s, const LStmt *loop) {
    LoopAccess a = {.s = s, .loop = loop, .column_dim = -1};
    for (int i = 0; loop && i < s->buf->rank && a.column_dim < 0; i++) {
        a.distance = loop_column_distance(loop, s->idx[i]);
        if (a.distance.ok) a.column_dim = i;
    }
    return a;
}

/* ---- what the text says --------------------------------------------------------------------- */
/* Appends a record of access s, with the number of barriers before it. */
static LoopAccess *record_access(LoopTeam *t, const LStmt *s, const LStmt *loop) {
    vec_push(t->a, &t->accesses, new_access(s, loop));
    LoopAccess *a = &t->accesses.v[t->accesses.n - 1];
    a->region = -1;
    a->barriers = t->barriers;
    return a;
}

/* Whether the loop stands in the region's own list. */
static bool is_in_region_list(const LoopColumns *r, const LStmt *loop) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s == loop) return true;
    }
    return false;
}

/* Records the accesses among statements s of the region, with the loop over feature columns around
 * each. */
static void record_region_accesses(LoopTeam *t, const LoopColumns *region, const LStmt *s,
                                   const LStmt *column_loop) {
    for (; s; s = s->next) {
        if (loop_is_access(s)) {
            LoopAccess *a = record_access(t, s, column_loop);
            a->region = t->regions.n - 1;
            a->reduces_columns =
                column_loop && s->kind == L_ACC && !loop_is_column_array(region, s->buf) &&
                !(s->buf->kind == LB_LOCAL && loop_declares(column_loop->body, s->buf)) &&
                !loop_follows_column(s, column_loop) && !loop_is_declared_inside(region, s->buf);
            a->direct = column_loop && is_in_region_list(region, column_loop);
            a->round_robin = column_loop && loop_is_round_robin(region, column_loop);
        }
        /* `columns segment .. by team`: its entries are the columns, not a loop inside */
        bool entries_are_columns = column_loop && column_loop->range == LR_SEGMENT;
        if (loop_has_body(s))
            record_region_accesses(t, region, s->body,
                                   !entries_are_columns && loop_is_columns(s) ? s : column_loop);
    }
}

/* Records the region of a statement `columns` in the text. A fault if the mapping to threads that
 * the text declares is not the one that its statements allow. in_row_list: the statement is in no
 * loop of the row. */
static void record_and_check_region(LoopTeam *t, LStmt *s, bool in_row_list) {
    LoopColumns region = {
        .stmt = s, .first = s->body, .in_row_list = in_row_list, .barriers = t->barriers};
    bool is_region = s->body && loop_check_region(t, &region);
    bool is_same_range = is_region && s->range == region.range->range &&
                         s->at == region.range->at && s->ptr == region.range->ptr &&
                         (s->range == LR_SEGMENT || expr_eq(s->extent, region.range->extent)) &&
                         (s->range != LR_CHUNK || expr_eq(s->n_chunks, region.range->n_chunks));
    region.all_threads = s->sched.share == LS_TEAM;
    bool is_single_loop = is_region && !region.first->next && loop_is_columns(region.first);
    if (!is_same_range || region.one_pass != (s->sched.share == LS_EACH) ||
        (region.all_threads && !is_single_loop)) {
        set_team_fault(t, s, "what stands there does not share columns like this");
        return;
    }
    vec_push(t->a, &t->regions, region);
    record_region_accesses(t, &t->regions.v[t->regions.n - 1], region.first, NULL);
}

/* Records the accesses and regions of a statement list. is_row_list: it is the row's own list, not
 * nested in a loop. */
static void record_list(LoopTeam *t, LStmt *s, bool is_row_list) {
    for (; s && !t->fault; s = s->next) {
        if (s->kind == L_COLUMNS) {
            record_and_check_region(t, s, is_row_list);
            continue;
        }
        t->barriers += s->kind == L_BARRIER && is_row_list;
        if (loop_is_access(s)) record_access(t, s, NULL)->direct = is_row_list;
        if (loop_is_columns(s)) set_team_fault(t, s, "a loop over columns has no lanes");
        if (s->kind == L_LOCAL && s->buf->rank)
            set_team_fault(t, s, "a local array is of a whole row");
        if (loop_has_body(s)) record_list(t, s->body, false);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */
/* Whether two accesses have the column as the same index, at the same constant distance: the same
 * lane then makes both. */
static bool same_distance(const LoopAccess *x, const LoopAccess *y) {
    return x->column_dim == y->column_dim && x->distance.fn == y->distance.fn &&
           x->distance.offset == y->distance.offset && loop_same_range(x->loop, y->loop);
}

int loop_last_writing_region(const LoopTeam *t, const LBuf *b) {
    int last = -1;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || a->s->kind == L_LOAD) continue;
        if (a->region < 0 || a->reduces_columns || !t->regions.v[a->region].in_row_list) return -1;
        if (a->region > last) last = a->region;
    }
    return last;
}

/* Whether a barrier stands between region number `region` and the access. */
static bool is_behind_barrier(const LoopTeam *t, const LoopAccess *a, int region) {
    return !t->needs_barriers || a->barriers > t->regions.v[region].barriers;
}

bool loop_is_after_barrier(const LoopTeam *t, const LoopAccess *a) {
    if (a->s->kind != L_LOAD || a->s->buf->kind == LB_LOCAL) return false;
    int last_write = loop_last_writing_region(t, a->s->buf);
    if (last_write < 0 || !is_behind_barrier(t, a, last_write)) return false;
    if (a->region >= 0) return a->region > last_write;
    for (int i = 0; &t->accesses.v[i] < a; i++)
        if (t->accesses.v[i].region == last_write && t->accesses.v[i].s->buf == a->s->buf)
            return true;
    return false;
}

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

/* Whether a barrier stands between the loads of b and the first write. */
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

/* Whether the accesses of a team's threads to buffer b do not race: only the first thread accesses
 * an element, or each lane its own. Sets *lane_private where lanes have elements of their own. */
static bool buffer_is_race_free(const LoopTeam *t, const LBuf *b, bool *lane_private) {
    const LoopAccess *first = NULL;
    int n_accesses = 0, n_in_columns = 0, n_outside = 0, n_loads = 0;
    bool same_columns = true;
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != b || loop_is_after_barrier(t, a)) continue;
        if (a->round_robin) return false;
        n_accesses++;
        n_loads += a->s->kind == L_LOAD;
        if (!a->loop || a->reduces_columns) {
            n_outside++;
            continue;
        }
        n_in_columns++;
        if (!first) first = a;
        same_columns = same_columns && a->column_dim >= 0 && same_distance(a, first);
    }
    if (n_in_columns == 0) /* the first thread writes */
        return n_loads == 0 ||
               (loop_is_read_before_written(t, b) && has_barrier_before_write(t, b));
    if (n_accesses == 1 && first->s->kind != L_ACC)
        return n_loads == 0; /* each its own element, once */
    *lane_private = true;
    return n_outside == 0 && same_columns;
}

/* Whether the region uses the target of `acc`, a sum over columns, in no other way: until the
 * statement `fold` combines them, threads have only partial sums. */
static bool sum_is_unused(const LoopTeam *t, const LoopAccess *acc) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf != acc->s->buf || a->region != acc->region) continue;
        if (!a->reduces_columns || a->s->red != acc->s->red) return false;
    }
    return true;
}

/* Whether all accesses to a local array have the column at the same distance, so that each lane
 * needs only its own elements. */
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

bool loop_has_lane_private_elements(const LoopTeam *t) {
    bool lane_private = false;
    for (int i = 0; i < t->k->bufs.n; i++)
        if (t->k->bufs.v[i]->written) (void)buffer_is_race_free(t, t->k->bufs.v[i], &lane_private);
    return lane_private;
}

/* Checks that no access of the kernel races; records a fault otherwise. */
static void check_memory(LoopTeam *t) {
    const LKernel *k = t->k;
    bool lane_private;
    for (int i = 0; i < k->bufs.n; i++)
        if (k->bufs.v[i]->written && !buffer_is_race_free(t, k->bufs.v[i], &lane_private))
            set_team_fault(t, NULL,
                           arena_printf(t->a,
                                        "a thread could read or write what another one "
                                        "writes of %s",
                                        k->bufs.v[i]->name));
    for (int i = 0; i < k->locals.n; i++)
        if (k->locals.v[i]->rank && !array_is_lane_private(t, k->locals.v[i]))
            set_team_fault(t, NULL,
                           arena_printf(t->a, "lanes have other columns of %s in other places",
                                        k->locals.v[i]->name));
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].reduces_columns && !sum_is_unused(t, &t->accesses.v[i]))
            set_team_fault(t, t->accesses.v[i].s, "a sum over lanes is used before it is made");
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

bool loop_is_one_element_per_lane(const LoopTeam *t, const LBuf *b) {
    return !loop_one_element_fault(t, b);
}

/* Whether statements accumulate into b, other than sums over columns. */
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

bool loop_is_read_or_accumulated(const LoopTeam *t, const LBuf *b) {
    return is_accumulated(t, b) || is_loaded_unsynchronised(t, b);
}

bool loop_is_promoted(const LStmt *columns, const LBuf *b) {
    for (int i = 0; i < columns->in_registers.n; i++)
        if (columns->in_registers.v[i] == b) return true;
    return false;
}

/* The region that holds rows of b in registers; NULL = none does. */
static const LStmt *promoting_region(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->regions.n; i++)
        if (loop_is_promoted(t->regions.v[i].stmt, b)) return t->regions.v[i].stmt;
    return NULL;
}

/* Whether all accesses to b, other than loads after barriers, are in this region. */
static bool is_used_only_in(const LoopTeam *t, const LBuf *b, const LStmt *columns) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && !loop_is_after_barrier(t, a) &&
            t->regions.v[a->region].stmt != columns)
            return false;
    }
    return true;
}

/* Checks that each row that a region keeps in registers has one element per lane and is used in its
 * region only. */
static void check_promoted(LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++) {
        const LStmt *c = t->regions.v[i].stmt;
        for (int k = 0; k < c->in_registers.n; k++) {
            const LBuf *b = c->in_registers.v[k];
            if (!loop_is_one_element_per_lane(t, b) || !is_used_only_in(t, b, c))
                set_team_fault(
                    t, c, arena_printf(t->a, "a row of %s cannot be in registers there", b->name));
        }
    }
}

/* ---- entries that ways share ---------------------------------------------------------------- */
/* Whether the entries of a row must stay with one thread, since a loop over them accumulates in
 * memory that is not held in registers, or needs a sum over lanes. */
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

/* Whether s accumulates into a register of a column or of the row, which no other statement of the
 * loop does; adds it to the loop's targets. Each way can then have a partial sum. */
static bool is_private_sum(EntryLoop *loop, const LStmt *s) {
    const LBuf *b = s->buf;
    bool in_register = b->kind == LB_LOCAL || promoting_region(loop->t, b);
    if (s->kind != L_ACC || !in_register) return false;
    for (int i = 0; i < loop->n; i++)
        if (loop->target[i] == b) return false;
    if (loop->n == LOOP_TARGETS_MAX) return false;
    loop->target[loop->n++] = b;
    return true;
}

/* Whether s loads something that no statement of this loop, and no thread at this time, writes. */
static bool is_safe_read(const EntryLoop *loop, const LStmt *s) {
    const LBuf *b = s->buf;
    if (s->kind != L_LOAD) return false;
    if (b->kind == LB_LOCAL) return b->rank == 0;
    const int last_write = b->written ? loop_last_writing_region(loop->t, b) : -1;
    return !b->written || (last_write >= 0 && loop->run > last_write);
}

/* The first statement whose effect is neither such a sum nor a safe read; NULL = there is none. */
static const LStmt *other_effect(EntryLoop *loop, const LStmt *s) {
    for (; s; s = s->next) {
        const LStmt *inner = loop_has_body(s) ? other_effect(loop, s->body) : NULL;
        if (inner) return inner;
        if (!loop_is_access(s)) continue;
        bool is_own = s->buf->kind == LB_LOCAL && loop_declares(loop->body, s->buf);
        if (!is_own && !is_safe_read(loop, s) && !is_private_sum(loop, s)) return s;
    }
    return NULL;
}

/* Whether the loop has enough iterations (32, or an unknown number) to be worth sharing. */
static bool is_long_loop(const LStmt *s) {
    int64_t n;
    return s->range != LR_EXTENT || !expr_is_const(s->extent, &n) || n >= 32;
}

/* The effect of statement s on its buffer, in words. */
static const char *effect_text(const LoopTeam *t, const LStmt *s) {
    const char *name = s->buf->name;
    if (s->kind == L_STORE) return arena_printf(t->a, "they store %s", name);
    if (s->kind == L_LOAD) return arena_printf(t->a, "they read %s, which the row writes", name);
    return arena_printf(t->a, "they add to %s, which is in no register of its own", name);
}

const char *loop_private_fault(const LoopTeam *t, const LStmt *s, const LBuf **target, int *n) {
    EntryLoop loop = {.t = t, .body = s->body, .run = -1, .target = target};
    if (s->kind != L_FOR || loop_is_columns(s)) return "it is a loop over columns";
    if (!is_long_loop(s)) return "they are too few";
    if (t->serial_entries) return "a row of memory, or a sum over lanes, is one thread's";
    for (int i = 0; i < t->regions.n && loop.run < 0; i++)
        if (is_in_region_list(&t->regions.v[i], s)) loop.run = i;
    if (loop.run < 0) return "another loop is around them";
    const LStmt *other = other_effect(&loop, s->body);
    if (other) return effect_text(t, other);
    for (int i = 0; i < loop.n; i++)
        if (loop_loads(s->body, target[i]))
            return arena_printf(t->a, "they read the sum %s", target[i]->name);
    *n = loop.n;
    return loop.n ? NULL : "they add up nothing";
}

int loop_private_sums(const LoopTeam *t, const LStmt *s, const LBuf **target) {
    int n = 0;
    return loop_private_fault(t, s, target, &n) ? 0 : n;
}

/* How the statements allow the iterations of loop s to be divided among a team's threads. region:
 * the region around s, or NULL; in_region_list: s stands in its own list. */
static LShare allowed_share(const LoopTeam *t, const LStmt *s, const LoopColumns *region,
                            bool in_region_list) {
    const LBuf *target[LOOP_TARGETS_MAX];
    if (loop_is_columns(s)) {
        if (s->range == LR_SEGMENT)
            return region && region->all_threads && loop_only_sums_leave(t, s) ? LS_TEAM : LS_EACH;
        return region && loop_is_round_robin(region, s) ? LS_LANES : LS_EACH;
    }
    bool is_shared = in_region_list && s->sched.share == LS_WAYS && loop_private_sums(t, s, target);
    return is_shared ? LS_WAYS : LS_EACH;
}

/* Checks that the text divides each loop among threads as its statements allow. */
static void check_shares(LoopTeam *t, const LStmt *s, const LoopColumns *region,
                         bool in_region_list) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->sched.share != allowed_share(t, s, region, in_region_list))
            set_team_fault(t, s, "its threads cannot share a loop like this");
        if (s->sched.split_entries && !loop_may_split(t, s))
            set_team_fault(t, s, "blocks cannot share a loop like this");
        if (s->sched.ahead && loop_ahead_fault(t, s))
            set_team_fault(t, s, "a loop like this cannot be loaded ahead");
        const LoopColumns *inner_region = region;
        for (int i = 0; s->kind == L_COLUMNS && i < t->regions.n; i++)
            if (t->regions.v[i].stmt == s) inner_region = &t->regions.v[i];
        if (loop_has_body(s)) check_shares(t, s->body, inner_region, s->kind == L_COLUMNS);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */
LoopTeam loop_team(Arena *a, const Target *on, const LKernel *k, bool needs_barriers) {
    LoopTeam t = {
        .a = a, .on = on, .k = k, .columns = k->threads.columns, .needs_barriers = needs_barriers};
    const LStmt *parallel = loop_parallel(k);
    if (loop_is_joined(k)) set_team_fault(&t, NULL, "several loops share its launch");
    LStmt *row = k->body;
    if (parallel) row = parallel->body;
    for (LStmt *inner_loop; (inner_loop = loop_collapsed(row));) row = inner_loop->body;
    record_list(&t, row, true);
    if (!t.fault && t.regions.n == 0)
        set_team_fault(&t, NULL, "nothing in it can be shared out to lanes");
    if (!t.fault) check_memory(&t);
    if (!t.fault) t.serial_entries = has_serial_entries(&t);
    return t;
}

/* Checks that each partial sum is combined by a statement `fold`, and that there are no other such
 * statements. */
static void check_folds(LoopTeam *t, const LoopFolds *all, const LStmt *s) {
    if (s && s->kind == L_FOLD) set_team_fault(t, s, "a fold is behind nothing that is shared");
    for (; s; s = s->next) {
        if (!loop_has_required_folds(all, s))
            set_team_fault(t, s, "what its threads add up each by itself is not folded behind it");
        if (loop_has_body(s)) check_folds(t, all, s->body);
    }
}

bool loop_team_is_race_free(LoopTeam *t) {
    if (!t->fault) check_promoted(t);
    if (!t->fault) check_shares(t, t->k->body, NULL, false);
    if (t->fault) return false;
    const LoopFolds all = loop_required_folds(t);
    check_folds(t, &all, t->k->body);
    return !t->fault;
}
