/* train and eval. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- signals ------------------------------------------------------------------
 * They are blocked while training (threads made later inherit that) and taken between steps or
 * epochs: no handler, hence no global state. */
sigset_t rt_cli_stop_signals(void) {
    static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    sigset_t s;
    sigemptyset(&s);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) sigaddset(&s, asks[i]);
    return s;
}

/* The signal that asks for an end; 0: none came. */
static int pending_signal(void) {
    sigset_t s = rt_cli_stop_signals();
    int n = sigtimedwait(&s, NULL, &(struct timespec){0, 0});
    return n > 0 ? n : 0;
}

/* ---- train ---------------------------------------------------------------------- */
int rt_cli_start(RtCli *c) {
    if (rt_cli_profile_begin(c) != RT_EXIT_OK) return RT_EXIT_FAILED;
    if (c->resume && gnnc_trainer_resume(c->t, c->resume) != GNNC_OK) return rt_cli_failed(c);
    if (c->weights && gnnc_trainer_load_weights(c->t, c->weights) != GNNC_OK)
        return rt_cli_failed(c);
    bool judges = c->command == RT_CMD_TRAIN || c->command == RT_CMD_EVAL;
    gnnc_trainer_set_int(c->t, "labels", judges);
    if (gnnc_trainer_load(c->t, c->data) != GNNC_OK) return rt_cli_failed(c);
    return rt_cli_profile_limits(c);
}

/* Told before hours of training, not behind them. */
static int check_writable(const RtCli *c, const char *path) {
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (access(path, W_OK) == 0 || access(folder, W_OK) == 0) return RT_EXIT_OK;
    fprintf(stderr, "%s: error: %s cannot be written: %s: %s\n", c->prog, path, folder,
            strerror(errno));
    return RT_EXIT_FAILED;
}

/* Checks before training that the files for its results can be written. */
static int check_outputs(const RtCli *c) {
    bool file = !c->default_checkpoint && strcmp(c->checkpoint, "none") != 0;
    if (file && check_writable(c, c->checkpoint) != RT_EXIT_OK) return RT_EXIT_FAILED;
    return c->out ? check_writable(c, c->out) : RT_EXIT_OK;
}

/* Saves a checkpoint, unless none is wanted. That one cannot be written is an error only where the
 * user named the file. */
static int save(RtCli *c) {
    if (!strcmp(c->checkpoint, "none")) return RT_EXIT_OK;
    c->saved = gnnc_trainer_save(c->t, c->checkpoint) == GNNC_OK;
    if (c->saved) return RT_EXIT_OK;
    int code = rt_cli_failed(c);
    return c->default_checkpoint ? RT_EXIT_OK : code;
}

/* A checkpoint of as many epochs as were asked for leaves nothing to do: said, not passed over. */
static void tell_done(const RtCli *c) {
    int64_t done = gnnc_trainer_epochs_done(c->t), all = gnnc_trainer_epochs_total(c->t);
    if (c->resume && done >= all)
        fprintf(stderr, "%s: %s has %lld epochs, %lld are wanted: nothing to train\n", c->prog,
                c->resume, (long long)done, (long long)all);
}

/* Says if training ends before the warm-up of the learning rate does. */
static void tell_warm_up(RtCli *c) {
    long long warm = c->is.has_recipe ? c->recipe.warmup_epochs : 0,
              all = gnnc_trainer_epochs_total(c->t);
    char text[128];
    if (warm <= all || c->log == RT_LOG_NONE) return;
    snprintf(text, sizeof text, "the warm-up of %lld epochs does not end in %lld", warm, all);
    rt_cli_message(c, text);
}

/* Those of resumed runs, too. */
static int64_t steps_in_all(const RtCli *c) {
    int64_t done = gnnc_trainer_steps_done(c->t), left = gnnc_trainer_steps_left(c->t);
    return gnnc_trainer_epochs_done(c->t) * (done + left) + done;
}

/* What ends or interrupts an epoch between two steps; behind the last one it is evaluated first. */
static int hear_step(void *cli, const gnnc_progress *now) {
    RtCli *c = cli;
    if (now->evaluated) rt_cli_step(c, now);
    if (!now->steps_left) return 0;
    c->by_signal = gnnc_trainer_agree(c->t, pending_signal());
    c->saves = c->save_steps && now->steps % c->save_steps == 0;
    c->paused = c->saves || c->dumps || (c->steps && now->steps >= c->steps);
    return c->by_signal || c->paused;
}

static bool is_done(const RtCli *c) {
    return gnnc_trainer_done(c->t) || (c->steps && steps_in_all(c) >= c->steps);
}

/* Behind a step, and behind the evaluation of its epoch. */
static int dump(RtCli *c, bool evaluated) {
    int code = rt_cli_dump(c, "train", steps_in_all(c));
    if (code == RT_EXIT_OK && evaluated)
        code = rt_cli_dump(c, "eval", gnnc_trainer_epochs_done(c->t));
    return code;
}

/* An epoch, looked at and saved on the way as often as wanted; E_STOPPED: what ends it has come. */
static gnnc_status run_epoch(RtCli *c, int *code) {
    for (;;) {
        c->paused = c->saves = false;
        gnnc_status st = gnnc_trainer_epoch(c->t);
        bool pause = st == GNNC_E_STOPPED && c->paused;
        if (st == GNNC_OK || pause) *code = dump(c, st == GNNC_OK);
        if (*code != RT_EXIT_OK || !pause || c->by_signal || is_done(c)) return st;
        if (c->saves && (*code = save(c)) != RT_EXIT_OK) return st;
    }
}

/* A loop that did not end after a signal is no failure: the signal ended it. */
static int epoch_failed(RtCli *c, gnnc_status st) {
    if (st == GNNC_E_STOPPED && (c->by_signal || c->paused)) return RT_EXIT_OK;
    if (st == GNNC_E_STOPPED) c->by_signal = pending_signal();
    return rt_cli_failed(c);
}

/* Trains epoch after epoch until all are done, one fails, or a signal asks for an end; saves
 * checkpoints between. */
static int run_epochs(RtCli *c) {
    if (rt_cli_dump_begin(c) != RT_EXIT_OK) return RT_EXIT_FAILED;
    gnnc_trainer_set_progress(c->t, hear_step, c);
    while (!is_done(c)) {
        double begin = rt_cli_now();
        int code = RT_EXIT_OK;
        gnnc_status st = run_epoch(c, &code);
        if (code != RT_EXIT_OK) return code;
        if (st != GNNC_OK) return epoch_failed(c, st);
        rt_cli_epoch(c, rt_cli_now() - begin);
        int64_t e = gnnc_trainer_epochs_done(c->t);
        bool saves = (c->save_every && e % c->save_every == 0) ||
                     (c->save_steps && steps_in_all(c) % c->save_steps == 0);
        if (saves && save(c) != RT_EXIT_OK) return RT_EXIT_FAILED;
        if ((c->by_signal = gnnc_trainer_agree(c->t, pending_signal()))) return RT_EXIT_OK;
    }
    return RT_EXIT_OK;
}

static int finish(RtCli *c, double begin) {
    int64_t kept = 0;
    int code = save(c);
    rt_cli_saved(c);
    if (gnnc_trainer_keep_best(c->t, &kept) != GNNC_OK) return rt_cli_failed(c);
    if (c->out && gnnc_trainer_save_weights(c->t, c->out) != GNNC_OK) return rt_cli_failed(c);
    rt_cli_result(c, kept, rt_cli_now() - begin);
    rt_ranks_sent(c);
    return rt_cli_profile_end(c) == RT_EXIT_OK ? code : RT_EXIT_FAILED;
}

/* Trains while signals that ask for an end are blocked: they are looked for between epochs. */
static int train_blocked(RtCli *c) {
    double begin = rt_cli_now();
    gnnc_trainer_set_int(c->t, "signals", 1);
    int code = rt_cli_start(c);
    if (code == RT_EXIT_OK) code = rt_ranks_started(c);
    if (code == RT_EXIT_OK) tell_done(c);
    if (code == RT_EXIT_OK) tell_warm_up(c);
    if (code == RT_EXIT_OK) code = run_epochs(c);
    if (code != RT_EXIT_OK) return c->by_signal ? 128 + c->by_signal : code;
    code = finish(c, begin);
    if (code != RT_EXIT_OK || !c->by_signal) return code;
    char place[96];
    rt_cli_place(c, place, sizeof place);
    if (!rt_ranks_number(c))
        fprintf(stderr, "%s: stopped by SIG%s %s %s%s\n", c->prog, sigabbrev_np(c->by_signal),
                gnnc_trainer_steps_done(c->t) ? "in" : "after", place,
                strcmp(c->checkpoint, "none") ? "; --resume goes on" : "");
    return 128 + c->by_signal;
}

int rt_cli_train_once(RtCli *c) {
    char name[256];
    if (!c->is.has_recipe) {
        fprintf(stderr, "%s: error: the model (%s) has no train block\n", c->prog, c->is.source);
        return RT_EXIT_FAILED;
    }
    if (!c->checkpoint && c->resume) c->checkpoint = c->resume;
    if (!c->checkpoint) {
        snprintf(name, sizeof name, "%s.ckpt", c->is.name);
        c->checkpoint = name;
        c->default_checkpoint = true;
    }
    if (check_outputs(c) != RT_EXIT_OK) return RT_EXIT_FAILED;
    c->on_terminal = c->log == RT_LOG_TEXT && isatty(STDOUT_FILENO) &&
                     !rt_ranks_several(c); /* mpirun's, which passes lines on */
    sigset_t signals = rt_cli_stop_signals(), before;
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    int code = train_blocked(c);
    while (pending_signal()) continue; /* repeated while saving: it was obeyed */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

int rt_cli_train(RtCli *c) {
    return c->seeds ? rt_cli_train_seeds(c) : rt_cli_train_once(c);
}

int rt_cli_eval(RtCli *c) {
    if (c->seeds) return rt_cli_eval_seeds(c);
    double begin = rt_cli_now();
    int code = rt_cli_start(c);
    if (code == RT_EXIT_OK) code = rt_cli_dump_begin(c);
    if (code != RT_EXIT_OK) return code;
    if (gnnc_trainer_evaluate(c->t) != GNNC_OK) return rt_cli_failed(c);
    if (rt_cli_dump(c, "eval", -1) != RT_EXIT_OK) return RT_EXIT_FAILED;
    rt_cli_result(c, 0, rt_cli_now() - begin);
    return rt_cli_profile_end(c);
}
