/* Which step computes which value, and what became of it: the facts of --report=fusion. */
#ifndef CODEGEN_FUSION_FACTS_H
#define CODEGEN_FUSION_FACTS_H

#include "codegen/report/report.h"

typedef VEC(const Op *) Ops;
typedef VEC(int) StepList;
/* A reason why a value is stored: its text, and the kernel that reads the value. */
typedef struct {
    const char *text, *reader; /* of a kernel that reads it there may be several; NULL: no kernel */
    bool via_other;            /* it reads it only behind something else that it needs */
    const char *remedy;        /* what would change it; NULL: nothing that can be set */
} Reason;
typedef VEC(Reason) Reasons;

/* What each step of a phase computes and stores. */
typedef struct {
    const Module *m;
    const PPhase *ph;
    Ops *results;          /* by step: the values it leaves in memory */
    bool *is_stored;       /* by operation: some step leaves it in memory */
    StepList *computed_in; /* by operation: steps that compute it, in order */
    Ops *users;            /* by operation: the ops that read it, each once */
} FusionFacts;

/* Finds the facts about a phase. */
FusionFacts fusion_analyze(const Report *r, const PPhase *ph);
Ops fusion_computed(const Report *r, const FusionFacts *f, int step); /* those it stores last */
/* Values computed in a step that have no buffer, and the bytes that this saves: a read,
 * and in the first step that computes it the write. */
Ops fusion_elided(const Report *r, const FusionFacts *f, int step);
const Expr *fusion_saved_bytes(const Report *r, const FusionFacts *f, int step);
/* Who needs a stored value in memory: every cause, or of each kernel that reads it the one that
 * would be left if all others fell. */
Reasons fusion_reasons(const Report *r, const FusionFacts *f, const Op *value, bool all);

#endif
