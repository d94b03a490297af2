/* Fuzz target: any bytes as the manifest of one of RelBench's folders.  It ends in an error that
 * names a line, or in a tree that can be walked. */
#include <stdlib.h>

#include "frontend/source/yaml.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* How many values there are. Members of objects have keys, texts are texts. */
static int walk(const RtJson *v, bool member) {
    int n = 1, items = 0;
    if (!v || member != (v->key != NULL) || v->line < 1) abort();
    if (v->kind == RT_JSON_STRING && !v->text) abort();
    for (const RtJson *i = v->first; i; i = i->next, items++)
        n += walk(i, v->kind == RT_JSON_OBJECT);
    if (items != v->n) abort();
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtPool pool;
    RtJson *v;
    RtError err = {""};
    rt_pool_init(&pool, NULL);
    if (source_yaml(&pool, (RtBytes){data, n}, "m", &v, &err) != GNNC_OK) {
        if (strncmp(err.text, "m:", 2) != 0) abort();
    } else if (walk(v, false) > MOST_NODES) {
        abort();
    }
    rt_pool_free(&pool);
    return 0;
}
