/* Inside the cuda target: loop IR to CUDA C.
 *
 * Each kernel becomes one __global__ function and one host function that launches it, in
 * one file that is meant to be read: names are those of the loop IR, which stands above
 * each kernel.  What the text relies on is in runtime/cuda/kernel.h. */
#ifndef CODEGEN_CUDA_H
#define CODEGEN_CUDA_H

#include "codegen/loop_passes/team.h"

/* The file being written. */
typedef struct {
    Ctx *c;
    Arena *a;
    const Plan *plan;
    StrBuf b;
} Cu;

typedef enum {
    CU_THREAD, /* one thread per iteration of the parallel loop */
    CU_TEAM,   /* some threads of a warp per iteration */
    CU_BLOCK,  /* a block per iteration: long rows, and kernels without a parallel loop */
} CuKind;

/* Which threads run the iterations of a kernel. */
typedef struct {
    CuKind kind;
    const LStmt *parallel_loop; /* NULL: a serial kernel */
    /* Loops directly inside the parallel one that are made part of its index, outermost
     * first, and the body of the innermost. */
    const LStmt *collapsed[LOOP_COLLAPSE_MAX];
    int n_collapsed;
    const LStmt *body;
    /* teams */
    int lanes;                /* threads side by side; 0 = known when the kernel is launched */
    int pack;                 /* neighbouring columns that a lane has, a power of two */
    const LStmt *shared_loop; /* the loop over a row's entries that the ways of a team take round
                                 robin, or NULL */
    /* The loops over a row's entries, in their order, if several blocks may share a long row
     * (parts.c). */
    const LStmt *split[LOOP_TARGETS_MAX];
    int n_split;
    bool stores_early; /* the row stores before the last of them what no part needs */
} CuSched;

/* A C variable that stands for an element of a buffer, in accesses, while a part of the kernel is
 * written. */
typedef struct {
    const LBuf *buf;
    const LStmt *acc; /* only in accesses by this statement; NULL = by all */
    const char *name;
    int dropped_dim;     /* the variable is an array without this dimension; -1 = a scalar */
    bool in_memory_type; /* it has the 16-bit or byte type of memory, not that of registers */
} CuAlias;

/* A partial sum of one thread: a register, or an array of registers, that the statement `fold` of
 * its buffer combines with those of other threads. */
typedef struct {
    const LStmt *acc; /* the accumulation that it replaces */
    LShare share;     /* the threads whose sums are combined: ways, lanes or all of the team */
    const char *name;
    /* for LS_WAYS: */
    int dropped_dim;     /* of an array: the dimension of columns, which it lacks */
    int64_t n_registers; /* elements of the array */
    bool is_array;
    bool in_columns; /* it is of a column, and not one number for all lanes */
    bool per_column; /* one register for each column of the lane */
    bool reduced;    /* it is reduced over the ways; only the addition to acc is left */
} CuPartial;

/* The kernel being written. */
typedef struct {
    Cu *cu;
    Arena *a;
    const LKernel *k;        /* as it is scheduled: passes may have made it of the plan's */
    const bool *is_argument; /* [bufs] its arguments; NULL = all */
    bool has_condition;      /* it tests a condition first: it runs only where that holds */
    bool condition_negated;  /* it runs only where the condition does not hold */
    const PGroup *group;     /* one launch runs the kernels of these steps; NULL = this one alone */
    bool in_parts_kernel;    /* the signature of the kernel for such parts is being written */
    bool reads_device_sizes; /* it may read its sizes from the device
                                (codegen/plan_passes/plan_buckets.c) */
    bool has_own_rows;       /* processes share its rows: a launch does own ones alone */
    bool has_passes;         /* .. in two launches, as some of them wait for rows of others */
    CuSched sched;
    LoopTeam team;      /* what its threads do, where they work in teams */
    const char **reg;   /* [n_regs] C names of registers */
    const char **buf;   /* [bufs] C names of arguments */
    const char **local; /* [locals] C names of local arrays */
    const char **sym;   /* [syms] names of sizes, NULL = not used here */
    bool *used;         /* [n_regs] a statement that is emitted reads the register */
    bool *local_used;   /* [locals] a statement that is emitted accesses the array */
    int depth;          /* of indentation */
    /* ---- what holds at the place in the text where code is emitted now */
    VEC(CuAlias) alias;
    VEC(CuPartial) pending_sums;
    const LoopAhead *loaded; /* what is known of the entry, and not emitted again; NULL = nothing */
    const LoopColumns *region; /* the region around it; NULL = outside of regions */
    const char *column; /* text of the column of this lane: the index of loops in the region */
    const char *first_column; /* where each lane has several columns: text of its first one */
    bool ragged; /* .. and the last one fewer: only data know whether rows are whole packs */
    bool columns_run_serially; /* inside an entry that is as good as a column: loops are the
                                * thread's own
                                */
    const char
        *column_guard; /* some lanes have no column: this says which have; NULL = all have one */
    int n_fresh_names; /* number of names made so far */
} CuFn;

/* text.c: names and lines */
void cu_line(CuFn *f, const char *fmt, ...) PRINTF_LIKE(2, 3); /* one indented line */
void cu_open(CuFn *f, const char *fmt, ...) PRINTF_LIKE(2, 3); /* and what follows is deeper */
void cu_close(CuFn *f);                                        /* "}" */
void cu_assign_names(CuFn *f);
/* Text of the size e, from the sizes that the kernel was given. */
const char *cu_size_text(CuFn *f, const Expr *e);
const char *cu_host_size_text(CuFn *f, const Expr *e); /* over n[..] */
const char *cu_batch_size_text(CuFn *f,
                               const Expr *e); /* over gn_n[..]: of the batch's own sizes */
const char *cu_type(DType dt);                 /* of a register */
const char *cu_mem_type(DType dt);             /* in memory */
const char *cu_literal_text(Arena *a, DType dt, double v);
/* A C literal of the identity of reduction r: 0, or the extreme value (as cg_identity() of the loop
 * IR). */
const char *cu_identity_text(Arena *a, RedKind r, DType dt);

/* schedule.c */
/* As the kernel's text says.  False after diagnostics: that cannot be. */
bool cu_schedule(CuFn *f);
/* What a loop adds up that the ways of a team share; how many, 0 = they do not share it. */
int cu_shared_sums(const CuFn *f, const LStmt *s, const LBuf **target);
/* The columns that s, an access, is among, if its buffer's row is in registers there; or NULL. */
const LoopColumns *cu_promoting_region(const CuFn *f, const LStmt *s);

/* scalar.c: the right-hand side of a register */
/* Text of the right-hand side of an L_LET. */
const char *cu_let_text(CuFn *f, const LStmt *s);
/* Text of accumulator `acc` combined with x by reduction r. */
const char *cu_combine_text(CuFn *f, RedKind r, DType dt, const char *acc, const char *x);
/* Text of x rounded to a 16-bit type, in f32; of other types x itself. */
const char *cu_rounded_text(Arena *a, DType dt, const char *x);

/* memory.c */
const char *cu_element_text(CuFn *f, const LStmt *s); /* buf[..], or the name that stands for it */
const char *cu_load_text(CuFn *f, const LStmt *s);
/* Emits an L_STORE. */
void cu_emit_store(CuFn *f, const LStmt *s);
/* Emits an L_ACC: loads the element, combines it with the source by the reduction, and stores it.
 */
void cu_emit_accumulate(CuFn *f, const LStmt *s);
const char *cu_writer_guard_text(CuFn *f); /* "if (..) ", or nothing */
void cu_emit_store_element(CuFn *f, const LBuf *b, const char *element, const char *value);
/* Emits the declaration of a local array or scalar, if a statement uses it. */
void cu_declare_local(CuFn *f, const LBuf *b);
int64_t cu_elements_without_dim(const LBuf *b,
                                int dropped_dim); /* elements, one dimension left out */

/* pack.c: the columns of a lane that has several */
/* The number of neighbouring feature columns that one lane has at a time in the region; 1 where the
 * range is no width. */
int cu_region_pack(const CuFn *f, const LoopColumns *r);
void cu_open_pack_loop(CuFn *f); /* opens a loop over the lane's columns, if it has several */
void cu_close_pack_loop(CuFn *f);
const char *cu_pack_register(CuFn *f,
                             const char *name); /* a register of each: name, or name[gn_k] */
const char *cu_pack_declarator(CuFn *f, const char *name); /* their declarator */
/* The C++ type of a pack of elements of buffer b, "GnPack<float, 4>". */
const char *cu_pack_type(CuFn *f, const LBuf *b);
/* Text of the pack from `element` of a row on, as it is loaded; of the statement that stores it
 * there. */
const char *cu_load_pack_text(CuFn *f, const char *element);
const char *cu_store_pack_text(CuFn *f, const char *element, const char *pack);
/* Emits, in such a loop, that columns which the lane does not have are passed over. */
void cu_skip_missing_columns(CuFn *f);
/* Makes the text of access s use the element for column gn_k of the variable `pack` instead of
 * memory. */
void cu_push_pack_alias(CuFn *f, const LStmt *s, const char *pack);
void cu_emit_packed_body(CuFn *f, const LStmt *loop);

/* elements.c: neighbouring elements of a thread that has several; 1 = it has one.  Their text has
 * what `element` writes for element gn_k of the gn_on from gn_from on. */
void cu_emit_packed_elements(CuFn *f, const LoopNest *nest,
                             void (*emit_element)(CuFn *f, const LoopNest *nest));

/* parts.c: several blocks for a row */
/* Whether the schedule lets several blocks share the entries of long rows. */
bool cu_splits_rows(const CuFn *f);
/* The place of a loop over entries among those that blocks share; -1 = it is none of them. */
int cu_split_number(const CuFn *f, const LStmt *loop);
/* How many partial sums one part of a row leaves in scratch memory, all heads of the row together.
 */
const Expr *cu_partial_numbers(const CuFn *f);
/* How many loops are part of the parallel loop's index: the heads of a row. */
const Expr *cu_heads(const CuFn *f);
/* Text of the place in scratch memory of a partial sum: of sum number `target` of loop number
 * `loop`, for part number `slot`, at a column, or NULL. */
const char *cu_partial_place_text(CuFn *f, int loop, int target, const char *slot,
                                  const char *column);
/* Emits the variables of the row's function that such texts name. */
void cu_declare_head(CuFn *f);
/* Emits the kernel NAME_parts, in which each block takes one part of all entries, of equal size,
 * and runs the code of a row on it. Its sums go to scratch memory where the row is longer than a
 * part. */
void cu_emit_parts_kernel(CuFn *f);

/* loop.c, columns.c, kernel.c, launch.c */
void cu_mark_used(CuFn *f, const LStmt *list); /* the registers that it needs */
void cu_emit_prologue(CuFn *f);
/* Emits the statements from s on, without `end`. */
void cu_emit_statements_until(CuFn *f, const LStmt *s, const LStmt *end);
const char *cu_lanes_text(CuFn *f);               /* as they are called in a kernel */
void cu_emit_row_call(CuFn *f, const char *team); /* for the row that has index gn_i */
void cu_emit_signature(CuFn *f, const char *suffix);
/* Emits the kernel of a group that calls the function of that signature; of no group: nothing. */
void cu_emit_group_kernel(CuFn *f, const char *suffix);
/* Emits statement s and those after it. */
void cu_emit_statements(CuFn *f, const LStmt *s);
/* Emits one statement of the loop IR as CUDA C. */
void cu_emit_statement(CuFn *f, const LStmt *s);
/* Emits a loop with its body. start, step: texts of this thread's first offset and stride; NULL =
 * the thread runs all iterations. */
void cu_emit_loop(CuFn *f, const LStmt *s, const char *start, const char *step);
/* Texts of the loop's first index (*lo) and of the one after its last (*hi). Bounds that need a
 * load or a division become constants of the emitted code. */
void cu_loop_bounds_text(CuFn *f, const LStmt *s, const char **lo, const char **hi);
/* Emits a loop over feature columns inside a region. A thread has one of the columns, or a pack of
 * neighbouring ones, so that no C loop is needed, but where lanes take the columns in turn
 * (round_robin): there a C loop goes from one of the thread's columns to its next. Sums over the
 * columns are reduced over the lanes together, those of one entry at once. */
void cu_emit_column_loop(CuFn *f, const LStmt *s);
/* Emits the statement `columns`, a region whose loops over feature columns share their range: each
 * lane has one column (or `pack` neighbouring ones), and takes the next where there are more
 * columns than lanes. */
void cu_emit_column_region(CuFn *f, const LoopColumns *region);
/* Emits the statement `fold`: combines what the threads have summed separately for its buffer, over
 * the threads that its `share` names, and removes these sums from the pending ones. */
void cu_emit_combine_partials(CuFn *f, const LStmt *s);
bool cu_emit_kernel(Cu *cu, const LKernel *k); /* false after diagnostics */
void cu_emit_launch(CuFn *const *stage, int n, const char *name);
/* The same of a group: member[i] are its kernels in stage i. */
void cu_emit_group_launch(CuFn **const *member, int n, const char *name);
/* Whether the kernel is a stage that adds up the pieces of sums that another one left: it is left
 * out where sums have one piece each (LB_ROOM). */
bool cu_reads_room(const LKernel *k);
const char *cu_extent_text(CuFn *f); /* iterations for threads, teams or blocks */

/* The launches of a kernel as numbers (work.c); Target.launches. */
bool cu_launches(Ctx *c, const Plan *p, const LKernel *k, const TargetSizes *known,
                 TargetLaunches *to);

#endif
