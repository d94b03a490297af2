/* Trainers of tiny_program.h on the data of tiny_data.h. */
#ifndef TESTS_TINY_TRAINER_H
#define TESTS_TINY_TRAINER_H

#include "test.h"

#include "rt_test_util.h"
#include "tiny_data.h"
#include "tiny_program.h"

typedef struct {
    char dir[64], a[100], b[100];
} Place;

static inline Place place_new(void) {
    Place p;
    snprintf(p.dir, sizeof p.dir, "%s", scratch_new());
    snprintf(p.a, sizeof p.a, "%s/a.ckpt", p.dir);
    snprintf(p.b, sizeof p.b, "%s/b.ckpt", p.dir);
    make_data(p.dir);
    return p;
}

static inline gnnc_trainer *trainer_new(const Place *p, int64_t epochs, int threads) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    if (epochs) CHECK(gnnc_trainer_set_int(t, "epochs", epochs) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "threads", threads) == GNNC_OK);
    gnnc_status st = gnnc_trainer_load(t, p->dir);
    CHECK_MSG(st == GNNC_OK, "load: %s", gnnc_trainer_error(t));
    return t;
}

static inline void train_on(gnnc_trainer *t, int64_t until) {
    while (!gnnc_trainer_done(t) && gnnc_trainer_epochs_done(t) < until) {
        gnnc_status st = gnnc_trainer_epoch(t);
        CHECK_MSG(st == GNNC_OK, "epoch: %s", gnnc_trainer_error(t));
        if (st != GNNC_OK) return;
    }
}

static inline bool same_file(const char *a, const char *b) {
    static char x[1 << 16], y[1 << 16];
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    size_t n = f ? fread(x, 1, sizeof x, f) : 0, m = g ? fread(y, 1, sizeof y, g) : 0;
    if (f) fclose(f);
    if (g) fclose(g);
    return n > 0 && n == m && memcmp(x, y, n) == 0;
}

static inline double metric(gnnc_trainer *t, const char *name) {
    double v = NAN;
    CHECK_MSG(gnnc_trainer_metric(t, name, &v) == GNNC_OK, "%s", gnnc_trainer_error(t));
    return v;
}

#endif
