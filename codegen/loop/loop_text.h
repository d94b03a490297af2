/* Keywords that the printer and the parser of the loop IR share. */
#ifndef CODEGEN_LOOP_TEXT_H
#define CODEGEN_LOOP_TEXT_H

#include "codegen/loop/loop.h"
#include "ir/parse.h"

/* One kernel, from the word `kernel` on: for texts that hold more than kernels (loop_parse.c).
 * of: the name of the one that it is a stage of, or NULL. */
bool loop_parse_one(Parser *p, LKernel *k, const char **of);

extern const char *const loop_fn_words[]; /* by LFn; L_FN_OP is spelled as the graph op */
extern const int loop_n_fn;
extern const char *const loop_share_words[]; /* by LShare: " by ways" */
extern const char *const loop_taker_words[]; /* by LTaker */
extern const char *const loop_part_words[];  /* by LBufKind: the parts of a map */

#endif
