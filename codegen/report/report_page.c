/* The page is page/page.html with page.css and page.js in it, which make embeds
 * (gen/codegen/page.c), and the data as JSON in scripts that are none.  No '<' stands in them, so
 * nothing ends them early.
 *
 * Texts of stages are large, so they are deflated (RFC 1950) in base64, and the page inflates the
 * one that is looked at. */
#include "codegen/report/report_page.h"

#include <string.h>
#include <zlib.h>

extern const unsigned char cg_page_html[], cg_page_css[], cg_page_js[];

/* ---- packed texts -------- */
/* Allocates memory for zlib from the arena (an allocation callback). */
static void *zlib_alloc(void *arena, unsigned n, unsigned size) {
    return arena_alloc(arena, n, size, _Alignof(max_align_t));
}

/* Frees nothing, as the arena is freed as a whole (a callback of zlib). */
static void zlib_free(void *arena, void *block) {
    (void)arena;
    (void)block;
}

/* Prints the n bytes of s in base64 (RFC 4648). */
static void base64(StrBuf *b, const unsigned char *s, size_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)s[i] << 16;
        if (i + 1 < n) v |= (unsigned)s[i + 1] << 8;
        if (i + 2 < n) v |= s[i + 2];
        char four[4] = {digit[v >> 18], digit[v >> 12 & 63], digit[v >> 6 & 63], digit[v & 63]};
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        sb_put(b, four, 4);
    }
}

/* The n bytes of a text, deflated (zlib) and in base64. "" if zlib cannot start. */
static const char *compress_text(Arena *a, const char *text, size_t n) {
    enum { PIECE = 1 << 30 };
    StrBuf b = sb_new(a);
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = a};
    if (deflateInit(&z, Z_DEFAULT_COMPRESSION) != Z_OK) return "";
    size_t bound = deflateBound(&z, (uLong)n);
    unsigned char *out = NEWN(a, unsigned char, bound);
    for (int st = Z_OK; st == Z_OK;) { /* zlib counts in 32 bits */
        size_t in = n - z.total_in, to = bound - z.total_out;
        z.next_in = (unsigned char *)text + z.total_in; /* which deflate() only reads */
        z.avail_in = in < PIECE ? (uInt)in : PIECE;
        z.next_out = out + z.total_out;
        z.avail_out = to < PIECE ? (uInt)to : PIECE;
        st = deflate(&z, in <= PIECE ? Z_FINISH : Z_NO_FLUSH);
    }
    deflateEnd(&z);
    base64(&b, out, z.total_out);
    return b.s ? b.s : "";
}

/* Prints one stage's text as a JSON object: kind, title, size, and the compressed text if there is
 * one. */
static void json_text_of(Json *j, Arena *a, const PageText *t) {
    json_object(j, NULL);
    json_text(j, "kind", t->kind);
    json_text(j, "title", t->title);
    json_int(j, "bytes", (int64_t)t->n);
    if (t->text) json_text(j, "packed", compress_text(a, t->text, t->n));
    json_end(j);
}

/* ---- passes -------- */
/* Prints the passes that ran as JSON. What each changed is a part of one text, which follows in
 * compressed form; "from" and "bytes" say which part. */
static void json_passes(Json *j, Arena *a, const PassRecord *rec) {
    StrBuf all = sb_new(a);
    json_array(j, "passes");
    for (int i = 0; i < rec->events.n; i++) {
        const PassEvent *e = &rec->events.v[i];
        size_t n = strlen(e->diff);
        json_object(j, NULL);
        json_text(j, "pass", e->pass->name);
        json_text(j, "summary", e->pass->summary);
        json_int(j, "run", e->nth);
        if (e->of) json_text(j, "kernel", e->of);
        json_text(j, "level", e->pass->run_loops ? "loops" : e->pass->run_plan ? "plan" : "graph");
        json_int(j, "us", (int64_t)(1e6 * e->seconds));
        json_int(j, "from", (int64_t)all.n);
        json_int(j, "bytes", (int64_t)n);
        json_end(j);
        sb_put(&all, e->diff, n);
    }
    json_end(j);
    json_text(j, "diffs", compress_text(a, all.n ? all.s : "", all.n));
}

/* ---- the page -------- */
/* Prints the template `from` up to a mark, and returns what follows the mark, which is not
 * printed. */
static const char *print_template(StrBuf *b, const char *from, const char *mark) {
    const char *at = strstr(from, mark);
    if (!at) return from;
    sb_put(b, from, (size_t)(at - from));
    return at + strlen(mark);
}

/* Prints the HTML page: the template with style and script, all reports as JSON, and the n_texts
 * texts of stages. */
void report_page(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o, const PageText *text,
                 int n_texts) {
    ReportOptions all = *o;
    Json j = {.b = b, .in_html = true};
    all.kinds = REPORT_ALL;
    all.json = true;
    all.in_html = true;
    const char *rest = print_template(b, (const char *)cg_page_html, "@STYLE@");
    sb_puts(b, (const char *)cg_page_css);
    rest = print_template(b, rest, "@REPORT@");
    report_print(b, c, p, &all);
    rest = print_template(b, rest, "@STAGES@");
    json_object(&j, NULL);
    char print[17];
    snprintf(print, sizeof print, "%016llx", (unsigned long long)plan_fingerprint(c->a, p));
    json_text(&j, "fingerprint", print);
    json_array(&j, "texts");
    for (int i = 0; i < n_texts; i++) json_text_of(&j, c->a, &text[i]);
    json_end(&j);
    if (o->record) json_passes(&j, c->a, o->record);
    json_end(&j);
    rest = print_template(b, rest, "@SCRIPT@");
    sb_puts(b, (const char *)cg_page_js);
    sb_puts(b, rest);
}
