/* Dates in cells of tables: the forms that people write, and which one a column has. */
#ifndef RUNTIME_DATES_H
#define RUNTIME_DATES_H

#include <stdbool.h>
#include <stdint.h>

/* Sets of them are sums. */
typedef enum {
    RT_DATE_NONE = 0,
    RT_DATE_ISO = 1,         /* 2020-01-31, and what rt_cell_time() reads besides */
    RT_DATE_YEAR_FIRST = 2,  /* 2020/01/31, 2020.01.31, 2020-1-31, and every ISO date */
    RT_DATE_DAY_FIRST = 4,   /* 31/01/2020, 31-1-2020, 31.01.2020 */
    RT_DATE_MONTH_FIRST = 8, /* 01/31/2020, 1-31-2020 */
    RT_DATE_DIGITS = 16,     /* 20200131, a number, too: 1800 to 2199 */
    RT_DATE_SECONDS = 32,    /* no dates: numbers; of columns alone */
} RtDateForm;

/* Seconds since 1970: a number, or "2013-05-01", "2013-05-01 10:00",
 * "2013-05-01T10:00:30.5Z" (UTC), "2013-05-01 10:00:30+02:00" (two hours ahead of UTC). */
bool rt_cell_time(const char *cell, double *v);
/* The same of a date in one of the forms; a time of the day may follow ("31/01/2020 9:30"). */
bool rt_cell_date(const char *cell, RtDateForm form, double *v);
/* All forms that read the cell as a day of the calendar: 01/02/2020 has two. */
int rt_date_form(const char *cell);

enum { RT_DATE_TEXT = 48 };
/* "2020-01-31", "2020-01-31 10:00:00": seconds since 1970 as people read them, in `to`, which is
 * returned; beyond the years 0 to 9999 the number. */
const char *rt_date_text(double t, char to[RT_DATE_TEXT]);

/* What cells tell of the form of their column.  All zero: no cell yet. */
typedef struct RtDates {
    int64_t n, n_fit;           /* cells, and those that are dates in some form */
    int64_t of[5];              /* cells that forms 1, 2, 4, 8, 16 read */
    int64_t first_row, bad_row; /* of the first cell that is a date, and the first that is none */
} RtDates;
void rt_dates_add(RtDates *d, const char *cell, int64_t row);
/* The one form of all cells that are dates; NONE: there is none, or several (*ambiguous: each cell
 * may be the day or the month first). */
RtDateForm rt_dates_form(const RtDates *d, bool *ambiguous);
#endif
