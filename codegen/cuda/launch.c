/* The host function of a kernel: argument table and size table in, one launch out.
 *
 *     extern "C" int NAME_cuda(void *const *arg, const int64_t *n, void *stream);
 *
 * Returns a cudaError_t.  Here the sizes are known, and with them how wide teams should be. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* An upper bound of size expression e that stays valid when each size in it is rounded up
 * separately (codegen/plan_passes/plan_buckets.c). The difference of two rounded sizes may be less
 * than the difference of the true ones, so subtracted terms are dropped. */
static const Expr *size_bound(Arena *a, const Expr *e) {
    if (e->kind == EX_CONST) return e->c < 0 ? expr_const(a, 0) : e;
    if (e->kind == EX_SYM) return e;
    const Expr *x = size_bound(a, e->a), *y = size_bound(a, e->b);
    switch (e->kind) {
    case EX_ADD:
        return expr_add(a, x, y);
    case EX_MUL:
        return expr_mul(a, x, y);
    case EX_CEILDIV:
        return expr_ceildiv(a, x, e->b);
    case EX_MAX:
        return expr_max(a, x, y);
    default:
        return expr_min(a, x, y);
    }
}

/* The number of iterations of the loop. as_upper_bound: a bound that holds for rounded sizes, too.
 */
static const Expr *loop_iterations(CuFn *f, const LStmt *loop, bool as_upper_bound) {
    return as_upper_bound ? size_bound(f->a, loop->extent) : loop->extent;
}

/* Text of the total number of iterations of the kernel's joined loops. */
static const char *joined_extent_text(CuFn *f, bool as_upper_bound) {
    const Expr *n = expr_const(f->a, 0);
    for (const LStmt *s = f->k->body; s; s = s->next)
        if (s->kind == L_FOR) n = expr_add(f->a, n, loop_iterations(f, s, as_upper_bound));
    return cu_size_text(f, n);
}

/* Text of the number of parallel iterations, which threads, teams or blocks share. */
static const char *extent_text(CuFn *f, bool as_upper_bound) {
    const CuSched *c = &f->sched;
    if (loop_is_behind(f->k)) return "GN_TAIL_BLOCKS * GN_THREADS"; /* the device counts them */
    if (loop_is_joined(f->k)) return joined_extent_text(f, as_upper_bound);
    if (!c->parallel_loop) return "1";
    const char *n = cu_size_text(f, loop_iterations(f, c->parallel_loop, as_upper_bound));
    for (int i = 0; i < c->n_collapsed; i++)
        n = arena_printf(f->a, "(%s) * (%s)", n,
                         cu_size_text(f, loop_iterations(f, c->collapsed[i], as_upper_bound)));
    return n;
}

/* Text of the number of parallel iterations at the actual sizes. */
const char *cu_extent_text(CuFn *f) {
    return extent_text(f, false);
}

/* Host text of the number of iterations of a loop. Of a loop over a row's entries it is the mean
 * over all rows: entries / rows. */
static const char *iterations_text(CuFn *f, const LStmt *s) {
    const char *n = NULL;
    if (s->range == LR_EXTENT) return cu_host_size_text(f, s->extent);
    if (s->range == LR_CHUNK) {
        n = cu_host_size_text(f, s->extent);
        return arena_printf(f->a, "gn_ceildiv(%s, %s)", n, cu_host_size_text(f, s->n_chunks));
    }
    const Map *map = s->ptr->map;
    n = cu_host_size_text(f, map->from->size);
    return arena_printf(f->a, "gn_ceildiv(%s, %s)", n, cu_host_size_text(f, map->to->size));
}

/* Host text of the number of feature columns of the widest region, in packs: more lanes than that
 * would be idle. NULL = there is no region with lanes. */
static const char *widest_columns_text(CuFn *f) {
    const char *widest = NULL;
    for (int i = 0; i < f->team.regions.n; i++) {
        if (loop_goes_to_all_threads(&f->team, &f->team.regions.v[i])) continue;
        const char *width = iterations_text(f, f->team.regions.v[i].range);
        int pack = cu_region_pack(f, &f->team.regions.v[i]);
        if (pack > 1) width = arena_printf(f->a, "gn_ceildiv(%s, %d)", width, pack);
        widest = widest ? arena_printf(f->a, "gn_max64(%s, %s)", widest, width) : width;
    }
    return widest;
}

/* Host text of the mean number of entries per row that the ways of a team share; with several
 * relations the largest of their means. */
static const char *mean_entries_text(CuFn *f) {
    const LStmt *loop[LOOP_TARGETS_MAX];
    const int n = loop_shared_entry_loops(&f->team, loop);
    if (n == 0) return iterations_text(f, f->sched.shared_loop);
    const char *most = NULL;
    for (int i = 0; i < n; i++) {
        const char *mean = iterations_text(f, loop[i]);
        bool known = false; /* edges and what runs against them have one mean */
        for (int k = 0; k < i; k++) known = known || !strcmp(mean, iterations_text(f, loop[k]));
        if (!known) most = most ? arena_printf(f->a, "gn_max64(%s, %s)", most, mean) : mean;
    }
    return most;
}

/* Emits host code that chooses the number of lanes (from the widths of rows) and ways (from the
 * mean number of entries) of a team. Returns the text of a team's number of threads. */
static const char *emit_team_sizes(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *lanes = c->lanes ? arena_printf(f->a, "%d", c->lanes) : "gn_lanes";
    const char *widest = c->lanes ? NULL : widest_columns_text(f);
    if (widest) cu_line(f, "int gn_lanes = gn_power_of_2(%s, 32);", widest);
    if (!c->lanes && !widest) cu_line(f, "int gn_lanes = 32;");
    if (c->kind == CU_BLOCK) return "GN_THREADS";
    if (!c->shared_loop) return lanes;
    cu_line(f, "int gn_ways = gn_ways_for(%s, %s);", mean_entries_text(f), lanes);
    return arena_printf(f->a, "%s * gn_ways", lanes);
}

/* Host text of the number of threads to launch. team_threads: the threads of a team; NULL = a
 * thread per iteration or pack. A launch recorded for rounded sizes starts as many as the largest
 * batch needs. */
static const char *thread_count_text(CuFn *f, const char *team_threads) {
    const int pack = team_threads ? 1 : f->sched.pack;
    const char *bound = extent_text(f, true), *extent = "gn_extent";
    if (f->has_own_rows && pack > 1)
        return arena_printf(f->a, "gn_ceildiv(gn_extent, %d) - gn_own.first / %d", pack, pack);
    if (f->has_own_rows) extent = "(gn_extent - gn_own.first)";
    if (f->reads_device_sizes && strcmp(bound, cu_extent_text(f)) != 0)
        extent = arena_printf(f->a, "(gn_n ? %s : gn_extent)", bound);
    if (team_threads) return arena_printf(f->a, "%s * %s", extent, team_threads);
    return pack > 1 ? arena_printf(f->a, "gn_ceildiv(%s, %d)", extent, pack) : extent;
}

/* Emits a host variable for memory that a stage leaves to the next, or finds; where pieces are as
 * many as the sums that they are of, for these.  Memory that this stage does not access has its
 * place, too, as others access it. */
static void emit_room(CuFn *f, const LBuf *b, const char *type, bool is_accessed) {
    const LBuf *of = f->k->bufs.v[b->room_of];
    const char *n[2];
    for (int i = 0; i < 2; i++) {
        const LBuf *x = i ? b : of;
        const Expr *count = expr_const(f->a, 1);
        for (int d = 0; d < x->rank; d++) count = expr_mul(f->a, count, x->dim[d]);
        n[i] = cu_host_size_text(f, count);
    }
    const char *to =
        is_accessed ? arena_printf(f->a, "%s%s = (%s)", type, f->buf[b->id], type) : "";
    cu_line(f, "%sgn_room_for(arg[%d], %s, &gn_free, %s, sizeof(%s));", to, of->id, n[0], n[1],
            cu_mem_type(b->dt));
}

/* The place of a device's memory for stages among what the host function is given. */
static int room_argument(const CuFn *f) {
    return loop_n_arguments(f->k) + f->has_condition;
}

/* Emits a host variable for each parameter of the kernel, read from the argument and size tables,
 * and appends their addresses ("&x, ") to `names`, in the order of cu_emit_signature(). */
static void emit_arguments(CuFn *f, StrBuf *names) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    const int room = room_argument(f);
    if (loop_n_arguments(k) < k->bufs.n) cu_line(f, "char *gn_free = (char *)arg[%d];", room);
    for (int i = 0; i < k->bufs.n; i++) {
        const bool is_accessed = !f->is_argument || f->is_argument[i];
        const LBuf *b = k->bufs.v[i];
        const char *type =
            arena_printf(f->a, "%s%s *", b->written ? "" : "const ", cu_mem_type(b->dt));
        if (b->kind == LB_ROOM)
            emit_room(f, b, type, is_accessed);
        else if (is_accessed)
            cu_line(f, "%s%s = (%s)arg[%d];", type, f->buf[i], type, i);
        if (is_accessed) sb_printf(names, "&%s, ", f->buf[i]);
    }
    if (f->has_condition) {
        cu_line(f, "const unsigned char *gn_when = (const unsigned char *)arg[%d];",
                loop_n_arguments(k));
        sb_puts(names, "&gn_when, ");
    }
    if (cu_splits_rows(f)) cu_line(f, "float *gn_room = (float *)arg[%d];", room);
    if (f->reads_device_sizes) {
        cu_line(f, "const int64_t *gn_n = (const int64_t *)arg[%d];", room + 1);
        sb_puts(names, "&gn_n, ");
    }
    for (int i = 0; i < m->syms.n; i++) {
        if (!f->sym[i]) continue;
        cu_line(f, "int64_t %s = n[%d];", f->sym[i], i);
        sb_printf(names, "&%s, ", f->sym[i]);
    }
}

/* Host text of the number of entries that blocks share. */
static const char *split_entries_text(CuFn *f) {
    return cu_host_size_text(f, f->sched.split[0]->ptr->map->from->size);
}

/* Emits the host variable gn_part: how many entries a part of a long row has; 0 = none has parts.
 */
static void emit_part_size(CuFn *f) {
    const LSched *s = &f->sched.split[0]->sched;
    const char *entries = split_entries_text(f), *heads = cu_host_size_text(f, cu_heads(f));
    if (s->few_entries) /* of all rows, whoever has them */
        cu_line(f, "const bool gn_few = %s <= %d;",
                f->has_own_rows ? cu_extent_text(f) : "gn_extent", s->few_rows);
    cu_line(f, "int64_t gn_part = gn_part_of_entries(%s, %s, %s,", entries,
            cu_host_size_text(f, cu_partial_numbers(f)), heads);
    if (s->few_entries)
        cu_line(f, "    gn_few ? %d : %d, gn_few ? %lld : %d);", s->few_entries, s->split_entries,
                16LL * s->few_entries, s->split_from);
    else
        cu_line(f, "    %d, %d);", s->split_entries, s->split_from);
}

/* Emits the launches of NAME_parts, in which several blocks sum parts of long rows before the
 * kernel itself runs: one for each time that a row goes through its entries. */
static void emit_parts_launch(CuFn *f, const char *names) {
    const bool several = f->sched.n_split > 1;
    emit_part_size(f);
    if (several)
        cu_open(f, "for (int gn_loop = 0; gn_part && gn_loop < %d; gn_loop++) {", f->sched.n_split);
    else
        cu_open(f, "if (gn_part) {");
    cu_line(f, "void *gn_parts[] = {%s&gn_room, &gn_part, %s%s&gn_extent};", names ? names : "",
            several ? "&gn_loop, " : "", f->has_own_rows ? "&gn_own, " : "");
    cu_line(f, "int64_t gn_blocks = gn_ceildiv(%s, gn_part) * (%s);", split_entries_text(f),
            cu_host_size_text(f, cu_heads(f)));
    cu_line(f, "int gn_error = gn_launch(%s_parts, gn_blocks * GN_THREADS, gn_parts, stream);",
            f->k->name);
    cu_line(f, "if (gn_error) return gn_error;");
    cu_close(f);
}

bool cu_reads_room(const LKernel *k) {
    const int n = loop_n_arguments(k);
    for (int i = n; i < k->bufs.n; i++)
        if (k->bufs.v[i]->written) return false;
    return n < k->bufs.n;
}

/* Emits the launch of one kernel. is_last: its error code is what the host function returns. */
static void emit_launch(CuFn *f, bool is_last) {
    const CuSched *c = &f->sched;
    StrBuf names = sb_new(f->a);
    emit_arguments(f, &names);
    const char *team_threads = c->kind == CU_THREAD ? NULL : emit_team_sizes(f);
    if (c->kind != CU_THREAD && !c->lanes) sb_puts(&names, "&gn_lanes, ");
    cu_line(f, "int64_t gn_extent = %s;", cu_extent_text(f));
    if (f->has_own_rows) /* behind the condition and the room, as the host driver has it */
        cu_line(f, "GnOwn gn_own = gn_own_rows((const RtOwnRows *)arg[%d], &gn_extent);",
                room_argument(f) + 1);
    if (cu_splits_rows(f)) emit_parts_launch(f, names.s);
    if (c->kind == CU_TEAM && c->shared_loop) sb_puts(&names, "&gn_ways, ");
    if (cu_splits_rows(f)) sb_puts(&names, "&gn_room, &gn_part, ");
    if (f->has_own_rows) sb_puts(&names, "&gn_own, ");
    cu_line(f, "void *gn_args[] = {%s&gn_extent};", names.s ? names.s : "");
    const char *n_threads = thread_count_text(f, team_threads);
    const bool may_be_left_out = cu_reads_room(f->k);
    if (may_be_left_out) cu_open(f, "if (gn_free != (char *)arg[%d]) {", room_argument(f));
    cu_line(f, "%s gn_launch(%s, %s, gn_args, stream);",
            is_last ? "return" : "int gn_error =", f->k->name, n_threads);
    if (!is_last) cu_line(f, "if (gn_error) return gn_error;");
    if (may_be_left_out) cu_close(f);
    if (may_be_left_out && is_last) cu_line(f, "return 0;");
}

/* Emits the host function NAME_cuda, which launches the stages of a kernel one after the other. */
void cu_emit_launch(CuFn *const *stage, int n, const char *name) {
    CuFn *f = stage[0];
    f->depth = 0;
    cu_open(f, "extern \"C\" int %s_cuda(void *const *arg, const int64_t *n, void *stream) {",
            name);
    for (int i = 0; i + 1 < n; i++) {
        stage[i]->depth = 1;
        cu_open(stage[i], "{");
        emit_launch(stage[i], false);
        cu_close(stage[i]);
    }
    stage[n - 1]->depth = 1;
    emit_launch(stage[n - 1], true);
    f->depth = 1;
    cu_close(f);
    cu_line(f, "%s", "");
}

/* ---- kernels of one form in one launch ------------------------------------------------------ */
/* Host text of the number of parallel iterations of a group's kernel. */
static const char *member_extent_text(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *n = cu_host_size_text(f, c->parallel_loop->extent);
    for (int i = 0; i < c->n_collapsed; i++)
        n = arena_printf(f->a, "(%s) * (%s)", n, cu_host_size_text(f, c->collapsed[i]->extent));
    return n;
}

/* Appends the arguments of a group's kernel that are in the tables of the host function, whose
 * place there begins with `first`; those of sizes are the same for all kernels. */
static void put_table_arguments(CuFn *f, int first, int room, StrBuf *values) {
    const LKernel *k = f->k;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!f->is_argument || f->is_argument[i])
            sb_printf(values, "(%s%s *)arg[%d], ", b->written ? "" : "const ", cu_mem_type(b->dt),
                      first + i);
    }
    if (f->reads_device_sizes) sb_printf(values, "(const int64_t *)arg[%d], ", room + 1);
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) sb_printf(values, "n[%d], ", i);
}

/* Emits the host code that adds a kernel to the launch of its group, or to another one, if there is
 * no memory left for parts of its rows. */
static void emit_member(CuFn *f, const char *name, int first, int room) {
    const CuSched *c = &f->sched;
    const bool splits = cu_splits_rows(f);
    StrBuf values = sb_new(f->a);
    f->depth = 2;
    cu_open(f, "{");
    put_table_arguments(f, first, room, &values);
    const char *team = c->kind == CU_THREAD ? NULL : emit_team_sizes(f);
    if (c->kind != CU_THREAD && !c->lanes) sb_puts(&values, "gn_lanes, ");
    if (c->kind == CU_TEAM && c->shared_loop) sb_puts(&values, "gn_ways, ");
    const char *threads = team ? arena_printf(f->a, "gn_extent * %s", team)
                               : arena_printf(f->a, "gn_ceildiv(gn_extent, %d)", c->pack);
    cu_line(f, "const int64_t gn_extent = %s;", member_extent_text(f));
    if (splits) {
        emit_part_size(f);
        cu_line(f, "const int64_t gn_parts = gn_part ? gn_ceildiv(%s, gn_part) : 0;",
                split_entries_text(f));
        cu_line(f, "const int64_t gn_numbers = 2 * gn_parts * (%s);",
                cu_host_size_text(f, cu_partial_numbers(f)));
        cu_line(f, "int gn_error = 0;");
        cu_line(f, "if (!gn_has_room(gn, gn_numbers)) gn_error = %s_launch(&gn, &gn_all, stream);",
                name);
        cu_line(f, "if (gn_error) return gn_error;");
        sb_printf(&values, "(float *)arg[%d] + gn.numbers, gn_part, ", room);
    }
    cu_line(f, "gn_all.at[gn.n] = {%sgn_extent};", values.s ? values.s : "");
    cu_line(f, "gn_add_to_group(&gn, %s, %s);", threads,
            splits ? arena_printf(f->a, "gn_parts * (%s), gn_numbers",
                                  cu_host_size_text(f, cu_heads(f)))
                   : "0, 0");
    cu_close(f);
}

/* Emits the host function NAME_launch, which launches what was added to a group so far. */
static void emit_launch_of_group(CuFn *f) {
    const char *name = f->k->name;
    f->depth = 0;
    cu_open(f, "static int %s_launch(GnGroup *gn, %s_all *gn_all, void *stream) {", name, name);
    if (cu_splits_rows(f)) {
        cu_line(f, "const int gn_error = gn_launch_parts(*gn, gn_all, %s_parts, %d, stream);", name,
                f->sched.n_split);
        cu_line(f, "if (gn_error) return gn_error;");
    }
    cu_line(f, "return gn_launch_group(gn, gn_all, %s, stream);", name);
    cu_close(f);
    cu_line(f, "%s", "");
}

void cu_emit_group_launch(CuFn **const *member, int n, const char *name) {
    const PGroup *g = member[0][0]->group;
    CuFn *f = member[0][0];
    int room = 0; /* behind the arguments of all */
    for (int i = 0; i < g->steps.n; i++) room += g->steps.v[i]->n_bufs;
    for (int i = 0; i < n; i++) emit_launch_of_group(member[i][0]);
    cu_open(f, "extern \"C\" int %s_cuda(void *const *arg, const int64_t *n, void *stream) {",
            name);
    cu_line(f, "GnGroup gn = {0, 0, 0, 0};");
    cu_line(f, "int gn_status = 0;");
    for (int i = 0; i < n; i++) {
        f->depth = 1;
        cu_open(f, "{");
        cu_line(f, "%s_all gn_all;", member[i][0]->k->name);
        for (int k = 0, first = 0; k < g->steps.n; first += g->steps.v[k++]->n_bufs)
            emit_member(member[i][k], member[i][0]->k->name, first, room);
        f->depth = 2;
        cu_line(f, "gn_status = %s_launch(&gn, &gn_all, stream);", member[i][0]->k->name);
        cu_line(f, "if (gn_status) return gn_status;");
        cu_close(f);
    }
    cu_line(f, "return 0;");
    cu_close(f);
    cu_line(f, "%s", "");
}
