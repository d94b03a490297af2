/* Matrix products of bf16 or f16 operands, summed in f32; the result is f32 or rounded once.
 *
 * They are cut into tiles as in gemm.c.  One of three ways makes a tile (gemm_tiles_16.h): two bf16
 * operands meet in the tile registers of AMX, else in the dot products of AVX512-BF16; what the
 * machine has neither for, and f16, is converted block by block and multiplied in f32.
 * bench/products.c measures them; docs/codegen.md has the figures.
 *
 * As there, cuts depend on sizes alone, so results do not on the number of threads. */
#include "runtime/device/device.h"

#include <stdatomic.h>
#include <string.h>

#include "gemm.h"
#include "gemm_amx.h"
#include "gemm_cuts.h"
#include "gemm_kernel.h"
#include "gemm_serial.h"
#include "gemm_tiles_16.h"
#include "runtime/exec/profile.h"
#include "runtime/exec/round_16.h"

enum {
    WANTED_TILES = 32,
    MAX_SPLITS = 32,
    SPLIT_K = 1024,
    CHUNK = 4096,           /* rows that are converted at a time */
    PACKED_ALONE = 1 << 14, /* elements: packed before help would have come */
    ALIGN = 64
};

typedef struct {
    RtExec *x;
    rt_gemm g;
    const RtTiles16 *by;
    const uint16_t *a, *b;
    char *c;           /* NULL = B is packed, and no more */
    const char *ready; /* B, packed before; NULL = it is to be */
    bool add;          /* to what is in C */
    float *part;       /* [splits][batch][m][n]: sums of the ranges of a long k, but the one in C */
    char *room;        /* [threads]: of RtTiles16 */
    char *pack;        /* B, [batch][tile of columns] */
    int64_t tile_m, tiles_m, tiles_n, splits, k_len, n_tiles;
    atomic_llong next;
    atomic_bool failed;
} Job;

static size_t aligned(size_t n) {
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static char *c_at(const Job *j, int64_t element) {
    return j->c + element * rt_type_bytes(j->g.out);
}

/* ---- cuts --------------------------------------------------------------------------------- */
static const RtTiles16 *tiles_of(const RtExec *x, const rt_gemm *g) {
    RtProducts16 by = g->in == RT_BF16 ? x->rt->products16 : RT_BY_F32;
    return by == RT_BY_TILE_REGISTERS ? rt_tiles_amx()
           : by == RT_BY_DOT_PRODUCTS ? rt_tiles_dot()
                                      : rt_tiles_widened();
}

bool rt_products_16_here(RtProducts16 by) {
    return by == RT_BY_TILE_REGISTERS ? rt_amx_use() : by == RT_BY_F32 || rt_dot_available();
}

RtProducts16 rt_products_16(bool amx) {
    if (amx && rt_amx_use()) return RT_BY_TILE_REGISTERS;
    return rt_dot_pays() ? RT_BY_DOT_PRODUCTS : RT_BY_F32;
}

static bool empty(const rt_gemm *g) {
    return g->batch <= 0 || g->m <= 0 || g->n <= 0 || g->k <= 0;
}

/* Chooses the kernel for 16-bit operands and cuts the product into tiles; a long k into pieces, an
 * even number of summands each. */
static void plan_tiles(Job *j) {
    const rt_gemm *g = &j->g;
    j->by = tiles_of(j->x, g);
    j->tile_m = g->long_k ? j->by->rows : rt_gemm_tile_rows(g, j->by->rows, j->by->rows_thin);
    j->tiles_m = ceil_div(g->m, j->tile_m);
    j->tiles_n = ceil_div(g->n, RT_TILE_16_COLS);
    int64_t tiles = j->tiles_m * j->tiles_n * g->batch, want = 1;
    if (g->long_k && tiles < WANTED_TILES)
        want = least(least(ceil_div(WANTED_TILES, tiles), MAX_SPLITS), ceil_div(g->k, SPLIT_K));
    j->k_len = ceil_div(ceil_div(g->k, want), 2) * 2; /* k goes in pairs */
    j->splits = ceil_div(g->k, j->k_len);
    j->n_tiles = tiles * j->splits;
}

static size_t part_bytes(const Job *j) {
    int64_t parts = j->g.long_k ? j->splits : 0; /* the last one where blocks are added up */
    return aligned((size_t)(parts * j->g.batch * j->g.m * j->g.n) * sizeof(float));
}

/* Of one matrix of a batch. */
static size_t packed_bytes(const Job *j) {
    int64_t whole = j->tiles_n - 1;
    return (size_t)whole * j->by->packed(RT_TILE_16_COLS, j->g.k) +
           j->by->packed(j->g.n - whole * RT_TILE_16_COLS, j->g.k);
}

static size_t pack_bytes(const Job *j) {
    return j->g.long_k || j->ready ? 0 : aligned((size_t)j->g.batch * packed_bytes(j));
}

static size_t room_bytes(const Job *j) {
    return (size_t)(j->x->threads > 1 ? j->x->threads : 1) * j->by->room;
}

/* Tile number `tile` of the job: its operands, its result or slot of partial results, and its size.
 */
static RtTile16 tile_at(const Job *j, int64_t tile) {
    const rt_gemm *g = &j->g;
    int64_t tn = tile % j->tiles_n, tm = tile / j->tiles_n % j->tiles_m;
    int64_t split = tile / (j->tiles_n * j->tiles_m) % j->splits;
    int64_t batch = tile / (j->tiles_n * j->tiles_m * j->splits);
    int64_t i = tm * j->tile_m, l = tn * RT_TILE_16_COLS, p = split * j->k_len;
    int64_t slot = j->add ? split : split - 1;
    RtTile16 t = {.in = g->in,
                  .out = g->out,
                  .a = j->a + batch * g->a_batch + i * g->a_row + p * g->a_col,
                  .a_row = g->a_row,
                  .a_col = g->a_col,
                  .b = j->b + batch * g->b_batch + p * g->b_row + l * g->b_col,
                  .b_row = g->b_row,
                  .b_col = g->b_col,
                  .c = j->c ? c_at(j, batch * g->c_batch + i * g->c_row + l) : NULL,
                  .c_row = g->c_row,
                  .m = least(j->tile_m, g->m - i),
                  .n = least(RT_TILE_16_COLS, g->n - l),
                  .k = least(j->k_len, g->k - p)};
    const char *packed = j->ready ? j->ready : j->pack;
    if (!g->long_k && packed)
        t.packed = packed + (size_t)batch * packed_bytes(j) +
                   (size_t)tn * j->by->packed(RT_TILE_16_COLS, g->k);
    if (slot >= 0) {
        t.c = j->part + ((slot * g->batch + batch) * g->m + i) * g->n + l;
        t.c_row = g->n;
    }
    return t;
}

/* ---- work --------------------------------------------------------------------------------- */
/* What each thread of the team does to pack B: its share of the panels of all tiles. */
static void run_packs(void *arg, int member, int n_members) {
    const Job *j = arg;
    int64_t panels = j->by->panels(least(j->g.n, RT_TILE_16_COLS));
    int64_t n = panels * j->tiles_n * j->g.batch;
    for (int64_t i = n * member / n_members; i < n * (member + 1) / n_members; i++) {
        int64_t at = i / panels, batch = at / j->tiles_n;
        RtTile16 t = tile_at(j, batch * j->tiles_m * j->tiles_n + at % j->tiles_n);
        if (i % panels < j->by->panels(t.n))
            j->by->pack(&t, (char *)(uintptr_t)t.packed, i % panels);
    }
}

/* What each thread of the team does: takes the next tile until none is left. */
static void run_tiles(void *arg, int member, int n_members) {
    (void)n_members;
    Job *j = arg;
    int64_t since = rt_profile_share_begin(j->x);
    bool library = j->by == rt_tiles_widened() && !rt_gemm_own();
    RtSerialState was;
    if (library) rt_gemm_serial.begin(&was);
    if (j->by->begin) j->by->begin();
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n_tiles;) {
        RtTile16 t = tile_at(j, i);
        if (!j->by->tile(&t, j->room + (size_t)member * j->by->room))
            atomic_store(&j->failed, true);
    }
    if (j->by->end) j->by->end();
    if (library) rt_gemm_serial.end(&was);
    rt_profile_share_end(j->x, member, since);
}

/* What each thread does to add the partial results of the pieces of k, in order, for its share of
 * rows. */
static void run_sums(void *arg, int member, int n_members) {
    const Job *j = arg;
    const rt_gemm *g = &j->g;
    int64_t rows = g->batch * g->m;
    for (int64_t r = rows * member / n_members; r < rows * (member + 1) / n_members; r++) {
        float *c = (float *)(void *)c_at(j, r / g->m * g->c_batch + r % g->m * g->c_row);
        for (int64_t s = 0; s < j->splits - !j->add; s++) {
            const float *p = j->part + (s * g->batch * g->m + r) * g->n;
            for (int64_t i = 0; i < g->n; i++) c[i] += p[i];
        }
    }
}

/* Makes the product of the job with kernels that read 16-bit numbers. */
static gnnc_status multiply(Job *j) {
    RtExec *x = j->x;
    plan_tiles(j);
    size_t n_room = room_bytes(j), n_part = part_bytes(j), n_pack = pack_bytes(j);
    j->room = rt_scratch(x, n_room + n_part + n_pack);
    if (!j->room) return GNNC_E_NOMEM;
    j->part = (float *)(void *)(j->room + n_room);
    if (n_pack) j->pack = j->room + n_room + n_part;
    atomic_init(&j->next, 0);
    atomic_init(&j->failed, false);
    RtTeam *team = j->n_tiles > 1 ? rt_step_team(x) : NULL;
    if (j->pack) rt_team_run(j->g.k * j->g.n > PACKED_ALONE ? team : NULL, run_packs, j);
    rt_team_run(team, run_tiles, j);
    if (atomic_load(&j->failed)) return rt_fail_nomem(&x->rt->err, "a matrix product");
    if (j->splits > 1 || j->add) rt_team_run(rt_step_team(x), run_sums, j);
    return GNNC_OK;
}

/* ---- f16 on AMX --------------------------------------------------------------------------- */
/* AMX has no tiles of f16.  gemm.c's f32 products are faster there than AVX-512 by so much that
 * all of A is converted for them, a few thousand rows at a time; unless it is narrow. */
static bool by_conversion(const RtExec *x, const rt_gemm *g) {
    enum { NARROW = 64 };
    return g->in == RT_F16 && x->rt->amx && g->n > NARROW && g->k > NARROW;
}

/* A part of an operand or of the result in f32: dense, by rows of the storage. */
typedef struct {
    int64_t batch, rows, cols; /* stored rows, and the elements of each */
    int64_t batch_step, row_step;
} Block;

static size_t block_bytes(const Block *b) {
    return aligned((size_t)(b->batch * b->rows * b->cols) * sizeof(float));
}

/* How a matrix is stored. The stride that is not 1 is that from one stored row to the next; rows
 * and columns change places if the matrix is stored by columns. */
static Block matrix_block(int64_t batch, int64_t rows, int64_t cols, int64_t batch_step,
                          int64_t row, int64_t col) {
    Block b = {batch, rows, cols, batch_step, row};
    if (col == 1) return b;
    return (Block){batch, cols, rows, batch_step, col};
}

typedef struct {
    const Job *j;
    const Block *b;
    const void *from;
    void *to;
    bool back; /* from f32 to the result */
} Convert;

/* A thread's share of converting the rows of a block between 16 bits and f32; v->back: to 16 bits.
 */
static void run_convert(void *arg, int member, int n_members) {
    const Convert *v = arg;
    const Block *b = v->b;
    int64_t n = b->batch * b->rows;
    for (int64_t i = n * member / n_members; i < n * (member + 1) / n_members; i++) {
        int64_t dense = i * b->cols, at = i / b->rows * b->batch_step + i % b->rows * b->row_step;
        if (v->back)
            rt_from_f32(v->j->g.out, (uint16_t *)v->to + at, (const float *)v->from + dense,
                        b->cols);
        else
            rt_to_f32(v->j->g.in, (float *)v->to + dense, (const uint16_t *)v->from + at, b->cols);
    }
}

static void convert(const Job *j, const Block *b, const void *from, void *to, bool back) {
    Convert v = {j, b, from, to, back};
    rt_team_run(b->batch * b->rows * b->cols > CHUNK ? rt_step_team(j->x) : NULL, run_convert, &v);
}

/* A chunk of the product: rows of A and C, or a range of a long k. */
typedef struct {
    rt_gemm g; /* in f32 */
    Block a, b, c;
    bool c_f32; /* C is not converted */
} Chunk;

/* The product in f32 of `rows` rows (of k, for a long k) of a product in 16 bits, whose operands
 * are converted to f32 first. */
static Chunk converted_chunk(const rt_gemm *g, int64_t rows) {
    Chunk h = {.g = *g, .c_f32 = g->out == RT_F32};
    *(g->long_k ? &h.g.k : &h.g.m) = rows;
    rt_gemm *f = &h.g;
    f->in = f->out = RT_F32;
    h.a = matrix_block(f->batch, f->m, f->k, g->a_batch, g->a_row, g->a_col);
    h.b = matrix_block(f->batch, f->k, f->n, g->b_batch, g->b_row, g->b_col);
    h.c = (Block){f->batch, f->m, f->n, g->c_batch, g->c_row};
    f->a_batch = f->m * f->k, f->b_batch = f->k * f->n;
    f->a_row = g->a_col == 1 ? f->k : 1, f->a_col = g->a_col == 1 ? 1 : f->m;
    f->b_row = g->b_col == 1 ? f->n : 1, f->b_col = g->b_col == 1 ? 1 : f->k;
    if (!h.c_f32) f->c_batch = f->m * f->n, f->c_row = f->n;
    return h;
}

static int64_t chunked(const rt_gemm *g) {
    return g->long_k ? g->k : g->m;
}

/* Where the converted parts lie: as the first chunk, the longest, has them. */
typedef struct {
    size_t b, c, rest, all; /* bytes from A's on */
} Room;

/* Where in the scratch memory the f32 copies of the operands and the result of one chunk lie. */
static Room room_of(RtExec *x, const rt_gemm *g) {
    Chunk h = converted_chunk(g, least(CHUNK, chunked(g)));
    Room r = {.b = block_bytes(&h.a)};
    r.c = r.b + block_bytes(&h.b);
    r.rest = r.c + (h.c_f32 ? 0 : block_bytes(&h.c));
    r.all = r.rest + rt_gemm_part_scratch(x, &h.g);
    return r;
}

/* Makes the product for `rows` rows from lo on (of a long k: summands) in f32: operands are
 * converted before it, the result after it. */
static gnnc_status multiply_chunk(Job *j, int64_t lo, int64_t rows, const Room *r, char *room) {
    const rt_gemm *g = &j->g;
    Chunk h = converted_chunk(g, rows);
    float *a = (float *)(void *)room, *b = (float *)(void *)(room + r->b);
    char *c = h.c_f32 ? c_at(j, g->long_k ? 0 : lo * g->c_row) : room + r->c;
    convert(j, &h.a, j->a + lo * (g->long_k ? g->a_col : g->a_row), a, false);
    if (g->long_k || lo == 0) convert(j, &h.b, j->b + (g->long_k ? lo * g->b_row : 0), b, false);
    bool add = j->add || (g->long_k && lo > 0);
    gnnc_status st = rt_gemm_part(j->x, &h.g, a, b, (float *)(void *)c, add, room + r->rest);
    if (st == GNNC_OK && !h.c_f32) convert(j, &h.c, c, c_at(j, lo * g->c_row), true);
    return st;
}

/* Makes a product of 16-bit operands in f32, chunk by chunk, where no kernel reads 16-bit numbers.
 */
static gnnc_status multiply_converted(Job *j) {
    Room r = room_of(j->x, &j->g);
    char *room = rt_scratch(j->x, r.all);
    if (!room) return GNNC_E_NOMEM;
    gnnc_status st = GNNC_OK;
    int64_t n = chunked(&j->g);
    for (int64_t at = 0; st == GNNC_OK && at < n; at += CHUNK)
        st = multiply_chunk(j, at, least(CHUNK, n - at), &r, room);
    return st;
}

/* ---- packed before ------------------------------------------------------------------------ */
size_t rt_gemm_16_scratch(RtExec *x, const rt_gemm *g, const void *b) {
    Job j = {.x = x, .g = *g, .ready = rt_gemm_packed(x, g, b)};
    if (by_conversion(x, g)) return room_of(x, g).all;
    plan_tiles(&j);
    return room_bytes(&j) + part_bytes(&j) + pack_bytes(&j);
}

size_t rt_gemm_16_packed_bytes(const RtExec *x, const rt_gemm *g) {
    Job j = {.g = *g, .by = tiles_of(x, g), .tiles_n = ceil_div(g->n, RT_TILE_16_COLS)};
    return by_conversion(x, g) ? 0 : packed_bytes(&j);
}

/* Packs all of the 16-bit matrix b into the panels that the kernels read. */
void rt_gemm_16_pack_whole(const RtExec *x, const rt_gemm *g, const void *b, void *to) {
    Job j = {.g = *g, .b = b, .pack = to};
    j.g.m = 1;
    j.by = tiles_of(x, g), j.tile_m = 1, j.tiles_m = 1, j.splits = 1, j.k_len = g->k;
    j.tiles_n = ceil_div(g->n, RT_TILE_16_COLS);
    run_packs(&j, 0, 1);
}

/* ---- all --------------------------------------------------------------------------------- */
/* Restricts the job to the rows of the block that is being run: rows of C, or of a long k its
 * summands. */
static void take_block(const RtBlocks *l, Job *j) {
    rt_gemm *g = &j->g;
    *(g->long_k ? &g->k : &g->m) = l->hi - l->lo;
    j->a += l->lo * (g->long_k ? g->a_col : g->a_row);
    if (g->long_k)
        j->b += l->lo * g->b_row;
    else
        j->c = c_at(j, l->lo * g->c_row);
    j->add = g->long_k && l->i > 0;
}

/* Sets the result of the job to zero. */
static void fill_zero(const Job *j) {
    const rt_gemm *g = &j->g;
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t i = 0; i < g->m; i++)
            memset(c_at(j, b * g->c_batch + i * g->c_row), 0,
                   (size_t)(g->n * rt_type_bytes(g->out)));
}

/* C = A * B of 16-bit operands, on the device if there is one, summed in f32. */
gnnc_status rt_gemm_16(RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c) {
    if (rt_step_first(x)) x->rt->count.library_calls++;
    if (x->rt->device) return rt_device_gemm(x, g, a, b, c);
    Job j = {.x = x, .g = *g, .a = a, .b = b, .c = c, .ready = rt_gemm_packed(x, g, b)};
    if (x->rt->blocks.on) take_block(&x->rt->blocks, &j);
    if (g->batch <= 0 || j.g.m <= 0 || g->n <= 0) return GNNC_OK;
    if (empty(&j.g)) {
        if (!j.add) fill_zero(&j);
        return GNNC_OK;
    }
    return by_conversion(x, g) ? multiply_converted(&j) : multiply(&j);
}
