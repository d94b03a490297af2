/* gnnc: the command line.  Only this file chooses an exit status: 0 done, 1 a diagnosed mistake, 2
 * a wrong command line. */
#include "frontend/cli/cli.h"
#include "frontend/source/export.h"
#include "frontend/source/image.h"
#include "frontend/source/partition.h"
#include "frontend/source/source.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    CliOptions o;
    int argc;
    char **argv;
    bool parsed, ok;
} Call;

/* Parses the command line and does what it asks for, within ctx_run. */
static void run(Ctx *c, void *arg) {
    Call *j = arg;
    j->parsed = cli_parse(c->a, &j->o, j->argc, j->argv, stderr);
    if (!j->parsed) return;
    switch (j->o.action) {
    case ACT_COMPILE:
    case ACT_CHECK:
    case ACT_OPT:
    case ACT_RUN:
    case ACT_COMPARE:
    case ACT_FMT:
    case ACT_LSP:
        j->ok = cli_act(c, &j->o);
        break;
    case ACT_HELP:
        if (j->o.files.n)
            cli_manual(stdout, j->o.files.v[0]);
        else
            cli_help(stdout);
        j->ok = true;
        break;
    case ACT_VERSION:
        j->ok = puts("gnnc " GNNC_VERSION_TEXT) >= 0;
        break;
    }
}

/* The gnnc command. import, export and partition have command lines of their own. */
int main(int argc, char **argv) {
    const ImportReaders readers = {source_databases, source_read_image};
    if (argc > 1 && strcmp(argv[1], "import") == 0) /* has a command line of its own */
        return gnnc_import_main(argc - 1, argv + 1, &readers, stdout, stderr);
    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return gnnc_export_main(argc - 1, argv + 1, stdout, stderr);
    if (argc > 1 && strcmp(argv[1], "partition") == 0)
        return gnnc_partition_main(argc - 1, argv + 1, stdout, stderr);
    Ctx c;
    Call j = {.argc = argc, .argv = argv};
    bool began = ctx_init(&c, NULL);
    c.outside = (Outside){.out = stdout, .log = stderr, .own_process = true};
    bool ended = began && ctx_run(&c, run, &j);
    if (!began || (!ended && !c.faulted)) {
        fprintf(stderr, "gnnc: error: %s  [%s]\n", diag_code_title(DIAG_E0001),
                diag_code_name(DIAG_E0001));
        return EXIT_DIAGNOSED;
    }
    diag_print_all(&c, stderr, isatty(STDERR_FILENO));
    int status = !j.parsed ? EXIT_USAGE : j.ok && c.n_errors == 0 ? EXIT_OK : EXIT_DIAGNOSED;
    ctx_free(&c);
    return fflush(stdout) == 0 ? status : EXIT_DIAGNOSED;
}
