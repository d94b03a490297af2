/* Decimal numbers in texts, whatever the locale says about points. */
#ifndef RUNTIME_NUMBER_H
#define RUNTIME_NUMBER_H

/* As strtod() in the "C" locale; *end = s where no number stands. */
double rt_strtod(const char *s, const char **end);

#endif
