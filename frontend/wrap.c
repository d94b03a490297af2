/* Text in the columns of a terminal. */
#include "frontend/wrap.h"

#include <string.h>

/* Prints text from column `from` on, broken between words so that lines stay within the width. */
void fe_put_wrapped(FILE *to, const char *text, int from) {
    enum { WIDTH = 100 };
    for (int at = from; *text;) {
        int n = (int)strcspn(text, " ");
        if (at > from && at + 1 + n > WIDTH) at = fprintf(to, "\n%*s", from, "") - 1;
        at += fprintf(to, "%s%.*s", at > from ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
    fputs("\n", to);
}
