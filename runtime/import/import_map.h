/* The file that says what columns are, against what an import would make of them (--map):
 *     races.date     time row         # or float, cat, class, id, split; row: the table's row time
 *     races.laps     float standard   # or plain, quantile, piecewise 8
 *     races.track    cat unknown 5    # or unknown, known
 *     races.report   float text 64    # or boolean, vector, several |
 *     races.url      drop */
#ifndef RUNTIME_IMPORT_MAP_H
#define RUNTIME_IMPORT_MAP_H

#include "runtime/data/encoder.h"
#include "import.h"

/* What is wished beside a kind; where nothing is, the import's options say it. */
typedef struct RtWish {
    bool scaled; /* numbers: `scale` says how */
    RtScaleWish scale;
    RtAs as;             /* FLOAT of cells that are no numbers: BOOLEAN, TEXT, .. */
    int values;          /* .. TEXT, IMAGE: how many; 0 = as usual */
    char separator;      /* .. SEVERAL */
    bool unknown, known; /* a code for names that are not there; or none */
    int64_t rare;        /* .. for names of fewer rows, too */
    bool row, other;     /* of a time: the table's rows happened then; or did not */
} RtWish;

/* What a rule returns where there is none. */
extern const char rt_map_no_memory[];
/* Calls `rule` for each line that says something, without its comment.  E_FORMAT: what `rule`
 * returned, with file and line. */
gnnc_status rt_map_read(RtPool *pool, const RtNamedBytes *map,
                        const char *rule(void *user, const char *line), void *user, RtError *err);
/* "drop", or a kind and wishes: *kind is RT_KIND_SKIP or an rt_col_kind.  NULL, or what is wrong.
 */
const char *rt_map_column(RtPool *pool, const char *text, int *kind, RtWish *wish);

/* What a wish says of the row time of `table` goes to the import.  NULL, or what is wrong. */
const char *rt_map_row_time(RtPool *pool, RtImport *how, const RtWish *wish, const char *table,
                            const char *column, size_t n);

/* The rules that make the columns as they are; but: two tables that no source has, either NULL:
 * none; or NULL.  false: no memory. */
bool rt_map_put(RtText *to, const RtDataset *d, const char *const *but);
/* What a column of this name gets by its wish and the import's options: `scale`, `unknown` and
 * `rare` are set.  Labels are scaled by a wish alone, as results are told in their units. */
RtWish rt_wish_of(const RtImport *how, const RtWish *wish, const char *name);
/* Can texts be a column of this kind? */
bool rt_kind_of_cells(rt_col_kind k);

#endif
