/* Texts of a CSV table that are more than a name each: what they are, and what their encoder leaves
 * open before rows are stored. */
#include <stdio.h>

#include "import_datum.h"
#include "import_image.h"
#include "import_looks.h"
#include "import_table.h"

static const char *cell_of(const RtCsv *t, int64_t row, int col) {
    return t->cell[row * t->n_columns + col];
}

typedef struct {
    const RtCsv *t;
    int col;
} Texts;

static const char *text_at(const void *of, int64_t i) {
    const Texts *x = of;
    return cell_of(x->t, i, x->col);
}

/* More than a few hundred different texts, and more than half as many as there are. */
static bool are_many(RtPool *scratch, const RtCsv *t, int col, int64_t n, bool *many) {
    RtNames seen;
    *many = false;
    if (n <= RT_FEW_TEXTS) return true;
    if (!rt_names_new(scratch, &seen, t->n_rows)) return false;
    for (int64_t r = 0; r < t->n_rows; r++)
        if (!rt_cell_absent(cell_of(t, r, col))) rt_names_add(&seen, cell_of(t, r, col));
    *many = seen.n > RT_FEW_TEXTS && 2 * seen.n > n;
    return true;
}

/* Is the first cell that is not empty the name of a picture that can be read? */
static bool is_first_there(const RtImport *how, const RtTextList *texts) {
    int64_t i = 0;
    while (i < texts->n && rt_cell_absent(texts->at(texts->of, i))) i++;
    return i < texts->n && rt_import_is_image(how, texts->at(texts->of, i));
}

/* Texts that are more than a name each. */
gnnc_status rt_field_guess(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtField *f, RtError *err) {
    const Texts texts = {t, f->first};
    const RtTextList list = {&texts, t->n_rows, text_at};
    RtLooks looks = {0};
    bool many;
    if (rt_import_is_asked(wanted->how, f->name)) return GNNC_OK;
    for (int64_t r = 0; r < t->n_rows; r++) rt_looks_add(&looks, cell_of(t, r, f->first));
    if (!are_many(scratch, t, f->first, looks.n, &many)) return rt_fail_nomem(err, t->name);
    f->encoder->from = f->name;
    if (looks.n && looks.n_images == looks.n && is_first_there(wanted->how, &list)) {
        *f->encoder = (RtEncoder){.as = RT_AS_IMAGE, .from = f->name};
        f->kind = RT_COL_FLOAT;
        f->why = "all cells are paths of images";
        return GNNC_OK;
    }
    gnnc_status st = rt_looks_guess(keep, scratch, &looks, &list, many, f->encoder, &f->why, err);
    if (f->encoder->as != RT_AS_NUMBER) f->kind = RT_COL_FLOAT;
    return st;
}

/* What a wish leaves open. */
gnnc_status rt_field_fit(RtPool *keep, RtPool *scratch, const RtCsv *t,
                         const RtFieldsWanted *wanted, RtField *f, RtError *err) {
    const Texts texts = {t, f->first};
    const RtTextList list = {&texts, t->n_rows, text_at};
    const RtWish *w = &wanted->wish[f->first];
    RtEncoder *e = f->encoder;
    char what[160];
    if (f->kind == RT_COL_FLOAT && w->as && !f->matrix && !e->as) {
        e->as = w->as;
        e->out = w->values;
        e->separator = w->separator;
    }
    snprintf(what, sizeof what, "%.60s: column '%.60s'", t->name, f->name);
    gnnc_status st = e->as ? rt_looks_fit(keep, scratch, &list, what, e, err) : GNNC_OK;
    f->out = e->out;
    f->matrix |= e->out > 0;
    return st;
}
