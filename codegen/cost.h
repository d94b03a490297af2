/* What a step of the plan moves and computes, as functions of the sizes.  Read off the
 * loop IR that code is made from, so the numbers are those of the program, not of what
 * a pass meant to do.  The reports print them; the driver's tables carry them, and
 * `./train --profile` divides them by measured times. */
#ifndef CODEGEN_COST_H
#define CODEGEN_COST_H

#include "codegen/plan/plan.h"

/* What a step moves and computes, as expressions over the sizes. */
typedef struct {
    const Expr *read;     /* bytes loaded from buffers; what is read again in a row counts once */
    const Expr *gathered; /* the part of `read` whose place is data: once per entry of a map */
    const Expr *written;  /* bytes */
    const Expr *flops;    /* f32 and f64 arithmetic; a function such as exp counts as one */
} StepCost;

/* The bytes read, gathered and written, and the FLOPs, of a step of the plan, as functions of
 * sizes. */
StepCost cg_step_cost(Arena *a, const Plan *p, const PStep *s);

/* What a kernel, as it stands, reads or writes of one buffer: so many elements, each counted as in
 * StepCost. */
typedef struct {
    const LBuf *buf;
    const Expr *count;
    bool gathered, written;
} CostAccess;
typedef VEC(CostAccess) CostAccesses;
/* The accesses of a kernel without stages; *flops: its FLOPs. */
CostAccesses cg_kernel_accesses(Arena *a, const LKernel *k, const Expr **flops);

/* The same by lines of the model: what their statements move and compute.  Each access is of the
 * first statement that makes it. */
typedef struct {
    Span at;
    const Expr *bytes, *flops; /* read and written */
} CostLine;
typedef VEC(CostLine) CostLines;
/* The cost of a step, divided among the lines of the model that it computes. */
CostLines cg_step_cost_lines(Arena *a, const Plan *p, const PStep *s);

/* As seen from the model's folder; what came with the compiler is in "layers". */
const char *cg_path_short(const Module *m, uint32_t file);
/* Lines whose operations the step computes: "gcn.gnn:13 layers/gcn.gnn:17,21";
 * full_paths: with whole paths. */
const char *cg_step_lines(const Module *m, Arena *a, const PStep *s, bool full_paths);
/* The user's own among them, and the calls of his that led to the library's: "gcn.gnn:13". */
const char *cg_step_site(const Module *m, Arena *a, const PStep *s);
/* .. and whose those calls are, the step's own first: "gcn.gnn:13 (in conv1, cross_entropy)". */
const char *cg_step_origin(const Module *m, Arena *a, const PStep *s);
/* The kernel's name, or "gemm", "rank", .. */
const char *cg_step_name(const PStep *s);
/* 2708x16x1433 where it is a matrix product, as an expression; else the loop's extent. */
const char *cg_step_shape(Arena *a, const PStep *s);

#endif
