/* Decimal numbers in texts, whatever the locale says about points. */
#ifndef RUNTIME_NUMBER_H
#define RUNTIME_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As strtod() in the "C" locale; *end = s where no number stands. */
double rt_strtod(const char *s, const char **end);
enum { RT_NUMBER_TEXT = 32 };
/* Into a text of so many bytes: the shortest that is read back as the same double. */
void rt_number_text(double v, char to[RT_NUMBER_TEXT]);
/* As vsnprintf() in the "C" locale: JSON has no "0,5". */
int rt_vsnprintf(char *to, size_t n, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* ---- cells of tables -------- */
/* A decimal number that takes the whole cell; "nan", "inf" and hex do not count. */
bool rt_cell_number(const char *cell, double *v);
bool rt_cell_integer(const char *cell, int64_t *v);
/* A key that is an integer.  "007" is a text: as a number it might be that of another key. */
bool rt_cell_key(const char *cell, int64_t *v);
/* "1,5" or "-1,5e3": a number with one decimal comma. */
bool rt_cell_comma(const char *cell);

#endif
