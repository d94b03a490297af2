/* A date alone may be read in two ways, a column of them seldom: somewhere in it stands a day above
 * the 12th.  So forms are judged by column, and what no row tells is not guessed. */
#include "dates.h"

#include <math.h>
#include <stdio.h>

#include <string.h>

#include "csv.h"
#include "number.h"

/* Days since 1970-01-01 in the Gregorian calendar (Hinnant, "days_from_civil"). */
static int64_t days_from_date(int64_t y, int m, int d) {
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* Days of month m (1 to 12) in year y. */
static int days_in_month(int y, int m) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return days[m - 1] + (m == 2 && leap);
}

/* Reads a number of exactly n digits; false: there are fewer. */
static bool take_digits(const char **s, int n, int *v) {
    for (*v = 0; n > 0; n--, ++*s) {
        if (**s < '0' || **s > '9') return false;
        *v = *v * 10 + (**s - '0');
    }
    return true;
}

/* Reads a time of day: "10:00", "10:00:30.5", and "9:30" where `loose`. */
static bool take_clock(const char **s, bool loose, double *seconds) {
    int h, m, sec = 0, n = loose && **s && (*s)[1] == ':' ? 1 : 2;
    if (!take_digits(s, n, &h) || *(*s)++ != ':' || !take_digits(s, 2, &m)) return false;
    double fraction = 0, unit = 0.1;
    if (**s == ':') {
        ++*s;
        if (!take_digits(s, 2, &sec)) return false;
        if (**s == '.')
            for (++*s; **s >= '0' && **s <= '9'; ++*s, unit /= 10) fraction += unit * (**s - '0');
    }
    *seconds = h * 3600.0 + m * 60.0 + sec + fraction;
    return h < 24 && m < 60 && sec < 61;
}

static bool is_day(int y, int m, int d) {
    return m >= 1 && m <= 12 && d >= 1 && d <= days_in_month(y, m);
}

/* Reads the seconds that a clock is ahead of UTC: "Z", "+02", "+0230", "-02:30"; without a zone
 * 0. */
static bool take_zone(const char **s, double *seconds) {
    int h, m = 0, sign = **s == '-' ? -1 : 1;
    *seconds = 0;
    if (**s == 'Z') return ++*s, true;
    if (**s != '+' && **s != '-') return true;
    ++*s;
    if (!take_digits(s, 2, &h)) return false;
    if (**s == ':' && (++*s, **s < '0' || **s > '9')) return false;
    if (**s && !take_digits(s, 2, &m)) return false;
    *seconds = sign * (h * 3600.0 + m * 60.0);
    return h < 24 && m < 60;
}

/* Reads what may follow a date, a time of the day and a zone, to the end of the text; *v: seconds
 * since 1970. */
static bool take_rest(const char *s, bool loose, int y, int m, int d, double *v) {
    double clock = 0, ahead = 0;
    bool timed = *s == ' ' || *s == 'T';
    if (timed && (s++, !take_clock(&s, loose, &clock))) return false;
    if (!timed && *s == 'Z') s++;
    if (timed && !take_zone(&s, &ahead)) return false;
    *v = (double)days_from_date(y, m, d) * 86400.0 + clock - ahead;
    return !*s;
}

/* Reads "2024-03-01" and what may follow: a time of day and a zone. */
static bool read_iso(const char *s, double *v) {
    int y, m, d;
    if (!take_digits(&s, 4, &y) || *s++ != '-') return false;
    if (!take_digits(&s, 2, &m) || *s++ != '-' || !take_digits(&s, 2, &d)) return false;
    return is_day(y, m, d) && take_rest(s, false, y, m, d, v);
}

bool rt_cell_time(const char *cell, double *v) {
    return rt_cell_number(cell, v) || read_iso(cell, v);
}

/* ---- other forms ---------------------------------------------------------------- */
/* One digit or two. */
static bool take_short(const char **s, int *v) {
    bool two = **s && (*s)[1] >= '0' && (*s)[1] <= '9';
    return take_digits(s, two ? 2 : 1, v);
}

/* Reads "31/01/2020": three numbers and what stands between them; the year is p[year]. */
static bool take_parts(const char **s, int year, const char *between, int p[3]) {
    char sep = 0;
    for (int i = 0; i < 3; i++) {
        if (i && (!**s || !strchr(between, **s) || (sep && **s != sep))) return false;
        if (i) sep = *(*s)++;
        if (!(i == year ? take_digits(s, 4, &p[i]) : take_short(s, &p[i]))) return false;
    }
    return **s < '0' || **s > '9';
}

/* Reads "20240301", of years 1800 to 2199: other numbers of eight digits are no dates. */
static bool read_digits(const char *s, double *v) {
    int y, m, d;
    if (!take_digits(&s, 4, &y) || !take_digits(&s, 2, &m) || !take_digits(&s, 2, &d)) return false;
    return !*s && y >= 1800 && y < 2200 && is_day(y, m, d) && take_rest(s, false, y, m, d, v);
}

bool rt_cell_date(const char *s, RtDateForm form, double *v) {
    bool first = form == RT_DATE_YEAR_FIRST, day = form == RT_DATE_DAY_FIRST;
    int p[3];
    if (form == RT_DATE_ISO) return read_iso(s, v);
    if (form == RT_DATE_DIGITS) return read_digits(s, v);
    if (!take_parts(&s, first ? 0 : 2, day || first ? "/-." : "/-", p)) return false;
    int y = p[first ? 0 : 2], m = p[form == RT_DATE_MONTH_FIRST ? 0 : 1];
    int d = p[first ? 2 : day ? 0 : 1];
    return is_day(y, m, d) && take_rest(s, true, y, m, d, v);
}

enum { N_FORMS = 5 };

int rt_date_form(const char *cell) {
    double v;
    int all = 0;
    if (*cell < '0' || *cell > '9') return RT_DATE_NONE;
    for (int i = 0; i < N_FORMS; i++)
        if (rt_cell_date(cell, (RtDateForm)(1 << i), &v)) all |= 1 << i;
    return all;
}

/* ---- columns -------------------------------------------------------------------- */
/* Notes in which forms the cell is a date. */
void rt_dates_add(RtDates *d, const char *cell, int64_t row) {
    int all = rt_date_form(cell);
    if (all && !d->n_fit) d->first_row = row;
    if (!all && d->n == d->n_fit) d->bad_row = row;
    d->n++;
    d->n_fit += all != RT_DATE_NONE;
    for (int i = 0; i < N_FORMS; i++) d->of[i] += all >> i & 1;
}

RtDateForm rt_dates_form(const RtDates *d, bool *ambiguous) {
    int all = 0;
    for (int i = 0; i < N_FORMS && d->n_fit; i++)
        if (d->of[i] == d->n_fit) all |= 1 << i;
    *ambiguous = all == (RT_DATE_DAY_FIRST | RT_DATE_MONTH_FIRST);
    if (all & RT_DATE_ISO) return RT_DATE_ISO;
    return *ambiguous ? RT_DATE_NONE : (RtDateForm)all;
}

/* The date of a day since 1970-01-01, the inverse of days_from_date ("civil_from_days"). */
static void date_from_days(int64_t days, int *y, int *m, int *d) {
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = (int)(yoe + era * 400) + (*m <= 2);
}

const char *rt_date_text(double t, char to[RT_DATE_TEXT]) {
    const double first = -62167219200.0, behind = 253402300800.0; /* years 0 and 10000 */
    if (!(t >= first && t < behind)) {
        snprintf(to, RT_DATE_TEXT, "%.17g", t);
        return to;
    }
    double days = floor(t / 86400);
    int y, m, d, s = (int)(t - 86400 * days);
    date_from_days((int64_t)days, &y, &m, &d);
    int n = snprintf(to, RT_DATE_TEXT, "%04d-%02d-%02d", y, m, d);
    if (s)
        snprintf(to + n, (size_t)(RT_DATE_TEXT - n), " %02d:%02d:%02d", s / 3600, s / 60 % 60,
                 s % 60);
    return to;
}
