/* Fuzz target: any text as a question about a small shop.  It ends in an error with words, which
 * leaves the data as they are, or in a task whose table is in order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/import/import_folder.h"
#include "runtime/import/import_task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char customers[] =
    "id,city,born\n1,ankara,1960-01-01\n2,berlin,1970-01-01\n3,berlin,\n",
                  orders[] = "id,customer_id,price:float,status,date\n"
                             "10,1,5,paid,1970-01-01\n11,1,,open,1970-01-21\n"
                             "12,2,2.5,paid,1970-01-31\n13,1,1,paid,1970-02-20\n"
                             "14,3,4,open,1970-03-02\n15,1,8,paid,1970-04-11\n17,,2,paid,\n",
                  lines[] = "id,order_id,part\n1,10,a\n2,10,b\n3,11,a\n4,13,c\n5,15,c\n";

static RtDataset *shop(RtImport *how) {
    const RtNamedBytes files[] = {
        {"customers.csv", {(const uint8_t *)customers, sizeof customers - 1}},
        {"orders.csv", {(const uint8_t *)orders, sizeof orders - 1}},
        {"lines.csv", {(const uint8_t *)lines, sizeof lines - 1}},
    };
    const RtFolder f = {.name = "shop", .files = files, .n_files = 3};
    RtError err = {""};
    RtDataset *d = NULL;
    if (rt_import_tables(NULL, &f, NULL, how, &d, &err) != GNNC_OK) abort();
    return d;
}

/* A task file names what it has, or the place where it is none. */
static void parse_task(const char *text) {
    RtPool pool;
    RtTaskText t;
    RtError err = {""};
    rt_pool_init(&pool, NULL);
    bool ok = rt_query_parse_task(&pool, text, &t, &err) == GNNC_OK;
    if (ok ? !t.name || !t.entity || !t.sql || !(t.window >= 0) : !*err.text) abort();
    rt_pool_free(&pool);
}

/* The first byte: which dates are said, whether the cells' numbers are kept, and older answers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { DAY = 86400 };
    if (n < 1) return 0;
    RtImport how = {.keeps_numbers = data[0] & 1, .standardize = data[0] & 1, .unknown = true};
    RtDataset *d = shop(&how);
    char *text = malloc(n);
    if (!text) abort();
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    RtTaskOptions task = {.query = text,
                          .val_time = data[0] & 2 ? 60 * DAY : NAN,
                          .test_time = data[0] & 4 ? 80 * DAY : NAN,
                          .history = data[0] & 16,
                          .every = data[0] & 8 ? 5 * DAY : 0};
    RtTaskMade made;
    RtError err = {""};
    int n_nodes = d->n_nodes, n_edges = d->n_edges;
    if (rt_import_task(d, &task, &made, &err) == GNNC_OK) {
        if (rt_dataset_check(d, &err) != GNNC_OK || !made.n[1] || !made.n[2] || !made.n[3]) abort();
    } else if (!*err.text || d->n_nodes != n_nodes || d->n_edges != n_edges) {
        abort();
    }
    rt_dataset_close(d);
    parse_task(text);
    free(text);
    return 0;
}
