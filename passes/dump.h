/* What is shown of an IR's text: the difference that a pass made, and the part that is asked for.
 */
#ifndef PASSES_DUMP_H
#define PASSES_DUMP_H

#include "ir/base.h"

/* Both texts by lines, as `diff -u` shows them, without the names of files; behind each place the
 * function, phase or kernel that it is in.  Nothing where they are equal. */
void dump_diff(StrBuf *b, const char *before, const char *after);

/* By line of `old`, from 0 on: which one of `new` is the same; -1: none is. */
const int *dump_align(Arena *a, const char *old, const char *new);
/* `old`, with the names that its values have in `new`; what another one is called there has a '
 * behind its name. (rename.c) */
const char *dump_renamed(Arena *a, const char *old, const char *new);

/* Of a module, a plan or kernels what `terms` asks for, "@train,%z": functions and phases by their
 * name behind a '@', kernels by theirs, either as a pattern of fnmatch(3); lines of a value, "%z",
 * and of a place in the model, "gcn.gnn:12" or ":12".  A line is there if it is in one of the
 * former, where any is asked for, and is one of the latter, where any is; so is what its block
 * begins with.  NULL: all of it. */
const char *dump_filter(Arena *a, const char *text, const char *terms);
/* May these be asked for?  NULL: yes; else why not. */
const char *dump_bad_filter(Arena *a, const char *terms);

/* The length of what a function, phase or kernel is called in its first line, `*name`; 0: the line
 * begins none. */
size_t dump_block(const char *line, const char **name);

#endif
