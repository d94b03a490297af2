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
    const char *of; /* the kernel that this one is a stage of, or NULL */
    bool of_plan;   /* it may be one */
    LKernel *k;
    StrMap regs, bufs;
    int depth;
} Reader;

enum { MAX_DEPTH = 64, CPU_LANES = 16 };

static bool block(Reader *r, LStmt **first);

/* ---- registers, buffers ----------------------------------------------------------- */
/* Reads "%name". */
static bool value_name(Reader *r, const char **name) {
    if (r->p.tok.kind != T_VALUE) return parse_expected(&r->p, "a register, as %name.0");
    *name = r->p.tok.s;
    parse_lex_next(&r->p);
    return true;
}

/* Reads a register that is defined. */
static bool use(Reader *r, LReg **reg) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!value_name(r, &name)) return false;
    *reg = strmap_get(&r->regs, name);
    return *reg || parse_fail(&r->p, DIAG_E0543, at, "%%%s is not defined", name);
}

/* The name without the number after the last dot, which the printer writes anew. */
static const char *hint_of(Reader *r, const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? arena_strndup(r->p.a, name, (size_t)(dot - name)) : name;
}

/* Defines a register. */
static bool define(Reader *r, const char *name, Span at, DType dt, const LStmt *by, LReg **reg) {
    if (strmap_has(&r->regs, name))
        return parse_fail(&r->p, DIAG_E0543, at, "%%%s is defined twice", name);
    *reg = NEW(r->p.a, LReg);
    **reg = (LReg){.id = r->k->n_regs++, .dt = dt, .hint = hint_of(r, name), .def = by};
    strmap_put(r->p.a, &r->regs, name, *reg);
    return true;
}

/* Reads an element type. */
static bool dtype(Reader *r, DType *dt) {
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

/* Reads an element type and dimensions. */
static bool array_type(Reader *r, LBuf *b) {
    if (!dtype(r, &b->dt)) return false;
    if (!parse_accept(&r->p, '[')) return true;
    do {
        if (b->rank == MAX_RANK) return parse_expected(&r->p, "']'");
        if (!parse_expr(&r->p, &b->dim[b->rank])) return false;
        b->rank++;
    } while (parse_accept(&r->p, ','));
    return parse_expect(&r->p, ']');
}

/* Reads the name of a new argument or local array. */
static LBuf *new_buf(Reader *r, LBufKind kind) {
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
static bool buf(Reader *r, LBuf **b) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "a buffer", &name)) return false;
    *b = strmap_get(&r->bufs, name);
    return *b || parse_fail(&r->p, DIAG_E0543, at, "there is no buffer '%s'", name);
}

/* Reads "buffer[%i, %j]". */
static bool element(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    if (!buf(r, &s->buf)) return false;
    int n = 0;
    if (parse_accept(&r->p, '[')) {
        do {
            if (n == MAX_RANK || !use(r, &s->idx[n])) return false;
            n++;
        } while (parse_accept(&r->p, ','));
        if (!parse_expect(&r->p, ']')) return false;
    }
    if (n == s->buf->rank) return true;
    return parse_fail(&r->p, DIAG_E0543, at, "'%s' has %d dimensions", s->buf->name, s->buf->rank);
}

/* ---- arguments ------------------------------------------------------------------------ */
/* Reads an argument that holds a value. */
static bool value_arg(Reader *r, bool written) {
    LBuf *b = new_buf(r, LB_VALUE);
    int64_t n = 0;
    if (!b || !array_type(r, b)) return false;
    b->written = written;
    b->begun = written && parse_accept_word(&r->p, "begun");
    if (parse_accept_word(&r->p, "partial") && !parse_int(&r->p, "a number", 0, INT32_MAX, &n))
        return false;
    b->partial = (int)n;
    return true;
}

/* Makes the buffer one-dimensional. */
static void one_dim(Reader *r, LBuf *b, DType dt, const Expr *n) {
    (void)r;
    b->dt = dt;
    b->rank = 1;
    b->dim[0] = n;
}

/* Reads "name: idx|ptr|perm MAP [by MAP]": an array of a map; "by": in the order of another map's
 * segments. */
static bool map_arg(Reader *r) {
    LBuf *b = new_buf(r, LB_MAP_IDX);
    const Words parts = {loop_part_words + LB_MAP_IDX, 3};
    int part = 0;
    if (!b || !parse_word(&r->p, &parts, "idx, ptr or perm", &part)) return false;
    if (!parse_map(&r->p, &b->map)) return false;
    if (parse_accept_word(&r->p, "by") && !parse_map(&r->p, &b->by)) return false;
    b->kind = (LBufKind)(LB_MAP_IDX + part);
    const Expr *one = expr_const(r->p.a, 1);
    if (b->kind == LB_MAP_PTR)
        one_dim(r, b, DT_I64, expr_add(r->p.a, b->map->to->size, one));
    else
        one_dim(r, b, DT_I32, b->map->from->size);
    return true;
}

/* Reads "name: SPACE": the global ids of a space's rows. */
static bool logical_arg(Reader *r) {
    LBuf *b = new_buf(r, LB_LOGICAL);
    if (!b || !parse_space(&r->p, &b->space)) return false;
    one_dim(r, b, DT_I32, b->space->size);
    return true;
}

/* Reads "name: SPACE": the bounds of the chunks in which a space's rows are summed. */
static bool cuts_arg(Reader *r) {
    LBuf *b = new_buf(r, LB_CUTS);
    if (!b || !parse_space(&r->p, &b->space)) return false;
    one_dim(r, b, DT_I64, expr_const(r->p.a, RT_SUM_CHUNKS + 1));
    return true;
}

/* Reads "name: STREAM": the key of a random stream. */
static bool key_arg(Reader *r) {
    LBuf *b = new_buf(r, LB_KEY);
    int64_t n = 0;
    if (!b || !parse_int(&r->p, "a stream", 0, INT32_MAX, &n)) return false;
    b->stream = (int)n;
    one_dim(r, b, DT_I32, expr_const(r->p.a, 2));
    return true;
}

/* Reads the arguments of a kernel. */
static bool arguments(Reader *r) {
    for (bool ok = true; ok;) {
        if (parse_accept_word(&r->p, "in"))
            ok = value_arg(r, false);
        else if (parse_accept_word(&r->p, "out"))
            ok = value_arg(r, true);
        else if (parse_accept_word(&r->p, "map"))
            ok = map_arg(r);
        else if (parse_accept_word(&r->p, "logical"))
            ok = logical_arg(r);
        else if (parse_accept_word(&r->p, "key"))
            ok = key_arg(r);
        else if (parse_accept_word(&r->p, "cuts"))
            ok = cuts_arg(r);
        else
            return true;
        if (!ok) return false;
    }
    return false;
}

/* ---- statements -------------------------------------------------------------------------- */
/* Reads "{ .. }". */
static bool body(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    if (++r->depth > MAX_DEPTH) return parse_fail(&r->p, DIAG_E0543, at, "loops nest too deeply");
    bool ok = parse_expect(&r->p, '{') && block(r, &s->body);
    r->depth--;
    return ok;
}

/* Reads "ptr[%at", without the bracket's end. */
static bool place(Reader *r, LStmt *s) {
    return buf(r, &s->ptr) && parse_expect(&r->p, '[') && use(r, &s->at);
}

/* Reads a range over a segment. */
static bool segment(Reader *r, LStmt *s) {
    s->range = LR_SEGMENT;
    return place(r, s) && parse_expect(&r->p, ']');
}

/* Reads a range over a chunk. */
static bool chunk(Reader *r, LStmt *s) {
    s->range = LR_CHUNK;
    if (!use(r, &s->at)) return false;
    if (!parse_accept_word(&r->p, "of")) return parse_expected(&r->p, "'of'");
    bool ok = parse_expr(&r->p, &s->n_chunks) && parse_expect(&r->p, ':') &&
              parse_expr(&r->p, &s->extent);
    return ok && (!parse_accept_word(&r->p, "at") || buf(r, &s->ptr));
}

/* OWN to N */
static bool behind(Reader *r, LStmt *s) {
    s->range = LR_BEHIND;
    if (!parse_expr(&r->p, &s->own)) return false;
    if (!parse_accept_word(&r->p, "to")) return parse_expected(&r->p, "'to'");
    return parse_expr(&r->p, &s->extent);
}

/* Reads the range of a loop. */
static bool range(Reader *r, LStmt *s) {
    if (parse_accept_word(&r->p, "segment")) return segment(r, s);
    if (parse_accept_word(&r->p, "chunk")) return chunk(r, s);
    if (parse_accept_word(&r->p, "behind")) return behind(r, s);
    s->range = LR_EXTENT;
    return parse_expr(&r->p, &s->extent);
}

/* Reads the maps that a parallel loop is balanced by. */
static bool balance(Reader *r, MapList *maps) {
    do {
        Map *m;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, maps, m);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads how a loop is divided among threads. */
static bool share(Reader *r, LShare *to) {
    static const Words shares = {loop_share_words + LS_WAYS, 3};
    int by = 0;
    if (!parse_word(&r->p, &shares, "ways, team or lanes", &by)) return false;
    *to = (LShare)(LS_WAYS + by);
    return true;
}

/* Reads a number of lanes behind a word, if the word is there. */
static bool lanes(Reader *r, const char *word, int *to) {
    int64_t n = 0;
    if (!parse_accept_word(&r->p, word)) return true;
    bool ok = parse_int(&r->p, "a number of lanes", 2, CPU_LANES, &n);
    *to = (int)n;
    return ok;
}

/* Reads which version of a parallel loop it is. */
static bool versions(Reader *r, LSched *s) {
    int64_t n = 0;
    if (!lanes(r, "rows", &s->rows)) return false;
    if (!parse_accept_word(&r->p, "where")) return true;
    if (!parse_expr(&r->p, &s->where)) return false;
    s->above = parse_accept_word(&r->p, "above");
    if (!s->above && !parse_accept_word(&r->p, "up_to"))
        return parse_expected(&r->p, "'up_to' or 'above'");
    bool ok = parse_int(&r->p, "a number", 1, INT32_MAX, &n);
    s->most = (int)n;
    return ok;
}

/* Reads how the loop is vectorised. */
static bool vectors(Reader *r, LSched *s) {
    s->vector = parse_accept_word(&r->p, "vector");
    int64_t n = 0;
    if (s->vector && r->p.tok.kind == T_NUMBER) {
        if (!parse_int(&r->p, "a number of lanes", 2, CPU_LANES, &n)) return false;
        s->lanes = (int)n;
        s->whole = parse_accept_word(&r->p, "whole");
    }
    s->unroll = parse_accept_word(&r->p, "unroll");
    if (!lanes(r, "flat", &s->flat) || !lanes(r, "expand", &s->expand)) return false;
    s->prefix = s->expand && parse_accept_word(&r->p, "prefix");
    return lanes(r, "strips", &s->strips);
}

/* Reads a number of entries. */
static bool entries(Reader *r, int *to) {
    int64_t n = 0;
    bool ok = parse_int(&r->p, "a number of entries", 1, INT32_MAX, &n);
    *to = (int)n;
    return ok;
}

/* Reads how a loop is split over blocks. */
static bool splits(Reader *r, LSched *s) {
    if (!parse_accept_word(&r->p, "split")) return true;
    if (!entries(r, &s->split)) return false;
    if (!parse_accept_word(&r->p, "from")) return parse_expected(&r->p, "'from'");
    return entries(r, &s->split_from);
}

/* Reads a loop. */
static bool loop(Reader *r, LStmt *s) {
    s->kind = L_FOR;
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!value_name(r, &name) || !define(r, name, at, DT_I64, s, &s->var)) return false;
    if (!parse_accept_word(&r->p, "in")) return parse_expected(&r->p, "'in'");
    if (!range(r, s)) return false;
    s->sched.parallel = parse_accept_word(&r->p, "parallel");
    if (parse_accept_word(&r->p, "balanced") && !balance(r, &s->sched.balance)) return false;
    if (parse_accept_word(&r->p, "hubs") && !entries(r, &s->sched.hubs)) return false;
    if (!versions(r, &s->sched) || !vectors(r, &s->sched)) return false;
    s->sched.jam = parse_accept_word(&r->p, "jam");
    s->sched.serial = parse_accept_word(&r->p, "serial");
    s->sched.collapse = parse_accept_word(&r->p, "collapse");
    if (parse_accept_word(&r->p, "by") && !share(r, &s->sched.share)) return false;
    return splits(r, &s->sched) && body(r, s);
}

/* Reads a prefetch. */
static bool prefetch(Reader *r, LStmt *s) {
    int64_t ahead = 0, n = 0;
    s->kind = L_PREFETCH;
    if (!buf(r, &s->buf) || !parse_expect(&r->p, '[') || !place(r, s)) return false;
    if (!parse_expect(&r->p, '+') || !parse_int(&r->p, "a number", 1, 1024, &ahead)) return false;
    if (!parse_expect(&r->p, ']') || !parse_expect(&r->p, ']')) return false;
    s->ahead = (int)ahead;
    if (parse_accept_word(&r->p, "tile")) return true;
    if (!parse_accept_word(&r->p, "lines")) return parse_expected(&r->p, "'lines' or 'tile'");
    bool ok = parse_int(&r->p, "a number of lines", 1, 64, &n);
    s->n_lines = (int)n;
    return ok;
}

/* Reads the arrays whose rows a tile holds in registers. */
static bool keeps(Reader *r, LStmt *s) {
    do {
        if (s->n_kept == LOOP_KEPT_MAX) return parse_expected(&r->p, "'{'");
        if (!buf(r, &s->kept[s->n_kept])) return false;
        s->n_kept++;
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads a tile. */
static bool tile(Reader *r, LStmt *s) {
    int64_t n = 0;
    s->kind = L_TILE;
    if (!parse_expr(&r->p, &s->extent)) return false;
    if (!parse_accept_word(&r->p, "by")) return parse_expected(&r->p, "'by'");
    if (!parse_int(&r->p, "a number of columns", 2, 1024, &n)) return false;
    s->columns = (int)n;
    if (r->p.tok.kind != T_NAME || strcmp(r->p.tok.s, "vector"))
        return parse_expected(&r->p, "'vector'");
    if (!lanes(r, "vector", &s->lanes)) return false;
    if (parse_accept_word(&r->p, "keeps") && !keeps(r, s)) return false;
    return body(r, s);
}

/* Reads a conditional block. */
static bool branch(Reader *r, LStmt *s) {
    s->kind = L_IF;
    return use(r, &s->cond) && body(r, s);
}

/* Reads a column region: "columns RANGE [by SHARE] [promote BUFFERS] { .. }". */
static bool columns(Reader *r, LStmt *s) {
    s->kind = L_COLUMNS;
    if (!range(r, s)) return false;
    if (parse_accept_word(&r->p, "by") && !share(r, &s->sched.share)) return false;
    s->sched.masked = parse_accept_word(&r->p, "masked");
    if (parse_accept_word(&r->p, "promote")) do {
            LBuf *b = NULL;
            if (!buf(r, &b)) return false;
            vec_push(r->p.a, &s->promoted, b);
        } while (parse_accept(&r->p, ','));
    return body(r, s);
}

/* Reads the declaration of a local array. */
static bool local(Reader *r, LStmt *s) {
    s->kind = L_LOCAL;
    s->buf = new_buf(r, LB_LOCAL);
    if (!s->buf) return false;
    s->buf->written = true;
    return array_type(r, s->buf);
}

/* y[%v] %x pack */
static bool source(Reader *r, LStmt *s) {
    if (!element(r, s) || !use(r, &s->src)) return false;
    s->packed = parse_accept_word(&r->p, "pack");
    return true;
}

/* Reads a store. */
static bool store(Reader *r, LStmt *s) {
    s->kind = L_STORE;
    return source(r, s);
}

/* Reads an accumulation. */
static bool acc(Reader *r, LStmt *s) {
    int red = 0;
    s->kind = L_ACC;
    if (!parse_word(&r->p, &text_reds, "sum, max or min", &red)) return false;
    s->red = (RedKind)red;
    return source(r, s);
}

/* Reads a fold. */
static bool fold(Reader *r, LStmt *s) {
    int red = 0;
    s->kind = L_FOLD;
    if (!parse_word(&r->p, &text_reds, "sum, max or min", &red)) return false;
    s->red = (RedKind)red;
    if (!buf(r, &s->buf)) return false;
    if (!parse_accept_word(&r->p, "by")) return parse_expected(&r->p, "'by'");
    return share(r, &s->sched.share);
}

/* Reads the name of a scalar function. */
static bool function_name(Reader *r, LStmt *s) {
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
static bool let_args(Reader *r, LStmt *s) {
    if (s->fn == L_FN_CONST) return parse_real(&r->p, "a number", &s->imm);
    if (s->fn == L_FN_SIZE) return parse_expr(&r->p, &s->size);
    int n = s->fn == L_FN_OP ? op_arity(s->op) : s->fn == L_FN_RANDOM ? 4 : 2;
    for (; s->n_arg < n; s->n_arg++)
        if (!use(r, &s->arg[s->n_arg])) return false;
    return true;
}

/* Reads "%x: f32 = ..". The result is defined after its arguments are read. */
static bool assignment(Reader *r, LStmt *s) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    DType dt = DT_VOID;
    if (!value_name(r, &name)) return false;
    if (!parse_expect(&r->p, ':') || !dtype(r, &dt) || !parse_expect(&r->p, '=')) return false;
    s->old = parse_accept_word(&r->p, "load_old");
    if (s->old || parse_accept_word(&r->p, "load")) {
        s->kind = L_LOAD;
        if (!element(r, s)) return false;
        s->packed = parse_accept_word(&r->p, "pack");
    } else {
        s->kind = L_LET;
        if (!function_name(r, s) || !let_args(r, s)) return false;
    }
    s->remat = parse_accept_word(&r->p, "remat");
    return define(r, name, at, dt, s, &s->dst);
}

/* Reads a statement. */
static bool statement(Reader *r, LStmt *s) {
    if (r->p.tok.kind == T_VALUE) return assignment(r, s);
    if (parse_accept_word(&r->p, "for")) return loop(r, s);
    if (parse_accept_word(&r->p, "if")) return branch(r, s);
    if (parse_accept_word(&r->p, "tile")) return tile(r, s);
    if (parse_accept_word(&r->p, "columns")) return columns(r, s);
    if (parse_accept_word(&r->p, "prefetch")) return prefetch(r, s);
    if (parse_accept_word(&r->p, "local")) return local(r, s);
    if (parse_accept_word(&r->p, "store")) return store(r, s);
    if (parse_accept_word(&r->p, "acc")) return acc(r, s);
    if (parse_accept_word(&r->p, "fold")) return fold(r, s);
    if (parse_accept_word(&r->p, "barrier")) {
        s->kind = L_BARRIER;
        return true;
    }
    return parse_expected(&r->p, "a statement");
}

/* Reads statements, up to and with the closing brace. */
static bool block(Reader *r, LStmt **first) {
    LStmt **tail = first;
    while (!parse_accept(&r->p, '}')) {
        LStmt *s = NEW(r->p.a, LStmt);
        s->span = r->p.tok.span;
        if (!statement(r, s)) return false;
        *tail = s;
        tail = &s->next;
    }
    return true;
}

/* Reads a number behind a word, if the word is there. */
static bool count(Reader *r, const char *word, int least, int *to) {
    int64_t n = *to;
    if (parse_accept_word(&r->p, word) && !parse_int(&r->p, "a number", least, 32, &n))
        return false;
    *to = (int)n;
    return true;
}

/* Reads which threads run the kernel's iterations. */
static bool threads(Reader *r, LThreads *t) {
    static const Words takers = {loop_taker_words + LT_THREAD, 3};
    int by = 0;
    if (!parse_accept_word(&r->p, "by")) return true;
    if (!parse_word(&r->p, &takers, "threads, teams or blocks", &by)) return false;
    *t = (LThreads){.by = (LTaker)(LT_THREAD + by)};
    if (t->by == LT_THREAD) return count(r, "pack", 1, &t->pack);
    t->columns = 1;
    return count(r, "lanes", 1, &t->lanes) && count(r, "pack", 1, &t->pack) &&
           count(r, "columns", 1, &t->columns);
}

/* Reads a kernel. */
static bool kernel(Reader *r, LKernel *k) {
    r->k = k;
    r->regs = r->bufs = (StrMap){0};
    k->span = r->p.tok.span;
    if (!parse_accept_word(&r->p, "kernel")) return parse_expected(&r->p, "'kernel'");
    if (!parse_ident(&r->p, "the kernel's name", &k->name)) return false;
    if (r->of_plan && parse_accept_word(&r->p, "of") &&
        !parse_ident(&r->p, "the kernel that it is a stage of", &r->of))
        return false;
    return threads(r, &k->threads) && parse_expect(&r->p, '{') && arguments(r) &&
           block(r, &k->body);
}

/* Reads all kernels of a text. */
static LKernel *kernels(Reader *r, int *n_kernels) {
    VEC(LKernel) all = {0};
    while (r->p.tok.kind != T_END) {
        LKernel k = {0};
        if (!kernel(r, &k)) return NULL;
        vec_push(r->p.a, &all, k);
    }
    *n_kernels = all.n;
    return all.n ? all.v : NEW(r->p.a, LKernel);
}

bool loop_parse_one(Parser *p, LKernel *k, const char **of) {
    Reader r = {.p = *p, .of_plan = true};
    bool ok = kernel(&r, k);
    *p = r.p;
    *of = r.of;
    return ok;
}

LKernel *loop_parse(Ctx *c, Module *m, uint32_t file, int *n_kernels) {
    Reader r = {.p = parse_begin(c, file)};
    r.p.m = m;
    return kernels(&r, n_kernels);
}

LKernel *loop_parse_file(Ctx *c, uint32_t file, Module **m, int *n_kernels) {
    Reader r = {.p = parse_begin(c, file)};
    if (!parse_module(&r.p) || !r.p.ok) return NULL;
    *m = r.p.m;
    return kernels(&r, n_kernels);
}
