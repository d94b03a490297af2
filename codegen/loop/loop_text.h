/* What the printer and the parser of the loop IR share: keywords, and the lines of statements. */
#ifndef CODEGEN_LOOP_TEXT_H
#define CODEGEN_LOOP_TEXT_H

#include "codegen/loop/loop.h"
#include "ir/parse.h"

/* When a part is there, as bits; statements.def says what the words mean. */
typedef enum { LW_ALWAYS = 0, LW_MAYBE = 1, LW_THEN = 2, LW_THEN_MAYBE = 3 } LWhen;
/* A part of a statement's line: a row PART of statements.def. */
typedef struct {
    LPart part; /* 0 ends the list */
    LWhen when;
    const char *word;
    size_t offset; /* in LStmt */
    int least, most;
    const char *first, *second; /* LP_CHOICE */
} LPartText;
/* The line of a kind of statements. */
typedef struct {
    const char *word;
    const LPartText *parts;
} LLine;
extern const LLine loop_lines[LOOP_N_STMTS];
/* Whether the field of a part that may be left out is not 0. */
bool loop_has_field(const LStmt *s, const LPartText *part);

/* One kernel, from the word `kernel` on: for texts that hold more than kernels (loop_parse.c).
 * of: the name of the one that it is a stage of, or NULL. */
bool loop_parse_one(Parser *p, LKernel *k, const char **of);

extern const char *const loop_fn_words[]; /* by LFn; L_FN_OP is spelled as the graph op */
extern const int loop_n_fn;
extern const char *const loop_share_words[]; /* by LShare: " by ways" */
extern const char *const loop_taker_words[]; /* by LTaker */
extern const char *const loop_part_words[];  /* by LBufKind: the parts of a map */

#endif
