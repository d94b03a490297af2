#include "train_shares.h"

#include "pull.h"
#include "train_peers.h"
#include "train_sums.h"

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
    unsigned char told[8]; /* as a device has it: its bytes, until number_loss() reads them */
    int64_t batch, rows, asked;
} Head;

struct RtShares {
    int64_t k;
    int counter; /* buffer of the steps since the last update */
    RtSums sums;
    size_t slot_bytes;    /* a Head and, where they go through the host, the sums' numbers */
    char *slot;           /* [k][slot_bytes] of the steps since the last update */
    int64_t from, to;     /* steps whose slots nobody has added yet */
    int64_t heard;        /* the first of them whose Head has not come */
    bool due;             /* all k steps are made; they may not have come, and the update is not */
    int64_t asked;        /* by this process; 0 = nothing */
    int64_t known, told;  /* by any: it came with a step; the update is done in all */
    bool agreed;          /* all train the same model on the same data */
    bool lost;            /* a step or what it sends failed: others may be gone */
    const int32_t *maker; /* [n_batches] of an epoch: who makes it; NULL = they do by turns */
    int64_t n_batches;
};

static int64_t place_of(const RtShares *s, int64_t step) {
    return step % s->k;
}

static int maker_of(const gnnc_trainer *t, int64_t step) {
    const RtShares *s = t->shares;
    if (s->maker) return s->maker[step % s->n_batches];
    return (int)(place_of(s, step) % t->processes.n);
}

void rt_shares_give(gnnc_trainer *t, const int32_t *maker, int64_t n_batches) {
    t->shares->maker = maker;
    t->shares->n_batches = n_batches;
}

static bool is_last(const RtShares *s, int64_t step) {
    return place_of(s, step) == s->k - 1;
}

bool rt_shares_mine(const gnnc_trainer *t, int64_t step) {
    return !t->shares || maker_of(t, step) == t->processes.rank;
}

/* Is a step made by who makes one of those from `from` on? */
static bool makes_another(const gnnc_trainer *t, int64_t from, int64_t step) {
    int64_t before = from;
    while (before < step && maker_of(t, before) != maker_of(t, step)) before++;
    return before < step;
}

int64_t rt_shares_turn(const gnnc_trainer *t, int64_t step) {
    const RtShares *s = t->shares;
    int64_t n = t->processes.n, place = place_of(s, step), end = (place / n + 1) * n;
    if (!s->maker) return step - place + (end < s->k ? end : s->k);
    end = step + 1;
    while (!is_last(s, end - 1) && !makes_another(t, step, end)) end++;
    return end;
}

static Head *head_of(const RtShares *s, int64_t step) {
    return (Head *)(s->slot + (size_t)place_of(s, step) * s->slot_bytes);
}

static float *numbers_of(const RtShares *s, int64_t step) {
    if (s->sums.parts) return s->sums.parts + place_of(s, step) * s->sums.n_numbers;
    return (float *)(head_of(s, step) + 1);
}

/* Of the steps before this one nothing is left to add. */
static void go_on_from(RtShares *s, int64_t step) {
    s->from = s->heard = s->to = step;
    s->due = false;
}

static void count_step(gnnc_trainer *t, int64_t n) {
    int b = t->shares->counter;
    *(float *)t->x.buf[b] = (float)n;
    if (t->rt.device) t->rt.device->newer[b] = RT_HOST_NEWER;
}

/* ---- life ------------------------------------------------------------------------------------ */
/* Why processes cannot share this trainer's steps; NULL: they can. */
static const char *lacks(const gnnc_trainer *t) {
    const rt_program *p = t->program;
    if (!t->batches) return "its steps see the whole graph; 'sample' makes batches";
    if (p->recipe.accumulate < 2) return "'accumulate n' says how many steps they share";
    if (t->options.reduce_fast)
        return "'reduce_fast' is for shared rows, its processes share steps";
    if (t->options.stale_halos)
        return "'stale_halos' is for shared rows, its processes share steps";
    for (int i = 0; i < p->n_vars; i++) {
        if (p->vars[i].kind == RT_VAR_STATE && p->vars[i].assigned && p->vars[i].keeps == 0)
            return "a layer has state that steps change by more than a factor and a sum";
        if (p->vars[i].role == RT_ROLE_LOSS_SCALE) return "its loss is scaled (f16)";
        if (p->vars[i].role == RT_ROLE_SUMMED_GRADIENT && p->vars[i].dt != RT_F32)
            return "its gradients are not of f32";
    }
    if (!rt_phase_of(p, RT_PHASE_UPDATE)) return "it has no '@update'";
    return NULL;
}

/* Buffer of the number of steps since the last update. */
static int find_counter(const rt_program *p) {
    for (int i = 0; i < p->n_vars; i++)
        if (p->vars[i].role == RT_ROLE_SUMMED_STEPS) return p->vars[i].buf;
    return -1;
}

/* Room for what steps leave, and for sending it. */
static gnnc_status make_room(gnnc_trainer *t) {
    RtShares *s = t->shares;
    void *slot;
    gnnc_status st;
    TRY(st, rt_sums_place(t, &s->sums, s->k));
    size_t numbers = s->sums.parts ? 0 : (size_t)s->sums.n_numbers;
    s->slot_bytes = (sizeof(Head) + numbers * sizeof(float) + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
    TRY(st, rt_sums_memory(t, (size_t)s->k * s->slot_bytes, &slot));
    s->slot = slot;
out:
    return st;
}

gnnc_status rt_shares_start(gnnc_trainer *t) {
    if (rt_dist_several(&t->x)) return GNNC_OK; /* they share rows, not steps */
    const char *why = lacks(t);
    RtPool *pool = &t->rt.pool;
    if (why && t->processes.n > 1)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "%d processes cannot train this model: %s",
                       t->processes.n, why);
    if (why) return GNNC_OK;
    RtShares *s = t->shares = RT_NEW(pool, RtShares);
    if (!s) return rt_fail_nomem(&t->rt.err, "steps");
    *s = (RtShares){.k = t->program->recipe.accumulate, .counter = find_counter(t->program)};
    go_on_from(s, t->progress.step);
    gnnc_status st = rt_sums_init(t, &s->sums);
    bool later = t->rt.device && t->processes.n > 1; /* once all are known to have a device */
    return st == GNNC_OK && !later ? make_room(t) : st;
}

void rt_shares_stop(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (s) rt_sums_close(t, &s->sums, s->slot, s->lost);
    t->shares = NULL; /* the pool has it */
}

void rt_shares_forget(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (!s) return;
    go_on_from(s, s->to);
    s->sums.apart = false;
}

/* ---- steps ----------------------------------------------------------------------------------- */
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

uint64_t rt_shares_evaluations(const gnnc_trainer *t) {
    const RtOptions *o = &t->options;
    const int64_t number[] = {o->eval_every, o->eval_every_steps, o->eval_rows};
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        h = (h ^ (uint64_t)number[i]) * 0x100000001b3u;
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
                                       "age of shared rows (stale_halos)",
                                       "kind of GPU",
                                       "way to take seeds (seeds_by_part)",
                                       RT_SHARES_EVALUATIONS,
                                       "file of parameters"};
    enum { N = sizeof what / sizeof *what };
    if (t->processes.n < 2) return GNNC_OK;
    double lr = t->options.lr;
    const RtDevice *d = t->rt.device;
    const char *machine = rt_machine_kind(&t->rt.pool, &t->rt);
    if (!machine) return rt_fail_nomem(&t->rt.err, "steps");
    gnnc_status st = trains ? rt_pull_vars(&t->x) : GNNC_OK;
    if (st != GNNC_OK) return st;
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
                                 (uint64_t)t->options.stale_halos,
                                 d ? d->ops->kind(d) : 0,
                                 (uint64_t)t->options.seeds_by_part,
                                 t->shares ? rt_shares_evaluations(t) : 0,
                                 trains ? hash_vars(t) : 0};
    memcpy(&own[6], &lr, sizeof lr);
    memcpy(first, own, sizeof own);
    st = rt_processes_broadcast(t, first, sizeof first, 0);
    for (int i = 0; i < N && st == GNNC_OK; i++)
        if (first[i] != own[i])
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank %d trains with another %s than rank 0",
                         t->processes.rank, what[i]);
    return st;
}

gnnc_status rt_processes_follow_first(gnnc_trainer *t, int64_t *number) {
    return rt_processes_broadcast(t, number, sizeof *number, 0);
}

gnnc_status rt_shares_begin(gnnc_trainer *t) {
    RtShares *s = t->shares;
    int64_t step = t->progress.step;
    gnnc_status st = s->agreed ? GNNC_OK : rt_processes_agree(t, true);
    s->agreed = st == GNNC_OK;
    if (st == GNNC_OK && !s->slot) st = make_room(t);
    if (st == GNNC_OK && s->to != step) go_on_from(s, step); /* it was resumed elsewhere */
    if (st != GNNC_OK) return st;
    count_step(t, is_last(s, step) ? 0 : place_of(s, step)); /* so that it makes no update */
    return rt_shares_mine(t, step) ? rt_sums_begin_part(t, &s->sums) : GNNC_OK;
}

void rt_shares_lose(gnnc_trainer *t) {
    if (t->shares) t->shares->lost = true;
}

void rt_shares_undo(gnnc_trainer *t) {
    RtError why = t->rt.err;
    rt_shares_lose(t);
    rt_sums_put_back(t, &t->shares->sums);
    count_step(t, place_of(t->shares, t->progress.step));
    t->rt.err = why; /* what made the step fail */
}

/* ---- losses ---------------------------------------------------------------------------------- */
/* The loss of the step that was made, into its Head. */
static gnnc_status put_loss(gnnc_trainer *t, Head *h) {
    const RtScalar *loss = rt_scalar_loss(t, RT_SPLIT_NONE);
    RtDevice *d = t->rt.device;
    if (!loss || loss->buf < 0) return GNNC_OK;
    size_t n_bytes = (size_t)rt_type_bytes(t->program->bufs[loss->buf].dt);
    if (d) return d->ops->read(d, h->told, d->at.buf[loss->buf], n_bytes);
    h->loss = rt_buf_read(&t->x, loss->buf, 0);
    return GNNC_OK;
}

/* Of a step that this process made, once rt_sums_arrive() has waited.  Where a broadcast failed it
 * is done again. */
static void number_loss(gnnc_trainer *t, Head *h) {
    const RtScalar *loss = t->rt.device ? rt_scalar_loss(t, RT_SPLIT_NONE) : NULL;
    if (loss && loss->buf >= 0)
        h->loss = rt_read_number(h->told, t->program->bufs[loss->buf].dt, 0);
}

/* Adds the loss of a step that another process made to that of the epoch. */
static void take_loss(gnnc_trainer *t, const Head *h) {
    RtProgress *p = &t->progress;
    if (h->batch == 0) p->loss_sum = 0, p->loss_rows = 0;
    p->loss_rows += h->rows;
    p->loss_sum += (double)h->rows * h->loss;
}

bool rt_shares_loss(const gnnc_trainer *t, double *loss) {
    const RtShares *s = t->shares;
    int64_t step = t->progress.step - 1;
    if (!s || step < 0 || s->heard != s->to || s->to != step + 1) return false;
    *loss = head_of(s, step)->loss;
    return true;
}

gnnc_status rt_shares_end(gnnc_trainer *t, int64_t batch, int64_t n) {
    RtShares *s = t->shares;
    int64_t step = t->progress.step, place = place_of(s, step);
    Head *h = head_of(s, step);
    gnnc_status st = GNNC_OK;
    if (rt_shares_mine(t, step)) {
        *h = (Head){.batch = batch, .rows = n, .asked = s->asked};
        TRY(st, put_loss(t, h));
        TRY(st, rt_sums_end_part(t, &s->sums, numbers_of(s, step)));
        s->asked = 0;
    }
    if (s->sums.parts) TRY(st, rt_sums_share(t, &s->sums, numbers_of(s, step), maker_of(t, step)));
    s->due = is_last(s, step);
    count_step(t, s->due ? place : place + 1);
    s->to = step + 1;
out:
    return st;
}

/* Adds the steps before `end`, of all processes; what has come when one fails stays. */
static gnnc_status add_steps(gnnc_trainer *t, int64_t end) {
    RtShares *s = t->shares;
    bool there = s->sums.parts != NULL;
    gnnc_status st = GNNC_OK;
    for (; s->heard < end; s->heard++) {
        Head *h = head_of(s, s->heard);
        if (rt_shares_mine(t, s->heard)) number_loss(t, h);
        TRY(st, rt_processes_broadcast(t, h, s->slot_bytes, maker_of(t, s->heard)));
        if (h->asked && !s->known) s->known = h->asked;
        take_loss(t, h);
        if (!there) rt_sums_add(t, &s->sums, numbers_of(s, s->heard));
        t->rt.vars_changed |= s->sums.has_state;
    }
    if (there) TRY(st, rt_sums_add_there(t, &s->sums, numbers_of(s, s->from), end - s->from));
    s->from = end;
out:
    return st;
}

/* The sums and the epoch's loss become those of the steps before `end`. */
static gnnc_status settle(gnnc_trainer *t, int64_t end) {
    RtShares *s = t->shares;
    gnnc_status st = t->pulls ? rt_pulls_wait(t) : GNNC_OK; /* one after the other */
    if (st != GNNC_OK || s->from >= end) return st;
    st = rt_sums_arrive(t, &s->sums);
    if (st != GNNC_OK) return st;
    st = add_steps(t, end);
    s->lost = st != GNNC_OK;
    gnnc_status back = rt_sums_put_back(t, &s->sums);
    return st != GNNC_OK ? st : back;
}

gnnc_status rt_shares_settle(gnnc_trainer *t) {
    const RtShares *s = t->shares;
    if (s && s->due && s->from >= s->to)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the gradients of an update are added, and the update has failed: the next "
                       "step makes it");
    return s ? settle(t, s->due ? s->to - 1 : s->to) : GNNC_OK;
}

bool rt_shares_update_is_due(const gnnc_trainer *t) {
    return t->shares && t->shares->due;
}

/* What @train keeps of parameters beside them @refresh makes anew, as @update does not. */
gnnc_status rt_shares_update(gnnc_trainer *t) {
    RtShares *s = t->shares;
    gnnc_status st;
    TRY(st, settle(t, s->to));
    count_step(t, s->k);
    TRY(st, rt_phase_run(&t->x, rt_phase_of(t->program, RT_PHASE_UPDATE)));
    t->rt.vars_changed = true;
    go_on_from(s, s->to);
    if (s->known) s->told = s->known;
    s->known = 0;
out:
    return st;
}

gnnc_status rt_shares_tell_logs(gnnc_trainer *t) {
    const RtShares *s = t->shares;
    const rt_phase *train = rt_phase_of(t->program, RT_PHASE_TRAIN);
    int64_t step = t->progress.step - 1;
    gnnc_status st = GNNC_OK;
    if (!s || t->processes.n < 2 || step < 0) return GNNC_OK;
    for (int i = 0; i < t->n_scalars && st == GNNC_OK; i++) {
        RtScalar *log = &t->scalars[i];
        double told[] = {log->value, log->known};
        if (log->role != RT_OUT_LOG || log->phase != (int)(train - t->program->phases)) continue;
        st = rt_processes_broadcast(t, told, sizeof told, maker_of(t, step));
        if (st == GNNC_OK) log->value = told[0], log->known = told[1] != 0;
    }
    return st;
}

gnnc_status rt_shares_settle_state(gnnc_trainer *t) {
    RtShares *s = t->shares;
    if (!s || !s->sums.has_state || s->from >= s->to) return GNNC_OK;
    if (t->processes.n == 1) return rt_shares_settle(t);
    return rt_fail(&t->rt.err, GNNC_E_STATE,
                   "%lld of the %lld steps of an update are done: until its last one, each process "
                   "has another state of layers",
                   (long long)place_of(s, t->progress.step), (long long)s->k);
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
    gnnc_processes own = {0};
    memcpy(&own, p, p->struct_size < sizeof own ? p->struct_size : sizeof own);
    if (own.n_local && (own.local_rank < 0 || own.local_rank >= own.n_local))
        return rt_fail(&t->rt.err, GNNC_E_ARG, "there is no process %d of %d of a machine",
                       own.local_rank, own.n_local);
    if (own.patience_s < 0)
        return rt_fail(&t->rt.err, GNNC_E_ARG, "nobody waits for %lld seconds",
                       (long long)own.patience_s);
    if (t->loaded)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "processes must be told of before load");
    t->processes = own;
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
