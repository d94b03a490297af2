/* Between lsp.c, which speaks the protocol, and lsp_answer.c, which knows the answers. */
#ifndef FRONTEND_EDITOR_LSP_IMPL_H
#define FRONTEND_EDITOR_LSP_IMPL_H

#include "codegen/report/report.h"
#include "frontend/editor/document.h"
#include "frontend/editor/text.h"

typedef enum {
    LSP_PARSE_ERROR = -32700,
    LSP_INVALID_REQUEST = -32600,
    LSP_UNKNOWN_METHOD = -32601,
    LSP_INVALID_PARAMS = -32602,
    LSP_INTERNAL = -32603,
    LSP_NOT_INITIALIZED = -32002,
    LSP_CANCELLED = -32800,
    LSP_FAILED = -32803,
} LspError;

/* A request while it is answered.  An answer writes the member "result" to `j`, or sets `error`. */
typedef struct {
    Documents *all;
    Ctx *c; /* whose arena the answer lives in */
    Arena *a;
    const RtJson *params;
    Json *j;
    int error; /* LspError; 0 = none */
    const char *message;
} Request;

typedef void LspAnswer(Request *r);
LspAnswer lsp_hover, lsp_definition, lsp_references, lsp_prepare_rename, lsp_rename, lsp_completion,
    lsp_formatting, lsp_symbols;

/* What is wrong with a document, as the parameters of publishDiagnostics. */
void lsp_diagnostics(Json *j, Document *d);

void lsp_fail(Request *r, LspError error, const char *why);
/* The document that the parameters name; NULL: it is not open, and that was said. */
Document *lsp_document(Request *r);
bool lsp_place(const RtJson *position, TextPlace *to); /* false: it is none */
void lsp_put_range(Json *j, const char *key, const char *text, size_t n, size_t from, size_t to);

#endif
