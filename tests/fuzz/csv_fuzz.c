/* Fuzz target: any bytes as nodes.csv and edges.csv (parted by a 0x01 byte), as
 * edges.csv alone, and as an edge list. */
#include "runtime/import/import.h"

#include <string.h>

#include "imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void import_csv(const RtNamedBytes *nodes, const RtNamedBytes *edges) {
    RtDataset *d;
    RtError err = {""};
    RtImport how = {.skip_bad = true, .undirected = true, .normalize_rows = true};
    gnnc_status st = rt_import_csv_bytes(NULL, nodes, edges, &how, &d, &err);
    end_import(st, d, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const uint8_t *part = n ? memchr(data, 1, n) : NULL;
    RtNamedBytes all = {"e.csv", {data, n}};
    import_csv(NULL, &all);
    if (part) {
        RtNamedBytes nodes = {"n.csv", {data, (size_t)(part - data)}};
        RtNamedBytes edges = {"e.csv", {part + 1, (size_t)(data + n - part - 1)}};
        import_csv(&nodes, &edges);
    }
    RtDataset *d;
    RtError err = {""};
    RtImport how = {.skip_bad = true}; /* not undirected: node 2^31 - 2 would cost memory */
    gnnc_status st = rt_import_edge_list_bytes(NULL, (RtBytes){data, n}, "e.txt", &how, &d, &err);
    end_import(st, d, &err);
    return 0;
}
