/* Text in the columns of a terminal. */
#ifndef FRONTEND_WRAP_H
#define FRONTEND_WRAP_H

#include <stdio.h>

/* Words of the text, in lines that begin at column `from`. */
void fe_put_wrapped(FILE *to, const char *text, int from);

#endif
