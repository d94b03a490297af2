/* --report=memory: every buffer with its size and life, and the arena of each phase.
 *
 * The runtime packs the temporaries of all phases into one arena by their lives, from the
 * actual sizes; with known sizes the same function packs them here, so the number is that
 * of `./train info`.  Without sizes there is no order of sizes to pack by: then what is
 * live at each step is printed with all rows; what is local to blocks of rows takes fewer. */
#include "codegen/report/report.h"
#include "ir/text.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/exec/blocks.h"
#include "runtime/pack.h"

static const char *const lifetime_word[] = {
    [PB_DATA] = "as the data",
    [PB_VAR] = "as the trainer",
    [PB_INPUT] = "as the trainer, written before each phase",
    [PB_SAVED] = "as the data, written by @load or @encode",
    [PB_OUTPUT] = "as the trainer, until its phase runs again",
    [PB_MAP] = "as the data",
    [PB_LOGICAL] = "as the data",
    [PB_CUTS] = "as the data",
    [PB_KEY] = "as the trainer, written before each phase",
};

/* The size of buffer b in bytes, as an expression over the sizes of the data. */
static const Expr *buffer_bytes(const Report *r, const PBuf *b) {
    return expr_mul(r->a, b->count, expr_const(r->a, dtype_bytes(b->dt)));
}

/* Whether the buffer lies in the arena: temporaries, and outputs that are no scalars of phases
 * other than @load and @train. */
static bool in_arena(const Report *r, const PBuf *b) {
    if (b->kind != PB_OUTPUT) return b->kind == PB_TEMP;
    Phase phase = r->p->phases.v[b->phase]->func->phase;
    return b->type.rank > 0 && phase != PHASE_LOAD && phase != PHASE_TRAIN;
}

/* The number of the first step of the phase that needs the buffer in the arena; an output is needed
 * from the start. */
static int first_step(const PBuf *b) {
    return b->kind == PB_TEMP ? b->first : 0;
}

/* The number of the last step that needs the buffer in the arena; an output is needed to the end of
 * the phase. */
static int last_step(const Report *r, const PBuf *b) {
    return b->kind == PB_TEMP ? b->last : r->p->phases.v[b->phase]->steps.n;
}

/* The total size of all buffers of a kind. PB_TEMP means all buffers of the phase's arena; buffers
 * in the arena count for no other kind. */
static const Expr *total_bytes(const Report *r, PBufKind kind, int phase) {
    const Expr *e = expr_const(r->a, 0);
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        bool arena = in_arena(r, b);
        if (kind == PB_TEMP ? arena && b->phase == phase : b->kind == kind && !arena)
            e = expr_add(r->a, e, buffer_bytes(r, b));
    }
    return e;
}

/* The bytes of the phase's arena that are live at step number `step`. live: those at the step
 * before. */
static const Expr *live_next(const Report *r, int phase, int step, const Expr *live) {
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        if (!in_arena(r, b) || b->phase != phase) continue;
        if (first_step(b) == step) live = expr_add(r->a, live, buffer_bytes(r, b));
        if (last_step(r, b) == step - 1)
            live = expr_add(r->a, live, expr_mul(r->a, expr_const(r->a, -1), buffer_bytes(r, b)));
    }
    return live;
}

/* The size of a buffer. */
const Expr *report_buffer_bytes(const Report *r, const PBuf *b) {
    return buffer_bytes(r, b);
}

/* Whether the buffer is live at the step. */
bool report_is_live(const Report *r, int phase, const PBuf *b, int step) {
    return in_arena(r, b) && b->phase == phase && first_step(b) <= step && step <= last_step(r, b);
}

/* The number of the step at which most bytes of the phase's arena are live, by nominal sizes;
 * *live: these bytes. -1: the phase has no steps. */
int report_peak(const Report *r, int phase, const Expr **live) {
    const Expr *e = *live = expr_const(r->a, 0);
    int at = -1;
    for (int s = 0; s < r->p->phases.v[phase]->steps.n; s++) {
        e = live_next(r, phase, s, e);
        if (at >= 0 && report_nominal(r, e) <= report_nominal(r, *live)) continue;
        *live = e;
        at = s;
    }
    return at;
}

/* Whether the report is about the host. A trainer that may run on either is reported for the
 * host. */
static bool on_host(const Report *r) {
    return plan_on_host(r->p);
}

/* Reduces *n, the bytes of buffer b for all rows, to those of one block of rows if the buffer is
 * needed for one block at a time. False: a size is not known. */
static bool block_bytes(const Report *r, const PBuf *b, int64_t *n) {
    int64_t rows;
    if (b->block < 0 || !on_host(r)) return true;
    if (!report_value(r, r->p->phases.v[b->phase]->blocks.v[b->block].rows, &rows)) return false;
    if (rows > 0) *n = rt_block_bytes(*n, rows, RT_ALIGN);
    return true;
}

/* Where the runtime puts the buffers of arenas, by its own packing. */
typedef struct {
    int64_t *offset; /* by buffer; -1: it lies in no arena, or a size is not known */
    int64_t *bytes;  /* by phase, of its arena; -1: a size is not known */
} Packing;

/* Packs the buffers of the phase's arena by their lives. */
static void pack_phase(const Report *r, int phase, Packing *to) {
    size_t max_items = (size_t)r->p->bufs.n + 1;
    RtPackItem *item = NEWN(r->a, RtPackItem, max_items);
    int *order = NEWN(r->a, int, max_items), *live = NEWN(r->a, int, max_items);
    int *packed = NEWN(r->a, int, max_items), n = 0;
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        int64_t v;
        if (!in_arena(r, b) || b->phase != phase) continue;
        if (!report_value(r, buffer_bytes(r, b), &v)) return;
        if (!block_bytes(r, b, &v)) return;
        item[n] =
            (RtPackItem){.n_bytes = (size_t)v, .first = first_step(b), .last = last_step(r, b)};
        item[n].loop = on_host(r) ? b->block + 1 : 0;
        item[n].first_in = b->first;
        item[n].last_in = b->last;
        const PPhase *ph = r->p->phases.v[phase];
        for (int k = 0; on_host(r) && k < ph->blocks.n; k++)
            rt_pack_span(&item[n], ph->blocks.v[k].first, ph->blocks.v[k].last);
        packed[n++] = i;
    }
    to->bytes[phase] = (int64_t)rt_pack(item, n, order, live);
    for (int i = 0; i < n; i++) to->offset[packed[i]] = (int64_t)item[i].offset;
}

/* Packs the arenas of all phases. */
static Packing pack_phases(const Report *r) {
    Packing to = {.offset = NEWN(r->a, int64_t, (size_t)r->p->bufs.n + 1),
                  .bytes = NEWN(r->a, int64_t, (size_t)r->p->phases.n + 1)};
    for (int i = 0; i < r->p->bufs.n; i++) to.offset[i] = -1;
    for (int i = 0; i < r->p->phases.n; i++) {
        to.bytes[i] = -1;
        pack_phase(r, i, &to);
    }
    return to;
}

/* How long the buffer keeps its value, in words. */
static const char *lifetime(const Report *r, const PBuf *b) {
    if (b->kind == PB_OUTPUT && in_arena(r, b))
        return arena_printf(r->a, "until another phase runs than @%s",
                            r->p->phases.v[b->phase]->name);
    if (b->kind != PB_TEMP) return lifetime_word[b->kind];
    return arena_printf(r->a, "@%s steps %d..%d", r->p->phases.v[b->phase]->name, b->first,
                        b->last);
}

/* ---- text ------------------------------------------------------------------------------ */
/* Prints a line about each buffer of a kind: type, size, lifetime, and where it is packed. */
static void print_buffers(Report *r, const Packing *packing, PBufKind kind) {
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        if (b->kind != kind) continue;
        sb_printf(r->b, "    %-28s %s[", b->name, dtype_name(b->dt));
        expr_print(r->b, b->count);
        sb_puts(r->b, "]  ");
        report_amount(r, buffer_bytes(r, b), "B");
        sb_printf(r->b, "  %s", lifetime(r, b));
        if (packing->offset[i] >= 0) sb_printf(r->b, ", at byte %" PRId64, packing->offset[i]);
        sb_puts(r->b, "\n");
    }
}

/* Prints the live bytes of the phase's arena, at each step where these change. */
static void print_live(Report *r, int phase) {
    const Expr *before = NULL, *e = expr_const(r->a, 0);
    for (int s = 0; s < r->p->phases.v[phase]->steps.n; s++) {
        e = live_next(r, phase, s, e);
        if (before && expr_eq(e, before)) continue;
        before = e;
        sb_printf(r->b, "      live from step %d: ", s);
        report_amount(r, e, "B");
        sb_puts(r->b, "\n");
    }
}

/* Prints which steps of the phase run block by block of rows, and the buffers that are needed for
 * one block at a time. */
static void print_blocks(Report *r, int phase) {
    const PPhase *ph = r->p->phases.v[phase];
    for (int i = 0; i < ph->blocks.n; i++) {
        sb_printf(r->b, "      steps %d..%d in blocks of ", ph->blocks.v[i].first,
                  ph->blocks.v[i].last);
        expr_print(r->b, ph->blocks.v[i].rows);
        sb_puts(r->b, " rows; of each a block:");
        for (int k = 0, n = 0; k < r->p->bufs.n; k++) {
            const PBuf *b = r->p->bufs.v[k];
            if (b->block == i && b->phase == phase)
                sb_printf(r->b, "%s %s", n++ ? "," : "", b->name);
        }
        sb_puts(r->b, "\n");
    }
}

/* Prints the size of the phase's arena, packed and unpacked, its loops over blocks, and its live
 * bytes. */
static void print_phase(Report *r, const Packing *packing, int phase) {
    sb_printf(r->b, "    @%s: ", r->p->phases.v[phase]->name);
    if (packing->bytes[phase] >= 0) {
        report_amount(r, expr_const(r->a, packing->bytes[phase]), "B");
        sb_puts(r->b, " packed, ");
    }
    report_amount(r, total_bytes(r, PB_TEMP, phase), "B");
    sb_puts(r->b, " without sharing\n");
    print_blocks(r, phase);
    print_live(r, phase);
}

/* Prints the report as text: the buffers of each kind with their total, the temporaries, then the
 * arena of each phase. */
static void print_text(Report *r, const Packing *packing) {
    sb_puts(r->b, "memory: fixed before the first step; a step allocates nothing\n");
    for (int k = 0; k < text_PBufKind.n; k++) {
        if (k == PB_TEMP) continue;
        const Expr *e = total_bytes(r, (PBufKind)k, 0);
        int64_t none;
        if (expr_is_const(e, &none) && none == 0) continue;
        sb_printf(r->b, "  %s: ", text_PBufKind.word[k]);
        report_amount(r, e, "B");
        sb_puts(r->b, "\n");
        print_buffers(r, packing, (PBufKind)k);
    }
    sb_puts(r->b, "  temp: one arena, as large as the largest phase\n");
    print_buffers(r, packing, PB_TEMP);
    for (int p = 0; p < r->p->phases.n; p++) print_phase(r, packing, p);
}

/* ---- JSON ------------------------------------------------------------------------------- */
/* Prints a buffer as a JSON object: type, size and lifetime, and the steps between which it is in
 * the arena, and where, if it is. */
static void json_buffer(Report *r, const Packing *packing, const PBuf *b) {
    json_object(r->j, NULL);
    json_text(r->j, "name", b->name);
    json_text(r->j, "kind", text_PBufKind.word[b->kind]);
    json_text(r->j, "type", dtype_name(b->dt));
    report_json_expr(r, "bytes", buffer_bytes(r, b));
    json_text(r->j, "life", lifetime(r, b));
    if (in_arena(r, b)) {
        json_text(r->j, "phase", r->p->phases.v[b->phase]->name);
        json_int(r->j, "first", first_step(b));
        json_int(r->j, "last", last_step(r, b));
        json_bool(r->j, "block", b->kind == PB_TEMP && b->block >= 0);
        if (packing->offset[b->id] >= 0) json_int(r->j, "offset", packing->offset[b->id]);
    }
    json_end(r->j);
}

/* Prints the arena of a phase as a JSON object: sizes, loops over blocks, and the live bytes at
 * each step. */
static void json_phase(Report *r, const Packing *packing, int phase) {
    const PPhase *ph = r->p->phases.v[phase];
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    if (packing->bytes[phase] >= 0) json_int(r->j, "packed_bytes", packing->bytes[phase]);
    report_json_expr(r, "unshared_bytes", total_bytes(r, PB_TEMP, phase));
    json_array(r->j, "blocks");
    for (int i = 0; i < ph->blocks.n; i++) {
        json_object(r->j, NULL);
        json_int(r->j, "first", ph->blocks.v[i].first);
        json_int(r->j, "last", ph->blocks.v[i].last);
        report_json_expr(r, "rows", ph->blocks.v[i].rows);
        json_end(r->j);
    }
    json_end(r->j);
    json_array(r->j, "live_bytes");
    const Expr *live = expr_const(r->a, 0);
    for (int s = 0; s < ph->steps.n; s++) {
        live = live_next(r, phase, s, live);
        json_object(r->j, NULL);
        json_int(r->j, "step", s);
        report_json_expr(r, "bytes", live);
        json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

/* Prints the report as JSON: all buffers, then the arena of each phase. */
static void print_json(Report *r, const Packing *packing) {
    json_object(r->j, "memory");
    json_array(r->j, "buffers");
    for (int i = 0; i < r->p->bufs.n; i++) json_buffer(r, packing, r->p->bufs.v[i]);
    json_end(r->j);
    json_array(r->j, "arena");
    for (int p = 0; p < r->p->phases.n; p++) json_phase(r, packing, p);
    json_end(r->j);
    json_end(r->j);
}

/* Prints the report. */
void report_memory(Report *r) {
    Packing packing = pack_phases(r);
    (r->j ? print_json : print_text)(r, &packing);
}
