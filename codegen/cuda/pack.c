/* Several neighbouring columns for each lane: a row's piece is loaded and stored at once, 16 bytes
 * where it can be.
 *
 *     for f in 64 vector {          if lane has columns 4 f' .. 4 f' + 3:
 *       %z = load z[src, f]           GnPack<float, 4> in = gn_pack<4>(&z[src*64 + 4*f'])
 *       %v = mul %z w          =>     for gn_k in 4, unrolled {
 *       acc sum acc[f] %v               z = in.at[gn_k];  v = z * w;  acc[gn_k] += v
 *     }                               }
 *
 * Buffers begin at multiples of 256 bytes, rows at multiples of the pack: their width is one. Where
 * only data know the width, `gn_has` says whether it is; if not, elements are loaded and stored one
 * by one, and a lane has the columns that are left. */
#include "codegen/cuda/cuda.h"

int cu_region_pack(const CuFn *f, const LoopColumns *r) {
    return r->range->range == LR_EXTENT ? f->sched.pack : 1;
}

/* ---- what stands in the text ------------------------------------------------------------- */
/* Opens an unrolled loop (variable gn_k) over the lane's columns, if it has several. */
void cu_open_pack_loop(CuFn *f) {
    if (!f->first_column) return;
    cu_line(f, "#pragma unroll");
    cu_open(f, "for (int gn_k = 0; gn_k < %d; gn_k++) {", f->sched.pack);
}

/* Closes the loop of cu_open_pack_loop(). */
void cu_close_pack_loop(CuFn *f) {
    if (f->first_column) cu_close(f);
}

/* Text of a variable that exists once per column of the lane: name[gn_k] inside the pack loop, or
 * the name alone where a lane has one column. */
const char *cu_pack_register(CuFn *f, const char *name) {
    return f->first_column ? arena_printf(f->a, "%s[gn_k]", name) : name;
}

/* The declarator of such a variable: an array where the lane has several columns. */
const char *cu_pack_declarator(CuFn *f, const char *name) {
    return f->first_column ? arena_printf(f->a, "%s[%d]", name, f->sched.pack) : name;
}

/* Whether a statement in the list needs the column's number, other than as the index of a packed
 * access. is_own_list: s is in the column loop's own list, not in an `if` in it. */
static bool reads_column_index(const CuFn *f, const LStmt *s, const LStmt *loop, bool is_own_list) {
    for (; s; s = s->next) {
        for (int i = 0; i < s->n_arg && f->used[s->dst->id]; i++)
            if (s->arg[i] == loop->var) return true;
        const bool has_address =
            loop_is_access(s) && !(is_own_list && s->packed) && !cu_promoting_region(f, s);
        for (int i = 0; has_address && i < s->buf->rank; i++)
            if (s->buf->kind != LB_LOCAL && s->idx[i] == loop->var) return true;
        if (s->kind == L_IF && reads_column_index(f, s->body, loop, false)) return true;
    }
    return false;
}

void cu_push_pack_alias(CuFn *f, const LStmt *s, const char *pack) {
    CuAlias a = {s->buf, s, arena_printf(f->a, "%s.at[gn_k]", pack), -1, .in_memory_type = true};
    vec_push(f->a, &f->alias, a);
}

const char *cu_load_pack_text(CuFn *f, const char *element) {
    if (f->ragged)
        return arena_printf(f->a, "gn_pack_row<%d>(&%s, gn_has)", f->sched.pack, element);
    return arena_printf(f->a, "gn_pack<%d>(&%s)", f->sched.pack, element);
}

const char *cu_store_pack_text(CuFn *f, const char *element, const char *pack) {
    if (f->ragged) return arena_printf(f->a, "gn_put_row(&%s, %s, gn_has);", element, pack);
    return arena_printf(f->a, "gn_put(&%s, %s);", element, pack);
}

void cu_skip_missing_columns(CuFn *f) {
    if (f->ragged) cu_line(f, "if (gn_k >= gn_has.n) continue;");
}

const char *cu_pack_type(CuFn *f, const LBuf *b) {
    return arena_printf(f->a, "GnPack<%s, %d>", cu_mem_type(b->dt), f->sched.pack);
}

/* Emits the body of a column loop for all columns of a lane that has several: packs are loaded
 * first, then each column is computed, then packs are stored. */
void cu_emit_packed_body(CuFn *f, const LStmt *loop) {
    const char *column_name = f->reg[loop->var->id];
    int n_outer_aliases = f->alias.n;
    VEC(const char *) stores = {0};
    f->reg[loop->var->id] = f->first_column;
    for (const LStmt *s = loop->body; s; s = s->next) {
        if (!loop_is_access(s) || !s->packed || cu_promoting_region(f, s)) continue;
        if (s->kind == L_LOAD && !f->used[s->dst->id]) continue;
        if (s->kind == L_LOAD && f->loaded && f->loaded->early[s->dst->id]) continue;
        const char *pack = arena_printf(f->a, "gn_pack_%d", f->n_fresh_names++);
        const char *element = cu_element_text(f, s), *type = cu_pack_type(f, s->buf);
        if (s->kind == L_LOAD) {
            cu_line(f, "const %s %s = %s;", type, pack, cu_load_pack_text(f, element));
        } else {
            cu_line(f, "%s %s;", type, pack);
            vec_push(f->a, &stores, cu_store_pack_text(f, element, pack));
        }
        cu_push_pack_alias(f, s, pack);
    }
    f->reg[loop->var->id] = column_name;
    cu_open_pack_loop(f);
    cu_skip_missing_columns(f);
    if (reads_column_index(f, loop->body, loop, true))
        cu_line(f, "const int64_t %s = %s + gn_k;", column_name, f->first_column);
    cu_emit_statements(f, loop->body);
    cu_close_pack_loop(f);
    f->alias.n = n_outer_aliases;
    for (int i = 0; i < stores.n; i++) cu_line(f, "%s%s", cu_writer_guard_text(f), stores.v[i]);
}
