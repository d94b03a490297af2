/* Diagnostics as the user sees them, and the limits that keep them few. */
#include "ir/base.h"
#include "test.h"

static char *shown(const Ctx *c, bool colour) {
    char *s = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&s, &n);
    diag_print_all(c, f, colour);
    fclose(f);
    return s;
}

TEST(a_caret_marks_the_span) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    const char *text = "one\n\talpha = s[src] + w\n";
    uint32_t f = ctx_add_text(&c, "gat.gnn", text, strlen(text));
    diag_add(&c, DIAG_E0402, span_of(f, 2, 10, 2, 16), "what is %s?", "this");
    diag_note(&c, span_of(f, 1, 1, 1, 4), "it starts here");
    diag_warn(&c, DIAG_E0403, (Span){0}, "nowhere");
    char *s = shown(&c, false);
    CHECK_STR(s, "gat.gnn:2:10: error: what is this?  [E0402]\n"
                 "    2 | \talpha = s[src] + w\n"
                 "      | \t        ^~~~~~\n"
                 "gat.gnn:1:1: note: it starts here\n"
                 "    1 | one\n"
                 "      | ^~~\n"
                 "gnnc: warning: nowhere  [E0403]\n");
    free(s);
    s = shown(&c, true);
    CHECK(strstr(s, "\033[1;31merror: "));
    free(s);
    ctx_free(&c);
}

TEST(odd_lines_are_shown_safely) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    const char *text = "\xc3\xa9\xc3\xa9 x\x1b[2J y";
    uint32_t f = ctx_add_text(&c, "a", text, strlen(text));
    diag_add(&c, DIAG_E0401, span_of(f, 1, 6, 1, 7), "m");
    diag_add(&c, DIAG_E0401, span_of(f, 9, 1, 9, 2), "no such line");
    diag_add(&c, DIAG_E0401, span_of(f, 1, 99, 1, 100), "no such column");
    diag_add(&c, DIAG_E0401, span_of(f, 1, 12, 1, 12), "at the end");
    diag_add(&c, DIAG_E0401, span_of(9, 1, 1, 1, 1), "no such file");
    char *s = shown(&c, false);
    CHECK(strstr(s, "    1 | \xc3\xa9\xc3\xa9 x?[2J y\n      |    ^\n"));
    CHECK(!strchr(s, 27));
    free(s);
    char *wide = malloc(1 << 20);
    memset(wide, 'a', 1 << 20);
    f = ctx_add_text(&c, "wide", wide, 1 << 20);
    diag_add(&c, DIAG_E0401, span_of(f, 1, 500000, 1, 1 << 20), "long");
    s = shown(&c, false);
    CHECK(strlen(s) < 2000);
    free(s);
    free(wide);
    ctx_free(&c);
}

TEST(repeats_and_floods_are_dropped) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    c.max_errors = 3;
    uint32_t f = ctx_add_text(&c, "a", "x\ny\n", 4);
    Span at = span_of(f, 1, 1, 1, 2);
    diag_add(&c, DIAG_E0401, at, "first");
    diag_add(&c, DIAG_E0401, at, "the same place");
    diag_note(&c, at, "of the repeat");
    CHECK(c.diags.n == 1 && c.n_errors == 1);
    for (uint32_t i = 2; i < 10; i++) diag_add(&c, DIAG_E0401, span_of(f, i, 1, i, 2), "more");
    CHECK(c.diags.n == 3 && c.n_errors == 9);
    char *s = shown(&c, false);
    CHECK(strstr(s, "6 more errors are not shown"));
    free(s);
    ctx_free(&c);
}

TEST(files_are_read_or_diagnosed) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_add_file(&c, "/no/such/file", (Span){0}) == UINT32_MAX);
    CHECK(ctx_add_file(&c, "/", (Span){0}) == UINT32_MAX && c.n_errors == 2);
    uint32_t f = ctx_add_file(&c, __FILE__, (Span){0});
    CHECK(f != UINT32_MAX && strstr(c.sources.v[f].text, "TEST_MAIN"));
    ctx_free(&c);
}

static void count_up(void *arg) {
    ++*(int *)arg;
}

static void use_it_all(Ctx *c, void *arg) {
    ctx_defer(c, count_up, arg);
    arena_alloc(c->a, SIZE_MAX / 4, 8, 8);
}

TEST(running_out_of_memory_comes_back) {
    Ctx c;
    int cleaned = 0;
    CHECK(ctx_init(&c, NULL));
    CHECK(!ctx_run(&c, use_it_all, &cleaned) && cleaned == 1);
    ctx_free(&c);
    CHECK(cleaned == 1);
}

TEST(names_are_found_again) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    StrMap m = {0};
    CHECK(!strmap_get(&m, "a") && !strmap_has(&m, "a"));
    for (int i = 0; i < 5000; i++)
        strmap_put(c.a, &m, arena_printf(c.a, "k%d", i), arena_printf(c.a, "%d", i));
    for (int i = 0; i < 5000; i++) {
        const char *key = arena_printf(c.a, "k%d", i);
        CHECK_STR((char *)strmap_get(&m, key), key + 1);
    }
    strmap_put(c.a, &m, "k7", NULL);
    CHECK(m.n == 5000 && strmap_has(&m, "k7") && !strmap_get(&m, "k7"));
    ctx_free(&c);
}

TEST_MAIN()
