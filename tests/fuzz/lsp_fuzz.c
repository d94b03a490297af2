/* Fuzz target: what an editor sends.  Records end with byte 30; the first byte of each says what it
 * is: 't' a text that is opened, 'i' one that stands for the one before from the place of the next
 * two bytes on, 'j' a message as it stands, else a request at the place of the two bytes behind it.
 * Nothing may crash or leak. */
#include "frontend/editor/lsp.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define URI "file:///fuzz/model.gnn"

static void *fuzz_alloc(void *user, size_t n) {
    (void)user;
    return malloc(n);
}

static void fuzz_free(void *user, void *block) {
    (void)user;
    free(block);
}

static bool send(void *user, const char *text, size_t n) {
    size_t *all = user;
    *all += n;
    return text[n] == 0 && *all < (size_t)1 << 30;
}

typedef struct {
    Lsp *l;
    const uint8_t *record;
    size_t n;
} Record;

static void put_place(Json *j, const char *key, const Record *r) {
    json_object(j, key);
    json_int(j, "line", r->n > 1 ? r->record[1] : 0);
    json_int(j, "character", r->n > 2 ? r->record[2] : 0);
    json_end(j);
}

static void begin(Json *j, const char *method, bool request) {
    json_object(j, NULL);
    if (request) json_int(j, "id", 7);
    json_text(j, "method", method);
    json_object(j, "params");
    json_object(j, "textDocument");
    json_text(j, "uri", URI);
}

static const char *method_for(uint8_t c) {
    static const char *const methods[] = {"hover",      "definition",   "references",
                                          "completion", "formatting",   "documentSymbol",
                                          "rename",     "prepareRename"};
    return methods[c % COUNT(methods)];
}

static void send_record(Ctx *c, void *arg) {
    Record *r = arg;
    StrBuf b = sb_new(c->a);
    Json j = {.b = &b};
    const char *rest = arena_strndup(c->a, (const char *)r->record + 1, r->n - 1);
    if (*r->record == 't') {
        begin(&j, "textDocument/didOpen", false);
        json_text(&j, "text", rest);
        json_end(&j);
    } else if (*r->record == 'i' && r->n > 3) {
        begin(&j, "textDocument/didChange", false);
        json_end(&j);
        json_array(&j, "contentChanges");
        json_object(&j, NULL);
        json_object(&j, "range");
        put_place(&j, "start", r);
        put_place(&j, "end", r);
        json_end(&j);
        json_text(&j, "text", rest + 2);
        json_end(&j);
        json_end(&j);
    } else {
        begin(&j, arena_printf(c->a, "textDocument/%s", method_for(*r->record)), true);
        json_end(&j);
        put_place(&j, "position", r);
        json_text(&j, "newName", "renamed");
    }
    json_end(&j);
    json_end(&j);
    lsp_take(r->l, b.s, b.n);
    if (*r->record == 't' || *r->record == 'i') lsp_idle(r->l);
}

static void take_record(Record r) {
    Ctx c;
    if (*r.record == 'j') {
        lsp_foresee(r.l, (const char *)r.record + 1, r.n - 1);
        lsp_take(r.l, (const char *)r.record + 1, r.n - 1);
    } else if (ctx_init(&c, NULL)) {
        ctx_run(&c, send_record, &r);
        ctx_free(&c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char start[] = "{\"id\": 1, \"method\": \"initialize\", \"params\": {}}";
    const Allocator from = {.alloc = fuzz_alloc, .release = fuzz_free};
    CliOptions o = cli_defaults();
    size_t sent = 0;
    const char *dirs[] = {"models"};
    o.includes.v = dirs;
    o.includes.n = 1;
    Lsp *l = lsp_new(&from, &o, send, &sent);
    if (!l) return 0;
    lsp_take(l, start, sizeof start - 1);
    while (n) {
        const uint8_t *end = memchr(data, 30, n);
        size_t k = end ? (size_t)(end - data) : n;
        if (k) take_record((Record){l, data, k});
        data += end ? k + 1 : k;
        n -= end ? k + 1 : k;
    }
    lsp_free(l);
    return 0;
}
