/* Which columns a program reads, in which phases, and which column of the data each is. */
#include "bind.h"

static bool is_buf_used(const rt_program *p, int buf, bool in_batches) {
    return buf >= 0 && (!in_batches || p->bufs[buf].in_batches);
}

/* Does a kernel read an array of the map, or its targets in another map's order? in_batches: a
 * kernel of phases over batches. */
static bool is_map_used(const rt_program *p, int map, bool in_batches) {
    const rt_map *m = &p->maps[map];
    const int own[] = {m->idx_buf, m->ptr_buf, m->perm_buf};
    for (int i = 0; i < 3; i++)
        if (is_buf_used(p, own[i], in_batches)) return true;
    for (int b = 0; b < p->n_bufs; b++)
        if (p->bufs[b].kind == RT_BUF_MAP && p->bufs[b].by >= 0 && p->bufs[b].map == map &&
            is_buf_used(p, b, in_batches))
            return true;
    return false;
}

rt_dtype rt_bind_type(const rt_program *p, const rt_column *want) {
    return want->buf >= 0 ? p->bufs[want->buf].dt : RT_F32;
}

bool rt_bind_is_of_column(const rt_program *p, int map, int col) {
    const rt_map *m = &p->maps[map];
    switch (m->kind) {
    case RT_MAP_COL:
    case RT_MAP_VIA:
        return m->col == col;
    case RT_MAP_PAIR:
        return rt_bind_is_of_column(p, m->pair[0], col) || rt_bind_is_of_column(p, m->pair[1], col);
    case RT_MAP_ROW:
    case RT_MAP_NZCOL:
        return p->spaces[m->from].col == col;
    default:
        return false;
    }
}

/* Does a kernel read the column, by its buffer or by an index array that is made of it? */
static bool is_read(const rt_program *p, int col, bool in_batches) {
    if (is_buf_used(p, p->columns[col].buf, in_batches)) return true;
    for (int m = 0; m < p->n_maps; m++)
        if (rt_bind_is_of_column(p, m, col) && is_map_used(p, m, in_batches)) return true;
    return false;
}

bool rt_bind_reads_whole(const rt_program *p, int col) {
    int buf = p->columns[col].buf;
    if (buf >= 0 && p->bufs[buf].whole) return true;
    for (int i = 0; i < p->n_bufs; i++) {
        const rt_buf *b = &p->bufs[i];
        if (b->kind != RT_BUF_MAP || !b->whole) continue;
        if (rt_bind_is_of_column(p, b->map, col)) return true;
        if (b->by >= 0 && rt_bind_is_of_column(p, b->by, col)) return true;
    }
    return false;
}

bool rt_bind_reads(const rt_program *p, int col) {
    return is_read(p, col, false);
}

/* Are batches drawn by this column: a weight, a time, the label or the split? */
static bool is_drawn_by(const rt_sampling *s, int col) {
    for (int i = 0; i < s->n_weights; i++)
        if (s->weights[i] == col) return true;
    for (int i = 0; i < s->n_times; i++)
        if (s->times[i] == col) return true;
    return s->batch && (s->label == col || s->split == col);
}

bool rt_bind_is_used(const rt_program *p, int col) {
    return rt_bind_reads(p, col) || is_drawn_by(&p->sampling, col);
}

bool rt_bind_batches_read(const rt_program *p, int col) {
    for (int i = 0; i < p->sampling.n_times; i++)
        if (p->sampling.times[i] == col) return true;
    return is_read(p, col, true);
}

int rt_bind_base(const rt_program *p, int col) {
    int space = p->columns[col].space;
    while (p->spaces[space].kind == RT_SP_EDGE && p->spaces[space].rel != RT_REL_BASE)
        space = p->spaces[space].base[0];
    return space;
}

int rt_bind_index(const RtExec *x, const rt_column *c) {
    return (int)(c - x->program->columns);
}

/* Whose rows a column has. */
const RtTable *rt_bind_table_of(const RtExec *x, const rt_column *c) {
    return x->rt->bound->table[rt_bind_base(x->program, rt_bind_index(x, c))];
}

RtColumn *rt_bind_data_column(const RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    const RtTable *t = rt_bind_table_of(x, want);
    return t ? (RtColumn *)rt_table_column(t, want->name) : NULL; /* the data set is ours */
}

const char *rt_bind_column_name(const RtExec *x, int col) {
    const rt_space *s = &x->program->spaces[rt_bind_base(x->program, col)];
    return rt_pool_printf(&x->rt->pool, "%s.%s", s->name, x->program->columns[col].name);
}

const RtColumn *rt_bind_source(const RtExec *x, int col) {
    return rt_bind_is_used(x->program, col) ? rt_bind_data_column(x, col) : NULL;
}

bool rt_bind_is_mapped(const RtExec *x, int buf) {
    return x->buf[buf] && rt_dataset_maps(x->rt->bound->data, x->buf[buf]);
}

gnnc_status rt_bind_run_whole(RtExec *x, const rt_phase *phase) {
    const RtColumn *const *col = x->rt->bound->col;
    for (int c = 0; c < x->program->n_columns; c++)
        if (col[c]) rt_column_begin_in_order(col[c]);
    gnnc_status st = rt_phase_run(x, phase);
    for (int c = 0; c < x->program->n_columns; c++)
        if (col[c]) rt_column_end_in_order(col[c]);
    return st;
}
