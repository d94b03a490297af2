/* A pass is a value: it can be named, listed, timed, verified, left out and run alone
 * on text (gnnc opt file.gir --passes=a,b).  passes.def lists each over the graph IR once,
 * codegen/plan_passes/plan_passes.def each over the step plan, codegen/loop_passes/passes.def each
 * over the loops of a kernel; pipelines are lists of names.  One driver runs all: it checks
 * `needs`, verifies after each pass when asked to, and blames the pass that broke what it was
 * given. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "ir/ir.h"

/* What sizes decide that only the data tell: a program has a variant for each combination of
 * answers, and takes one when the data are loaded.  Questions are about the order of work, and one
 * is whether values stay f32. */
enum { PASS_MAX_ORDERS = 2, PASS_MAX_CHOICES = PASS_MAX_ORDERS + 1 };

typedef struct {
    const char *question[PASS_MAX_CHOICES];
    const char *answer[PASS_MAX_CHOICES][2];
    int n;
    bool closed;     /* the first variant asked; what only others ask takes its first answer */
    unsigned picked; /* bit i: the second answer of question i */
    unsigned in_f32; /* the bit of whether values stay f32; 0: nobody asked */
} PassChoices;

/* What a value was on some data, in a phase of the program (ranges.c). */
typedef struct {
    const char *func, *key; /* the phase, and which of its values; "saved n.x": of @load's */
    bool gradient;          /* of a loss that is scaled, at the scale that suits the largest */
    bool known;             /* it was measured */
    double max_abs;         /* its largest |x| */
    double n_nonzero,
        n_subnormal; /* elements that are not zero; of these below the smallest normal */
    double scale;    /* of the loss */
} PassRange;

/* For --precision=auto: first what is to be measured, then what was. */
typedef struct {
    VEC(PassRange) values;
    bool measured;
} PassRanges;

/* Whether the loss is scaled: `off` is told to the passes, the rest they tell (loss_scale.c). */
typedef struct {
    bool off;
    bool scaled; /* the loss was scaled */
    bool needed; /* it was scaled, and a gradient lies in memory in f16 */
} PassScale;

struct Pass;
/* A pass that ran, and what it changed. */
typedef struct {
    const struct Pass *pass;
    const char *of; /* of a pass over loops the kernel's name; else NULL */
    int nth;        /* which run of it: of passes over loops for each kernel */
    double seconds;
    const char *diff; /* as dump_diff() writes it; "" = it changed nothing */
} PassEvent;

/* What a pass could not do, and why. */
typedef struct {
    const char *pass, *of; /* name of the pass; of a pass over loops the kernel's, else NULL */
    Span at;
    const char *text;
    const Op *op;     /* that lies in memory because of it; NULL: it is about something else */
    const char *cure; /* of op: what would change it */
    bool costs;       /* something, as far as the pass knows */
} PassRefusal;

/* What a compile did, for reports that show it. */
typedef struct {
    VEC(PassEvent) events;
    VEC(PassRefusal) refusals;
} PassRecord;

/* Remarks of these alone, as all remarks are printed (passes/remark.c). */
void pass_refusals_put(Ctx *c, StrBuf *to, const PassRecord *from);

typedef struct PassCtx {
    Ctx *ctx;
    Arena *a;
    PassChoices *choices; /* NULL: first answers everywhere */
    StrBuf *remarks;      /* what was done and why not, one line each; NULL = nobody asks */
    PassRecord *record;   /* NULL: nobody asks */
    const char *of;       /* of a pass over loops the kernel's name; else NULL */
    DType precision;      /* of large values; DT_VOID: as written */
    PassRanges
        *ranges;      /* measured ranges: only values that `precision` holds get it; NULL: all do */
    PassScale *scale; /* NULL: nobody asks */
    const char *dump_values; /* "z,h": values that outputs show; NULL: none */
    int n_rewrites;          /* number of changes that passes asked for so far */
    int rewrite_from;        /* changes from this number on are refused; 0: none is */
} PassCtx;

/* May a pass make its next change?  One that asks before each of them, in an order that is always
 * the same, can be searched for the one that is wrong (gnnc --bisect). */
bool pass_may_rewrite(PassCtx *p);

struct Plan;
struct Loops;
typedef struct Pass {
    const char *name;                   /* "fuse" */
    const char *summary;                /* one line, for --help and docs/passes.md */
    unsigned needs, gives, breaks;      /* IR_* facts, or PLAN_* */
    bool (*run)(PassCtx *p, Module *m); /* false = diagnostics were added */
    bool required;                      /* without it there is no program, or another one */
    unsigned bars;                      /* facts that must not hold yet */
    /* Of a pass over the step plan, whose `run` is NULL. */
    bool (*run_plan)(PassCtx *p, struct Plan *plan);
    bool moves_steps; /* it moves steps or looks at neighbouring ones: steps of dumps go last before
                         it */
    /* Of a pass over the loops of a kernel. */
    bool (*run_loops)(PassCtx *p, struct Loops *l);
} Pass;

#define PASS(id) extern const Pass pass_##id;
#include "passes.def"
#undef PASS

const Pass *pass_find(const char *name); /* NULL when there is none */
int pass_count(void);
const Pass *pass_at(int i);

/* How far a compile has come, over all levels. */
typedef struct {
    int n;                   /* passes that ran */
    int n_spare;             /* passes that came and that a program can do without */
    const struct Pass *last; /* the last pass that ran */
    int nth;                 /* which run of that pass it was, from 1 */
    bool stopped;            /* by stop_after */
    VEC(const Pass *) met;   /* those that ran or were left out, in their order */
} PassProgress;

/* What a search for a wrong pass wants to know. */
typedef struct {
    int n_spare;                /* as in PassProgress, at the end */
    const Pass *last;           /* that ran of these; NULL: none did */
    int nth, n_rewrites;        /* which run of it that was, and how many changes it asked for */
    const char *before, *after; /* the text of what it ran on */
} PassTold;

/* How long passes took that run once for each kernel, over all of them. */
typedef struct {
    const Pass *pass;
    double seconds;
    int n; /* kernels */
} PassTime;
typedef VEC(PassTime) PassTimes;

typedef struct {
    bool verify_each;
    bool time_passes;
    PassTimes *times; /* where times are added up, instead of being told; or NULL */
    /* "dce" is each run of that pass, "dce#2" the second one in a list of them. */
    const char *print_before, *print_after; /* such a name, "all", or NULL */
    bool print_changed, print_diff;         /* with print_diff what changed alone */
    const char *print_filter;               /* as dump_filter() takes it; or NULL */
    const char *disable;                    /* passes to leave out, "cse,dce#2"; or NULL */
    const char *stop_after;                 /* a pass, or the number of passes that run; or NULL */
    PassProgress *progress;                 /* of a compile; NULL: these passes are all of it */
    /* Passes that a program can do without are left out from this one of them on, counted from 1
     * over all levels; of the last one that runs so are changes. 0: none. */
    int leave_from, rewrite_from;
    PassTold *told; /* NULL: nobody asks */
    FILE *dump;     /* where dumps and times go */
    StrBuf *remarks;
    PassRecord *record; /* NULL: nobody asks */
    bool record_diffs;  /* `record` also gets what each pass changed */
    const char *of;     /* of passes over loops the kernel's name */
    PassChoices *choices;
    DType precision;
    PassRanges *ranges;
    PassScale *scale;
    const char *dump_values;
} PassOptions;

/* Which answer this variant takes, 0 or 1; questions are told apart by their text. */
int pass_choose(PassCtx *p, const char *question, const char *first, const char *second);
/* Whether values stay f32 in this variant.  The second asks nothing: in the first variant it says
 * no. */
bool pass_chooses_f32(PassCtx *p, const char *first, const char *second);
bool pass_is_in_f32(const PassCtx *p);

/* What the passes of one level run on. */
typedef struct {
    void *what;    /* a Module, a Plan, or Loops */
    unsigned *has; /* its facts */
    void (*print)(StrBuf *b, const void *what);
    bool (*verify)(Ctx *c, void *what, const char *after);
    bool (*run)(PassCtx *p, const Pass *pass, void *what);
    const char *(*fact)(unsigned missing); /* in words */
    const Pass *(*find)(const char *name);
    const char **ran; /* NULL, or: behind the last name of the list that ran or was left out */
} PassSubject;
/* Comma-separated names of the level's passes, on what it has.  False after diagnostics (an
 * unknown name, an unmet need, a failure); o may be NULL. */
bool pass_run_list(Ctx *c, const PassSubject *s, const char *names, const PassOptions *opt);
/* Is the nth run (from 1; 0: any of them) of the pass in the list "a,b#2,c"? */
bool pass_is_listed(const char *names, const char *name, int nth);
/* The length of a pass's name in "dce#2,cse", and which run of it is meant: 0, all of them; -1, the
 * text is no number from 1 on. */
size_t pass_name_len(const char *text, int *nth);

/* A line for each of them. */
void pass_times_print(FILE *to, const PassTimes *t);

/* Comma-separated names.  False after diagnostics (unknown name, unmet need, failure). */
bool pass_run_all(Ctx *c, Module *m, const char *names, const PassOptions *opt);

/* The standard pipelines: "-O0", "-O2".  keep_grads leaves `output "grad.*"` instead
 * of parameter updates (used by gradient tests). */
const char *pass_pipeline_named(int opt_level, bool keep_grads);
/* Of a program that predicts rows by themselves and does not train, and may explain them. */
const char *pass_pipeline_infer(int opt_level, bool explain);

#endif
