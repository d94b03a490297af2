/* What a wrong name might have meant.  A name is near another one that differs by few edits
 * (optimal string alignment: Damerau 1964, restricted as by Oommen and Loke 1997), letter case and
 * underscores aside, so `GATConv` finds `gat_conv`. */
#include "frontend/elab/elab.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST_NAME = 40, MOST_LISTED = 12 };

/* Adds a name to a list unless it is there. */
void elab_names_add(Elab *e, Names *to, const char *name) {
    for (int i = 0; i < to->n; i++)
        if (strcmp(to->v[i], name) == 0) return;
    vec_push(e->a, to, name);
}

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

/* The known name that is most like `wrong`. NULL: none is near enough; short names allow fewer
 * differences. */
const char *elab_names_nearest(const char *wrong, const Names *known) {
    size_t n = strlen(wrong);
    int most = n <= 3 ? 0 : n == 4 ? 1 : n <= 8 ? 2 : 3;
    const char *best = NULL;
    for (int i = 0; i < known->n; i++) {
        int d = distance(wrong, known->v[i]);
        if (d > most) continue;
        most = d - 1; /* the first of equally near ones stays */
        best = known->v[i];
    }
    return best;
}

/* The first few names as "a, b, c and 3 more", for messages. */
const char *elab_names_list(Elab *e, const Names *known) {
    StrBuf b = sb_new(e->a);
    for (int i = 0; i < known->n && i < MOST_LISTED; i++)
        sb_printf(&b, "%s%s", i ? ", " : "", known->v[i]);
    if (known->n > MOST_LISTED) sb_printf(&b, " and %d more", known->n - MOST_LISTED);
    return b.s ? b.s : "";
}

/* The end of a message about the name `wrong`: the nearest known name, else a list of them.
 * Editors that ask are given all. */
const char *elab_names_advice(Elab *e, const char *wrong, const Names *known) {
    elab_note_known(e, wrong, known);
    const char *near = elab_names_nearest(wrong, known);
    if (near) return arena_printf(e->a, "; did you mean '%s'?", near);
    return known->n ? arena_printf(e->a, "; there %s %s", known->n == 1 ? "is" : "are",
                                   elab_names_list(e, known))
                    : "";
}
