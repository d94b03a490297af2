#include "train_shares.h"

#include <string.h>

#include "runtime/bind.h"
#include "runtime/exec/device.h"
#include "runtime/init.h"
#include "runtime/tuned.h"

/* What a step sends, before its gradients. */
typedef struct {
    double loss;
    int64_t batch, rows, heard;
} Head;

struct RtShares {
    const RtComm *comm;
    int64_t k;
    int counter;         /* buffer of the steps since the last update */
    int n_sums, *sum;    /* buffers of the sums of gradients */
    int64_t n;           /* numbers of all of them */
    size_t slot_bytes;   /* a Head and n numbers */
    char *slot;          /* [k - 1][slot_bytes] of the steps since the last update */
    float *base;         /* [n] the sums while a step is made .. */
    bool apart;          /* .. which is now */
    int64_t from, to;    /* steps whose slots nobody has added yet */
    int64_t heard, told; /* signals: of this process; of any, as all know */
    bool agreed;         /* all train the same model on the same data */
};

static const char SUM[] = "opt.sum."; /* what passes/optimizer.c calls them */

static int64_t place_of(const RtShares *s, int64_t step) {
    return step % s->k;
}

static int maker_of(const RtShares *s, int64_t step) {
    return (int)(place_of(s, step) % s->comm->n);
}

static bool is_last(const RtShares *s, int64_t step) {
    return place_of(s, step) == s->k - 1;
}

bool rt_shares_mine(const gnnc_trainer *t, int64_t step) {
    const RtShares *s = t->shares;
    return !s || is_last(s, step) || maker_of(s, step) == s->comm->rank;
}

static Head *head_of(const RtShares *s, int64_t step) {
    return (Head *)(s->slot + (size_t)place_of(s, step) * s->slot_bytes);
}

static float *numbers_of(const RtShares *s, int64_t step) {
    return (float *)(head_of(s, step) + 1);
}

/* ---- sums ------------------------------------------------------------------------------------ */
static int64_t numbers_in(const gnnc_trainer *t, int buf) {
    size_t n_bytes = 0;
    RtExec *x = (RtExec *)(uintptr_t)&t->x;
    return rt_buf_bytes(x, buf, &n_bytes) == GNNC_OK ? (int64_t)(n_bytes / sizeof(float)) : 0;
}

static void read_sums(const gnnc_trainer *t, float *to) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        memcpy(to, t->x.buf[s->sum[i]], (size_t)n * sizeof *to);
        to += n;
    }
}

/* from NULL: zeros. */
static void write_sums(gnnc_trainer *t, const float *from) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        if (from) memcpy(t->x.buf[s->sum[i]], from, (size_t)n * sizeof *from);
        if (!from) memset(t->x.buf[s->sum[i]], 0, (size_t)n * sizeof *from);
        if (from) from += n;
    }
}

static void add_sums(gnnc_trainer *t, const float *more) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        float *sum = t->x.buf[s->sum[i]];
        for (int64_t j = 0; j < n; j++) sum[j] += more[j];
        more += n;
    }
}

static void count_step(gnnc_trainer *t, int64_t n) {
    *(float *)t->x.buf[t->shares->counter] = (float)n;
}

/* ---- life ------------------------------------------------------------------------------------ */
static const char *lacks(const gnnc_trainer *t) {
    const rt_program *p = t->program;
    if (!t->batches) return "its steps see the whole graph; 'sample' makes batches";
    if (p->recipe.accumulate < 2) return "'accumulate n' says how many steps they share";
    if (t->rt.device) return "a GPU is in use; --device=cpu";
    for (int i = 0; i < p->n_vars; i++) {
        if (p->vars[i].kind == RT_VAR_STATE) return "a layer has state that each step changes";
        if (p->vars[i].role == RT_ROLE_LOSS_SCALE) return "its loss is scaled (f16)";
        bool sum = !strncmp(p->vars[i].path, SUM, sizeof SUM - 1);
        if (sum && p->vars[i].dt != RT_F32) return "its gradients are not of f32";
    }
    return NULL;
}

static void find_sums(gnnc_trainer *t, RtShares *s) {
    const rt_program *p = t->program;
    for (int i = 0; i < p->n_vars; i++) {
        const rt_var *v = &p->vars[i];
        if (v->buf < 0) continue;
        if (v->role == RT_ROLE_SUMMED_STEPS) s->counter = v->buf;
        if (strncmp(v->path, SUM, sizeof SUM - 1) != 0) continue;
        s->sum[s->n_sums++] = v->buf;
        s->n += numbers_in(t, v->buf);
    }
}

gnnc_status rt_shares_start(gnnc_trainer *t, const RtComm *comm) {
    const char *why = lacks(t);
    RtPool *pool = &t->rt.pool;
    if (why && comm->n > 1)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "%d processes cannot train this model: %s",
                       comm->n, why);
    if (why) return GNNC_OK;
    RtShares *s = RT_NEW(pool, RtShares);
    if (!s) return rt_fail_nomem(&t->rt.err, "steps");
    *s = (RtShares){.comm = comm, .k = t->program->recipe.accumulate, .counter = -1};
    s->sum = RT_NEWN(pool, int, t->program->n_vars);
    if (!s->sum) return rt_fail_nomem(&t->rt.err, "steps");
    find_sums(t, s);
    s->slot_bytes =
        (sizeof(Head) + (size_t)s->n * sizeof(float) + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
    s->slot = rt_pool_alloc(pool, (size_t)(s->k - 1), s->slot_bytes);
    s->base = RT_NEWN(pool, float, s->n);
    if (!s->slot || !s->base) return rt_fail_nomem(&t->rt.err, "steps");
    s->from = s->to = t->progress.step;
    t->shares = s;
    return GNNC_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */
/* Processes of two programs, of two copies of the data or of two seeds would learn nonsense, and
 * those of two kinds of processor part by the last bits of each update. */
static gnnc_status agree(gnnc_trainer *t) {
    RtShares *s = t->shares;
    static const char *const what[] = {"program",         "data",   "seed",
                                       "size of a batch", "step",   "steps",
                                       "learning rate",   "epochs", "kind of processor"};
    enum { N = sizeof what / sizeof *what };
    double lr = t->options.lr;
    const char *machine = rt_machine_kind(&t->rt.pool, &t->rt);
    if (!machine) return rt_fail_nomem(&t->rt.err, "steps");
    uint64_t first[N], own[N] = {t->program->fingerprint,
                                 t->rt.bound->fingerprint,
                                 (uint64_t)t->options.seed,
                                 (uint64_t)t->options.batch,
                                 (uint64_t)t->progress.step,
                                 (uint64_t)s->k,
                                 0,
                                 (uint64_t)t->options.epochs,
                                 rt_hash_text(machine)};
    memcpy(&own[6], &lr, sizeof lr);
    memcpy(first, own, sizeof own);
    gnnc_status st = s->comm->bcast(s->comm, first, sizeof first, 0, &t->rt.err);
    for (int i = 0; i < N && st == GNNC_OK; i++)
        if (first[i] != own[i])
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank %d trains with another %s than rank 0",
                         s->comm->rank, what[i]);
    s->agreed = st == GNNC_OK;
    return st;
}

gnnc_status rt_shares_begin(gnnc_trainer *t) {
    RtShares *s = t->shares;
    int64_t step = t->progress.step;
    gnnc_status st = s->agreed ? GNNC_OK : agree(t);
    if (st == GNNC_OK && s->to != step) s->from = s->to = step; /* it was resumed elsewhere */
    if (st == GNNC_OK && is_last(s, step)) st = rt_shares_settle(t);
    if (st != GNNC_OK) return st;
    count_step(t, place_of(s, step));
    if (!is_last(s, step) && rt_shares_mine(t, step)) {
        read_sums(t, s->base);
        write_sums(t, NULL);
        s->apart = true;
    }
    return GNNC_OK;
}

void rt_shares_undo(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (s->apart) write_sums(t, s->base);
    s->apart = false;
}

static void take_loss(gnnc_trainer *t, const Head *h) {
    RtProgress *p = &t->progress;
    if (h->batch == 0) p->loss_sum = 0, p->loss_rows = 0;
    p->loss_rows += h->rows;
    p->loss_sum += (double)h->rows * h->loss;
}

void rt_shares_end(gnnc_trainer *t, int64_t batch, int64_t n) {
    RtShares *s = t->shares;
    int64_t step = t->progress.step;
    const RtScalar *loss = rt_scalar_loss(t, RT_SPLIT_NONE);
    double v = loss && loss->buf >= 0 ? rt_buf_read(&t->x, loss->buf, 0) : 0;
    Head h = {v, batch, n, s->heard};
    if (is_last(s, step)) {
        take_loss(t, &h);
        s->from = s->to = step + 1;
        return;
    }
    if (rt_shares_mine(t, step)) {
        *head_of(s, step) = h;
        read_sums(t, numbers_of(s, step));
        rt_shares_undo(t);
    }
    count_step(t, place_of(s, step) + 1);
    s->to = step + 1;
}

gnnc_status rt_shares_settle(gnnc_trainer *t) {
    RtShares *s = t->shares;
    gnnc_status st = GNNC_OK;
    for (; s && s->from < s->to && st == GNNC_OK; s->from++) {
        const Head *h = head_of(s, s->from);
        st = s->comm->bcast(s->comm, head_of(s, s->from), s->slot_bytes, maker_of(s, s->from),
                            &t->rt.err);
        if (st != GNNC_OK) break;
        if (h->heard && !s->told) s->told = h->heard;
        take_loss(t, h);
        add_sums(t, numbers_of(s, s->from));
    }
    return st;
}

int rt_shares_hear(gnnc_trainer *t, int signal) {
    RtShares *s = t->shares;
    if (!s || s->comm->n == 1) return signal;
    if (signal) s->heard = signal;
    return (int)s->told;
}
