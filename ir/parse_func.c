/* Functions of the IR's text form:
 *
 *     func @train {
 *       %z = contract %x, %w : f32[paper, heads, out]   !gat.gnn:21:7-12
 *       output "loss" %l
 *     }
 *
 * The op's arity and attributes come from the op table; then its own infer() says
 * what its type is, which must be the type written.  A value whose definition had
 * a mistake is known as such, and what uses it is passed over in silence. */
#include "ir/parse.h"

#include <string.h>

/* The map of kind k from space s. to: the space that a `cell` or `distinct` leads to; which: the
 * base that an `orig` leads to. */
static Map *make_map(Module *m, MapKind k, Space *s, Space *to, int which) {
    switch (k) {
    case MAP_SRC:
        return map_src(m, s);
    case MAP_DST:
        return map_dst(m, s);
    case MAP_GRAPH:
        return map_graph(m, s);
    case MAP_ROW:
        return map_row(m, s);
    case MAP_NZCOL:
        return map_nzcol(m, s);
    case MAP_CELL:
        return map_cell(m, s, to);
    case MAP_DISTINCT:
        return map_distinct(m, s, to);
    case MAP_FIRST:
        return map_first(m, s);
    default:
        return map_orig(m, s, which);
    }
}

/* ---- attributes ------------------------------------------------------------------ */
/* Parses the edge, entry or node space in the parentheses of a map. */
static bool map_of_space(Parser *p, MapKind k, Map **map) {
    static const SpaceKind needs[] = {
        [MAP_SRC] = SP_EDGE,  [MAP_DST] = SP_EDGE,      [MAP_ORIG] = SP_EDGE,
        [MAP_CELL] = SP_EDGE, [MAP_GRAPH] = SP_NODE,    [MAP_ROW] = SP_NZ,
        [MAP_NZCOL] = SP_NZ,  [MAP_DISTINCT] = SP_NODE, [MAP_FIRST] = SP_NODE};
    Span at = p->tok.span;
    Space *s = NULL, *to = NULL;
    int64_t which = 0;
    if (!parse_space(p, &s)) return false;
    bool ok = s->kind == needs[k] && (k != MAP_GRAPH || s->graph);
    if (ok && k == MAP_DISTINCT) {
        if (!parse_expect(p, ',') || !parse_space(p, &to)) return false;
        ok = space_is_within(s, to);
    }
    if (k == MAP_FIRST) ok = ok && s->distinct_of;
    if (ok && k == MAP_ORIG) {
        if (!parse_expect(p, ',') || !parse_int(p, "which base", 0, 1, &which)) return false;
        ok = s->base[which] != NULL;
    }
    if (ok && k == MAP_CELL) {
        if (!parse_expect(p, ',') || !parse_space(p, &to)) return false;
        ok = space_queries(s) && to->kind == SP_DIM;
    }
    if (!ok)
        return parse_fail(p, DIAG_E0409, at, "'%s' has no map '%s'", s->name, text_MapKind.word[k]);
    *map = make_map(p->m, k, s, to, (int)which);
    return true;
}

/* Parses pair(src(e), col(e.kind), both): `both` is the product dimension. */
static bool map_of_pair(Parser *p, Map **map) {
    Span at = p->tok.span;
    Map *one = NULL, *two = NULL, *through = NULL;
    Space *to = NULL;
    if (!parse_map(p, &one) || !parse_expect(p, ',') || !parse_map(p, &two)) return false;
    if (!parse_expect(p, ',') || !parse_space(p, &to)) return false;
    if (parse_accept(p, ',') && !parse_map(p, &through)) return false;
    *map = map_pair(p->m, one, two, through, to);
    return map_pair_holds(p->m->a, *map) ||
           parse_fail(p, DIAG_E0409, at, "these two maps have no common rows");
}

/* Parses via(paper.kind, rows): `rows` are distinct ones of paper. */
static bool map_behind_first(Parser *p, Map **map) {
    Span at = p->tok.span;
    Column *c = NULL;
    Space *once = NULL;
    if (!parse_column(p, &c) || !parse_expect(p, ',') || !parse_space(p, &once)) return false;
    if (!c->cat || !once->distinct_of || once->prefix_of != c->space)
        return parse_fail(p, DIAG_E0409, at, "'%s' has no map 'via'", once->name);
    *map = map_via(p->m, map_col(p->m, c), once);
    return true;
}

/* Reads a map, such as "src(e)" or "pair(..)", into *map; makes it if the module lacks it. False
 * after diagnostics. */
bool parse_map(Parser *p, Map **map) {
    int k = 0;
    if (!parse_word(p, &text_MapKind,
                    "a map: src, dst, graph, col, row, nzcol, orig, cell, pair, distinct, first or "
                    "via",
                    &k))
        return false;
    if (!parse_expect(p, '(')) return false;
    if (k == MAP_PAIR) return map_of_pair(p, map) && parse_expect(p, ')');
    if (k == MAP_VIA) return map_behind_first(p, map) && parse_expect(p, ')');
    if (k == MAP_COL) {
        Span at = p->tok.span;
        Column *c = NULL;
        if (!parse_column(p, &c)) return false;
        if (!c->cat)
            return parse_fail(p, DIAG_E0409, at, "'%s.%s' holds no categories", c->space->name,
                              c->name);
        *map = map_col(p->m, c);
    } else if (!map_of_space(p, (MapKind)k, map))
        return false;
    return parse_expect(p, ')');
}

/* Whether the number of spaces is right; else an error. */
static bool few_spaces(Parser *p, Span from, const Op *op, int want) {
    return parse_fail(p, DIAG_E0409, from, "'%s' needs %d spaces here", op_mnemonic(op->kind),
                      want);
}

/* Parses [one, other, both] of a concat: the first two may be one space. */
static bool concat_spaces(Parser *p, Span from, Op *op) {
    if (!parse_expect(p, '[')) return false;
    for (op->n_over = 0; op->n_over < 3; op->n_over++) {
        if (op->n_over && parse_is(p, ']')) return few_spaces(p, from, op, 3);
        if (op->n_over && !parse_expect(p, ',')) return false;
        if (!parse_space(p, &op->over[op->n_over])) return false;
    }
    return parse_expect(p, ']');
}

/* Parses the spaces of an operation. */
static bool over_attr(Parser *p, unsigned at, Op *op) {
    Span from = p->tok.span;
    if (at & OPA_OVER1) {
        op->n_over = 1;
        return parse_space(p, &op->over[0]);
    }
    if (at & OPA_OVER3) return concat_spaces(p, from, op);
    int want = at & OPA_OVER2 ? 2 : 0;
    if (!parse_spaces(p, MAX_RANK, &op->n_over, op->over)) return false;
    return !want || op->n_over == want || few_spaces(p, from, op, want);
}

/* Reads the quoted path of a variable of the module into *v. False after diagnostics. */
bool parse_var(Parser *p, Var **v) {
    Span at = p->tok.span;
    const char *path = NULL;
    if (!parse_text(p, "a variable's path in quotes", &path)) return false;
    *v = var_find(p->m, path);
    return *v || parse_fail(p, DIAG_E0402, at, "there is no variable \"%s\" in this module", path);
}

/* Parses the name of a C function. */
static bool ext_attr(Parser *p, const Extern **f) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (!parse_text(p, "the name of a C function in quotes", &name)) return false;
    *f = extern_find(p->m, name);
    return *f || parse_fail(p, DIAG_E0402, at, "there is no function \"%s\" in this module", name);
}

/* Parses the name of a loop body. */
static bool body_attr(Parser *p, Func **body) {
    Span at = p->tok.span;
    if (p->tok.kind != T_FUNC)
        return parse_fail(p, DIAG_E0401, at, "expected the loop's body, as '@train.loop'");
    *body = func_find(p->m, p->tok.s);
    if (!*body || !(*body)->body)
        return parse_fail(p, DIAG_E0402, at, "there is no body '@%s' before this line", p->tok.s);
    parse_lex_next(p);
    return true;
}

/* Parses the number of a random stream. */
static bool stream_attr(Parser *p, int *stream) {
    int64_t n = 0;
    if (p->m->n_streams == 0)
        return parse_fail(p, DIAG_E0407, p->tok.span, "the module has no 'streams' line");
    if (!parse_int(p, "a stream", 0, p->m->n_streams - 1, &n)) return false;
    *stream = (int)n;
    return true;
}

/* Whether the word is a type that the model may request. */
static bool stored_type(const char *word, DType *dt) {
    static const DType types[] = {DT_F32, DT_BF16, DT_F16};
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(word, dtype_name(types[i])) == 0) {
            *dt = types[i];
            return true;
        }
    return false;
}

/* Parses such a type. */
static bool dtype_attr(Parser *p, DType *dt) {
    if (p->tok.kind != T_NAME || !stored_type(p->tok.s, dt))
        return parse_expected(p, "f32, bf16 or f16");
    parse_lex_next(p);
    return true;
}

/* Parses the attributes of an operation. */
static bool parse_attrs(Parser *p, Op *op) {
    unsigned at = op_attrs(op->kind);
    int red = 0;
    if (at & OPA_WHEN) op->when = parse_accept_word(p, "when");
    if (at & OPA_RED) {
        if (!parse_word(p, &text_reds, "sum, max or min", &red)) return false;
        op->red = (RedKind)red;
    }
    if (at & OPA_MAP && !parse_map(p, &op->map)) return false;
    if (at & (OPA_OVER | OPA_OVER1 | OPA_OVER2 | OPA_OVER3) && !over_attr(p, at, op)) return false;
    if (at & OPA_COL && !parse_column(p, &op->col)) return false;
    if (at & OPA_VAR && !parse_var(p, &op->var)) return false;
    if (at & OPA_NAME && !parse_text(p, "a text in quotes", &op->name)) return false;
    if (at & OPA_EXT && !ext_attr(p, &op->ext)) return false;
    if (at & OPA_BODY && !body_attr(p, &op->body)) return false;
    if (at & OPA_LIMIT && parse_accept_word(p, "limit")) {
        int64_t n = 0;
        if (!parse_int(p, "the most iterations", 1, INT32_MAX, &n)) return false;
        op->imm = (double)n;
    }
    if (at & OPA_IMM && !parse_real(p, "a number", &op->imm)) return false;
    if (at & OPA_DTYPE && !dtype_attr(p, &op->dtype)) return false;
    if (at & OPA_STREAM && !stream_attr(p, &op->stream)) return false;
    if (!(at & OPA_OFF)) return true;
    Span off_at = p->tok.span;
    if (!parse_accept_word(p, "at"))
        return parse_fail(p, DIAG_E0401, off_at, "expected 'at' and the offset of the slice");
    return parse_expr(p, &op->off);
}

/* ---- operands ------------------------------------------------------------------------ */
typedef VEC(Op *) Operands;

/* The value that stands for a definition with an error. */
static Op *poison(Parser *p) {
    Op *op = NEW(p->a, Op);
    op->type.dt = DT_VOID;
    return op;
}

/* Parses an operand. */
static bool parse_operand(Parser *p, Operands *in, bool *poisoned) {
    Op *x = strmap_get(&p->values, p->tok.s);
    if (!x)
        return parse_fail(p, DIAG_E0405, p->tok.span, "no value '%%%s' is defined before this line",
                          p->tok.s);
    if (!op_has_result(x)) *poisoned = true;
    vec_push(p->a, in, x);
    parse_lex_next(p);
    return true;
}

/* Parses all operands. */
static bool parse_operands(Parser *p, Op *op, Span at, bool *poisoned) {
    enum { MAX_OPERANDS = 1000 };
    Operands in = {0};
    if (p->tok.kind == T_VALUE && p->tok.span.line == p->prev_line) {
        do {
            if (p->tok.kind != T_VALUE)
                return parse_fail(p, DIAG_E0401, p->tok.span, "expected a value, as '%%name'");
            if (!parse_operand(p, &in, poisoned)) return false;
        } while (in.n < MAX_OPERANDS && parse_accept(p, ','));
    }
    int want = op_arity(op->kind);
    if (want >= 0 && in.n != want)
        return parse_fail(p, DIAG_E0406, at, "'%s' takes %d operand%s, not %d",
                          op_mnemonic(op->kind), want, want == 1 ? "" : "s", in.n);
    op->in = in.v;
    op->n_in = in.n;
    return true;
}

/* Parses ` hops 2`: how far the rows that an output is made of are. */
static bool output_hops(Parser *p, Op *op) {
    int64_t n;
    if (p->tok.kind != T_NAME || p->tok.span.line != p->prev_line) return true;
    if (!parse_accept_word(p, "hops")) return true;
    if (!parse_int(p, "a number of hops", 1, INT32_MAX, &n)) return false;
    op->use.hops = (int)n;
    return true;
}

/* Parses ` as metric "accuracy" val`: what an output is for. */
static bool output_use(Parser *p, Op *op) {
    int role = OUT_VALUE, split = SPLIT_NONE;
    if (op->kind != OP_OUTPUT || !parse_accept_word(p, "as")) return true;
    if (!parse_word(p, &text_OutputRole, "what an output is for", &role)) return false;
    op->use.role = (OutputRole)role;
    if (role == OUT_GRAD) return parse_var(p, &op->use.var);
    if (p->tok.kind == T_STRING && !parse_text(p, "a name in quotes", &op->use.of)) return false;
    if (!output_hops(p, op)) return false;
    if (op->use.hops || p->tok.kind != T_NAME || p->tok.span.line != p->prev_line) return true;
    if (!parse_word(p, &text_SplitKind, "train, val or test", &split)) return false;
    op->use.split = (SplitKind)split;
    return output_hops(p, op);
}

/* ---- one operation ---------------------------------------------------------------------- */
/* Parses the kind of an operation. */
static bool parse_kind(Parser *p, OpKind *kind) {
    static const char *const words[] = {
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl) mnemonic,
#include "ops.def"
#undef OP
    };
    static const Words mnemonics = {words, N_OPS};
    Span at = p->tok.span;
    const char *name = NULL;
    if (!parse_name(p, "an operation", &name)) return false;
    int k = text_find(&mnemonics, name, strlen(name));
    if (k < 0) return parse_fail(p, DIAG_E0404, at, "there is no operation '%s'", name);
    *kind = (OpKind)k;
    return true;
}

/* A type, as text. */
static const char *type_text(Parser *p, const Type *t) {
    StrBuf b = sb_new(p->a);
    type_print(&b, t);
    return b.s;
}

/* Whether the type follows from operands and attributes: text may then leave it out. */
static bool type_follows(const Op *op) {
    return !op_has(op, OPT_EFFECT) && !(op_attrs(op->kind) & OPA_TYPE);
}

/* Whether the text left the type out. */
static bool is_untyped(const Op *op, bool named) {
    bool untyped = named && op->type.dt == DT_VOID && type_follows(op);
    for (int i = 0; i < op->n_in; i++) untyped |= op->in[i]->untyped;
    return untyped;
}

/* Checks the operation's type. infer() may follow operands and, for CSR values, what @load saved.
 */
static bool check_op(Parser *p, Op *op, Span at, bool named) {
    bool may_have = op->kind == OP_CALL_EFFECT, result = !op_has(op, OPT_EFFECT);
    bool typed = op->type.dt != DT_VOID;
    if (may_have) result = named;
    if (op->ask && !named)
        return parse_fail(p, DIAG_E0406, at, "'%s' has no result to be stored or fused",
                          op_mnemonic(op->kind));
    if (result != named || (typed ? !result : result && !type_follows(op)))
        return parse_fail(p, DIAG_E0406, at,
                          !result            ? "'%s' has no result, so no name and no type"
                          : type_follows(op) ? "'%s' needs a name for its result"
                                             : "'%s' needs a name for its result and, after ':', "
                                               "its type, which nothing else says",
                          op_mnemonic(op->kind));
    op->untyped = is_untyped(op, named);
    if (op->untyped) return true;
    Op tried = *op;
    const char *why = op_infer(p->m, &tried);
    if (why) return parse_fail(p, DIAG_E0406, at, "'%s': %s", op_mnemonic(op->kind), why);
    if (type_eq(&tried.type, &op->type)) return true;
    return parse_fail(p, DIAG_E0406, at, "the result of this '%s' is %s, not %s",
                      op_mnemonic(op->kind), type_text(p, &tried.type), type_text(p, &op->type));
}

/* Parses `@bf16` behind the type, the request of the layer, or `@f32 update`, the optimizer's. */
static bool parse_want(Parser *p, Op *op) {
    if (p->tok.kind != T_FUNC || p->tok.span.line != p->prev_line) return true;
    if (!stored_type(p->tok.s, &op->want)) return parse_expected(p, "@f32, @bf16 or @f16");
    parse_lex_next(p);
    op->update = p->tok.span.line == p->prev_line && parse_accept_word(p, "update");
    return true;
}

/* Parses an operation, after its name; NULL after an error, or where an operand already had one. */
static Op *parse_op(Parser *p, Builder *b, Span at, bool named) {
    Op op = {.span = at};
    bool poisoned = false;
    op.fused = parse_accept_word(p, "fused");
    op.again = parse_accept_word(p, "again");
    for (int i = ASK_STORE; i < N_ASKS && !op.ask; i++)
        if (parse_accept_word(p, text_asks.word[i])) op.ask = (OpAsk)i;
    Span op_at = p->tok.span;
    if (!parse_kind(p, &op.kind) || !parse_attrs(p, &op)) return NULL;
    if (!parse_operands(p, &op, op_at, &poisoned)) return NULL;
    if (!output_use(p, &op)) return NULL;
    if (parse_accept(p, ':') && !parse_type(p, &op.type)) return NULL;
    if (!parse_want(p, &op) || !parse_span(p, &op.span) || poisoned) return NULL;
    if (op.kind == OP_SAVED && b->f->phase == PHASE_LOAD) {
        parse_fail(p, DIAG_E0406, op_at, "'saved' reads what @load gave, so @load cannot use it");
        return NULL;
    }
    return check_op(p, &op, op_at, named) ? b_op(b, &op) : NULL;
}

/* Parses the line of an operation. */
static void parse_op_line(Parser *p, Builder *b) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (p->tok.kind == T_VALUE) {
        name = p->tok.s;
        parse_lex_next(p);
        if (!parse_expect(p, '=')) {
            parse_skip_line(p);
            return;
        }
    } else if (p->tok.kind != T_NAME) {
        if (p->tok.kind != T_BAD)
            parse_fail(p, DIAG_E0401, at, "expected an operation, or '%%name ='");
        parse_lex_next(p);
        parse_skip_line(p);
        return;
    }
    bool taken = name && strmap_has(&p->values, name);
    if (taken) parse_fail(p, DIAG_E0403, at, "'%%%s' is defined twice", name);
    Op *op = parse_op(p, b, at, name != NULL);
    if (!op) parse_skip_line(p);
    if (!name) return;
    const char *hint = text_is_number(name) || taken ? NULL : text_hint_of(p->a, &p->hints, name);
    if (op) op->hint = hint;
    strmap_put(p->a, &p->values, name, op ? op : poison(p));
}

/* Parses a function. One whose name is taken is read all the same, for its errors. */
void parse_func(Parser *p, bool body) {
    Span at = p->tok.span;
    if (p->tok.kind != T_FUNC) {
        parse_fail(p, DIAG_E0401, at, "expected a function's name, as '@train'");
        parse_skip_line(p);
        return;
    }
    const char *name = p->tok.s;
    if (strmap_has(&p->funcs, name)) parse_fail(p, DIAG_E0403, at, "'@%s' is defined twice", name);
    strmap_put(p->a, &p->funcs, name, p->m);
    Builder b = {.m = p->m, .f = func_new(p->m, name)};
    b.f->span = at;
    b.f->body = body;
    p->values = p->hints = (StrMap){0};
    parse_lex_next(p);
    if (!parse_expect(p, '{') || !parse_span(p, &b.f->span)) parse_skip_line(p);
    while (!parse_stop(p) && !parse_is(p, '}')) parse_op_line(p, &b);
    vec_push(p->a, &p->names, ((ParseNames){b.f, p->values}));
    if (!parse_stop(p)) parse_expect(p, '}');
}
