/* Features in parts: what processes send each other of rows that are wanted (pull.h). */
#include "pull_impl.h"

#include <stdio.h>
#include <string.h>

int64_t rt_pulls_words(const RtPulls *p) {
    return RT_PULL_COUNTS + p->map.n_types;
}

static int64_t *words_of(const RtPulls *p, int64_t *counts, int r) {
    return counts + r * rt_pulls_words(p);
}

static int64_t *of_process(const RtPulls *p, int64_t *counts, int r) {
    return words_of(p, counts, r) + RT_PULL_COUNTS;
}

int rt_pulls_owner(const RtPulls *p, int type, int64_t row) {
    const int64_t *bound = p->type[type].bound;
    int lo = 0, hi = p->n; /* bound[lo] <= row < bound[hi] */
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        if (bound[mid] <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* ---- messages -------------------------------------------------------------------------------- */
/* Exchanges what out, in and their sizes say, of `what`, and counts it. */
gnnc_status rt_pulls_send(const gnnc_trainer *t, const char *what) {
    RtPulls *p = t->pulls;
    if (p->failed != GNNC_OK) return p->failed;
    p->n_out[p->rank] = p->n_in[p->rank] = 0;
    for (int r = 0; r < p->n; r++) {
        p->sent_bytes += (int64_t)p->n_out[r];
        p->messages += p->n_out[r] > 0;
    }
    gnnc_status st = t->processes.exchange(t->processes.user, p->out, p->n_out, p->in, p->n_in);
    if (st == GNNC_OK) return GNNC_OK;
    p->all_failed = true; /* the host sees to it */
    return rt_fail(&p->err, st, "%s of other processes did not come: %s", what,
                   gnnc_status_text(st));
}

gnnc_status rt_pulls_end(gnnc_trainer *t, gnnc_status st) {
    RtPulls *p = t->pulls;
    t->rt.count.sent_bytes += p->sent_bytes;
    t->rt.count.messages += p->messages;
    p->sent_bytes = p->messages = 0;
    if (!p->all_failed) p->failed = st;
    p->all_failed = false;
    return st == GNNC_OK ? st : rt_fail(&t->rt.err, st, "%s", p->err.text);
}

/* What a message has of each row. */
typedef enum { NUMBERS, LENGTHS, ROWS } Part;

static size_t bytes_of(const RtPullType *y, Part part) {
    if (part == ROWS) return y->row_bytes;
    return sizeof(int32_t) * (part == NUMBERS ? 1 : (size_t)y->n_sparse);
}

/* Sizes of the messages that go and come. */
static void set_sizes(RtPulls *p, int64_t *go, int64_t *come, Part part, size_t *all_out,
                      size_t *all_in) {
    *all_out = *all_in = 0;
    for (int r = 0; r < p->n; r++) {
        p->n_out[r] = part == ROWS ? p->entries_out[r] : 0;
        p->n_in[r] = part == ROWS ? p->entries_in[r] : 0;
        for (int k = 0; k < p->map.n_types && r != p->rank; k++) {
            size_t bytes = bytes_of(&p->type[k], part);
            p->n_out[r] += (size_t)of_process(p, go, r)[k] * bytes;
            p->n_in[r] += (size_t)of_process(p, come, r)[k] * bytes;
        }
        *all_out += p->n_out[r];
        *all_in += p->n_in[r];
    }
}

/* Room for messages of these sizes, one process's behind the other's. */
static gnnc_status make_room(const gnnc_trainer *t, RtGrow *out, size_t all_out, RtGrow *in,
                             size_t all_in) {
    RtPulls *p = t->pulls;
    gnnc_status st;
    TRY(st, rt_grow(&p->growth, out, (int64_t)all_out, 1, 0, &p->err));
    TRY(st, rt_grow(&p->growth, in, (int64_t)all_in, 1, 0, &p->err));
    size_t at_out = 0, at_in = 0;
    for (int r = 0; r < p->n; r++) {
        p->out[r] = p->n_out[r] ? (char *)out->p + at_out : NULL;
        p->in[r] = p->n_in[r] ? (char *)in->p + at_in : NULL;
        at_out += p->n_out[r];
        at_in += p->n_in[r];
    }
out:
    return st;
}

void rt_pulls_free_messages(RtPulls *p) {
    RtGrow *all[] = {&p->ids_out, &p->ids_in,   &p->lengths_out, &p->lengths_in,
                     &p->ends,    &p->rows_out, &p->rows_in};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) rt_grow_free(&p->growth, all[i]);
}

/* ---- the rows of a batch --------------------------------------------------------------------- */
/* The number of a row among those that stay here; -1: it is none. */
static int64_t find_kept(const RtPullType *y, int32_t row) {
    int64_t lo = 0, hi = y->n_kept;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (y->kept[mid] < row)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < y->n_kept && y->kept[lo] == row ? lo : -1;
}

/* Finds which of these different rows of a type others have to send. */
gnnc_status rt_pulls_want(gnnc_trainer *t, RtPool *pool, int type, int64_t n, const int32_t *id) {
    RtPulls *p = t->pulls;
    RtPullType *y = &p->type[type];
    y->n = n;
    y->id = id;
    y->place = RT_NEWN(pool, int32_t, n + 1);
    if (!y->place) return rt_fail_nomem(&t->rt.err, "rows of others");
    for (int64_t i = 0; i < n; i++) {
        int r = rt_pulls_owner(p, type, id[i]);
        int64_t kept = r == p->rank ? -1 : find_kept(y, id[i]);
        y->place[i] = r == p->rank ? RT_PULL_OWN : RT_PULL_KEPT - (int32_t)kept;
        if (r == p->rank || kept >= 0) continue;
        y->place[i] = (int32_t)of_process(p, p->wanted, r)[type]++;
        t->rt.count.pulled_rows++;
    }
    return GNNC_OK;
}

/* What rows are wanted for, as a message has it. */
static const char *text_of(RtPullWhat what, char text[80]) {
    static const char *const of[] = {"to keep some", "at step", "at an evaluation behind step",
                                     "at an evaluation of the whole graph behind step"};
    if (what.use < RT_PULL_STAY || what.use > RT_PULL_WHOLE) return "elsewhere";
    if (what.use == RT_PULL_STAY)
        snprintf(text, 80, "%s", of[what.use]);
    else
        snprintf(text, 80, "%s %lld", of[what.use], (long long)what.number);
    return text;
}

/* Are all processes at the same?  Else all of them hear it. */
static gnnc_status check_uses(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    p->others_go_on = false;
    for (int r = 0; r < p->n; r++) {
        const int64_t *words = words_of(p, p->asked, r);
        RtPullWhat it = {words[RT_PULL_USE], words[RT_PULL_NUMBER]};
        char here[80], there[80];
        if (r == p->rank) continue;
        if (it.use == RT_PULL_STAY) p->others_go_on |= it.number != 0;
        if (it.use == p->what.use && (it.use == RT_PULL_STAY || it.number == p->what.number))
            continue;
        p->all_failed = true;
        return rt_fail(&p->err, GNNC_E_STATE, "rank %d pulls rows %s, rank %d %s", r,
                       text_of(it, there), p->rank, text_of(p->what, here));
    }
    return GNNC_OK;
}

gnnc_status rt_pulls_tell_counts(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t n_bytes = (size_t)rt_pulls_words(p) * sizeof *p->wanted;
    for (int r = 0; r < p->n; r++) {
        int64_t *words = words_of(p, p->wanted, r);
        words[RT_PULL_USE] = p->what.use;
        words[RT_PULL_NUMBER] = p->what.number;
        p->out[r] = words;
        p->in[r] = words_of(p, p->asked, r);
        p->n_out[r] = p->n_in[r] = n_bytes;
    }
    gnnc_status st = rt_pulls_send(t, "row numbers");
    if (st == GNNC_OK) st = check_uses(t);
    for (int r = 0; r < p->n && st == GNNC_OK; r++)
        for (int k = 0; k < p->map.n_types && r != p->rank; k++) {
            const int64_t *bound = p->type[k].bound;
            int64_t n = of_process(p, p->asked, r)[k];
            int64_t most = bound ? bound[p->rank + 1] - bound[p->rank] : 0;
            if (n < 0 || n > most)
                return rt_fail(&p->err, GNNC_E_STATE,
                               "rank %d asks rank %d for %lld rows of a table, of which it has "
                               "%lld",
                               r, p->rank, (long long)n, (long long)most);
        }
    return st;
}

/* Are these rows, which another process asks for, of this one? */
static gnnc_status check_ids(const gnnc_trainer *t, int from, int type, const int32_t *id,
                             int64_t n) {
    RtPulls *p = t->pulls;
    const int64_t *bound = p->type[type].bound;
    for (int64_t i = 0; i < n; i++)
        if (id[i] < bound[p->rank] || id[i] >= bound[p->rank + 1])
            return rt_fail(&p->err, GNNC_E_STATE,
                           "rank %d asks rank %d for row %d of '%s', which it does not have", from,
                           p->rank, id[i], t->program->spaces[p->map.space_of_type[type]].name);
    return GNNC_OK;
}

/* Tells each owner which rows, type by type. */
static gnnc_status tell_ids(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t all_out, all_in;
    gnnc_status st;
    set_sizes(p, p->wanted, p->asked, NUMBERS, &all_out, &all_in);
    TRY(st, make_room(t, &p->ids_out, all_out, &p->ids_in, all_in));
    for (int k = 0; k < p->map.n_types; k++) {
        const RtPullType *y = &p->type[k];
        for (int64_t i = 0; i < y->n; i++) {
            if (y->place[i] < 0) continue;
            int r = rt_pulls_owner(p, k, y->id[i]);
            int32_t *to = (int32_t *)(uintptr_t)p->out[r];
            for (int before = 0; before < k; before++) to += of_process(p, p->wanted, r)[before];
            to[y->place[i]] = y->id[i];
        }
    }
    TRY(st, rt_pulls_send(t, "row numbers"));
    for (int r = 0; r < p->n; r++) {
        const int32_t *id = p->in[r];
        for (int k = 0; k < p->map.n_types && r != p->rank && id; k++) {
            int64_t n = of_process(p, p->asked, r)[k];
            if (n) TRY(st, check_ids(t, r, k, id, n));
            id += n;
        }
    }
out:
    return st;
}

/* The rows of a type that process r asked for: *n of them. */
static const int32_t *asked_ids(const RtPulls *p, int r, int type, int64_t *n) {
    const int32_t *id = p->ids_in.p;
    for (int from = 0; from <= r; from++)
        for (int k = 0; k < (from < r ? p->map.n_types : type); k++)
            id += of_process(p, p->asked, from)[k];
    *n = of_process(p, p->asked, r)[type];
    return id;
}

/* The entries of a row that this process has. */
static RtPullEntries own_entries(const RtPulls *p, const RtPullColumn *c, int32_t row) {
    const int64_t *at = c->own.ptr + (row - p->type[c->type].bound[p->rank]);
    return (RtPullEntries){at[1] - at[0], c->own.col + at[0], c->own.val + at[0]};
}

/* ---- rows of stored entries: their lengths go before them --------------------------------------
 */
/* Where rows of process r begin in `end` of a column. */
static int64_t rows_before(const RtPulls *p, int r, int type) {
    int64_t n = 0;
    for (int from = 0; from < r; from++) n += of_process(p, p->wanted, from)[type];
    return n;
}

/* Entries of a column in the message of process r. */
static int64_t entries_from(const RtPulls *p, const RtPullColumn *c, int r) {
    int64_t n = of_process(p, p->wanted, r)[c->type];
    return n ? c->end[rows_before(p, r, c->type) + n - 1] : 0;
}

enum { ENTRY_BYTES = sizeof(int32_t) + sizeof(float) };

/* Writes the lengths of the rows that process r asked for into its message. */
static void put_lengths(RtPulls *p, int r) {
    int32_t *to = (int32_t *)(uintptr_t)p->out[r];
    p->entries_out[r] = 0;
    for (int c = 0; c < p->n_columns && r != p->rank; c++) {
        const RtPullColumn *y = &p->column[c];
        int64_t n;
        const int32_t *id = asked_ids(p, r, y->type, &n);
        for (int64_t i = 0; i < n && y->sparse; i++) {
            *to = (int32_t)own_entries(p, y, id[i]).n;
            p->entries_out[r] += (size_t)*to++ * ENTRY_BYTES;
        }
    }
}

/* Sums up the lengths that came of a column: where the entries of each row end.  Rows are different
 * ones: together they have no more entries than the data have besides this process's. */
static gnnc_status take_lengths(const gnnc_trainer *t, RtPullColumn *y, int64_t *end) {
    RtPulls *p = t->pulls;
    int64_t left = t->rt.bound->col[y->column]->csr.nnz - y->own.nnz;
    y->end = end;
    for (int r = 0; r < p->n; r++) {
        const int32_t *length = p->in[r];
        int64_t n = of_process(p, p->wanted, r)[y->type], sum = 0;
        for (int64_t i = 0; i < n; i++) {
            if (length[i] < 0 || length[i] > y->own.n_cols)
                return rt_fail(&p->err, GNNC_E_STATE,
                               "rank %d has a row of %d entries in %lld columns", r, length[i],
                               (long long)y->own.n_cols);
            *end++ = sum += length[i];
        }
        left -= sum;
        if (left < 0)
            return rt_fail(&p->err, GNNC_E_STATE,
                           "rank %d has rows of %lld entries, more than the data have in them", r,
                           (long long)sum);
        if (n) p->in[r] = (char *)p->in[r] + (size_t)n * sizeof *length;
        p->entries_in[r] += (size_t)sum * ENTRY_BYTES;
    }
    return GNNC_OK;
}

/* Tells who asked for rows how many entries they have, and hears the same: messages with rows have
 * sizes then. */
static gnnc_status tell_lengths(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t all_out, all_in;
    int64_t n = 0;
    gnnc_status st = GNNC_OK;
    for (int k = 0; k < p->map.n_types; k++) n += p->type[k].n_sparse * rows_before(p, p->n, k);
    if (!p->any_sparse) return GNNC_OK;
    set_sizes(p, p->asked, p->wanted, LENGTHS, &all_out, &all_in);
    TRY(st, make_room(t, &p->lengths_out, all_out, &p->lengths_in, all_in));
    TRY(st, rt_grow(&p->growth, &p->ends, n, sizeof(int64_t), 0, &p->err));
    for (int r = 0; r < p->n; r++) put_lengths(p, r);
    TRY(st, rt_pulls_send(t, "lengths of rows"));
    memset(p->entries_in, 0, (size_t)p->n * sizeof *p->entries_in);
    int64_t *end = p->ends.p;
    for (int c = 0; c < p->n_columns; c++) {
        if (!p->column[c].sparse) continue;
        TRY(st, take_lengths(t, &p->column[c], end));
        end += rows_before(p, p->n, p->column[c].type);
    }
out:
    return st;
}

/* Writes the entries of n rows: all columns, then all values. */
static char *put_entries(const RtPulls *p, const RtPullColumn *c, const int32_t *id, int64_t n,
                         char *to) {
    for (int values = 0; values < 2; values++)
        for (int64_t i = 0; i < n; i++) {
            RtPullEntries e = own_entries(p, c, id[i]);
            size_t n_bytes = (size_t)e.n * sizeof(int32_t);
            if (n_bytes) memcpy(to, values ? e.val : e.col, n_bytes);
            to += n_bytes;
        }
    return to;
}

RtPullEntries rt_pulls_entries(const RtPulls *p, const RtPullColumn *c, int64_t i) {
    const RtPullType *y = &p->type[c->type];
    int32_t place = y->place[i];
    if (place == RT_PULL_OWN) return own_entries(p, c, y->id[i]);
    int r = rt_pulls_owner(p, c->type, y->id[i]);
    const int64_t *end = c->end + rows_before(p, r, c->type);
    int64_t at = place ? end[place - 1] : 0;
    const char *col = (const char *)p->in[r] + (size_t)at * sizeof(int32_t);
    return (RtPullEntries){end[place] - at, col,
                           col + (size_t)entries_from(p, c, r) * sizeof(int32_t)};
}

/* ---- rows -------------------------------------------------------------------------------------
 */
/* Writes the rows that process r asked for into its message, column by column. */
static void put_rows(const gnnc_trainer *t, int r) {
    RtPulls *p = t->pulls;
    char *to = (char *)(uintptr_t)p->out[r];
    for (int c = 0; c < p->n_columns; c++) {
        const RtPullColumn *y = &p->column[c];
        int64_t n;
        const int32_t *id = asked_ids(p, r, y->type, &n);
        const char *from = rt_column_values(t->rt.bound->col[y->column]);
        if (y->sparse) to = put_entries(p, y, id, n, to);
        for (int64_t i = 0; i < n && !y->sparse; i++, to += y->row_bytes)
            memcpy(to, from + (size_t)id[i] * y->row_bytes, y->row_bytes);
    }
}

/* Sends the rows that others asked for, and gets those that were asked for. */
static gnnc_status send_rows(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t all_out, all_in;
    gnnc_status st;
    set_sizes(p, p->asked, p->wanted, ROWS, &all_out, &all_in);
    TRY(st, make_room(t, &p->rows_out, all_out, &p->rows_in, all_in));
    for (int r = 0; r < p->n; r++)
        if (p->n_out[r]) put_rows(t, r);
    st = rt_pulls_send(t, "rows");
out:
    return st;
}

/* Row i of those that were wanted of the column's type; NULL: it is this process's own. */
const char *rt_pulls_row(const RtPulls *p, const RtPullColumn *c, int64_t i) {
    const RtPullType *y = &p->type[c->type];
    int32_t place = y->place[i];
    if (place == RT_PULL_OWN) return NULL;
    if (place <= RT_PULL_KEPT) return c->kept + (size_t)(RT_PULL_KEPT - place) * c->row_bytes;
    const char *from = p->in[rt_pulls_owner(p, c->type, y->id[i])];
    return from + (size_t)place * c->row_bytes;
}

/* What comes of the next column lies behind what came of this one. */
void rt_pulls_pass_over(RtPulls *p, const RtPullColumn *c) {
    for (int r = 0; r < p->n; r++) {
        size_t n = (size_t)of_process(p, p->wanted, r)[c->type];
        size_t n_bytes = c->sparse ? (size_t)entries_from(p, c, r) * ENTRY_BYTES : n * c->row_bytes;
        if (n_bytes) p->in[r] = (char *)p->in[r] + n_bytes;
    }
}

/* Nothing is wanted yet. */
void rt_pulls_begin(RtPulls *p, RtPullUse use, int64_t number) {
    size_t n_words = (size_t)p->n * (size_t)rt_pulls_words(p);
    p->what = (RtPullWhat){use, number};
    memset(p->wanted, 0, n_words * sizeof *p->wanted);
    for (int k = 0; k < p->map.n_types; k++) p->type[k].n = 0;
}

/* Sends and gets what is wanted. */
gnnc_status rt_pulls_exchange(const gnnc_trainer *t) {
    gnnc_status st = rt_pulls_tell_counts(t);
    if (st == GNNC_OK) st = tell_ids(t);
    if (st == GNNC_OK) st = tell_lengths(t);
    return st == GNNC_OK ? send_rows(t) : st;
}

bool rt_pulls_came(const gnnc_trainer *t) {
    return t->pulls->came;
}

gnnc_status rt_pulls_wait(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    if (!p->pending) return rt_pulls_end(t, p->failed);
    gnnc_status st = rt_background_wait(p->thread);
    p->pending = false;
    p->came = st == GNNC_OK;
    t->rt.count.beside_bytes += p->sent_bytes;
    return rt_pulls_end(t, st);
}
