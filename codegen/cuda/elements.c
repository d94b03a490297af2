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
 *
 * Where several loops share a launch (the updates of all parameters) elements stay one by one: with
 * packs nvcc gave such kernels up to 128 registers in place of 64. */
#include "codegen/cuda/cuda.h"

enum { PACK_BYTES = 16, PACK_MOST = 8 };

/* A buffer that is reached at the thread's own element. */
typedef struct {
    const LBuf *buf;
    bool fits; /* a written one is reached nowhere else */
    bool sure; /* nothing asks first whether it may be */
    bool read; /* before it is surely written */
    bool written;
    const char *name;
} Stream;

typedef struct {
    CuFn *f;
    const CuNest *nest;
    VEC(Stream) streams;
    bool straight; /* no loops and no arrays in it */
} Elements;

/* The loops' variables in their order, in dimensions as long as their ranges. */
static bool is_own(const CuNest *nest, const LStmt *s) {
    const LBuf *b = s->buf;
    int at = 0;
    for (int i = 0; i < nest->n; i++) {
        const LStmt *loop = nest->loop[i];
        if (loop_is_one(loop->extent)) continue;
        while (at < b->rank && loop_is_one(b->dim[at])) at++;
        if (at == b->rank || s->idx[at] != loop->var) return false;
        if (!expr_eq(b->dim[at++], loop->extent)) return false;
    }
    bool any = at > 0;
    while (at < b->rank && loop_is_one(b->dim[at])) at++;
    return any && at == b->rank;
}

static Stream *stream_of(Elements *e, const LBuf *b) {
    for (int i = 0; i < e->streams.n; i++)
        if (e->streams.v[i].buf == b) return &e->streams.v[i];
    Stream s = {.buf = b, .fits = true};
    vec_push(e->f->a, &e->streams, s);
    return &e->streams.v[e->streams.n - 1];
}

static void note_access(Elements *e, const LStmt *s, bool sure) {
    if (s->buf->kind == LB_LOCAL || (s->kind == L_LOAD && !e->f->used[s->dst->id])) return;
    bool own = is_own(e->nest, s);
    if (!own && !s->buf->written) return;
    Stream *x = stream_of(e, s->buf);
    bool stored = s->kind == L_STORE && sure;
    x->fits = x->fits && own;
    x->read = x->read || (!stored && !x->written);
    x->sure = x->sure || sure;
    x->written = x->written || s->kind != L_LOAD;
}

/* Up to `end`: the next loop of the nest, or NULL. */
static void note(Elements *e, const LStmt *s, const LStmt *end, bool sure) {
    for (; s && s != end; s = s->next) {
        if (s->kind == L_FOR || (s->kind == L_LOCAL && s->buf->rank)) e->straight = false;
        if (loop_is_access(s)) note_access(e, s, sure);
        if (s->kind == L_IF) note(e, s->body, NULL, false);
    }
}

static bool is_packed(const Stream *s) {
    return s->fits && s->sure;
}

static const LStmt *next_of(const CuNest *nest, int i) {
    return i + 1 < nest->n ? nest->loop[i + 1] : NULL;
}

static Elements elements(CuFn *f, const CuNest *nest) {
    Elements e = {.f = f, .nest = nest, .straight = true};
    for (int i = 0; i < nest->n; i++) note(&e, nest->loop[i]->body, next_of(nest, i), true);
    return e;
}

/* As many as the widest type lets be loaded at once. */
static int pack_of(const Elements *e) {
    int widest = 0;
    int64_t n = 1, extent;
    for (int i = 0; i < e->streams.n; i++) {
        const Stream *s = &e->streams.v[i];
        if (is_packed(s) && dtype_bytes(s->buf->dt) > widest) widest = dtype_bytes(s->buf->dt);
    }
    for (int i = 0; i < e->nest->n; i++)
        n *= expr_is_const(e->nest->loop[i]->extent, &extent) ? extent : PACK_MOST;
    if (!e->straight || widest == 0) return 1;
    int pack = PACK_BYTES / widest < PACK_MOST ? PACK_BYTES / widest : PACK_MOST;
    return n < pack ? 1 : pack;
}

int cu_elements(CuFn *f, const CuNest *nest) {
    Elements e = elements(f, nest);
    return pack_of(&e);
}

static void begin(CuFn *f, Stream *s, int pack) {
    const char *type = arena_printf(f->a, "GnPack<%s, %d>", cu_mem_type(s->buf->dt), pack);
    s->name = arena_printf(f->a, "gn_pack_%d", f->n_names++);
    if (s->read)
        cu_line(f, "%s%s %s = gn_pack_some<%d>(&%s[gn_from], gn_on);", s->written ? "" : "const ",
                type, s->name, pack, f->buf[s->buf->id]);
    else
        cu_line(f, "%s %s;", type, s->name);
}

/* Aliases are of accesses: a buffer that is only read may be read elsewhere, too. */
static void stand_for(CuFn *f, const Elements *e, const LStmt *s, const LStmt *end) {
    for (; s && s != end; s = s->next) {
        if (s->kind == L_IF) stand_for(f, e, s->body, NULL);
        for (int i = 0; loop_is_access(s) && i < e->streams.n; i++) {
            const Stream *x = &e->streams.v[i];
            if (x->buf != s->buf || !is_packed(x) || !is_own(e->nest, s)) continue;
            CuAlias a = {s->buf, s, arena_printf(f->a, "%s.at[gn_k]", x->name), -1, .memory = true};
            vec_push(f->a, &f->alias, a);
        }
    }
}

static bool stands(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->alias.n; i++)
        if (f->alias.v[i].acc == s) return true;
    return false;
}

/* Somebody wants the variable's value: not only the place of what is packed. */
static bool asks(const CuFn *f, const LStmt *s, const LStmt *end, const LReg *r) {
    for (; s && s != end; s = s->next) {
        bool value = s->kind == L_LET || s->kind == L_LOAD;
        if (value && !f->used[s->dst->id]) continue;
        for (int i = 0; s->kind == L_LET && i < s->n_arg; i++)
            if (s->arg[i] == r) return true;
        for (int i = 0; loop_is_access(s) && !stands(f, s) && i < s->buf->rank; i++)
            if (s->idx[i] == r) return true;
        if (s->src == r || s->cond == r) return true;
        if (s->kind == L_IF && asks(f, s->body, NULL, r)) return true;
    }
    return false;
}

static bool nest_asks(const CuFn *f, const CuNest *nest, const LReg *r) {
    for (int i = 0; i < nest->n; i++)
        if (asks(f, nest->loop[i]->body, next_of(nest, i), r)) return true;
    return false;
}

static void put(CuFn *f, const Stream *s) {
    cu_line(f, "gn_put_some(&%s[gn_from], %s, gn_on);", f->buf[s->buf->id], s->name);
}

void cu_element_pack(CuFn *f, const CuNest *nest, void (*element)(CuFn *f, const CuNest *nest)) {
    Elements e = elements(f, nest);
    const int pack = pack_of(&e), outer = f->alias.n;
    bool wanted[LOOP_COLLAPSE_MAX + 1];
    for (int i = 0; i < e.streams.n; i++)
        if (is_packed(&e.streams.v[i])) begin(f, &e.streams.v[i], pack);
    for (int i = 0; i < nest->n; i++) stand_for(f, &e, nest->loop[i]->body, next_of(nest, i));
    for (int i = 0; i < nest->n; i++) {
        const LReg *r = nest->loop[i]->var;
        wanted[i] = f->used[r->id];
        f->used[r->id] = nest_asks(f, nest, r);
    }
    cu_line(f, "#pragma unroll");
    cu_open(f, "for (int gn_k = 0; gn_k < %d; gn_k++) {", pack);
    cu_line(f, "if (gn_k >= gn_on) break;");
    element(f, nest);
    cu_close(f);
    f->alias.n = outer;
    for (int i = 0; i < nest->n; i++) f->used[nest->loop[i]->var->id] = wanted[i];
    for (int i = 0; i < e.streams.n; i++)
        if (is_packed(&e.streams.v[i]) && e.streams.v[i].written) put(f, &e.streams.v[i]);
}
