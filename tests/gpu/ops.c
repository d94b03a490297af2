/* The op matrix on a GPU: every case as tests/op_matrix.c recorded it, with what the interpreter
 * computed and how far rounding may take an element.  Two trainers in one process run each case and
 * must agree to the bit.
 *
 *     ops DATA EXPECTED          prints a line for each case that fails, `N passed, N failed` last
 *
 * EXPECTED, words apart: `var PATH n values`, `phase NAME`, and for each phase `output NAME n
 * tolerance values` and `state PATH n tolerance values`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/trainer/trainer.h"

extern const gnnc_program model_program;

typedef struct {
    FILE *f;
    gnnc_trainer *t[2];
    char phase[256];
    double *want;
    float *got;
    long long n;
    double tolerance;
    int passed, failed, bad; /* bad: the phase under way */
} Ops;

static int read_values(Ops *o, int with_tolerance) {
    if (fscanf(o->f, "%lld", &o->n) != 1 || o->n < 0) return 0;
    if (with_tolerance && fscanf(o->f, "%lf", &o->tolerance) != 1) return 0;
    o->want = realloc(o->want, (size_t)(o->n + 1) * sizeof *o->want);
    o->got = realloc(o->got, (size_t)(o->n + 1) * sizeof *o->got);
    for (long long i = 0; o->want && o->got && i < o->n; i++)
        if (fscanf(o->f, "%lf", &o->want[i]) != 1) return 0;
    return o->want && o->got;
}

static void wrong(Ops *o, const char *name, const char *why) {
    printf("FAILED %s: %s: %s\n", o->phase, name, why);
    o->bad = 1;
}

static void compare(Ops *o, const char *name, double got, long long i) {
    double want = o->want[i];
    char why[160];
    if (o->bad || got == want || (isnan(want) && isnan(got)) || fabs(got - want) <= o->tolerance)
        return;
    snprintf(why, sizeof why, "element %lld is %.9g, not %.9g (tolerance %.2g)", i, got, want,
             o->tolerance);
    wrong(o, name, why);
}

static int output_buf(const Ops *o, const char *name) {
    for (int b = 0; b < model_program.tables->n_bufs; b++) {
        const rt_buf *buf = &model_program.tables->bufs[b];
        if (buf->kind == RT_BUF_OUTPUT && buf->phase == o->t[0]->last_phase &&
            !strcmp(buf->io_name, name))
            return b;
    }
    return -1;
}

static void check_output(Ops *o, const char *name) {
    int b = output_buf(o, name);
    size_t n_bytes = 0;
    if (b < 0 || model_program.tables->buf_count(b, o->t[0]->x.n) != o->n) {
        wrong(o, name, "there is no such output of that size");
        return;
    }
    for (long long i = 0; i < o->n; i++) compare(o, name, rt_buf_read(&o->t[0]->x, b, i), i);
    rt_pull(&o->t[1]->x, b);
    rt_buf_bytes(&o->t[0]->x, b, &n_bytes);
    if (o->n && memcmp(o->t[0]->x.buf[b], o->t[1]->x.buf[b], n_bytes) != 0)
        wrong(o, name, "other bits the second time");
}

static void check_state(Ops *o, const char *path) {
    if (gnnc_trainer_get_parameter(o->t[0], path, o->got, (size_t)o->n) != GNNC_OK)
        wrong(o, path, gnnc_trainer_error(o->t[0]));
    else
        for (long long i = 0; i < o->n; i++) compare(o, path, (double)o->got[i], i);
}

static int set_var(Ops *o, const char *path) {
    for (long long i = 0; i < o->n; i++) o->got[i] = (float)o->want[i];
    for (int k = 0; k < 2; k++)
        if (gnnc_trainer_set_parameter(o->t[k], path, o->got, (size_t)o->n) != GNNC_OK) return 0;
    return 1;
}

static void end_phase(Ops *o) {
    if (o->phase[0]) o->bad ? o->failed++ : o->passed++;
    o->bad = 0;
}

static void begin_phase(Ops *o, const char *name) {
    end_phase(o);
    snprintf(o->phase, sizeof o->phase, "%s", name);
    for (int k = 0; k < 2 && !o->bad; k++)
        if (gnnc_trainer_run_phase(o->t[k], name) != GNNC_OK)
            wrong(o, "run", gnnc_trainer_error(o->t[k]));
}

static int run(Ops *o) {
    char word[16], name[256];
    while (fscanf(o->f, "%15s %255s", word, name) == 2) {
        int is_var = !strcmp(word, "var");
        if (!strcmp(word, "phase")) {
            begin_phase(o, name);
            continue;
        }
        if (!read_values(o, !is_var)) return 0;
        if (is_var && !set_var(o, name)) return 0;
        if (!is_var && !o->bad)
            strcmp(word, "output") ? check_state(o, name) : check_output(o, name);
    }
    end_phase(o);
    return o->passed + o->failed > 0;
}

static int load(gnnc_trainer **t, const char *data) {
    if (gnnc_trainer_create(t, &model_program) != GNNC_OK) return 0;
    return gnnc_trainer_set_int(*t, "seed", 42) == GNNC_OK &&
           gnnc_trainer_set_real(*t, "lr", 0.125) == GNNC_OK &&
           gnnc_trainer_load(*t, data) == GNNC_OK;
}

int main(int argc, char **argv) {
    Ops o = {.f = argc == 3 ? fopen(argv[2], "r") : NULL};
    if (!o.f) {
        fprintf(stderr, "usage: ops DATA EXPECTED\n");
        return 2;
    }
    int ok = load(&o.t[0], argv[1]) && load(&o.t[1], argv[1]) && run(&o);
    if (!ok) printf("FAILED: %s\n", o.t[0] ? gnnc_trainer_error(o.t[0]) : "no trainer");
    printf("ops: %d passed, %d failed\n", o.passed, o.failed + !ok);
    gnnc_trainer_destroy(o.t[0]);
    gnnc_trainer_destroy(o.t[1]);
    free(o.want);
    free(o.got);
    fclose(o.f);
    return !ok || o.failed;
}
