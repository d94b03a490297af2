/* The compiler as a library, called as other programs call it. */
#include "frontend/include/gnncc.h"
#include "ctx_test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char graph[] = "graph G { node n { x: f32[F]; y: class[C]; split } edge e: n -> n }\n";
static const char model[] = "import \"mine.gnn\"\n"
                            "model M(g: G; hidden: int = 8) -> f32[n, C] {\n"
                            "  lin1 = linear(hidden)\n"
                            "  lin2 = linear(C)\n"
                            "  return lin2(relu(lin1(twice(g.n.x))))\n"
                            "}\n"
                            "train M { target n.y loss cross_entropy metric accuracy\n"
                            "  optimizer adam(lr = 0.01) epochs 3 }\n";
static const char mine[] = "fn twice(x) { return x + x }\n";

static gnncc_status add(gnncc_compiler *c, const char *name, const char *text) {
    return gnncc_add_file(c, name, text, strlen(text));
}

/* A compiler that has the model above in memory, and finds the layer library. */
static void fill(gnncc_compiler *c) {
    char all[2000];
    snprintf(all, sizeof all, "%s%s", graph, model);
    CHECK(gnncc_set_home(c, "tests") == GNNCC_OK);
    CHECK(add(c, "dir/m.gnn", all) == GNNCC_OK && add(c, "dir/mine.gnn", mine) == GNNCC_OK);
}

static gnncc_compiler *compiler(void) {
    gnncc_compiler *c = NULL;
    CHECK(gnncc_create(&c) == GNNCC_OK);
    fill(c);
    return c;
}

/* Compiles and gives what was made, to be freed; NULL: nothing. */
static char *made(const gnncc_compiler *c, const char *path, gnncc_status want) {
    gnncc_result *r = NULL;
    size_t n = 0;
    gnncc_status st = gnncc_compile(c, path, &r);
    CHECK_MSG(st == want, "%s: %d, not %d: %s", path, st, want, gnncc_result_text(r));
    const char *data = gnncc_result_data(r, &n);
    CHECK(!r == !data && (!data || data[n] == 0));
    char *copy = data ? malloc(n + 1) : NULL;
    if (copy) memcpy(copy, data, n + 1);
    gnncc_result_destroy(r);
    return copy;
}

TEST(text_in_memory_to_text_in_memory) {
    static const struct {
        const char *kind, *begins;
    } kind[] = {
        {"ir", "module \"m\""}, {"plan", "buffers {"}, {"loops", "kernel "}, {"ast", "file  @"},
        {"llvm", "; ModuleID"}, {"asm", "\t"},         {"c", "/*"},          {"cuda", "/"},
        {"obj", "\177ELF"},     {"header", "/*"}};
    gnncc_compiler *c = compiler();
    CHECK(setenv("TMPDIR", "/nonexistent", 1) == 0); /* no file is written */
    for (size_t i = 0; i < COUNT(kind); i++) {
        CHECK(gnncc_set(c, "--emit", kind[i].kind) == GNNCC_OK);
        char *text = made(c, "dir/m.gnn", GNNCC_OK);
        CHECK_MSG(text && !strncmp(text, kind[i].begins, strlen(kind[i].begins)), "%s: %.60s",
                  kind[i].kind, text ? text : "nothing");
        free(text);
    }
    CHECK(strcmp(getenv("TMPDIR"), "/nonexistent") == 0);
    unsetenv("TMPDIR");
    gnncc_destroy(c);
}

TEST(a_mistake_is_a_value) {
    gnncc_compiler *c = compiler();
    gnncc_result *r = NULL;
    uint32_t at[4];
    CHECK(add(c, "./dir/x/../mine.gnn", "fn twice(x) { return x + z }\n") == GNNCC_OK);
    CHECK(gnncc_check(c, "dir/m.gnn", &r) == GNNCC_E_DIAGNOSED && gnncc_diag_count(r) >= 1);
    CHECK(gnncc_diag_severity(r, 0) == GNNCC_ERROR);
    CHECK_STR(gnncc_diag_code(r, 0), "E0201");
    CHECK_STR(gnncc_diag_file(r, 0), "dir/mine.gnn");
    CHECK(strstr(gnncc_diag_message(r, 0), "'z'"));
    gnncc_diag_place(r, 0, at);
    CHECK(at[0] == 1 && at[1] == 26 && at[2] == 1 && at[3] == 27);
    CHECK(strstr(gnncc_result_text(r), "dir/mine.gnn:1:26: error: "));
    CHECK(strstr(gnncc_result_text(r), "fn twice(x) { return x + z }\n"));
    for (int i = 0; i < gnncc_diag_count(r); i++)
        CHECK(!gnncc_diag_code(r, i) == (gnncc_diag_severity(r, i) == GNNCC_NOTE));
    CHECK_STR(gnncc_diag_message(r, 1000), "");
    CHECK(!gnncc_diag_file(r, -1) && !gnncc_diag_code(r, 1000) && !gnncc_result_file(r, 1000));
    gnncc_diag_place(r, 1000, at);
    CHECK(at[0] == 0 && at[3] == 0);
    gnncc_destroy(c);
    CHECK(strstr(gnncc_diag_message(r, 0), "'z'")); /* a result needs no compiler */
    gnncc_result_destroy(r);
}

TEST(warnings_and_files_of_what_compiles) {
    gnncc_compiler *c = compiler();
    gnncc_result *r = NULL;
    bool own = false, other = false;
    char all[2000];
    snprintf(all, sizeof all, "\xEF\xBB\xBF%simport \"mine.gnn\"\n%s", graph,
             "model M(g: G) -> f32[n, C] {\n  lin = linear(C)\n  never = linear(C)\n"
             "  return lin(twice(g.n.x))\n}\n");
    CHECK(add(c, "dir/m.gnn", all) == GNNCC_OK); /* it begins with a byte order mark */
    CHECK_MSG(gnncc_check(c, "dir/m.gnn", &r) == GNNCC_OK, "%s", gnncc_result_text(r));
    CHECK(gnncc_diag_count(r) == 1 && gnncc_diag_severity(r, 0) == GNNCC_WARNING);
    for (int i = 0; gnncc_result_file(r, i); i++) {
        own |= strcmp(gnncc_result_file(r, i), "dir/mine.gnn") == 0;
        other |= strstr(gnncc_result_file(r, i), "layers/prelude.gnn") != NULL;
    }
    CHECK(own && other);
    gnncc_result_destroy(r);
    gnncc_destroy(c);
}

TEST(only_given_files_are_read) {
    static const char *const outside[] = {"models/gcn.gnn", "/etc/passwd",
                                          "../tests/oracle/hetero_sage.gnn"};
    gnncc_compiler *c = compiler();
    gnncc_result *r = NULL;
    CHECK(gnncc_only_files(c) == GNNCC_OK && gnncc_set(c, "--emit", "ir") == GNNCC_OK);
    free(made(c, "dir/m.gnn", GNNCC_OK)); /* which takes layers of the library */
    for (size_t i = 0; i < COUNT(outside); i++) {
        char text[200];
        free(made(c, outside[i], GNNCC_E_DIAGNOSED));
        snprintf(text, sizeof text, "import \"%s\"\n%s", outside[i], mine);
        CHECK(add(c, "dir/mine.gnn", text) == GNNCC_OK);
        CHECK(gnncc_check(c, "dir/m.gnn", &r) == GNNCC_E_DIAGNOSED);
        CHECK_STR(gnncc_diag_code(r, 0), "E0301");
        gnncc_result_destroy(r);
    }
    CHECK(add(c, "dir/mine.gnn",
              "extern fn twice(x: f32[..]) -> f32[..] from \"/etc/passwd.c\"\n") == GNNCC_OK);
    CHECK(gnncc_check(c, "dir/m.gnn", &r) == GNNCC_E_DIAGNOSED);
    gnncc_result_destroy(r);
    gnncc_destroy(c);
}

TEST(hostile_options) {
    static const struct {
        const char *name, *value, *says;
    } bad[] = {{"", NULL, "no option ''"},
               {"emit", "ir", "no option 'emit'"},
               {"--emit=ir", NULL, "no option"},
               {"--emit", NULL, "needs a value"},
               {"--emit", "", "not a value"},
               {"--emit", "irr", "not a value"},
               {"-O0", "1", "takes no value"},
               {"-O9", NULL, "no option"},
               {"-ofile", NULL, "no option"},
               {"-o", "", "not a value"},
               {"-D", "hidden", "not a value"},
               {"-D", "=3", "not a value"},
               {"--target", "cpu,tpu", "not a value"},
               {"--variant", "10", "not a value"},
               {"--print-after", "nothing", "no pass"},
               {"--version", NULL, "no option"},
               {"--help", NULL, "no option"},
               {"-h", NULL, "no option"},
               {"--reports", "all", "did you mean '--report'"}};
    gnncc_compiler *c = compiler();
    CHECK_STR(gnncc_error(c), "");
    CHECK(gnncc_set(c, "--emit", "plan") == GNNCC_OK);
    char *before = made(c, "dir/m.gnn", GNNCC_OK);
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK_MSG(gnncc_set(c, bad[i].name, bad[i].value) == GNNCC_E_OPTION &&
                      strstr(gnncc_error(c), bad[i].says),
                  "%s: %s", bad[i].name, gnncc_error(c));
    }
    char *after = made(c, "dir/m.gnn", GNNCC_OK);
    CHECK(before && after && strcmp(before, after) == 0);
    free(before);
    free(after);
    CHECK(gnncc_set(NULL, "--emit", "ir") == GNNCC_E_ARG && gnncc_set(c, NULL, "") == GNNCC_E_ARG);
    CHECK(gnncc_add_file(c, "", "", 0) == GNNCC_E_ARG &&
          gnncc_add_file(c, "x", NULL, 1) == GNNCC_E_ARG &&
          gnncc_add_file(c, "x", "", (size_t)1 << 40) == GNNCC_E_ARG);
    CHECK(gnncc_set_home(c, "/nonexistent") == GNNCC_E_ARG);
    CHECK(gnncc_create(NULL) == GNNCC_E_ARG && gnncc_compile(c, "m.gnn", NULL) == GNNCC_E_ARG);
    gnncc_destroy(c);
}

static void do_not_go_together(const char *name, const char *value, const char *says) {
    gnncc_compiler *c = compiler();
    gnncc_result *r = NULL;
    CHECK_MSG(gnncc_set(c, name, value) == GNNCC_OK, "%s", gnncc_error(c));
    CHECK_MSG(gnncc_compile(c, "dir/m.gnn", &r) == GNNCC_E_OPTION &&
                  strstr(gnncc_result_text(r), says) && gnncc_diag_count(r) == 0,
              "%s: %s", name, gnncc_result_text(r));
    gnncc_result_destroy(r);
    gnncc_destroy(c);
}

TEST(options_that_do_not_go_together) {
    do_not_go_together("--emit", "lib", "-o");
    do_not_go_together("--precision", "auto", "--data");
    do_not_go_together("--draw", NULL, "--infer");
    do_not_go_together("--runtime", "shared", "--emit=lib");
}

/* Each that is listed is known, and takes what it says that it takes. */
TEST(options_are_listed) {
    gnncc_compiler *c = compiler();
    int n = 0, words = 0;
    for (const char *name; (name = gnncc_option_name(n)) != NULL; n++) {
        CHECK(*gnncc_option_help(n));
        if (!gnncc_option_value(n)) CHECK_MSG(!gnncc_set(c, name, NULL), "%s", gnncc_error(c));
        for (int k = 0; gnncc_option_word(n, k); k++, words++)
            CHECK_MSG(!gnncc_set(c, name, gnncc_option_word(n, k)), "%s", gnncc_error(c));
    }
    CHECK(n > 30 && words > 60);
    CHECK(!gnncc_set(c, "--fuse.max-loads", "12"));
    CHECK(gnncc_set(c, "--fuse.max-loads", "0") && strstr(gnncc_error(c), "from 1 to 200"));
    CHECK(gnncc_set(c, "--fuse.max-loads", NULL) && gnncc_set(c, "--fuse.none", "1"));
    CHECK(!gnncc_option_name(-1) && !gnncc_option_value(n) && !gnncc_option_word(0, -1));
    CHECK_STR(gnncc_option_help(n), "");
    gnncc_destroy(c);
}

/* ---- several at once ----------------------------------------------------------------------- */
typedef struct {
    const gnncc_compiler *c;
    const char *path, *want;
    int rounds;
} Work;

static void *work(void *arg) {
    const Work *w = arg;
    for (int i = 0; i < w->rounds; i++) {
        char *text = made(w->c, w->path, GNNCC_OK);
        CHECK_MSG(text && strcmp(text, w->want) == 0, "%s: other text", w->path);
        free(text);
    }
    return NULL;
}

TEST(two_threads_compile_at_once) {
    static const char *const path[] = {"models/gcn.gnn", "models/gat.gnn", "dir/m.gnn"};
    enum { N = COUNT(path) };
    pthread_t thread[N];
    Work w[N];
    gnncc_compiler *c = compiler();
    CHECK(gnncc_set(c, "--emit", "llvm") == GNNCC_OK && gnncc_set(c, "-O0", NULL) == GNNCC_OK);
    for (int i = 0; i < N; i++) w[i] = (Work){c, path[i], made(c, path[i], GNNCC_OK), 1};
    for (int i = 0; i < N; i++) CHECK(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < N; i++) free((char *)w[i].want);
    gnncc_destroy(c);
}

/* ---- memory and cancelling -------- */
/* True when `blocks` blocks are enough. */
static bool compiles_in(long blocks) {
    FewBlocks some;
    const Allocator from = few_blocks(&some, blocks, 0);
    gnncc_compiler *c = NULL;
    gnncc_result *r = NULL;
    char all[2000];
    snprintf(all, sizeof all, "%s%s", graph, model);
    gnncc_status st = gnncc_create_with(&c, from.alloc, from.release, from.user);
    if (st == GNNCC_OK) st = gnncc_set_home(c, "tests");
    if (st == GNNCC_OK) st = add(c, "m.gnn", all);
    if (st == GNNCC_OK) st = add(c, "mine.gnn", mine);
    if (st == GNNCC_OK) st = gnncc_set(c, "--emit", "llvm");
    if (st == GNNCC_OK) st = gnncc_set(c, "-O0", NULL);
    if (st == GNNCC_OK) st = gnncc_compile(c, "m.gnn", &r);
    CHECK_MSG(st == GNNCC_OK || st == GNNCC_E_NOMEM, "block %ld: %d", blocks, st);
    CHECK((st == GNNCC_OK) == (r != NULL));
    gnncc_result_destroy(r);
    gnncc_destroy(c);
    CHECK_MSG(some.live == 0, "block %ld: %ld blocks stay", blocks, some.live);
    return st == GNNCC_OK;
}

TEST(every_block_refused) {
    long n = 0;
    while (n < 300 && !compiles_in(n)) n++;
    CHECK_MSG(n > 5 && n < 300, "%ld blocks", n);
}

static int count_down(void *user) {
    return --*(int *)user < 0;
}

TEST(cancelled_at_each_question) {
    gnncc_compiler *c = compiler();
    int n = 0, left = 0;
    CHECK(gnncc_on_cancel(c, count_down, &left) == GNNCC_OK);
    CHECK(gnncc_set(c, "--emit", "obj") == GNNCC_OK && gnncc_set(c, "-O0", NULL) == GNNCC_OK);
    for (gnncc_status st = GNNCC_E_CANCELLED; st != GNNCC_OK && n < 2000; n++) {
        gnncc_result *r = NULL;
        size_t bytes = 1;
        left = n;
        st = gnncc_compile(c, "dir/m.gnn", &r);
        CHECK_MSG(st == GNNCC_OK || st == GNNCC_E_CANCELLED, "%d: %d", n, st);
        gnncc_result_data(r, &bytes);
        CHECK((st == GNNCC_OK) == (bytes > 0));
        gnncc_result_destroy(r);
    }
    CHECK_MSG(n > 20 && n < 2000, "%d questions", n);
    gnncc_destroy(c);
}

/* A compiler that runs this script for cc, whose path goes into cc[]. */
static gnncc_compiler *with_tool(const char *script, char *cc) {
    char dir[4096];
    gnncc_compiler *c = compiler();
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 100);
    CHECK(n > 0);
    dir[n > 0 ? n : 0] = 0;
    *strrchr(dir, '/') = 0;
    strcat(dir, "/../.."); /* where libgnnrt.a is */
    int fd = mkstemp(cc);
    CHECK(fd >= 0 && write(fd, script, strlen(script)) > 0 && fchmod(fd, 0700) == 0 &&
          close(fd) == 0);
    CHECK(setenv("CC", cc, 1) == 0 && gnncc_set_home(c, dir) == GNNCC_OK);
    CHECK(gnncc_set(c, "-O0", NULL) == GNNCC_OK && gnncc_set(c, "-I", "models") == GNNCC_OK);
    CHECK(gnncc_set(c, "--target", "cpu") == GNNCC_OK && gnncc_set(c, "-v", NULL) == GNNCC_OK);
    return c;
}

static const char fails[] = "#!/bin/sh\necho nothing works >&2\nexit 3\n";

/* What a C compiler that fails writes is a note. */
TEST(a_tool_that_fails) {
    char cc[] = "/tmp/gnncc_test.XXXXXX", temp[] = "/tmp/gnncc_test.XXXXXX";
    gnncc_compiler *c = with_tool(fails, cc);
    gnncc_result *r = NULL;
    CHECK(mkdtemp(temp) && setenv("TMPDIR", temp, 1) == 0);
    CHECK(gnncc_compile(c, "dir/m.gnn", &r) == GNNCC_E_DIAGNOSED);
    CHECK(rmdir(temp) == 0 && unsetenv("TMPDIR") == 0); /* the private directory is gone already */
    CHECK_STR(gnncc_diag_code(r, 0) ? gnncc_diag_code(r, 0) : "", "E0004");
    CHECK_MSG(strstr(gnncc_diag_message(r, 0), "status 3"), "%s", gnncc_result_text(r));
    CHECK_STR(gnncc_diag_message(r, 1), "nothing works");
    CHECK(!gnncc_diag_file(r, 0) && strstr(gnncc_result_log(r), cc));
    gnncc_result_destroy(r);
    gnncc_destroy(c);
    unsetenv("CC");
    unlink(cc);
}

static void reap(int number) {
    (void)number;
    int before = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    errno = before;
}

static int never(void *user) {
    (void)user;
    return 0;
}

static void compile_beside(void (*handler)(int), bool good, bool cancels) {
    static const char makes[] =
        "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho made >\"$2\"\n";
    char cc[] = "/tmp/gnncc_test.XXXXXX", to[] = "/tmp/gnncc_test.XXXXXX";
    struct sigaction own, host = {.sa_handler = handler, .sa_flags = SA_RESTART};
    gnncc_compiler *c = with_tool(good ? makes : fails, cc);
    gnncc_result *r = NULL;
    int fd = mkstemp(to);
    CHECK(fd >= 0 && close(fd) == 0 && gnncc_set(c, "-o", to) == GNNCC_OK);
    if (cancels) CHECK(gnncc_on_cancel(c, never, NULL) == GNNCC_OK);
    CHECK(sigaction(SIGCHLD, &host, &own) == 0);
    gnncc_status st = gnncc_compile(c, "dir/m.gnn", &r);
    CHECK(sigaction(SIGCHLD, &own, NULL) == 0);
    CHECK_MSG(st == (good ? GNNCC_OK : GNNCC_E_DIAGNOSED), "%d %d: %d %s", good, cancels, st,
              gnncc_result_text(r));
    if (!good) {
        CHECK_MSG(strstr(gnncc_diag_message(r, 0), "status 3"), "%s", gnncc_result_text(r));
        CHECK_STR(gnncc_diag_message(r, 1), "nothing works");
    }
    gnncc_result_destroy(r);
    gnncc_destroy(c);
    unsetenv("CC");
    unlink(cc);
    unlink(to);
}

/* How a tool ended is known in a host that takes no status of children, or takes each itself. */
TEST(hosts_that_wait_for_children_themselves) {
    for (int i = 0; i < 4; i++) {
        compile_beside(SIG_IGN, i & 1, i & 2);
        compile_beside(reap, i & 1, i & 2);
    }
}

TEST(what_import_says) {
    static const char *const none[] = {"nowhere.npz", "-o", "nowhere"}, *const odd[] = {"--no"};
    gnncc_compiler *c = compiler();
    gnncc_result *r = NULL;
    CHECK(gnncc_import(c, COUNT(none), none, &r) == GNNCC_E_DIAGNOSED);
    CHECK_MSG(strstr(gnncc_result_text(r), "nowhere.npz"), "%s", gnncc_result_text(r));
    gnncc_result_destroy(r);
    CHECK(gnncc_import(c, COUNT(odd), odd, &r) == GNNCC_E_OPTION && *gnncc_result_text(r));
    gnncc_result_destroy(r);
    CHECK(gnncc_import(c, 1, NULL, &r) == GNNCC_E_ARG && !r);
    gnncc_destroy(c);
}

TEST_MAIN()
