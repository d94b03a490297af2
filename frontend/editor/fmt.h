/* The canonical layout of a .gnn file (docs/editor.md). */
#ifndef FRONTEND_EDITOR_FMT_H
#define FRONTEND_EDITOR_FMT_H

#include "ir/base.h"

/* The text of c's source `file` in the canonical layout, of *n bytes; NULL after diagnostics of a
 * text that cannot be read. */
const char *fmt_text(Ctx *c, uint32_t file, size_t *n);

#endif
