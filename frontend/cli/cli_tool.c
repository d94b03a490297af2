/* Running other programs: their arguments, and what became of them. */
#include "frontend/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"

extern char **environ;

double cli_now_ms(void) {
    return 1e3 * rt_now();
}

void cli_stage_time(Ctx *c, const CliOptions *o, const char *what, double since) {
    if (o->pass.time_passes) ctx_log(c, "%9.3f ms  [%s]\n", cli_now_ms() - since, what);
}

void cli_arg(Ctx *c, CliArgs *args, const char *s) {
    vec_push(c->a, args, arena_strndup(c->a, s, strlen(s)));
}

void cli_args(Ctx *c, CliArgs *args, const CliArgs *more) {
    for (int i = 0; i < more->n; i++) vec_push(c->a, args, more->v[i]);
}

/* Adds the words of s, which are separated by spaces, as arguments. */
void cli_split_args(Ctx *c, CliArgs *args, const char *s) {
    while (*(s += strspn(s, " \t"))) {
        size_t n = strcspn(s, " \t");
        vec_push(c->a, args, arena_strndup(c->a, s, n));
        s += n;
    }
}

/* Adds the lines of s as arguments. */
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

/* Begins a command of the C compiler, $CC or cc, with more words. */
void cli_cc(Ctx *c, CliArgs *args, const char *words) {
    const char *cc = getenv("CC");
    cli_split_args(c, args, cc && cc[strspn(cc, " \t")] ? cc : "cc");
    cli_split_args(c, args, words);
}

/* Begins a command that compiles C, with $CFLAGS. -flto is turned off, as its objects hold no
 * machine code yet. */
void cli_cc_compile(Ctx *c, CliArgs *args, const char *words) {
    const char *flags = getenv("CFLAGS");
    cli_cc(c, args, words);
    if (flags) cli_split_args(c, args, flags);
    if (flags && strstr(flags, "-flto")) cli_arg(c, args, "-fno-lto");
}

/* Writes a word of a command as a shell reads it, so that what is shown can be pasted. */
static void show_word(StrBuf *b, const char *s) {
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                        "@%+=:,./_-";
    if (*s && !s[strspn(s, plain)]) {
        sb_puts(b, s);
        return;
    }
    sb_puts(b, "'");
    for (; *s; s++)
        if (*s == '\'')
            sb_puts(b, "'\\''");
        else
            sb_put(b, s, 1);
    sb_puts(b, "'");
}

/* Prints a command to the log, as a shell would read it. */
static void show(Ctx *c, const CliArgs *args) {
    StrBuf b = sb_new(c->a);
    for (int i = 0; i < args->n; i++) {
        sb_puts(&b, i ? " " : "gnnc: ");
        show_word(&b, args->v[i]);
    }
    ctx_log(c, "%s\n", b.s);
}

/* ---- running them -------------------------------------------------------------------- */
/* The environment for tools: TMPDIR is the private directory, so that what they leave is removed
 * with it. */
static char **environment(Ctx *c) {
    VEC(char *) env = {0};
    for (char **e = environ; e && *e; e++)
        if (!c->outside.temp || strncmp(*e, "TMPDIR=", 7) != 0) vec_push(c->a, &env, *e);
    if (c->outside.temp) vec_push(c->a, &env, arena_printf(c->a, "TMPDIR=%s", c->outside.temp));
    vec_push(c->a, &env, (char *)NULL);
    return env.v;
}

/* Where a tool writes that shares its process with others: NULL = where gnnc does. */
static const char *told_file(Ctx *c) {
    bool apart = !c->outside.own_process && c->outside.temp;
    return apart ? arena_printf(c->a, "%s/told.txt", c->outside.temp) : NULL;
}

/* Starts a process. told: the file that takes its messages; group: it leads a process group, so
 * that it can be ended with those that it starts. 0, or the errno. */
static int spawn(pid_t *pid, char **args, char **env, const char *told, bool group) {
    posix_spawn_file_actions_t f;
    posix_spawnattr_t how;
    int e = posix_spawn_file_actions_init(&f);
    if (e) return e;
    if ((e = posix_spawnattr_init(&how)) != 0) {
        posix_spawn_file_actions_destroy(&f);
        return e;
    }
    sigset_t child; /* ignored by the host it would be by the tool, which waits for its own */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    e = posix_spawnattr_setsigdefault(&how, &child);
    short flags = POSIX_SPAWN_SETSIGDEF;
    if (group) flags |= POSIX_SPAWN_SETPGROUP;
    if (!e) e = posix_spawnattr_setflags(&how, flags);
    if (told && !e) e = posix_spawn_file_actions_addopen(&f, 0, "/dev/null", O_RDONLY, 0);
    if (told && !e)
        e = posix_spawn_file_actions_addopen(&f, 1, told, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (told && !e) e = posix_spawn_file_actions_adddup2(&f, 1, 2);
    if (!e) e = posix_spawnp(pid, args[0], &f, &how, args, env);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&f);
    return e;
}

/* Of a tool's end: the shell's number for it. */
enum { UNKNOWN = -1 };

static int code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Waits for a process and returns its code. UNKNOWN: the caller ignores SIGCHLD, or another of
 * its threads was told instead. */
static int wait_for(pid_t pid) {
    int status;
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    return ended < 0 ? UNKNOWN : code_of(status);
}

static const struct timespec pause_time = {.tv_nsec = 5 * 1000 * 1000};

/* Ends a process and those that it started. It waits for these, too: the compiler proper may
 * outlive cc for a moment and write into the private directory. */
static void end_group(pid_t pid) {
    kill(-pid, SIGTERM);
    wait_for(pid);
    for (int i = 0; i < 100 && kill(-pid, 0) == 0; i++) nanosleep(&pause_time, NULL);
}

/* Waits for a process and returns its code. If the caller cancels, ends the process's group and
 * leaves the compile by longjmp. */
static int wait_unless_cancelled(Ctx *c, pid_t pid) {
    const Outside *o = &c->outside;
    int status = 0;
    if (!o->cancelled) return wait_for(pid);
    for (pid_t ended; (ended = waitpid(pid, &status, WNOHANG)) <= 0;) {
        if (ended < 0 && errno != EINTR) return UNKNOWN;
        if (o->cancelled(o->user)) {
            end_group(pid);
            c->cancelled = true;
            longjmp(c->oom, 1);
        }
        nanosleep(&pause_time, NULL);
    }
    return code_of(status);
}

/* Runs a command; told: the file that takes its messages, NULL = those of gnnc. False after a
 * diagnostic: it could not be started. */
static bool run(Ctx *c, char **args, const char *told, int *code) {
    pid_t pid;
    int e = spawn(&pid, args, environment(c), told, c->outside.cancelled != NULL);
    if (e)
        diag_add(c, DIAG_E0004, (Span){0}, "cannot run '%s': %s", args[0], strerror(e));
    else
        *code = wait_unless_cancelled(c, pid);
    return !e;
}

/* Whether the process ignores SIGCHLD, so that the exit status of children is lost to waitpid. */
static bool host_takes_no_status(void) {
    struct sigaction a;
    return sigaction(SIGCHLD, NULL, &a) == 0 &&
           (a.sa_handler == SIG_IGN || a.sa_flags & SA_NOCLDWAIT);
}

/* Runs a command by a shell, which waits for it and writes its exit status to a temporary file:
 * where SIGCHLD is ignored this process cannot wait for it. told: where its messages go, NULL = on.
 * False: the shell could not be run. */
static bool run_by_shell(Ctx *c, const CliArgs *args, const char *told, int *code) {
    const char *file = arena_printf(c->a, "%s/ended.txt", c->outside.temp);
    CliArgs sh = {0};
    struct stat s;
    cli_arg(c, &sh, "/bin/sh");
    cli_arg(c, &sh, "-c");
    cli_arg(c, &sh, "\"$@\"; echo $? >\"$0\"");
    cli_arg(c, &sh, file);
    cli_args(c, &sh, args);
    unlink(file);
    if (!run(c, sh.v, told, code)) return false;
    const char *text = cli_read(c, file, &s);
    bool said = text && *text >= '0' && *text <= '9';
    *code = said ? (int)strtol(text, NULL, 10) : UNKNOWN;
    unlink(file);
    return true;
}

/* Reports a tool that failed, with what it said. Always false. */
static bool not_built(Ctx *c, const CliArgs *args, int code, const char *told) {
    struct stat s;
    const char *text = told ? cli_read(c, told, &s) : NULL;
    diag_add(c, DIAG_E0004, (Span){0}, "'%s' could not build the program (status %s)%s", args->v[0],
             code == UNKNOWN ? "unknown" : arena_printf(c->a, "%d", code),
             told ? "" : "; -v shows the command");
    int n = text ? (int)strnlen(text, 4000) : 0;
    while (n && text[n - 1] == '\n') n--;
    if (n) diag_note(c, (Span){0}, "%.*s", n, text);
    return false;
}

/* Runs a command that may end as it likes; *code: the shell's number for how it did. Where the host
 * takes no exit status (SIGCHLD is ignored), a shell runs it, if there is a folder for temporary
 * files. False: it could not be run. */
bool cli_run_command(Ctx *c, CliArgs *args, int *code) {
    vec_push(c->a, args, (char *)NULL);
    *code = UNKNOWN;
    bool shell = c->outside.temp && host_takes_no_status();
    if (!shell && !run(c, args->v, NULL, code)) return false;
    return *code != UNKNOWN || (c->outside.temp && run_by_shell(c, args, NULL, code));
}

/* Runs a command that must end with 0. verbose: shows it before. False after a diagnostic. */
bool cli_run_tool(Ctx *c, CliArgs *args, bool verbose) {
    if (verbose) show(c, args);
    vec_push(c->a, args, (char *)NULL);
    const char *told = told_file(c);
    int code = UNKNOWN;
    bool shell = c->outside.temp && host_takes_no_status();
    if (!shell && !run(c, args->v, told, &code)) return false;
    if (code == UNKNOWN && c->outside.temp && !run_by_shell(c, args, told, &code)) return false;
    return code == 0 || not_built(c, args, code, told);
}
