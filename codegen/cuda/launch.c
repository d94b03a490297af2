/* The host function of a kernel: argument table and size table in, one launch out.
 *
 *     extern "C" int NAME_cuda(void *const *arg, const int64_t *n, void *stream);
 *
 * Returns a cudaError_t.  Here the sizes are known, and with them how wide teams should be. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* An upper bound of e that stays valid when sizes are rounded up one by one
 * (codegen/plan_passes/plan_buckets.c). The difference of two rounded sizes may be less than that
 * of the batch's own, even nothing: what is subtracted does not count. */
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

/* The number of iterations of the loop; most: its upper bound. */
static const Expr *loop_size(CuFn *f, const LStmt *loop, bool bound) {
    return bound ? size_bound(f->a, loop->extent) : loop->extent;
}

/* Text of the sum of the extents of joined loops. */
static const char *joined_extent_text(CuFn *f, bool bound) {
    const Expr *n = expr_const(f->a, 0);
    for (const LStmt *s = f->k->body; s; s = s->next)
        if (s->kind == L_FOR) n = expr_add(f->a, n, loop_size(f, s, bound));
    return cu_expr(f, n);
}

/* Text of the number of iterations that threads, teams or blocks share. */
static const char *extent_text(CuFn *f, bool bound) {
    const CuSched *c = &f->sched;
    if (loop_is_behind(f->k)) return "GN_TAIL_BLOCKS * GN_THREADS"; /* the device counts them */
    if (loop_is_joined(f->k)) return joined_extent_text(f, bound);
    if (!c->parallel_loop) return "1";
    const char *n = cu_expr(f, loop_size(f, c->parallel_loop, bound));
    for (int i = 0; i < c->n_collapsed; i++)
        n = arena_printf(f->a, "(%s) * (%s)", n, cu_expr(f, loop_size(f, c->collapsed[i], bound)));
    return n;
}

/* The same of the sizes as they are. */
const char *cu_extent_text(CuFn *f) {
    return extent_text(f, false);
}

/* Text of the number of iterations of a loop; of a loop over a row's entries their mean. */
static const char *iterations_text(CuFn *f, const LStmt *s) {
    const char *n = NULL;
    if (s->range == LR_EXTENT) return cu_host_expr(f, s->extent);
    if (s->range == LR_CHUNK) {
        n = cu_host_expr(f, s->extent);
        return arena_printf(f->a, "gn_ceildiv(%s, %s)", n, cu_host_expr(f, s->n_chunks));
    }
    const Map *m = s->ptr->map;
    n = cu_host_expr(f, m->from->size);
    return arena_printf(f->a, "gn_ceildiv(%s, %s)", n, cu_host_expr(f, m->to->size));
}

/* Text of the number of columns of the widest region: so many lanes are of use. */
static const char *widest_range_text(CuFn *f) {
    const char *n = NULL;
    for (int i = 0; i < f->team.regions.n; i++) {
        if (loop_goes_to_all_threads(&f->team, &f->team.regions.v[i])) continue;
        const char *m = iterations_text(f, f->team.regions.v[i].range);
        int pack = cu_region_pack(f, &f->team.regions.v[i]);
        if (pack > 1) m = arena_printf(f->a, "gn_ceildiv(%s, %d)", m, pack);
        n = n ? arena_printf(f->a, "gn_max64(%s, %s)", n, m) : m;
    }
    return n;
}

/* Text of the mean number of entries that the ways of a row share, of the relation with most. */
static const char *entries_text(CuFn *f) {
    const LStmt *loop[LOOP_TARGETS_MAX];
    const int n = loop_shared_entry_loops(&f->team, loop);
    if (n == 0) return iterations_text(f, f->sched.shared_loop);
    const char *bound = NULL;
    for (int i = 0; i < n; i++) {
        const char *mean = iterations_text(f, loop[i]);
        bool known = false; /* edges and what runs against them have one mean */
        for (int k = 0; k < i; k++) known = known || !strcmp(mean, iterations_text(f, loop[k]));
        if (!known) bound = bound ? arena_printf(f->a, "gn_max64(%s, %s)", bound, mean) : mean;
    }
    return bound;
}

/* Emits the choice of lanes and ways, which depends on sizes known at launch; returns the text of a
 * team's number of threads. */
static const char *emit_team_sizes(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *lanes = c->lanes ? arena_printf(f->a, "%d", c->lanes) : "gn_lanes";
    const char *bound = c->lanes ? NULL : widest_range_text(f);
    if (bound) cu_line(f, "int gn_lanes = gn_power_of_2(%s, 32);", bound);
    if (!c->lanes && !bound) cu_line(f, "int gn_lanes = 32;");
    if (c->kind == CU_BLOCK) return "GN_THREADS";
    if (!c->shared_loop) return lanes;
    cu_line(f, "int gn_ways = gn_ways_for(%s, %s);", entries_text(f), lanes);
    return arena_printf(f->a, "%s * gn_ways", lanes);
}

/* Text of the number of threads to launch. size: the threads of a team; NULL = there are no teams.
 * A launch recorded for rounded sizes has as many as the largest batch needs. */
static const char *thread_count_text(CuFn *f, const char *size) {
    const int pack = size ? 1 : f->sched.pack;
    const char *bound = extent_text(f, true), *n = "gn_extent";
    if (f->reads_device_sizes && strcmp(bound, cu_extent_text(f)) != 0)
        n = arena_printf(f->a, "(gn_n ? %s : gn_extent)", bound);
    if (size) return arena_printf(f->a, "%s * %s", n, size);
    return pack > 1 ? arena_printf(f->a, "gn_ceildiv(%s, %d)", n, pack) : n;
}

/* Emits a variable for each parameter of the kernel, from the argument and size tables, and appends
 * their addresses to `names`. */
static void emit_arguments(CuFn *f, StrBuf *names) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    for (int i = 0; i < k->bufs.n; i++) {
        if (f->is_argument && !f->is_argument[i]) continue;
        const LBuf *b = k->bufs.v[i];
        const char *type =
            arena_printf(f->a, "%s%s *", b->written ? "" : "const ", cu_mem_type(b->dt));
        cu_line(f, "%s%s = (%s)arg[%d];", type, f->buf[i], type, i);
        sb_printf(names, "&%s, ", f->buf[i]);
    }
    if (f->has_condition) {
        cu_line(f, "const unsigned char *gn_when = (const unsigned char *)arg[%d];", k->bufs.n);
        sb_puts(names, "&gn_when, ");
    }
    if (f->splits_rows)
        cu_line(f, "float *gn_room = (float *)arg[%d];", k->bufs.n + f->has_condition);
    if (f->reads_device_sizes) {
        cu_line(f, "const int64_t *gn_n = (const int64_t *)arg[%d];",
                k->bufs.n + f->has_condition + 1);
        sb_puts(names, "&gn_n, ");
    }
    for (int i = 0; i < m->syms.n; i++) {
        if (!f->sym[i]) continue;
        cu_line(f, "int64_t %s = n[%d];", f->sym[i], i);
        sb_printf(names, "&%s, ", f->sym[i]);
    }
}

/* Emits the launch of NAME_parts, in which several blocks sum parts of long rows, ahead of the
 * kernel. */
static void emit_parts_launch(CuFn *f, const char *names) {
    const Map *m = f->sched.shared_loop->ptr->map;
    const char *entries = cu_host_expr(f, m->from->size);
    const LSched *by = &f->sched.shared_loop->sched;
    cu_line(f, "int64_t gn_part = gn_part_of_entries(%s, %s, %d, %d);", entries,
            cu_partial_size_text(f, true), by->split_entries, by->split_from);
    cu_open(f, "if (gn_part) {");
    cu_line(f, "void *gn_parts[] = {%s&gn_room, &gn_part, &gn_extent};", names ? names : "");
    cu_line(f,
            "int gn_error = gn_launch(%s_parts, gn_ceildiv(%s, gn_part) * GN_THREADS, gn_parts, "
            "stream);",
            f->k->name, entries);
    cu_line(f, "if (gn_error) return gn_error;");
    cu_close(f);
}

/* Emits the launch of one kernel. last: its error code is what the host function returns. */
static void emit_launch(CuFn *f, bool is_last) {
    const CuSched *c = &f->sched;
    StrBuf names = sb_new(f->a);
    emit_arguments(f, &names);
    const char *size = c->kind == CU_THREAD ? NULL : emit_team_sizes(f);
    if (c->kind != CU_THREAD && !c->lanes) sb_puts(&names, "&gn_lanes, ");
    cu_line(f, "int64_t gn_extent = %s;", cu_extent_text(f));
    if (f->splits_rows) emit_parts_launch(f, names.s);
    if (c->kind == CU_TEAM && c->shared_loop) sb_puts(&names, "&gn_ways, ");
    if (f->splits_rows) sb_puts(&names, "&gn_room, &gn_part, ");
    cu_line(f, "void *gn_args[] = {%s&gn_extent};", names.s ? names.s : "");
    const char *n = thread_count_text(f, size);
    cu_line(f, "%s gn_launch(%s, %s, gn_args, stream);",
            is_last ? "return" : "int gn_error =", f->k->name, n);
    if (!is_last) cu_line(f, "if (gn_error) return gn_error;");
}

/* Emits the host function that launches the stages of a kernel one after the other. */
void cu_launch(CuFn *const *stage, int n, const char *name) {
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
