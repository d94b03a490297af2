/* Fuzz target: any bytes as an Arrow IPC stream of what reads Parquet for the import.  What is
 * accepted can be read to its end. */
#include "frontend/source/arrow_ipc.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct {
    const uint8_t *p;
    size_t n;
} Rest;

static bool take(void *user, void *to, size_t n) {
    Rest *r = user;
    if (n > r->n) return false;
    memcpy(to, r->p, n);
    r->p += n;
    r->n -= n;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { MOST_COLUMNS = 4, MOST_ROWS = 10000 };
    RtDatum cell[MOST_COLUMNS];
    ArrowStream s;
    RtError err = {""};
    Rest rest = {data, n};
    volatile size_t sum = 0;
    bool more = true;
    int columns = n ? data[n - 1] % (MOST_COLUMNS + 1) : 0;
    gnnc_status st = arrow_begin(&s, NULL, take, &rest, columns, &err);
    for (int i = 0; st == GNNC_OK && i < MOST_ROWS; i++) {
        st = arrow_next(&s, cell, &more, &err);
        if (st != GNNC_OK || !more) break;
        for (int k = 0; k < columns; k++) {
            bool list = s.type[k] == ARROW_LIST && cell[k].type == RT_DATUM_INTEGER;
            if (cell[k].type == RT_DATUM_TEXT) sum += strlen(cell[k].s) + cell[k].n;
            for (int64_t item = 0; list && item < cell[k].i; item++)
                sum += (size_t)arrow_item(&s, k, item).i;
        }
    }
    arrow_end(&s);
    return 0;
}
