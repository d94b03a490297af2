/* Passes over the loop IR: how the iterations of a kernel are arranged for a target, whose data
 * they read.
 *
 * Each is a value with a name, listed once in passes.def, runs alone on text
 * (gnnc opt FILE.loops --passes=interchange,distribute), and is followed by loop_verify().  What a
 * target emits is what the last of them leaves. */
#ifndef CODEGEN_LOOPS_H
#define CODEGEN_LOOPS_H

#include "codegen/target.h"
#include "passes/pass.h"
#include "passes/threshold.h"

typedef struct Loops {
    Ctx *c;
    Arena *a;
    const Module *m;
    const Target *on;
    TargetMachine machine;
    int columns;                /* neighbouring columns that one lane may have */
    PassCtx *pass;              /* that which runs, for what it says */
    const char *disable;        /* passes to leave out, "cse-loops,distribute"; or NULL */
    const PassOptions *options; /* of the passes that run now: what passes that run others show */
    LKernels k;                 /* a kernel of the plan, or the stages that it has been cut into */
} Loops;

#define LOOP_PASS(id) extern const Pass loop_pass_##id;
#include "codegen/loop_passes/passes.def"
#undef LOOP_PASS

const Pass *loop_pass_find(const char *name); /* NULL when there is none over loops */
const Pass *loop_pass_at(int i);              /* NULL behind the last one */

/* A copy of the kernel, for passes to change. */
Loops loop_pass_begin(Ctx *c, const Module *m, const Target *on, const TargetMachine *machine,
                      const LKernel *k);
/* Comma-separated names; each is followed by loop_verify().  False after diagnostics. */
bool loop_pass_run(Loops *l, const char *names, const PassOptions *o);
/* A kernel of the plan as the target emits it: after the target's passes, or those that the plan
 * names. */
bool loop_pass_all(Ctx *c, const Plan *p, const Target *on, const TargetMachine *machine,
                   const LKernel *k, Loops *to);
/* The names of these, in order; "" = none. */
const char *loop_pass_names(const Plan *p, const Target *on);
/* Kernels of the plan become what the target emits, and the plan that target's alone. */
bool loop_pass_arrange(Ctx *c, Plan *p, const Target *on, const TargetOptions *o);
/* What these passes say of the plan's kernels, which stay as they are. */
bool loop_pass_remarks(Ctx *c, const Plan *p, const Target *on, const TargetOptions *o, StrBuf *to);
/* The processor that options name, where the target has one.  False after diagnostics. */
bool loop_pass_machine(Ctx *c, const Target *on, const TargetOptions *o, TargetMachine *to);
/* Runs `change`, which says whether it did, on each kernel.  True. */
bool loop_pass_each(Loops *l, bool (*change)(Loops *l, LKernel *k));

/* ---- what they share (codegen/loop_passes/rewrite.c) ---------------------------------------- */
/* The loop that all of a kernel but values is in, if its iterations are parallel; NULL = there is
 * none. */
LStmt *loop_parallel(const LKernel *k);
/* What is done for a row: the list inside the parallel loop and the loops that are made part of its
 * index; NULL = there is none. */
LStmt **loop_row_list(LKernel *k);
/* The loop that ends the list and is part of the parallel loop's index; NULL = there is none. */
LStmt *loop_collapsed(LStmt *s);
/* .. that can be.  (codegen/loop_passes/collapse.c) */
enum { LOOP_COLLAPSE_MAX = 4 };
LStmt *loop_may_collapse(Arena *a, const LKernel *k, LStmt *body, bool vector_too);
/* Makes such loops part of the index, and no others; how many. */
int loop_collapse(Arena *a, LKernel *k, bool vector_too);
bool loop_is_unit_extent(const Expr *e);      /* an axis whose index is 0 */
bool loop_extent(const LStmt *s, int64_t *n); /* of a loop over a known number of iterations */
const char *loop_range_text(Arena *a, const LStmt *s); /* "8", "F", "entries of ptr", for remarks */
void loop_replace_register(LStmt *s, const LReg *from,
                           LReg *to); /* in s, what follows it, and bodies */
LReg *loop_new_register(Arena *a, LKernel *k, DType dt, const char *hint, const LStmt *def);
/* What `schedule` makes of a kernel, which it may change: itself or a copy, which says who takes
 * its loops.  (codegen/loop_passes/schedule.c) */
LKernel *loop_choose_schedule(Loops *l, LKernel *k);
/* Values that nobody reads go; how many.  (codegen/loop_passes/dce.c) */
int loop_drop_unused(Arena *a, LKernel *k);
/* Parts of a long row: so few that each may have a block. */
bool loop_sums_chunks(const LStmt *parallel);
/* The loop's body takes its place; behind it. */
LStmt **loop_replace_by_body(LStmt **at);
/* The i-th dimensions for which out[i] holds leave a local array. */
void loop_drop_dims(LStmt *s, LBuf *b, const bool *out);
/* Entries of a loop with that body are added up to numbers of the row, or to columns. */
bool loop_accumulates(const LStmt *s, const LStmt *body, bool numbers);
/* Lanes can have so many columns at once. */
bool loop_fits_lanes(const Target *on, int64_t columns, int each);
/* Loops over entries of a row whose threads go through them alike, or have a row each. */
int loop_count_serial_entry_loops(const LKernel *k);
/* ---- vectors of a processor (codegen/loop_passes/lanes.c) ----------------------------------- */
enum { LOOP_WHOLE_VECTORS_MAX = 8 }; /* of a constant loop that stand one after the other */
/* Lanes for a loop over so many: 7 get 8, and what fills several vectors has all that there are. */
int loop_lanes_for(const Loops *l, int64_t extent);
/* May s and what follows run in lanes of the loop's variable?  varies, by register: what differs by
 * lane. */
bool loop_find_varying(const LStmt *loop, const LStmt *s, bool *varies);
bool loop_may_vectorise(Arena *a, const LKernel *k, const LStmt *loop);
/* Do all iterations of the loop read or write s->buf at the same index? */
bool loop_is_at_invariant_index(const LStmt *loop, const LStmt *s);
bool loop_writes(const LStmt *s, const LBuf *buf); /* s or what follows */
/* A scalar function of many instructions, in s .. end or their lists alone. */
bool loop_is_heavy(const LStmt *s);
bool loop_has_heavy(const LStmt *s, const LStmt *end);
/* The first statement of the loop that is more than scalars from memory which it only reads; NULL =
 * there is none.  constant: local arrays may be read by lane. */
const LStmt *loop_end_of_prefix(const LStmt *loop, bool constant);
/* A loop of so few iterations that they stand one after the other. */
bool loop_is_unrolled_fully(const LStmt *s, int64_t *n);
/* Is the local array declared in the loop's own list? */
bool loop_declares_directly(const LStmt *loop, const LBuf *b);
/* The loop over columns of a row, behind where the row begins; NULL or something else: none. */
const LStmt *loop_flat_row(const LStmt *s);
/* What sched.flat and sched.expand ask for. */
bool loop_may_flatten(const LKernel *k, const LStmt *s, int lanes);
/* .. of a loop whose body is a vector loop: why not; NULL: it may. */
const char *loop_flat_fault(const LKernel *k, const LStmt *s, int lanes);
bool loop_may_expand(const LStmt *s, int lanes, bool prefix);
/* .. of a short loop: why not all of it; NULL: it may. */
const char *loop_expand_fault(const LStmt *s, int lanes);
/* ---- rows of sums in registers (codegen/loop_passes/tile_rows.c) ---------------------------- */
enum { LOOP_TILE_MAX = 16 }; /* vectors of a tile, over all heads */
bool loop_is_vector_loop_over(const LStmt *s,
                              const Expr *width); /* a vector loop over so many columns */
/* Can the tile, that ends the loop `jam` or (NULL) is by itself, be had as it says? */
bool loop_may_tile(const LKernel *k, const LStmt *tile, const LStmt *jam);
const LStmt *loop_jammed_tile(const LStmt *jam); /* which is all of its body but arrays, or NULL */
/* In a parallel loop of `rows`: does the statement go row by row?  The others are in lanes. */
bool loop_is_serial(const LStmt *s);
/* Can the parallel loop be so?  (codegen/loop_passes/vectorise_outer.c) */
bool loop_may_vectorise_outer(Arena *a, const LKernel *k, const LStmt *loop);
/* Runs `change`, which says whether it did, on each loop that is not inside a vector. */
bool loop_each_outside_vectors(Loops *l, LKernel *k,
                               bool (*change)(Loops *l, LKernel *k, LStmt *loop));

/* Numbers registers in the order of the text. */
void loop_renumber_registers(LKernel *k);
/* Tells what a pass has done with kernel k, or, where `done` is NULL, why not. */
void loop_remark(PassCtx *p, const LKernel *k, const char *pass, const char *done,
                 const char *why_not);

#endif
