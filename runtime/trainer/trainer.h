/* What a gnnc_trainer is made of; its functions are spread over trainer*.c and
 * checkpoint.c by concern. */
#ifndef RUNTIME_TRAINER_H
#define RUNTIME_TRAINER_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/exec/exec.h"
#include "runtime/memory.h"
#include "runtime/options.h"
#include "schedule.h"

/* A scalar output: "loss", "accuracy.val", "log:norm". */
typedef struct RtScalar {
    const char *name;
    rt_output_role role; /* loss, metric or log; value: "lr" */
    const char *of;      /* its name among its kind: "accuracy", "norm"; may be NULL */
    int buf;             /* -1: not an output ("lr") */
    int phase;           /* that gives it, index; -1: none */
    int eval_buf;        /* of a logged one that "train" has: that of "eval"; -1 = none */
    int when_buf;        /* logged only where this holds; -1 = always */
    int split;           /* whose rows it measures, 1 to 3; 0 = none */
    double value;
    bool known; /* else value means nothing */
    /* A metric of links, made of batches (batch_metrics.h): the sums of two outputs over those of a
     * split. */
    int of_split, sum_buf, rows_buf; /* of_split 0: none such */
    double sum, rows;
} RtScalar;

/* Where training stands; all of it is in a checkpoint. */
typedef struct RtProgress {
    int64_t step, epoch; /* done */
    RtPlateau plateau;   /* of the schedule */
    double best;         /* the kept metric, of the best epoch */
    int64_t best_epoch;  /* counted from 1; 0 = none yet */
    int64_t best_step;   /* .. of its steps; 0 = behind all */
    double loss_sum;     /* of this epoch's batches so far, each times its rows */
    int64_t loss_rows;   /* .. and those rows */
} RtProgress;

/* Every epoch's scalars; rows grow by doubling when more epochs run than were asked for. */
typedef struct RtHistory {
    double *v;   /* [cap, n_scalars] */
    int64_t cap; /* epochs that there is room for */
} RtHistory;

enum { RT_N_SPLITS = 4 }; /* none, train, validation, test */

/* What training does beyond what predicting rows needs.  A table, so that the linker leaves it out
 * of a library that has no trainers. */
struct RtSource;
struct RtDataset;
typedef struct RtTraining {
    gnnc_status (*start_batches)(gnnc_trainer *t);
    void (*stop_batches)(gnnc_trainer *t);
    /* Why no device can draw the program's batches; NULL: one can. */
    const char *(*device_sampler_lacks)(const rt_program *p);
    gnnc_status (*resume)(gnnc_trainer *t, const struct RtSource *from);
    gnnc_status (*init_scalars)(gnnc_trainer *t);
    gnnc_status (*bind_at)(RtExec *x, struct RtDataset *view, double at);
    /* Before data are read, from this directory or, NULL, from none; once all else is planned. */
    void (*use_tuned)(gnnc_trainer *t, const char *directory);
    gnnc_status (*reserve_history)(gnnc_trainer *t);
    gnnc_status (*limit_judged)(gnnc_trainer *t); /* before anything is computed of splits */
    gnnc_status (*reserve_best)(gnnc_trainer *t);
    gnnc_status (*restart_profile)(gnnc_trainer *t);
    /* Of processes that share rows: do all have the same data and options? */
    gnnc_status (*agree)(gnnc_trainer *t, bool trains);
    /* .. and how do their devices send each other rows? */
    gnnc_status (*meet)(gnnc_trainer *t);
    /* Of processes that train together, before they share anything: the first one's *number. */
    gnnc_status (*follow_first)(gnnc_trainer *t, int64_t *number);
    /* Of the data directory just opened: where index arrays are kept. */
    gnnc_status (*open_index_file)(gnnc_trainer *t);
    /* Which rows of features other processes send, once the program's sizes are bound. */
    gnnc_status (*open_pulls)(gnnc_trainer *t);
    /* Runs a phase on the whole data, with all rows of what it reads. */
    gnnc_status (*run_whole)(gnnc_trainer *t, const rt_phase *phase);
} RtTraining;

struct gnnc_trainer {
    const RtTraining *training; /* NULL: it does not train, but serves sessions */
    gnnc_status (*put_at)(RtExec *x, struct RtDataset *view, double at); /* .. asked about then */
    const rt_program *program, *first_program; /* the variant that runs; as it was given */
    int variant;                               /* its number */
    int preferred;                             /* by what was tuned or is resumed; -1 = none */
    bool stays_low; /* it is not one in f32 of a program in 16 bits, unless that is preferred */
    double estimate_ms[RT_MAX_VARIANTS]; /* of each variant on these data */
    RtExec x;
    RtRuntime rt;
    gnnc_graph *graph;           /* the data; NULL before load */
    struct RtSnapshot *snapshot; /* .. as they were then */
    bool graph_alone;            /* .. which nobody else reads: load made it of a directory */
    struct RtIndexFile *file;    /* where its index arrays are kept; NULL = nowhere */
    RtAlloc outer;               /* where memory comes from; rt.pool counts and passes on */
    pthread_mutex_t counting;    /* workers allocate, too */
    struct RtLinkBatches *links; /* link_batches.h; NULL = the model scores no links */
    struct RtRowBatches *rows;   /* row_batches.h; NULL = rows do not depend on their time */
    struct RtBatches *batches;   /* train_batches.h; NULL = every step sees the whole graph */
    gnnc_processes processes;    /* that train together; n = 0: nobody has told of any */
    bool agreed;                 /* .. and share rows: they train the same */
    bool in_epoch;               /* a call that all of them make is under way */
    struct RtShares *shares;     /* train_shares.h; NULL = this process makes all steps alone */
    struct RtPulls *pulls;       /* pull.h; NULL = this process reads all rows itself */
    struct RtWeightsFile *given; /* weights that came before the data; NULL = none */
    RtMemory memory;
    RtOptions options, standard; /* .. before any was set */
    double *option_value;        /* [program->n_options] of the model */
    bool *option_set;            /* .. by the host, */
    bool *option_known;          /* .. or by weights that came before the data */
    RtSchedule schedule;
    RtProgress progress;
    RtScalar *scalars; /* [n_scalars] what is measured */
    int n_scalars;
    int keep;   /* the scalar that decides which epoch is kept; -1 = the last epoch is */
    int target; /* the column that is learned; -1 = none */
    int64_t split_rows[RT_N_SPLITS]; /* that have a label; -1 = unknown */
    int64_t unknown_row;             /* one of a split whose target is missing; -1 = none */
    RtHistory history;
    gnnc_progress_fn *tell; /* NULL = nobody is told of steps */
    void *tell_user;        /* of tell */
    int64_t began_ns;       /* the call that trains, where somebody is */
    void *best;             /* parameters and states of the best epoch, in table order */
    size_t best_bytes;
    double *best_values;            /* [n_scalars] then; NaN = unknown */
    bool loaded, planned, finished; /* finished: the kept parameters are in place */
    bool ahead;                     /* steps were done since the last epoch ended */
    bool stepped;                   /* .. all of the epoch's, .. */
    bool trained;     /* .. and what they leave was read; its evaluation is not done */
    bool judged;      /* scalars of splits are the present parameters' */
    bool step_judged; /* .. by an epoch's own evaluation, which all processes make */
    int last_phase;   /* index, -1 = none has run */
    int *shown;       /* [n_shown] variables that have a name outside: no slots */
    int n_shown;
    atomic_int n_holders; /* the host, and tensors that it has of the trainer's memory */
    atomic_int stop;      /* the host wants training to end */
};

/* gnnc_trainer_create_with, of a trainer that trains or, without `training`, serves. */
gnnc_status rt_trainer_new(gnnc_trainer **out, const gnnc_program *model, const RtAlloc *from,
                           const RtTraining *training);

/* Every API call starts with this: the last call's message goes. */
void rt_trainer_begin(gnnc_trainer *t);
/* For a public function: a NULL trainer or argument is GNNC_E_ARG, with the argument's name. */
gnnc_status rt_null_argument(gnnc_trainer *t, const char *name);
#define RT_NOT_NULL(t, argument)                                                                   \
    if (!(t) || !(argument)) return rt_null_argument((t), #argument)
gnnc_status rt_trainer_need_data(gnnc_trainer *t);
/* gnnc_trainer_load_graph, of a snapshot that the caller entered: t, or a failure, leaves it. */
gnnc_status rt_trainer_load_snapshot(gnnc_trainer *t, gnnc_graph *graph, struct RtSnapshot *s);
gnnc_counters rt_trainer_counters(gnnc_trainer *t); /* now; workers allocate, too */
/* May n_bytes be allocated, for `what`, beside what there is now?  E_LIMIT: no, with the advice. */
gnnc_status rt_trainer_may_take(gnnc_trainer *t, size_t n_bytes, const char *what,
                                const char *advice);

/* Other threads, another limit for steps that run alone; results do not change. */
gnnc_status rt_trainer_share(gnnc_trainer *t, int64_t threads, int64_t serial_ns);
/* Which steps run alone, by the sizes known now. */
gnnc_status rt_trainer_set_serial_steps(gnnc_trainer *t);
enum { RT_SERIAL_NS = 10000 }; /* a step of less is faster alone, even beside threads that wait */

/* What every run of a phase reads, before it: nothing of an earlier one is there then. */
void rt_trainer_inputs(gnnc_trainer *t);

/* The buffer of what gnnc_trainer_predict gives; -1: the model predicts nothing. */
int rt_trainer_prediction(const gnnc_trainer *t);

/* The buffer of a hidden layer, a shown variable of f32, by name. */
gnnc_status rt_trainer_layer(gnnc_trainer *t, const char *layer, int *buf);
gnnc_status rt_trainer_parameter(gnnc_trainer *t, const char *name, int *var);

size_t rt_var_bytes(gnnc_trainer *t, int var);
/* The best epoch's copy of a shown variable; the present value where there is none. */
void *rt_best_value(gnnc_trainer *t, int shown);
void rt_best_store(gnnc_trainer *t);
void rt_best_restore(gnnc_trainer *t);

/* scalars */
gnnc_status rt_scalars_init(gnnc_trainer *t);
RtScalar *rt_scalar_find(gnnc_trainer *t, const char *name);
RtScalar *rt_scalar_loss(gnnc_trainer *t, rt_split split); /* none: of the last step */
void rt_scalar_set(gnnc_trainer *t, const char *name, double v);
gnnc_status rt_scalars_read(gnnc_trainer *t, int phase);
/* What a step logs is of that step; without one, evaluation has its own value of it. */
void rt_scalars_read_logs(gnnc_trainer *t);
enum { RT_FIRST_EPOCHS = 1 << 16 }; /* of history come without an allocation between epochs */
#define RT_MAX_EPOCHS (INT64_MAX / 2)
/* Room for n_done epochs, and for those up to n_wanted that RT_FIRST_EPOCHS allows. */
gnnc_status rt_history_reserve(gnnc_trainer *t, int64_t n_done, int64_t n_wanted);
void rt_history_note(gnnc_trainer *t, int64_t epoch); /* its scalars, as they are now */

/* With a loss scale (f16): how many steps were skipped because a gradient overflowed, since the
 * first one, and the scale now; false: there is none. */
bool rt_trainer_skipped(gnnc_trainer *t, double *steps, double *scale);

#endif
