#include "frontend/editor/document.h"

#include <string.h>

#include "codegen/cost.h"
#include "frontend/editor/text.h"

/* ---- open texts ------------------------------------------------------------------------------ */
/* A copy of n bytes as a string, by the host's allocator; NULL: no memory. */
static char *keep(const Documents *all, const char *s, size_t n) {
    char *copy = all->from->alloc(all->from->user, n + 1);
    if (!copy) return NULL;
    memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

static void drop(const Documents *all, void *block) {
    if (block) all->from->release(all->from->user, block);
}

/* Drops what was computed of the present text. */
static void forget(Document *d) {
    if (d->has_ctx) ctx_free(&d->ctx);
    if (d->has_costs) ctx_free(&d->cost_ctx);
    d->has_ctx = d->has_costs = d->known = false;
    d->costs.n = d->costs.cap = 0;
    d->notes = (FeNotes){.ask = NULL};
}

/* Frees a document with its text. */
static void document_free(const Documents *all, Document *d) {
    if (!d) return;
    forget(d);
    drop(all, d->uri);
    drop(all, d->path);
    drop(all, d->text);
    drop(all, d);
}

Document *documents_find(const Documents *all, const char *uri) {
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->open[i]->uri, uri) == 0) return all->open[i];
    return NULL;
}

typedef struct {
    const Documents *all;
    const char *uri;
    char *path;
} PathOf;

/* Finds the path that a URI names, for path_of(): the decoder needs an arena. */
static void find_path(Ctx *c, void *arg) {
    PathOf *p = arg;
    const char *path = ctx_plain_path(c->a, text_path_of_uri(c->a, p->uri));
    p->path = keep(p->all, *path ? path : "?", *path ? strlen(path) : 1);
}

/* The path that a URI names, by the host's allocator; NULL: no memory. */
static char *path_of(const Documents *all, const char *uri) {
    PathOf p = {.all = all, .uri = uri};
    Ctx c;
    if (!ctx_init(&c, all->from)) return NULL;
    ctx_run(&c, find_path, &p);
    ctx_free(&c);
    return p.path;
}

/* Makes room for one more open document; false: no memory. */
static bool make_room(Documents *all) {
    if (all->n < all->cap) return true;
    int cap = all->cap ? 2 * all->cap : 8;
    Document **wider = all->from->alloc(all->from->user, sizeof(Document *) * (size_t)cap);
    if (!wider) return false;
    if (all->n) memcpy(wider, all->open, sizeof(Document *) * (size_t)all->n);
    drop(all, all->open);
    all->open = wider;
    all->cap = cap;
    return true;
}

/* What is open may import what has changed. */
void documents_doubt(Documents *all) {
    for (int i = 0; i < all->n; i++) all->open[i]->known = all->open[i]->told = false;
}

bool documents_open(Documents *all, const char *uri, const char *text) {
    documents_close(all, uri);
    if (!make_room(all)) return false;
    Document *d = all->from->alloc(all->from->user, sizeof *d);
    if (!d) return false;
    *d = (Document){.n = strlen(text)};
    d->uri = keep(all, uri, strlen(uri));
    d->text = keep(all, text, d->n);
    d->path = path_of(all, uri);
    if (!d->uri || !d->text || !d->path) {
        document_free(all, d);
        return false;
    }
    all->open[all->n++] = d;
    documents_doubt(all);
    return true;
}

void documents_close(Documents *all, const char *uri) {
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->open[i]->uri, uri) == 0) {
            document_free(all, all->open[i]);
            all->open[i] = all->open[--all->n];
            documents_doubt(all);
            return;
        }
}

void documents_free(Documents *all) {
    for (int i = 0; i < all->n; i++) document_free(all, all->open[i]);
    drop(all, all->open);
    *all = (Documents){.from = all->from, .options = all->options};
}

bool document_replace(Documents *all, Document *d, size_t from, size_t to, const char *text) {
    size_t n = strlen(text), rest = d->n - to;
    if (n > CTX_MAX_SOURCE_BYTES || from + n + rest > CTX_MAX_SOURCE_BYTES) return false;
    char *whole = all->from->alloc(all->from->user, from + n + rest + 1);
    if (!whole) return false;
    memcpy(whole, d->text, from);
    memcpy(whole + from, text, n);
    memcpy(whole + from + n, d->text + to, rest);
    whole[from + n + rest] = 0;
    drop(all, d->text);
    d->text = whole;
    d->n = from + n + rest;
    documents_doubt(all);
    return true;
}

/* ---- compiled ------------------------------------------------------------------------------- */
typedef struct {
    const Documents *all;
    const Document *d;
    const char *text; /* in place of the document's; NULL: as it is */
    size_t n;
    FeNotes *notes;
    Document *costs; /* whose are asked for; NULL: none */
} Job;

/* Lets the compiler read the texts of open documents in place of the files on disk. */
static void lend_texts(Ctx *c, const Job *j) {
    const Documents *all = j->all;
    OutsideFile *file = NEWN(c->a, OutsideFile, (size_t)all->n + 1);
    for (int i = 0; i < all->n; i++) {
        const Document *d = all->open[i];
        bool other = d == j->d && j->text;
        file[i] = (OutsideFile){d->path, other ? j->text : d->text, other ? j->n : d->n};
    }
    c->outside.file = file;
    c->outside.n_files = all->n;
}

/* Runs the front end on the document, with notes of names, types and diagnostics. */
static void check(Ctx *c, void *arg) {
    Job *j = arg;
    CliOptions o = *j->all->options;
    o.action = ACT_CHECK;
    lend_texts(c, j);
    FeOptions fe = cli_front_end_options(c, &o);
    fe.notes = j->notes;
    fe_compile(c, j->d->path, &fe);
}

/* Runs the front end on the document, unless its result is that of the present text. False:
 * there is no result (out of memory). */
bool document_analyse(const Documents *all, Document *d) {
    Job j = {.all = all, .d = d, .notes = &d->notes};
    if (d->known) return d->has_ctx;
    forget(d);
    if (!ctx_init(&d->ctx, all->from)) return false;
    d->has_ctx = true;
    bool ran = ctx_run(&d->ctx, check, &j);
    if (!ran) d->notes = (FeNotes){.ask = NULL};
    d->known = ran || d->ctx.faulted;
    if (!d->known) forget(d);
    return d->known;
}

/* Compiles the document with another text, in which the cursor's place holds the name `ask`: what
 * can stand there is noted when that name is looked up. For completion. */
bool document_try(const Documents *all, const Document *d, const char *text, size_t n,
                  const char *ask, Ctx *c, FeNotes *notes) {
    Job j = {.all = all, .d = d, .text = text, .n = n, .notes = notes};
    *notes = (FeNotes){.ask = ask};
    return ctx_run(c, check, &j);
}

/* ---- costs ---------------------------------------------------------------------------------- */
static const char *expr_text(Ctx *c, const Expr *x) {
    StrBuf b = sb_new(c->a);
    expr_print(&b, x);
    return b.s;
}

static const char *cost_text(Ctx *c, const PPhase *ph, const PStep *s, const StepCost *cost,
                             const char *lines) {
    return arena_printf(c->a, "@%s %s: reads %s B, writes %s B, %s FLOP%s%s", ph->name,
                        cg_step_name(s), expr_text(c, cost->read), expr_text(c, cost->written),
                        expr_text(c, cost->flops), strchr(lines, ',') ? "; one with lines " : "",
                        strchr(lines, ',') ? lines : "");
}

/* Of "gcn.gnn:13,14 other.gnn:3" what stands behind `name`: "13,14"; NULL: nothing. */
static const char *lines_in(Arena *a, const char *site, const char *name) {
    size_t n = strlen(name);
    for (const char *s = site; *s; s += strcspn(s, " "), s += *s == ' ')
        if (strncmp(s, name, n) == 0 && s[n] == ':')
            return arena_strndup(a, s + n + 1, strcspn(s + n + 1, " "));
    return NULL;
}

/* Adds what a step of the plan costs to each line of the document that it comes from. */
static void price_step(Ctx *c, Document *d, const Plan *p, const PPhase *ph, const PStep *s) {
    StepCost cost = cg_step_cost(c->a, p, s);
    uint32_t file = 0;
    while ((int)file < c->sources.n && strcmp(c->sources.v[file].path, d->path)) file++;
    if ((int)file == c->sources.n) return;
    const char *lines = lines_in(c->a, cg_step_site(p->m, c->a, s), cg_path_short(p->m, file));
    for (const char *at = lines; at && *at; at += strcspn(at, ","), at += *at == ',') {
        uint32_t line = 0;
        for (int i = 0; at[i] >= '0' && at[i] <= '9' && i < 9; i++)
            line = line * 10 + (uint32_t)(at[i] - '0');
        vec_push(c->a, &d->costs, ((LineCost){line, cost_text(c, ph, s, &cost, lines)}));
    }
}

/* Compiles the document to a plan for the CPU and finds what each line costs per step. */
static void price(Ctx *c, void *arg) {
    Job *j = arg;
    CliOptions o = *j->all->options;
    CliProduct made;
    o.action = ACT_RUN;
    o.level = LEVEL_PLAN;
    o.target = "cpu";
    lend_texts(c, j);
    vec_push(c->a, &o.files, (const char *)j->d->path);
    if (!cli_produce(c, &o, &made) || !made.plan) return;
    for (int i = 0; i < made.plan->phases.n; i++) {
        const PPhase *ph = made.plan->phases.v[i];
        bool step = strcmp(ph->name, "train") == 0 || strcmp(ph->name, "predict") == 0;
        for (int k = 0; step && k < ph->steps.n; k++)
            price_step(c, j->costs, made.plan, ph, ph->steps.v[k]);
    }
}

void document_price(const Documents *all, Document *d) {
    Job j = {.all = all, .d = d, .costs = d};
    if (d->has_costs || !ctx_init(&d->cost_ctx, all->from)) return;
    d->has_costs = true;
    if (!ctx_run(&d->cost_ctx, price, &j)) d->costs.n = 0;
}
