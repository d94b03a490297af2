/* What a team of threads does with a row of a kernel (team.c, columns.c): which statements share
 * columns, who touches what, and whether that is safe.
 *
 * Passes decide it and the text says it (`columns`, `barrier`, `by ways`); a target that emits the
 * text reads it from there. */
#ifndef CODEGEN_TEAM_H
#define CODEGEN_TEAM_H

#include "codegen/loop_passes/loops.h"

enum { LOOP_TARGETS_MAX = 8 };

/* Statements whose vector loops share columns: those of a statement `columns`, or some that may
 * become one. */
typedef struct {
    LStmt *stmt;              /* the statement `columns`; NULL = there is none yet */
    const LStmt *first, *end; /* end: behind the last one, or NULL */
    const LStmt *range;       /* one of the loops: lanes have its columns */
    bool all_threads;         /* one loop alone: its iterations go to all threads of the team */
    bool in_row_list;         /* in the row, and in no loop of it */
    bool one_pass;    /* all threads go through it once: they need each other in its midst */
    bool round_robin; /* lanes take columns of some loop by turns: all must be there */
    int barriers;     /* that stand before it */
} LoopColumns;

/* How an index follows from the column: itself, or at a fixed distance. */
typedef struct {
    bool ok;
    LFn fn; /* L_FN_OP: itself; IADD, ISUB */
    const LReg *offset;
} LoopDistance;

typedef struct {
    const LStmt *s;
    const LStmt *loop; /* the vector loop around it; NULL = outside */
    int region;        /* which columns it is among; -1 = none */
    int column_dim;    /* of the column among its indices; -1 = not there */
    LoopDistance distance;
    bool reduces_columns; /* acc of a vector loop into one place */
    bool round_robin;     /* lanes take the loop's columns by turns, whoever has them elsewhere */
    bool direct;  /* the vector loop is in no other loop of its columns; outside, s is in none */
    int barriers; /* that stand before it */
} LoopAccess;

typedef struct {
    Arena *a;
    const Target *on;
    const LKernel *k;
    int columns; /* that a lane may have where lanes go through several loops together */
    VEC(LoopColumns) regions;
    VEC(LoopAccess) accesses;
    int barriers;
    bool serial_entries; /* entries must not be shared by several threads */
    bool needs_barriers; /* threads wait for each other only where a barrier says so */
    const char *fault;   /* why a team cannot have it; NULL = it can */
    Span span;           /* .. and where */
} LoopTeam;

/* ---- columns (codegen/loop_passes/columns.c) ------------------------------------------------ */
/* A loop that lanes, or threads of a team, have an iteration each of. */
bool loop_is_columns(const LStmt *s);
bool loop_same_range(const LStmt *x, const LStmt *y);
LoopDistance loop_column_distance(const LStmt *loop, const LReg *r);
/* The lanes of a way can have all of its columns at once. */
bool loop_fits_lanes_at_once(const LoopTeam *t, const LStmt *range);
/* Entries of a segment, whose sums alone leave the loop: as good as columns. */
bool loop_only_sums_leave(const LoopTeam *t, const LStmt *loop);
bool loop_follows_column(const LStmt *s, const LStmt *loop); /* an index hangs on the loop's */
bool loop_region_has(const LoopColumns *r, const LStmt *s);
bool loop_is_column_array(const LoopColumns *r, const LBuf *b); /* a local: a column per lane */
bool loop_is_declared_inside(const LoopColumns *r,
                             const LBuf *b); /* a local declared in a loop of them */
/* Its lanes take the loop's columns by turns, as they do not have them all. */
bool loop_is_round_robin(const LoopColumns *r, const LStmt *loop);
/* Finds what r->first .. r->end share; false: nothing, as one of the statements cannot. */
bool loop_check_region(const LoopTeam *t, LoopColumns *r);
/* The longest such list that begins at s. */
bool loop_find_region(const LoopTeam *t, const LStmt *s, LoopColumns *out);

/* ---- teams (codegen/loop_passes/team.c) ----------------------------------------------------- */
/* What the text of a kernel says that is taken by teams or blocks; its fault. */
LoopTeam loop_team(Arena *a, const Target *on, const LKernel *k, bool strict);
/* Its lanes have elements of their own in memory, that others must not touch: columns of such a
 * kernel may not go to all threads. */
bool loop_has_lane_private_elements(const LoopTeam *t);
/* A load behind the columns that write its buffer, which the team waits for. */
bool loop_is_after_barrier(const LoopTeam *t, const LoopAccess *a);
int loop_last_writing_region(const LoopTeam *t, const LBuf *b); /* -1 = there are none, or others */
/* All threads read it before the first one writes it: they must wait for each other in between. */
bool loop_is_read_before_written(const LoopTeam *t, const LBuf *b);
bool loop_is_read_or_accumulated(const LoopTeam *t,
                                 const LBuf *b); /* what it holds is added to, or read */
/* Of a written argument: each lane has one element of it. */
bool loop_is_one_element_per_lane(const LoopTeam *t, const LBuf *b);
/* .. why it has not; NULL: it has. */
const char *loop_one_element_fault(const LoopTeam *t, const LBuf *b);
bool loop_is_promoted(const LStmt *columns, const LBuf *b);
/* What loop s among the columns adds up, of columns or of the row, where its entries may go to
 * several threads; how many, 0 = they may not. */
int loop_private_sums(const LoopTeam *t, const LStmt *s, const LBuf **target);
/* .. why they may not, *n of which would be added up; NULL: they may. */
const char *loop_private_fault(const LoopTeam *t, const LStmt *s, const LBuf **target, int *n);
/* The text's schedule can be; false: why not, and where, is t->fault and t->span. */
bool loop_team_is_race_free(LoopTeam *t);

/* Its iterations go to all threads of a team, whatever the lanes of other columns are. */
bool loop_goes_to_all_threads(const LoopTeam *t, const LoopColumns *r);

/* ---- sums of several threads (codegen/loop_passes/insert_folds.c) --------------------------- */
typedef struct {
    const LStmt *after;
    RedKind red;
    LBuf *buf;
    LShare share; /* of its ways, its lanes, or all threads */
} LoopFold;
typedef VEC(LoopFold) LoopFolds;
/* s, of the vector loop's body, adds all columns to one place. */
bool loop_reduces_columns(const LStmt *s, const LStmt *loop);
/* Where what the text shares is to be folded; those behind one statement in their order. */
LoopFolds loop_required_folds(const LoopTeam *t);
/* Those behind s stand there, and no others. */
bool loop_has_required_folds(const LoopFolds *all, const LStmt *s);

/* ---- who goes through columns (hoist_values.c, mask_lanes.c) --------------------------------- */
/* Lanes take them by turns, and a value stands at their top. */
bool loop_has_values(const LoopColumns *r);
/* Why lanes without a column need not go along; NULL: they must. */
const char *loop_mask_fault(const LoopTeam *t, const LoopColumns *r);

/* ---- columns of a lane (codegen/loop_passes/coarsen_lanes.c) -------------------------------- */
bool loop_may_have_pack(const LoopTeam *t, int n); /* they can be so many */
int loop_pack(const LKernel *k);                   /* .. that it says; 1 = it says nothing */
/* s, of the loop's own list, reaches all n neighbouring columns of a lane at once: what may not
 * happen is neither loaded nor stored. */
bool loop_is_packed(const LStmt *s, const LStmt *loop, int n);

/* ---- elements of a thread (codegen/loop_passes/coarsen_threads.c) --------------------------- */
/* Loops that an index of elements runs over, outermost first; each but the last has nothing behind
 * the next. */
typedef struct {
    const LStmt *loop[LOOP_COLLAPSE_MAX + 1];
    int n;
} LoopNest;
LoopNest loop_collapsed_nest(const LKernel *k); /* of the parallel loop, if it is the only one */

/* A buffer that is reached at the thread's own element. */
typedef struct {
    const LBuf *buf;
    bool only_own;      /* a written one is reached nowhere else */
    bool unconditional; /* nothing asks first whether it may be */
    bool read;          /* before it is surely written */
    bool written;
    bool packed;      /* the text says so of an access */
    const char *name; /* for who emits it */
} LoopStream;

typedef struct {
    Arena *a;
    const LoopNest *nest;
    bool *used; /* [n_regs] somebody needs the value */
    VEC(LoopStream) streams;
    bool no_inner_loops; /* no loops and no arrays in it */
} LoopElements;
enum { LOOP_ELEMENTS_MAX = 8 };
LoopElements loop_find_packable(Arena *a, const LKernel *k, const LoopNest *nest);
/* A power of two, at most `most`. */
int loop_max_pack(const LoopElements *e, int most);
bool loop_is_at_own_element(const LoopNest *nest, const LStmt *s);
bool loop_is_packed_buffer(const LoopStream *s);
/* An access of which the text says that it reaches several elements at once (pack_accesses.c), and
 * it cannot; NULL: there is none.  t: of a kernel that teams take. */
const LStmt *loop_unpackable(Arena *a, const LKernel *k, const LoopTeam *t);

/* ---- rows with many entries (codegen/loop_passes/block_hubs.c) ------------------------------ */
/* Of each relation whose entries ways share in a row, such a loop; how many, LOOP_TARGETS_MAX at
 * most. */
int loop_shared_entry_loops(const LoopTeam *t, const LStmt **loop);
LStmt *loop_first_shared_loop(const LoopTeam *t); /* the first loop that ways share, or NULL */

/* ---- long rows (codegen/loop_passes/split_rows.c) ------------------------------------------- */
/* Several blocks may have the entries of loop s, which ways share. */
bool loop_may_split(const LoopTeam *t, const LStmt *s);
const char *loop_split_fault(const LoopTeam *t, const LStmt *s); /* why not; NULL: they may */
/* The columns among whose statements it stands; NULL = none. */
const LoopColumns *loop_region_of(const LoopTeam *t, const LStmt *s);

#endif
