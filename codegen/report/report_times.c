/* --report=times: how long each launch and each product is predicted to take on the machines of the
 * target's table, before any of them has run it. docs/cuda.md, "Predicted times", says what is
 * assumed.
 *
 * A launch takes the longest of what memory, the cache, waiting for loads, issuing instructions,
 * arithmetic and its longest row take, and the time of a node of a recording. */
#include "codegen/report/report.h"

#include <string.h>

enum {
    MACHINES_MAX = 4,
    ASSUMED_REGISTERS = 64, /* where the assembler was not asked */
    ISSUED_PER_CYCLE = 4    /* instructions of warps, by a multiprocessor */
};

/* What bounds a time from below. */
typedef enum {
    BY_MEMORY,
    BY_CACHE,
    BY_WAITING,
    BY_ISSUE,
    BY_ARITHMETIC,
    BY_LONGEST_ROW,
    BY_PRODUCT,
    N_BOUNDS
} Bound;
static const struct {
    const char *text, *key;
} bound_words[N_BOUNDS] = {
    [BY_MEMORY] = {"memory", "memory_ns"},
    [BY_CACHE] = {"the cache", "cache_ns"},
    [BY_WAITING] = {"waiting for loads", "waiting_ns"},
    [BY_ISSUE] = {"instructions", "instructions_ns"},
    [BY_ARITHMETIC] = {"arithmetic", "arithmetic_ns"},
    [BY_LONGEST_ROW] = {"the longest row", "longest_row_ns"},
    [BY_PRODUCT] = {"the library's tiles", "tiles_ns"},
};

/* A predicted time, and what it is made of; times in seconds. */
typedef struct {
    double bound[N_BOUNDS];
    double all; /* the longest of these, and the launch */
    double use; /* .. of the whole machine: as long as it takes beside enough others */
    Bound by;
    /* of a launch of a kernel: */
    double waves;     /* how often all blocks fill the machine */
    double in_flight; /* bytes under way to a multiprocessor, on average, while it only waits */
} Time;

/* One row of the report: a launch of a kernel, or a call. */
typedef struct {
    const char *name;
    const TargetLaunch *launch; /* NULL: a library's call or a copy */
    const ReportBuilt *built;   /* NULL: not known */
    Time on[MACHINES_MAX];
} Row;
typedef VEC(Row) Rows;

static double longer(double x, double y) {
    return x > y ? x : y;
}

static double shorter(double x, double y) {
    return x < y ? x : y;
}

/* Takes the longest bound, and adds the launch. part: of the machine that it fills. */
static void finish(Time *t, const TargetDevice *d, double part) {
    for (int i = 0; i < N_BOUNDS; i++)
        if (t->bound[i] > t->bound[t->by]) t->by = (Bound)i;
    t->all = t->bound[t->by] + d->launch_s;
    t->use = part * longer(t->bound[BY_WAITING], t->bound[BY_PRODUCT]);
    t->use = longer(t->use, longer(t->bound[BY_MEMORY], t->bound[BY_CACHE]));
    t->use = longer(t->use, longer(t->bound[BY_ISSUE], t->bound[BY_ARITHMETIC]));
}

/* ---- kernels -------- */
/* The bytes of a buffer; false: a size is not known. */
static bool buffer_bytes(const Report *r, const LBuf *b, double *bytes) {
    *bytes = dtype_bytes(b->dt);
    for (int i = 0; i < b->rank; i++) {
        int64_t n;
        if (!b->dim[i]) continue;
        if (!report_value(r, b->dim[i], &n)) return false;
        *bytes *= (double)n;
    }
    return true;
}

/* The bytes that a kernel asks for, and those of them that come from memory: what is gathered from
 * an array comes once, and again as far as the cache cannot hold the array. False: a size is not
 * known. */
static bool bytes_of(const Report *r, const LKernel *k, const TargetDevice *d, double *asked,
                     double *moved, double *flops) {
    const Expr *operations;
    CostAccesses all = cg_kernel_accesses(r->a, k, &operations);
    int64_t n;
    *asked = *moved = 0;
    for (int i = 0; i < all.n; i++) {
        const CostAccess *x = &all.v[i];
        double whole;
        if (!report_value(r, x->count, &n) || !buffer_bytes(r, x->buf, &whole)) return false;
        double bytes = (double)n * dtype_bytes(x->buf->dt), once = shorter(bytes, whole);
        double missed = whole > d->cache_bytes ? 1 - d->cache_bytes / whole : 0;
        *asked += bytes;
        *moved += x->gathered ? once + (bytes - once) * missed : bytes;
    }
    if (!report_value(r, operations, &n)) return false;
    *flops = (double)n;
    return true;
}

/* The same of what a launch runs: a kernel, or all of a group. */
static bool bytes_of_launch(const Report *r, const TargetLaunch *l, const PGroup *g,
                            const TargetDevice *d, double *asked, double *moved, double *flops) {
    if (!g) return bytes_of(r, l->kernel, d, asked, moved, flops);
    for (int i = 0; i < g->steps.n; i++) {
        double own[3];
        if (!bytes_of(r, g->steps.v[i]->kernel, d, &own[0], &own[1], &own[2])) return false;
        *asked += own[0];
        *moved += own[1];
        *flops += own[2];
    }
    return true;
}

/* The time of a launch of a kernel, or of a group of them. False: a size is not known. */
static bool time_launch(const Report *r, const TargetLaunch *l, const PGroup *g,
                        const ReportBuilt *built, const TargetDevice *d, Time *t) {
    double asked = 0, moved = 0, flops = 0;
    if (!l->finds_parts && !bytes_of_launch(r, l, g, d, &asked, &moved, &flops)) return false;
    const int at_once = report_blocks_at_once(built ? built->registers : ASSUMED_REGISTERS,
                                              built ? built->shared_bytes : 0);
    const double places = (double)d->units * at_once;
    const double busy = shorter(l->warps, places * l->block_warps);
    *t = (Time){.waves = (double)l->blocks / places};
    t->bound[BY_MEMORY] = moved / (d->bytes_per_s * d->copy_part);
    t->bound[BY_CACHE] = asked / d->cache_bytes_per_s;
    t->bound[BY_ARITHMETIC] = flops / d->flops_per_s;
    t->bound[BY_ISSUE] = l->instructions / ((double)ISSUED_PER_CYCLE * d->units * d->cycles_per_s);
    if (busy > 0) t->bound[BY_WAITING] = l->wait_cycles / busy / d->cycles_per_s;
    t->bound[BY_WAITING] = longer(t->bound[BY_WAITING], l->row_cycles / d->cycles_per_s);
    t->bound[BY_LONGEST_ROW] = l->hub_cycles / d->cycles_per_s;
    if (t->bound[BY_WAITING] > 0)
        t->in_flight = asked / t->bound[BY_WAITING] / d->units * d->memory_cycles / d->cycles_per_s;
    finish(t, d, shorter(t->waves, 1));
    return true;
}

/* The most edges into a row along a map, by the degrees of a relation of the data, to which loops
 * may have been added; -1: they are not known, as of one that is reversed or put together. */
static int64_t longest_row(const Map *map, const void *user) {
    const Report *r = user;
    const Space *s = map->from;
    if (map->kind != MAP_DST) return -1;
    int64_t more = 0;
    for (; s->kind == SP_EDGE && s->rel == REL_SELF_LOOPS; s = s->base[0]) more++;
    for (int i = 0; s && i < r->o->n_degrees; i++)
        if (!strcmp(r->o->degrees[i].name, s->name)) return r->o->degrees[i].max_degree + more;
    return -1;
}

/* The launch of `all` that does for its kernel what launch number i of `of` does for another one;
 * NULL: there is none. */
static TargetLaunch *launch_like(TargetLaunches *all, const TargetLaunches *of, int i) {
    int before = 0;
    for (int k = 0; k < i; k++) before += of->v[k].finds_parts == of->v[i].finds_parts;
    for (int k = 0; k < all->n; k++)
        if (all->v[k].finds_parts == of->v[i].finds_parts && before-- == 0) return &all->v[k];
    return NULL;
}

/* Lets a launch run what another one does, too. */
static void add_launch(TargetLaunch *to, const TargetLaunch *l) {
    if (l->blocks > to->blocks) to->blocks = l->blocks;
    to->warps += l->warps;
    to->instructions += l->instructions;
    to->wait_cycles += l->wait_cycles;
    to->row_cycles = longer(to->row_cycles, l->row_cycles);
    to->hub_cycles = longer(to->hub_cycles, l->hub_cycles);
}

/* The name under which a group makes launch number i of another one of its kernels, which has no
 * like in `all`: the text has the group's first kernel alone. */
static const char *group_name(const Report *r, TargetLaunches *all, const TargetLaunches *of,
                              int i) {
    for (int k = i; k < of->n; k++) { /* the kernel whose parts are looked for is launched behind */
        const TargetLaunch *same = of->v[k].finds_parts ? NULL : launch_like(all, of, k);
        if (same) return arena_printf(r->a, "%s_parts", same->name);
    }
    return of->v[i].name;
}

/* Adds the launches of another kernel of a group. Those that look for parts come first. */
static void add_member(const Report *r, TargetLaunches *to, const TargetLaunches *from) {
    for (int i = 0; i < from->n; i++) {
        TargetLaunch *same = launch_like(to, from, i);
        if (same) {
            add_launch(same, &from->v[i]);
            continue;
        }
        TargetLaunch more = from->v[i];
        more.name = group_name(r, to, from, i);
        vec_push(r->a, to, more);
        for (int k = to->n - 1; k > 0; k--) to->v[k] = to->v[k - 1];
        to->v[0] = more;
    }
}

/* The launches of a kernel, or, where g is one, of all kernels of a group; by machine. False: a
 * size is not known. */
static bool find_launches(const Report *r, const LKernel *k, const PGroup *g, TargetLaunches *all) {
    const TargetSizes known = {r->o->sizes, longest_row, r};
    if (!r->o->roof->launches(r->c, r->p, k, &known, all)) return false;
    for (int i = 1; g && i < g->steps.n; i++) {
        TargetLaunches own[MACHINES_MAX] = {{0}};
        if (!r->o->roof->launches(r->c, r->p, g->steps.v[i]->kernel, &known, own)) return false;
        for (int m = 0; m < r->o->roof->n_devices; m++) add_member(r, &all[m], &own[m]);
    }
    for (int m = 0; g && m < r->o->roof->n_devices; m++) /* each has as many as that with most */
        for (int i = 0; i < all[m].n; i++) all[m].v[i].blocks *= g->steps.n;
    return true;
}

/* Adds the launches of a step's kernel. False: a size is not known. */
static bool add_kernel(const Report *r, const PStep *s, Rows *rows) {
    const Target *on = r->o->roof;
    TargetLaunches all[MACHINES_MAX] = {{0}};
    if (!find_launches(r, s->kernel, s->group, all)) return false;
    for (int i = 0; i < all[0].n; i++) {
        const TargetLaunch *l = &all[0].v[i];
        Row row = {.name = l->name, .launch = l, .built = report_built(r, l->name)};
        for (int m = 0; m < on->n_devices; m++)
            if (!time_launch(r, &all[m].v[i], s->group, row.built, &on->devices[m], &row.on[m]))
                return false;
        vec_push(r->a, rows, row);
    }
    return true;
}

/* ---- calls -------- */
/* The time of a library's product, or of a copy or ranks, by the bytes and operations of the step.
 * False: a size is not known. */
static bool time_call(const Report *r, PStep *s, const TargetDevice *d, Time *t) {
    StepCost c = report_step_cost(r, s);
    int64_t read, written, flops;
    if (!report_value(r, c.read, &read) || !report_value(r, c.written, &written) ||
        !report_value(r, c.flops, &flops))
        return false;
    *t = (Time){.by = BY_MEMORY};
    t->bound[BY_MEMORY] = (double)(read + written) / (d->bytes_per_s * d->copy_part);
    if (s->kind == PS_GEMM) {
        PStep *one[] = {s};
        const PGroup alone = {.steps = {one, 1, 1}};
        RtGroupCost cost, group;
        const bool low = r->p->tf32 || r->p->bufs.v[s->bufs[0]]->dt != DT_F32;
        if (!report_group_cost(r, &alone, d, &cost)) return false;
        double ns = cost.apart_ns;
        if (s->group && report_group_cost(r, s->group, d, &group) && rt_group_pays(&group))
            ns = group.together_ns;
        t->bound[BY_PRODUCT] = longer(ns - RT_PRODUCT_NS, 0) * 1e-9;
        if (!low) t->bound[BY_ARITHMETIC] = (double)flops / (d->flops_per_s * d->product_part);
    }
    finish(t, d, 1); /* as if its tiles filled the machine: a library may give it all of it */
    return true;
}

/* Whether the call or launch of an earlier step does this one, too. */
static bool is_made_before(const Report *r, const PStep *s) {
    RtGroupCost c;
    if (!s->group || plan_leads_group(s)) return false;
    return s->kind == PS_KERNEL ||
           (report_group_cost(r, s->group, report_roof(r), &c) && rt_group_pays(&c));
}

/* The rows of a step; none where another step does its work, or the host. False: a size is not
 * known. */
static bool rows_of(const Report *r, PStep *s, Rows *rows) {
    const Target *on = r->o->roof;
    const bool call = s->kind == PS_GEMM || s->kind == PS_RANK || s->kind == PS_COPY;
    if (report_is_covered(r, s) || is_made_before(r, s)) return true;
    if (s->kernel && !report_is_library_spmm(r, s)) return add_kernel(r, s, rows);
    if (!call && !s->kernel) return true;
    Row row = {.name = cg_step_name(s)};
    for (int m = 0; m < on->n_devices; m++)
        if (!time_call(r, s, &on->devices[m], &row.on[m])) return false;
    vec_push(r->a, rows, row);
    return true;
}

/* ---- text -------- */
static double us(double seconds) {
    return 1e6 * seconds;
}

/* Prints one launch or call: its time on each machine, then what the first one's is made of. */
static void print_row(Report *r, const Row *row) {
    const Target *on = r->o->roof;
    const Time *t = &row->on[0];
    const char *before = "";
    sb_printf(r->b, "      %s:", row->name);
    for (int m = 0; m < on->n_devices; m++)
        sb_printf(r->b, "%s %.3g us", m ? "," : "", us(row->on[m].all));
    sb_printf(r->b, " by %s\n", bound_words[t->by].text);
    if (row->launch) {
        sb_printf(r->b, "        %lld blocks", (long long)row->launch->blocks);
        if (row->built)
            sb_printf(r->b, ", %d registers, %d B shared", row->built->registers,
                      row->built->shared_bytes);
        sb_printf(r->b, ", %.3g waves, %.3g kB in flight\n", t->waves, 1e-3 * t->in_flight);
    }
    sb_puts(r->b, "        us");
    for (int i = 0; i < N_BOUNDS; i++) {
        if (t->bound[i] <= 0) continue;
        sb_printf(r->b, "%s %s %.3g", before, bound_words[i].text, us(t->bound[i]));
        before = ",";
    }
    sb_puts(r->b, "\n");
}

/* ---- JSON -------- */
static int64_t ns(double seconds) {
    return (int64_t)(1e9 * seconds + 0.5);
}

static void json_row(Report *r, const Row *row) {
    const Target *on = r->o->roof;
    json_object(r->j, NULL);
    json_text(r->j, "name", row->name);
    if (row->launch) json_int(r->j, "blocks", row->launch->blocks);
    if (row->built) json_int(r->j, "registers", row->built->registers);
    if (row->built) json_int(r->j, "shared_bytes", row->built->shared_bytes);
    json_array(r->j, "on");
    for (int m = 0; m < on->n_devices; m++) {
        const Time *t = &row->on[m];
        json_object(r->j, NULL);
        json_int(r->j, "ns", ns(t->all));
        json_text(r->j, "by", bound_words[t->by].text);
        for (int i = 0; i < N_BOUNDS; i++)
            if (t->bound[i] > 0) json_int(r->j, bound_words[i].key, ns(t->bound[i]));
        if (row->launch) json_int(r->j, "waves_percent", (int64_t)(100 * t->waves + 0.5));
        if (row->launch) json_int(r->j, "in_flight_bytes", (int64_t)t->in_flight);
        json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

/* ---- all -------- */
/* The times of a phase on each machine. */
typedef struct {
    double *all;  /* as it is recorded */
    double *each; /* one step after the other */
} PhaseTimes;

/* The time of a phase whose steps are in several streams: that of the longest chain of steps that
 * wait for each other, or that in which the whole machine does the work of all. */
static double time_in_streams(const PPhase *ph, const Rows *rows, int machine, double *end) {
    double stream_end[RT_STREAMS_MAX] = {0}, last = 0, use = 0;
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        const int by = s->group ? plan_step_index(ph, s->group->steps.v[0]) : i;
        const PBranch *b = ph->steps.v[by]->branch;
        const int stream = b ? b->stream : 0;
        double at = stream_end[stream];
        if (!rows[i].n) continue;
        for (int k = 0; b && k < b->n_after; k++)
            at = longer(at, end[plan_step_index(ph, b->after[k])]);
        for (int k = 0; k < rows[i].n; k++) {
            at += rows[i].v[k].on[machine].all;
            use += rows[i].v[k].on[machine].use;
        }
        end[i] = end[by] = stream_end[stream] = at;
        last = longer(last, at);
    }
    return longer(last, use);
}

/* The rows of all steps of a phase, and its time on each machine. False: a size is not known. */
static bool rows_of_phase(const Report *r, const PPhase *ph, Rows *rows, PhaseTimes *t) {
    const Target *on = r->o->roof;
    double *end = NEWN(r->a, double, (size_t)ph->steps.n + 1);
    for (int i = 0; i < ph->steps.n; i++)
        if (!rows_of(r, ph->steps.v[i], &rows[i])) return false;
    for (int m = 0; m < on->n_devices; m++) {
        t->each[m] = 0;
        for (int i = 0; i < ph->steps.n; i++)
            for (int k = 0; k < rows[i].n; k++) t->each[m] += rows[i].v[k].on[m].all;
        t->all[m] = plan_has_streams(ph) ? time_in_streams(ph, rows, m, end) : t->each[m];
    }
    return true;
}

/* Prints the stream of a step, and which steps of others it waits for; nothing for the first, where
 * it waits for none. */
static void print_stream(const Report *r, const PPhase *ph, const PStep *s) {
    const PBranch *b = s->branch;
    if (!b) return;
    sb_printf(r->b, ", stream %d", b->stream);
    for (int i = 0; i < b->n_after; i++)
        sb_printf(r->b, "%s %d", i ? "," : " after", plan_step_index(ph, b->after[i]));
}

static void print_phase(Report *r, const PPhase *ph, const Rows *rows, const PhaseTimes *t) {
    const Target *on = r->o->roof;
    sb_printf(r->b, "  @%s:", ph->name);
    for (int m = 0; m < on->n_devices; m++)
        sb_printf(r->b, "%s %.4g us on an %s", m ? "," : "", us(t->all[m]), on->devices[m].name);
    for (int m = 0; m < on->n_devices && plan_has_streams(ph); m++)
        sb_printf(r->b, "%s %.4g us", m ? "," : "; in one stream", us(t->each[m]));
    sb_puts(r->b, "\n");
    for (int i = 0; i < ph->steps.n; i++) {
        if (rows[i].n) {
            sb_printf(r->b, "    %d %s", i, cg_step_name(ph->steps.v[i]));
            print_stream(r, ph, ph->steps.v[i]);
            sb_puts(r->b, "\n");
        }
        for (int k = 0; k < rows[i].n; k++) print_row(r, &rows[i].v[k]);
    }
}

/* The same in JSON. */
static void json_stream(Report *r, const PPhase *ph, const PStep *s) {
    const PBranch *b = s->branch;
    if (!b) return;
    json_int(r->j, "stream", b->stream);
    json_array(r->j, "after");
    for (int i = 0; i < b->n_after; i++) json_int(r->j, NULL, plan_step_index(ph, b->after[i]));
    json_end(r->j);
}

static void json_phase(Report *r, const PPhase *ph, const Rows *rows, const PhaseTimes *t) {
    const Target *on = r->o->roof;
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_array(r->j, "on_ns");
    for (int m = 0; m < on->n_devices; m++) json_int(r->j, NULL, ns(t->all[m]));
    json_end(r->j);
    json_array(r->j, "one_stream_ns");
    for (int m = 0; m < on->n_devices; m++) json_int(r->j, NULL, ns(t->each[m]));
    json_end(r->j);
    json_array(r->j, "steps");
    for (int i = 0; i < ph->steps.n; i++) {
        json_object(r->j, NULL);
        json_int(r->j, "step", i);
        json_text(r->j, "name", cg_step_name(ph->steps.v[i]));
        json_text(r->j, "lines", cg_step_lines(r->p->m, r->a, ph->steps.v[i], false));
        json_stream(r, ph, ph->steps.v[i]);
        json_array(r->j, "launches");
        for (int k = 0; k < rows[i].n; k++) json_row(r, &rows[i].v[k]);
        json_end(r->j);
        json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

/* Prints what all phases have in common: the machines, and whose registers they are. */
static void print_head(Report *r) {
    const Target *on = r->o->roof;
    if (!r->j) {
        sb_puts(r->b, "times: predicted, not measured");
        if (!r->o->built)
            sb_printf(r->b, "; %d registers a thread assumed: %s", ASSUMED_REGISTERS,
                      r->o->not_built ? r->o->not_built : "--report=times asks nvcc");
        sb_puts(r->b, "\n");
        return;
    }
    json_object(r->j, "times");
    json_text(r->j, "not_built", r->o->built ? NULL : r->o->not_built);
    json_int(r->j, "assumed_registers", r->o->built ? 0 : ASSUMED_REGISTERS);
    json_array(r->j, "machines");
    for (int m = 0; m < on->n_devices; m++) json_text(r->j, NULL, on->devices[m].name);
    json_end(r->j);
    json_array(r->j, "phases");
}

/* Prints the report: of all phases that do not depend on sizes that only data tell; nothing, if the
 * program is for no device. */
void report_times(Report *r) {
    const Target *on = r->o->roof;
    if (!on || !on->launches || !r->o->sizes) return;
    print_head(r);
    for (int i = 0; i < r->p->phases.n; i++) {
        const PPhase *ph = r->p->phases.v[i];
        Rows *rows = NEWN(r->a, Rows, (size_t)ph->steps.n + 1);
        PhaseTimes t = {.all = NEWN(r->a, double, (size_t)on->n_devices),
                        .each = NEWN(r->a, double, (size_t)on->n_devices)};
        const bool known = rows_of_phase(r, ph, rows, &t);
        if (known && r->j) json_phase(r, ph, rows, &t);
        if (known && !r->j) print_phase(r, ph, rows, &t);
        if (!known && !r->j) sb_printf(r->b, "  @%s: only data tell its sizes\n", ph->name);
    }
    if (!r->j) return;
    json_end(r->j);
    json_end(r->j);
}
