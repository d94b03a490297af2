/* Predictions as CSV (RFC 4180) or as a JSON object a line, with the same fields: what a row is
 * called, its class where it has one, and its numbers.  What these are the loss says: of one that
 * takes scores before a softmax or a sigmoid they are probabilities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_predict.h"
#include "runtime/batch/link_batches.h"

enum { FLUSH_BYTES = 1 << 16 };

typedef struct {
    float score; /* as the model gave it */
    int64_t i;   /* which of the row's */
} Scored;

typedef struct {
    const RtCli *c;
    const RtCliRows *rows;
    const float *v;
    int64_t width;      /* numbers of a row */
    rt_outcome is;      /* what they are */
    bool classes;       /* one of them is true */
    bool picks;         /* --top: the n_shown best, with what they are called */
    int64_t n_shown;    /* of a row */
    const char *word;   /* "probability" */
    const char **field; /* [width] what the numbers are called, without the word */
    bool numbered;      /* .. whole numbers, which JSON has without quotes */
    const char **head;  /* [n_head] names of the fields */
    int64_t n_head;
    Scored *best; /* [width] of the present row */
    RtOut out;
    RtText text;  /* not written yet */
    RtText clean; /* room to make a text UTF-8 */
    RtError *err;
} Table;

static gnnc_status nomem(const Table *t) {
    return rt_fail_nomem(t->err, "predictions");
}

/* ---- what there is to say ---------------------------------------------------------------- */
static int64_t size_of(const gnnc_trainer *t, int space) {
    const rt_space *s = &t->program->spaces[space];
    return s->sym >= 0 ? t->x.n[s->sym] : s->fixed;
}

/* A score for each class of the target, whose rows these are. */
static bool scores_classes(const Table *t, const rt_column *target, const RtArray *a) {
    return target && target->kind == RT_COL_CLASS && target->space == t->rows->space &&
           target->cat >= 0 && a->rank == 2 && t->width == size_of(t->c->t, target->cat);
}

static const char *word_of(rt_outcome is) {
    switch (is) {
    case RT_OUTCOME_CLASSES:
    case RT_OUTCOME_LOG_ODDS:
        return "probability";
    case RT_OUTCOME_NUMBERS:
        return "prediction";
    case RT_OUTCOME_SCORES:
        break;
    }
    return "score";
}

/* "glad", "y", "y_3", "3"; "" = the word alone says it */
static gnnc_status name_fields(Table *t, const rt_column *target) {
    RtPool *pool = t->rows->pool;
    const RtCodes *k =
        target ? &t->c->t->rt.bound->codes[target - t->c->t->program->columns] : NULL;
    const char *of = target && t->is != RT_OUTCOME_NUMBERS ? target->name : "";
    bool named = t->classes && k->of && k->n == t->width;
    t->numbered = t->classes && !named;
    if (!(t->field = RT_NEWN(pool, const char *, t->width + 1))) return nomem(t);
    for (int64_t i = 0; i < t->width; i++) {
        if (named)
            t->field[i] = k->names[i];
        else if (t->width == 1 && !t->classes)
            t->field[i] = of;
        else
            t->field[i] = rt_pool_printf(pool, "%s%s%lld", t->classes ? "" : of,
                                         t->classes || !*of ? "" : "_", (long long)i);
        if (!t->field[i]) return nomem(t);
    }
    return GNNC_OK;
}

static gnnc_status add_head(Table *t, const char *name) {
    if (!name) return nomem(t);
    t->head[t->n_head++] = name;
    return GNNC_OK;
}

static gnnc_status name_head(Table *t) {
    RtPool *pool = t->rows->pool;
    gnnc_status st = GNNC_OK;
    if (!(t->head = RT_NEWN(pool, const char *, 2 * t->n_shown + 4))) return nomem(t);
    add_head(t, t->rows->edges ? "source" : "id");
    if (t->rows->edges) add_head(t, "destination");
    if (t->classes) add_head(t, "prediction");
    for (int64_t i = 0; i < t->n_shown && st == GNNC_OK; i++) {
        const char *of = t->picks ? rt_pool_printf(pool, "%lld", (long long)i + 1) : t->field[i];
        if (!of) return nomem(t);
        if (t->picks)
            st = add_head(t, rt_pool_printf(pool, "%s_%s", t->classes ? "class" : "label", of));
        if (st == GNNC_OK)
            st = add_head(t, *of ? rt_pool_printf(pool, "%s_%s", t->word, of) : t->word);
    }
    return st;
}

static gnnc_status describe(Table *t, const RtArray *a) {
    const gnnc_trainer *of = t->c->t;
    const rt_column *target = of->target >= 0 ? &of->program->columns[of->target] : NULL;
    t->is = of->program->recipe.present ? of->program->recipe.outcome : RT_OUTCOME_SCORES;
    t->classes = scores_classes(t, target, a);
    if (t->is == RT_OUTCOME_CLASSES && !t->classes) t->is = RT_OUTCOME_SCORES;
    t->word = word_of(t->is);
    bool labels = t->classes || (t->is == RT_OUTCOME_LOG_ODDS && target && t->width > 1);
    if (t->c->top && !labels)
        return rt_fail(t->err, GNNC_E_ARG,
                       "--top: the model's result are no scores of several classes or labels");
    t->picks = t->c->top > 0;
    t->n_shown = t->picks && t->c->top < t->width ? t->c->top : t->width;
    if (!(t->best = RT_NEWN(t->rows->pool, Scored, t->width + 1))) return nomem(t);
    gnnc_status st = name_fields(t, target);
    return st == GNNC_OK ? name_head(t) : st;
}

/* ---- a row's numbers ----------------------------------------------------------------------- */
/* The higher first, of equal ones the first, what is no number last. */
static int by_score(const void *x, const void *y) {
    const Scored *a = x, *b = y;
    if (isnan(a->score) != isnan(b->score)) return isnan(a->score) ? 1 : -1;
    if (a->score != b->score && !isnan(a->score)) return a->score > b->score ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* The best of the row's scores: where it is; -1: all are NaN. */
static int64_t highest(const float *v, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(v[i]) && (best < 0 || v[i] > v[best])) best = i;
    return best;
}

/* What softmax divides by, of scores less the highest. */
static double sum_of_exp(const float *v, int64_t n, double high) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp((double)v[i] - high);
    return sum;
}

typedef struct {
    double high, sum;
} Softmax;

static float shown(const Table *t, float score, const Softmax *s) {
    if (t->is == RT_OUTCOME_CLASSES) return (float)(exp((double)score - s->high) / s->sum);
    if (t->is == RT_OUTCOME_LOG_ODDS) return (float)(1 / (1 + exp(-(double)score)));
    return score;
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */
static bool is_json(const Table *t) {
    return t->c->format == RT_FORMAT_JSONL;
}

/* Bytes of the UTF-8 character at s; 0: these are none (RFC 3629). */
static size_t utf8_bytes(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80   ? 1
               : u[0] < 0xc2 ? 0
               : u[0] < 0xe0 ? 2
               : u[0] < 0xf0 ? 3
               : u[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f)) return 0;
    if ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f)) return 0;
    return n;
}

/* JSON is UTF-8: what is none becomes U+FFFD. */
static bool put_json(Table *t, const char *s) {
    bool ok = true, whole = true;
    for (const char *at = s; *at && whole; at += utf8_bytes(at)) whole = utf8_bytes(at) > 0;
    if (whole) return rt_text_json_string(&t->text, s);
    t->clean.n = 0;
    for (size_t n; *s && ok; s += n ? n : 1) {
        n = utf8_bytes(s);
        ok = rt_text_put(&t->clean, n ? s : "\xef\xbf\xbd", n ? n : 3);
    }
    return ok && rt_text_json_string(&t->text, t->clean.s);
}

static bool put_csv(RtText *to, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) return rt_text_put(to, s, strlen(s));
    bool ok = rt_text_put(to, "\"", 1);
    for (; *s && ok; s++) ok = rt_text_put(to, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    return ok && rt_text_put(to, "\"", 1);
}

static bool put_text(Table *t, const char *s) {
    return is_json(t) ? put_json(t, s) : put_csv(&t->text, s);
}

static bool put_number(Table *t, float v) {
    if (is_json(t) && !isfinite(v)) return rt_text_put(&t->text, "null", 4);
    if (isnan(v)) return rt_text_put(&t->text, "nan", 3);
    return rt_text_printf(&t->text, "%.9g", (double)v);
}

/* Before field i of a row. */
static bool begin_field(Table *t, int64_t *i) {
    bool first = *i == 0;
    const char *name = t->head[(*i)++];
    if (!is_json(t)) return first || rt_text_put(&t->text, ",", 1);
    return rt_text_put(&t->text, first ? "{" : ", ", first ? 1 : 2) && put_json(t, name) &&
           rt_text_put(&t->text, ": ", 2);
}

static bool put_id(Table *t, int end, int64_t row) {
    const char *const *id = t->rows->id[end];
    return id ? put_text(t, id[row]) : rt_text_printf(&t->text, "%lld", (long long)row);
}

/* -1: none. */
static bool put_class(Table *t, int64_t i) {
    if (i < 0) return !is_json(t) || rt_text_put(&t->text, "null", 4);
    if (t->numbered) return rt_text_put(&t->text, t->field[i], strlen(t->field[i]));
    return put_text(t, t->field[i]);
}

static bool put_ids(Table *t, int64_t *at, int64_t row) {
    const RtRelation *e = t->rows->edges;
    if (!begin_field(t, at) || !put_id(t, 0, e ? e->src[row] : row)) return false;
    return !e || (begin_field(t, at) && put_id(t, 1, e->dst[row]));
}

static bool put_row(Table *t, int64_t row) {
    const float *v = t->v + row * t->width;
    int64_t at = 0, high = highest(v, t->width);
    Softmax s = {.high = high < 0 ? 0 : (double)v[high]};
    if (t->is == RT_OUTCOME_CLASSES) s.sum = sum_of_exp(v, t->width, s.high);
    bool ok = put_ids(t, &at, row);
    if (ok && t->classes) ok = begin_field(t, &at) && put_class(t, high);
    for (int64_t i = 0; t->picks && i < t->width; i++) t->best[i] = (Scored){v[i], i};
    if (t->picks) qsort(t->best, (size_t)t->width, sizeof *t->best, by_score);
    for (int64_t k = 0; k < t->n_shown && ok; k++) {
        int64_t i = t->picks ? t->best[k].i : k;
        if (t->picks) ok = begin_field(t, &at) && put_class(t, i);
        ok = ok && begin_field(t, &at) && put_number(t, shown(t, v[i], &s));
    }
    return ok && rt_text_put(&t->text, is_json(t) ? "}\n" : "\n", is_json(t) ? 2 : 1);
}

static bool put_head(Table *t) {
    bool ok = true;
    for (int64_t i = 0; i < t->n_head && ok && !is_json(t); i++)
        ok = (i == 0 || rt_text_put(&t->text, ",", 1)) && put_csv(&t->text, t->head[i]);
    return ok && (is_json(t) || rt_text_put(&t->text, "\n", 1));
}

/* ---- the file -----------------------------------------------------------------------------------
 */
static gnnc_status flush(Table *t) {
    gnnc_status st = rt_out_write(&t->out, t->text.s, t->text.n, t->err);
    t->text.n = 0;
    return st;
}

static gnnc_status write_rows(Table *t) {
    gnnc_status st = put_head(t) ? GNNC_OK : nomem(t);
    for (int64_t i = 0; i < t->rows->n && st == GNNC_OK; i++) {
        if (!put_row(t, t->rows->row ? t->rows->row[i] : i)) return nomem(t);
        if (t->text.n >= FLUSH_BYTES) st = flush(t);
    }
    return st == GNNC_OK && t->text.n ? flush(t) : st;
}

gnnc_status rt_cli_write_table(const RtCli *c, const RtCliRows *r, const RtArray *a,
                               const char *path, RtError *err) {
    Table t = {.c = c,
               .rows = r,
               .v = a->data,
               .width = 1,
               .text.pool = r->pool,
               .clean.pool = r->pool,
               .err = err};
    RtAlloc from = rt_alloc_default();
    for (int i = 1; i < a->rank; i++) t.width *= a->shape[i];
    gnnc_status st = describe(&t, a);
    if (st == GNNC_OK) st = rt_out_open(&t.out, &from, path, err);
    if (st != GNNC_OK) return st;
    st = write_rows(&t);
    if (st == GNNC_OK) st = rt_out_commit(&t.out, err);
    rt_out_abort(&t.out);
    return st;
}
