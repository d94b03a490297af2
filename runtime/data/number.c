/* Short numbers are exact in one operation: a mantissa below 2^53 and a power of ten
 * up to 10^22 are both exact doubles, so their product or quotient rounds once
 * (Clinger 1990, "How to read floating point numbers accurately").  The rest goes to
 * strtod_l with the "C" locale: plain strtod would read "0,5" where a program that
 * embeds a trainer has set a German one. */
#include "number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads a number of at most 15 digits in all, exactly, without strtod; false: it is not that
 * simple. */
static bool read_short(const char *s, const char **end, double *v) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool minus = *s == '-';
    uint64_t mantissa = 0;
    int n = 0, exponent = 0, e = 0;
    if (*s == '-' || *s == '+') s++;
    for (; is_digit(*s); s++, n++) mantissa = mantissa * 10 + (uint64_t)(*s - '0');
    if (*s == '.')
        for (s++; is_digit(*s) && n < 17; s++, n++, exponent--)
            mantissa = mantissa * 10 + (uint64_t)(*s - '0');
    if (n == 0 || n > 15 || is_digit(*s)) return false;
    if (*s == 'e' || *s == 'E') {
        bool down = s[1] == '-';
        const char *p = s + 1 + (s[1] == '-' || s[1] == '+');
        if (!is_digit(*p)) return false;
        for (; is_digit(*p) && e < 1000; p++) e = e * 10 + (*p - '0');
        exponent += down ? -e : e;
        s = p;
    }
    if (is_digit(*s) || *s == 'x' || *s == 'X' || exponent < -22 || exponent > 22) return false;
    double m = (double)mantissa;
    m = exponent < 0 ? m / power[-exponent] : m * power[exponent];
    *v = minus ? -m : m;
    *end = s;
    return true;
}

double rt_strtod(const char *s, const char **end) {
    double v;
    char *stop;
    if (read_short(s, end, &v)) return v;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant in glibc: no memory */
    if (!c) return *end = s, 0;
    v = strtod_l(s, &stop, c);
    freelocale(c);
    *end = stop;
    return v;
}

/* Prints into `to`, always with a decimal point: the locale is the host's (rt_vsnprintf). */
__attribute__((format(printf, 2, 3))) static void print(char to[RT_NUMBER_TEXT], const char *fmt,
                                                        ...) {
    va_list ap;
    va_start(ap, fmt);
    rt_vsnprintf(to, RT_NUMBER_TEXT, fmt, ap);
    va_end(ap);
}

/* Any text of 15 digits is read as a number of its own, and 17 tell any two apart. */
void rt_number_text(double v, char to[RT_NUMBER_TEXT]) {
    const char *end;
    for (int digits = 15; digits <= 17; digits++) {
        print(to, "%.*g", digits, v);
        if (rt_strtod(to, &end) == v) return;
    }
}

int rt_vsnprintf(char *to, size_t n, const char *fmt, va_list ap) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    int k = vsnprintf(to, n, fmt, ap);
    if (before) uselocale(before);
    if (c) freelocale(c);
    return k;
}

/* ---- cells of tables -------- */
bool rt_cell_number(const char *cell, double *v) {
    const char *end;
    if (!*cell || cell[strspn(cell, "+-.0123456789eE")]) return false;
    *v = rt_strtod(cell, &end);
    return !*end && isfinite(*v);
}

bool rt_cell_comma(const char *cell) {
    char number[64];
    double v;
    const char *comma = strchr(cell, ',');
    size_t n = strlen(cell);
    if (!comma || n >= sizeof number || strpbrk(cell, ".")) return false;
    memcpy(number, cell, n + 1);
    number[comma - cell] = '.';
    return rt_cell_number(number, &v);
}

/* Reads a whole number; false: it is none, or no int64 holds it. */
bool rt_cell_integer(const char *cell, int64_t *v) {
    const char *s = cell + (*cell == '-');
    if (!*s) return false;
    for (*v = 0; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, *s - '0', v))
            return false;
    }
    if (*cell == '-') *v = -*v;
    return true;
}

bool rt_cell_key(const char *cell, int64_t *v) {
    const char *digits = cell + (*cell == '-');
    return rt_cell_integer(cell, v) && (*digits != '0' || (!digits[1] && digits == cell));
}
