/* One block for what lives as long as the trainer (variables, saved values, scalar outputs,
 * inputs, keys) and one arena for the temporaries of all phases and what they predict and
 * embed, each phase packed by lifetime from its start (pack.h).  Both are sized before anything
 * runs.
 *
 * Relations made by `where` have their size only once the load phase has computed the
 * condition: buffers over them are empty in the first plan, get blocks of their own
 * when the relation is built, and the arena is packed again after the load phase. */
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

#include "runtime/bind/bind.h"
#include "runtime/device/device_maps.h"
#include "runtime/batch/batch_sizes.h"
#include "runtime/data/io.h"

static size_t rounded(size_t n) {
    return (n + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}

/* Whether the buffer lives as long as the trainer, in the block of such buffers: it is neither
 * in the arena of temporaries nor another owner's. */
static bool has_permanent_memory(const RtExec *x, int b) {
    const rt_program *p = x->program;
    rt_buf_kind k = p->bufs[b].kind;
    if (rt_memory_is_borrowed(x, b)) return false;
    return (k == RT_BUF_VAR || k == RT_BUF_SAVED || k == RT_BUF_OUTPUT || k == RT_BUF_INPUT ||
            k == RT_BUF_KEY) &&
           !rt_memory_is_temp(p, b);
}

static size_t *account_of(gnnc_memory *m, const rt_program *p, int b) {
    if (rt_memory_is_temp(p, b)) return &m->unpacked_bytes;
    return p->bufs[b].kind == RT_BUF_VAR ? &m->parameter_bytes : &m->saved_bytes;
}

/* ---- mini-batches -------- */
/* Does each batch have a buffer of its own for it? */
static bool is_batch_data(const rt_buf *b) {
    return b->kind == RT_BUF_DATA || b->kind == RT_BUF_MAP || b->kind == RT_BUF_LOGICAL ||
           (b->kind == RT_BUF_INPUT && b->rank > 0);
}

/* Sums the bytes of the data that each batch has of its own. */
static gnnc_status batch_data_bytes(RtExec *batch, RtExec *data, size_t *sum) {
    gnnc_status st = GNNC_OK;
    for (int b = 0; b < data->program->n_bufs; b++) {
        size_t n = 0, all = 0;
        if (!is_batch_data(&data->program->bufs[b])) continue;
        TRY(st, rt_buf_bytes(batch, b, &n));
        TRY(st, rt_buf_bytes(data, b, &all));
        if (n != all) *sum += n;
    }
out:
    return st;
}

/* Adds what a phase over batches needs: its arena, the libraries' workspace and the data of the
 * batches that are made ahead. */
static gnnc_status add_minibatch_memory(RtExec *x, RtMemory *m, int phase, RtPool *pool) {
    const rt_program *p = x->program;
    const rt_sampling *s = &p->sampling;
    RtBatchFor what = rt_batch_for(&p->phases[phase]);
    int64_t *n = RT_NEWN(pool, int64_t, p->n_syms + 1);
    size_t *offset = RT_NEWN(pool, size_t, p->n_bufs + 1), arena = 0, data = 0;
    RtExec of = *x;
    gnnc_status st = GNNC_OK;
    if (!n || !offset) return rt_fail_nomem(&x->rt->err, "memory plan");
    memcpy(n, x->n, (size_t)p->n_syms * sizeof *n);
    of.n = n;
    if (!rt_batch_sizes(p, m->batch ? m->batch : s->batch, m->fanout, what, n)) return st;
    TRY(st, rt_memory_pack(&of, pool, phase, offset, &arena));
    TRY(st, batch_data_bytes(&of, x, &data));
    arena += arena / 4; /* for larger ones to come (batch_step.c) */
    m->need.batch_bytes += arena + rt_memory_library(&of, &p->phases[phase], n) +
                           data * (what == RT_BATCH_TRAINS ? 2 + (size_t)s->prefetch : 1);
out:
    return st;
}

/* Adds what the phases that run over mini-batches need, by sizes that are estimated. */
static gnnc_status batches_need(RtExec *x, RtMemory *m) {
    RtPool pool;
    gnnc_status st = GNNC_OK;
    rt_pool_init(&pool, &x->rt->pool.from);
    for (int i = 0; i < x->program->n_phases && st == GNNC_OK; i++)
        if (rt_memory_is_of_batches(x->program, i) && x->program->phases[i].kind != RT_PHASE_EMBED)
            st = add_minibatch_memory(x, m, i, &pool);
    rt_pool_free(&pool);
    return st;
}

/* ---- the limit --------------------------------------------------------------- */
/* Adds up what is needed and refuses what exceeds the limit, unless temporaries can go to a file.
 * With a device the host only has addresses for its temporaries, and no pages. */
static gnnc_status check_limit(RtExec *x, gnnc_memory *m, size_t limit) {
    size_t working = m->library_bytes + (x->rt->device ? 0 : m->arena_bytes);
    size_t own = m->index_bytes + m->parameter_bytes + m->saved_bytes + working + m->batch_bytes;
    size_t loading = (size_t)x->rt->count.peak_bytes;
    m->loading_bytes = loading > own ? loading - own : 0;
    size_t all = m->all_bytes = m->data_bytes + own + m->loading_bytes;
    /* Of what is needed this much is there: blocks, and mapped files. */
    RtMemoryLimit most = rt_memory_limit((size_t)x->rt->count.live_bytes + m->data_bytes);
    if (limit) most = (RtMemoryLimit){limit, "the limit is"};
    if (all <= most.n_bytes) return GNNC_OK;
    bool would_spill = !x->rt->device && all - m->arena_bytes <= most.n_bytes;
    if (would_spill && x->rt->spill) {
        m->file_bytes = m->arena_bytes;
        m->all_bytes = all - m->arena_bytes;
        return GNNC_OK;
    }
    gnnc_memory here = *m;
    if (x->rt->device) here.arena_bytes = 0;
    return rt_memory_refuse(x, &here, all, most,
                            would_spill ? "; with 'spill' working memory lies in a file" : "");
}

/* Library calls follow each other, so they share the memory of the largest. */
size_t rt_memory_library(RtExec *x, const rt_phase *ph, const int64_t *n) {
    size_t most = 0;
    for (int k = 0; ph->cost && k < ph->n_steps; k++) {
        rt_step_cost c;
        ph->cost(k, n, &c);
        const void *b = c.weight >= 0 ? x->buf[c.weight] : NULL;
        size_t gemm = rt_gemm_scratch(x, &c.gemm, b), rank = rt_rank_scratch(c.rank_len);
        if (gemm > most) most = gemm;
        if (rank > most) most = rank;
    }
    return most;
}

/* The most working memory that library calls want in any phase that runs over all of the data;
 * phases share it. */
static size_t library_need(RtExec *x) {
    size_t most = 0;
    for (int i = 0; i < x->program->n_phases; i++) {
        size_t n = rt_memory_is_of_batches(x->program, i)
                       ? 0
                       : rt_memory_library(x, &x->program->phases[i], x->n);
        if (n > most) most = n;
    }
    return most;
}

/* Index arrays and converted columns exist already; columns in mapped files are pages that
 * the first step touches. */
static gnnc_status measure(RtExec *x, RtMemory *m) {
    m->need = (gnnc_memory){.index_bytes = m->index_bytes, .library_bytes = library_need(x)};
    for (int b = 0; b < x->program->n_bufs; b++) {
        size_t n;
        rt_buf_kind k = x->program->bufs[b].kind;
        gnnc_status st = rt_buf_bytes(x, b, &n);
        if (st != GNNC_OK) return st;
        if (k == RT_BUF_MAP || k == RT_BUF_LOGICAL || k == RT_BUF_CUTS ||
            rt_memory_is_borrowed(x, b))
            continue;
        bool temp = rt_memory_is_temp(x->program, b);
        if (temp && rt_memory_is_of_batches(x->program, x->program->bufs[b].phase)) continue;
        if (k == RT_BUF_DATA)
            m->need.data_bytes += rt_bind_is_mapped(x, b) ? n : 0;
        else
            *account_of(&m->need, x->program, b) += rounded(n);
    }
    /* The parameters of the best epoch are kept beside the present ones. */
    for (int v = 0; v < x->program->n_vars; v++) {
        size_t n;
        const rt_var *var = &x->program->vars[v];
        bool kept = var->kind < RT_VAR_SLOT && var->buf >= 0 && x->program->recipe.keep_metric;
        if (!kept) continue;
        gnnc_status st = rt_buf_bytes(x, var->buf, &n);
        if (st != GNNC_OK) return st;
        m->need.parameter_bytes += rounded(n);
    }
    return GNNC_OK;
}

/* Computes what everything needs, with places for temporaries, and refuses what exceeds `limit`. */
static gnnc_status plan(RtExec *x, RtMemory *m, size_t limit) {
    RtPool *pool = &x->rt->pool;
    if (!m->offset) m->offset = RT_NEWN(pool, size_t, x->program->n_bufs);
    if (!m->have_bytes) m->have_bytes = RT_NEWN(pool, size_t, x->program->n_bufs);
    if (!m->offset || !m->have_bytes) return rt_fail_nomem(&x->rt->err, "memory plan");
    gnnc_status st;
    TRY(st, measure(x, m));
    TRY(st, rt_memory_pack_as(x, rt_blocks_bytes, m->offset, &m->need.arena_bytes));
    TRY(st, batches_need(x, m));
    st = check_limit(x, &m->need, limit);
out:
    return st;
}

/* Adds the bytes of a buffer to *sum; buf -1 is none, and adds nothing. */
static gnnc_status add_bytes(RtExec *x, int buf, size_t *sum) {
    size_t n = 0;
    gnnc_status st = buf >= 0 ? rt_buf_bytes(x, buf, &n) : GNNC_OK;
    *sum += n;
    return st;
}

/* Adds to *sum the bytes that the index arrays of the program's relations will need: none is built
 * yet. by >= 0: an array in the order of another map's segments. */
static gnnc_status index_need(RtExec *x, size_t *sum) {
    const rt_program *p = x->program;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < p->n_maps; i++) {
        const rt_map *m = &p->maps[i];
        if (p->spaces[m->from].kind != RT_SP_EDGE) continue;
        TRY(st, add_bytes(x, m->idx_buf, sum));
        TRY(st, add_bytes(x, m->ptr_buf, sum));
        TRY(st, add_bytes(x, m->perm_buf, sum));
    }
    for (int b = 0; b < p->n_bufs; b++)
        if (p->bufs[b].kind == RT_BUF_MAP && p->bufs[b].by >= 0) TRY(st, add_bytes(x, b, sum));
out:
    return st;
}

gnnc_status rt_memory_foresee(RtExec *x, RtMemory *m, size_t limit) {
    m->index_bytes =
        (size_t)x->rt->count.live_bytes + rt_bind_form_bytes(x) - rt_bind_ends_bytes(x);
    gnnc_status st = rt_device_maps(x) ? GNNC_OK : index_need(x, &m->index_bytes);
    if (st == GNNC_OK) st = plan(x, m, limit);
    m->index_bytes = 0;
    return st;
}

gnnc_status rt_memory_plan(RtExec *x, RtMemory *m, size_t limit) {
    if (m->index_bytes == 0) m->index_bytes = (size_t)x->rt->count.live_bytes;
    return plan(x, m, limit);
}

/* ---- allocation ----------------------------------------------------------------- */
/* Large blocks ask for huge pages: gathering rows at random misses the TLB once per row
 * otherwise (a sparse product of 2.3 M entries x 256 took 0.19 s instead of 0.16), and one
 * fault clears 2 MiB instead of 4 KiB. */
enum { HUGE_PAGE = 2 << 20 };

/* A block that begins at a huge page's bound, for which the system is asked to use huge pages: rows
 * that are read in any order then miss fewer entries of the page table. */
static void *huge_block(RtPool *pool, size_t n_bytes) {
    char *p = n_bytes < SIZE_MAX - HUGE_PAGE ? rt_pool_alloc(pool, n_bytes + HUGE_PAGE, 1) : NULL;
    if (!p) return NULL;
    p += (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    madvise(p, n_bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* a wish: no error matters */
#endif
    return p;
}

/* At least a page: the pool aligns large requests, and empty buffers need an address. */
void *rt_memory_block(RtPool *pool, size_t n_bytes) {
    return n_bytes >= 4 * HUGE_PAGE ? huge_block(pool, n_bytes)
                                    : rt_pool_alloc(pool, n_bytes < 4096 ? 4096 : n_bytes, 1);
}

/* Memory for a buffer that a message calls `what`; NULL: there is none, and the error says so. */
static void *block(RtExec *x, size_t n_bytes, const char *what) {
    void *p = rt_memory_block(&x->rt->pool, n_bytes);
    if (!p) rt_fail_nomem(&x->rt->err, what);
    return p;
}

/* The arena: in memory, or in a file, whose pages come and go as the machine has room. */
static gnnc_status make_arena(RtExec *x, RtMemory *m) {
    const gnnc_memory *need = &m->need;
    m->arena_bytes = 0;
    m->spilled = need->file_bytes > 0;
    if (m->spilled) {
        gnnc_status st = rt_file_scratch(&x->rt->pool, need->file_bytes, &m->arena, &x->rt->err);
        if (st != GNNC_OK) return st;
    } else if (!(m->arena = block(x, need->arena_bytes, "working memory"))) {
        return GNNC_E_NOMEM;
    }
    m->arena_bytes = need->arena_bytes;
    return GNNC_OK;
}

static void place_temps(RtExec *x, RtMemory *m) {
    for (int b = 0; b < x->program->n_bufs; b++)
        if (rt_memory_is_temp(x->program, b)) x->buf[b] = (char *)m->arena + m->offset[b];
}

/* Notes how many bytes each buffer has now, so that rt_memory_grow can tell which have become too
 * small. */
static void note_sizes(RtExec *x, RtMemory *m) {
    for (int b = 0; b < x->program->n_bufs; b++) {
        size_t n;
        if (rt_buf_bytes(x, b, &n) == GNNC_OK) m->have_bytes[b] = n;
    }
}

/* Gives the buffers that live as long as the trainer their places, one behind the other from `at`
 * on. */
static void place_fixed(RtExec *x, char *at) {
    for (int b = 0; b < x->program->n_bufs; b++) {
        size_t n;
        if (!has_permanent_memory(x, b) || rt_buf_bytes(x, b, &n) != GNNC_OK) continue;
        x->buf[b] = at;
        at += rounded(n);
    }
}

gnnc_status rt_memory_alloc(RtExec *x, RtMemory *m) {
    size_t n_fixed = 0;
    for (int b = 0; b < x->program->n_bufs; b++) {
        size_t n;
        gnnc_status st = rt_buf_bytes(x, b, &n);
        if (st != GNNC_OK) return st;
        if (has_permanent_memory(x, b)) n_fixed += rounded(n);
    }
    char *fixed = block(x, n_fixed, "variables and outputs");
    if (!fixed) return GNNC_E_NOMEM;
    gnnc_status st = make_arena(x, m);
    if (st != GNNC_OK) return st;
    if (m->need.library_bytes && !rt_scratch(x, m->need.library_bytes)) return GNNC_E_NOMEM;
    place_fixed(x, fixed);
    place_temps(x, m);
    note_sizes(x, m);
    return GNNC_OK;
}

gnnc_status rt_memory_grow(RtExec *x, RtMemory *m) {
    for (int b = 0; b < x->program->n_bufs; b++) {
        rt_buf_kind k = x->program->bufs[b].kind;
        size_t n;
        gnnc_status st = rt_buf_bytes(x, b, &n);
        if (st != GNNC_OK) return st;
        bool of_load =
            k == RT_BUF_TEMP && x->program->phases[x->program->bufs[b].phase].kind == RT_PHASE_LOAD;
        if (n <= m->have_bytes[b] || (!has_permanent_memory(x, b) && !of_load)) continue;
        if (!(x->buf[b] = block(x, n, x->program->bufs[b].name))) return GNNC_E_NOMEM;
        m->have_bytes[b] = n;
    }
    return GNNC_OK;
}

gnnc_status rt_memory_settle(RtExec *x, RtMemory *m, size_t limit) {
    gnnc_status st = rt_memory_plan(x, m, limit);
    if (st != GNNC_OK) return st;
    if (m->need.arena_bytes > m->arena_bytes || (m->need.file_bytes && !m->spilled)) {
        st = make_arena(x, m);
        if (st != GNNC_OK) return st;
    }
    if (m->need.library_bytes && !rt_scratch(x, m->need.library_bytes)) return GNNC_E_NOMEM;
    place_temps(x, m);
    note_sizes(x, m);
    return GNNC_OK;
}
