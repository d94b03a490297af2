/* What a team of threads does with a row of a kernel (team.c, columns.c): which statements share
 * columns, who touches what, and whether that is safe.
 *
 * Passes decide it and the text says it (`columns`, `barrier`, `by ways`); a target that emits the
 * text reads it from there. */
#ifndef CODEGEN_TEAM_H
#define CODEGEN_TEAM_H

#include "codegen/loop_passes/loops.h"

/* The most loops over entries, and accumulators of one of them, that are recorded for a row. */
enum { LOOP_TARGETS_MAX = 8 };

/* A region: statements whose loops over feature columns share the columns of one range, so that a
 * lane can keep "its" column from loop to loop.  Either the body of a statement `columns`
 * (L_COLUMNS), or statements that may become one. */
typedef struct {
    LStmt *stmt;              /* the statement `columns`; NULL = there is none yet */
    const LStmt *first, *end; /* the statements: from `first` up to, not with, `end`; NULL = all */
    const LStmt *range;       /* one of the loops, whose range gives the columns */
    bool all_threads; /* the region is one loop, dealt to all threads of the team, not to lanes */
    bool in_row_list; /* it stands directly in the row's list of statements, in no loop of it */
    bool one_pass;    /* all threads run the statements once, together, each lane with all of its
                         columns in registers: they exchange values in the middle */
    bool round_robin; /* the columns of some loop in it are dealt in turn to lanes, so that all
                         lanes must run it */
    int barriers;     /* number of L_BARRIER statements of the kernel before it */
} LoopColumns;

/* How an index of a buffer depends on the column: the column's own number, or that number plus or
 * minus a register that is constant in the loop. */
typedef struct {
    bool ok;            /* it depends on the column in one of these ways */
    LFn fn;             /* L_FN_OP: the column itself; L_FN_IADD, L_FN_ISUB: plus, minus `offset` */
    const LReg *offset; /* for L_FN_IADD and L_FN_ISUB */
} LoopDistance;

/* One load, store or accumulation of the kernel, as far as threads are concerned. */
typedef struct {
    const LStmt *s;        /* the access */
    const LStmt *loop;     /* the loop over columns around it; NULL = there is none */
    int region;            /* position in LoopTeam.regions of the region around it; -1 = none */
    int column_dim;        /* which of its indices follows the column; -1 = none */
    LoopDistance distance; /* how that index follows the column */
    bool reduces_columns;  /* it accumulates all columns of the loop into one element */
    bool round_robin;      /* the loop's columns are dealt in turn to lanes, whichever lane has that
                              column in other loops */
    bool direct;           /* the loop over columns stands directly in the region's list; outside of
                              regions: s stands directly in the row's list */
    int barriers;          /* number of L_BARRIER statements of the kernel before it */
} LoopAccess;

/* What is known of a kernel that gives each row to a team of threads. */
typedef struct {
    Arena *a;
    const Target *on; /* the target, for the number of lanes and columns that it can have */
    const LKernel *k;
    int columns; /* most columns that a lane may have where lanes go through several loops together
                  */
    VEC(LoopColumns) regions; /* in the order of the text */
    VEC(LoopAccess) accesses; /* in the order of the text */
    int barriers;             /* number of L_BARRIER statements read so far */
    bool serial_entries;      /* the entries of a row must not be shared by several threads */
    bool needs_barriers;      /* threads wait for each other only where a barrier says so */
    const char *fault;        /* the first reason why a team cannot run the kernel; NULL = it can */
    Span span;                /* the place of `fault`, for messages */
} LoopTeam;

/* ---- columns (codegen/loop_passes/columns.c) ------------------------------------------------ */
/* Whether the loop's iterations are divided among lanes or among all threads of a team: a vector
 * loop (over feature columns), or a loop over entries marked `by team`. */
bool loop_is_columns(const LStmt *s);
/* Whether two loops run over the same index range. */
bool loop_same_range(const LStmt *x, const LStmt *y);
/* How index r depends on the loop's variable: equal to it, or it plus or minus a register that is
 * constant in the loop. .ok = false otherwise. */
LoopDistance loop_column_distance(const LStmt *loop, const LReg *r);
/* Whether the lanes of a team can hold all feature columns of the loop's range at the same time. */
bool loop_fits_lanes_at_once(const LoopTeam *t, const LStmt *range);
/* Whether only sums leave a loop over the entries of a segment, so that entries can be divided
 * among all threads like columns. A loop over feature columns inside it is run by each thread
 * alone, unless the lanes could hold all columns. */
bool loop_only_sums_leave(const LoopTeam *t, const LStmt *loop);
/* Whether an index of the access depends on the loop's variable. */
bool loop_follows_column(const LStmt *s, const LStmt *loop);
/* Whether s is a statement of the region, or nested in one. */
bool loop_region_has(const LoopColumns *r, const LStmt *s);
/* Whether b is a local array declared in the region: each lane holds the elements of its own
 * columns in registers. */
bool loop_is_column_array(const LoopColumns *r, const LBuf *b);
/* Whether the local b is declared inside a loop of the region, so that each entry has its own. */
bool loop_is_declared_inside(const LoopColumns *r, const LBuf *b);
/* Whether lanes take the loop's columns round robin, since they do not hold all of them at once. */
bool loop_is_round_robin(const LoopColumns *r, const LStmt *loop);
/* Fills in the range and properties of the region r->first .. r->end; false: one of its statements
 * cannot be in a region. */
bool loop_check_region(const LoopTeam *t, LoopColumns *r);
/* Finds the longest region that begins at statement s; false: there is none. */
bool loop_find_region(const LoopTeam *t, const LStmt *s, LoopColumns *out);

/* ---- teams (codegen/loop_passes/team.c) ----------------------------------------------------- */
/* Reads what the text of kernel k says of its threads: the regions, the accesses, and the first
 * fault. needs_barriers: reading what another thread wrote is legal only after a barrier
 * statement. */
LoopTeam loop_team(Arena *a, const Target *on, const LKernel *k, bool needs_barriers);
/* Whether lanes have elements of their own in memory. Regions must then give a column to the same
 * lane, not to any thread of the team. */
bool loop_has_lane_private_elements(const LoopTeam *t);
/* Whether the access is a load that a barrier separates from all writes to its buffer: it cannot
 * race. */
bool loop_is_after_barrier(const LoopTeam *t, const LoopAccess *a);
/* The number of the last region that writes buffer b, if only regions of the row's own list write
 * it; -1 = there is none. */
int loop_last_writing_region(const LoopTeam *t, const LBuf *b);
/* Whether buffer b is accessed only outside regions and in the row's own list, all loads before the
 * first write. */
bool loop_is_read_before_written(const LoopTeam *t, const LBuf *b);
/* Whether the earlier value of an element of b is needed when it is written: b is accumulated into,
 * or loaded. */
bool loop_is_read_or_accumulated(const LoopTeam *t, const LBuf *b);
/* Whether each lane has exactly one element of buffer b, within one region. */
bool loop_is_one_element_per_lane(const LoopTeam *t, const LBuf *b);
/* Why a lane does not have exactly one element of buffer b, within one region, in words; NULL: it
 * has. */
const char *loop_one_element_fault(const LoopTeam *t, const LBuf *b);
/* Whether the region holds the row of b in registers. */
bool loop_is_promoted(const LStmt *columns, const LBuf *b);
/* Fills `target` with the accumulators of a loop whose entries the ways of a team can share;
 * returns how many, 0 = they cannot share it. */
int loop_private_sums(const LoopTeam *t, const LStmt *s, const LBuf **target);
/* Why the ways of a team cannot share the entries of loop s with partial sums of their own, in
 * words; NULL: they can, and *n accumulators are in `target`. */
const char *loop_private_fault(const LoopTeam *t, const LStmt *s, const LBuf **target, int *n);
/* Whether the kernel's threads do not race, share loops legally and combine all partial sums; else
 * t->fault says why. */
bool loop_team_is_race_free(LoopTeam *t);

/* Whether the iterations of the region are divided over all threads of the team, rather than over
 * its lanes. */
bool loop_goes_to_all_threads(const LoopTeam *t, const LoopColumns *r);

/* ---- sums of several threads (codegen/loop_passes/insert_folds.c) --------------------------- */
/* A place where partial sums of several threads must be combined (a statement L_FOLD). */
typedef struct {
    const LStmt *after; /* the statement after which the fold stands */
    RedKind red;        /* how the partial results are combined */
    LBuf *buf;          /* the accumulator: a local array or an argument */
    LShare share;       /* whose partial results: of the ways, the lanes, or all threads */
} LoopFold;
typedef VEC(LoopFold) LoopFolds;
/* Whether the accumulation s, in the body of the column loop, adds all columns into one element:
 * lanes then hold partial sums. */
bool loop_reduces_columns(const LStmt *s, const LStmt *loop);
/* All places where partial sums of several threads must be combined, in the order of the text. */
LoopFolds loop_required_folds(const LoopTeam *t);
/* Whether the `fold` statements that follow s are exactly the required ones. */
bool loop_has_required_folds(const LoopFolds *all, const LStmt *s);

/* ---- who goes through columns (hoist_values.c, mask_lanes.c) --------------------------------- */
/* Whether values that do not depend on the column stand in the list of a region that lanes run
 * through several times: they would be computed again each time. */
bool loop_has_values(const LoopColumns *r);
/* Why lanes without a column need not run the statements of the region, in words; NULL: they must,
 * since other lanes exchange values with them. */
const char *loop_mask_fault(const LoopTeam *t, const LoopColumns *r);

/* ---- columns of a lane (codegen/loop_passes/coarsen_lanes.c) -------------------------------- */
/* Whether lanes can have n neighbouring columns each. */
bool loop_may_have_pack(const LoopTeam *t, int n);
/* How many neighbouring columns each lane (or elements each thread) of the kernel has; at least 1.
 */
int loop_pack(const LKernel *k);
/* Whether the size is a multiple of n whatever the data are. */
bool loop_is_multiple(const Expr *e, int n);
/* Whether the access can load or store n neighbouring columns of a row at once: its last index is
 * the column, the row's width is a multiple of n, or the number of columns, which only data know,
 * and n elements are at most 16 bytes. A packed store comes last in the loop, so no other access
 * may be to its buffer. */
bool loop_is_packed(const LStmt *s, const LStmt *loop, int n);

/* ---- elements of a thread (codegen/loop_passes/coarsen_threads.c) --------------------------- */
/* The parallel loop and the loops collapsed with it, outermost first: together their variables
 * number the elements.  No statement stands after the next loop in the body of each. */
typedef struct {
    const LStmt *loop[LOOP_COLLAPSE_MAX + 1];
    int n;
} LoopNest;
/* The parallel loop and the loops collapsed with it, outermost first. */
LoopNest loop_collapsed_nest(const LKernel *k);

/* A buffer that each thread accesses at the element with the thread's own number. */
typedef struct {
    const LBuf *buf;
    bool only_own;      /* no access is at another element; matters where the buffer is written */
    bool unconditional; /* one of the accesses is under no condition */
    bool read;          /* it may be read before it is written for certain */
    bool written;       /* the kernel writes it */
    bool packed;        /* the text marks an access as a pack (LStmt.packed) */
    const char *name;   /* name of the pack's variable in emitted code */
} LoopStream;

/* The buffers of a kernel with a thread per element, as loop_find_packable() finds them. */
typedef struct {
    Arena *a;
    const LoopNest *nest;
    bool *used;              /* [LKernel.n_regs] some statement reads the register */
    VEC(LoopStream) streams; /* in the order of their first access */
    bool no_inner_loops;     /* the body has no loops and no local arrays */
} LoopElements;
/* The most neighbouring elements per thread. */
enum { LOOP_ELEMENTS_MAX = 8 };
/* Finds the buffers that each thread accesses at its own element. Such accesses are contiguous over
 * threads, so a thread that has several neighbouring elements can load and store them at once. */
LoopElements loop_find_packable(Arena *a, const LKernel *k, const LoopNest *nest);
/* The largest number of neighbouring elements per thread, a power of two up to max_pack, such that
 * a pack of the widest type is at most 16 bytes. 1 where nothing can be packed. */
int loop_max_pack(const LoopElements *e, int max_pack);
/* Whether each thread accesses the buffer at the element with the thread's own number: the loop
 * variables of the nest are its indices, in order, and its dimensions are as long as the loops. */
bool loop_is_at_own_element(const LoopNest *nest, const LStmt *s);
/* Whether a thread loads and stores its neighbouring elements of the buffer at once, as a pack: all
 * accesses are at its own elements, and one of them is unconditional. */
bool loop_is_packed_buffer(const LoopStream *s);
/* An access whose mark `pack` in the text is wrong; NULL = there is none. t: the team that runs the
 * kernel, or NULL for single threads. */
const LStmt *loop_unpackable(Arena *a, const LKernel *k, const LoopTeam *t);

/* ---- rows with many entries (codegen/loop_passes/block_hubs.c) ------------------------------ */
/* Fills `out` (LOOP_TARGETS_MAX places) with the loops over a row's entries (edges) that the ways
 * of a team share, one for each relation; returns how many. */
int loop_shared_entry_loops(const LoopTeam *t, const LStmt **out);
/* The first loop over a row's entries that the ways of a team share; NULL = there is none. */
LStmt *loop_first_shared_loop(const LoopTeam *t);

/* ---- long rows (codegen/loop_passes/split_rows.c) ------------------------------------------- */
/* What entries of a loop are added up to: the accumulation, and how many numbers it makes of a
 * row. */
typedef struct {
    const LStmt *acc;
    const Expr *n_numbers;
    bool in_columns; /* a number for each column of the region; else one */
} LoopSplitSum;
/* Fills `out` (LOOP_TARGETS_MAX places) with the loops over a row's entries whose entries threads
 * of a team share, in their order; returns how many. */
int loop_split_loops(const LoopTeam *t, const LStmt **out);
/* Fills `out` (LOOP_TARGETS_MAX places) with what such a loop adds up; returns how many. */
int loop_split_sums(const LoopTeam *t, const LStmt *loop, LoopSplitSum *out);
/* Whether blocks that have parts of a row store what it stores before its last loop over entries,
 * as they need that: all of them store the same. */
bool loop_parts_store(const LoopTeam *t, const LStmt *last);
/* Whether the row stores something to memory before the loop. */
bool loop_stores_before(const LoopTeam *t, const LStmt *loop);
/* Whether several blocks can share the entries of loop s in long rows. */
bool loop_may_split(const LoopTeam *t, const LStmt *s);
/* Why several blocks cannot share the entries of loop s in long rows, in words; NULL: they can. */
const char *loop_split_fault(const LoopTeam *t, const LStmt *s);
/* ---- loads of several entries (codegen/loop_passes/load_ahead.c) ---------------------------- */
/* What an iteration of a loop over entries does before the first of several is used: its loads from
 * memory, and what their indices are made of. */
typedef struct {
    bool *early;   /* [n_regs] registers that are known then */
    bool *is_kept; /* [n_regs] .. and read by what comes later */
    int n_loads;
    int bytes; /* of registers that keep what an iteration has loaded */
    int held;  /* .. and the sums and columns of a thread, all the while */
} LoopAhead;
/* Fills in what of loop s, whose entries ways share, is early. */
LoopAhead loop_early_of(const LoopTeam *t, const LStmt *s);
/* Why several iterations of loop s cannot be loaded before the first is used, in words; NULL: they
 * can. */
const char *loop_ahead_fault(const LoopTeam *t, const LStmt *s);
/* The region of feature columns that contains statement s; NULL = none does. */
const LoopColumns *loop_region_of(const LoopTeam *t, const LStmt *s);

#endif
