/* Sizes of spaces and maps, and where work of rows is cut. */
#include "bind.h"

int64_t rt_size(const rt_program *p, const int64_t *n, int space) {
    const rt_space *s = &p->spaces[space];
    return s->fixed >= 0 ? s->fixed : s->sym >= 0 ? n[s->sym] : 0;
}

/* Rows that a map leads to: of a pair of maps the product of both. */
int64_t rt_map_rows(const rt_program *p, const int64_t *n, int map) {
    const rt_map *m = &p->maps[map];
    if (m->kind != RT_MAP_PAIR) return rt_size(p, n, m->to);
    return rt_size(p, n, p->maps[m->pair[0]].to) * rt_size(p, n, p->maps[m->pair[1]].to);
}

int64_t rt_work_before(const int64_t *const *ptr, int n, int64_t row) {
    int64_t work = row;
    for (int i = 0; i < n; i++) work += ptr[i][row];
    return work;
}

/* Binary search, as all terms ascend. */
int64_t rt_row_at(const int64_t *const *ptr, int n, int64_t lo, int64_t hi, int64_t work) {
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (rt_work_before(ptr, n, mid) < work)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
