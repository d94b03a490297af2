#include "train_shares.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/device/device.h"
#include "runtime/exec/distributed.h"
#include "runtime/trainer/init.h"
#include "runtime/trainer/model_options.h"
#include "runtime/trainer/tuned.h"
#include "runtime/exec/machine.h"

/* What a step sends, before its gradients. */
typedef struct {
    double loss;
    int64_t batch, rows, asked;
} Head;

struct RtShares {
    int64_t k;
    int counter;      /* buffer of the steps since the last update */
    int n_sums, *sum; /* buffers of the sums of gradients, and of state that steps change */
    float *keeps;     /* [n_sums] what a step multiplies one by before it adds to it */
    bool has_state;
    int64_t n;           /* numbers of all of them */
    size_t slot_bytes;   /* a Head and n numbers */
    char *slot;          /* [k - 1][slot_bytes] of the steps since the last update */
    float *base;         /* [n] the sums while a step is made .. */
    bool apart;          /* .. which is now */
    int64_t from, to;    /* steps whose slots nobody has added yet */
    int64_t asked;       /* by this process; 0 = nothing */
    int64_t known, told; /* by any: it came with a step; the update is done in all */
    bool agreed;         /* all train the same model on the same data */
};

static int64_t place_of(const RtShares *s, int64_t step) {
    return step % s->k;
}

static int maker_of(const gnnc_trainer *t, int64_t step) {
    return (int)(place_of(t->shares, step) % t->processes.n);
}

static bool is_last(const RtShares *s, int64_t step) {
    return place_of(s, step) == s->k - 1;
}

bool rt_shares_mine(const gnnc_trainer *t, int64_t step) {
    const RtShares *s = t->shares;
    return !s || is_last(s, step) || maker_of(t, step) == t->processes.rank;
}

static Head *head_of(const RtShares *s, int64_t step) {
    return (Head *)(s->slot + (size_t)place_of(s, step) * s->slot_bytes);
}

static float *numbers_of(const RtShares *s, int64_t step) {
    return (float *)(head_of(s, step) + 1);
}

/* ---- sums ------------------------------------------------------------------------------------ */
/* Numbers (f32) in a buffer. */
static int64_t numbers_in(const gnnc_trainer *t, int buf) {
    size_t n_bytes = 0;
    RtExec *x = (RtExec *)(uintptr_t)&t->x;
    return rt_buf_bytes(x, buf, &n_bytes) == GNNC_OK ? (int64_t)(n_bytes / sizeof(float)) : 0;
}

/* Copies the sums of gradients and the states that steps change, one behind the other. */
static void read_sums(const gnnc_trainer *t, float *to) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        memcpy(to, t->x.buf[s->sum[i]], (size_t)n * sizeof *to);
        to += n;
    }
}

/* Puts back into the program's buffers what read_sums took out of them: `from` has the sums one
 * behind the other. */
static void put_back_sums(gnnc_trainer *t, const float *from) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        memcpy(t->x.buf[s->sum[i]], from, (size_t)n * sizeof *from);
        from += n;
    }
}

/* Sets each sum (a state that a step changes to keeps * state + x) to -0, so that a step leaves x
 * in it, which is sent to the other processes: keeps * -0 is -0, and -0 + x is x, also where x is a
 * zero. */
static void clear_sums(gnnc_trainer *t) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        float *sum = t->x.buf[s->sum[i]];
        for (int64_t j = 0; j < n; j++) sum[j] = -0.0f;
    }
}

/* Adds the sums of another process's step, as a step does it, which rounds the product. */
static void add_sums(gnnc_trainer *t, const float *more) {
    const RtShares *s = t->shares;
    for (int i = 0; i < s->n_sums; i++) {
        int64_t n = numbers_in(t, s->sum[i]);
        float *sum = t->x.buf[s->sum[i]], keeps = s->keeps[i];
        for (int64_t j = 0; j < n; j++) {
            float kept = keeps * sum[j];
            sum[j] = kept + more[j];
        }
        more += n;
    }
}

static void count_step(gnnc_trainer *t, int64_t n) {
    *(float *)t->x.buf[t->shares->counter] = (float)n;
}

/* ---- life ------------------------------------------------------------------------------------ */
/* Why processes cannot share this trainer's steps; NULL: they can. */
static const char *lacks(const gnnc_trainer *t) {
    const rt_program *p = t->program;
    if (!t->batches) return "its steps see the whole graph; 'sample' makes batches";
    if (p->recipe.accumulate < 2) return "'accumulate n' says how many steps they share";
    if (t->rt.device) return "a GPU is in use; --device=cpu";
    if (t->options.reduce_fast)
        return "'reduce_fast' is for shared rows, its processes share steps";
    for (int i = 0; i < p->n_vars; i++) {
        if (p->vars[i].kind == RT_VAR_STATE && p->vars[i].assigned && p->vars[i].keeps == 0)
            return "a layer has state that steps change by more than a factor and a sum";
        if (p->vars[i].role == RT_ROLE_LOSS_SCALE) return "its loss is scaled (f16)";
        if (p->vars[i].role == RT_ROLE_SUMMED_GRADIENT && p->vars[i].dt != RT_F32)
            return "its gradients are not of f32";
    }
    return NULL;
}

/* Finds the variables that steps change between two updates: sums of gradients, states such as
 * means, and the counter of steps. */
static void find_sums(gnnc_trainer *t, RtShares *s) {
    const rt_program *p = t->program;
    for (int i = 0; i < p->n_vars; i++) {
        const rt_var *v = &p->vars[i];
        if (v->buf < 0) continue;
        if (v->role == RT_ROLE_SUMMED_STEPS) s->counter = v->buf;
        bool state = v->kind == RT_VAR_STATE && v->assigned;
        if (v->role != RT_ROLE_SUMMED_GRADIENT && !state) continue;
        s->has_state |= state;
        s->keeps[s->n_sums] = state ? (float)v->keeps : 1;
        s->sum[s->n_sums++] = v->buf;
        s->n += numbers_in(t, v->buf);
    }
}

gnnc_status rt_shares_start(gnnc_trainer *t) {
    if (rt_dist_several(&t->x)) return GNNC_OK; /* they share rows, not steps */
    const char *why = lacks(t);
    RtPool *pool = &t->rt.pool;
    if (why && t->processes.n > 1)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "%d processes cannot train this model: %s",
                       t->processes.n, why);
    if (why) return GNNC_OK;
    RtShares *s = RT_NEW(pool, RtShares);
    if (!s) return rt_fail_nomem(&t->rt.err, "steps");
    *s = (RtShares){.k = t->program->recipe.accumulate, .counter = -1};
    s->sum = RT_NEWN(pool, int, t->program->n_vars);
    s->keeps = RT_NEWN(pool, float, t->program->n_vars);
    if (!s->sum || !s->keeps) return rt_fail_nomem(&t->rt.err, "steps");
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
/* Sends n_bytes of process `from` to all. */
static gnnc_status broadcast(gnnc_trainer *t, void *bytes, size_t n_bytes, int from) {
    const gnnc_processes *p = &t->processes;
    gnnc_status st = p->n > 1 ? p->broadcast(p->user, bytes, n_bytes, from) : GNNC_OK;
    if (st == GNNC_OK) return GNNC_OK;
    return rt_fail(&t->rt.err, st, "what rank %d sends did not come: %s", from,
                   gnnc_status_text(st));
}

/* Processes compare this before they share steps, as all must begin with the same variables. It
 * is taken of their values, not of the seed: those that are resumed, or come from a file, may
 * differ. */
static uint64_t hash_vars(gnnc_trainer *t) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int v = 0; v < t->program->n_vars; v++) {
        size_t n = 0;
        int b = t->program->vars[v].buf;
        if (b < 0 || t->program->vars[v].kind == RT_VAR_KEPT) continue;
        if (rt_buf_bytes(&t->x, b, &n) != GNNC_OK) continue;
        const unsigned char *p = t->x.buf[b];
        for (size_t i = 0; i + 4 <= n; i += 4) {
            uint32_t word;
            memcpy(&word, p + i, sizeof word);
            h = (h ^ word) * 0x100000001b3u;
        }
    }
    return h;
}

/* Processes of two programs, of two copies of the data or of two seeds would learn nonsense, and
 * those of two kinds of processor part by the last bits of each update. */
gnnc_status rt_processes_agree(gnnc_trainer *t, bool trains) {
    static const char *const what[] = {"program",
                                       "data",
                                       "seed",
                                       "size of a batch",
                                       "step",
                                       "steps",
                                       "learning rate",
                                       "epochs",
                                       "kind of processor",
                                       "variant of the program",
                                       "value of a model's option",
                                       "fan-out",
                                       "way to add up sums (reduce_fast)",
                                       "file of parameters"};
    enum { N = sizeof what / sizeof *what };
    if (t->processes.n < 2) return GNNC_OK;
    double lr = t->options.lr;
    const char *machine = rt_machine_kind(&t->rt.pool, &t->rt);
    if (!machine) return rt_fail_nomem(&t->rt.err, "steps");
    uint64_t first[N], own[N] = {t->program->fingerprint,
                                 t->rt.bound->fingerprint,
                                 (uint64_t)t->options.seed,
                                 (uint64_t)t->options.batch,
                                 (uint64_t)t->progress.step,
                                 t->shares ? (uint64_t)t->shares->k : 0,
                                 0,
                                 (uint64_t)t->options.epochs,
                                 rt_hash_text(machine),
                                 (uint64_t)t->variant,
                                 rt_model_options_hash(t),
                                 t->options.own_fanout ? rt_hash_text(t->options.fanout) : 0,
                                 (uint64_t)t->options.reduce_fast,
                                 trains ? hash_vars(t) : 0};
    memcpy(&own[6], &lr, sizeof lr);
    memcpy(first, own, sizeof own);
    gnnc_status st = broadcast(t, first, sizeof first, 0);
    for (int i = 0; i < N && st == GNNC_OK; i++)
        if (first[i] != own[i])
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank %d trains with another %s than rank 0",
                         t->processes.rank, what[i]);
    return st;
}

gnnc_status rt_processes_follow_first(gnnc_trainer *t, int64_t *number) {
    return broadcast(t, number, sizeof *number, 0);
}

gnnc_status rt_shares_begin(gnnc_trainer *t) {
    RtShares *s = t->shares;
    int64_t step = t->progress.step;
    gnnc_status st = s->agreed ? GNNC_OK : rt_processes_agree(t, true);
    s->agreed = st == GNNC_OK;
    if (st == GNNC_OK && s->to != step) s->from = s->to = step; /* it was resumed elsewhere */
    if (st == GNNC_OK && is_last(s, step)) st = rt_shares_settle(t);
    if (st != GNNC_OK) return st;
    count_step(t, place_of(s, step));
    if (!is_last(s, step) && rt_shares_mine(t, step)) {
        read_sums(t, s->base);
        clear_sums(t);
        s->apart = true;
    }
    return GNNC_OK;
}

void rt_shares_undo(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (s->apart) put_back_sums(t, s->base);
    s->apart = false;
}

/* Adds the loss of a step that another process made to that of the epoch. */
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
    Head h = {v, batch, n, s->asked};
    if (is_last(s, step)) {
        take_loss(t, &h);
        s->from = s->to = step + 1;
        if (s->known) s->told = s->known;
        s->known = 0;
        return;
    }
    if (rt_shares_mine(t, step)) {
        *head_of(s, step) = h;
        s->asked = 0;
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
        st = broadcast(t, head_of(s, s->from), s->slot_bytes, maker_of(t, s->from));
        if (st != GNNC_OK) break;
        if (h->asked && !s->known) s->known = h->asked;
        take_loss(t, h);
        add_sums(t, numbers_of(s, s->from));
        t->rt.vars_changed |= s->has_state;
    }
    return st;
}

gnnc_status rt_shares_settle_state(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (!s || !s->has_state || s->from >= s->to) return GNNC_OK;
    if (t->processes.n == 1) return rt_shares_settle(t);
    return rt_fail(&t->rt.err, GNNC_E_STATE,
                   "%lld of the %lld steps of an update are done: until its last one, each process "
                   "has another state of layers",
                   (long long)place_of(s, s->to), (long long)s->k);
}

/* ---- the interface --------------------------------------------------------------------------- */
gnnc_status gnnc_trainer_set_processes(gnnc_trainer *t, const gnnc_processes *p) {
    RT_NOT_NULL(t, p);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_processes, p, user);
    if (st != GNNC_OK) return st;
    if (p->n < 1 || p->rank < 0 || p->rank >= p->n)
        return rt_fail(&t->rt.err, GNNC_E_ARG, "there is no rank %d of %d processes", p->rank,
                       p->n);
    if (p->n > 1 && !p->broadcast)
        return rt_fail(&t->rt.err, GNNC_E_ARG, "%d processes without 'broadcast'", p->n);
    if (t->loaded)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "processes must be told of before load");
    t->processes = (gnnc_processes){0};
    memcpy(&t->processes, p, p->struct_size < sizeof *p ? p->struct_size : sizeof *p);
    return GNNC_OK;
}

/* The first that one of them asks for: all hear it at once.  Where it does not come, the next
 * exchange fails without another wait, and the caller of its step hears why. */
static int hear_all(gnnc_trainer *t, int asked) {
    int heard = 0;
    return rt_dist_first_request(&t->x, asked, &heard) == GNNC_OK ? heard : 0;
}

/* What was told is forgotten in all alike, with what this process has asked meanwhile. */
int gnnc_trainer_agree(gnnc_trainer *t, int asked) {
    RtShares *s = t ? t->shares : NULL;
    if (t && rt_dist_several(&t->x)) return hear_all(t, asked);
    if (!s || t->processes.n == 1) return t ? asked : 0;
    if (asked) s->asked = asked;
    int told = (int)s->told;
    if (told) s->told = s->asked = 0;
    return told;
}
