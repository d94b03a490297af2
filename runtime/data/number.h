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

#endif
