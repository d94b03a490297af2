/* Training and evaluation.  A step is one run of the "train" phase; an epoch adds what a
 * user sees: metrics of every split ("eval"), the schedule, and the copy of the best
 * parameters.  Scalars are read once per epoch, all at the same place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/contract.h"
#include "runtime/clock.h"
#include "runtime/device/device.h"
#include "runtime/batch/link_batches.h"
#include "runtime/batch/pull.h"
#include "runtime/batch/row_batches.h"
#include "splits.h"
#include "runtime/batch/train_batches.h"
#include "runtime/batch/train_shares.h"
#include "runtime/exec/distributed.h"

/* ---- history ------------------------------------------------------------------- */
/* Untouched rows cost no memory. */
gnnc_status rt_history_reserve(gnnc_trainer *t, int64_t n_done, int64_t n_wanted) {
    int64_t ahead = n_wanted < RT_FIRST_EPOCHS ? n_wanted : RT_FIRST_EPOCHS;
    int64_t cap = n_done > ahead ? n_done : ahead;
    if (cap <= t->history.cap) return GNNC_OK;
    if (cap < 2 * t->history.cap) cap = 2 * t->history.cap;
    double *v = rt_pool_alloc(&t->rt.pool, (size_t)cap, sizeof *v * (size_t)t->n_scalars);
    if (!v) return rt_fail_nomem(&t->rt.err, "the history of the epochs");
    if (t->history.v) memcpy(v, t->history.v, (size_t)(t->history.cap * t->n_scalars) * sizeof *v);
    t->history = (RtHistory){v, cap};
    return GNNC_OK;
}

static void note_scalars(const gnnc_trainer *t, double *to) {
    for (int i = 0; i < t->n_scalars; i++) to[i] = t->scalars[i].known ? t->scalars[i].value : NAN;
}

void rt_history_note(gnnc_trainer *t, int64_t epoch) {
    note_scalars(t, &t->history.v[epoch * t->n_scalars]);
}

/* ---- the best parameters ---------------------------------------------------------- */
/* Bytes of a variable. */
size_t rt_var_bytes(gnnc_trainer *t, int var) {
    size_t n = 0;
    rt_buf_bytes(&t->x, t->program->vars[var].buf, &n);
    return n;
}

/* fn(present, kept, bytes) over the shown variables. */
static void each_best(gnnc_trainer *t, bool store) {
    char *at = t->best;
    t->rt.vars_changed |= !store;
    for (int i = 0; at && i < t->n_shown; i++) {
        int b = t->program->vars[t->shown[i]].buf;
        void *now = t->x.buf[b];
        size_t n = rt_var_bytes(t, t->shown[i]);
        if (t->rt.device)
            rt_device_copy_best(&t->x, (size_t)(at - (char *)t->best), b, n, store);
        else
            memcpy(store ? at : now, store ? now : at, n);
        at += n;
    }
}

void rt_best_store(gnnc_trainer *t) {
    each_best(t, true);
}

void rt_best_restore(gnnc_trainer *t) {
    each_best(t, false);
}

/* The kept best value of the parameter number `shown`; its present one, if no epoch was kept
 * yet. */
void *rt_best_value(gnnc_trainer *t, int shown) {
    if (!t->best || t->progress.best_epoch == 0)
        return t->x.buf[t->program->vars[t->shown[shown]].buf];
    char *at = t->best;
    for (int i = 0; i < shown; i++) at += rt_var_bytes(t, t->shown[i]);
    return at;
}

/* The first of equal epochs stays.  After so many steps of the epoch under way; 0: behind one. */
static void keep_if_best(gnnc_trainer *t, int64_t step) {
    if (t->keep < 0 || !t->scalars[t->keep].known) return;
    double v = t->scalars[t->keep].value;
    RtProgress *p = &t->progress;
    bool better = t->program->recipe.keep_max ? v > p->best : v < p->best;
    if (isnan(v) || (p->best_epoch && !better)) return;
    p->best = v;
    p->best_epoch = p->epoch + (step > 0);
    p->best_step = step;
    note_scalars(t, t->best_values);
    rt_best_store(t);
}

/* ---- steps and epochs ----------------------------------------------------------------- */
void rt_trainer_inputs(gnnc_trainer *t) {
    rt_write_keys(&t->x, (uint64_t)t->options.seed, (uint64_t)t->progress.step);
    rt_write_input(&t->x, "lr",
                   rt_schedule_lr(&t->schedule, &t->progress.plateau, t->progress.epoch));
    rt_write_input(&t->x, "weight_decay", t->options.weight_decay);
    rt_write_input(&t->x, "step", (double)(t->progress.step + 1));
    t->last_phase = -1; /* a run that fails half-way leaves no value of any phase */
}

/* Runs a phase without a check that phases come in order, and counts what it did. */
static gnnc_status run_phase_unchecked(gnnc_trainer *t, const rt_phase *phase) {
    int index = (int)(phase - t->program->phases);
    bool trains = phase->kind == RT_PHASE_TRAIN, judges = phase->kind == RT_PHASE_EVAL;
    gnnc_status goes_on = rt_dist_check(&t->x);
    if (goes_on != GNNC_OK) return goes_on;
    if (trains || judges) {
        gnnc_status lacks = rt_bind_require_labels(&t->x);
        if (lacks != GNNC_OK) return lacks;
    }
    if (trains && !t->agreed && rt_dist_several(&t->x)) {
        gnnc_status st = rt_processes_agree(t, true);
        rt_dist_leave(&t->x, st);
        if (st != GNNC_OK) return st;
        t->agreed = true;
    }
    if (!trains) {
        gnnc_status st = rt_shares_settle_state(t);
        if (st != GNNC_OK) return st;
    }
    rt_trainer_inputs(t);
    goes_on = rt_dist_begin(&t->x, (uint64_t)t->options.seed, trains ? t->progress.step : -1);
    rt_dist_leave(&t->x, goes_on);
    if (goes_on != GNNC_OK) return goes_on;
    t->judged &= !trains;
    t->step_judged &= !trains;
    bool of_rows = rt_row_batches_sizes(t, phase) != NULL,
         of_links = rt_link_batches_sizes(t, phase) != NULL;
    gnnc_status st = of_links               ? rt_link_batches_run(t, phase)
                     : judges && t->rows    ? rt_row_batches_evaluate(t, phase)
                     : of_rows              ? rt_row_batches_run(t, phase)
                     : trains && t->batches ? rt_batches_run(t)
                                            : rt_pulls_run_whole(t, phase);
    if (st != GNNC_OK) return st;
    t->last_phase = index;
    if (trains) {
        t->progress.step++;
        t->rt.count.steps++;
        t->ahead = true;
        t->stepped = t->trained = false;
    }
    return GNNC_OK;
}

/* Runs a phase in order with the host's stream: after what was put there, and before what comes. */
static gnnc_status run_phase(gnnc_trainer *t, const rt_phase *phase) {
    gnnc_status st = rt_device_follow(&t->x);
    if (st != GNNC_OK) return st;
    st = run_phase_unchecked(t, phase);
    gnnc_status after = rt_device_lead(&t->x);
    return st != GNNC_OK ? st : after;
}

/* Finds a phase by name, for a caller; data must be loaded. */
static gnnc_status need_named(gnnc_trainer *t, const char *name, const rt_phase **phase) {
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    *phase = rt_phase_find(t->program, name);
    if (*phase) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "model '%s' has no phase '%s'", t->program->name,
                   name);
}

static gnnc_status need_phase(gnnc_trainer *t, rt_phase_kind kind, const rt_phase **phase) {
    return need_named(t, rt_phase_kind_words.word[kind], phase);
}

gnnc_status gnnc_trainer_run_phase(gnnc_trainer *t, const char *phase) {
    RT_NOT_NULL(t, phase);
    rt_trainer_begin(t);
    t->rt.stop = &t->stop;
    const rt_phase *p = NULL;
    gnnc_status st = need_named(t, phase, &p);
    return st == GNNC_OK ? run_phase(t, p) : st;
}

/* ---- who is told of steps -------------------------------------------------------------- */
gnnc_status gnnc_trainer_set_progress(gnnc_trainer *t, gnnc_progress_fn *fn, void *user) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    t->tell = fn;
    t->tell_user = user;
    return GNNC_OK;
}

static void begin_telling(gnnc_trainer *t) {
    if (t->tell) t->began_ns = rt_now_ns();
}

/* The loss of the last step; NaN: a GPU's steps are not waited for, and one that another process
 * makes is there once the update is made. */
static double loss_of_step(gnnc_trainer *t) {
    double came;
    if (!t->rt.device && rt_shares_loss(t, &came)) return came;
    bool here = !t->rt.device && rt_shares_mine(t, t->progress.step - 1);
    const RtScalar *loss = here ? rt_scalar_loss(t, RT_SPLIT_NONE) : NULL;
    return loss && loss->buf >= 0 ? rt_buf_read(&t->x, loss->buf, 0) : NAN;
}

/* Tells the host's function of a step; false: the host wants no other. */
static bool tell(gnnc_trainer *t, bool evaluated) {
    if (!t->tell) return true;
    int64_t n = rt_batches_per_epoch(t), done = t->progress.step % n;
    if (!done) done = n;
    const gnnc_progress now = {.struct_size = sizeof now,
                               .steps = t->progress.step,
                               .epochs_done = t->progress.epoch,
                               .epochs_total = t->options.epochs,
                               .steps_done = done,
                               .steps_left = n - done,
                               .loss = loss_of_step(t),
                               .seconds = 1e-9 * (double)(rt_now_ns() - t->began_ns),
                               .evaluated = evaluated};
    return t->tell(t->tell_user, &now) == 0;
}

static gnnc_status cancelled(gnnc_trainer *t) {
    return rt_fail(&t->rt.err, GNNC_E_STOPPED, "cancelled by the host after step %lld",
                   (long long)t->progress.step);
}

gnnc_status gnnc_trainer_step(gnnc_trainer *t) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    begin_telling(t);
    const rt_phase *p = NULL;
    gnnc_status st;
    TRY(st, need_phase(t, RT_PHASE_TRAIN, &p));
    TRY(st, rt_splits_check(t));
    TRY(st, run_phase(t, p));
    if (!tell(t, false)) st = cancelled(t);
out:
    return st;
}

static int phase_index(const gnnc_trainer *t, rt_phase_kind kind) {
    const rt_phase *p = rt_phase_of(t->program, kind);
    return p ? (int)(p - t->program->phases) : -1;
}

/* Runs @eval and reads the losses and metrics of it. Where rows are predicted in batches, what the
 * model logs is computed in @predict and read from there. */
static gnnc_status evaluate(gnnc_trainer *t) {
    const rt_phase *eval = rt_phase_of(t->program, RT_PHASE_EVAL);
    if (!eval) return GNNC_OK;
    gnnc_status st = run_phase(t, eval);
    if (st == GNNC_OK) st = rt_scalars_read(t, (int)(eval - t->program->phases));
    bool predicts = t->batches && rt_predicts_batches(t->program); /* which has the logs */
    if (st == GNNC_OK && predicts) st = rt_scalars_read(t, phase_index(t, RT_PHASE_PREDICT));
    t->judged = st == GNNC_OK;
    return st;
}

/* The metrics of a split are computed of what was predicted of its rows. */
static bool judges_values(const gnnc_trainer *t) {
    int buf = rt_trainer_prediction(t);
    return t->rows && !t->rt.device && buf >= 0 && t->program->bufs[buf].dt == RT_F32;
}

gnnc_status gnnc_trainer_evaluate_predictions(gnnc_trainer *t, const float *predictions) {
    RT_NOT_NULL(t, t);
    RT_NOT_NULL(t, predictions);
    rt_trainer_begin(t);
    const rt_phase *p = NULL;
    gnnc_status st;
    TRY(st, need_phase(t, RT_PHASE_EVAL, &p));
    TRY(st, rt_splits_known(t));
    if (!judges_values(t))
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "model '%s' judges no predictions that are given: only one by time does, on "
                       "the CPU",
                       t->program->name);
    TRY(st, rt_bind_require_labels(&t->x));
    rt_trainer_inputs(t);
    t->judged = false; /* these are none of the parameters' */
    TRY(st, rt_row_batches_judge(t, p, predictions));
    t->last_phase = (int)(p - t->program->phases);
    st = rt_scalars_read(t, t->last_phase);
out:
    return st;
}

gnnc_status gnnc_trainer_evaluate(gnnc_trainer *t) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    const rt_phase *p = NULL;
    gnnc_status st = need_phase(t, RT_PHASE_EVAL, &p);
    if (st == GNNC_OK) st = rt_splits_known(t);
    if (st != GNNC_OK) return st;
    t->rt.count.read_backs++;
    st = evaluate(t);
    if (st == GNNC_OK) rt_scalars_read_logs(t);
    return st;
}

/* Does the program have values in f16, which overflow above 65504? */
static bool has_f16(const rt_program *p) {
    for (int i = 0; i < p->n_bufs; i++)
        if (p->bufs[i].dt == RT_F16) return true;
    return false;
}

/* Fails if the loss is not finite, and says what may help. */
static gnnc_status check_loss(gnnc_trainer *t) {
    const RtScalar *loss = rt_scalar_loss(t, RT_SPLIT_NONE);
    if (!loss || !loss->known || isfinite(loss->value)) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_VALUE, "the loss became %s in epoch %lld; %s may help",
                   isnan(loss->value) ? "NaN" : "infinite",
                   (long long)(t->progress.epoch + t->ahead),
                   has_f16(t->program) ? "what exceeds 65504 kept in f32 (--precision=auto finds "
                                         "it, @f32 says it) or a lower learning rate"
                                       : "a lower learning rate");
}

/* The number that the schedule watches: the kept metric, else the validation loss, else, where
 * there is no such split, the loss. */
static const RtScalar *watched(gnnc_trainer *t) {
    if (t->keep >= 0) return &t->scalars[t->keep];
    const RtScalar *s = rt_scalar_loss(t, RT_SPLIT_VAL);
    return s && t->split_rows[2] ? s : rt_scalar_loss(t, RT_SPLIT_NONE);
}

/* Has the program a phase @train, rows to learn from, and room in the history? Fails once the kept
 * parameters are in place. */
static gnnc_status can_train(gnnc_trainer *t, const rt_phase **phase) {
    gnnc_status st = need_phase(t, RT_PHASE_TRAIN, phase);
    if (st != GNNC_OK) return st;
    if (t->finished)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the kept parameters are in place: resume from a checkpoint to go on");
    st = rt_splits_check(t);
    return st != GNNC_OK ? st : rt_history_reserve(t, t->progress.epoch + 1, 0);
}

/* Reads what steps leave for an evaluation: the loss is that of the epoch's batches so far. */
static gnnc_status end_steps(gnnc_trainer *t) {
    gnnc_status st = rt_batches_settle(t);
    if (st == GNNC_OK) st = rt_scalars_read(t, phase_index(t, RT_PHASE_TRAIN));
    if (st != GNNC_OK) return st;
    const RtProgress *p = &t->progress;
    if (t->batches && rt_scalar_loss(t, RT_SPLIT_NONE) && p->loss_rows)
        rt_scalar_set(t, "loss", p->loss_sum / (double)p->loss_rows);
    else if (t->batches && rt_scalar_loss(t, RT_SPLIT_NONE))
        rt_scalar_find(t, "loss")->known = false; /* batches so far had no row to learn from */
    return rt_shares_tell_logs(t);
}

/* By the step's number alone, and never behind the last one of an epoch. */
static bool is_step_evaluated(const gnnc_trainer *t, int64_t left) {
    int64_t every = t->options.eval_every_steps;
    return every && left && t->progress.step % every == 0;
}

/* Evaluates within an epoch, after a step, and keeps the parameters if they are the best so far. */
static gnnc_status evaluate_step(gnnc_trainer *t) {
    int64_t begin = rt_now_ns();
    gnnc_status st;
    TRY(st, rt_shares_settle(t));
    TRY(st, end_steps(t));
    TRY(st, evaluate(t));
    t->step_judged = true;
    t->rt.count.eval_ns += rt_now_ns() - begin;
    t->rt.count.read_backs++;
    TRY(st, check_loss(t));
    keep_if_best(t, t->progress.step % rt_batches_per_epoch(t));
out:
    return st;
}

/* The steps of the epoch under way that are not done yet. */
static gnnc_status run_steps(gnnc_trainer *t, const rt_phase *train) {
    gnnc_status st = GNNC_OK;
    bool goes_on = true;
    int64_t n = gnnc_trainer_steps_left(t); /* 0: what follows them failed */
    /* where an evaluation failed, or a run goes on from a file that was saved in place of it */
    if (n > 0 && t->ahead && !t->step_judged && is_step_evaluated(t, n)) TRY(st, evaluate_step(t));
    for (; n > 0 && goes_on; n--) {
        TRY(st, run_phase(t, train));
        bool evaluated = is_step_evaluated(t, n - 1);
        if (evaluated) TRY(st, evaluate_step(t));
        goes_on = tell(t, evaluated);
        t->rt.stop = &t->stop; /* a host that reads metrics in its progress function cleared it */
    }
    t->stepped = n == 0;
    if (n == 0 || !goes_on) TRY(st, rt_shares_settle(t));
    if (n == 0) TRY(st, end_steps(t));
    t->trained = n == 0;
    if (!goes_on) st = cancelled(t);
out:
    return st;
}

/* By its number alone: a run that goes on evaluates what one that was never stopped does. */
static bool is_evaluated(const gnnc_trainer *t, int64_t epoch) {
    return epoch % t->options.eval_every == 0;
}

/* Forgets the metrics of an earlier epoch, which are not this one's; what the steps have told
 * stays. */
static void forget_metrics(gnnc_trainer *t) {
    int train = phase_index(t, RT_PHASE_TRAIN);
    for (int i = 0; i < t->n_scalars; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->role != RT_OUT_VALUE && s->phase != train) s->known = false;
    }
}

gnnc_status gnnc_trainer_epoch(gnnc_trainer *t) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    begin_telling(t);
    t->rt.stop = &t->stop;
    t->in_epoch = true;
    const rt_phase *train = NULL;
    int64_t e = t->progress.epoch;
    double lr = rt_schedule_lr(&t->schedule, &t->progress.plateau, e);
    gnnc_status st;
    TRY(st, can_train(t, &train));
    if (!t->trained) TRY(st, run_steps(t, train)); /* else the evaluation failed */
    rt_scalar_set(t, "lr", lr);
    int64_t begin = rt_now_ns();
    if (is_evaluated(t, e + 1))
        TRY(st, evaluate(t));
    else
        forget_metrics(t);
    t->rt.count.eval_ns += rt_now_ns() - begin;
    t->ahead = t->stepped = t->trained = false;
    t->rt.count.read_backs++;
    t->progress.epoch = e + 1;
    rt_history_note(t, e);
    const RtScalar *w = watched(t);
    if (w && w->known) rt_schedule_observe(&t->schedule, &t->progress.plateau, e, w->value);
    TRY(st, check_loss(t)); /* what diverged is never kept */
    keep_if_best(t, 0);
out:
    t->in_epoch = false;
    if (st != GNNC_OK && st != GNNC_E_STOPPED) rt_shares_lose(t);
    return st;
}

int gnnc_trainer_done(const gnnc_trainer *t) {
    if (!t) return 1;
    const RtProgress *p = &t->progress;
    int64_t patience = t->program->recipe.early_stop_patience;
    if (atomic_load(&t->stop) || t->finished || p->epoch >= t->options.epochs) return 1;
    return patience > 0 && p->best_epoch > 0 && is_evaluated(t, p->epoch) &&
           p->epoch - p->best_epoch >= patience;
}

void gnnc_trainer_stop(gnnc_trainer *t) {
    if (!t) return;
    atomic_store(&t->stop, 1);
}

int64_t gnnc_trainer_epochs_done(const gnnc_trainer *t) {
    if (!t) return 0;
    return t->progress.epoch;
}

int64_t gnnc_trainer_epochs_total(const gnnc_trainer *t) {
    if (!t) return 0;
    return t->options.epochs;
}

int64_t gnnc_trainer_kept_step(const gnnc_trainer *t) {
    return t ? t->progress.best_step : 0;
}

/* Where none was the best, parameters are as they are: behind any step, of the next one. */
static int64_t kept_epoch(const gnnc_trainer *t) {
    const RtProgress *p = &t->progress;
    return p->best_epoch ? p->best_epoch : p->epoch + t->ahead;
}

gnnc_status gnnc_trainer_keep_best(gnnc_trainer *t, int64_t *epoch) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (t->progress.best_epoch && !t->finished) rt_best_restore(t);
    t->judged = false;
    t->finished = true;
    if (t->keep >= 0 && t->progress.epoch && !t->progress.best_epoch)
        rt_message(&t->rt, "'%s' was NaN in every epoch%s: the last one is kept",
                   t->scalars[t->keep].name,
                   t->options.eval_every > 1 ? " that was evaluated" : "");
    if (epoch) *epoch = kept_epoch(t);
    t->rt.count.read_backs++;
    st = evaluate(t);
    if (st == GNNC_OK) rt_scalars_read_logs(t);
    return st;
}

int rt_trainer_prediction(const gnnc_trainer *t) {
    const rt_phase *ph = rt_phase_of(t->program, RT_PHASE_PREDICT);
    const rt_program *p = t->program;
    for (int b = 0; ph && b < p->n_bufs; b++) {
        const rt_buf *o = &p->bufs[b];
        if (o->role == RT_OUT_PRED && o->phase == ph - p->phases) return b;
    }
    return -1;
}
