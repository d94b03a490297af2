/* Numbers by which passes decide: thresholds.def has each once, with its range and what it is
 * usually; a compile has its own (Ctx.thresholds), so that a choice can be tried without building
 * gnnc. */
#ifndef PASSES_THRESHOLD_H
#define PASSES_THRESHOLD_H

#include "ir/base.h"

typedef enum {
#define THRESHOLD(id, pass, name, usual, least, most, what) PASS_T_##id,
#include "passes/thresholds.def"
#undef THRESHOLD
    N_PASS_THRESHOLDS
} PassThreshold;

typedef struct {
    const char *pass, *name, *what; /* "fuse", "max-loads" */
    int usual, least, most;
} PassThresholdText;

const PassThresholdText *pass_threshold_text(PassThreshold t);
/* What it is in this compile. */
int pass_threshold(const Ctx *c, PassThreshold t);
/* Which one is called "fuse.max-loads", the first n of name; N_PASS_THRESHOLDS: none. */
PassThreshold pass_threshold_find(const char *name, size_t n);
/* Those of the compile that are not as usual, " --fuse.max-loads=12 --remat.min-gap=2". */
void pass_thresholds_put(StrBuf *b, const Ctx *c);

#endif
