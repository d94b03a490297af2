/* Two models in one program, their epochs by turns: C99 and C++17.
 *
 *     library DATA CHECKPOINTS [NAME=LIBRARY]..    CHECKPOINTS/churn and CHECKPOINTS/spam
 *
 * A model that is not linked (-DOPENED_CHURN, -DOPENED_SPAM) is opened, with the functions of its
 * own library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "churn.h"
#include "spam.h"

enum { EPOCHS = 4 };

typedef struct {
    const char *name;
    const gnnc_program *program; /* NULL: not linked */
    const char *path;            /* of its library, to be opened */
    gnnc_trainer *t;
    gnnc_status (*create)(gnnc_trainer **, const gnnc_program *);
    gnnc_status (*set_int)(gnnc_trainer *, const char *, int64_t);
    gnnc_status (*load)(gnnc_trainer *, const char *);
    gnnc_status (*epoch)(gnnc_trainer *);
    gnnc_status (*save)(gnnc_trainer *, const char *);
    const char *(*error)(const gnnc_trainer *);
    void (*destroy)(gnnc_trainer *);
} Model;

static int find(void *so, void *to, const char *name) {
    void *p = dlsym(so, name);
    memcpy(to, &p, sizeof p);
    if (!p) fprintf(stderr, "%s\n", dlerror());
    return p != NULL;
}

static int open_model(Model *m) {
    char symbol[64];
    void *so = m->path ? dlopen(m->path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!so) {
        fprintf(stderr, "%s: %s\n", m->name, m->path ? dlerror() : "no library");
        return 0;
    }
    snprintf(symbol, sizeof symbol, "%s_program", m->name);
    return find(so, &m->program, symbol) && find(so, &m->create, "gnnc_trainer_create") &&
           find(so, &m->set_int, "gnnc_trainer_set_int") &&
           find(so, &m->load, "gnnc_trainer_load") && find(so, &m->epoch, "gnnc_trainer_epoch") &&
           find(so, &m->save, "gnnc_trainer_save") && find(so, &m->error, "gnnc_trainer_error") &&
           find(so, &m->destroy, "gnnc_trainer_destroy");
}

#if !defined(OPENED_CHURN) || !defined(OPENED_SPAM)
static void link_model(Model *m, const gnnc_program *program) {
    m->program = program;
    m->create = gnnc_trainer_create;
    m->set_int = gnnc_trainer_set_int;
    m->load = gnnc_trainer_load;
    m->epoch = gnnc_trainer_epoch;
    m->save = gnnc_trainer_save;
    m->error = gnnc_trainer_error;
    m->destroy = gnnc_trainer_destroy;
}
#endif

static int good(const Model *m, gnnc_status st, const char *what) {
    if (st != GNNC_OK)
        fprintf(stderr, "%s: %s: %d %s\n", m->name, what, (int)st, m->t ? m->error(m->t) : "");
    return st == GNNC_OK;
}

static int begin(Model *m, const char *data) {
    if (!m->program && !open_model(m)) return 0;
    return good(m, m->create(&m->t, m->program), "create") &&
           good(m, m->set_int(m->t, "seed", 7), "seed") &&
           good(m, m->set_int(m->t, "epochs", EPOCHS), "epochs") &&
           good(m, m->load(m->t, data), "load");
}

int main(int argc, char **argv) {
    Model m[2];
    char path[512];
    int i, k, ok = argc >= 3;
    memset(m, 0, sizeof m);
    m[0].name = "churn";
    m[1].name = "spam";
#ifndef OPENED_CHURN
    link_model(&m[0], &churn_program);
#endif
#ifndef OPENED_SPAM
    link_model(&m[1], &spam_program);
#endif
    for (i = 3; i < argc; i++)
        for (k = 0; k < 2; k++)
            if (!strncmp(argv[i], m[k].name, strlen(m[k].name)))
                m[k].path = argv[i] + strlen(m[k].name) + 1;
    for (k = 0; k < 2; k++) ok = ok && begin(&m[k], argv[1]);
    for (i = 0; i < EPOCHS; i++)
        for (k = 0; k < 2; k++) ok = ok && good(&m[k], m[k].epoch(m[k].t), "epoch");
    for (k = 0; ok && k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s", argv[2], m[k].name);
        ok = good(&m[k], m[k].save(m[k].t, path), "save");
    }
    for (k = 0; k < 2; k++)
        if (m[k].t) m[k].destroy(m[k].t);
    return ok ? 0 : 1;
}
