/* The launches of a kernel as numbers, where sizes are known: how many blocks launch.c asks for,
 * what their warps execute, and how long each waits for memory when nothing else is in its way.
 * --report=times makes times of it.
 *
 * A warp goes through the loops as the text has them. Loads of one run through a list that need
 * nothing of each other are under way together; those whose index was loaded wait for it. A run
 * through the body of a loop ends before the next one begins, as compilers may, but need not,
 * unroll loops over a row's entries; entries that the text loads ahead are one run, and so are all
 * of a loop of constant length that it unrolls.
 * What does not depend on a loop is taken to be moved out of it. */
#include "codegen/cuda/cuda.h"

#include <math.h>
#include <string.h>

#include "runtime/cuda/room.h"

enum {
    THREADS = 256,       /* GN_THREADS */
    MOST_BLOCKS = 65536, /* GN_BLOCKS_MAX */
    WARP = 32,
    SECTOR_BYTES = 32,     /* that a load brings, at least */
    NEAR_BYTES = 64 << 10, /* of an array that stays in a multiprocessor's own cache */
    /* instructions of a warp: the address and the access; the test and the step of a loop */
    ACCESS_INSTRUCTIONS = 2,
    LOOP_INSTRUCTIONS = 2,
    HEAVY_INSTRUCTIONS = 12, /* of a function such as exp, or of a random number */
    FIND_INSTRUCTIONS = 14   /* of a step of a search for a row (gn_row_of_all) */
};

/* What is known of the data, and the machine that waits. */
typedef struct {
    const TargetSizes *known;
    const TargetDevice *device;
} Sizes;

/* A walk over the statements of a kernel. */
typedef struct {
    const CuFn *f;
    const Sizes *of;
    bool known;         /* all sizes that were needed are */
    bool longest;       /* of the longest row, which a block has; else of a mean one */
    double lanes, ways; /* of a team; 1 and 1 of a thread */
    const LoopColumns *region;
    /* by register */
    int *level;    /* of the innermost loop that its value depends on */
    double *ready; /* cycles from the beginning of that loop's run until it is known */
    bool *gathers; /* some load decides it */
    /* here */
    int depth;            /* loops whose runs follow each other */
    double times, copies; /* runs of this list; columns or elements that a thread has in it */
    double run;           /* cycles of a run of the innermost such loop */
    /* the result, of one row */
    double instructions, cycles;
} Walk;

/* ---- sizes -------- */
static bool has_unknown(const int64_t *sizes, const Expr *e) {
    if (e->kind == EX_CONST) return false;
    if (e->kind == EX_SYM) return sizes[e->sym->id] < 0;
    return has_unknown(sizes, e->a) || has_unknown(sizes, e->b);
}

/* The value of e; 0, and the walk's numbers are no good, if a size in it is not known. */
static double value(Walk *w, const Expr *e) {
    if (has_unknown(w->of->known->sizes, e)) w->known = false;
    return w->known ? (double)expr_eval(e, w->of->known->sizes) : 0;
}

static double at_least(double x, double least) {
    return x > least ? x : least;
}

/* The bytes of a buffer. */
static double buffer_bytes(Walk *w, const LBuf *b) {
    double n = dtype_bytes(b->dt);
    for (int i = 0; i < b->rank; i++)
        if (b->dim[i]) n *= value(w, b->dim[i]);
    return n;
}

/* How many entries a row of the map has: the mean, or of the row that is walked. */
static double entries_of(Walk *w, const Map *map) {
    double all = value(w, map->from->size);
    double mean = all / at_least(value(w, map->to->size), 1);
    double longest = w->longest && w->of->known->longest_row
                         ? (double)w->of->known->longest_row(map, w->of->known->user)
                         : -1;
    return longest >= 0 ? longest : mean;
}

/* The parallel iterations of a loop, with those of loops that are part of its index. */
static double rows_of(Walk *w, const LStmt *loop) {
    double n = value(w, loop->extent);
    if (loop == w->f->sched.parallel_loop)
        for (int i = 0; i < w->f->sched.n_collapsed; i++)
            n *= value(w, w->f->sched.collapsed[i]->extent);
    return n;
}

/* The entries of a part of long rows; 0 = one block has a row (gn_part_of_entries()). */
static double part_entries(Walk *w, const LStmt *loop) {
    if (cu_split_number(w->f, loop) < 0) return 0;
    const LSched *s = &loop->sched;
    const bool few = s->few_entries && rows_of(w, w->f->sched.parallel_loop) <= s->few_rows;
    const double entries = value(w, loop->ptr->map->from->size), heads = value(w, cu_heads(w->f));
    return (double)gn_part_of_entries((int64_t)entries, (int64_t)value(w, cu_partial_numbers(w->f)),
                                      (int64_t)heads, few ? s->few_entries : s->split_entries,
                                      few ? INT64_C(16) * s->few_entries : s->split_from);
}

/* How often the body of a loop is run if one thread runs all of it. */
static double iterations(Walk *w, const LStmt *loop) {
    if (loop->range == LR_EXTENT || loop->range == LR_BEHIND) return value(w, loop->extent);
    if (loop->range == LR_CHUNK)
        return value(w, loop->extent) / at_least(value(w, loop->n_chunks), 1);
    double n = entries_of(w, loop->ptr->map), part = part_entries(w, loop);
    return w->longest && part && n > 2 * part ? 2 * part : n;
}

/* ---- who does what -------- */
static double power_of_2(double n) {
    double p = 1;
    while (p < n && p < WARP) p *= 2;
    return p;
}

/* The mean iterations of a loop that the launch decides by: whole numbers (iterations_text()). */
static double whole_iterations(Walk *w, const LStmt *loop) {
    return ceil(iterations(w, loop));
}

/* Sets the lanes and ways that the launch chooses (emit_team_sizes()). */
static void choose_team(Walk *w) {
    const CuFn *f = w->f;
    const LStmt *loop[LOOP_TARGETS_MAX];
    double widest = 0, entries = 0;
    w->lanes = w->ways = 1;
    if (f->sched.kind == CU_THREAD) return;
    for (int i = 0; i < f->team.regions.n; i++) {
        const LoopColumns *r = &f->team.regions.v[i];
        if (loop_goes_to_all_threads(&f->team, r)) continue;
        widest = at_least(ceil(whole_iterations(w, r->range) / cu_region_pack(f, r)), widest);
    }
    w->lanes = f->sched.lanes ? f->sched.lanes : widest ? power_of_2(widest) : WARP;
    if (f->sched.kind == CU_BLOCK) w->ways = THREADS / w->lanes;
    if (f->sched.kind == CU_BLOCK || !f->sched.shared_loop) return;
    const int n = loop_shared_entry_loops(&f->team, loop);
    if (n == 0) entries = whole_iterations(w, f->sched.shared_loop);
    for (int i = 0; i < n; i++) entries = at_least(whole_iterations(w, loop[i]), entries);
    while (w->ways * w->lanes < WARP && w->ways * 4 <= entries) w->ways *= 2;
}

/* How often each thread of a team runs the body of a loop over entries or heads. */
static double shared_iterations(Walk *w, const LStmt *loop) {
    double n = iterations(w, loop);
    double among = loop->sched.share == LS_WAYS    ? w->ways
                   : loop->sched.share == LS_TEAM  ? w->ways * w->lanes
                   : loop->sched.share == LS_LANES ? w->lanes
                                                   : 1;
    return n > among ? n / among : n > 1 ? 1 : n;
}

/* ---- what a load waits for -------- */
/* Whether the register is the variable of a loop whose runs follow each other, within a row. */
static bool walks_entries(const LReg *r) {
    const LStmt *loop = r->def;
    return loop && loop->kind == L_FOR && !loop->sched.parallel && !loop->sched.collapse &&
           loop->range != LR_EXTENT;
}

/* Cycles from a load to its value, from where it is likely to come. Of an array that is read entry
 * after entry, a load brings some of the next ones too. */
static double load_cycles(Walk *w, const LStmt *s, bool gathered) {
    const TargetDevice *d = w->of->device;
    double bytes = buffer_bytes(w, s->buf);
    const LReg *last = s->buf->rank ? s->idx[s->buf->rank - 1] : NULL;
    if (bytes <= NEAR_BYTES) return d->near_cycles;
    if (gathered) {
        double hit = bytes > d->cache_bytes ? d->cache_bytes / bytes : 1;
        return hit * d->cache_cycles + (1 - hit) * d->memory_cycles;
    }
    double far = bytes > d->cache_bytes / 2 ? d->memory_cycles : d->cache_cycles;
    double fresh = dtype_bytes(s->buf->dt) * w->ways * w->lanes / SECTOR_BYTES;
    if (!last || !walks_entries(last) || fresh >= 1) return far;
    return fresh * far + (1 - fresh) * d->near_cycles;
}

/* ---- statements -------- */
/* What the value depends on that is made of r: the innermost loop, when it is known, whether data
 * decide it. */
static void join(const Walk *w, const LReg *r, int *level, double *ready, bool *gathers) {
    if (w->level[r->id] == w->depth && w->ready[r->id] > *ready) *ready = w->ready[r->id];
    if (w->level[r->id] > *level) *level = w->level[r->id];
    *gathers = *gathers || w->gathers[r->id];
}

static void define(Walk *w, const LReg *r, int level, double ready, bool gathers) {
    w->level[r->id] = level;
    w->ready[r->id] = ready;
    w->gathers[r->id] = gathers;
}

/* A value is known at `ready` cycles of this run. */
static void until(Walk *w, double ready) {
    if (ready > w->run) w->run = ready;
}

static void visit_let(Walk *w, const LStmt *s) {
    int level = 0;
    double ready = 0;
    bool gathers = false;
    for (int i = 0; i < s->n_arg; i++) join(w, s->arg[i], &level, &ready, &gathers);
    define(w, s->dst, level, ready, gathers);
    if (level == w->depth)
        w->instructions += w->times * w->copies * (loop_is_heavy(s) ? HEAVY_INSTRUCTIONS : 1);
}

/* Whether the element is in a register: of a local array, or of a row that a region keeps. */
static bool is_in_register(const Walk *w, const LStmt *s) {
    return s->buf->kind == LB_LOCAL || (w->region && loop_is_promoted(w->region->stmt, s->buf));
}

/* A load, and the load of what is accumulated into in memory. */
static double visit_load(Walk *w, const LStmt *s, int *level, bool *gathers) {
    double ready = 0;
    for (int i = 0; i < s->buf->rank; i++) join(w, s->idx[i], level, &ready, gathers);
    bool moved_out = *level < w->depth && !s->buf->written;
    if (is_in_register(w, s)) {
        *level = w->depth;
        return ready;
    }
    if (moved_out) {
        *gathers = true;
        return 0;
    }
    ready += load_cycles(w, s, *gathers);
    *level = w->depth;
    *gathers = true;
    w->instructions += w->times * (s->packed ? 1 : w->copies) * ACCESS_INSTRUCTIONS;
    until(w, ready);
    return ready;
}

static void visit_access(Walk *w, const LStmt *s) {
    int level = 0;
    bool gathers = false;
    if (s->kind == L_LOAD) {
        double ready = visit_load(w, s, &level, &gathers);
        define(w, s->dst, level, ready, gathers);
        return;
    }
    if (s->kind == L_ACC) visit_load(w, s, &level, &gathers);
    if (s->kind == L_ACC) w->instructions += w->times * w->copies;
    if (!is_in_register(w, s))
        w->instructions += w->times * (s->packed ? 1 : w->copies) * ACCESS_INSTRUCTIONS;
}

static void visit_list(Walk *w, const LStmt *s);

/* A list that is run n times, one run after the other, or `together` of them at once. var: the
 * loop's variable, or NULL. */
static void visit_runs(Walk *w, const LStmt *body, const LReg *var, double n, double together) {
    const double times = w->times, run = w->run;
    w->times *= n;
    w->run = 0;
    w->depth++;
    if (var) define(w, var, w->depth, 0, false);
    visit_list(w, body);
    w->instructions += w->times * LOOP_INSTRUCTIONS;
    w->cycles += w->times / together * w->run;
    w->depth--;
    w->run = run;
    w->times = times;
}

/* A list that is part of the run around it, for n columns, elements or iterations of a thread. */
static void visit_copies(Walk *w, const LStmt *body, const LReg *var, double n) {
    const double copies = w->copies;
    w->copies *= at_least(n, 1);
    if (var) define(w, var, w->depth, 0, false);
    visit_list(w, body);
    w->copies = copies;
}

/* A loop over columns in a region: of the lane's own, or of those that it takes in turn. */
static void visit_column_loop(Walk *w, const LStmt *loop) {
    const double pack = cu_region_pack(w->f, w->region);
    if (loop_is_round_robin(w->region, loop)) {
        double n = ceil(iterations(w, loop) / w->lanes);
        visit_runs(w, loop->body, loop->var, n, 1);
        return;
    }
    double own = w->region->one_pass && !w->region->all_threads
                     ? ceil(iterations(w, loop) / (w->lanes * pack)) * pack
                     : pack;
    visit_copies(w, loop->body, loop->var, w->region->all_threads ? 1 : own);
}

/* A loop of n iterations, of which the text may load several ahead. In the last group of a row, in
 * the mean of all lengths, (together - 1) / 2 places are empty, and loaded all the same. */
static void visit_entries(Walk *w, const LStmt *loop, double n) {
    const double together = at_least(loop->sched.ahead, 1);
    if (n > 1) n = at_least(n + (together - 1) / 2, together);
    visit_runs(w, loop->body, loop->var, n, n > 1 ? together : 1);
}

static void visit_loop(Walk *w, const LStmt *loop) {
    int level = 0;
    double ready = 0;
    bool gathers = false;
    if (loop->range == LR_SEGMENT) { /* its bounds are loaded first */
        join(w, loop->at, &level, &ready, &gathers);
        if (level == w->depth) until(w, ready + w->of->device->cache_cycles);
    }
    if (loop->sched.parallel || loop->sched.collapse)
        visit_copies(w, loop->body, loop->var, 1);
    else if (w->region && loop_is_columns(loop))
        visit_column_loop(w, loop);
    else if (loop->sched.unroll)
        visit_copies(w, loop->body, loop->var, iterations(w, loop));
    else
        visit_entries(w, loop, shared_iterations(w, loop));
}

/* The statement `columns`: run through once, or by lanes or all threads in turn. */
static void visit_region(Walk *w, const LStmt *s) {
    const LoopColumns *r = NULL, *outer = w->region;
    for (int i = 0; i < w->f->team.regions.n; i++)
        if (w->f->team.regions.v[i].stmt == s) r = &w->f->team.regions.v[i];
    if (!r) {
        visit_list(w, s->body);
        return;
    }
    double among = r->all_threads ? w->lanes * w->ways : w->lanes * cu_region_pack(w->f, r);
    double n = r->one_pass ? 1 : iterations(w, r->range) / among;
    if (!r->one_pass && r->range->range == LR_EXTENT) n = ceil(n);
    w->region = r;
    if (n > 1)
        visit_runs(w, s->body, NULL, n, 1);
    else
        visit_list(w, s->body);
    w->region = outer;
}

static void visit_one(Walk *w, const LStmt *s) {
    switch (s->kind) {
    case L_FOR:
        visit_loop(w, s);
        break;
    case L_COLUMNS:
        visit_region(w, s);
        break;
    case L_IF:
    case L_TILE:
        visit_list(w, s->body);
        break;
    case L_LET:
        visit_let(w, s);
        break;
    case L_LOAD:
    case L_STORE:
    case L_ACC:
        visit_access(w, s);
        break;
    case L_FOLD: /* a shuffle and a sum for each doubling of the ways */
        w->instructions += w->times * w->copies * 2 * ceil(log2(at_least(w->ways, 2)));
        break;
    case L_LOCAL:
    case L_BARRIER:
    case L_PREFETCH:
        break;
    }
}

static void visit_list(Walk *w, const LStmt *s) {
    for (; s; s = s->next) visit_one(w, s);
}

/* ---- a launch -------- */
/* Begins a walk over the loops of a kernel. */
static Walk walk_begin(const CuFn *f, const Sizes *of) {
    const size_t n = (size_t)f->k->n_regs + 1;
    Walk w = {.f = f, .of = of, .known = true, .times = 1, .copies = 1};
    w.level = NEWN(f->a, int, n);
    w.ready = NEWN(f->a, double, n);
    w.gathers = NEWN(f->a, bool, n);
    return w;
}

/* Walks through one row of each parallel loop, and takes the mean of all rows; through all that a
 * kernel without such a loop does. What stands before the first loop is done once by a thread, and
 * not counted. Returns the number of rows. */
static double walk_rows(Walk *w) {
    double rows = 0, instructions = 0, cycles = 0;
    w->copies = w->f->sched.kind == CU_THREAD ? at_least(w->f->sched.pack, 1) : 1;
    if (!w->f->sched.parallel_loop && !loop_is_joined(w->f->k)) {
        w->depth = 1;
        visit_list(w, w->f->k->body);
        w->cycles += w->run;
        return 1;
    }
    for (const LStmt *s = w->f->k->body; s; s = s->next) {
        const bool loop = s->kind == L_FOR;
        const double n = loop ? rows_of(w, s) : 0;
        w->depth = loop;
        w->run = w->cycles = w->instructions = 0;
        visit_one(w, s);
        rows += n;
        instructions += n * w->instructions;
        cycles += n * (w->cycles + w->run);
    }
    w->instructions = instructions / at_least(rows, 1);
    w->cycles = cycles / at_least(rows, 1);
    return rows;
}

/* Cycles of the block that has the longest row; 0 = it is no hub, or its length is not known. */
static double hub_cycles(const CuFn *f, const Sizes *of, double team_ways) {
    const LStmt *loop[LOOP_TARGETS_MAX];
    if (!f->sched.parallel_loop || !f->sched.parallel_loop->sched.hub_entries) return 0;
    Walk w = walk_begin(f, of);
    double entries = 0;
    choose_team(&w);
    w.longest = true;
    for (int i = 0, n = loop_shared_entry_loops(&f->team, loop); i < n; i++)
        entries = at_least(entries_of(&w, loop[i]->ptr->map), entries);
    if (entries <= f->sched.parallel_loop->sched.hub_entries * team_ways) return 0;
    w.ways = THREADS / w.lanes;
    walk_rows(&w);
    return w.known ? w.cycles : 0;
}

/* The launch of one kernel; false: a size is not known. */
static bool launch_of(const CuFn *f, const Sizes *of, TargetLaunch *l) {
    Walk w = walk_begin(f, of);
    if (loop_is_behind(f->k)) return false;
    choose_team(&w);
    const double n = walk_rows(&w);
    const double team = f->sched.kind == CU_BLOCK ? THREADS : w.lanes * w.ways;
    const double pack = f->sched.kind == CU_THREAD ? at_least(f->sched.pack, 1) : 1;
    const double threads = ceil(n / pack) * team, blocks = ceil(threads / THREADS);
    if (!w.known) return false;
    *l = (TargetLaunch){.name = f->k->name,
                        .kernel = f->k,
                        .blocks = (int64_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                        .block_warps = THREADS / WARP,
                        .warps = ceil(threads / WARP),
                        .instructions = w.instructions * threads / WARP,
                        .wait_cycles = w.cycles * threads / WARP,
                        .row_cycles = w.cycles,
                        .hub_cycles = hub_cycles(f, of, w.ways)};
    return true;
}

/* The launch of NAME_parts, in which each block looks for the rows where its part begins and ends;
 * false: there is none. Parts of long rows that it finds are left out: their entries count for the
 * rows' own kernel. */
static bool parts_of(CuFn *f, const Sizes *of, TargetLaunch *l) {
    Walk w = walk_begin(f, of);
    if (!cu_splits_rows(f)) return false;
    const Map *map = f->sched.split[0]->ptr->map;
    const double part = part_entries(&w, f->sched.split[0]);
    const double rows = value(&w, map->to->size), entries = value(&w, map->from->size);
    const double heads = value(&w, cu_heads(f));
    if (!w.known || part == 0) return false;
    /* a warp halves five times at a time; then it loads the bounds of the row */
    const double steps = 2 * (ceil(log2(at_least(rows, 2)) / 5) + 1);
    const double blocks = ceil(entries / part) * heads;
    const double warps = blocks * THREADS / WARP;
    *l = (TargetLaunch){.name = arena_printf(f->a, "%s_parts", f->k->name),
                        .kernel = f->k,
                        .finds_parts = true,
                        .blocks = (int64_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                        .block_warps = THREADS / WARP,
                        .warps = warps,
                        .instructions = warps * steps * FIND_INSTRUCTIONS,
                        .row_cycles = steps * of->device->cache_cycles,
                        .wait_cycles = warps * steps * of->device->cache_cycles};
    return true;
}

/* Whether the stage is left out: what it would add up has one piece for each sum. */
static bool is_left_out(const CuFn *f, const Sizes *of) {
    Walk w = walk_begin(f, of);
    bool one_piece = cu_reads_room(f->k);
    for (int i = loop_n_arguments(f->k); i < f->k->bufs.n && one_piece; i++) {
        const LBuf *b = f->k->bufs.v[i];
        one_piece = buffer_bytes(&w, b) == buffer_bytes(&w, f->k->bufs.v[b->room_of]);
    }
    return one_piece && w.known;
}

bool cu_launches(Ctx *c, const Plan *p, const LKernel *k, const TargetSizes *known,
                 TargetLaunches *to) {
    const TargetMachine no_machine = {0};
    Cu cu = {.c = c, .a = c->a, .plan = p};
    Loops l;
    if (!loop_pass_all(c, p, &target_cuda, &no_machine, k, &l)) return false;
    for (int i = 0; i < l.k.n; i++) {
        CuFn f = {.cu = &cu, .a = c->a, .k = l.k.v[i]};
        if (!cu_schedule(&f)) return false;
        for (int m = 0; m < target_cuda.n_devices; m++) {
            const Sizes of = {known, &target_cuda.devices[m]};
            TargetLaunch launch;
            if (is_left_out(&f, &of)) continue;
            for (int n = f.sched.n_split; n > 0 && parts_of(&f, &of, &launch); n--)
                vec_push(c->a, &to[m], launch);
            if (!launch_of(&f, &of, &launch)) return false;
            vec_push(c->a, &to[m], launch);
        }
    }
    return true;
}
