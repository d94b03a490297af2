/* --report=kernels: how each kernel is emitted: who takes its rows and columns, in which vectors,
 * and what the device's assembler says it needs. */
#include "codegen/loop/loop_text.h"
#include "codegen/loop_passes/loops.h"
#include "codegen/report/report.h"

#include <string.h>

/* What is reported of an emitted kernel. */
typedef struct {
    const char *name;
    const LThreads *threads; /* how a device's threads take rows and columns */
    int lanes;               /* of vectors, at most; 0 = there is no vector loop */
    int tile;                /* columns of a sum in registers at a time; 0 = none */
    int rows;                /* side by side in lanes; 0 = none */
    int strips;              /* entries whose scalars are had at once; 0 = none */
    int ahead; /* entries that rows are asked for before they come; 0 = they are not */
    /* what the device's assembler said, if `built`: per thread; shared_bytes per block */
    int registers, shared_bytes, spill_bytes, stack_bytes;
    bool built;
} Kernel;

/* The larger of x and y. */
static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* Finds the largest vector widths and tiles among the statements from s on and their bodies, into
 * k. */
static void find_vectors(Kernel *k, const LStmt *s) {
    for (; s; s = s->next) {
        k->lanes = max_int(k->lanes, max_int(s->sched.lanes, s->kind == L_TILE ? s->lanes : 0));
        k->lanes = max_int(k->lanes, max_int(s->sched.flat, s->sched.expand));
        k->rows = max_int(k->rows, s->sched.rows);
        k->strips = max_int(k->strips, s->sched.strips);
        if (s->kind == L_TILE) k->tile = max_int(k->tile, s->columns);
        if (s->kind == L_PREFETCH) k->ahead = max_int(k->ahead, s->ahead);
        if (loop_has_body(s)) find_vectors(k, s->body);
    }
    k->lanes = max_int(k->lanes, k->rows);
}

/* Adds to k the larger of what the device's assembler said and what k has. */
static void add_function(Kernel *k, const ReportBuilt *x) {
    if (!x) return;
    k->built = true;
    k->registers = max_int(k->registers, x->registers);
    k->shared_bytes = max_int(k->shared_bytes, x->shared_bytes);
    k->spill_bytes = max_int(k->spill_bytes, x->spill_bytes);
    k->stack_bytes = max_int(k->stack_bytes, x->stack_bytes);
}

/* Adds to k what the device's assembler said about the kernel, which may be two device functions:
 * NAME, and NAME_parts for long rows. */
static void add_built(const Report *r, Kernel *k) {
    add_function(k, report_built(r, k->name));
    add_function(k, report_built(r, arena_printf(r->a, "%s_parts", k->name)));
}

/* What the device's assembler said about a function; NULL = nothing, or nobody asked. */
const ReportBuilt *report_built(const Report *r, const char *name) {
    for (int i = 0; r->o->built && i < r->o->built->n; i++)
        if (!strcmp(r->o->built->v[i].name, name)) return &r->o->built->v[i];
    return NULL;
}

/* sm_80 to sm_100: 64 warps, 64 Ki registers, allocated to warps by 256; kernels are launched in
 * blocks of 256 threads. */
enum { WARPS = 64, BLOCK_WARPS = 8 };

int report_blocks_at_once(int registers, int shared_bytes) {
    enum { FILE_SIZE = 65536, UNIT = 256, SHARED = 228 * 1024 };
    int each = (registers * 32 + UNIT - 1) / UNIT * UNIT;
    int blocks = each ? FILE_SIZE / each / BLOCK_WARPS : WARPS / BLOCK_WARPS;
    if (shared_bytes && SHARED / shared_bytes < blocks) blocks = SHARED / shared_bytes;
    return blocks < WARPS / BLOCK_WARPS ? blocks : WARPS / BLOCK_WARPS;
}

/* The percentage of a multiprocessor's warps that fit. */
static int occupancy(const Kernel *k) {
    return 100 * report_blocks_at_once(k->registers, k->shared_bytes) * BLOCK_WARPS / WARPS;
}

/* ---- text -------- */
/* Prints one line about a kernel: what takes its rows, vector width, tiles, and its registers and
 * occupancy. */
static void print_kernel(Report *r, const Kernel *k) {
    StrBuf *b = r->b;
    sb_printf(b, "    %s:", k->name);
    if (k->threads->kind) sb_printf(b, " by %s", loop_taker_words[k->threads->kind]);
    if (k->threads->lanes) sb_printf(b, " of %d lanes", k->threads->lanes);
    if (k->threads->pack > 1) sb_printf(b, ", %d neighbours", k->threads->pack);
    if (k->lanes) sb_printf(b, " vectors of %d", k->lanes);
    if (!k->lanes && !k->threads->kind) sb_puts(b, " scalars");
    if (k->tile) sb_printf(b, ", %d columns in registers", k->tile);
    if (k->rows) sb_printf(b, ", %d rows in lanes", k->rows);
    if (k->strips) sb_printf(b, ", %d entries at once", k->strips);
    if (k->ahead) sb_printf(b, ", asks %d ahead", k->ahead);
    if (k->built)
        sb_printf(b, "; %d registers, %d B shared, %d B spilled, occupancy %d %%", k->registers,
                  k->shared_bytes, k->spill_bytes, occupancy(k));
    sb_puts(b, "\n");
}

/* ---- JSON -------- */
/* Prints an integer member of a JSON object if v is positive. */
static void json_positive(Json *j, const char *key, int v) {
    if (v > 0) json_int(j, key, v);
}

/* Prints a kernel as a JSON object. ph, step: the step that launches it. */
static void json_kernel(Report *r, const PPhase *ph, int step, const Kernel *k) {
    Json *j = r->j;
    json_object(j, NULL);
    json_text(j, "name", k->name);
    json_text(j, "phase", ph->name);
    json_int(j, "step", step);
    if (k->threads->kind) json_text(j, "by", loop_taker_words[k->threads->kind]);
    json_positive(j, "team_lanes", k->threads->lanes);
    json_positive(j, "neighbours", k->threads->pack);
    json_positive(j, "vector", k->lanes);
    json_positive(j, "tile_columns", k->tile);
    json_positive(j, "rows_in_lanes", k->rows);
    json_positive(j, "entries_at_once", k->strips);
    json_positive(j, "prefetch_ahead", k->ahead);
    if (k->built) {
        json_int(j, "registers", k->registers);
        json_int(j, "shared_bytes", k->shared_bytes);
        json_int(j, "spill_bytes", k->spill_bytes);
        json_int(j, "stack_bytes", k->stack_bytes);
        json_int(j, "occupancy_percent", occupancy(k));
    }
    json_end(j);
}

/* ---- all -------- */
/* Prints the kernel k of a phase's step, as text or JSON. */
static void report_kernel(Report *r, const PPhase *ph, int step, const LKernel *k) {
    Kernel facts = {.name = k->name, .threads = &k->threads};
    find_vectors(&facts, k->body);
    add_built(r, &facts);
    if (r->j)
        json_kernel(r, ph, step, &facts);
    else
        print_kernel(r, &facts);
}

/* Prints the kernels that the target emits for a step: the step's kernel after the passes over
 * loops, which may split it. A plan that was scheduled for a target has been through these
 * passes. */
static void report_emitted(Report *r, const TargetMachine *machine, const PPhase *ph, int step) {
    const LKernel *k = ph->steps.v[step]->kernel;
    Loops l = {0};
    if (r->p->scheduled_for) {
        for (int i = 0; i < k->stages.n; i++) report_kernel(r, ph, step, k->stages.v[i]);
        if (!k->stages.n) report_kernel(r, ph, step, k);
        return;
    }
    if (!loop_pass_all(r->c, r->p, r->o->on, machine, k, &l)) return;
    for (int i = 0; i < l.k.n; i++) report_kernel(r, ph, step, l.k.v[i]);
}

/* Prints the report: all kernels of all phases as they are emitted for the target o->on; nothing if
 * there is no target. */
void report_kernels(Report *r) {
    TargetMachine machine = {0};
    if (!r->o->on || !loop_pass_machine(r->c, r->o->on, r->o->to, &machine)) return;
    if (r->j) {
        json_object(r->j, "kernels");
        json_text(r->j, "target", r->o->on->name);
        json_text(r->j, "not_built", r->o->built ? NULL : r->o->not_built);
        json_array(r->j, "all");
    } else {
        sb_printf(r->b, "kernels: as they are emitted for %s\n", r->o->on->name);
    }
    for (int p = 0; p < r->p->phases.n; p++) {
        const PPhase *ph = r->p->phases.v[p];
        if (!r->j) sb_printf(r->b, "  @%s\n", ph->name);
        for (int i = 0; i < ph->steps.n; i++)
            if (ph->steps.v[i]->kernel) report_emitted(r, &machine, ph, i);
    }
    if (!r->j) return;
    json_end(r->j);
    json_end(r->j);
}
