/* Several neighbouring elements for a thread, in kernels that have a thread for each: what lies at
 * the thread's own elements is loaded and stored at once, 16 bytes where it can be.
 *
 *     kernel k by threads {                    kernel k by threads pack 4 {
 *       for %i in N parallel {          =>       (the same)
 *         %x = load x[%i]
 *
 * Thread coarsening (Volkov and Demmel 2008): as many elements as the widest type of what lies
 * there lets be loaded at once.  Where several loops share a launch (the updates of all parameters)
 * elements stay one by one: with packs nvcc gave such kernels up to 128 registers in place of 64.
 */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

enum { PACK_BYTES = 16 };

/* Records in needed[] the registers that s and the statements after it need. A value that nobody
 * needs is not computed, so it needs none. */
static void mark_used(bool *needed, const LStmt *s) {
    if (!s) return;
    mark_used(needed, s->next);
    if (s->dst && !needed[s->dst->id]) return;
    LReg *const *r;
    for (int i = 0; (r = loop_operand(s, i)); i++) {
        bool is_index = loop_is_access(s) && i < s->buf->rank;
        if (!is_index || !loop_is_unit_extent(s->buf->dim[i])) needed[(*r)->id] = true;
    }
    if (loop_has_body(s)) mark_used(needed, s->body);
}

bool loop_is_at_own_element(const LoopNest *nest, const LStmt *s) {
    const LBuf *b = s->buf;
    int dim = 0;
    for (int i = 0; i < nest->n; i++) {
        const LStmt *loop = nest->loop[i];
        if (loop_is_unit_extent(loop->extent)) continue;
        while (dim < b->rank && loop_is_unit_extent(b->dim[dim])) dim++;
        if (dim == b->rank || s->idx[dim] != loop->var) return false;
        if (!expr_eq(b->dim[dim++], loop->extent)) return false;
    }
    bool any = dim > 0;
    while (dim < b->rank && loop_is_unit_extent(b->dim[dim])) dim++;
    return any && dim == b->rank;
}

/* The record of buffer b among those accessed at threads' own elements; it is added if it is new.
 */
static LoopStream *packed_buffer(LoopElements *e, const LBuf *b) {
    for (int i = 0; i < e->streams.n; i++)
        if (e->streams.v[i].buf == b) return &e->streams.v[i];
    LoopStream s = {.buf = b, .only_own = true};
    vec_push(e->a, &e->streams, s);
    return &e->streams.v[e->streams.n - 1];
}

/* Records one access to a buffer in e. unconditional: every iteration makes it, it is in no `if`.
 */
static void record_access(LoopElements *e, const LStmt *s, bool unconditional) {
    if (s->buf->kind == LB_LOCAL || (s->kind == L_LOAD && !e->used[s->dst->id])) return;
    bool is_own = loop_is_at_own_element(e->nest, s);
    if (!is_own && !s->buf->written) return;
    LoopStream *stream = packed_buffer(e, s->buf);
    bool stored = s->kind == L_STORE && unconditional;
    stream->only_own = stream->only_own && is_own;
    stream->read = stream->read || (!stored && !stream->written);
    stream->unconditional = stream->unconditional || unconditional;
    stream->written = stream->written || s->kind != L_LOAD;
    stream->packed = stream->packed || s->packed;
}

/* Records the accesses of a statement list up to `end` (the next loop of the nest, or NULL). */
static void record_accesses(LoopElements *e, const LStmt *s, const LStmt *end, bool unconditional) {
    for (; s && s != end; s = s->next) {
        if (s->kind == L_FOR || (s->kind == L_LOCAL && s->buf->rank)) e->no_inner_loops = false;
        if (loop_is_access(s)) record_access(e, s, unconditional);
        if (s->kind == L_IF) record_accesses(e, s->body, NULL, false);
    }
}

bool loop_is_packed_buffer(const LoopStream *s) {
    return s->only_own && s->unconditional;
}

/* Loop number i + 1 of the nest, the one directly inside loop i; NULL where i is the innermost. */
static const LStmt *next_inner_loop(const LoopNest *nest, int i) {
    return i + 1 < nest->n ? nest->loop[i + 1] : NULL;
}

LoopElements loop_find_packable(Arena *a, const LKernel *k, const LoopNest *nest) {
    LoopElements found = {.a = a, .nest = nest, .no_inner_loops = true};
    found.used = NEWN(a, bool, k->n_regs + 1);
    mark_used(found.used, k->body);
    for (int i = 0; i < nest->n; i++)
        record_accesses(&found, nest->loop[i]->body, next_inner_loop(nest, i), true);
    return found;
}

/* Why each thread gets one element only, in words; NULL: it gets several (pack > 1). */
static const char *pack_fault(const LoopElements *e, int max_pack, int pack) {
    bool has_packed = false;
    for (int i = 0; i < e->streams.n; i++) has_packed |= loop_is_packed_buffer(&e->streams.v[i]);
    if (pack > 1) return NULL;
    if (!e->no_inner_loops) return "there are loops or arrays in it";
    if (!has_packed) return "nothing lies at its own elements alone";
    return max_pack < 2 ? "coarsen-threads.max-elements says so"
                        : "there are too few, or they are too wide";
}

int loop_max_pack(const LoopElements *e, int max_pack) {
    int widest = 0, pack = 1;
    int64_t n_elements = 1, extent;
    for (int i = 0; i < e->streams.n; i++) {
        const LoopStream *s = &e->streams.v[i];
        if (loop_is_packed_buffer(s) && dtype_bytes(s->buf->dt) > widest)
            widest = dtype_bytes(s->buf->dt);
    }
    for (int i = 0; i < e->nest->n; i++)
        n_elements *= expr_is_const(e->nest->loop[i]->extent, &extent) ? extent : max_pack;
    if (!e->no_inner_loops || widest == 0) return 1;
    while (pack * 2 <= max_pack && pack * 2 * widest <= PACK_BYTES) pack *= 2;
    return n_elements < pack ? 1 : pack;
}

LoopNest loop_collapsed_nest(const LKernel *k) {
    LoopNest nest = {{loop_parallel(k)}, 0};
    for (const LStmt *l = nest.loop[0]; l && nest.n <= LOOP_COLLAPSE_MAX;) {
        nest.loop[nest.n++] = l;
        l = loop_collapsed(l->body);
    }
    return nest;
}

/* Runs the pass: chooses the number of neighbouring elements per thread for each kernel whose
 * parallel iterations go to single threads. */
static bool run_coarsen_threads(PassCtx *p, Loops *l) {
    const int max_pack = pass_threshold(l->c, PASS_T_COARSEN);
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        LKernel *k = l->k.v[i];
        const LoopNest nest = loop_collapsed_nest(k);
        if (k->threads.kind != LT_THREAD || k->threads.pack || !nest.n) continue;
        if (loop_is_behind(k))
            continue; /* the device counts their rows, as those of joined loops */
        const LoopElements e = loop_find_packable(l->a, k, &nest);
        const int pack = l->rows_come ? 1 : loop_max_pack(&e, max_pack);
        if (pack > 1) k->threads.pack = pack;
        const char *why = l->rows_come ? "of neighbours one may wait for rows of other processes"
                                       : pack_fault(&e, max_pack, pack);
        (why ? pass_refusal : pass_remark)(p, k->span, "coarsen-threads",
                                           "%s: %d elements for a thread%s%s", k->name, pack,
                                           why ? ": " : "", why ? why : "");
    }
    return true;
}

const Pass loop_pass_coarsen_threads = {
    .name = "coarsen-threads",
    .summary = "how many neighbouring elements a thread has, where a thread has each",
    .run_loops = run_coarsen_threads,
};
