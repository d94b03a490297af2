/* A text that an editor has open, and what the compiler knows of it. */
#ifndef FRONTEND_EDITOR_DOCUMENT_H
#define FRONTEND_EDITOR_DOCUMENT_H

#include "frontend/cli/cli.h"
#include "frontend/editor/scope.h"
#include "runtime/data/json.h"

/* What a line of the model costs a step of training, of one kernel or library call. */
typedef struct {
    uint32_t line;
    const char *text;
} LineCost;

typedef struct {
    char *uri, *path, *text;
    size_t n;
    bool told;  /* its diagnostics are those of this text */
    bool known; /* `ctx` and `notes` are of this text */
    bool has_ctx, has_costs;
    Ctx ctx, cost_ctx;
    FeNotes notes;
    VEC(LineCost) costs; /* in cost_ctx */
} Document;

typedef struct {
    const Allocator *from;
    const CliOptions *options; /* -I, -D, --model, --specialize */
    Document **open;
    int n, cap;
} Documents;

/* All return false, or NULL, where memory ran out; then nothing has changed. */
Document *documents_find(const Documents *all, const char *uri); /* NULL: not open */
/* Opens a document with this text, anew if it was open; false: no memory. */
bool documents_open(Documents *all, const char *uri, const char *text);
/* Closes a document, if it is open. */
void documents_close(Documents *all, const char *uri);
void documents_free(Documents *all);
/* Files on the disk may have changed: each document is compiled anew when it is next asked for. */
void documents_doubt(Documents *all);
/* The bytes [from, to) become `text`. */
bool document_replace(Documents *all, Document *d, size_t from, size_t to, const char *text);

/* Compiles it, unless that was done. */
bool document_analyse(const Documents *all, Document *d);
/* The same of other text in its place, in a fresh Ctx that the caller frees; `ask` as in FeNotes.
 */
bool document_try(const Documents *all, const Document *d, const char *text, size_t n,
                  const char *ask, Ctx *c, FeNotes *notes);
/* The costs of its lines, as far as the model can be compiled. */
void document_price(const Documents *all, Document *d);

#endif
