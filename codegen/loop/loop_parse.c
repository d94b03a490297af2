/* Reads the text form of kernels (loop_print.c), over the spaces, columns and sizes of a
 * module.  Shares tokens and expressions with the parser of the graph IR.  What a
 * kernel must hold beyond its grammar is loop_verify()'s to say. */
#include "codegen/loop/loop.h"
#include "codegen/loop/loop_text.h"
#include "ir/parse.h"
#include "runtime/exec/blocks.h"

#include <string.h>

typedef struct {
    Parser p;
    const char *stage_of; /* the kernel that this one is a stage of, or NULL */
    bool may_be_stage;    /* it may be one */
    LKernel *k;
    StrMap regs, bufs;
    int depth;
} Reader;

enum { MAX_DEPTH = 64 };

static bool parse_list(Reader *r, LStmt **first);

/* ---- registers, buffers ----------------------------------------------------------- */
/* Reads "%name". */
static bool parse_register_name(Reader *r, const char **name) {
    if (r->p.tok.kind != T_VALUE) return parse_expected(&r->p, "a register, as %name.0");
    *name = r->p.tok.s;
    parse_lex_next(&r->p);
    return true;
}

/* Reads a register that is defined. */
static bool parse_register(Reader *r, LReg **reg) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_register_name(r, &name)) return false;
    *reg = strmap_get(&r->regs, name);
    return *reg || parse_fail(&r->p, DIAG_E0543, at, "%%%s is not defined", name);
}

/* The register's name without the number after the last dot, which the printer writes anew. */
static const char *hint_of(Reader *r, const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? arena_strndup(r->p.a, name, (size_t)(dot - name)) : name;
}

/* Defines a register by its name; def: the statement that defines it. */
static bool define_register(Reader *r, const char *name, Span at, DType dt, const LStmt *def,
                            LReg **reg) {
    if (strmap_has(&r->regs, name))
        return parse_fail(&r->p, DIAG_E0543, at, "%%%s is defined twice", name);
    *reg = NEW(r->p.a, LReg);
    **reg = (LReg){.id = r->k->n_regs++, .dt = dt, .hint = hint_of(r, name), .def = def};
    strmap_put(r->p.a, &r->regs, name, *reg);
    return true;
}

/* Reads an element type. */
static bool parse_dtype(Reader *r, DType *dt) {
    const char *name = NULL;
    Span at = r->p.tok.span;
    if (!parse_name(&r->p, "an element type", &name)) return false;
    for (int i = DT_VOID + 1; i < N_DTYPES; i++)
        if (!strcmp(name, dtype_name((DType)i))) {
            *dt = (DType)i;
            return true;
        }
    return parse_fail(&r->p, DIAG_E0543, at, "'%s' is no element type", name);
}

/* Reads an element type and dimensions, "f32[N, 16]". */
static bool parse_array_type(Reader *r, LBuf *b) {
    if (!parse_dtype(r, &b->dt)) return false;
    if (!parse_accept(&r->p, '[')) return true;
    do {
        if (b->rank == MAX_RANK) return parse_expected(&r->p, "']'");
        if (!parse_expr(&r->p, &b->dim[b->rank])) return false;
        b->rank++;
    } while (parse_accept(&r->p, ','));
    return parse_expect(&r->p, ']');
}

/* Reads "name:", and adds a new argument or local array with this name; NULL after a diagnostic. */
static LBuf *parse_new_buf(Reader *r, LBufKind kind) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "a name", &name) || !parse_expect(&r->p, ':')) return NULL;
    if (strmap_has(&r->bufs, name)) {
        parse_fail(&r->p, DIAG_E0543, at, "'%s' is declared twice", name);
        return NULL;
    }
    LBuf *b = NEW(r->p.a, LBuf);
    b->kind = kind;
    b->name = name;
    b->id = kind == LB_LOCAL ? r->k->locals.n : r->k->bufs.n;
    if (kind == LB_LOCAL)
        vec_push(r->p.a, &r->k->locals, b);
    else
        vec_push(r->p.a, &r->k->bufs, b);
    strmap_put(r->p.a, &r->bufs, name, b);
    return b;
}

/* Reads the name of a buffer. */
static bool parse_buf(Reader *r, LBuf **b) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "a buffer", &name)) return false;
    *b = strmap_get(&r->bufs, name);
    return *b || parse_fail(&r->p, DIAG_E0543, at, "there is no buffer '%s'", name);
}

/* Reads "buffer[%i, %j]". */
static bool parse_element(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    if (!parse_buf(r, &s->buf)) return false;
    int n_indices = 0;
    if (parse_accept(&r->p, '[')) {
        do {
            if (n_indices == MAX_RANK || !parse_register(r, &s->idx[n_indices])) return false;
            n_indices++;
        } while (parse_accept(&r->p, ','));
        if (!parse_expect(&r->p, ']')) return false;
    }
    if (n_indices == s->buf->rank) return true;
    return parse_fail(&r->p, DIAG_E0543, at, "'%s' has %d dimensions", s->buf->name, s->buf->rank);
}

/* ---- arguments ------------------------------------------------------------------------ */
/* Reads the rest of memory between stages: "of NAME", an argument before it. */
static bool parse_room(Reader *r, LBuf *b) {
    LBuf *of = NULL;
    b->kind = LB_ROOM;
    if (!parse_accept_word(&r->p, "of")) return parse_expected(&r->p, "'of'");
    if (!parse_buf(r, &of)) return false;
    b->room_of = of->id;
    return true;
}

/* Reads an argument that holds a value: "name: f32[N, 16] [room of NAME] [begun] [partial NUMBER]".
 */
static bool parse_value_arg(Reader *r, bool written) {
    LBuf *b = parse_new_buf(r, LB_VALUE);
    int64_t n = 0;
    if (!b || !parse_array_type(r, b)) return false;
    b->written = written;
    if (parse_accept_word(&r->p, "room") && !parse_room(r, b)) return false;
    b->begun = written && parse_accept_word(&r->p, "begun");
    if (parse_accept_word(&r->p, "partial") && !parse_int(&r->p, "a number", 0, INT32_MAX, &n))
        return false;
    b->partial = (int)n;
    return true;
}

/* Makes the buffer one-dimensional, with n elements of type dt. */
static void set_one_dimensional(Reader *r, LBuf *b, DType dt, const Expr *n) {
    (void)r;
    b->dt = dt;
    b->rank = 1;
    b->dim[0] = n;
}

/* Reads "name: idx|ptr|perm MAP [by MAP]": an array of a map; "by": in the order of another map's
 * segments. */
static bool parse_map_arg(Reader *r) {
    LBuf *b = parse_new_buf(r, LB_MAP_IDX);
    const Words parts = {loop_part_words + LB_MAP_IDX, 3};
    int part = 0;
    if (!b || !parse_word(&r->p, &parts, "idx, ptr or perm", &part)) return false;
    if (!parse_map(&r->p, &b->map)) return false;
    if (parse_accept_word(&r->p, "by") && !parse_map(&r->p, &b->sorted_by)) return false;
    b->kind = (LBufKind)(LB_MAP_IDX + part);
    const Expr *one = expr_const(r->p.a, 1);
    if (b->kind == LB_MAP_PTR)
        set_one_dimensional(r, b, DT_I64, expr_add(r->p.a, b->map->to->size, one));
    else
        set_one_dimensional(r, b, DT_I32, b->map->from->size);
    return true;
}

/* Reads "name: SPACE": the global ids of a space's rows. */
static bool parse_global_ids_arg(Reader *r) {
    LBuf *b = parse_new_buf(r, LB_GLOBAL_IDS);
    if (!b || !parse_space(&r->p, &b->space)) return false;
    set_one_dimensional(r, b, DT_I32, b->space->size);
    return true;
}

/* Reads "name: SPACE": the bounds of the chunks in which a space's rows are summed. */
static bool parse_chunk_bounds_arg(Reader *r) {
    LBuf *b = parse_new_buf(r, LB_CHUNK_BOUNDS);
    if (!b || !parse_space(&r->p, &b->space)) return false;
    set_one_dimensional(r, b, DT_I64, expr_const(r->p.a, RT_SUM_CHUNKS + 1));
    return true;
}

/* Reads "name: STREAM": the key of a random stream. */
static bool parse_key_arg(Reader *r) {
    LBuf *b = parse_new_buf(r, LB_KEY);
    int64_t n = 0;
    if (!b || !parse_int(&r->p, "a stream", 0, INT32_MAX, &n)) return false;
    b->stream = (int)n;
    set_one_dimensional(r, b, DT_I32, expr_const(r->p.a, 2));
    return true;
}

/* Reads the arguments of a kernel. */
static bool parse_arguments(Reader *r) {
    for (bool ok = true; ok;) {
        if (parse_accept_word(&r->p, "in"))
            ok = parse_value_arg(r, false);
        else if (parse_accept_word(&r->p, "out"))
            ok = parse_value_arg(r, true);
        else if (parse_accept_word(&r->p, "map"))
            ok = parse_map_arg(r);
        else if (parse_accept_word(&r->p, "logical"))
            ok = parse_global_ids_arg(r);
        else if (parse_accept_word(&r->p, "key"))
            ok = parse_key_arg(r);
        else if (parse_accept_word(&r->p, "cuts"))
            ok = parse_chunk_bounds_arg(r);
        else
            return true;
        if (!ok) return false;
    }
    return false;
}

/* ---- statements -------------------------------------------------------------------------- */
/* Reads "{ .. }". */
static bool parse_body(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    if (++r->depth > MAX_DEPTH) return parse_fail(&r->p, DIAG_E0543, at, "loops nest too deeply");
    bool ok = parse_expect(&r->p, '{') && parse_list(r, &s->body);
    r->depth--;
    return ok;
}

/* Reads "ptr[%at", without the closing bracket: the segment bounds and which segment. */
static bool parse_bounds_at(Reader *r, LStmt *s) {
    return parse_buf(r, &s->ptr) && parse_expect(&r->p, '[') && parse_register(r, &s->at);
}

/* Reads a range over a segment. */
static bool parse_segment(Reader *r, LStmt *s) {
    s->range = LR_SEGMENT;
    return parse_bounds_at(r, s) && parse_expect(&r->p, ']');
}

/* Reads a range over a chunk. */
static bool parse_chunk(Reader *r, LStmt *s) {
    s->range = LR_CHUNK;
    if (!parse_register(r, &s->at)) return false;
    if (!parse_accept_word(&r->p, "of")) return parse_expected(&r->p, "'of'");
    bool ok = parse_expr(&r->p, &s->n_chunks) && parse_expect(&r->p, ':') &&
              parse_expr(&r->p, &s->extent);
    return ok && (!parse_accept_word(&r->p, "at") || parse_buf(r, &s->ptr));
}

/* Reads the range of padding rows, "OWN to N": from a batch's own number of rows to the rounded
 * number. */
static bool parse_padding_range(Reader *r, LStmt *s) {
    s->range = LR_BEHIND;
    if (!parse_expr(&r->p, &s->own)) return false;
    if (!parse_accept_word(&r->p, "to")) return parse_expected(&r->p, "'to'");
    return parse_expr(&r->p, &s->extent);
}

/* Reads the range of a loop: "SIZE", "segment ptr[%v]", "chunk %c of N: SIZE" or "behind OWN to
 * SIZE". */
static bool parse_range(Reader *r, LStmt *s) {
    if (parse_accept_word(&r->p, "segment")) return parse_segment(r, s);
    if (parse_accept_word(&r->p, "chunk")) return parse_chunk(r, s);
    if (parse_accept_word(&r->p, "behind")) return parse_padding_range(r, s);
    s->range = LR_EXTENT;
    return parse_expr(&r->p, &s->extent);
}

/* Reads the variable of a loop. */
static bool parse_variable(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    return parse_register_name(r, &name) && define_register(r, name, at, DT_I64, s, &s->var);
}

/* Reads maps. */
static bool parse_maps(Reader *r, MapList *maps) {
    do {
        Map *m;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, maps, m);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads how a team's threads share a loop: "ways" (groups of lanes, round robin), "team" (all
 * threads) or "lanes". */
static bool parse_share(Reader *r, LShare *out) {
    static const Words shares = {loop_share_words + LS_WAYS, 3};
    int choice = 0;
    if (!parse_word(&r->p, &shares, "ways, team or lanes", &choice)) return false;
    *out = (LShare)(LS_WAYS + choice);
    return true;
}

/* Reads the row that a prefetch asks for: "z[src[%e + 8]] lines 2" or ".. tile". */
static bool parse_ahead(Reader *r, LStmt *s) {
    int64_t ahead = 0, n = 0;
    if (!parse_buf(r, &s->buf) || !parse_expect(&r->p, '[') || !parse_bounds_at(r, s)) return false;
    if (!parse_expect(&r->p, '+') || !parse_int(&r->p, "a number", 1, 1024, &ahead)) return false;
    if (!parse_expect(&r->p, ']') || !parse_expect(&r->p, ']')) return false;
    s->ahead = (int)ahead;
    if (parse_accept_word(&r->p, "tile")) return true;
    if (!parse_accept_word(&r->p, "lines")) return parse_expected(&r->p, "'lines' or 'tile'");
    bool ok = parse_int(&r->p, "a number of lines", 1, 64, &n);
    s->n_lines = (int)n;
    return ok;
}

/* Reads the names of buffers, at most so many; 0: any number. */
static bool parse_buffers(Reader *r, int most, LBufs *bufs) {
    do {
        LBuf *b = NULL;
        if (most && bufs->n == most) return parse_expected(&r->p, "'{'");
        if (!parse_buf(r, &b)) return false;
        vec_push(r->p.a, bufs, b);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the declaration of a local array. */
static bool parse_local(Reader *r, LStmt *s) {
    s->buf = parse_new_buf(r, LB_LOCAL);
    if (!s->buf) return false;
    s->buf->written = true;
    return parse_array_type(r, s->buf);
}

/* Reads how values are combined. */
static bool parse_reduction(Reader *r, RedKind *out) {
    int red = 0;
    if (!parse_word(&r->p, &text_reds, "sum, max or min", &red)) return false;
    *out = (RedKind)red;
    return true;
}

/* Reads the name of a scalar function. */
static bool parse_function(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "a function", &name)) return false;
    for (int i = L_FN_CONST; i < loop_n_fn; i++)
        if (!strcmp(name, loop_fn_words[i])) {
            s->fn = (LFn)i;
            return true;
        }
    for (int i = 0; i < N_OPS; i++)
        if ((op_traits((OpKind)i) & OPT_ELEM) && !strcmp(name, op_mnemonic((OpKind)i))) {
            s->fn = L_FN_OP;
            s->op = (OpKind)i;
            return true;
        }
    return parse_fail(&r->p, DIAG_E0543, at, "'%s' is no scalar function", name);
}

/* Reads the arguments of a scalar function. */
static bool parse_let_args(Reader *r, LStmt *s) {
    if (s->fn == L_FN_CONST) return parse_real(&r->p, "a number", &s->imm);
    if (s->fn == L_FN_SIZE) return parse_expr(&r->p, &s->size);
    if (s->fn == L_FN_LE_RANDOM && !parse_real(&r->p, "a number", &s->imm)) return false;
    bool random = s->fn == L_FN_RANDOM || s->fn == L_FN_LE_RANDOM;
    int n_args = s->fn == L_FN_OP ? op_arity(s->op) : random ? 4 : 2;
    for (; s->n_arg < n_args; s->n_arg++)
        if (!parse_register(r, &s->arg[s->n_arg])) return false;
    return true;
}

/* Reads one of two words; *second gets which. */
static bool parse_choice(Reader *r, const LPartText *part, bool *second) {
    *second = parse_accept_word(&r->p, part->second);
    return *second || parse_accept_word(&r->p, part->first) ||
           parse_expected(&r->p, arena_printf(r->p.a, "'%s' or '%s'", part->first, part->second));
}

/* Reads the number of a part. */
static bool parse_number(Reader *r, const LPartText *part, int *out) {
    int64_t n = 0;
    bool ok = parse_int(&r->p, "a number", part->least, part->most, &n);
    *out = (int)n;
    return ok;
}

/* Reads what a part has behind its word. */
static bool parse_part(Reader *r, LStmt *s, const LPartText *part) {
    void *field = (char *)s + part->offset;
    switch (part->part) {
    case LP_VARIABLE:
        return parse_variable(r, s);
    case LP_RANGE:
        return parse_range(r, s);
    case LP_CONDITION:
    case LP_SOURCE:
        return parse_register(r, field);
    case LP_FUNCTION:
        return parse_function(r, s) && parse_let_args(r, s);
    case LP_ELEMENT:
        return parse_element(r, s);
    case LP_AHEAD:
        return parse_ahead(r, s);
    case LP_BUFFER:
        return parse_buf(r, field);
    case LP_DECLARATION:
        return parse_local(r, s);
    case LP_BODY:
        return parse_body(r, s);
    case LP_BUFFERS:
        return parse_buffers(r, part->most, field);
    case LP_REDUCTION:
        return parse_reduction(r, field);
    case LP_SHARE:
        return parse_share(r, field);
    case LP_FLAG:
        return *(bool *)field = true;
    case LP_CHOICE:
        return parse_choice(r, part, field);
    case LP_NUMBER:
        return parse_number(r, part, field);
    case LP_SIZE:
        return parse_expr(&r->p, field);
    case LP_MAPS:
        return parse_maps(r, field);
    case LP_RESULT: /* parse_value() has read it */
    case LP_PLACE:
        break;
    }
    return true;
}

/* Whether an optional part is next; takes the word in front of it.  One without a word is a number.
 */
static bool accept_part(Reader *r, const LPartText *part) {
    return *part->word ? parse_accept_word(&r->p, part->word) : r->p.tok.kind == T_NUMBER;
}

/* Reads the parts of a statement's line. */
static bool parse_parts(Reader *r, LStmt *s) {
    bool is_there = false;
    for (const LPartText *part = loop_lines[s->kind].parts; part->part; part++) {
        if (part->when & LW_THEN && !is_there) continue;
        bool is_plain = !(part->when & LW_MAYBE) && !*part->word;
        is_there = is_plain || accept_part(r, part);
        if (!is_there && !(part->when & LW_MAYBE))
            return parse_expected(&r->p, arena_printf(r->p.a, "'%s'", part->word));
        if (is_there && !parse_part(r, s, part)) return false;
    }
    return true;
}

/* Reads a statement that begins with its result, "%x: f32 = ..", which is defined after its
 * arguments are read. */
static bool parse_value(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    DType dt = DT_VOID;
    if (!parse_register_name(r, &name)) return false;
    if (!parse_expect(&r->p, ':') || !parse_dtype(r, &dt) || !parse_expect(&r->p, '='))
        return false;
    const LPartText *load = &loop_lines[L_LOAD].parts[1]; /* behind its result */
    bool is_load = r->p.tok.kind == T_NAME &&
                   (!strcmp(r->p.tok.s, load->first) || !strcmp(r->p.tok.s, load->second));
    s->kind = is_load ? L_LOAD : L_LET;
    return parse_parts(r, s) && define_register(r, name, at, dt, s, &s->dst);
}

/* Reads a statement. */
static bool parse_stmt(Reader *r, LStmt *s) {
    if (r->p.tok.kind == T_VALUE) return parse_value(r, s);
    for (int i = 0; i < LOOP_N_STMTS; i++)
        if (*loop_lines[i].word && parse_accept_word(&r->p, loop_lines[i].word)) {
            s->kind = (LStmtKind)i;
            return parse_parts(r, s);
        }
    return parse_expected(&r->p, "a statement");
}

/* Reads statements, up to and with the closing brace. */
static bool parse_list(Reader *r, LStmt **first) {
    LStmt **tail = first;
    while (!parse_accept(&r->p, '}')) {
        LStmt *s = NEW(r->p.a, LStmt);
        s->span = r->p.tok.span;
        if (!parse_stmt(r, s)) return false;
        *tail = s;
        tail = &s->next;
    }
    return true;
}

/* Reads "WORD NUMBER", if the word is there; the number is from `min` to 32, as lanes and packs
 * are. Else *out stays as it is. */
static bool parse_count(Reader *r, const char *word, int min, int *out) {
    int64_t n = *out;
    if (parse_accept_word(&r->p, word) && !parse_int(&r->p, "a number", min, 32, &n)) return false;
    *out = (int)n;
    return true;
}

/* Reads which threads run the kernel's iterations: "by teams lanes 4 pack 4 columns 8". */
static bool parse_threads(Reader *r, LThreads *t) {
    static const Words takers = {loop_taker_words + LT_THREAD, 3};
    int choice = 0;
    if (!parse_accept_word(&r->p, "by")) return true;
    if (!parse_word(&r->p, &takers, "threads, teams or blocks", &choice)) return false;
    *t = (LThreads){.kind = (LThreadKind)(LT_THREAD + choice)};
    if (t->kind == LT_THREAD) return parse_count(r, "pack", 1, &t->pack);
    t->columns = 1;
    return parse_count(r, "lanes", 1, &t->lanes) && parse_count(r, "pack", 1, &t->pack) &&
           parse_count(r, "columns", 1, &t->columns);
}

/* Reads a kernel. */
static bool parse_kernel(Reader *r, LKernel *k) {
    r->k = k;
    r->regs = r->bufs = (StrMap){0};
    k->span = r->p.tok.span;
    if (!parse_accept_word(&r->p, "kernel")) return parse_expected(&r->p, "'kernel'");
    if (!parse_ident(&r->p, "the kernel's name", &k->name)) return false;
    if (r->may_be_stage && parse_accept_word(&r->p, "of") &&
        !parse_ident(&r->p, "the kernel that it is a stage of", &r->stage_of))
        return false;
    return parse_threads(r, &k->threads) && parse_expect(&r->p, '{') && parse_arguments(r) &&
           parse_list(r, &k->body);
}

/* Reads all kernels of a text. */
static LKernel *parse_kernels(Reader *r, int *n_kernels) {
    VEC(LKernel) kernels = {0};
    while (r->p.tok.kind != T_END) {
        LKernel k = {0};
        if (!parse_kernel(r, &k)) return NULL;
        vec_push(r->p.a, &kernels, k);
    }
    *n_kernels = kernels.n;
    return kernels.n ? kernels.v : NEW(r->p.a, LKernel);
}

/* Reads one kernel, or stage of one, in a plan's text; *of gets the name of the kernel that it is a
 * stage of, or NULL. */
bool loop_parse_one(Parser *p, LKernel *k, const char **of) {
    Reader r = {.p = *p, .may_be_stage = true};
    bool ok = parse_kernel(&r, k);
    *p = r.p;
    *of = r.stage_of;
    return ok;
}

LKernel *loop_parse(Ctx *c, Module *m, uint32_t file, int *n_kernels) {
    Reader r = {.p = parse_begin(c, file)};
    r.p.m = m;
    return parse_kernels(&r, n_kernels);
}

/* Reads a file with a module and kernels over its spaces; NULL after diagnostics. */
LKernel *loop_parse_file(Ctx *c, uint32_t file, Module **m, int *n_kernels) {
    Reader r = {.p = parse_begin(c, file)};
    if (!parse_module(&r.p) || !r.p.ok) return NULL;
    *m = r.p.m;
    return parse_kernels(&r, n_kernels);
}
