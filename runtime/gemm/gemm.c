/* Matrix products: tiles, each computed on one thread, by our own kernels where the machine
 * has AVX-512 or AVX2 (gemm_kernel.c), else by a library's sgemm called serially, or, where a
 * program is to need no library, by one in plain C (gemm_serial.c).
 *
 * Our own ones pack the weight once, not once per tile, leave the other operand as it is, and
 * take a narrow result (40 classes) at its width.  GFLOP/s of two threads, dnnl_sgemm of oneDNN
 * 2.6 on tiles and ours: 169343 x 256 x 256 334 and 356, with the transposed weight 354 and 383;
 * x 256 x 128 313 and 342; x 40 x 256 168 and 258; x 256 x 40 257 and 282.  A long k stays with
 * the library: 256 x 256 x 169343 312 and at best 310, however the operands were packed or asked
 * for ahead.
 *
 * Wide products run on AMX where there is one (gemm_pieces.c).
 *
 * A threaded BLAS splits by the number of threads, and so gives other bits for other
 * thread counts.  Here the split depends on the sizes only: tiles of C, and for a long
 * k (a sum over nodes or edges) a fixed number of k ranges whose products are added in
 * order.  Our own team runs the tiles, each member having told the library that it is alone
 * (gemm_serial.c). */
#include "runtime/device/device.h"

#include <stdatomic.h>
#include <string.h>

#include "gemm.h"
#include "gemm_amx.h"
#include "gemm_cuts.h"
#include "gemm_kernel.h"
#include "gemm_pieces.h"
#include "gemm_serial.h"
#include "runtime/exec/profile.h"

enum {
    WANTED_TILES = 32,
    MAX_SPLITS = 32,
    TILE_WORK = 1 << 16,   /* multiplications that hide a call */
    OWN_M = 120,           /* rows of a tile of our own: a multiple of 6 and of 8 */
    AMX_M = 256,           /* on AMX: of 32; the first of a tile are not asked for ahead */
    PACKED_MOST = 1 << 22, /* floats: a larger B is left to the library */
    PACKED_ALONE = 1 << 14 /* packed before help would have come */
};

typedef struct {
    RtExec *x;
    rt_gemm g;
    const float *a, *b;
    float *c;
    float *part; /* [splits][batch][m][n]: products of the k ranges, but the one that C holds */
    float *pack; /* own: B, [batch][tile of columns][k][..]: rt_gemm_pack */
    const float *ready; /* B packed before; NULL = it is to be packed into `pack` */
    void *room;         /* for both, of the caller's; NULL = rt_scratch's */
    int64_t tile_m, tile_n, tiles_m, tiles_n, splits, k_len, n_tiles;
    int64_t packed;    /* floats of `pack` */
    bool own, amx;     /* our kernels; those on AMX */
    bool of_f16;       /* operands were widened from f16 */
    float *work;       /* amx: RT_PIECES_WORK for each thread */
    bool add;          /* to what is in C: all splits go to `part` */
    atomic_llong next; /* tile that nobody has taken yet */
    atomic_bool failed;
    atomic_bool plain; /* B is not finite: no product on AMX */
} Job;

static RtStored stored(int64_t rows, int64_t cols, int64_t row, int64_t col) {
    if (col == 1 && (row >= cols || rows == 1)) return (RtStored){'N', most(row, most(cols, 1))};
    return (RtStored){'T', most(col, most(rows, 1))};
}

/* ---- tiles --------------------------------------------------------------------------- */
typedef struct {
    int64_t batch, i, l, p, m, n, k; /* first row, column and k; how many of each */
    const float *a, *b;
    float *c;
    int64_t c_row;
} Tile;

/* Tile number `tile` of the job: where it lies in the matrices and how large it is. Tiles count
 * along columns first, then rows, pieces of k, matrices. */
static Tile tile_at(const Job *j, int64_t tile) {
    const rt_gemm *g = &j->g;
    int64_t tn = tile % j->tiles_n, tm = tile / j->tiles_n % j->tiles_m;
    int64_t split = tile / (j->tiles_n * j->tiles_m) % j->splits;
    Tile t = {.batch = tile / (j->tiles_n * j->tiles_m * j->splits),
              .i = tm * j->tile_m,
              .l = tn * j->tile_n,
              .p = split * j->k_len};
    t.m = least(j->tile_m, g->m - t.i);
    t.n = least(j->tile_n, g->n - t.l);
    t.k = least(j->k_len, g->k - t.p);
    t.a = j->a + t.batch * g->a_batch + t.i * g->a_row + t.p * g->a_col;
    t.b = j->b + t.batch * g->b_batch + t.p * g->b_row + t.l * g->b_col;
    t.c = j->c + t.batch * g->c_batch + t.i * g->c_row + t.l;
    t.c_row = g->c_row;
    int64_t slot = j->add ? split : split - 1;
    if (slot >= 0) {
        t.c = j->part + ((slot * g->batch + t.batch) * g->m + t.i) * g->n + t.l;
        t.c_row = g->n;
    }
    return t;
}

/* Computes a tile by the BLAS library, on this thread. */
static bool library_tile(const Job *j, const Tile *t) {
    const rt_gemm *g = &j->g;
    return rt_gemm_serial.sgemm(stored(g->m, g->k, g->a_row, g->a_col),
                                stored(g->k, g->n, g->b_row, g->b_col), t->m, t->n, t->k, t->a,
                                t->b, t->c, most(t->c_row, t->n));
}

/* The tile in the form that gnnc's own kernels take. */
static RtTile own_tile(const Job *j, const Tile *t) {
    const rt_gemm *g = &j->g;
    return (RtTile){.a = t->a,
                    .a_row = g->a_row,
                    .a_col = g->a_col,
                    .b = t->b,
                    .b_row = g->b_row,
                    .b_col = g->b_col,
                    .c = t->c,
                    .c_row = t->c_row,
                    .m = t->m,
                    .n = t->n,
                    .k = t->k,
                    .of_f16 = j->of_f16};
}

/* Floats that n columns of B take, packed: those of whole tiles. */
static int64_t packed_floats(const Job *j, int64_t n) {
    return j->amx ? rt_pieces_packed(j->g.k, n) : j->g.k * n;
}

static float *packed_at(const Job *j, const Tile *t) {
    return (j->ready ? (float *)(uintptr_t)j->ready : j->pack) +
           t->batch * packed_floats(j, j->g.n) + packed_floats(j, t->l);
}

/* False: an operand is not finite. */
static bool amx_tile(Job *j, const RtTile *own, int member) {
    float *work = j->work + (int64_t)member * RT_PIECES_WORK;
    if (j->g.long_k) return rt_pieces_long_tile(own, work);
    return !atomic_load(&j->plain) && rt_pieces_tile(own, work);
}

/* Computes one tile, with AMX, gnnc's own kernels or the library, as the job says. False: the
 * library failed. */
static bool run_tile(Job *j, int64_t tile, int member) {
    Tile t = tile_at(j, tile);
    RtTile own = own_tile(j, &t);
    if (j->packed || j->ready) own.packed = packed_at(j, &t);
    if (j->amx && amx_tile(j, &own, member)) return true;
    if (j->amx || !j->own) return library_tile(j, &t);
    rt_gemm_tile(&own);
    return true;
}

/* What each thread of the team does to pack B: its share of the panels of all tiles. */
static void run_packs(void *arg, int member, int n_members) {
    Job *j = arg;
    int64_t width = j->amx ? RT_PIECES_PANEL : RT_PANEL;
    int64_t panels = ceil_div(j->g.n, width), in_tile = RT_PANEL_TILE / width;
    int64_t n = panels * j->g.batch;
    for (int64_t i = n * member / n_members; i < n * (member + 1) / n_members; i++) {
        int64_t panel = i % panels;
        Tile t = tile_at(j, i / panels * j->splits * j->tiles_m * j->tiles_n + panel / in_tile);
        RtTile own = own_tile(j, &t);
        if (!j->amx)
            rt_gemm_pack(&own, packed_at(j, &t), panel % in_tile);
        else if (!rt_pieces_pack(&own, packed_at(j, &t), panel % in_tile))
            atomic_store(&j->plain, true);
    }
}

/* Adds the partial results of the pieces of k, in order, for rows [lo, hi) counted through all
 * matrices. */
static void add_parts(const Job *j, int64_t lo, int64_t hi) {
    const rt_gemm *g = &j->g;
    for (int64_t r = lo; r < hi; r++) {
        float *c = j->c + r / g->m * g->c_batch + r % g->m * g->c_row;
        for (int64_t s = 0; s < j->splits - !j->add; s++) {
            const float *p = j->part + (s * g->batch * g->m + r) * g->n;
            for (int64_t i = 0; i < g->n; i++) c[i] += p[i];
        }
    }
}

/* What each thread of the team does: takes the next tile until none is left, so that faster threads
 * do more of them. */
static void run_tiles(void *arg, int member, int n_members) {
    (void)n_members;
    Job *j = arg;
    int64_t since = rt_profile_share_begin(j->x);
    RtSerialState was;
    if (!j->own) rt_gemm_serial.begin(&was);
    if (j->amx) rt_amx_begin();
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n_tiles;)
        if (!run_tile(j, i, member)) atomic_store(&j->failed, true);
    if (j->amx) rt_amx_end();
    if (!j->own) rt_gemm_serial.end(&was);
    rt_profile_share_end(j->x, member, since);
}

/* A member's share of the rows in which the partial products of a long k are added up. */
static void run_sums(void *arg, int member, int n_members) {
    const Job *j = arg;
    int64_t rows = j->g.batch * j->g.m;
    add_parts(j, rows * member / n_members, rows * (member + 1) / n_members);
}

/* Sets the result to 0: k is 0. */
static void fill_zero(const rt_gemm *g, float *c) {
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t i = 0; i < g->m; i++)
            memset(c + b * g->c_batch + i * g->c_row, 0, (size_t)g->n * sizeof *c);
}

int64_t rt_gemm_tile_rows(const rt_gemm *g, int64_t least_rows, int64_t most_rows) {
    int64_t rows = TILE_WORK / g->n / g->k / least_rows * least_rows;
    return most(least_rows, least(most_rows, rows));
}

/* Is it faster on AMX?  Counted in cubes of 32 with the remains filled up: one takes half as long
 * there, and cutting 32 x 32 numbers into pieces takes as long as one. */
static bool suits_amx(const rt_gemm *g) {
    double m = (double)ceil_div(g->m, 16) / 2, n = (double)ceil_div(g->n, 16) / 2;
    double k = (double)ceil_div(g->k, 32), tiles_n = (double)ceil_div(g->n, RT_PANEL_TILE);
    double amx = m * n * k + m * k * tiles_n + n * k;
    double plain = (double)g->m * (double)g->n * (double)g->k / (32 * 32 * 32);
    return amx <= 1.5 * plain; /* not 2: memory takes its part on both */
}

/* Rows of a tile, for what computes it: AMX, our kernel or the library. */
static int64_t tile_rows(const Job *j) {
    const rt_gemm *g = &j->g;
    if (j->amx) return rt_gemm_tile_rows(g, AMX_M, 8 * AMX_M);
    return j->own ? rt_gemm_tile_rows(g, OWN_M, 8 * OWN_M)
                  : rt_gemm_tile_rows(g, rt_gemm_serial.tile_m, rt_gemm_serial.tile_m_thin);
}

/* Decides who makes the product (AMX, gnnc's own kernels or the library) and cuts it into tiles; of
 * a long k into pieces as well. */
static void plan_tiles(Job *j) {
    const rt_gemm *g = &j->g;
    bool fits = !g->long_k && g->batch * g->k * g->n <= PACKED_MOST;
    j->amx = j->x->rt->amx && suits_amx(g) && (g->long_k || fits);
    j->own = !j->amx && fits && rt_gemm_own();
    bool packs = j->own || (j->amx && !g->long_k);
    if (!j->own) j->ready = NULL;
    j->packed = packs && !j->ready ? g->batch * packed_floats(j, g->n) : 0;
    j->tile_n = j->own || j->amx ? RT_PANEL_TILE : rt_gemm_serial.tile_n;
    j->tile_m = tile_rows(j);
    j->tiles_m = ceil_div(g->m, j->tile_m);
    j->tiles_n = ceil_div(g->n, j->tile_n);
    int64_t tiles = j->tiles_m * j->tiles_n * g->batch, want = 1;
    if (g->long_k && tiles < WANTED_TILES)
        want = least(least(ceil_div(WANTED_TILES, tiles), MAX_SPLITS),
                     ceil_div(g->k, rt_gemm_serial.split_k));
    j->k_len = ceil_div(g->k, want);
    j->splits = ceil_div(g->k, j->k_len);
    j->n_tiles = j->tiles_m * j->tiles_n * j->splits * g->batch;
}

/* Floats of scratch memory for the partial products of a long k, rounded up to a cache line. */
static int64_t part_floats(const Job *j) {
    int64_t parts = j->g.long_k ? j->splits : 0; /* the last one where blocks are added up */
    int64_t n = parts * j->g.batch * j->g.m * j->g.n;
    return (n + 15) / 16 * 16;
}

static int64_t work_floats(const Job *j) {
    return j->amx ? (int64_t)j->x->threads * RT_PIECES_WORK : 0;
}

static size_t scratch_bytes(const Job *j) {
    return (size_t)(part_floats(j) + j->packed + work_floats(j)) * sizeof(float);
}

static bool is_16(const rt_gemm *g) {
    return g->in == RT_F16 || g->in == RT_BF16;
}

/* Bytes of scratch memory that the product takes. packed: B is packed already. */
static size_t scratch_of(RtExec *x, const rt_gemm *g, const float *packed) {
    Job j = {.x = x, .g = *g, .ready = packed};
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0 || g->k <= 0) return 0;
    plan_tiles(&j);
    return scratch_bytes(&j);
}

size_t rt_gemm_part_scratch(RtExec *x, const rt_gemm *g) {
    return scratch_of(x, g, NULL);
}

size_t rt_gemm_scratch(RtExec *x, const rt_gemm *g, const void *b) {
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0 || g->k <= 0) return 0;
    if (is_16(g)) return rt_gemm_16_scratch(x, g, b);
    return scratch_of(x, g, rt_gemm_packed(x, g, b));
}

/* ---- packed before ----------------------------------------------------------------------- */
const void *rt_gemm_packed(const RtExec *x, const rt_gemm *g, const void *b) {
    for (const RtPacked *p = b && !g->long_k ? x->rt->packed : NULL; p; p = p->next)
        if (p->b == b && p->k == g->k && p->n == g->n && p->b_row == g->b_row &&
            p->b_col == g->b_col && g->batch == 1)
            return p->data;
    return NULL;
}

size_t rt_gemm_packed_bytes(const RtExec *x, const rt_gemm *g) {
    bool some = g->batch == 1 && !g->long_k && g->k > 0 && g->n > 0;
    if (!some || g->k > PACKED_MOST / g->n) return 0;
    if (is_16(g)) return rt_gemm_16_packed_bytes(x, g);
    return rt_gemm_own() ? (size_t)(g->k * g->n) * sizeof(float) : 0;
}

/* Packs all of matrix b into the panels that the kernels read, so that products with the same b
 * need not pack it again. */
void rt_gemm_pack_whole(const RtExec *x, const rt_gemm *g, const void *b, void *to) {
    enum { IN_TILE = RT_PANEL_TILE / RT_PANEL };
    if (is_16(g)) {
        rt_gemm_16_pack_whole(x, g, b, to);
        return;
    }
    for (int64_t i = 0; i < ceil_div(g->n, RT_PANEL); i++) {
        int64_t l = i / IN_TILE * RT_PANEL_TILE;
        RtTile t = {.b = (const float *)b + l * g->b_col,
                    .b_row = g->b_row,
                    .b_col = g->b_col,
                    .n = least(RT_PANEL_TILE, g->n - l),
                    .k = g->k};
        rt_gemm_pack(&t, (float *)to + g->k * l, i % IN_TILE);
    }
}

/* Takes the job's scratch memory: partial results, working memory, packed panels. */
static gnnc_status get_scratch(RtExec *x, Job *j) {
    size_t n_bytes = scratch_bytes(j);
    if (n_bytes == 0) return GNNC_OK;
    j->part = j->room ? j->room : rt_scratch(x, n_bytes);
    if (!j->part) return GNNC_E_NOMEM;
    j->work = j->part + part_floats(j);
    j->pack = j->work + work_floats(j);
    return GNNC_OK;
}

/* Restricts the job to the rows of the block that is being run: rows of C, or of a long k its
 * summands. */
static void take_block(const RtBlocks *l, Job *j) {
    int64_t *rows = j->g.long_k ? &j->g.k : &j->g.m;
    *rows = l->hi - l->lo;
    j->a += l->lo * (j->g.long_k ? j->g.a_col : j->g.a_row);
    if (j->g.long_k)
        j->b += l->lo * j->g.b_row;
    else
        j->c += l->lo * j->g.c_row;
    j->add = j->g.long_k && l->i > 0;
}

/* Makes the product of the job with the team of threads. Without summands the result is zero. */
static gnnc_status multiply(RtExec *x, Job *j) {
    const rt_gemm *g = &j->g;
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0) return GNNC_OK;
    if (g->k <= 0) {
        if (!j->add) fill_zero(g, j->c);
        return GNNC_OK;
    }
    atomic_init(&j->next, 0);
    atomic_init(&j->failed, false);
    atomic_init(&j->plain, false);
    plan_tiles(j);
    if (get_scratch(x, j) != GNNC_OK) return GNNC_E_NOMEM;
    RtTeam *team = j->n_tiles > 1 ? rt_step_team(x) : NULL;
    if (j->packed) rt_team_run(j->packed > PACKED_ALONE ? team : NULL, run_packs, j);
    rt_team_run(team, run_tiles, j);
    if (atomic_load(&j->failed)) return rt_fail_nomem(&x->rt->err, "a matrix product");
    if (j->splits > 1 || j->add) rt_team_run(rt_step_team(x), run_sums, j);
    return GNNC_OK;
}

gnnc_status rt_gemm_part(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c,
                         bool add, void *room) {
    Job j = {.x = x, .g = *g, .a = a, .b = b, .c = c, .add = add, .room = room, .of_f16 = true};
    return multiply(x, &j);
}

/* C = A * B in f32, on the device if there is one; the plan's PGemm describes the operands. */
gnnc_status rt_gemm_f32(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c) {
    if (rt_step_first(x)) x->rt->count.library_calls++;
    if (x->rt->device) return rt_device_gemm(x, g, a, b, c);
    Job j = {.x = x, .g = *g, .a = a, .b = b, .c = c, .ready = rt_gemm_packed(x, g, b)};
    if (x->rt->blocks.on) take_block(&x->rt->blocks, &j);
    return multiply(x, &j);
}
