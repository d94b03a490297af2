/* Statements, and loops that every thread runs by itself. */
#include "codegen/cuda/cuda.h"

/* Emits a constant for a loop bound, which is used more than once; returns its name. */
static const char *name_bound(CuFn *f, const char *what, int id, const char *value) {
    const char *name = arena_printf(f->a, "gn_%s_%d", what, id);
    cu_line(f, "const int64_t %s = %s;", name, value);
    return name;
}

/* Texts of the first and the last bound of the loop's range; emits constants for those that need
 * them. */
void cu_bounds(CuFn *f, const LStmt *s, const char **lo, const char **hi) {
    int id = s->var->id;
    if (s->range == LR_EXTENT) {
        *lo = "0";
        *hi = cu_expr(f, s->extent);
        return;
    }
    const char *at = f->reg[s->at->id];
    if (s->range == LR_SEGMENT) {
        const char *ptr = f->buf[s->ptr->id];
        *lo = arena_printf(f->a, "%s[%s]", ptr, at);
        *hi = name_bound(f, "end", id, arena_printf(f->a, "%s[%s + 1]", ptr, at));
        return;
    }
    const char *n = cu_expr(f, s->extent), *chunks = cu_expr(f, s->n_chunks);
    const char *len = name_bound(f, "len", id, arena_printf(f->a, "gn_ceildiv(%s, %s)", n, chunks));
    *lo = arena_printf(f->a, "%s * %s", at, len);
    *hi = name_bound(f, "end", id, arena_printf(f->a, "gn_min64((%s + 1) * %s, %s)", at, len, n));
}

/* Emits a loop. start, step: texts of the thread's first offset and stride; NULL = every thread
 * runs all iterations. */
void cu_loop(CuFn *f, const LStmt *s, const char *start, const char *step) {
    const char *v = f->reg[s->var->id], *lo, *hi;
    cu_bounds(f, s, &lo, &hi);
    if (s->sched.unroll && !step) cu_line(f, "#pragma unroll");
    if (step)
        cu_open(f, "for (int64_t %s = %s + %s; %s < %s; %s += %s) {", v, lo, start, v, hi, v, step);
    else
        cu_open(f, "for (int64_t %s = %s; %s < %s; %s++) {", v, lo, v, hi, v);
    cu_block(f, s->body);
    cu_close(f);
}

/* Emits the definition of a register, if its value is needed. */
static void emit_value(CuFn *f, const LStmt *s, const char *v) {
    if (f->used[s->dst->id])
        cu_line(f, "const %s %s = %s;", cu_type(s->dst->dt), f->reg[s->dst->id], v);
}

/* Emits the region of the statement `emit_column_region` at s. */
static void emit_column_region(CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->team.regions.n; i++)
        if (f->team.regions.v[i].stmt == s) cu_columns(f, &f->team.regions.v[i]);
}

/* Emits one statement. */
void cu_statement(CuFn *f, const LStmt *s) {
    switch (s->kind) {
    case L_FOR:
        if (f->region && !f->serial_entries && loop_is_columns(s))
            cu_column(f, s);
        else
            cu_loop(f, s, NULL, NULL);
        break;
    case L_PREFETCH:
    case L_TILE: /* of a processor: no pass over a device's loops lets it by */
        break;
    case L_IF:
        cu_open(f, "if (%s) {", f->reg[s->cond->id]);
        cu_block(f, s->body);
        cu_close(f);
        break;
    case L_LET:
        emit_value(f, s, cu_let(f, s));
        break;
    case L_LOAD:
        emit_value(f, s, cu_load(f, s));
        break;
    case L_STORE:
        cu_store(f, s);
        break;
    case L_ACC:
        cu_acc(f, s);
        break;
    case L_LOCAL:
        cu_declare_local(f, s->buf);
        break;
    case L_COLUMNS:
        emit_column_region(f, s);
        break;
    case L_FOLD:
        cu_combine_partials(f, s);
        break;
    case L_BARRIER:
        cu_line(f, "gn_wait(gn);");
        break;
    }
}

void cu_block(CuFn *f, const LStmt *s) {
    for (; s; s = s->next) cu_statement(f, s);
}
