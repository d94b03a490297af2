/* The front end: files in, IR text or diagnostics out.
 * Every ```gnn block of docs/language.md compiles, every ```gnn-error block and
 * every file of tests/errors fails with the text its `expect-error` comment gives,
 * and every file of models/ compiles.  `--dump file.gnn` prints a file's IR. */
#include "frontend/fe.h"
#include "frontend/parse.h"
#include "test.h"

#include <dirent.h>

static const char *const dirs[] = {"models"};

typedef struct {
    const char *path;
    FeOptions opt;
    Module *m;
    uint32_t from_text; /* not used when path is a file */
} Job;

static void run_job(Ctx *c, void *arg) {
    Job *j = arg;
    (void)c;
    j->m = fe_compile(c, j->path, &j->opt);
}

/* Compiles a file; *text gets the printed module or the diagnostics, malloc'ed. */
static bool compile(const char *path, FeOptions opt, char **text) {
    Ctx c;
    size_t n = 0;
    if (!ctx_init(&c, NULL)) return false;
    opt.dirs = dirs;
    opt.n_dirs = 1;
    Job j = {.path = path, .opt = opt};
    bool ran = ctx_run(&c, run_job, &j);
    bool ok = ran && c.n_errors == 0 && (j.m || opt.check_only);
    if (ok && j.m) ok = module_verify(&c, j.m, "the front end");
    FILE *f = open_memstream(text, &n);
    if (ok && j.m) {
        StrBuf b = sb_new(c.a);
        module_print(&b, j.m);
        fputs(b.s, f);
    } else
        diag_print_all(&c, f, false);
    fclose(f);
    ctx_free(&c);
    return ok;
}

static bool compile_text(const char *source, size_t n, FeOptions opt, char **text) {
    char path[] = "/tmp/gnnc_test_XXXXXX.gnn";
    int fd = mkstemps(path, 4);
    FILE *f = fdopen(fd, "wb");
    fwrite(source, 1, n, f);
    fclose(f);
    bool ok = compile(path, opt, text);
    remove(path);
    return ok;
}

static char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *s = malloc(*n + 1);
    *n = fread(s, 1, *n, f);
    s[*n] = 0;
    fclose(f);
    return s;
}

/* ---- expect-error ---------------------------------------------------------------- */
/* Every `expect-error: text` of the source must be in the diagnostics, at its line. */
static void check_expected(const char *name, const char *source, size_t n) {
    char *text;
    bool ok = compile_text(source, n, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(!ok, "%s: compiles, but must not", name);
    int line = 1, wanted = 0, errors = 0;
    for (const char *p = source; *p; p++) {
        if (*p == '\n') line++;
        if (strncmp(p, "expect-error: ", 14) != 0) continue;
        char want[200], at[32];
        snprintf(want, sizeof want, "%.*s", (int)strcspn(p + 14, "\n"), p + 14);
        snprintf(at, sizeof at, ".gnn:%d:", line);
        wanted++;
        bool found = false;
        for (const char *d = strstr(text, at); d && !found; d = strstr(d + 1, at)) {
            const char *end = strchr(d, '\n');
            const char *hit = strstr(d, want);
            found = hit && (!end || hit < end);
        }
        CHECK_MSG(found, "%s:%d: no error \"%s\" in\n%s", name, line, want, text);
    }
    for (const char *d = text; (d = strstr(d, ": error: ")); d++) errors++;
    CHECK_MSG(wanted > 0, "%s: no expect-error comment", name);
    CHECK_MSG(errors == wanted, "%s: %d errors, %d expected\n%s", name, errors, wanted, text);
    free(text);
}

TEST(documented_examples) {
    size_t n;
    char *doc = read_file("docs/language.md", &n);
    CHECK(doc != NULL);
    if (!doc) return;
    int blocks = 0;
    for (char *p = doc; (p = strstr(p, "\n```gnn"));) {
        bool error = strncmp(p + 7, "-error\n", 7) == 0;
        char *start = strchr(p + 1, '\n') + 1, *end = strstr(start, "\n```\n");
        if (!end) break;
        char name[40];
        snprintf(name, sizeof name, "language.md block %d", ++blocks);
        char *block = strndup(start, (size_t)(end - start) + 1), *text;
        if (error)
            check_expected(name, block, strlen(block));
        else {
            bool ok = compile_text(block, strlen(block), (FeOptions){0}, &text);
            CHECK_MSG(ok, "%s:\n%s", name, text);
            free(text);
        }
        free(block);
        p = end + 1;
    }
    CHECK(blocks >= 6);
    free(doc);
}

static void each_file(const char *dir, void (*fn)(const char *path)) {
    DIR *d = opendir(dir);
    CHECK_MSG(d != NULL, "%s", dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        const char *dot = strrchr(f->d_name, '.');
        char path[512];
        if (!dot || strcmp(dot, ".gnn") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        fn(path);
    }
    if (d) closedir(d);
}

static void check_error_file(const char *path) {
    size_t n;
    char *s = read_file(path, &n);
    check_expected(path, s, n);
    free(s);
}

TEST(error_files) {
    each_file("tests/errors", check_error_file);
}

static void check_compiles(const char *path) {
    char *text;
    bool ok = compile(path, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(ok, "%s", text);
    free(text);
}

TEST(shipped_models) {
    each_file("models", check_compiles);
    each_file("models/layers", check_compiles);
}

int main(int argc, char **argv) {
    char *text;
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) {
        bool ok = compile(argv[2], (FeOptions){0}, &text);
        fputs(text, ok ? stdout : stderr);
        free(text);
        return !ok;
    }
    return test_main_(argc, argv, __FILE__);
}
