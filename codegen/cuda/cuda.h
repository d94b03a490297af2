/* Inside the cuda target: loop IR to CUDA C.
 *
 * Each kernel becomes one __global__ function and one host function that launches it, in
 * one file that is meant to be read: names are those of the loop IR, which stands above
 * each kernel.  What the text relies on is in runtime/cuda/kernel.h. */
#ifndef CODEGEN_CUDA_H
#define CODEGEN_CUDA_H

#include "codegen/loops/loops.h"

/* The file being written. */
typedef struct {
    Ctx *c;
    Arena *a;
    const Plan *plan;
    StrBuf b;
} Cu;

enum { CU_COLLAPSE_MAX = 4, CU_TARGETS_MAX = 8 };

typedef enum {
    CU_THREAD, /* a thread takes an iteration of the parallel loop */
    CU_TEAM,   /* some threads of a warp do */
    CU_BLOCK,  /* a block does: long rows, and kernels without a parallel loop */
} CuKind;

/* Statements of one block whose vector loops have one range (find_run.c). */
typedef struct {
    const LStmt *first, *end; /* end: behind the last one, or NULL */
    const LStmt *range;       /* one of those loops */
    bool flat;                /* one loop alone: its iterations go to all threads of the team */
    bool at_top;              /* in the row, and in no loop of it */
    bool settles;             /* what it wrote is read by other threads of the team afterwards */
    bool together; /* all threads go through it once: they need each other in the midst of it */
    bool dots;     /* lanes take columns by turns for a number of the entry: all must be there */
} CuRun;

/* How a kernel's iterations meet threads. */
typedef struct {
    CuKind kind;
    const LStmt *parallel; /* NULL: a serial kernel */
    /* Loops directly inside the parallel one that are made part of its index, outermost
     * first, and the body of the innermost. */
    const LStmt *inner[CU_COLLAPSE_MAX];
    int n_inner;
    const LStmt *body;
    /* teams */
    VEC(CuRun) runs;
    bool segments; /* loops over entries that only sum count as vector loops */
    int *cell;     /* [bufs] from 1: the run in which a row of it stays in registers; 0 = none */
    int *over;     /* [bufs] from 1: behind this run all threads may read it; 0 = behind none */
    bool *waits;   /* [bufs] all threads have read it before the first one writes */
    bool one_way;  /* entries must not be shared by several threads */
    int lanes;     /* threads side by side; 0 = known when the kernel is launched */
    int columns;   /* that a lane may have of a run which lanes go through together */
    int pack;      /* neighbouring columns that a lane has, a power of two; 0 = it cannot be */
    const LStmt *split; /* a loop whose entries go to the ways of a team by turns, or NULL */
} CuSched;

/* Loops that an index of elements runs over, outermost first; each but the last has nothing behind
 * the next. */
typedef struct {
    const LStmt *loop[CU_COLLAPSE_MAX + 1];
    int n;
} CuNest;

/* A name that stands for a buffer's element while a part of the text is written. */
typedef struct {
    const LBuf *buf;
    const LStmt *acc; /* this statement's alone; NULL = all */
    const char *name;
    int place;   /* an array without the dimension of the column; -1 = a scalar */
    bool memory; /* of the type that memory has, not of a register's */
} CuAlias;

/* The kernel being written. */
typedef struct {
    Cu *cu;
    Arena *a;
    const LKernel *k; /* as it is scheduled: passes may have made it of the plan's */
    const bool *has;  /* [bufs] its arguments; NULL = all */
    bool skips;       /* it tests a condition first, and then may do nothing */
    bool skips_not;   /* .. unless it holds */
    bool many;        /* several blocks may have a row (parts.c) */
    bool parts;       /* what they do is being written */
    bool sized;       /* it may read its sizes from the device (codegen/plan_buckets.c) */
    bool decided;     /* the kernel says who takes its loops */
    CuSched sched;
    const char **reg; /* [n_regs] names */
    const char **buf; /* [bufs] */
    const char **local;
    const char **sym; /* [syms] names of sizes, NULL = not used here */
    bool *used;       /* [n_regs] somebody needs the value */
    bool *local_used; /* [locals] */
    int depth;        /* of indentation */
    /* where the text is */
    VEC(CuAlias) alias;
    const CuRun *run;   /* NULL = outside */
    const char *column; /* the index of vector loops in it */
    const char *first;  /* where each lane has several columns: its first */
    bool serial;    /* inside an entry that is as good as a column: loops are the thread's own */
    const char *on; /* some lanes have no column: this says which have; NULL = all have one */
    int n_names;    /* made so far */
} CuFn;

/* text.c: names and lines */
void cu_line(CuFn *f, const char *fmt, ...) PRINTF_LIKE(2, 3); /* one indented line */
void cu_open(CuFn *f, const char *fmt, ...) PRINTF_LIKE(2, 3); /* and what follows is deeper */
void cu_close(CuFn *f);                                        /* "}" */
void cu_names(CuFn *f);
const char *cu_expr(CuFn *f, const Expr *e);
const char *cu_host_expr(CuFn *f, const Expr *e); /* over n[..] */
const char *cu_type(DType dt);                    /* of a register */
const char *cu_mem_type(DType dt);                /* in memory */
const char *cu_real(Arena *a, DType dt, double v);
const char *cu_identity(Arena *a, RedKind r, DType dt);

/* schedule.c */
/* What `schedule` decides for a kernel. */
LKernel *cu_arrange(Loops *l, LKernel *k);
/* As the kernel says.  False after diagnostics: that cannot be. */
bool cu_schedule(CuFn *f);

bool cu_takes_all(const CuSched *c, const CuRun *r);

/* team.c */
bool cu_team(CuFn *f, const LStmt *body); /* false: a team cannot be seen to be safe */

/* find_run.c */
typedef struct {
    bool ok;
    LFn fn; /* L_FN_OP: itself; IADD, ISUB */
    const LReg *by;
} CuDistance; /* how an index follows from the column: itself, or at a fixed distance */
CuDistance cu_distance(const LStmt *loop, const LReg *r);
bool cu_find_run(const CuFn *f, const LStmt *s, CuRun *out); /* the longest that begins at s */
bool cu_is_columns(const CuFn *f, const LStmt *s);           /* a vector loop, or as good as one */
bool cu_same_range(const LStmt *x, const LStmt *y);
bool cu_follows_column(const LStmt *s, const LStmt *loop); /* an index of s hangs on the loop's */
bool cu_run_has(const CuRun *r, const LStmt *s);
bool cu_is_column_array(const CuRun *r, const LBuf *b); /* a local: each lane has a column of it */
bool cu_is_inner(const CuRun *r, const LBuf *b); /* a local declared inside a loop of the run */
/* A loop over columns in an entry's that only adds them up to numbers of the entry; and lanes take
 * them by turns, as they do not have them all. */
bool cu_is_dot(const CuRun *r, const LStmt *loop);
bool cu_takes_turns(const CuRun *r, const LStmt *loop);

/* entries.c */
/* Registers that loop s of a run adds to, of columns or of the row, where its entries may go to
 * several threads; how many, 0 = they may not. */
int cu_split_targets(const CuFn *f, const LStmt *s, const LBuf **target);
/* Of each relation whose entries a row has by turns, such a loop; how many, CU_TARGETS_MAX at most.
 */
int cu_row_entries(const CuFn *f, const LStmt **loop);
const LStmt *cu_find_split(const CuFn *f); /* the first such loop; NULL = there is none */

/* scalar.c: the right-hand side of a register */
const char *cu_let(CuFn *f, const LStmt *s);
const char *cu_combine(CuFn *f, RedKind r, DType dt, const char *acc, const char *x);
const char *cu_rounded(Arena *a, DType dt, const char *x);

/* memory.c */
const char *cu_element(CuFn *f, const LStmt *s); /* buf[..], or the name that stands for it */
const char *cu_load(CuFn *f, const LStmt *s);
void cu_store(CuFn *f, const LStmt *s);
void cu_acc(CuFn *f, const LStmt *s);
const char *cu_writers(CuFn *f); /* "if (..) ", or nothing */
void cu_put(CuFn *f, const LBuf *b, const char *at, const char *v);
void cu_local(CuFn *f, const LBuf *b);
int64_t cu_count_without(const LBuf *b, int place); /* elements, one dimension left out */

/* pack.c: the columns of a lane that has several.  How many, a power of two; 0 = lanes cannot have
 * all columns of a run that they go through together. */
int cu_pack(CuFn *f);
bool cu_can_pack(CuFn *f, int n); /* they can be so many */
int cu_pack_of(const CuFn *f, const CuRun *r);
void cu_each(CuFn *f); /* opens a loop over the lane's columns, if it has several */
void cu_each_end(CuFn *f);
const char *cu_of_each(CuFn *f, const char *name);   /* a register of each: name, or name[gn_k] */
const char *cu_registers(CuFn *f, const char *name); /* their declarator */
void cu_packed_body(CuFn *f, const LStmt *loop);

/* elements.c: neighbouring elements of a thread that has several; 1 = it has one.  Their text has
 * what `element` writes for element gn_k of the gn_on from gn_from on. */
int cu_elements(CuFn *f, const CuNest *nest);
void cu_element_pack(CuFn *f, const CuNest *nest, void (*element)(CuFn *f, const CuNest *nest));

/* parts.c: several blocks for a row */
bool cu_has_parts(const CuFn *f);
const char *cu_part_numbers(CuFn *f, bool host);
const char *cu_part_at(CuFn *f, int target, const char *slot, const char *column);
void cu_parts(CuFn *f);

/* loop.c, run.c, kernel.c, launch.c */
bool cu_has_hubs(const CuFn *f);
void cu_mark(CuFn *f, const LStmt *list); /* the registers that it needs */
void cu_begin(CuFn *f);
void cu_signature(CuFn *f, const char *suffix);
void cu_block(CuFn *f, const LStmt *s);
void cu_statement(CuFn *f, const LStmt *s);
void cu_loop(CuFn *f, const LStmt *s, const char *start, const char *step);
void cu_bounds(CuFn *f, const LStmt *s, const char **lo, const char **hi);
void cu_column(CuFn *f, const LStmt *s);
void cu_wait(CuFn *f);                                 /* threads of a team wait for each other */
const CuRun *cu_run_at(const CuFn *f, const LStmt *s); /* that begins there; NULL = none does */
void cu_run(CuFn *f, const CuRun *r);
bool cu_kernel(Cu *cu, const LKernel *k); /* false after diagnostics */
void cu_launch(CuFn *const *stage, int n, const char *name);
const char *cu_extent(CuFn *f); /* iterations for threads, teams or blocks */
CuNest cu_nest(const CuFn *f);  /* of a kernel with one parallel loop */
void cu_tails(Cu *cu);          /* kernels that write zeros behind a batch's rows */

#endif
