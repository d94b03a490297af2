/* The difference of two texts by lines: Myers, "An O(ND) Difference Algorithm and Its Variations"
 * (1986), section 4b, the variant that divides at the middle of the shortest path and needs memory
 * for two rows of diagonals only. */
#include "passes/dump.h"

#include <string.h>

enum {
    MAX_STEPS = 4096,  /* from either end; texts that differ by more are told as replaced */
    CONTEXT_LINES = 3, /* equal lines that are shown before and after what differs */
};

typedef struct {
    const char *s;
    size_t n;
    uint32_t hash;
} Line;

typedef struct {
    Line *line;
    bool *changed; /* by line: it is not in the other text */
    int n;
} Side;

typedef struct {
    Side old, new;
    int *forward,
        *backward; /* by diagonal: how far a path comes from the beginning, and from the end */
} Diff;

/* Splits a text into lines. */
static Side split_lines(Arena *a, const char *text) {
    Side s = {.n = 0};
    int n = 1;
    for (const char *p = text; *p; p++) n += *p == '\n';
    s.line = NEWN(a, Line, (size_t)n);
    s.changed = NEWN(a, bool, (size_t)n);
    while (*text) {
        Line l = {.s = text, .n = strcspn(text, "\n"), .hash = 2166136261u};
        for (size_t i = 0; i < l.n; i++) l.hash = (l.hash ^ (unsigned char)text[i]) * 16777619u;
        s.line[s.n++] = l;
        text += l.n + (text[l.n] == '\n');
    }
    return s;
}

/* Whether two lines are equal. */
static bool same_line(const Line *x, const Line *y) {
    return x->hash == y->hash && x->n == y->n && memcmp(x->s, y->s, x->n) == 0;
}

/* Lines [x, x + n) of the old text, [y, y + m) of the new one. */
typedef struct {
    int x, n, y, m;
} Box;

/* Whether line x of the box's old text equals line y of its new one. */
static bool same_from_start(const Diff *d, const Box *b, int x, int y) {
    return same_line(&d->old.line[b->x + x], &d->new.line[b->y + y]);
}

/* The same, counted from the ends of the box. */
static bool same_from_end(const Diff *d, const Box *b, int x, int y) {
    return same_line(&d->old.line[b->x + b->n - 1 - x], &d->new.line[b->y + b->m - 1 - y]);
}

typedef bool SameFn(const Diff *, const Box *, int, int);

/* Extends the furthest path on diagonal k by one step and all equal lines behind it; how far it
 * comes. */
static int extend_path(const Diff *d, const Box *b, int *v, int k, int steps, SameFn *equal) {
    bool down = k == -steps || (k != steps && v[k - 1] < v[k + 1]);
    int x = down ? v[k + 1] : v[k - 1] + 1;
    while (x < b->n && x - k < b->m && equal(d, b, x, x - k)) x++;
    return v[k] = x;
}

/* Finds a point of a shortest edit path, relative to the box. False: the path is too long, or the
 * point is a corner. */
static bool find_middle(const Diff *d, const Box *b, int *at_x, int *at_y) {
    int delta = b->n - b->m;
    bool odd = delta & 1;
    d->forward[1] = d->backward[1] = 0;
    for (int steps = 0; steps <= MAX_STEPS; steps++) {
        int low = -steps + 2 * (steps > b->m ? steps - b->m : 0);
        int high = steps - 2 * (steps > b->n ? steps - b->n : 0);
        for (int side = 0; side < 2; side++)
            for (int k = low; k <= high; k += 2) {
                int *v = side ? d->backward : d->forward, *other = side ? d->forward : d->backward;
                int x = extend_path(d, b, v, k, steps, side ? same_from_end : same_from_start),
                    y = x - k;
                int met = delta - k, range = side ? steps : steps - 1;
                bool may = (side == 0) == odd && met >= -range && met <= range;
                if (!may || x > b->n || y > b->m || x + other[met] < b->n) continue;
                *at_x = side ? b->n - x : x;
                *at_y = side ? b->m - y : y;
                return (*at_x || *at_y) && (*at_x < b->n || *at_y < b->m);
            }
    }
    return false;
}

/* Marks n lines as changed. */
static void mark_changed(Side *s, int from, int n) {
    for (int i = from; i < from + n; i++) s->changed[i] = true;
}

/* Compares two ranges of lines, by divide and conquer. */
static void compare_box(Diff *d, Box b) {
    for (; b.n && b.m && same_from_start(d, &b, 0, 0); b.n--, b.m--) b.x++, b.y++;
    for (; b.n && b.m && same_from_end(d, &b, 0, 0); b.n--) b.m--;
    int x, y;
    if (b.n && b.m && find_middle(d, &b, &x, &y)) {
        compare_box(d, (Box){b.x, x, b.y, y});
        compare_box(d, (Box){b.x + x, b.n - x, b.y + y, b.m - y});
        return;
    }
    mark_changed(&d->old, b.x, b.n);
    mark_changed(&d->new, b.y, b.m);
}

/* ---- as text ------------------------------------------------------------------------------- */
/* Prints a line behind a sign. */
static void print_line(StrBuf *b, const char *sign, const Line *l) {
    sb_puts(b, sign);
    sb_put(b, l->s, l->n);
    sb_puts(b, "\n");
}

/* Prints the name of the function, phase or kernel that line x of the old text is in. */
static void print_block_name(StrBuf *b, const Side *old, int x) {
    const char *name;
    while (x >= 0 && (x >= old->n || !dump_block(old->line[x].s, &name))) x--;
    if (x < 0) return;
    size_t indent = strspn(old->line[x].s, " ");
    const Line *l = &old->line[x];
    sb_puts(b, " ");
    sb_put(b, l->s + indent, (size_t)(name - l->s) - indent + dump_block(l->s, &name));
}

/* Prints a hunk: changed lines with at most 2 * CONTEXT_LINES equal ones between. *old and *new
 * move behind it. */
static void print_hunk(StrBuf *b, const Diff *d, int *old, int *new) {
    int x = *old, y = *new, equal = 0;
    while ((x < d->old.n || y < d->new.n) && equal <= 2 * CONTEXT_LINES) {
        bool removed = x < d->old.n && d->old.changed[x], added = y < d->new.n && d->new.changed[y];
        x += removed || !added;
        y += !removed;
        equal = removed || added ? 0 : equal + 1;
    }
    int excess = equal > CONTEXT_LINES ? equal - CONTEXT_LINES : 0,
        before = *old < CONTEXT_LINES ? *old : CONTEXT_LINES;
    if (before > *new) before = *new;
    int end_x = x - excess, end_y = y - excess;
    x = *old - before;
    y = *new - before;
    sb_printf(b, "@@ -%d,%d +%d,%d @@", x + (end_x > x), end_x - x, y + (end_y > y), end_y - y);
    print_block_name(b, &d->old, *old);
    sb_puts(b, "\n");
    while (x < end_x || y < end_y) {
        if (x < end_x && d->old.changed[x])
            print_line(b, "-", &d->old.line[x++]);
        else if (y < end_y && d->new.changed[y])
            print_line(b, "+", &d->new.line[y++]);
        else
            print_line(b, " ", &d->old.line[x++]), y++;
    }
    *old = end_x;
    *new = end_y;
}

/* Compares two texts. */
static Diff diff(Arena *a, const char *old, const char *new) {
    Diff d = {.old = split_lines(a, old), .new = split_lines(a, new)};
    size_t n = (size_t)d.old.n + (size_t)d.new.n + 4;
    d.forward = NEWN(a, int, 2 * n) + n;
    d.backward = NEWN(a, int, 2 * n) + n;
    compare_box(&d, (Box){0, d.old.n, 0, d.new.n});
    return d;
}

/* For each line of the old text the equal one of the new text, or -1. */
const int *dump_align(Arena *a, const char *old, const char *new) {
    Diff d = diff(a, old, new);
    int *to = NEWN(a, int, (size_t)d.old.n + 1);
    for (int x = 0, y = 0; x < d.old.n; x++) {
        while (!d.old.changed[x] && d.new.changed[y]) y++;
        to[x] = d.old.changed[x] ? -1 : y++;
    }
    return to;
}

/* Prints the difference of two texts. */
void dump_diff(StrBuf *b, const char *before, const char *after) {
    Diff d = diff(b->a, before, after);
    for (int x = 0, y = 0; x < d.old.n || y < d.new.n;) {
        bool differs = (x < d.old.n && d.old.changed[x]) || (y < d.new.n &&d.new.changed[y]);
        if (differs)
            print_hunk(b, &d, &x, &y);
        else
            x++, y++;
    }
}
