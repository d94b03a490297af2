/* What the printer and the parser of the step plan share. */
#ifndef CODEGEN_PLAN_TEXT_H
#define CODEGEN_PLAN_TEXT_H

#include "codegen/plan/plan.h"
#include "ir/sources.h"

#define PLAN_INSTANCE "  (in " /* what stands behind a step's note begins so */

extern const Words plan_fact_words;   /* by bit of PLAN_* */
extern const Words plan_spmm_words;   /* by SpmmChoice */
extern const Words plan_fusion_words; /* by PFusionKind */

/* A part of a step's line: a row PART of steps.def. */
typedef struct PStepPartText {
    PStepPart part; /* 0 ends the list */
    const char *word;
    size_t offset; /* in PStep */
} PStepPartText;
/* Whether the line of the step has the part. */
bool plan_step_has(const PStep *s, const PStepPartText *part);

/* Behind the steps: for each phase what its steps are for, then what holds of all. */
void plan_print_facts(StrBuf *b, const Plan *p);

/* What a step's line says in words, as it is; NULL: nothing. */
typedef struct {
    const char *epilogue, *call, *spmm, *note;
} PlanTails;

/* While a plan is read. */
typedef struct {
    Parser p; /* within a section of the text, or a line of it */
    Plan *plan;
    PPhase *ph;
    StrMap bufs, kernels; /* by name */
    VEC(ParseNames) names;
    VEC(PlanTails) tails; /* by step of the phase */
    int n_spmm;
} PlanReader;

/* One line of a phase: a step, or a loop over blocks.  (plan_parse_step.c) */
bool plan_parse_step(PlanReader *r, const char *end);
/* What needs all steps of the phase. */
bool plan_parse_match(PlanReader *r);
/* After `facts @train {`, and after `plan {`.  (plan_parse_facts.c) */
bool plan_parse_facts(PlanReader *r);
bool plan_parse_fusions(PlanReader *r); /* after `fusions @train {` */
bool plan_parse_header(PlanReader *r);

bool plan_parse_buf(PlanReader *r, int *buf); /* by its name */
/* Two numbers, `3..14`, behind the word at hand. */
bool plan_parse_range(PlanReader *r, int *first, int *last);

#endif
