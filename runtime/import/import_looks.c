#include "import_looks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/encoder_cells.h"
#include "import_index.h"

/* Of more names than these, or of nearly as many as there are cells, they are no categories. */
enum { MOST_GUESSED = 256, WORDS = 3 };

/* ---- one text after another -------------------------------------------------------------- */
/* Words of the text, which blanks part. */
static int64_t count_words(const char *s) {
    int64_t n = 0;
    for (size_t k; s += strspn(s, " \t\r\n"), (k = strcspn(s, " \t\r\n")); s += k) n++;
    return n;
}

/* Does the cell name a picture, by its ending? */
static bool is_picture(const char *s) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rt_ends_with(s, ends[i])) return true;
    return false;
}

void rt_looks_add(RtLooks *l, const char *text) {
    if (rt_cell_absent(text)) return;
    bool open = *text == '[' || *text == '{';
    int64_t width = open ? rt_cell_vector(text) : -1;
    l->n++;
    l->n_booleans += strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
    l->n_lists += open && rt_cell_several(text, 0);
    l->n_bars += strchr(text, '|') != NULL;
    l->n_semicolons += strchr(text, ';') != NULL;
    l->n_words += count_words(text);
    l->n_images += is_picture(text);
    if (width < 0) return;
    l->width = l->n_vectors++ ? (l->width == width ? width : -1) : width;
}

static bool are_vectors(const RtLooks *l) {
    return l->n && l->n_vectors == l->n && l->width > 1 && l->width <= RT_MOST_VALUES;
}

/* Do the cells look like lists of names? ';' may stand in prose, so a part is a word or two. */
static bool are_several(const RtLooks *l, char *separator) {
    bool bars = 4 * l->n_bars >= l->n, few = l->n_words <= WORDS * l->n;
    *separator = bars ? '|' : ';';
    if (l->n && l->n_lists == l->n) return *separator = '\0', true;
    return l->n && (bars || (few && 4 * l->n_semicolons >= l->n));
}

static bool are_texts(const RtLooks *l) {
    return l->n && l->n_words >= WORDS * l->n;
}

bool rt_looks_worth(const RtLooks *l) {
    char separator;
    return are_vectors(l) || are_several(l, &separator) || are_texts(l);
}

/* ---- names of several ----------------------------------------------------------------------- */
/* The unknown one, and the others in their order.  At most `most`; *n above it: there are more. */
static bool collect(RtPool *keep, RtPool *scratch, const RtTextList *texts, int most, RtEncoder *e,
                    int64_t *n) {
    char part[RT_PART_TEXT];
    RtNames seen;
    RtParts p;
    if (!rt_names_new(scratch, &seen, most + 2)) return false;
    rt_names_add(&seen, RT_UNKNOWN_NAME);
    for (int64_t i = 0; i < texts->n && seen.n <= most; i++) {
        const char *text = texts->at(texts->of, i);
        if (rt_cell_absent(text)) continue;
        rt_parts_open(&p, text, e->separator);
        while (seen.n <= most && rt_parts_next(&p, part)) {
            if (rt_names_find(&seen, part) >= 0) continue;
            char *own = rt_pool_strndup(keep, part, strlen(part));
            if (!own) return false;
            rt_names_add(&seen, own);
        }
    }
    *n = seen.n;
    if (seen.n > most) return true;
    const char **names = RT_NEWN(keep, const char *, seen.n);
    if (!names) return false;
    memcpy(names, seen.keys, (size_t)seen.n * sizeof *names);
    qsort(names + 1, (size_t)seen.n - 1, sizeof *names, rt_by_text);
    e->names = names;
    e->n_categories = e->out = (int)seen.n;
    return rt_encoder_index(scratch, e);
}

/* ---- what they are ------------------------------------------------------------------------- */
gnnc_status rt_looks_guess(RtPool *keep, RtPool *scratch, const RtLooks *l, const RtTextList *texts,
                           bool many, RtEncoder *e, const char **why, RtError *err) {
    int64_t n = 0;
    if (l->n && l->n_booleans == l->n) {
        e->as = RT_AS_BOOLEAN;
        *why = "all cells are true or false";
    } else if (are_vectors(l)) {
        e->as = RT_AS_VECTOR;
        e->out = (int)l->width;
        *why = "all cells are lists of numbers";
    } else if (are_several(l, &e->separator)) {
        if (!collect(keep, scratch, texts, MOST_GUESSED, e, &n)) return rt_fail_nomem(err, e->from);
        bool few = !e->separator || 4 * n <= 3 * l->n + 4;
        if (n <= MOST_GUESSED && few) {
            e->as = RT_AS_SEVERAL;
            *why = "cells name several categories";
            return GNNC_OK;
        }
        e->names = NULL;
        e->n_categories = -1;
        e->out = 0;
    }
    if (e->as == RT_AS_NUMBER && many && are_texts(l)) {
        e->as = RT_AS_TEXT;
        e->out = RT_TEXT_VALUES;
        *why = "nearly each row has a text of its own, of several words";
    }
    return GNNC_OK;
}

gnnc_status rt_looks_fit(RtPool *keep, RtPool *scratch, const RtTextList *texts, const char *what,
                         RtEncoder *e, RtError *err) {
    int64_t n = 0, width = 0;
    if (e->as == RT_AS_TEXT && !e->out) e->out = RT_TEXT_VALUES;
    if (e->as == RT_AS_IMAGE && !e->out) e->out = 3 * RT_IMAGE_SIDE * RT_IMAGE_SIDE;
    if (e->as == RT_AS_SEVERAL && !e->out) {
        if (!collect(keep, scratch, texts, RT_MOST_VALUES, e, &n)) return rt_fail_nomem(err, what);
        if (n > RT_MOST_VALUES)
            return rt_fail(err, GNNC_E_LIMIT, "%s: its cells name more than %d categories", what,
                           RT_MOST_VALUES - 1);
    }
    if (e->as != RT_AS_VECTOR || e->out) return GNNC_OK;
    for (int64_t i = 0; i < texts->n && !width; i++) {
        const char *text = texts->at(texts->of, i);
        if (rt_cell_absent(text)) continue;
        width = rt_cell_vector(text);
        if (width < 1 || width > RT_MOST_VALUES)
            return rt_fail(err, GNNC_E_FORMAT,
                           "%s: %s is no list of 1 to %d numbers, [1, 2.5] or {1,2.5}", what,
                           rt_cell_quoted(text).s, RT_MOST_VALUES);
    }
    e->out = width ? (int)width : 1;
    return GNNC_OK;
}
