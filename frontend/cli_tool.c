/* Running other programs: their arguments, and what became of them. */
#include "frontend/cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/clock.h"

extern char **environ;

double cli_now_ms(void) {
    return 1e3 * rt_now();
}

void cli_stage_time(const CliOptions *o, const char *what, double since) {
    if (o->pass.time_passes) fprintf(stderr, "%9.3f ms  [%s]\n", cli_now_ms() - since, what);
}

void cli_arg(Ctx *c, CliArgs *args, const char *s) {
    vec_push(c->a, args, arena_strndup(c->a, s, strlen(s)));
}

void cli_args(Ctx *c, CliArgs *args, const CliArgs *more) {
    for (int i = 0; i < more->n; i++) vec_push(c->a, args, more->v[i]);
}

void cli_split_args(Ctx *c, CliArgs *args, const char *s) {
    while (*(s += strspn(s, " \t"))) {
        size_t n = strcspn(s, " \t");
        vec_push(c->a, args, arena_strndup(c->a, s, n));
        s += n;
    }
}

void cli_line_args(Ctx *c, CliArgs *args, const char *s) {
    while (*(s += strspn(s, "\n"))) {
        size_t n = strcspn(s, "\n");
        vec_push(c->a, args, arena_strndup(c->a, s, n));
        s += n;
    }
}

void cli_linker_arg(Ctx *c, CliArgs *args, const char *s) {
    cli_arg(c, args, "-Xlinker");
    cli_arg(c, args, s);
}

void cli_cc(Ctx *c, CliArgs *args, const char *words) {
    const char *cc = getenv("CC");
    cli_split_args(c, args, cc && cc[strspn(cc, " \t")] ? cc : "cc");
    cli_split_args(c, args, words);
}

void cli_cc_compile(Ctx *c, CliArgs *args, const char *words) {
    const char *flags = getenv("CFLAGS");
    cli_cc(c, args, words);
    if (flags) cli_split_args(c, args, flags);
    if (flags && strstr(flags, "-flto")) cli_arg(c, args, "-fno-lto");
}

/* A word of a shell's command: what is shown can be pasted. */
static void show_word(const char *s) {
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                        "@%+=:,./_-";
    if (*s && !s[strspn(s, plain)]) {
        fputs(s, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", stderr);
        else
            fputc(*s, stderr);
    fputc('\'', stderr);
}

static void show(const CliArgs *args) {
    for (int i = 0; i < args->n; i++) {
        fputs(i ? " " : "gnnc: ", stderr);
        show_word(args->v[i]);
    }
    fputs("\n", stderr);
}

bool cli_run_tool(Ctx *c, CliArgs *args, bool verbose) {
    if (verbose) show(args);
    vec_push(c->a, args, (char *)NULL);
    pid_t pid;
    int status = 0, e = posix_spawnp(&pid, args->v[0], NULL, NULL, args->v, environ);
    if (e) {
        diag_add(c, DIAG_E0004, (Span){0}, "cannot run '%s': %s", args->v[0], strerror(e));
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    diag_add(c, DIAG_E0004, (Span){0},
             "'%s' could not build the program (status %d); -v shows the command", args->v[0],
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return false;
}
