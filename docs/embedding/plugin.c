/* A model as a plugin: the program knows no model when it is linked, and opens any number of them,
 * each with a runtime of its own, whose functions it takes by name.
 *
 *     plugin DATA WEIGHTS LIBRARY NAME        as ./libgcn.so gcn */
#include <dlfcn.h>
#include <gnnc.h>
#include <stdio.h>
#include <string.h>

/* The functions that are needed; gnnc.h has their types. */
#define CALLS(X)                                                                                   \
    X(model_create)                                                                                \
    X(model_load)                                                                                  \
    X(model_name)                                                                                  \
    X(model_release)                                                                               \
    X(graph_create)                                                                                \
    X(graph_read)                                                                                  \
    X(graph_commit)                                                                                \
    X(graph_release)                                                                               \
    X(session_create)                                                                              \
    X(session_open)                                                                                \
    X(session_rows)                                                                                \
    X(session_row_shape)                                                                           \
    X(session_destroy)

typedef struct {
    void *library;
    const gnnc_program *program;
#define FIELD(name) __typeof__(gnnc_##name) *name;
    CALLS(FIELD)
#undef FIELD
} Plugin;

/* A pointer to a function from one to data, which ISO C has no cast for. */
static int take(Plugin *p, const char *name, void *function, size_t n_bytes) {
    void *at = dlsym(p->library, name);
    memcpy(function, &at, n_bytes);
    return at != NULL;
}

static int open_plugin(Plugin *p, const char *library, const char *name) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s_program", name);
    p->library = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* LOCAL: others may have these, too */
    if (!p->library) return 0;
    p->program = dlsym(p->library, symbol);
#define TAKE(name) &&take(p, "gnnc_" #name, &p->name, sizeof p->name)
    return p->program CALLS(TAKE);
#undef TAKE
}

static int use(const Plugin *p, const char *data, const char *weights) {
    gnnc_model *m = NULL;
    gnnc_graph *g = NULL;
    gnnc_session *s = NULL;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    int ok = !p->model_create(&m, p->program) && !p->model_load(m, weights) &&
             !p->graph_create(&g) && !p->graph_read(g, data, 1) && !p->graph_commit(g) &&
             !p->session_create(&s) && !p->session_open(s, m, g) &&
             !p->session_row_shape(s, &rank, dim);
    if (ok)
        printf("%s: %lld rows of %lld scores\n", p->model_name(m), (long long)p->session_rows(s),
               (long long)dim[0]);
    p->session_destroy(s);
    p->graph_release(g);
    p->model_release(m);
    return ok;
}

int main(int argc, char **argv) {
    Plugin p = {0};
    if (argc != 5) return 2;
    int ok = open_plugin(&p, argv[3], argv[4]) && use(&p, argv[1], argv[2]);
    if (!ok) fprintf(stderr, "plugin: %s cannot be used\n", argv[3]);
    if (p.library) dlclose(p.library); /* when nothing that it made is left */
    return !ok;
}
