/* Lists in Arrow's IPC stream: the fuzzer's kept stream of two batches, times and lists, as pyarrow
 * writes it; whole, cut anywhere, and with numbers that lead out of it. */
#include "test.h"

#include "frontend/source/arrow_ipc.c"

enum { COLUMNS = 2, LISTS = 1, ROWS = 5, OFFSETS = 0x200, N_ITEMS = 0x1c8, ITEM_TYPE = 0x77 };

typedef struct {
    uint8_t bytes[2048];
    size_t n, at;
    int64_t n_rows, sum; /* what was read of it */
} Kept;

static bool take(void *user, void *to, size_t n) {
    Kept *k = user;
    if (n > k->n - k->at) return false;
    memcpy(to, k->bytes + k->at, n);
    k->at += n;
    return true;
}

static Kept kept_stream(void) {
    Kept k = {.n = 0};
    FILE *f = fopen("tests/fuzz/corpus/arrow/list", "rb");
    CHECK(f != NULL);
    if (!f) return k;
    k.n = fread(k.bytes, 1, sizeof k.bytes, f);
    fclose(f);
    k.n -= k.n > 0; /* the number of columns, for the fuzzer */
    return k;
}

static gnnc_status read_all(Kept *k, RtError *err) {
    ArrowStream s;
    RtDatum cell[COLUMNS];
    bool more = true;
    gnnc_status st = arrow_begin(&s, NULL, take, k, COLUMNS, err);
    while (st == GNNC_OK && (st = arrow_next(&s, cell, &more, err)) == GNNC_OK && more) {
        k->n_rows++;
        for (int64_t i = 0; cell[LISTS].type != RT_DATUM_NULL && i < cell[LISTS].i; i++) {
            RtDatum item = arrow_item(&s, LISTS, i);
            k->sum += item.type == RT_DATUM_NULL ? 1000 : item.i;
        }
    }
    arrow_end(&s);
    return st;
}

TEST(lists_are_read_with_what_is_absent) {
    RtError err = {""};
    Kept k = kept_stream();
    CHECK_MSG(read_all(&k, &err) == GNNC_OK, "%s", err.text);
    CHECK(k.n_rows == ROWS && k.sum == 7 + 8 + 1000 + 9 + 10 + 11);
}

TEST(a_cut_stream_is_no_shorter_one) {
    size_t n = kept_stream().n;
    for (size_t cut = 0; cut < n; cut++) {
        RtError err = {""};
        Kept k = kept_stream();
        k.n = cut;
        CHECK_MSG(read_all(&k, &err) == GNNC_E_FORMAT, "cut at %zu", cut);
        CHECK(strstr(err.text, "it ends") != NULL);
    }
}

/* One byte is set; what is told of it. */
static void broken(size_t at, uint8_t byte, int64_t n_rows, const char *says) {
    RtError err = {""};
    Kept k = kept_stream();
    k.bytes[at] = byte;
    CHECK_MSG(read_all(&k, &err) == GNNC_E_FORMAT, "byte %zu", at);
    CHECK_MSG(k.n_rows == n_rows, "byte %zu: %lld rows", at, (long long)k.n_rows);
    CHECK_MSG(strstr(err.text, says) != NULL, "byte %zu: %s", at, err.text);
}

TEST(offsets_stay_within_the_elements) {
    broken(OFFSETS + 4, 5, 0, "column 2, row 1 of a batch: a list from element 0 to 5, of 4");
    broken(OFFSETS + 12, 2, 2, "row 3 of a batch: a list from element 3 to 2, of 4");
    broken(OFFSETS + 16, 1, 3, "row 4 of a batch: a list from element 3 to 1, of 4");
    broken(OFFSETS + 16, 9, 3, "row 4 of a batch: a list from element 3 to 9, of 4");
    broken(OFFSETS + 7, 0x80, 0, "row 1 of a batch: a list from element 0 to 2147483651");
    broken(N_ITEMS, 5, 0, "a column leads out of its batch");
    broken(ITEM_TYPE, 3, 0, "a column of another type");
}

TEST_MAIN()
