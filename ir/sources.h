/* The section `sources { .. }` of a text (ir/sources.c). */
#ifndef IR_SOURCES_H
#define IR_SOURCES_H

#include "ir/parse.h"

/* What stands between its braces: files that positions name, but the text's own. */
void module_print_sources(StrBuf *b, const Module *m, uint32_t own_file);
/* The section at from, which is at the start of `line`.  *first: its first file, where it was 0.
 * False after a diagnostic. */
bool parse_sources(Parser *p, const char *from, const char *to, uint32_t line, uint32_t *first);
/* Behind the end of the line that begins at s. */
const char *text_line_end(const char *s, const char *end);

#endif
