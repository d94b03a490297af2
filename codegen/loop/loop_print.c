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

/* ---- lines of statements ----------------------------------------------------------- */
#define STMT(id, word, place, parts) static const LPartText parts_##id[] = {parts{0}};
#define PART(part, when, word, field, least, most)                                                 \
    {LP_##part, LW_##when, word, offsetof(LStmt, field), least, most, NULL, NULL},
#define CHOICE(when, first, second, field)                                                         \
    {LP_CHOICE, LW_##when, "", offsetof(LStmt, field), 0, 0, first, second},
#include "codegen/loop/statements.def"

const LLine loop_lines[LOOP_N_STMTS] = {
#define STMT(id, word, place, parts) [L_##id] = {word, parts_##id},
#include "codegen/loop/statements.def"
};

/* Where the statement has the field of a part. */
static const void *field_of(const LStmt *s, const LPartText *part) {
    return (const char *)s + part->offset;
}

bool loop_has_field(const LStmt *s, const LPartText *part) {
    const void *field = field_of(s, part);
    switch (part->part) {
    case LP_FLAG:
        return *(const bool *)field;
    case LP_NUMBER:
        return *(const int *)field != 0;
    case LP_SIZE:
        return *(const Expr *const *)field != NULL;
    case LP_SHARE:
        return *(const LShare *)field != LS_EACH;
    case LP_MAPS:
        return ((const MapList *)field)->n > 0;
    case LP_BUFFERS:
        return ((const LBufs *)field)->n > 0;
    default:
        return true;
    }
}

/* ---- parts ------------------------------------------------------------------------- */
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

/* Prints an argument of the kernel. */
static void print_argument(StrBuf *b, const LKernel *k, const LBuf *buf) {
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
        if (buf->kind == LB_ROOM) sb_printf(b, " room of %s", k->bufs.v[buf->room_of]->name);
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

void loop_maps_print(StrBuf *b, const MapList *maps) {
    for (int i = 0; i < maps->n; i++) {
        if (i) sb_puts(b, ", ");
        ir_map_print(b, maps->v[i]);
    }
}

/* Prints the row that a prefetch asks for. */
static void print_ahead(StrBuf *b, const LStmt *s) {
    sb_printf(b, "%s[%s[", s->buf->name, s->ptr->name);
    print_reg(b, s->at);
    sb_printf(b, " + %d]]", s->ahead);
    if (s->n_lines)
        sb_printf(b, " lines %d", s->n_lines);
    else
        sb_puts(b, " tile");
}

/* Prints a scalar function and its arguments. */
static void print_function(StrBuf *b, const LStmt *s) {
    sb_puts(b, s->fn == L_FN_OP ? op_mnemonic(s->op) : loop_fn_words[s->fn]);
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
}

/* Prints the names of buffers. */
static void print_buffers(StrBuf *b, const LBufs *bufs) {
    for (int i = 0; i < bufs->n; i++) sb_printf(b, "%s%s", i ? ", " : "", bufs->v[i]->name);
}

/* Prints what a part has behind its word. */
static void print_part(StrBuf *b, const LStmt *s, const LPartText *part) {
    const void *field = field_of(s, part);
    switch (part->part) {
    case LP_VARIABLE:
    case LP_CONDITION:
    case LP_SOURCE:
        print_reg(b, *(LReg *const *)field);
        break;
    case LP_RESULT:
        print_reg(b, s->dst);
        sb_printf(b, ": %s =", dtype_name(s->dst->dt));
        break;
    case LP_RANGE:
        print_range(b, s);
        break;
    case LP_FUNCTION:
        print_function(b, s);
        break;
    case LP_ELEMENT:
        print_element(b, s->buf, s->idx);
        break;
    case LP_AHEAD:
        print_ahead(b, s);
        break;
    case LP_BUFFER:
        sb_puts(b, s->buf->name);
        break;
    case LP_DECLARATION:
        sb_printf(b, "%s: ", s->buf->name);
        print_array_type(b, s->buf);
        break;
    case LP_BUFFERS:
        print_buffers(b, field);
        break;
    case LP_REDUCTION:
        sb_puts(b, text_reds.word[s->red]);
        break;
    case LP_SHARE:
        sb_puts(b, loop_share_words[*(const LShare *)field]);
        break;
    case LP_CHOICE:
        sb_puts(b, *(const bool *)field ? part->second : part->first);
        break;
    case LP_NUMBER:
        sb_printf(b, "%d", *(const int *)field);
        break;
    case LP_SIZE:
        expr_print(b, *(const Expr *const *)field);
        break;
    case LP_MAPS:
        loop_maps_print(b, field);
        break;
    case LP_BODY:
        sb_puts(b, "{");
        break;
    case LP_FLAG: /* its word is all */
    case LP_PLACE:
        break;
    }
}

/* Prints the line of a statement. */
static void print_line(StrBuf *b, const LStmt *s) {
    const LLine *line = &loop_lines[s->kind];
    bool is_there = false, is_first = !*line->word;
    sb_puts(b, line->word);
    for (const LPartText *part = line->parts; part->part; part++) {
        is_there = (!(part->when & LW_THEN) || is_there) &&
                   (!(part->when & LW_MAYBE) || loop_has_field(s, part));
        if (!is_there) continue;
        if (!is_first) sb_puts(b, " ");
        is_first = false;
        if (*part->word) sb_puts(b, part->word);
        if (*part->word && part->part != LP_FLAG) sb_puts(b, " ");
        print_part(b, s, part);
    }
}

/* Prints a list of statements. c: lines end with their source position; NULL: they do not. */
static void print_list(StrBuf *b, const Ctx *c, const LStmt *s, int depth) {
    for (; s; s = s->next) {
        indent(b, depth);
        print_line(b, s);
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
        print_argument(b, k, k->bufs.v[i]);
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
