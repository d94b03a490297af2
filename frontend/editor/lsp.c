#include "frontend/editor/lsp.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/editor/lsp_impl.h"

enum { MOST_CANCELLED = 64, ID_BYTES = 128 };

/* An id as JSON: a number or a short string. */
typedef struct {
    char text[ID_BYTES];
} Id;

struct Lsp {
    Allocator from;
    CliOptions options;
    Documents all;
    LspSend *send;
    void *user;
    bool initialized, shut, ended, deaf;
    bool can_watch; /* the editor reports files that change on the disk, if it is asked to */
    Id cancelled[MOST_CANCELLED]; /* the last ones, going round */
    int n_cancelled;
};

/* ---- beginning and end ---------------------------------------------------------------------- */
Lsp *lsp_new(const Allocator *from, const CliOptions *options, LspSend *send, void *user) {
    Lsp *l = from->alloc(from->user, sizeof *l);
    if (!l) return NULL;
    *l = (Lsp){.from = *from, .options = *options, .send = send, .user = user};
    l->all = (Documents){.from = &l->from, .options = &l->options};
    return l;
}

void lsp_free(Lsp *l) {
    if (!l) return;
    Allocator from = l->from;
    documents_free(&l->all);
    from.release(from.user, l);
}

bool lsp_ended_well(const Lsp *l) {
    return l->ended && l->shut;
}

/* ---- sending -------------------------------------------------------------------------------- */
static void send_text(Lsp *l, Arena *a, const StrBuf *b) {
    const char *whole = arena_printf(a, "Content-Length: %zu\r\n\r\n%s", b->n, b->s);
    if (!l->deaf) l->deaf = !l->send(l->user, whole, strlen(whole));
}

/* Without the arena: where memory ran out. */
static void send_refusal(Lsp *l, const Id *id, int code, const char *why) {
    char body[ID_BYTES + 256], whole[ID_BYTES + 320];
    snprintf(body, sizeof body,
             "{\"jsonrpc\": \"2.0\", \"id\": %s, \"error\": {\"code\": %d, \"message\": \"%s\"}}",
             id->text, code, why);
    int n = snprintf(whole, sizeof whole, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    if (!l->deaf) l->deaf = !l->send(l->user, whole, (size_t)n);
}

/* ---- reading -------------------------------------------------------------------------------- */
/* The host's allocator, with memory set to 0, for JSON. */
static void *zeroed(void *user, size_t n) {
    const Allocator *from = user;
    void *p = from->alloc(from->user, n);
    return p ? memset(p, 0, n) : NULL;
}

static void release(void *user, void *block) {
    const Allocator *from = user;
    from->release(from->user, block);
}

static void pool_init(Lsp *l, RtPool *pool) {
    const RtAlloc from = {.alloc = zeroed, .release = release, .user = &l->from};
    rt_pool_init(pool, &from);
}

/* False: the id is no number and no plain short string. */
static bool id_of(const RtJson *message, Id *to) {
    const RtJson *id = rt_json_get(message, "id");
    if (!id) return false;
    if (id->kind == RT_JSON_NUMBER && id->is_int) {
        snprintf(to->text, sizeof to->text, "%" PRId64, id->i);
        return true;
    }
    bool plain = id->kind == RT_JSON_STRING && strlen(id->text) < ID_BYTES - 3;
    for (const char *s = id->text; plain && *s; s++)
        plain = (unsigned char)*s >= 0x20 && *s != '"' && *s != '\\';
    if (plain) snprintf(to->text, sizeof to->text, "\"%s\"", id->text);
    return plain;
}

static const char *method_of(const RtJson *message) {
    const RtJson *method = rt_json_get(message, "method");
    return method && method->kind == RT_JSON_STRING ? method->text : NULL;
}

void lsp_foresee(Lsp *l, const char *text, size_t n) {
    RtPool pool;
    RtError err = {""};
    RtJson *message;
    pool_init(l, &pool);
    const RtBytes bytes = {(const uint8_t *)text, n};
    if (rt_json_parse(&pool, bytes, "message", &message, &err) == GNNC_OK) {
        const char *method = method_of(message);
        Id id;
        if (method && strcmp(method, "$/cancelRequest") == 0 &&
            id_of(rt_json_get(message, "params"), &id))
            l->cancelled[l->n_cancelled++ % MOST_CANCELLED] = id;
    }
    rt_pool_free(&pool);
}

/* Did the editor cancel this request before it was read? Forgets it then. */
static bool is_cancelled(Lsp *l, const Id *id) {
    for (int i = 0; i < MOST_CANCELLED; i++)
        if (strcmp(l->cancelled[i].text, id->text) == 0) {
            l->cancelled[i].text[0] = 0;
            return true;
        }
    return false;
}

/* ---- requests of the server itself ---------------------------------------------------------- */
/* Answers the first request: what this server can do. */
static void initialize(Request *r) {
    Json *j = r->j;
    json_object(j, "result");
    json_object(j, "capabilities");
    json_text(j, "positionEncoding", "utf-16");
    json_object(j, "textDocumentSync");
    json_bool(j, "openClose", true);
    json_int(j, "change", 2); /* by what changed */
    json_bool(j, "save", true);
    json_end(j);
    json_bool(j, "hoverProvider", true);
    json_bool(j, "definitionProvider", true);
    json_bool(j, "referencesProvider", true);
    json_bool(j, "documentFormattingProvider", true);
    json_bool(j, "documentSymbolProvider", true);
    json_object(j, "renameProvider");
    json_bool(j, "prepareProvider", true);
    json_end(j);
    json_object(j, "completionProvider");
    json_array(j, "triggerCharacters");
    json_text(j, NULL, ".");
    json_end(j);
    json_end(j);
    json_end(j);
    json_object(j, "serverInfo");
    json_text(j, "name", "gnnc");
    json_text(j, "version", GNNC_VERSION_TEXT);
    json_end(j);
    json_end(j);
}

static void shutdown_server(Request *r) {
    json_text(r->j, "result", NULL);
}

typedef struct {
    const char *method;
    LspAnswer *answer;
} Answer;

static const Answer answers[] = {
    {"initialize", initialize},
    {"shutdown", shutdown_server},
    {"textDocument/hover", lsp_hover},
    {"textDocument/definition", lsp_definition},
    {"textDocument/references", lsp_references},
    {"textDocument/prepareRename", lsp_prepare_rename},
    {"textDocument/rename", lsp_rename},
    {"textDocument/completion", lsp_completion},
    {"textDocument/formatting", lsp_formatting},
    {"textDocument/documentSymbol", lsp_symbols},
};

/* The function that answers a method; NULL: none does. */
static LspAnswer *find_answer(const char *method) {
    for (size_t i = 0; i < COUNT(answers); i++)
        if (strcmp(answers[i].method, method) == 0) return answers[i].answer;
    return NULL;
}

typedef struct {
    Lsp *l;
    const char *method;
    const RtJson *params;
    const Id *id;
} Call;

/* Can the editor tell when files change on disk? */
static bool can_watch(const RtJson *params) {
    const RtJson *workspace = rt_json_get(rt_json_get(params, "capabilities"), "workspace");
    const RtJson *watched = rt_json_get(workspace, "didChangeWatchedFiles");
    const RtJson *dynamic = rt_json_get(watched, "dynamicRegistration");
    return dynamic && dynamic->kind == RT_JSON_BOOL && dynamic->number != 0;
}

/* Answers a request: writes its result, or the error in place of it, and sends that. */
static void answer(Ctx *c, void *arg) {
    Call *call = arg;
    StrBuf b = sb_new(c->a);
    Json j = {.b = &b};
    Request r = {.all = &call->l->all, .c = c, .a = c->a, .params = call->params, .j = &j};
    LspAnswer *fn = find_answer(call->method);
    bool start = fn == initialize;
    json_object(&j, NULL);
    json_text(&j, "jsonrpc", "2.0");
    sb_printf(&b, ",\n \"id\": %s", call->id->text);
    if (is_cancelled(call->l, call->id))
        lsp_fail(&r, LSP_CANCELLED, "cancelled");
    else if (!call->l->initialized && !start)
        lsp_fail(&r, LSP_NOT_INITIALIZED, "not initialized");
    else if (call->l->shut || (start && call->l->initialized))
        lsp_fail(&r, LSP_INVALID_REQUEST, "not now");
    else if (!fn)
        lsp_fail(&r, LSP_UNKNOWN_METHOD, "there is no such method");
    else
        fn(&r);
    if (r.error) { /* what was written of a result goes */
        b.n = 0;
        j = (Json){.b = &b};
        json_object(&j, NULL);
        json_text(&j, "jsonrpc", "2.0");
        sb_printf(&b, ",\n \"id\": %s", call->id->text);
        json_object(&j, "error");
        json_int(&j, "code", r.error);
        json_text(&j, "message", r.message);
        json_end(&j);
    }
    json_end(&j);
    send_text(call->l, c->a, &b);
    if (!r.error && start) {
        call->l->initialized = true;
        call->l->can_watch = can_watch(call->params);
    }
    if (!r.error && fn == shutdown_server) call->l->shut = true;
}

/* ---- notifications -------------------------------------------------------------------------- */
static const char *text_of(const RtJson *object, const char *key) {
    const RtJson *t = rt_json_get(object, key);
    return t && t->kind == RT_JSON_STRING ? t->text : NULL;
}

static const char *uri_of(const RtJson *params) {
    return text_of(rt_json_get(params, "textDocument"), "uri");
}

static bool open_document(Lsp *l, const RtJson *params) {
    const char *uri = uri_of(params), *text = text_of(rt_json_get(params, "textDocument"), "text");
    return !uri || !text || documents_open(&l->all, uri, text);
}

/* Makes one change to a document's text: of a range, or all of it. What is no change is ignored;
 * false: no memory. */
static bool change(Lsp *l, Document *d, const RtJson *c) {
    const RtJson *range = rt_json_get(c, "range");
    const char *text = text_of(c, "text");
    TextPlace from, to;
    if (!text) return true;
    if (!range) return document_replace(&l->all, d, 0, d->n, text);
    if (!lsp_place(rt_json_get(range, "start"), &from) ||
        !lsp_place(rt_json_get(range, "end"), &to))
        return true;
    size_t a = text_offset(d->text, d->n, from), b = text_offset(d->text, d->n, to);
    return document_replace(&l->all, d, a < b ? a : b, a < b ? b : a, text);
}

/* Makes the changes that a message lists; false: no memory. */
static bool change_document(Lsp *l, const RtJson *params) {
    const char *uri = uri_of(params);
    Document *d = uri ? documents_find(&l->all, uri) : NULL;
    const RtJson *changes = rt_json_get(params, "contentChanges");
    bool ok = true;
    for (const RtJson *c = d && changes ? changes->first : NULL; c && ok; c = c->next)
        ok = change(l, d, c);
    return ok;
}

/* Begins a message that the server sends by itself, whose parameters follow. */
static void begin_message(Json *j, const char *method) {
    json_object(j, NULL);
    json_text(j, "jsonrpc", "2.0");
    json_text(j, "method", method);
}

/* Tells the editor that a document has no diagnostics, as it is closed. */
static void tell_nothing(Ctx *c, void *arg) {
    Call *call = arg;
    StrBuf b = sb_new(c->a);
    Json j = {.b = &b};
    begin_message(&j, "textDocument/publishDiagnostics");
    json_object(&j, "params");
    json_text(&j, "uri", call->method);
    json_array(&j, "diagnostics");
    json_end(&j);
    json_end(&j);
    json_end(&j);
    send_text(call->l, c->a, &b);
}

/* Runs fn with an arena of its own; false: no memory. */
static bool in_arena(Lsp *l, void (*fn)(Ctx *, void *), void *arg) {
    Ctx c;
    if (!ctx_init(&c, &l->from)) return false;
    bool ok = ctx_run(&c, fn, arg);
    ctx_free(&c);
    return ok;
}

/* Closes a document and takes its diagnostics back. */
static bool close_document(Lsp *l, const RtJson *params) {
    const char *uri = uri_of(params);
    Call call = {.l = l, .method = uri};
    if (!uri || !documents_find(&l->all, uri)) return true;
    documents_close(&l->all, uri);
    return in_arena(l, tell_nothing, &call);
}

/* A file that an open one imports may change on the disk: by git, or by another program. */
static void ask_to_watch(Ctx *c, void *arg) {
    Call *call = arg;
    StrBuf b = sb_new(c->a);
    Json j = {.b = &b};
    begin_message(&j, "client/registerCapability");
    json_text(&j, "id", "watch");
    json_object(&j, "params");
    json_array(&j, "registrations");
    json_object(&j, NULL);
    json_text(&j, "id", "gnn-files");
    json_text(&j, "method", "workspace/didChangeWatchedFiles");
    json_object(&j, "registerOptions");
    json_array(&j, "watchers");
    json_object(&j, NULL);
    json_text(&j, "globPattern", "**/*.gnn");
    for (int open = 7; open; open--) json_end(&j);
    send_text(call->l, c->a, &b);
}

/* Tells the user that a change was lost for want of memory, without allocating. */
static void warn_of_memory(Lsp *l) {
    static const char body[] = "{\"jsonrpc\": \"2.0\", \"method\": \"window/showMessage\", "
                               "\"params\": {\"type\": 1, \"message\": \"gnnc: out of memory: the "
                               "text that it has is not the editor's\"}}";
    char whole[sizeof body + 64];
    int n = snprintf(whole, sizeof whole, "Content-Length: %zu\r\n\r\n%s", sizeof body - 1, body);
    if (!l->deaf) l->deaf = !l->send(l->user, whole, (size_t)n);
}

/* A text that could not be changed is closed: what would be said of it would be wrong. */
static void notify(Lsp *l, const char *method, const RtJson *params) {
    Call call = {.l = l};
    bool ok = true;
    if (strcmp(method, "exit") == 0) l->ended = true;
    if (!l->initialized || l->shut) return;
    if (strcmp(method, "textDocument/didOpen") == 0) ok = open_document(l, params);
    if (strcmp(method, "textDocument/didChange") == 0) ok = change_document(l, params);
    if (strcmp(method, "textDocument/didClose") == 0) ok = close_document(l, params);
    if (strcmp(method, "textDocument/didSave") == 0 ||
        strcmp(method, "workspace/didChangeWatchedFiles") == 0)
        documents_doubt(&l->all);
    if (strcmp(method, "initialized") == 0 && l->can_watch) ok = in_arena(l, ask_to_watch, &call);
    if (ok) return;
    if (uri_of(params)) documents_close(&l->all, uri_of(params));
    warn_of_memory(l);
}

/* ---- messages ------------------------------------------------------------------------------- */
/* Handles one message of the editor: a request is answered, a notification noted, a reply
 * ignored. */
static void take(Lsp *l, const RtJson *message) {
    const char *method = method_of(message);
    const RtJson *params = rt_json_get(message, "params");
    Id id = {"null"};
    bool request = rt_json_get(message, "id") != NULL;
    if (!method) {
        bool reply = rt_json_get(message, "result") || rt_json_get(message, "error");
        if (!reply) send_refusal(l, &id, LSP_INVALID_REQUEST, "this is no message");
    } else if (!request)
        notify(l, method, params);
    else if (!id_of(message, &id))
        send_refusal(l, &id, LSP_INVALID_REQUEST, "the id is no whole number and no short text");
    else {
        Call call = {.l = l, .method = method, .params = params, .id = &id};
        if (!in_arena(l, answer, &call)) send_refusal(l, &id, LSP_INTERNAL, "out of memory");
    }
}

bool lsp_take(Lsp *l, const char *text, size_t n) {
    const Id nobody = {"null"};
    RtPool pool;
    RtError err = {""};
    RtJson *message;
    pool_init(l, &pool);
    const RtBytes bytes = {(const uint8_t *)text, n};
    gnnc_status st = rt_json_parse(&pool, bytes, "message", &message, &err);
    if (st == GNNC_OK)
        take(l, message);
    else
        send_refusal(l, &nobody, st == GNNC_E_NOMEM ? LSP_INTERNAL : LSP_PARSE_ERROR,
                     st == GNNC_E_NOMEM ? "out of memory" : "this is no JSON");
    rt_pool_free(&pool);
    return !l->ended && !l->deaf;
}

typedef struct {
    Lsp *l;
    Document *d;
} Tell;

/* Sends a document's diagnostics. */
static void tell(Ctx *c, void *arg) {
    Tell *t = arg;
    StrBuf b = sb_new(c->a);
    Json j = {.b = &b};
    begin_message(&j, "textDocument/publishDiagnostics");
    lsp_diagnostics(&j, t->d);
    json_end(&j);
    send_text(t->l, c->a, &b);
}

void lsp_idle(Lsp *l) {
    for (int i = 0; i < l->all.n; i++) {
        Tell t = {l, l->all.open[i]};
        if (t.d->told) continue;
        t.d->told = true;
        if (document_analyse(&l->all, t.d)) in_arena(l, tell, &t);
    }
}
