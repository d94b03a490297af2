/* A language server: one message in, answers out (Language Server Protocol 3.17, docs/editor.md).
 * One thread; nothing is printed, and what an editor sends can at most be refused. */
#ifndef FRONTEND_EDITOR_LSP_H
#define FRONTEND_EDITOR_LSP_H

#include "frontend/cli/cli.h"

typedef struct Lsp Lsp;
/* A whole message with its header; false: nobody reads any more. */
typedef bool LspSend(void *user, const char *text, size_t n);

/* options: -I, -D, --model and --specialize are heeded; kept.  NULL: no memory. */
Lsp *lsp_new(const Allocator *from, const CliOptions *options, LspSend *send, void *user);
void lsp_free(Lsp *l);
/* A message that waits: if it cancels one that waits before it, that one will not be done. */
void lsp_foresee(Lsp *l, const char *text, size_t n);
/* Does what a message asks for.  False: it was the last one. */
bool lsp_take(Lsp *l, const char *text, size_t n);
/* Nothing waits: tells what is wrong with texts that have changed. */
void lsp_idle(Lsp *l);
/* After the last message: was it told to end, and had it shut down? */
bool lsp_ended_well(const Lsp *l);

#endif
