/* main of a compiled trainer. */
#include "cli.h"

#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Runs the command that was given; returns the exit code. */
static int dispatch(RtCli *c) {
    switch (c->command) {
    case RT_CMD_HELP:
        rt_cli_help(c, stdout);
        return RT_EXIT_OK;
    case RT_CMD_VERSION:
        printf("%s (libgnnrt %s; compiled by %s with %s)\n", c->is.name, gnnc_version(),
               c->is.compiler, c->is.options);
        return RT_EXIT_OK;
    case RT_CMD_INFO:
        return rt_cli_info(c);
    case RT_CMD_TRAIN:
        return rt_cli_train(c);
    case RT_CMD_EVAL:
        return rt_cli_eval(c);
    case RT_CMD_PREDICT:
    case RT_CMD_EMBED:
        return rt_cli_write_values(c);
    case RT_CMD_EXPLAIN:
        return rt_cli_explain(c);
    case RT_CMD_BENCH:
        return rt_cli_bench(c);
    case RT_CMD_TUNE:
        return rt_cli_tune(c);
    }
    return RT_EXIT_USAGE;
}

/* A full disk must not look like success. */
static int flush_output(const RtCli *c, int code) {
    bool bad = fflush(stdout) != 0 || ferror(stdout);
    if (!bad || code != RT_EXIT_OK) return code;
    fprintf(stderr, "%s: cannot write to standard output\n", c->prog);
    return RT_EXIT_FAILED;
}

/* Columns of values are mapped: a file that shrinks under way leaves pages without bytes. */
static void file_has_shrunk(int signal) {
    static const char text[] = "error: a file of the data was cut short while it was in use; it "
                               "must not change while a trainer runs\n";
    (void)signal;
    ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)told;
    _exit(RT_EXIT_FAILED);
}

/* Makes the trainer, with options that suit a program: data are mapped, index arrays of many edges
 * cached. */
static gnnc_status begin(RtCli *c) {
    gnnc_status st = gnnc_trainer_create(&c->t, c->program);
    if (st != GNNC_OK) {
        c->t = NULL;
        fprintf(stderr, "%s: %s\n", c->prog, gnnc_status_text(st));
        return st;
    }
    gnnc_trainer_set_message(c->t, rt_cli_message, c);
    gnnc_trainer_set_int(c->t, "map", 1);
    gnnc_trainer_set_int(c->t, "cache", 1 << 18); /* those of fewer edges are made in a moment */
    return GNNC_OK;
}

int rt_cli_renew(RtCli *c) {
    gnnc_trainer_destroy(c->t);
    if (begin(c) != GNNC_OK) return RT_EXIT_FAILED;
    c->format = -1; /* as before any option was read */
    int code = rt_cli_parse(c, c->argc, c->argv);
    rt_ranks_join(c);
    return code;
}

/* Runs a trainer program with the arguments of its main(). rows: a second program, which predicts
 * single rows; NULL: none. Returns the exit code. */
static int run(const gnnc_program *model, const gnnc_program *rows, int argc, char **argv) {
    RtCli c = {.program = model,
               .rows = rows,
               .argc = argc,
               .argv = argv,
               .prog = argc > 0 ? base_name(argv[0]) : "gnnc",
               .n_epochs = -1,
               .format = -1,
               .is.struct_size = sizeof c.is,
               .recipe.struct_size = sizeof c.recipe};
    RtMpi mpi;
    if (rt_ranks_begin(&c, &argc, &argv, &mpi) != RT_EXIT_OK) return RT_EXIT_FAILED;
    if (begin(&c) != GNNC_OK) return RT_EXIT_FAILED;
    gnnc_program_describe(model, &c.is);
    gnnc_program_recipe(model, &c.recipe);
    /* A file size limit is reported as an error of the write, not by killing us. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    struct sigaction shrunk = {.sa_handler = file_has_shrunk}, bus_before;
    sigaction(SIGXFSZ, &ignore, &before);
    sigaction(SIGBUS, &shrunk, &bus_before);
    int code = rt_cli_parse(&c, argc, argv);
    if (code == RT_EXIT_OK && rt_ranks_join(&c)) code = dispatch(&c);
    fflush(stdout);
    rt_ranks_end_if_alone(&c, code);
    gnnc_trainer_destroy(c.t);
    sigaction(SIGXFSZ, &before, NULL);
    sigaction(SIGBUS, &bus_before, NULL);
    code = flush_output(&c, code);
    return rt_ranks_end(&c, code);
}

/* Numbers are printed as JSON and scripts read them, whatever the host's locale. */
int gnnc_trainer_main_with(const gnnc_program *model, const gnnc_program *rows, int argc,
                           char **argv) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    int code = run(model, rows, argc, argv);
    if (before) uselocale(before);
    if (plain) freelocale(plain);
    return code;
}

int gnnc_trainer_main(const gnnc_program *model, int argc, char **argv) {
    return gnnc_trainer_main_with(model, NULL, argc, argv);
}
