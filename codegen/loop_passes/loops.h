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

/* The state of passes over one kernel of the plan. */
typedef struct Loops {
    Ctx *c;
    Arena *a;
    const Module *m;
    const Target *on;           /* the target for which loops are arranged */
    TargetMachine machine;      /* the processor or device, as options name it */
    int columns;                /* most neighbouring columns that one lane may have */
    PassCtx *pass;              /* context of the pass that runs now, for its remarks */
    const char *disable;        /* passes to leave out, "cse-loops,distribute"; or NULL */
    const PassOptions *options; /* options of the passes that run now, for passes that run others */
    LKernels k;                 /* the kernel, or the stages that it has been cut into */
    bool rows_come; /* rows of other processes come while a device computes those of the kernel's
                       rows that need none: it is launched twice, each time for some rows */
} Loops;

#define LOOP_PASS(id) extern const Pass loop_pass_##id;
#include "codegen/loop_passes/passes.def"
#undef LOOP_PASS

/* The pass over loops with this name; NULL = there is none. */
const Pass *loop_pass_find(const char *name);
/* Pass number i over loops, in the order of passes.def; NULL after the last one. */
const Pass *loop_pass_at(int i);

/* A state for passes over one kernel of the plan, with a copy of the kernel (or of its stages) for
 * them to change. */
Loops loop_pass_begin(Ctx *c, const Module *m, const Target *on, const TargetMachine *machine,
                      const LKernel *k);
/* Runs a comma-separated list of passes over one kernel, each followed by loop_verify(). False
 * after diagnostics. */
bool loop_pass_run(Loops *l, const char *names, const PassOptions *o);
/* Runs the target's passes, or those that the plan names, on a copy of kernel k: *out has what the
 * target emits. False after diagnostics. */
bool loop_pass_all(Ctx *c, const Plan *p, const Target *on, const TargetMachine *machine,
                   const LKernel *k, Loops *out);
/* The names of the passes that the target runs on each kernel, in order; "" where the plan's
 * kernels are scheduled already. */
const char *loop_pass_names(const Plan *p, const Target *on);
/* Replaces each kernel of the plan by what the target's loop passes make of it. The plan is then
 * for that target alone. False after diagnostics. */
bool loop_pass_arrange(Ctx *c, Plan *p, const Target *on, const TargetOptions *o);
/* Runs the loop passes on copies of all kernels only to collect their remarks in `to`. */
bool loop_pass_remarks(Ctx *c, const Plan *p, const Target *on, const TargetOptions *o, StrBuf *to);
/* Finds the processor that the options name, where the target has one. False after diagnostics. */
bool loop_pass_machine(Ctx *c, const Target *on, const TargetOptions *o, TargetMachine *out);
/* Runs `change` on each kernel, and renumbers the registers of those that it says it changed.
 * Returns true. */
bool loop_pass_each(Loops *l, bool (*change)(Loops *l, LKernel *k));

/* ---- what they share (codegen/loop_passes/rewrite.c) ---------------------------------------- */
/* The kernel's parallel loop, if nothing but value definitions stands beside it; NULL = there is
 * none. */
LStmt *loop_parallel(const LKernel *k);
/* The list of statements inside the parallel loop and the loops collapsed with it; NULL = there is
 * no parallel loop. */
LStmt **loop_row_list(LKernel *k);
/* The loop that ends the list and is part of the parallel loop's index; NULL = there is none. */
LStmt *loop_collapsed(LStmt *s);
/* .. that can be.  (codegen/loop_passes/collapse.c) */
/* The most loops that are collapsed with the parallel loop. */
enum { LOOP_COLLAPSE_MAX = 4 };
/* The loop that ends `body` and can become part of the parallel loop's index (collapse, as in
 * OpenMP); NULL = there is none. with_vector_loops: it may be a vector loop. */
LStmt *loop_may_collapse(Arena *a, const LKernel *k, LStmt *body, bool with_vector_loops);
/* Marks the loops that can become part of the parallel loop's index, and no others; returns how
 * many. with_vector_loops: as for loop_may_collapse(). */
int loop_collapse(Arena *a, LKernel *k, bool with_vector_loops);
/* Whether the extent is 1. */
bool loop_is_unit_extent(const Expr *e);
/* Whether s is a loop over a constant number of iterations; *n gets that number. */
bool loop_extent(const LStmt *s, int64_t *n);
/* The loop's range for remarks: "8", "F", "entries of ptr". */
const char *loop_range_text(Arena *a, const LStmt *s);
/* Replaces register `from` by `to` in s, the statements after it and their bodies. */
void loop_replace_register(LStmt *s, const LReg *from, LReg *to);
/* A new register of the kernel. */
LReg *loop_new_register(Arena *a, LKernel *k, DType dt, const char *hint, const LStmt *def);
/* The kernel with its best schedule, with the decision who runs its loops: k itself, which it may
 * change, or a copy. (codegen/loop_passes/schedule.c) */
LKernel *loop_choose_schedule(Loops *l, LKernel *k);
/* Removes the values of the kernel that nothing reads, until none is left; returns how many. */
int loop_drop_unused(Arena *a, LKernel *k);
/* Whether the parallel loop runs over the chunks of a long sum, or their pieces; there are so few
 * that each may have a block of threads. */
bool loop_sums_chunks(const LStmt *parallel);
/* Replaces the loop at *at by its body; returns the place after the body. */
LStmt **loop_replace_by_body(LStmt **at);
/* Removes the dimensions i with drop[i] from local array b, and from the indices of its accesses in
 * s, the statements after it and their bodies. */
void loop_drop_dims(LStmt *s, LBuf *b, const bool *drop);
/* Whether one of the statements s, in a loop with that body, accumulates into something that
 * outlives one iteration: into a scalar (into_scalars = true), or else into an array (feature
 * columns). */
bool loop_accumulates(const LStmt *s, const LStmt *body, bool into_scalars);
/* Whether the lanes of a team can hold n_columns columns at once, each lane with at most max_pack
 * neighbouring ones. */
bool loop_fits_lanes(const Target *on, int64_t n_columns, int max_pack);
/* How many loops over a row's entries are not divided among threads; schedules with fewer are
 * better. */
int loop_count_serial_entry_loops(const LKernel *k);
/* ---- vectors of a processor (codegen/loop_passes/lanes.c) ----------------------------------- */
enum { LOOP_WHOLE_VECTORS_MAX = 8 }; /* of a constant loop that stand one after the other */
/* The number of vector lanes for a loop of constant extent: the least power of two that holds it (7
 * gets 8), at most a whole vector register. */
int loop_lanes_for(const Loops *l, int64_t extent);
/* Finds the registers that differ between the lanes of the loop, from those marked in varies[]
 * already (a varying analysis, as of SPMD compilers); false: s or a statement after it cannot run
 * in lanes. */
bool loop_find_varying(const LStmt *loop, const LStmt *s, bool *varies);
/* Whether the loop's iterations can run side by side in vector lanes. */
bool loop_may_vectorise(Arena *a, const LKernel *k, const LStmt *loop);
/* Whether the access has the same index in all iterations of the loop. */
bool loop_is_at_invariant_index(const LStmt *loop, const LStmt *s);
/* Whether the statement is a scalar function of many instructions, such as exp or a random number.
 */
bool loop_is_heavy(const LStmt *s);
/* Whether one of the statements s .. end, not those inside of them, is such a heavy function. */
bool loop_has_heavy(const LStmt *s, const LStmt *end);
/* The first statement of the loop that is neither a computed value nor a load from memory that
 * the loop only reads; NULL = there is none. Scalars before it can be computed for several
 * iterations at once. with_local_arrays: loads of local arrays, which are registers, may differ
 * by iteration. */
const LStmt *loop_end_of_prefix(const LStmt *loop, bool with_local_arrays);
/* Whether the loop is unrolled completely: its extent, which *extent gets, is constant and
 * small. */
bool loop_is_unrolled_fully(const LStmt *s, int64_t *extent);
/* Whether the local b is declared in the loop's own list. */
bool loop_declares_directly(const LStmt *loop, const LBuf *b);
/* The statement in loop s after computations of row starts (products): the vector loop over a row,
 * if s can be flattened; else NULL or another statement. */
const LStmt *loop_flat_row(const LStmt *s);
/* Whether loop s and the vector loop in it can be run as one loop over whole vectors of so many
 * lanes (LSched.flat). */
bool loop_may_flatten(const LKernel *k, const LStmt *s, int lanes);
/* Why loop s and the vector loop in it cannot be run as one loop over whole vectors, in words;
 * NULL: they can. */
const char *loop_flat_fault(const LKernel *k, const LStmt *s, int lanes);
/* Whether the scalars of loop s can be computed with one iteration per lane (LSched.expand).
 * prefix: only those before the first other statement are asked for. */
bool loop_may_expand(const LStmt *s, int lanes, bool prefix);
/* Why the scalars of loop s cannot be computed with one iteration per lane, in words; NULL: they
 * can. */
const char *loop_expand_fault(const LStmt *s, int lanes);
/* ---- rows of sums in registers (codegen/loop_passes/tile_rows.c) ---------------------------- */
enum { LOOP_TILE_MAX = 16 }; /* vectors of a tile, over all heads */
/* Whether s is a vector loop over `width` columns. */
bool loop_is_vector_loop_over(const LStmt *s, const Expr *width);
/* Whether the statement `tile`, which stands alone or ends the loop over heads `jam`, is legal as
 * the text has it. */
bool loop_may_tile(const LKernel *k, const LStmt *tile, const LStmt *jam);
/* The tile that ends the loop over heads, if only arrays are declared before it; NULL = there is
 * none. */
const LStmt *loop_jammed_tile(const LStmt *jam);
/* Whether the text says that the statement is run for one row after the other. */
bool loop_is_serial(const LStmt *s);
/* Whether the parallel loop can be run with a row per lane as its text says (LSched.rows). Defined
 * in codegen/loop_passes/vectorise_outer.c. */
bool loop_may_vectorise_outer(Arena *a, const LKernel *k, const LStmt *loop);
/* Runs `change`, which says whether it did, on each loop that is not inside a vector. */
bool loop_each_outside_vectors(Loops *l, LKernel *k,
                               bool (*change)(Loops *l, LKernel *k, LStmt *loop));

/* Numbers the kernel's registers in the order of the text. */
void loop_renumber_registers(LKernel *k);
/* Writes the remark of a pass on kernel k: what it has done, or, where `done` is NULL, why it did
 * nothing. */
void loop_remark(PassCtx *p, const LKernel *k, const char *pass, const char *done,
                 const char *why_not);

#endif
