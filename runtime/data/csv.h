/* CSV text (RFC 4180) as a table of cells. */
#ifndef RUNTIME_CSV_H
#define RUNTIME_CSV_H

#include "io.h"

typedef struct RtCsv {
    const char *name; /* of the file, in messages */
    char separator;
    bool commas;     /* some cell holds one */
    bool headerless; /* row 1 is data, and the columns are called column_1, .. */
    int n_columns;
    int64_t n_rows;
    const char **header; /* [n_columns] */
    const char **cell;   /* [n_rows * n_columns], NUL-terminated */
    int64_t *line;       /* [n_rows] where the row starts; the header is line 1 */
} RtCsv;

/* Told of a row with the wrong number of fields or an open quote; it is left out. */
typedef void RtCsvBadRow(void *user, const char *file, int64_t line, const char *what);

/* Is row 1 the names of the columns?  AUTO: no if all its cells are numbers or dates; where only
 * some are, nobody can tell, and it is an error. */
typedef enum { RT_HEADER_AUTO, RT_HEADER_YES, RT_HEADER_NO } RtHeader;

/* The separator is the one of ',', ';' and tab that the header has most of. Blank
 * lines are skipped. A NUL byte makes its row bad. */
gnnc_status rt_csv_parse(RtPool *pool, RtBytes text, const char *name, RtHeader header,
                         RtCsvBadRow *on_bad, void *user, RtCsv *out, RtError *err);

/* Bytes of the character at s, of n at most; 0: none (RFC 3629). */
size_t rt_utf8_length(const unsigned char *s, size_t n);

/* "'abc'", for messages: a long cell is cut, what cannot be shown is '?'. */
typedef struct {
    char s[48];
} RtQuoted;
RtQuoted rt_cell_quoted(const char *cell);

/* E_FORMAT: these bytes are no text; says what they look like. */
gnnc_status rt_text_check(RtBytes text, const char *name, RtError *err);

#endif
