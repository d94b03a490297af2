/* Steps that take turns on blocks of rows: what one of them leaves of a block is still in the
 * cache when the next one wants it.  Which steps may do that is the compiler's to know
 * (codegen/plan_chain.c).
 *
 * A kernel computes each row alone, and an element of a product does not depend on the rows
 * it is computed with; blocks depend on sizes only, so the bits are those of one step after the
 * other, at any number of threads.  Members take the next block that nobody has: a block of hub
 * nodes keeps one of them only. */
#include <stdatomic.h>
#include <time.h>

#include "exec.h"
#include "profile.h"

enum {
    BLOCK_FLOATS = 1 << 17, /* of what a block's rows hold: a quarter of a second-level cache */
    BLOCK_LEAST = 24,       /* rows: a multiple of what a product takes at a time */
    BLOCK_MOST = 480,
    WANTED_BLOCKS = 64,
    PACKED_ALONE = 1 << 16 /* bytes: packed before help would have come */
};

typedef struct {
    RtExec *x;
    const rt_link *link;
    int n_links;
    int64_t rows, parts, unit, n_units; /* a unit: the rows of a part, or a block */
    int64_t block;
    float *pack[RT_MAX_LINKS];
    bool timed;
    atomic_llong ns[RT_MAX_LINKS];
    atomic_llong next; /* unit that nobody has taken yet */
    atomic_bool failed;
} Chain;

static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t block_rows(const Chain *c) {
    int64_t widest = 1;
    for (int i = 0; i < c->n_links; i++) {
        const rt_gemm *g = c->link[i].gemm;
        int64_t width = g ? g->batch * (g->n + g->k) : 0;
        if (width > widest) widest = width;
    }
    int64_t rows = least(BLOCK_MOST, least(BLOCK_FLOATS / widest, c->rows / WANTED_BLOCKS));
    return rows < BLOCK_LEAST ? BLOCK_LEAST : rows / BLOCK_LEAST * BLOCK_LEAST;
}

static void plan_units(Chain *c) {
    c->block = block_rows(c);
    c->unit = c->parts ? (c->rows + c->parts - 1) / c->parts : c->block;
    c->n_units = c->parts ? c->parts : (c->rows + c->unit - 1) / c->unit;
}

static bool run_link(Chain *c, int i, int64_t lo, int64_t hi) {
    const rt_link *l = &c->link[i];
    if (l->gemm)
        return rt_gemm_rows(l->gemm, l->arg[0], l->arg[1], l->arg[2], c->pack[i], lo, hi);
    l->kernel(l->arg, c->x->n, lo, hi);
    return true;
}

static bool run_timed(Chain *c, int i, int64_t lo, int64_t hi) {
    if (!c->timed) return run_link(c, i, lo, hi);
    int64_t since = now_ns();
    bool ok = run_link(c, i, lo, hi);
    atomic_fetch_add(&c->ns[i], now_ns() - since);
    return ok;
}

static bool by_part(const rt_link *l) {
    return !l->gemm && l->per_row == 0;
}

/* All links on the rows of a unit, block by block, then those that want the whole of it. */
static bool run_unit(Chain *c, int64_t u) {
    int64_t lo = u * c->unit, end = least(lo + c->unit, c->rows);
    bool ok = true;
    for (; lo < end; lo += c->block) {
        int64_t hi = least(lo + c->block, end);
        for (int i = 0; i < c->n_links; i++) {
            int64_t per_row = c->link[i].gemm ? 1 : c->link[i].per_row;
            if (per_row) ok &= run_timed(c, i, lo * per_row, hi * per_row);
        }
    }
    for (int i = 0; i < c->n_links; i++)
        if (by_part(&c->link[i])) ok &= run_timed(c, i, u, u + 1);
    return ok;
}

static void run_units(void *arg, int member, int n_members) {
    (void)n_members;
    Chain *c = arg;
    int64_t since = rt_profile_share_begin(c->x);
    for (int64_t u; (u = atomic_fetch_add(&c->next, 1)) < c->n_units;)
        if (!run_unit(c, u)) atomic_store(&c->failed, true);
    rt_profile_share_end(c->x, member, since);
}

/* ---- the products' weights ----------------------------------------------------------------- */
static void run_packs(void *arg, int member, int n_members) {
    const Chain *c = arg;
    for (int i = 0; i < c->n_links; i++)
        if (c->link[i].gemm)
            rt_gemm_pack_rows(c->link[i].gemm, c->link[i].arg[1], c->pack[i], member, n_members);
}

static gnnc_status pack(Chain *c, RtTeam *team) {
    size_t n_bytes = 0, at = 0;
    for (int i = 0; i < c->n_links; i++)
        if (c->link[i].gemm) n_bytes += rt_gemm_scratch(c->link[i].gemm);
    if (n_bytes == 0) return GNNC_OK;
    float *to = rt_scratch(c->x, n_bytes);
    if (!to) return GNNC_E_NOMEM;
    for (int i = 0; i < c->n_links; i++) {
        c->pack[i] = to + at / sizeof *to;
        if (c->link[i].gemm) at += rt_gemm_scratch(c->link[i].gemm);
    }
    rt_team_run(n_bytes > PACKED_ALONE ? team : NULL, run_packs, c);
    return GNNC_OK;
}

static void count(Chain *c) {
    for (int i = 0; i < c->n_links; i++)
        if (c->link[i].gemm)
            c->x->rt->count.library_calls++;
        else
            c->x->rt->count.launches++;
}

static void tell_profile(Chain *c) {
    int64_t ns[RT_MAX_LINKS];
    for (int i = 0; i < c->n_links; i++) ns[i] = atomic_load(&c->ns[i]);
    if (c->timed) rt_profile_links(c->x, c->n_links, ns);
}

gnnc_status rt_chain(RtExec *x, int n_links, const rt_link *link, int64_t rows, int64_t parts) {
    Chain c = {.x = x,
               .link = link,
               .n_links = n_links,
               .rows = rows,
               .parts = parts,
               .timed = x->profile != NULL};
    RtTeam *team = rt_step_team(x);
    for (int i = 0; i < n_links; i++) atomic_init(&c.ns[i], 0);
    atomic_init(&c.next, 0);
    atomic_init(&c.failed, false);
    plan_units(&c);
    count(&c);
    gnnc_status st = pack(&c, team);
    if (st != GNNC_OK) return st;
    rt_team_run(c.n_units > 1 ? team : NULL, run_units, &c);
    tell_profile(&c);
    return atomic_load(&c.failed) ? rt_fail_nomem(&x->rt->err, "a matrix product") : GNNC_OK;
}
