/* The command line of a compiled trainer: a thin layer over gnnc.h, and the only one
 * that prints. */
#ifndef RUNTIME_CLI_H
#define RUNTIME_CLI_H

#include <gnnc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "cli_mpi.h"

#if defined(__GNUC__)
#define RT_CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define RT_CLI_PRINTF(f, a)
#endif

typedef enum {
    RT_CMD_TRAIN,
    RT_CMD_EVAL,
    RT_CMD_PREDICT,
    RT_CMD_EMBED,
    RT_CMD_BENCH,
    RT_CMD_TUNE,
    RT_CMD_INFO,
    RT_CMD_EXPLAIN,
    RT_CMD_HELP,
    RT_CMD_VERSION
} RtCommand;

/* Of explain; behind those of predictions. */
enum { RT_FORMAT_TEXT = GNNC_WRITE_JSONL + 1, RT_FORMAT_JSON };

typedef enum { RT_BENCH_BOTH, RT_BENCH_TRAIN, RT_BENCH_PREDICT } RtBenchPhase;

typedef enum { RT_LOG_TEXT, RT_LOG_JSON, RT_LOG_NONE } RtLogMode;

typedef struct RtCli {
    const gnnc_program *program, *rows; /* rows: predicts some by themselves; NULL: none does */
    gnnc_program_info is;
    gnnc_recipe recipe; /* where it has one */
    const char *prog;   /* argv[0] without its directory */
    RtCommand command;
    const char *data, *checkpoint, *resume, *weights, *out, *layer;
    const char *ids, *nodes; /* files with the rows that predict writes */
    const char *id, *node;   /* the row that explain is about, .. */
    const char *of_class;    /* .. and which of its numbers; NULL: the highest */
    bool default_checkpoint; /* nobody asked for it: failing to write it is a warning */
    bool saved;              /* the last save succeeded */
    int log;                 /* an RtLogMode */
    int bench_phase;         /* an RtBenchPhase */
    int format;     /* a gnnc_format, or RT_FORMAT_*; while options are read -1: none was given */
    char left[256]; /* the checkpoint that training leaves where none is named */
    int64_t top;    /* the most probable classes of a row, parts of a kind; 0 = all */
    int64_t seeds;  /* train: how many times; predict: by how many weights; 0 = once */
    int argc;       /* the command line, for each of them */
    char **argv;
    bool json, profile;
    const char *trace;            /* --trace FILE */
    const char *html;             /* --html FILE: the page that is measured, too */
    gnnc_limits limits;           /* --profile: of this machine */
    bool warm;                    /* .. begins behind runs that found caches cold */
    int64_t save_every, n_epochs; /* n_epochs: -1 = not given */
    int64_t patience;             /* seconds; 0 = not given */
    int64_t n_processes;          /* that info tells of; 0 = not given */
    int64_t steps, save_steps; /* where training ends, and how often it is saved; 0 = not given */
    bool paused;               /* between two steps, to be looked at, to be saved or to end .. */
    bool saves;                /* .. to be saved */
    const char *dump;          /* --dump-values DIR: where values of steps are written; or NULL */
    bool dumps;                /* .. by the first of the processes, at which all pause */
    gnnc_trainer *t;
    gnnc_processes processes; /* as the trainer knows them: by way of cli_ranks.c */
    RtMpi *mpi;               /* processes that train together; NULL = the program knows none */
    bool met, all_failed;     /* they know whether the first one has started; it has not */
    bool has_told;            /* why it fails */
    int by_signal;            /* that ended training; 0 = none did */
    bool on_terminal;         /* a progress line is shown */
    double shown_at;          /* when it was last drawn */
    int64_t eval_ns;          /* of evaluations, up to the last epoch that was told */
} RtCli;

/* In seconds, from anywhere, never back. */
static inline double rt_cli_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { RT_EXIT_OK = 0, RT_EXIT_FAILED = 1, RT_EXIT_USAGE = 2 };

/* cli_options.c: fills c and sets the trainer's options.  RT_EXIT_OK, or the exit code after
 * a message. */
int rt_cli_parse(RtCli *c, int argc, char **argv);

/* cli_ranks.c: several processes.  Joins them, if the program can; the exit code. */
int rt_ranks_begin(RtCli *c, int *argc, char ***argv, RtMpi *mpi);
bool rt_ranks_several(const RtCli *c);
/* Once options are read: what only one of them does, the others leave; false: all of it. */
bool rt_ranks_join(RtCli *c);
/* Data were loaded, or c->t failed to: what fails in all of them, the first one tells. */
int rt_ranks_started(RtCli *c);
/* Before another process than the first says that it failed: gives the first one five seconds in
 * which it may fail alike, say so and end all. */
void rt_ranks_wait_for_first(const RtCli *c);
/* Whether this process prints its error: the first one where all failed, or before they met; each
 * that failed alone, once it has waited for the first. */
bool rt_ranks_tells(RtCli *c);
/* The number of this process where it is not the first; 0 = it is, or the only one. */
int rt_ranks_number(const RtCli *c);
/* Seconds that one was waited for, and did not come; 0 = none was. */
int64_t rt_ranks_waited(const RtCli *c);
/* What all of them have sent, told by the first. */
void rt_ranks_sent(RtCli *c);
/* Ends all processes where this one fails and others may not: before what waits for them. */
void rt_ranks_end_if_alone(const RtCli *c, int code);
int rt_ranks_end(const RtCli *c, int code); /* the exit code */

/* cli.c: another trainer in place of c->t, with the same options; the exit code */
int rt_cli_renew(RtCli *c);

/* cli_help.c, cli_info.c */
void rt_cli_help(RtCli *c, FILE *f);
void rt_cli_print_needs(const RtCli *c, FILE *f);
void rt_cli_print_recipe(const RtCli *c, FILE *f);
void rt_cli_print_layers(const RtCli *c, FILE *f);
void rt_cli_print_parameters(const RtCli *c, bool states, const char *title, FILE *f);
int rt_cli_info(RtCli *c);

/* cli_log.c */
int rt_cli_usage(const RtCli *c, const char *fmt, ...) RT_CLI_PRINTF(2, 3);
/* Prints what the trainer says went wrong; RT_EXIT_FAILED. */
int rt_cli_failed(RtCli *c);
void rt_cli_json_string(const char *s); /* to standard output, with its quotes */
double rt_cli_shown(double v);     /* v for "%f": NaN without a sign, which printf would print */
void rt_cli_json_number(double v); /* likewise; null where it is not finite */
void rt_cli_put_json_string(const char *s, FILE *f);
void rt_cli_put_json_number(double v, FILE *f);
/* What is reached without learning: lines, or a member of the JSON object under way. */
void rt_cli_baselines(RtCli *c);
void rt_cli_message(void *cli, const char *text);
void rt_cli_epoch(RtCli *c, double seconds);
void rt_cli_step(RtCli *c, const gnnc_progress *now); /* that was evaluated */
/* Where training stands: "epoch 13", or "epoch 14, step 3 of 10". */
void rt_cli_place(const RtCli *c, char *to, size_t n);
/* A line with the name of the checkpoint that was last written, if one was. */
void rt_cli_saved(RtCli *c);
/* The last line of train and eval; epoch 0 = of no training. */
void rt_cli_result(RtCli *c, int64_t epoch, double seconds);

/* cli_profile.c: exit codes; nothing happens where neither --profile nor --trace was given */
int rt_cli_profile_begin(RtCli *c);  /* before load */
int rt_cli_profile_limits(RtCli *c); /* after load */
int rt_cli_profile_end(RtCli *c);
/* "gemm z = contract x, w [2708 x 16 x 1433]  gcn.gnn:13": the rest of a line. */
void rt_cli_print_step(const gnnc_step_info *s);
/* ,"note":"..","site":"..","product":[1,2708,16,1433] */
void rt_cli_json_what(const gnnc_step_info *s, FILE *to);

/* cli_dump.c: with --dump-values, what the program was compiled to show of the phase that ran last,
 * "train", as DIR/train.N.z.npy, n < 0: DIR/predict.z.npy.  The exit code. */
int rt_cli_dump_begin(RtCli *c);
int rt_cli_dump(RtCli *c, const char *phase, int64_t n);

/* cli_train.c, cli_predict.c, cli_bench.c */
/* Those that end training between two steps. */
sigset_t rt_cli_stop_signals(void);
/* Weights, then data; the exit code. */
int rt_cli_start(RtCli *c);
int rt_cli_train(RtCli *c);
int rt_cli_train_once(RtCli *c);
int rt_cli_train_seeds(RtCli *c); /* cli_seeds.c */
int rt_cli_eval_seeds(RtCli *c);  /* likewise */
int rt_cli_eval(RtCli *c);
int rt_cli_write_values(RtCli *c); /* predict, embed */
int rt_cli_explain(RtCli *c);
int rt_cli_bench(RtCli *c);
int rt_cli_tune(RtCli *c);

#endif
