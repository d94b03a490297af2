/* Differences of texts by lines, and the part of an IR's text that is asked for. */
#include "passes/dump.h"
#include "test.h"

#include "ctx_test.h"

enum { MAX_LINES = 40 };

static const char *diff_of(Arena *a, const char *old, const char *new) {
    StrBuf b = sb_new(a);
    dump_diff(&b, old, new);
    return b.s ? b.s : "";
}

static int next_int(uint64_t *r, int below) {
    *r = *r * 6364136223846793005u + 1442695040888963407u;
    return (int)((*r >> 33) % (uint64_t)below);
}

/* Lines of few words, so that many are equal. */
static const char *random_text(Arena *a, uint64_t *r, int words) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    for (int n = next_int(r, MAX_LINES); n > 0; n--) sb_printf(&b, "%d\n", next_int(r, words));
    return b.s;
}

/* As patch(1) does it; counts lines that come and go. */
static const char *apply(Arena *a, const char *old, const char *diff, int *changed) {
    StrBuf b = sb_new(a);
    int at = 1, from, n_old, to, n_new, used;
    sb_puts(&b, "");
    for (*changed = 0; *diff;) {
        if (sscanf(diff, "@@ -%d,%d +%d,%d @@%n", &from, &n_old, &to, &n_new, &used) == 4) {
            if (!n_old) from++;
            for (; at < from; at++) {
                size_t n = strcspn(old, "\n") + 1;
                sb_put(&b, old, n);
                old += n;
            }
        } else {
            size_t n = strcspn(diff, "\n") + 1;
            if (*diff != '-') sb_put(&b, diff + 1, n - 1);
            if (*diff != '+') {
                CHECK(strncmp(old, diff + 1, n - 1) == 0);
                old += n - 1, at++;
            }
            *changed += *diff != ' ';
        }
        diff += strcspn(diff, "\n") + 1;
    }
    sb_puts(&b, old);
    return b.s;
}

/* Lines that must come and go, by the table of all beginnings. */
static int shortest(const char *x, const char *y) {
    const char *old[MAX_LINES], *new[MAX_LINES];
    int n = 0, m = 0, d[MAX_LINES + 1][MAX_LINES + 1];
    for (; *x; x += strcspn(x, "\n") + 1) old[n++] = x;
    for (; *y; y += strcspn(y, "\n") + 1) new[m++] = y;
    for (int i = 0; i <= n; i++)
        for (int k = 0; k <= m; k++) {
            bool same = i && k && atoi(old[i - 1]) == atoi(new[k - 1]);
            int least = i + k;
            if (i && d[i - 1][k] + 1 < least) least = d[i - 1][k] + 1;
            if (k && d[i][k - 1] + 1 < least) least = d[i][k - 1] + 1;
            d[i][k] = same ? d[i - 1][k - 1] : least;
        }
    return d[n][m];
}

TEST(a_difference_leads_from_one_text_to_the_other_and_is_the_shortest) {
    uint64_t r = 1;
    for (int i = 0; i < 2000; i++) {
        Ctx c;
        int changed;
        CHECK(ctx_init(&c, NULL));
        const char *old = random_text(c.a, &r, 2 + i % 9);
        const char *new = i % 3 ? random_text(c.a, &r, 2 + i % 9) : old;
        const char *diff = diff_of(c.a, old, new);
        CHECK_STR(apply(c.a, old, diff, &changed), new);
        CHECK_MSG(changed == shortest(old, new), "%d lines, not %d:\n%s", changed,
                  shortest(old, new), diff);
        ctx_free(&c);
    }
}

TEST(texts_of_which_no_line_is_the_same_take_no_time) {
    Ctx c;
    int changed;
    CHECK(ctx_init(&c, NULL));
    StrBuf x = sb_new(c.a), y = sb_new(c.a);
    for (int i = 0; i < 30000; i++) sb_printf(&x, "%d\n", i), sb_printf(&y, "%d\n", -i - 1);
    CHECK_STR(apply(c.a, x.s, diff_of(c.a, x.s, y.s), &changed), y.s);
    CHECK(changed == 60000);
    ctx_free(&c);
}

static const char ir[] = "module \"m\" {\n"
                         "  column paper.x: f32[paper]  !m.gnn:3:1\n"
                         "  func @train {\n"
                         "    %z = data paper.x : f32[paper]  !layers/m.gnn:12:5-9<m.gnn:4\n"
                         "    %z.1 = neg %z : f32[paper]  !m.gnn:112:3\n"
                         "    %z.2 = neg %z.1 : f32[paper]\n"
                         "  }\n"
                         "  func @eval {\n"
                         "    %z = data paper.x : f32[paper]\n"
                         "  }\n"
                         "}\n"
                         "kernel m_train_z_1(x) by teams {\n"
                         "  for %v in N {\n"
                         "  }\n"
                         "}\n";

static void keeps(const char *terms, const char *want) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(!dump_bad_filter(c.a, terms));
    CHECK_STR(dump_filter(c.a, ir, terms), want);
    ctx_free(&c);
}

TEST(what_is_asked_for_is_kept_with_the_block_that_it_is_in) {
    keeps("@eval", "  func @eval {\n    %z = data paper.x : f32[paper]\n  }\n");
    keeps("m_train*", "kernel m_train_z_1(x) by teams {\n  for %v in N {\n  }\n}\n");
    keeps("%z.2", "  func @train {\n    %z.2 = neg %z.1 : f32[paper]\n  }\n");
    keeps("@train,%z", "  func @train {\n"
                       "    %z = data paper.x : f32[paper]  !layers/m.gnn:12:5-9<m.gnn:4\n"
                       "    %z.1 = neg %z : f32[paper]  !m.gnn:112:3\n  }\n");
    keeps("m.gnn:12", "  func @train {\n"
                      "    %z = data paper.x : f32[paper]  !layers/m.gnn:12:5-9<m.gnn:4\n  }\n");
    keeps("m.gnn:3", "  column paper.x: f32[paper]  !m.gnn:3:1\n");
    keeps(":4", "  func @train {\n"
                "    %z = data paper.x : f32[paper]  !layers/m.gnn:12:5-9<m.gnn:4\n  }\n");
    keeps(":1", "");
    keeps("@predict", "");
    keeps("%nothing,@eval", "");
}

TEST(what_cannot_be_asked_for_is_told) {
    static const char *const bad[] = {"",    "@",      "%",        ":",   "@a,",
                                      ",@a", "m.gnn:", "m.gnn:1x", "a,,b"};
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    for (size_t i = 0; i < COUNT(bad); i++) CHECK_MSG(dump_bad_filter(c.a, bad[i]), "%s", bad[i]);
    ctx_free(&c);
}

TEST(a_difference_names_the_block_it_is_in) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    const char *old = "func @a {\n  1\n}\nfunc @b {\n  2\n  3\n}\n";
    const char *new = "func @a {\n  1\n}\nfunc @b {\n  2\n  4\n}\n";
    CHECK_STR(diff_of(c.a, old, new),
              "@@ -3,5 +3,5 @@ func @b\n }\n func @b {\n   2\n-  3\n+  4\n }\n");
    CHECK_STR(diff_of(c.a, old, old), "");
    CHECK_STR(diff_of(c.a, "", "x\n"), "@@ -0,0 +1,1 @@\n+x\n");
    ctx_free(&c);
}

TEST(values_that_are_only_numbered_anew_are_no_difference) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    const char *old =
        "func @a {\n  %1 = cast %0\n  %2 = gather %x\n  %z = neg %2\n  %z.1 = mul %z, %1\n"
        "}\nphase @a {\n  0: kernel k(a)\n  1: kernel l(b)\n}\n";
    const char *new = "func @a {\n  %1 = gather %x\n  %z.1 = neg %1\n  %z.2 = mul %z.1, %1\n"
                      "}\nphase @a {\n  0: kernel l(b)\n}\n";
    const char *renamed = dump_renamed(c.a, old, new);
    CHECK_STR(
        renamed,
        "func @a {\n  %1' = cast %0\n  %1 = gather %x\n  %z.1 = neg %1\n  %z.2 = mul %z.1, %1'\n"
        "}\nphase @a {\n  0: kernel k(a)\n  0: kernel l(b)\n}\n");
    CHECK_STR(diff_of(c.a, renamed, new),
              "@@ -1,10 +1,8 @@ func @a\n func @a {\n-  %1' = cast %0\n   %1 = gather %x\n"
              "   %z.1 = neg %1\n-  %z.2 = mul %z.1, %1'\n+  %z.2 = mul %z.1, %1\n }\n phase @a {\n"
              "-  0: kernel k(a)\n   0: kernel l(b)\n }\n");
    CHECK_STR(dump_renamed(c.a, old, old), old);
    CHECK_STR(dump_renamed(c.a, "%", "%5"), "%5");
    CHECK_STR(dump_renamed(c.a, "", ""), "");
    ctx_free(&c);
}

TEST_MAIN()
