#include "import_pairs.h"

#include <string.h>

#include "runtime/exec/machine.h"
#include "runtime/exec/team.h"

enum { MOST_MEMBERS = 64, ALONE = 1 << 16, MOST_DIGITS = 9 };

typedef struct {
    const char *s, *end; /* whole lines */
    int64_t at, n;       /* of the first line; lines */
    int32_t most;
    bool other; /* some line is no pair */
} Share;

typedef struct {
    RtBytes text;
    char separator;
    int n_shares;
    Share share[MOST_MEMBERS];
    RtPairs *to;
    int32_t *place; /* [most + 1] of rt_pairs_number */
} Reader;

/* ---- lines ------------------------------------------------------------------------------ */
/* Bytes that are '\n', eight at a time: of the difference the zero bytes, each 0x80. */
static int64_t count_lines(const char *s, const char *end) {
    const uint64_t low = 0x0101010101010101u, seven = 0x7f7f7f7f7f7f7f7fu;
    int64_t n = 0;
    for (; end - s >= 8; s += 8) {
        uint64_t v;
        memcpy(&v, s, sizeof v);
        v ^= low * '\n';
        n += __builtin_popcountll(~(((v & seven) + seven) | v | seven));
    }
    for (; s < end; s++) n += *s == '\n';
    return n;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

/* Reads a number at *s, which has a line end somewhere behind it; below 0: no such number. */
static int32_t read_number(const char **s, bool as_printed) {
    const char *first = *s;
    int32_t v = 0;
    unsigned digit;
    while ((digit = (unsigned)(**s - '0')) < 10) {
        if (*s - first == MOST_DIGITS) return -1;
        v = 10 * v + (int32_t)digit;
        ++*s;
    }
    bool padded = as_printed && *first == '0' && *s - first > 1;
    return *s == first || padded ? -1 : v;
}

/* Over what parts two numbers, or ends a line. */
static bool skip_to_second(const char **s, char separator) {
    const char *first = *s;
    if (separator) return *(*s)++ == separator;
    while (is_blank(**s)) ++*s;
    return *s > first;
}

/* Skips what may stand between a pair and the line's end; false: something else does. */
static bool skip_line_end(const char **s, char separator) {
    if (separator && **s == '\r') ++*s;
    while (!separator && is_blank(**s)) ++*s;
    return *(*s)++ == '\n';
}

/* Reads the pairs of a share; false: a line is no pair of whole numbers. */
static bool read_lines(const Reader *r, Share *h) {
    int32_t *first = r->to->first + h->at, *second = r->to->second + h->at, most = -1;
    const char *s = h->s;
    for (int64_t i = 0; i < h->n; i++) {
        int32_t a = read_number(&s, r->separator), b = -1;
        if (a >= 0 && skip_to_second(&s, r->separator)) b = read_number(&s, r->separator);
        if (b < 0 || !skip_line_end(&s, r->separator)) return false;
        first[i] = a;
        second[i] = b;
        if (most < a) most = a;
        if (most < b) most = b;
    }
    h->most = most;
    return true;
}

/* ---- all of them -------------------------------------------------------------------------- */
/* A member counts the lines of every n_members-th share. */
static void count_some(void *arg, int member, int n_members) {
    Reader *r = arg;
    for (int i = member; i < r->n_shares; i += n_members)
        r->share[i].n = count_lines(r->share[i].s, r->share[i].end);
}

/* A member reads every n_members-th share. */
static void read_some(void *arg, int member, int n_members) {
    Reader *r = arg;
    for (int i = member; i < r->n_shares; i += n_members)
        r->share[i].other = !read_lines(r, &r->share[i]);
}

/* Cuts the text into shares of about equal length, each of which ends behind a line. */
static void cut(Reader *r, const char *end) {
    const char *begin = (const char *)r->text.p, *s = begin;
    int64_t n = end - begin;
    for (int i = 0; i < r->n_shares; i++) {
        const char *to = begin + n * (i + 1) / r->n_shares;
        if (to < s) to = s;
        if (to < end) to = (const char *)memchr(to, '\n', (size_t)(end - to)) + 1;
        r->share[i] = (Share){.s = s, .end = to};
        s = to;
    }
}

/* Makes room for the pairs of all shares, and gives each its place; false: there are too many, or
 * no memory. */
static bool take_room(Reader *r, RtPool *pool) {
    RtPairs *to = r->to;
    for (int i = 0; i < r->n_shares; i++) {
        r->share[i].at = to->n;
        to->n += r->share[i].n;
    }
    if (to->n > INT32_MAX) return false;
    to->first = RT_NEWN(pool, int32_t, to->n);
    to->second = RT_NEWN(pool, int32_t, to->n);
    return to->first && to->second;
}

/* Starts threads for so much text; NULL: it is too little to share, or none could be started. */
static RtTeam *team_for(RtPool *pool, size_t work, int *n_members) {
    RtTeam *team = NULL;
    RtError unheard;
    int cores = rt_usable_cores();
    *n_members = work < ALONE ? 1 : cores < MOST_MEMBERS ? cores : MOST_MEMBERS;
    if (*n_members > 1) rt_team_start(&team, &pool->from, *n_members, cores, &unheard);
    return team; /* NULL: the caller alone */
}

bool rt_pairs_read(RtPool *pool, RtBytes text, char separator, RtPairs *out) {
    const char *last = text.n ? memrchr(text.p, '\n', text.n) : NULL;
    Reader r = {.text = text, .separator = separator, .to = out};
    *out = (RtPairs){.most = -1};
    if (!last || last + 1 != (const char *)text.p + text.n) return false;
    RtTeam *team = team_for(pool, text.n, &r.n_shares);
    cut(&r, last + 1);
    rt_team_run(team, count_some, &r);
    bool ok = take_room(&r, pool);
    if (ok) rt_team_run(team, read_some, &r);
    rt_team_stop(team);
    for (int i = 0; i < r.n_shares && ok; i++) {
        ok = !r.share[i].other;
        if (out->most < r.share[i].most) out->most = r.share[i].most;
    }
    if (!ok) { /* the caller reads line by line, and takes memory for that */
        rt_pool_drop(pool, out->first);
        rt_pool_drop(pool, out->second);
        out->first = out->second = NULL;
    }
    return ok;
}

/* ---- places of numbers -------------------------------------------------------------------- */
/* A member replaces ids by the places of nodes in its share of the pairs. */
static void number_some(void *arg, int member, int n_members) {
    Reader *r = arg;
    int64_t from = r->to->n * member / n_members, to = r->to->n * (member + 1) / n_members;
    int32_t *const ends[] = {r->to->first, r->to->second};
    for (int k = 0; k < 2; k++)
        for (int64_t i = from; i < to; i++) ends[k][i] = r->place[ends[k][i]];
}

bool rt_pairs_number(RtPool *pool, RtPool *keep, RtPairs *p, int64_t **id, int64_t *n) {
    Reader r = {.to = p};
    int64_t room = (int64_t)p->most + 1, next = 0;
    if (room > 8 * p->n + ALONE) return false;
    int32_t *place = r.place = RT_NEWN(pool, int32_t, room);
    if (!place) return false;
    for (int64_t i = 0; i < p->n; i++) place[p->first[i]] = place[p->second[i]] = 1;
    for (int64_t v = 0; v < room; v++) next += place[v];
    *n = next;
    *id = RT_NEWN(keep, int64_t, next);
    if (!*id) return false;
    next = 0;
    for (int64_t v = 0; v < room; v++)
        if (place[v]) {
            (*id)[next] = v;
            place[v] = (int32_t)next++;
        }
    RtTeam *team = team_for(pool, (size_t)p->n, &r.n_shares);
    rt_team_run(team, number_some, &r);
    rt_team_stop(team);
    rt_pool_drop(pool, place);
    return true;
}
