/* The language server with its n-th block of memory refused, for every n: it refuses what it could
 * not do, goes on, and nothing stays behind. */
#include "frontend/editor/lsp.h"

#include <string.h>

#include "ctx_test.h"

enum { BLOCK_BYTES = 16 * 1024 };

#define TEXT                                                                                       \
    "graph G { node n { x: f32[F];  y: class[C];  split } edge e: n -> n }\\n"                     \
    "model M(g: G; hidden: int = 8) -> f32[n, C] {\\n"                                             \
    "  a = linear(hidden)\\n"                                                                      \
    "  h = relu(a(mean(g.n.x[g.e.src], over = g.e.dst)))\\n"                                       \
    "  return linear(C)(h)\\n"                                                                     \
    "}\\n"
#define AT(METHOD, LINE, CHARACTER)                                                                \
    "{\"id\": 3, \"method\": \"textDocument/" METHOD                                               \
    "\", \"params\": {\"textDocument\": {\"uri\": "                                                \
    "\"file:///m.gnn\"}, \"position\": {\"line\": " LINE ", \"character\": " CHARACTER             \
    "}, \"newName\": \"z\"}}"

static const char *const messages[] = {
    "{\"id\": 1, \"method\": \"initialize\", \"params\": {\"capabilities\": {\"workspace\": "
    "{\"didChangeWatchedFiles\": {\"dynamicRegistration\": true}}}}}",
    "{\"method\": \"initialized\"}",
    "{\"method\": \"textDocument/didOpen\", \"params\": {\"textDocument\": {\"uri\": "
    "\"file:///m.gnn\", "
    "\"text\": \"" TEXT "\"}}}",
    "{\"method\": \"textDocument/didChange\", \"params\": {\"textDocument\": {\"uri\": "
    "\"file:///m.gnn\"}, "
    "\"contentChanges\": [{\"range\": {\"start\": {\"line\": 2, \"character\": 2}, \"end\": "
    "{\"line\": 2, "
    "\"character\": 3}}, \"text\": \"a\"}]}}",
    AT("hover", "3", "2"),
    AT("definition", "4", "19"),
    AT("references", "3", "2"),
    AT("rename", "3", "2"),
    AT("prepareRename", "3", "2"),
    AT("completion", "3", "4"),
    AT("completion", "3", "20"),
    AT("formatting", "0", "0"),
    AT("documentSymbol", "0", "0"),
    "{\"method\": \"workspace/didChangeWatchedFiles\"}",
    "{\"id\": 4, \"method\": \"no/such\"}",
    "{\"id\": 5, \"method\": \"shutdown\"}",
    "{\"method\": \"exit\"}",
};

typedef struct {
    int sent, refused, ours; /* ours: for want of memory */
} Sent;

static bool take(void *user, const char *text, size_t n) {
    Sent *s = user;
    s->sent++;
    s->refused += memmem(text, n, "\"error\"", 7) != NULL;
    s->ours += strstr(text, "out of memory") || strstr(text, "could not be compiled");
    return true;
}

/* Refuses the n-th block alone, or all from there on; counts those that are not given back. */
typedef struct {
    long n, nth, live;
    bool on;
} Refusing;

static void *refusing_alloc(void *user, size_t n) {
    Refusing *r = user;
    bool refused = r->on ? r->n >= r->nth : r->n == r->nth;
    r->n++;
    if (refused) return NULL;
    r->live++;
    return malloc(n);
}

static void refusing_release(void *user, void *block) {
    ((Refusing *)user)->live -= block != NULL;
    free(block);
}

/* True: nothing was refused. */
static bool serves(long nth, bool on, Sent *s) {
    Refusing r = {.nth = nth, .on = on};
    const Allocator from = {refusing_alloc, refusing_release, &r, BLOCK_BYTES};
    CliOptions o = cli_defaults();
    const char *dirs[] = {"models"};
    o.includes.v = dirs;
    o.includes.n = 1;
    *s = (Sent){.sent = 0};
    Lsp *l = lsp_new(&from, &o, take, s);
    for (size_t i = 0; l && i < COUNT(messages); i++) {
        bool last = i + 1 == COUNT(messages), more = lsp_take(l, messages[i], strlen(messages[i]));
        CHECK_MSG(last || more, "block %ld, message %zu", nth, i);
        lsp_idle(l);
    }
    lsp_free(l);
    CHECK_MSG(r.live == 0, "block %ld: %ld blocks stay", nth, r.live);
    return r.n <= nth;
}

TEST(every_block_refused) {
    for (int on = 0; on < 2; on++) {
        Sent s;
        long n = 0;
        while (n < 20000 && !serves(n, on, &s)) n++;
        CHECK_MSG(n > 10 && n < 20000, "%ld blocks", n);
    }
}

TEST(every_request_is_answered) {
    Sent s;
    CHECK(serves(1L << 40, true, &s));
    CHECK_MSG(s.refused == 1 && s.ours == 0, "%d refused", s.refused); /* no/such */
    CHECK_MSG(s.sent == 1 + 12 + 3, "%d sent", s.sent); /* to watch; what is wrong, three times */
}

TEST_MAIN()
