/* The n-th allocation fails, and all behind it, for every n, in a trainer's main: it ends with 1
 * and words, or does what it should, and gives everything back.  The linker hands its calls of
 * malloc and its kin to the functions here. */
#include "tiny_trainer.h"

#include <fcntl.h>

static long n_calls, n_live, fail_at = -1;
static bool counts; /* main is running */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static bool refused(void) {
    if (!counts) return false;
    return n_calls++ >= fail_at && fail_at >= 0;
}
static void *counted(void *p) {
    n_live += counts && p;
    return p;
}
void *__wrap_malloc(size_t n) {
    return refused() ? NULL : counted(__real_malloc(n));
}
void *__wrap_calloc(size_t n, size_t size) {
    return refused() ? NULL : counted(__real_calloc(n, size));
}
void *__wrap_realloc(void *p, size_t n) {
    if (refused()) return NULL;
    return p ? __real_realloc(p, n) : counted(__real_realloc(p, n));
}
void __wrap_free(void *p) {
    n_live -= counts && p;
    __real_free(p);
}

static char told[1 << 16];

/* Its exit code; what it told on standard error is in `told`. */
static int run(const gnnc_program *rows, const char *line) {
    char words[256], *argv[24] = {words};
    int argc = 1, was[2] = {dup(1), dup(2)};
    int out = open("/dev/null", O_WRONLY), err = open("err", O_RDWR | O_CREAT | O_TRUNC, 0600);
    snprintf(words, sizeof words, "tiny --data=. --threads=1 %s", line);
    for (char *w = strtok(words, " "); (w = strtok(NULL, " "));) argv[argc++] = w;
    dup2(out, 1), dup2(err, 2);
    counts = true;
    int code = rows ? gnnc_trainer_main_with(&tiny_model, rows, argc, argv)
                    : gnnc_trainer_main(&tiny_model, argc, argv);
    counts = false;
    fflush(stdout);
    dup2(was[0], 1), dup2(was[1], 2);
    ssize_t n = pread(err, told, sizeof told - 1, 0);
    told[n < 0 ? 0 : n] = '\0';
    close(was[0]), close(was[1]), close(out), close(err);
    return code;
}

static void every_allocation(const gnnc_program *rows, const char *line) {
    int code = 1;
    fail_at = -1;
    CHECK_MSG(run(rows, line) == 0, "%s: %s", line, told);
    CHECK_MSG(n_live == 0, "%s: %ld blocks leak", line, n_live);
    for (long n = 0; n < 2000 && !(code == 0 && n_calls < n); n++) {
        n_calls = n_live = 0;
        fail_at = n;
        code = run(rows, line);
        CHECK_MSG(code == 0 || (code == 1 && told[0]), "%s, allocation %ld: %d", line, n, code);
        CHECK_MSG(n_live == 0, "%s, allocation %ld: %ld blocks leak", line, n, n_live);
    }
    CHECK_MSG(n_calls > 3 && n_calls <= fail_at, "%s: %ld requests", line, n_calls);
}

TEST(every_allocation_of_main_may_fail) {
    Place p = place_new();
    char here[512];
    CHECK(getcwd(here, sizeof here) && chdir(p.dir) == 0);
    write_text(".", "rows", "3\n0\n39\n");
    CHECK(run(NULL, "--epochs=2 --checkpoint=c --log=none") == 0);
    every_allocation(NULL, "train --epochs=2 --checkpoint=d --out=w --log=json --trace=t");
    every_allocation(NULL, "train --epochs=3 --resume=c --checkpoint=d --log=text");
    every_allocation(NULL, "train --epochs=1 --seeds=2 --checkpoint=none");
    every_allocation(NULL, "eval --weights=c");
    every_allocation(NULL, "predict --weights=c --out=o");
    every_allocation(&tiny_model, "predict --weights=c --nodes=rows --format=jsonl --out=o");
    every_allocation(NULL, "embed h --weights=c --out=o");
    every_allocation(NULL, "info --json");
    every_allocation(NULL, "bench --epochs=1 --json");
    CHECK(chdir(here) == 0);
    scratch_remove(p.dir);
}

TEST_MAIN()
