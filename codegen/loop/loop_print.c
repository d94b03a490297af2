/* The text form of a kernel; loop_parse.c reads it back.
 *
 *     kernel gcn_train_h_12 {
 *       out h_12: f32[N_paper, 16]
 *       in z_9: f32[N_paper, 16]
 *       map src: idx src(cites)
 *       for %v.0 in N_paper parallel balanced dst(cites) {
 *         local acc: f32[16]
 *         for %e.2 in segment dst_ptr[%v.0] {
 *           %src.3: i32 = load src[%e.2]
 *           ...
 *           acc sum acc[%f.5] %t.7
 *
 * Registers are %hint.number, numbered in order of definition. */
#include "codegen/loop/loop.h"
#include "codegen/lower/lower.h"
#include "codegen/loop/loop_text.h"
#include "ir/text.h"

const char *const loop_fn_words[] = {[L_FN_OP] = "",
                                     [L_FN_CONST] = "const",
                                     [L_FN_SIZE] = "size",
                                     [L_FN_IADD] = "iadd",
                                     [L_FN_ISUB] = "isub",
                                     [L_FN_IMUL] = "imul",
                                     [L_FN_IDIV] = "idiv",
                                     [L_FN_IREM] = "irem",
                                     [L_FN_ILT] = "ilt",
                                     [L_FN_IGE] = "ige",
                                     [L_FN_IEQ] = "ieq",
                                     [L_FN_RANDOM] = "random",
                                     [L_FN_LE_RANDOM] = "le_random"};
const int loop_n_fn = (int)COUNT(loop_fn_words);

const char *const loop_part_words[] = {
    [LB_MAP_IDX] = "idx", [LB_MAP_PTR] = "ptr", [LB_MAP_PERM] = "perm"};

const char *const loop_share_words[] = {
    [LS_EACH] = "", [LS_WAYS] = "ways", [LS_TEAM] = "team", [LS_LANES] = "lanes"};
const char *const loop_taker_words[] = {
    [LT_UNDECIDED] = "", [LT_THREAD] = "threads", [LT_TEAM] = "teams", [LT_BLOCK] = "blocks"};

/* Prints an indentation. */
static void indent(StrBuf *b, int depth) {
    for (int i = 0; i < depth; i++) sb_puts(b, "  ");
}

/* Prints a register. */
static void print_reg(StrBuf *b, const LReg *r) {
    sb_printf(b, "%%%s.%d", r->hint && *r->hint ? cg_ident(b->a, r->hint) : "v", r->id);
}

/* Prints dimensions. */
static void print_dims(StrBuf *b, int n, const Expr *const *e) {
    sb_puts(b, "[");
    for (int i = 0; i < n; i++) {
        if (i) sb_puts(b, ", ");
        expr_print(b, e[i]);
    }
    sb_puts(b, "]");
}

/* Prints an element type and dimensions. */
static void print_array_type(StrBuf *b, const LBuf *buf) {
    sb_puts(b, dtype_name(buf->dt));
    if (buf->rank) print_dims(b, buf->rank, buf->dim);
}

/* Prints an element. */
static void print_element(StrBuf *b, const LBuf *buf, LReg *const *idx) {
    sb_puts(b, buf->name);
    if (!buf->rank) return;
    for (int i = 0; i < buf->rank; i++) {
        sb_puts(b, i ? ", " : "[");
        print_reg(b, idx[i]);
    }
    sb_puts(b, "]");
}

/* Prints an argument. */
static void print_argument(StrBuf *b, const LBuf *buf) {
    switch (buf->kind) {
    case LB_MAP_IDX:
    case LB_MAP_PTR:
    case LB_MAP_PERM:
        sb_printf(b, "map %s: %s ", buf->name, loop_part_words[buf->kind]);
        ir_map_print(b, buf->map);
        if (!buf->sorted_by) break;
        sb_puts(b, " by ");
        ir_map_print(b, buf->sorted_by);
        break;
    case LB_GLOBAL_IDS:
        sb_printf(b, "logical %s: ", buf->name);
        ir_name_print(b, buf->space->name);
        break;
    case LB_KEY:
        sb_printf(b, "key %s: %d", buf->name, buf->stream);
        break;
    case LB_CHUNK_BOUNDS:
        sb_printf(b, "cuts %s: ", buf->name);
        ir_name_print(b, buf->space->name);
        break;
    default:
        sb_printf(b, "%s %s: ", buf->written ? "out" : "in", buf->name);
        print_array_type(b, buf);
        if (buf->begun) sb_puts(b, " begun");
        if (buf->partial) sb_printf(b, " partial %d", buf->partial);
    }
    sb_puts(b, "\n");
}

/* Prints the range of a loop. */
static void print_range(StrBuf *b, const LStmt *s) {
    switch (s->range) {
    case LR_EXTENT:
        expr_print(b, s->extent);
        break;
    case LR_SEGMENT:
        sb_printf(b, "segment %s[", s->ptr->name);
        print_reg(b, s->at);
        sb_puts(b, "]");
        break;
    case LR_BEHIND:
        sb_puts(b, "behind ");
        expr_print(b, s->own);
        sb_puts(b, " to ");
        expr_print(b, s->extent);
        break;
    case LR_CHUNK:
        sb_puts(b, "chunk ");
        print_reg(b, s->at);
        sb_puts(b, " of ");
        expr_print(b, s->n_chunks);
        sb_puts(b, ": ");
        expr_print(b, s->extent);
        if (s->ptr) sb_printf(b, " at %s", s->ptr->name);
        break;
    }
}

void loop_balance_print(StrBuf *b, const MapList *maps) {
    for (int i = 0; i < maps->n; i++) {
        sb_puts(b, i ? ", " : " balanced ");
        ir_map_print(b, maps->v[i]);
    }
}

/* Prints how many rows run side by side in lanes, and which of two versions of a parallel loop it
 * is. */
static void print_versions(StrBuf *b, const LSched *s) {
    if (s->rows) sb_printf(b, " rows %d", s->rows);
    if (!s->where) return;
    sb_puts(b, " where ");
    expr_print(b, s->where);
    sb_printf(b, " %s %d", s->is_second ? "above" : "up_to", s->max);
}

/* Prints the first line of a loop. */
static void print_for_head(StrBuf *b, const LStmt *s) {
    sb_puts(b, "for ");
    print_reg(b, s->var);
    sb_puts(b, " in ");
    print_range(b, s);
    if (s->sched.parallel) sb_puts(b, " parallel");
    loop_balance_print(b, &s->sched.balance);
    if (s->sched.hub_entries) sb_printf(b, " hubs %d", s->sched.hub_entries);
    print_versions(b, &s->sched);
    if (s->sched.vector) sb_puts(b, " vector");
    if (s->sched.lanes)
        sb_printf(b, " %d%s", s->sched.lanes, s->sched.unroll_vectors ? " whole" : "");
    if (s->sched.unroll) sb_puts(b, " unroll");
    if (s->sched.flat) sb_printf(b, " flat %d", s->sched.flat);
    if (s->sched.expand)
        sb_printf(b, " expand %d%s", s->sched.expand, s->sched.prefix ? " prefix" : "");
    if (s->sched.strips) sb_printf(b, " strips %d", s->sched.strips);
    if (s->sched.jam) sb_puts(b, " jam");
    if (s->sched.serial) sb_puts(b, " serial");
    if (s->sched.collapse) sb_puts(b, " collapse");
    if (s->sched.share) sb_printf(b, " by %s", loop_share_words[s->sched.share]);
    if (s->sched.split_entries)
        sb_printf(b, " split %d from %d", s->sched.split_entries, s->sched.split_from);
}

/* Prints a prefetch. */
static void print_prefetch(StrBuf *b, const LStmt *s) {
    sb_printf(b, "prefetch %s[%s[", s->buf->name, s->ptr->name);
    print_reg(b, s->at);
    sb_printf(b, " + %d]]", s->ahead);
    if (s->n_lines)
        sb_printf(b, " lines %d", s->n_lines);
    else
        sb_puts(b, " tile");
}

/* Prints the first line of a tile: "tile WIDTH by COLUMNS vector LANES keeps BUFFERS". Rows of the
 * buffers stay in registers. */
static void print_tile_head(StrBuf *b, const LStmt *s) {
    sb_puts(b, "tile ");
    expr_print(b, s->extent);
    sb_printf(b, " by %d vector %d", s->columns, s->lanes);
    for (int i = 0; i < s->n_in_registers; i++)
        sb_printf(b, "%s %s", i ? "," : " keeps", s->in_registers[i]->name);
}

/* Prints the first line of a region of feature columns: "columns RANGE by SHARE masked promote
 * BUFFERS". Lanes of a team share its columns; lanes without one are masked; rows of promoted
 * buffers are in registers. */
static void print_columns_head(StrBuf *b, const LStmt *s) {
    sb_puts(b, "columns ");
    print_range(b, s);
    if (s->sched.share) sb_printf(b, " by %s", loop_share_words[s->sched.share]);
    if (s->sched.masked) sb_puts(b, " masked");
    for (int i = 0; i < s->promoted.n; i++)
        sb_printf(b, "%s%s", i ? ", " : " promote ", s->promoted.v[i]->name);
}

/* Prints a scalar function. */
static void print_let(StrBuf *b, const LStmt *s) {
    print_reg(b, s->dst);
    sb_printf(b, ": %s = %s", dtype_name(s->dst->dt),
              s->fn == L_FN_OP ? op_mnemonic(s->op) : loop_fn_words[s->fn]);
    if (s->fn == L_FN_CONST || s->fn == L_FN_LE_RANDOM) {
        sb_puts(b, " ");
        text_real(b, s->imm);
    } else if (s->fn == L_FN_SIZE) {
        sb_puts(b, " ");
        expr_print(b, s->size);
    }
    for (int i = 0; i < s->n_arg; i++) {
        sb_puts(b, " ");
        print_reg(b, s->arg[i]);
    }
    if (s->remat) sb_puts(b, " remat");
}

/* Prints a statement, without its body and the end of the line. */
static void print_stmt(StrBuf *b, const LStmt *s) {
    switch (s->kind) {
    case L_FOR:
        print_for_head(b, s);
        break;
    case L_IF:
        sb_puts(b, "if ");
        print_reg(b, s->cond);
        break;
    case L_PREFETCH:
        print_prefetch(b, s);
        break;
    case L_TILE:
        print_tile_head(b, s);
        break;
    case L_COLUMNS:
        print_columns_head(b, s);
        break;
    case L_BARRIER:
        sb_puts(b, "barrier");
        break;
    case L_FOLD:
        sb_printf(b, "fold %s %s by %s", text_reds.word[s->red], s->buf->name,
                  loop_share_words[s->sched.share]);
        break;
    case L_LET:
        print_let(b, s);
        break;
    case L_LOAD:
        print_reg(b, s->dst);
        sb_printf(b, ": %s = %s ", dtype_name(s->dst->dt), s->before_write ? "load_old" : "load");
        print_element(b, s->buf, s->idx);
        if (s->packed) sb_puts(b, " pack");
        if (s->remat) sb_puts(b, " remat");
        break;
    case L_STORE:
    case L_ACC:
        sb_puts(b, s->kind == L_STORE ? "store " : "acc ");
        if (s->kind == L_ACC) sb_printf(b, "%s ", text_reds.word[s->red]);
        print_element(b, s->buf, s->idx);
        sb_puts(b, " ");
        print_reg(b, s->src);
        if (s->packed) sb_puts(b, " pack");
        break;
    case L_LOCAL:
        sb_printf(b, "local %s: ", s->buf->name);
        print_array_type(b, s->buf);
        break;
    }
}

/* Prints a list of statements. c: lines end with their source position; NULL: they do not. */
static void print_list(StrBuf *b, const Ctx *c, const LStmt *s, int depth) {
    for (; s; s = s->next) {
        indent(b, depth);
        print_stmt(b, s);
        sb_puts(b, loop_has_body(s) ? " {" : "");
        if (c) ir_span_print(b, c, UINT32_MAX, true, s->span);
        sb_puts(b, "\n");
        if (!loop_has_body(s)) continue;
        print_list(b, c, s->body, depth + 1);
        indent(b, depth);
        sb_puts(b, "}\n");
    }
}

/* Prints which threads run the kernel's iterations. */
static void print_threads(StrBuf *b, const LThreads *t) {
    if (t->kind) sb_printf(b, " by %s", loop_taker_words[t->kind]);
    if (t->lanes) sb_printf(b, " lanes %d", t->lanes);
    if (t->pack) sb_printf(b, " pack %d", t->pack);
    if (t->columns) sb_printf(b, " columns %d", t->columns);
}

/* Prints a kernel. stage_of: the kernel that it is a stage of, or NULL. */
static void print_kernel(StrBuf *b, const Ctx *c, const LKernel *k, const LKernel *stage_of) {
    sb_printf(b, "kernel %s", k->name);
    if (stage_of) sb_printf(b, " of %s", stage_of->name);
    print_threads(b, &k->threads);
    sb_puts(b, " {\n");
    for (int i = 0; i < k->bufs.n; i++) {
        indent(b, 1);
        print_argument(b, k->bufs.v[i]);
    }
    print_list(b, c, k->body, 1);
    sb_puts(b, "}\n");
}

/* Prints a kernel with its stages. */
static void print_all_stages(StrBuf *b, const Ctx *c, const LKernel *k) {
    for (int i = 0; i < k->stages.n; i++) print_kernel(b, c, k->stages.v[i], k);
    if (!k->stages.n) print_kernel(b, c, k, NULL);
}

void loop_print(StrBuf *b, const Module *m, const LKernel *k) {
    (void)m;
    print_all_stages(b, NULL, k);
}

void loop_print_places(StrBuf *b, const Module *m, const LKernel *k) {
    print_all_stages(b, m->ctx, k);
}
