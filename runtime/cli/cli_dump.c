/* --dump-values: values of a step as files, one each time that it ran. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

int rt_cli_dump_begin(RtCli *c) {
    if (!c->dump) return RT_EXIT_OK;
    if (!gnnc_trainer_dumped(c->t, 0)) {
        fprintf(stderr,
                "%s: error: no value can be dumped: the program was compiled without "
                "gnnc's --dump-values\n",
                c->prog);
        return RT_EXIT_FAILED;
    }
    if (mkdir(c->dump, 0777) == 0 || errno == EEXIST) return RT_EXIT_OK;
    fprintf(stderr, "%s: error: cannot make %s: %s\n", c->prog, c->dump, strerror(errno));
    return RT_EXIT_FAILED;
}

/* Writes one value to DIR/AT.VALUE.npy. name: it with its phase, "train.h". */
static int dump_one(RtCli *c, const char *name, const char *value, const char *at) {
    char path[4096];
    const float *data;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    int n = snprintf(path, sizeof path, "%s/%s.%s.npy", c->dump, at, value);
    for (char *p = path + strlen(c->dump) + 1; n < (int)sizeof path && *p; p++)
        if (*p == '/') *p = '_'; /* names of layers have them */
    if (n >= (int)sizeof path) {
        fprintf(stderr, "%s: error: the name of the file of '%s' is too long\n", c->prog, name);
        return RT_EXIT_FAILED;
    }
    gnnc_status st = gnnc_trainer_output(c->t, name, &data, &rank, dim);
    if (st == GNNC_OK) st = gnnc_trainer_save_values(c->t, path, data, rank, dim);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

/* Writes the values of a phase that the program was compiled to dump (--dump-values). n: of which
 * step or epoch; -1: there is one alone. */
int rt_cli_dump(RtCli *c, const char *phase, int64_t n) {
    size_t k = strlen(phase);
    char at[64];
    if (n < 0)
        snprintf(at, sizeof at, "%s", phase);
    else
        snprintf(at, sizeof at, "%s.%lld", phase, (long long)n);
    for (int i = 0; c->dump; i++) {
        const char *name = gnnc_trainer_dumped(c->t, i);
        if (!name) break;
        if (strncmp(name, phase, k) != 0 || name[k] != '.') continue;
        if (dump_one(c, name, name + k + 1, at) != RT_EXIT_OK) return RT_EXIT_FAILED;
    }
    return RT_EXIT_OK;
}
