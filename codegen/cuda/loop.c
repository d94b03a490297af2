/* Statements, and loops that every thread runs by itself. */
#include "codegen/cuda/cuda.h"

/* Emits a constant for a loop bound, so that it is evaluated once; returns its name. */
static const char *name_bound(CuFn *f, const char *prefix, int id, const char *value) {
    const char *name = arena_printf(f->a, "gn_%s_%d", prefix, id);
    cu_line(f, "const int64_t %s = %s;", name, value);
    return name;
}

void cu_loop_bounds_text(CuFn *f, const LStmt *s, const char **lo, const char **hi) {
    int id = s->var->id;
    if (s->range == LR_EXTENT) {
        *lo = "0";
        *hi = cu_size_text(f, s->extent);
        return;
    }
    const char *at = f->reg[s->at->id];
    if (s->range == LR_SEGMENT) {
        const char *ptr = f->buf[s->ptr->id];
        *lo = arena_printf(f->a, "%s[%s]", ptr, at);
        *hi = name_bound(f, "end", id, arena_printf(f->a, "%s[%s + 1]", ptr, at));
        return;
    }
    if (s->ptr) { /* a chunk with given bounds */
        const char *ptr = f->buf[s->ptr->id];
        *lo = arena_printf(f->a, "%s[%s]", ptr, at);
        *hi = name_bound(f, "end", id, arena_printf(f->a, "%s[%s + 1]", ptr, at));
        return;
    }
    const char *n = cu_size_text(f, s->extent), *chunks = cu_size_text(f, s->n_chunks);
    const char *len = name_bound(f, "len", id, arena_printf(f->a, "gn_ceildiv(%s, %s)", n, chunks));
    *lo = arena_printf(f->a, "%s * %s", at, len);
    *hi = name_bound(f, "end", id, arena_printf(f->a, "gn_min64((%s + 1) * %s, %s)", at, len, n));
}

void cu_emit_loop(CuFn *f, const LStmt *s, const char *start, const char *step) {
    const char *v = f->reg[s->var->id], *lo, *hi;
    cu_loop_bounds_text(f, s, &lo, &hi);
    if (s->sched.unroll && !step) cu_line(f, "#pragma unroll");
    if (step)
        cu_open(f, "for (int64_t %s = %s + %s; %s < %s; %s += %s) {", v, lo, start, v, hi, v, step);
    else
        cu_open(f, "for (int64_t %s = %s; %s < %s; %s++) {", v, lo, v, hi, v);
    cu_emit_statements(f, s->body);
    cu_close(f);
}

/* Emits the definition of the register that s defines, as `text`, if its value is needed. */
static void emit_register(CuFn *f, const LStmt *s, const char *text) {
    if (f->loaded && f->loaded->early[s->dst->id] && !s->packed) return;
    if (f->used[s->dst->id])
        cu_line(f, "const %s %s = %s;", cu_type(s->dst->dt), f->reg[s->dst->id], text);
}

/* Emits the region that begins with the statement `columns` s. */
static void emit_column_region(CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->team.regions.n; i++)
        if (f->team.regions.v[i].stmt == s) cu_emit_column_region(f, &f->team.regions.v[i]);
}

void cu_emit_statement(CuFn *f, const LStmt *s) {
    switch (s->kind) {
    case L_FOR:
        if (f->region && !f->columns_run_serially && loop_is_columns(s))
            cu_emit_column_loop(f, s);
        else
            cu_emit_loop(f, s, NULL, NULL);
        break;
    case L_PREFETCH:
    case L_TILE: /* of a processor: no pass over a device's loops lets it by */
        break;
    case L_IF:
        cu_open(f, "if (%s) {", f->reg[s->cond->id]);
        cu_emit_statements(f, s->body);
        cu_close(f);
        break;
    case L_LET:
        emit_register(f, s, cu_let_text(f, s));
        break;
    case L_LOAD:
        emit_register(f, s, cu_load_text(f, s));
        break;
    case L_STORE:
        cu_emit_store(f, s);
        break;
    case L_ACC:
        cu_emit_accumulate(f, s);
        break;
    case L_LOCAL:
        cu_declare_local(f, s->buf);
        break;
    case L_COLUMNS:
        emit_column_region(f, s);
        break;
    case L_FOLD:
        cu_emit_combine_partials(f, s);
        break;
    case L_BARRIER:
        cu_line(f, "gn_wait(gn);");
        break;
    }
}

void cu_emit_statements(CuFn *f, const LStmt *s) {
    for (; s; s = s->next) cu_emit_statement(f, s);
}
