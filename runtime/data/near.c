/* A name is near another one that differs by few edits (optimal string alignment: Damerau 1964,
 * restricted as by Oommen and Loke 1997), letter case and underscores aside, so `GATConv` finds
 * `gat_conv`. */
#include "near.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST_NAME = 40 };

/* Writes name without underscores and in small letters to out, cut at LONGEST_NAME, and returns
 * its length. */
static int folded(const char *name, char out[LONGEST_NAME]) {
    int n = 0;
    for (; *name && n < LONGEST_NAME; name++)
        if (*name != '_') out[n++] = (char)tolower((unsigned char)*name);
    return n;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/* How many insertions, deletions, replacements and swaps of neighbouring letters make one name
 * of the other. */
static int distance(const char *wrong, const char *right) {
    char x[LONGEST_NAME], y[LONGEST_NAME];
    int d[LONGEST_NAME + 1][LONGEST_NAME + 1], n = folded(wrong, x), m = folded(right, y);
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(d[i - 1][j - 1] + (x[i - 1] != y[j - 1]),
                            least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

RtNear rt_near_begin(const char *wrong) {
    size_t n = strlen(wrong);
    return (RtNear){.wrong = wrong, .most = n <= 3 ? 0 : n == 4 ? 1 : n <= 8 ? 2 : 3};
}

void rt_near_tell(RtNear *near, const char *name) {
    int d = distance(near->wrong, name);
    if (d > near->most) return;
    near->most = d - 1;
    near->name = name;
}
