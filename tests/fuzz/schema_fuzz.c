/* Fuzz target: any text as schema.json, beside small good files of several shapes.
 * What is accepted can be put into another order; encoders have a table and a column. */
#include "runtime/data/dataset.h"
#include "runtime/model/encoders.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The files that a schema may name: "<descr>_<rows>_<columns>", e.g. "i4_3_0". */
static gnnc_status make_file(RtPool *pool, const char *name, RtBytes *out, RtError *err) {
    char descr[3] = "";
    int rows, columns;
    if (sscanf(name, "%2[a-z0-9]_%d_%d", descr, &rows, &columns) != 3 || rows < 0 || rows > 20 ||
        columns < 0 || columns > 20)
        return rt_fail(err, GNNC_E_IO, "%s: no such file", name);
    uint8_t *file = rt_pool_alloc(pool, 8192, 1);
    if (!file) return GNNC_E_NOMEM;
    memcpy(file, "\x93NUMPY\x01", 8);
    char shape[32];
    snprintf(shape, sizeof shape, columns ? "(%d, %d)" : "(%d,)", rows, columns);
    int len =
        snprintf((char *)file + 10, 500, "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }",
                 strchr("1", descr[1]) ? "|" : "<", descr, shape);
    file[8] = (uint8_t)len;
    size_t size = descr[1] >= '1' && descr[1] <= '8' ? (size_t)(descr[1] - '0') : 1;
    *out =
        (RtBytes){file, 10 + (size_t)len + size * (size_t)rows * (size_t)(columns ? columns : 1)};
    return GNNC_OK;
}

static gnnc_status get(void *user, RtPool *pool, const char *name, bool map, RtBytes *out,
                       RtError *err) {
    (void)map;
    if (strcmp(name, "schema.json") != 0) return make_file(pool, name, out, err);
    *out = *(RtBytes *)user;
    return GNNC_OK;
}

static void reorder(const RtTable *t, RtPool *pool) {
    const int32_t idx[2] = {0, 0};
    for (int i = 0; i < t->n_columns && t->count; i++) {
        RtColumn c;
        if (rt_column_take(pool, &t->columns[i], idx, 2, &c, NULL) == GNNC_OK &&
            rt_column_check(&c, "t", NULL) != GNNC_OK)
            __builtin_trap();
    }
}

static void read_encoders(RtBytes text) {
    RtPool pool;
    RtEncoders all;
    rt_pool_init(&pool, NULL);
    if (rt_encoders_of_schema(&pool, "t", text, &all, NULL) == GNNC_OK)
        for (int i = 0; i < all.n; i++)
            if (rt_encoders_find(&all, all.v[i].table, all.v[i].column) == NULL) __builtin_trap();
    rt_pool_free(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtBytes text = {data, n};
    read_encoders(text);
    RtFiles files = {.get = get, .user = &text, .map_values = true};
    RtDataset *d;
    if (rt_dataset_open_files(NULL, &files, &d, NULL) != GNNC_OK) return 0;
    for (int i = 0; i < d->n_nodes; i++) reorder(&d->nodes[i], &d->pool);
    for (int i = 0; i < d->n_edges; i++) reorder(&d->edges[i], &d->pool);
    rt_dataset_close(d);
    return 0;
}
