/* Columns of the caller's that one call reads: of rows that are appended (graph_append.c), of pairs
 * that are scored (session_pairs.c). */
#include "graph.h"

void rt_borrowed_release(const gnnc_array *in) {
    RtBorrowed x;
    rt_borrowed_begin(&x, NULL, in, NULL);
    rt_borrowed_end(NULL, &x, GNNC_E_ARG);
}

const gnnc_array *rt_borrowed_lock(const gnnc_array *in, gnnc_array *as) {
    if (!in || in->struct_size != sizeof *in) return in;
    *as = *in;
    as->borrowed = 1;
    return as;
}

const gnnc_values *rt_values_at(const gnnc_values *v, int i) {
    return (const gnnc_values *)((const char *)v + (size_t)i * v->struct_size);
}

/* Gives the arrays of a column back to the caller. */
void rt_values_release(const gnnc_values *v) {
    rt_borrowed_release(v->values);
    rt_borrowed_release(v->ptr);
    rt_borrowed_release(v->idx);
}

gnnc_status rt_values_check(const gnnc_values *all, int32_t *n, RtError *err) {
    int given = *n;
    if (given < 0 || (given && !all)) {
        *n = 0;
        return rt_fail(err, GNNC_E_ARG, "%d columns, and no array of them", given);
    }
    for (int i = 0; i < given; i++) {
        const gnnc_values *v = rt_values_at(all, i);
        gnnc_status st = RT_STRUCT_CHECK(err, gnnc_values, v, n_categories);
        if (st == GNNC_OK && v->struct_size == all->struct_size) continue;
        *n = i; /* nothing can be read of it, nor of where the next one is */
        return rt_fail(err, GNNC_E_ARG, "struct_size of column %d is not that of column 0", i);
    }
    return GNNC_OK;
}

gnnc_status rt_values_add(gnnc_graph *one, const char *table, const gnnc_values *v, gnnc_kind kind,
                          int64_t n_codes, int64_t n_columns) {
    gnnc_array x, ptr, idx;
    bool kept;
    const gnnc_array *values = rt_borrowed_lock(v->values, &x);
    if (kind == GNNC_COL_CSR)
        return gnnc_graph_add_csr(one, table, v->column, n_columns, rt_borrowed_lock(v->ptr, &ptr),
                                  rt_borrowed_lock(v->idx, &idx), values);
    return rt_graph_add_column(one, table, v->column, kind, values,
                               v->names ? v->n_categories : n_codes, v->names, &kept);
}
