/* Several neighbouring elements for a thread, in kernels that have a thread for each: what lies at
 * the thread's own elements is loaded and stored at once, 16 bytes where it can be.
 *
 *     for i in N parallel {         GN_ELEMENTS(gn_i, gn_extent, 4) {
 *       %x = load x[i]                GnPack<float, 4> x = gn_pack_some<4>(&x[gn_from], gn_on);
 *       %s = load src[i]              GnPack<int32_t, 4> src, likewise;  GnPack<float, 4> y;
 *       %z = load z[s]                for gn_k in 4, unrolled, but no more than gn_on {
 *       store y[i] x * z                .. x.at[gn_k] .. z[src.at[gn_k]] ..  y.at[gn_k] = ..
 *     }                               }
 *                                     gn_put_some(&y[gn_from], y, gn_on);
 *                                   }
 *
 * Each element is computed as it would be alone.  The last thread may have fewer: what is not there
 * is neither loaded nor stored.  Buffers begin at multiples of 64 bytes, at least.
 * (How many there are: codegen/loop_passes/coarsen_threads.c.) */
#include "codegen/cuda/cuda.h"

/* Loop number i + 1 of the nest, the one directly inside loop i; NULL where i is the innermost. */
static const LStmt *next_inner_loop(const LoopNest *nest, int i) {
    return i + 1 < nest->n ? nest->loop[i + 1] : NULL;
}

/* Declares a pack, the `pack` neighbouring elements that this thread has of a buffer, and loads it
 * if the kernel reads them (as 16-byte vector loads where possible). */
static void emit_pack_load(CuFn *f, LoopStream *stream, int pack) {
    const char *type = arena_printf(f->a, "GnPack<%s, %d>", cu_mem_type(stream->buf->dt), pack);
    stream->name = arena_printf(f->a, "gn_pack_%d", f->n_fresh_names++);
    if (stream->read)
        cu_line(f, "%s%s %s = gn_pack_some<%d>(&%s[gn_from], gn_on);",
                stream->written ? "" : "const ", type, stream->name, pack, f->buf[stream->buf->id]);
    else
        cu_line(f, "%s %s;", type, stream->name);
}

/* Makes packed accesses in s .. end use the pack instead of memory. The alias is for one statement,
 * not for the buffer, which may also be read at other indices. */
static void alias_packed_accesses(CuFn *f, const LoopElements *e, const LStmt *s,
                                  const LStmt *end) {
    for (; s && s != end; s = s->next) {
        if (s->kind == L_IF) alias_packed_accesses(f, e, s->body, NULL);
        for (int i = 0; loop_is_access(s) && i < e->streams.n; i++) {
            const LoopStream *stream = &e->streams.v[i];
            if (stream->buf != s->buf || !s->packed) continue;
            CuAlias a = {s->buf, s, arena_printf(f->a, "%s.at[gn_k]", stream->name), -1,
                         .in_memory_type = true};
            vec_push(f->a, &f->alias, a);
        }
    }
}

/* Whether accesses by statement s are written as a pack's element. */
static bool has_alias(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->alias.n; i++)
        if (f->alias.v[i].acc == s) return true;
    return false;
}

/* Whether a statement in s .. end needs the value of register r. Indices of accesses that a pack
 * replaces do not count: their text has no index. */
static bool reads_register(const CuFn *f, const LStmt *s, const LStmt *end, const LReg *r) {
    for (; s && s != end; s = s->next) {
        bool value = loop_is_value(s);
        if (value && !f->used[s->dst->id]) continue;
        for (int i = 0; s->kind == L_LET && i < s->n_arg; i++)
            if (s->arg[i] == r) return true;
        for (int i = 0; loop_is_access(s) && !has_alias(f, s) && i < s->buf->rank; i++)
            if (s->idx[i] == r) return true;
        if (s->src == r || s->cond == r) return true;
        if (s->kind == L_IF && reads_register(f, s->body, NULL, r)) return true;
    }
    return false;
}

/* Whether any statement of the loop nest needs the value of register r. */
static bool nest_reads_register(const CuFn *f, const LoopNest *nest, const LReg *r) {
    for (int i = 0; i < nest->n; i++)
        if (reads_register(f, nest->loop[i]->body, next_inner_loop(nest, i), r)) return true;
    return false;
}

/* Emits the store of a pack to memory; the last thread stores only the elements that exist (gn_on).
 */
static void emit_pack_store(CuFn *f, const LoopStream *stream) {
    cu_line(f, "gn_put_some(&%s[gn_from], %s, gn_on);", f->buf[stream->buf->id], stream->name);
}

/* Emits what a thread does that has several neighbouring elements: loads of packs, an unrolled loop
 * with what emit_element() emits for element gn_k, and stores of packs. Variables of the nest's
 * loops are computed only where something besides packed accesses reads them. */
void cu_emit_packed_elements(CuFn *f, const LoopNest *nest,
                             void (*emit_element)(CuFn *f, const LoopNest *nest)) {
    LoopElements packable = loop_find_packable(f->a, f->k, nest);
    const int pack = f->sched.pack, n_outer_aliases = f->alias.n;
    bool saved_used[LOOP_COLLAPSE_MAX + 1];
    for (int i = 0; i < packable.streams.n; i++)
        if (packable.streams.v[i].packed) emit_pack_load(f, &packable.streams.v[i], pack);
    for (int i = 0; i < nest->n; i++)
        alias_packed_accesses(f, &packable, nest->loop[i]->body, next_inner_loop(nest, i));
    for (int i = 0; i < nest->n; i++) {
        const LReg *r = nest->loop[i]->var;
        saved_used[i] = f->used[r->id];
        f->used[r->id] = nest_reads_register(f, nest, r);
    }
    cu_line(f, "#pragma unroll");
    cu_open(f, "for (int gn_k = 0; gn_k < %d; gn_k++) {", pack);
    cu_line(f, "if (gn_k >= gn_on) break;");
    emit_element(f, nest);
    cu_close(f);
    f->alias.n = n_outer_aliases;
    for (int i = 0; i < nest->n; i++) f->used[nest->loop[i]->var->id] = saved_used[i];
    for (int i = 0; i < packable.streams.n; i++)
        if (packable.streams.v[i].packed && packable.streams.v[i].written)
            emit_pack_store(f, &packable.streams.v[i]);
}
