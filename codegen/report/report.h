/* --report: what was made, and why it is not better.  Everything printed is computed from
 * the final IR and the plan; what passes had to say is added as their remarks.  One file
 * per report; each prints text for people and JSON for programs from the same facts, and
 * numbers beside the expressions where the sizes are known (--specialize). */
#ifndef CODEGEN_REPORT_H
#define CODEGEN_REPORT_H

#include "codegen/cost.h"
#include "codegen/target.h"
#include "runtime/cuda/group_cost.h"

/* The reports, as bits. */
enum {
    REPORT_SHAPES = 1 << 0,
    REPORT_BREAKS = 1 << 1,
    REPORT_FUSION = 1 << 2,
    REPORT_SYNCS = 1 << 3,
    REPORT_MEMORY = 1 << 4,
    REPORT_PRECISION = 1 << 5,
    REPORT_VERDICT = 1 << 6,
    REPORT_SOURCE = 1 << 7,
    REPORT_MISSED = 1 << 8,
    REPORT_KERNELS = 1 << 9,
    REPORT_DEGREES = 1 << 10,
    REPORT_COMMUNICATION = 1 << 11,
    REPORT_TIMES = 1 << 12,
    REPORT_ALL = (1 << 13) - 1,
    REPORT_OF_PASSES = REPORT_FUSION | REPORT_MISSED | REPORT_VERDICT /* need their records */
};
/* "fusion" or "shapes,memory" or "all"; 0: an unknown name. */
unsigned report_kinds(const char *names);
/* Whether the reports ask the device's assembler, which takes its time: where `times` was named. */
bool report_asks_assembler(unsigned kinds);
const char *report_word(int i); /* "all", then the others; behind the last NULL */

/* What the device's assembler says of a function that it was given: registers, spill and stack
 * bytes are per thread, shared memory per block. */
typedef struct {
    const char *name;
    int registers, shared_bytes, spill_bytes, stack_bytes;
} ReportBuilt;
typedef struct ReportBuilts {
    ReportBuilt *v;
    int n, cap;
} ReportBuilts;

/* How many edges rows have, of a relation of the data. */
enum { REPORT_DEGREE_BINS = 24, REPORT_HOPS = 8 };
typedef struct {
    const char *name, *to; /* the relation; the node type of the rows that edges end at */
    int64_t rows, edges, max_degree, none; /* none: rows without edges */
    int64_t hub_edges;                     /* of the fullest hundredth of the rows, one at least */
    int64_t bin[REPORT_DEGREE_BINS];       /* rows with 0, 1, 2 to 3, 4 to 7, .. edges */
    int n_hops;                            /* of the recipe's draws .. */
    int64_t fanout[REPORT_HOPS];           /* .. at most so many each; -1 = all .. */
    int64_t sampled[REPORT_HOPS];          /* .. and how many there are of these, over all rows */
} ReportDegrees;

/* What is to be reported, and what is known beyond the plan. */
typedef struct ReportOptions {
    unsigned kinds;               /* REPORT_ bits: what is printed */
    bool json, in_html;           /* JSON instead of text; within a script of an HTML page */
    const int64_t *sizes;         /* by Sym.id; -1 = unknown.  NULL: none is known */
    const char *data;             /* whose sizes they are */
    const Target *roof;           /* whose machine bounds times from below; NULL: no times */
    const char *remarks;          /* of the passes, one per line; NULL = none */
    const PassRecord *record;     /* what they refused; NULL: it was not asked for */
    const Target *on;             /* for which kernels are emitted .. */
    const TargetOptions *to;      /* .. and how */
    const ReportBuilts *built;    /* what that target's assembler says; NULL: it was not asked .. */
    const char *not_built;        /* .. and why; NULL: there is none to ask */
    double compile_ms;            /* 0: it is not told */
    const ReportDegrees *degrees; /* of n_degrees relations; NULL: no data are known */
    int n_degrees;
    int effects_before;        /* host effects in the model before any pass */
    int variant, n_variants;   /* which of the program's is told of */
    const char *const *choice; /* [n_variants] what each does */
} ReportOptions;

/* Prints the reports of plan p that o selects to b. */
void report_print(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o);
/* Host effects in all functions before any pass: print, assert, C functions with one.  Those of f
 * alone are noted in the module as places where a tracing compiler stops. */
int report_count_effects(Module *m);

/* Of the JSON form: grows when something goes, or means something else; docs/report.schema.json. */
enum { REPORT_VERSION = 1 };

/* ---- a small JSON writer (report_json.c) ----------------------------------------------- */
enum { JSON_DEPTH = 16 };
typedef struct {
    StrBuf *b;
    bool in_html;           /* no '<' stands in a text, and all is one line */
    int depth;              /* objects and arrays that are open */
    int n[JSON_DEPTH];      /* of each of these: members written so far */
    char close[JSON_DEPTH]; /* .. and the bracket that ends it */
} Json;
/* Each writes a member of the innermost open object or array. key: its name; NULL in arrays and at
 * the top. */
void json_object(Json *j, const char *key);
void json_array(Json *j, const char *key);
void json_end(Json *j);                                  /* of the innermost object or array */
void json_text(Json *j, const char *key, const char *s); /* NULL: null */
void json_int(Json *j, const char *key, int64_t v);
void json_bool(Json *j, const char *key, bool v);

/* ---- for the report files ------------------------------------------------------------------ */
/* A report while it is printed. */
typedef struct {
    Ctx *c;
    Arena *a;
    const Plan *p;
    const ReportOptions *o;
    StrBuf *b; /* text */
    Json *j;   /* NULL: text is wanted */
    /* By Sym.id: sizes that are known, else nominal ones, which tell large from small. */
    const int64_t *nominal;
    bool known; /* all of them are known */
} Report;

/* (report_text.c) */
void report_find_sizes(Report *r); /* known ones, else nominal ones, into r */
/* Value of e with the known sizes; false: some size is not known. */
bool report_value(const Report *r, const Expr *e, int64_t *v);
/* "64*E_cites", with " = 660.5 kB" where known.  unit: "B", "FLOP" or "" */
void report_amount(Report *r, const Expr *e, const char *unit);
/* By known and nominal sizes. */
double report_nominal(const Report *r, const Expr *e);
/* {"expr": "..", "value": n}, or instead of the value a nominal one. */
void report_json_expr(Report *r, const char *key, const Expr *e);
const char *report_at(const Report *r,
                      Span at); /* "models/gcn.gnn:14"; for people "gcn.gnn:14"; "" */
const char *report_type(const Report *r, const Type *t);
const char *report_op_name(const Op *op); /* the model's name for it, else the mnemonic */
bool report_is_device(const Report *r, const PStep *s); /* no host effect */
/* The machine that bounds times from below; NULL: there is none. */
const TargetDevice *report_roof(const Report *r);
/* What the device's assembler says of the function with this name; NULL: nothing. */
const ReportBuilt *report_built(const Report *r, const char *name);
/* How many blocks of 256 threads a multiprocessor runs at a time. */
int report_blocks_at_once(int registers, int shared_bytes);
/* Does a library make the step's sparse product for certain? */
bool report_is_library_spmm(const Report *r, const PStep *s);
/* The times of the step's group of products, on this machine; false: a size is not known. */
bool report_group_cost(const Report *r, const PGroup *g, const TargetDevice *d, RtGroupCost *c);
StepCost report_step_cost(const Report *r, const PStep *s); /* where the plan runs */

void report_summary(Report *r); /* text alone */
void report_shapes(Report *r);
void report_breaks(Report *r);
void report_fusion(Report *r);
void report_syncs(Report *r);
void report_memory(Report *r);
void report_precision(Report *r);
void report_verdict(Report *r);
void report_source(Report *r);
void report_missed(Report *r);
int report_count_missed(Report *r); /* stored values that need not be */
void report_kernels(Report *r);
void report_degrees(Report *r);
void report_communication(Report *r);
void report_times(Report *r);

/* ---- of one phase ---------------------------------------------------------------------- */
/* The phase that all is about: training, else the first one that the program runs for its own
 * sake; -1: there is none. */
int report_main_phase(const Report *r);
/* The totals of a phase: launches of kernels, calls of libraries; bytes moved, floating-point
 * operations, bytes that fusion saves. */
typedef struct {
    int kernels, calls;
    const Expr *moved, *flops, *saved;
} ReportSum;
ReportSum report_phase_sum(const Report *r, const PPhase *ph);
/* The least time of all its steps on the machine of the report; false: it is not known. */
bool report_phase_roofline(const Report *r, const PPhase *ph, double *us);
/* Does a library's product do the step, where the program runs on a device? */
bool report_is_covered(const Report *r, const PStep *s);
int report_reads_per_run(Report *r, int phase); /* by the host (report_syncs.c) */
/* The step at which most bytes of temporaries are live, by nominal sizes, and these; -1: none. */
int report_peak(const Report *r, int phase, const Expr **live);
/* Whether buffer b is needed at a step of the phase's arena, and its size in bytes. */
bool report_is_live(const Report *r, int phase, const PBuf *b, int step);
const Expr *report_buffer_bytes(const Report *r, const PBuf *b);

#endif
