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

/* Records that r is needed. */
static void mark_reg(bool *used, const LReg *r) {
    if (r) used[r->id] = true;
}

/* Records the registers that s and the statements behind it need; a value that nobody needs makes
 * none. */
static void mark_used(bool *used, const LStmt *s) {
    if (!s) return;
    mark_used(used, s->next);
    if (s->dst && !used[s->dst->id]) return;
    for (int i = 0; i < s->n_arg; i++) mark_reg(used, s->arg[i]);
    for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
        if (!loop_is_unit_extent(s->buf->dim[i])) mark_reg(used, s->idx[i]);
    mark_reg(used, s->src);
    mark_reg(used, s->cond);
    mark_reg(used, s->at);
    if (loop_has_body(s)) mark_used(used, s->body);
}

/* Whether the access is at the thread's own element: the loop variables of the nest are its
 * indices, in their order, and the dimensions are as long as their ranges. */
bool loop_is_at_own_element(const LoopNest *nest, const LStmt *s) {
    const LBuf *b = s->buf;
    int at = 0;
    for (int i = 0; i < nest->n; i++) {
        const LStmt *loop = nest->loop[i];
        if (loop_is_unit_extent(loop->extent)) continue;
        while (at < b->rank && loop_is_unit_extent(b->dim[at])) at++;
        if (at == b->rank || s->idx[at] != loop->var) return false;
        if (!expr_eq(b->dim[at++], loop->extent)) return false;
    }
    bool any = at > 0;
    while (at < b->rank && loop_is_unit_extent(b->dim[at])) at++;
    return any && at == b->rank;
}

/* The record of buffer b, which is added if it is new. */
static LoopStream *packed_buffer(LoopElements *e, const LBuf *b) {
    for (int i = 0; i < e->streams.n; i++)
        if (e->streams.v[i].buf == b) return &e->streams.v[i];
    LoopStream s = {.buf = b, .only_own = true};
    vec_push(e->a, &e->streams, s);
    return &e->streams.v[e->streams.n - 1];
}

/* Records an access. sure: it is made in every iteration. */
static void record_access(LoopElements *e, const LStmt *s, bool sure) {
    if (s->buf->kind == LB_LOCAL || (s->kind == L_LOAD && !e->used[s->dst->id])) return;
    bool own = loop_is_at_own_element(e->nest, s);
    if (!own && !s->buf->written) return;
    LoopStream *x = packed_buffer(e, s->buf);
    bool stored = s->kind == L_STORE && sure;
    x->only_own = x->only_own && own;
    x->read = x->read || (!stored && !x->written);
    x->unconditional = x->unconditional || sure;
    x->written = x->written || s->kind != L_LOAD;
    x->packed = x->packed || s->packed;
}

/* Records the accesses of a list up to `end` (the next loop of the nest, or NULL). */
static void record_accesses(LoopElements *e, const LStmt *s, const LStmt *end, bool sure) {
    for (; s && s != end; s = s->next) {
        if (s->kind == L_FOR || (s->kind == L_LOCAL && s->buf->rank)) e->no_inner_loops = false;
        if (loop_is_access(s)) record_access(e, s, sure);
        if (s->kind == L_IF) record_accesses(e, s->body, NULL, false);
    }
}

/* Whether the buffer is loaded or stored a pack at a time. */
bool loop_is_packed_buffer(const LoopStream *s) {
    return s->only_own && s->unconditional;
}

/* The next inner loop of the nest, or NULL. */
static const LStmt *next_inner_loop(const LoopNest *nest, int i) {
    return i + 1 < nest->n ? nest->loop[i + 1] : NULL;
}

/* Finds the buffers that each thread accesses at its own element: they are contiguous over threads,
 * so packs of them can be loaded and stored at once. */
LoopElements loop_find_packable(Arena *a, const LKernel *k, const LoopNest *nest) {
    LoopElements e = {.a = a, .nest = nest, .no_inner_loops = true};
    e.used = NEWN(a, bool, k->n_regs + 1);
    mark_used(e.used, k->body);
    for (int i = 0; i < nest->n; i++)
        record_accesses(&e, nest->loop[i]->body, next_inner_loop(nest, i), true);
    return e;
}

/* Why a thread has one element only; NULL: it has several. */
static const char *pack_fault(const LoopElements *e, int most, int pack) {
    bool any = false;
    for (int i = 0; i < e->streams.n; i++) any |= loop_is_packed_buffer(&e->streams.v[i]);
    if (pack > 1) return NULL;
    if (!e->no_inner_loops) return "there are loops or arrays in it";
    if (!any) return "nothing lies at its own elements alone";
    return most < 2 ? "coarsen-threads.max-elements says so"
                    : "there are too few, or they are too wide";
}

/* The largest number of elements per thread (pack), a power of two: a pack of the widest type is
 * loaded at once, and there are at least as many elements. */
int loop_max_pack(const LoopElements *e, int most) {
    int widest = 0, pack = 1;
    int64_t n = 1, extent;
    for (int i = 0; i < e->streams.n; i++) {
        const LoopStream *s = &e->streams.v[i];
        if (loop_is_packed_buffer(s) && dtype_bytes(s->buf->dt) > widest)
            widest = dtype_bytes(s->buf->dt);
    }
    for (int i = 0; i < e->nest->n; i++)
        n *= expr_is_const(e->nest->loop[i]->extent, &extent) ? extent : most;
    if (!e->no_inner_loops || widest == 0) return 1;
    while (pack * 2 <= most && pack * 2 * widest <= PACK_BYTES) pack *= 2;
    return n < pack ? 1 : pack;
}

/* The parallel loop and the loops collapsed with it, outermost first. */
LoopNest loop_collapsed_nest(const LKernel *k) {
    LoopNest nest = {{loop_parallel(k)}, 0};
    for (const LStmt *l = nest.loop[0]; l && nest.n <= LOOP_COLLAPSE_MAX;) {
        nest.loop[nest.n++] = l;
        l = loop_collapsed(l->body);
    }
    return nest;
}

/* Chooses the number of elements per thread for each kernel with a thread for each element. */
static bool run(PassCtx *p, Loops *l) {
    const int most = pass_threshold(l->c, PASS_T_COARSEN);
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        LKernel *k = l->k.v[i];
        const LoopNest nest = loop_collapsed_nest(k);
        if (k->threads.kind != LT_THREAD || k->threads.pack || !nest.n) continue;
        if (loop_is_behind(k))
            continue; /* the device counts their rows, as those of joined loops */
        const LoopElements e = loop_find_packable(l->a, k, &nest);
        const int pack = loop_max_pack(&e, most);
        if (pack > 1) k->threads.pack = pack;
        const char *why = pack_fault(&e, most, pack);
        (why ? pass_refusal : pass_remark)(p, k->span, "coarsen-threads",
                                           "%s: %d elements for a thread%s%s", k->name, pack,
                                           why ? ": " : "", why ? why : "");
    }
    return true;
}

const Pass loop_pass_coarsen_threads = {
    .name = "coarsen-threads",
    .summary = "how many neighbouring elements a thread has, where a thread has each",
    .run_loops = run,
};
