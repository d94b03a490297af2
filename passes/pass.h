/* A pass is a value: it can be named, listed, timed, verified and run alone on
 * textual IR (gnnc opt file.gir --passes=a,b).  passes.def lists each once;
 * pipelines are lists of names.  The driver checks `needs`, verifies after each
 * pass when asked to, and blames the pass that broke the IR. */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "ir/ir.h"

typedef struct PassCtx {
    Ctx *ctx;
    Arena *a;
    StrBuf *remarks; /* what was done and why not, one line each; NULL = nobody asks */
} PassCtx;

typedef struct Pass {
    const char *name;                   /* "fuse" */
    const char *summary;                /* one line, for --help and docs/passes.md */
    unsigned needs, gives, breaks;      /* IR_* facts */
    bool (*run)(PassCtx *p, Module *m); /* false = diagnostics were added */
} Pass;

#define PASS(id) extern const Pass pass_##id;
#include "passes.def"
#undef PASS

const Pass *pass_find(const char *name); /* NULL when there is none */
int pass_count(void);
const Pass *pass_at(int i);

typedef struct {
    bool verify_each;
    bool time_passes;
    const char *print_before, *print_after; /* pass name, "all", or NULL */
    bool print_changed;
    FILE *dump; /* where dumps and times go */
    StrBuf *remarks;
} PassOptions;

/* Comma-separated names.  False after diagnostics (unknown name, unmet need, failure). */
bool passes_run(Ctx *c, Module *m, const char *names, const PassOptions *opt);

/* The standard pipelines: "-O0", "-O2".  keep_grads leaves `output "grad.*"` instead
 * of parameter updates (used by gradient tests). */
const char *passes_pipeline(int opt_level, bool keep_grads);

#endif
