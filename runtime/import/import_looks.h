/* What the texts of a column look like, where they are neither numbers nor times: names, of which
 * each row has one or several, or booleans, vectors, or texts to be read. */
#ifndef RUNTIME_IMPORT_LOOKS_H
#define RUNTIME_IMPORT_LOOKS_H

#include "runtime/data/encoder.h"

typedef struct RtLooks {
    int64_t n; /* texts that were seen */
    int64_t n_booleans, n_vectors, n_images, n_lists, n_bars, n_semicolons, n_words;
    int64_t width; /* of the vectors; -1: they differ */
} RtLooks;

/* Empty ones do not count. */
void rt_looks_add(RtLooks *l, const char *text);
/* Could the texts seen so far be something else than a name each, however many they are? */
bool rt_looks_worth(const RtLooks *l);

/* All texts of a column, or each different one once. */
typedef struct RtTextList {
    const void *of;
    int64_t n;
    const char *(*at)(const void *of, int64_t i); /* the i-th text */
} RtTextList;

/* Sets e->as and its parameters if the texts are something else than a name each; many: nearly each
 * row has a text of its own.  *why is set; where it stays, they are names.  GNNC_E_NOMEM. */
gnnc_status rt_looks_guess(RtPool *keep, RtPool *scratch, const RtLooks *l, const RtTextList *texts,
                           bool many, RtEncoder *e, const char **why, RtError *err);
/* Fits what the wish leaves open: how many numbers a vector has, which names there are.  E_LIMIT:
 * too many of them; E_FORMAT: the first text is no vector. */
gnnc_status rt_looks_fit(RtPool *keep, RtPool *scratch, const RtTextList *texts, const char *what,
                         RtEncoder *e, RtError *err);

#endif
