/* Fuzz target: any bytes as a folder of files, parted by 0x01 bytes (a name, then its text),
 * read as each kind of folder; and as .npz archives whose relations become types. */
#include "runtime/import/import_folder.h"

#include <string.h>

#include "imported.h"

enum { MOST_FILES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const uint8_t *part(const uint8_t **at, const uint8_t *end, size_t *n) {
    const uint8_t *start = *at, *stop = memchr(start, 1, (size_t)(end - start));
    *n = (size_t)((stop ? stop : end) - start);
    *at = stop ? stop + 1 : end;
    return start;
}

static int cut_files(RtPool *pool, const uint8_t *data, size_t n, RtNamedBytes *files) {
    const uint8_t *at = data, *end = data + n;
    int k = 0;
    while (at < end && k < MOST_FILES) {
        size_t n_name, n_text;
        const char *name = (const char *)part(&at, end, &n_name);
        const uint8_t *text = part(&at, end, &n_text);
        char *copy = rt_pool_strndup(pool, name, n_name);
        if (copy) files[k++] = (RtNamedBytes){copy, {text, n_text}};
    }
    return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtPool pool;
    RtNamedBytes files[MOST_FILES];
    RtDataset *d;
    if (n == 0) return 0;
    rt_pool_init(&pool, NULL);
    RtFolder f = {.name = "f", .files = files, .n_files = cut_files(&pool, data, n, files)};
    for (int form = 0; form < 6; form++) {
        RtImport how = {.skip_bad = true, .relation_types = form % 2};
        RtNamedBytes map = {"map", files[0].text};
        RtError err = {""};
        gnnc_status st = form < 2    ? rt_import_triples(NULL, &f, &how, &d, &err)
                         : form == 2 ? rt_import_ogb(NULL, &f, &how, &d, &err)
                         : form == 3
                             ? rt_import_ondisk(NULL, &f, &how, &d, &err)
                             : rt_import_tables(NULL, &f, form == 4 ? NULL : &map, &how, &d, &err);
        end_import(st, d, &err);
    }
    RtError err = {""};
    RtImport how = {.relation_types = true};
    gnnc_status st = rt_import_npz_bytes(NULL, (RtBytes){data, n}, "fuzz.npz", &how, &d, &err);
    end_import(st, d, &err);
    rt_pool_free(&pool);
    return 0;
}
