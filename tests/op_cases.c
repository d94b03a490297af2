/* The table of op_cases.h: graphs, widths, and a generator per kind of operation. */
#include "op_cases.h"

#include <math.h>
#include <string.h>

enum { ANY, POSITIVE, TIES, N_WIDTHS = 4, HEADS = 3, N_CAT = 4, N_FEATURES = 9 };
static const int widths[N_WIDTHS] = {1, 7, 16, 33};

typedef struct {
    OpCases *cs;
    Module *m;
    Arena *a;
    Builder b;
    const char *name;
    Space *w[N_WIDTHS], *o[N_WIDTHS]; /* two dimensions of each width */
    Space *hw[N_WIDTHS];              /* heads * width */
    Space *h;
    int n_random;
} Gen;

/* ---- graphs ---------------------------------------------------------------------- */

static int64_t *size_of(OpCases *cs, const Space *s) {
    return &cs->sym[s->size->sym->id];
}

static OpGraph *graph(Gen *g, const char *name, bool bipartite, int64_t n_src, int64_t n_dst) {
    OpGraph x = {.name = name, .n_src = n_src, .n_dst = n_dst};
    x.src = space_node(g->m, arena_printf(g->a, "%s_s", name), (Span){0});
    x.dst = bipartite ? space_node(g->m, arena_printf(g->a, "%s_d", name), (Span){0}) : x.src;
    x.edge = space_edge(g->m, arena_printf(g->a, "%s_e", name), x.src, x.dst, (Span){0});
    x.weight = column_new(g->m, COL_FLOAT, x.edge, "weight", 0, NULL, NULL, (Span){0});
    x.kind = column_new(g->m, COL_CLASS, x.dst, "kind", 0, NULL, g->cs->n_cat, (Span){0});
    vec_push(g->a, &g->cs->graphs, x);
    return &g->cs->graphs.v[g->cs->graphs.n - 1];
}

static void edge(Gen *g, OpGraph *x, int from, int to) {
    if (!x->from) {
        x->from = NEWN(g->a, int32_t, 128);
        x->to = NEWN(g->a, int32_t, 128);
    }
    x->from[x->n_edges] = from;
    x->to[x->n_edges++] = to;
}

static void graphs(Gen *g) {
    static const int odd[][2] = {{5, 0}, {1, 2}, {0, 0}, {3, 2}, {1, 2}, {2, 1}, {0, 5}, {3, 3}};
    static const int bip[][2] = {{4, 6}, {0, 0}, {1, 3}, {0, 3}, {4, 3}, {2, 5}, {4, 0}, {0, 3}};
    graph(g, "none", false, 0, 0);
    graph(g, "edgeless", true, 3, 2);
    OpGraph *x = graph(g, "odd", false, 6, 6); /* node 4 is isolated */
    for (size_t i = 0; i < COUNT(odd); i++) edge(g, x, odd[i][0], odd[i][1]);
    x = graph(g, "hub", false, 40, 40);
    for (int v = 39; v > 0; v--) edge(g, x, v, 0);
    for (int v = 1; v < 40; v += 3) edge(g, x, 0, v);
    x = graph(g, "bip", true, 5, 7);
    for (size_t i = 0; i < COUNT(bip); i++) edge(g, x, bip[i][0], bip[i][1]);
}

static void pool(Gen *g) {
    static const int32_t of[] = {0, 0, 0, 2, 2, 3, 3, 3, 3};
    OpPool *p = &g->cs->pool;
    *p = (OpPool){.n_nodes = COUNT(of), .n_graphs = 5, .of = of};
    p->graph = space_graph(g->m, "mol", (Span){0});
    p->node = space_node(g->m, "atom", (Span){0});
    p->node->graph = p->graph;
}

static const OpGraph *graph_of(Gen *g, const char *name) {
    for (int i = 0; i < g->cs->graphs.n; i++)
        if (!strcmp(g->cs->graphs.v[i].name, name)) return &g->cs->graphs.v[i];
    return NULL;
}

static Space *dim(Gen *g, const char *name, int k, int size) {
    return space_dim(g->m, arena_printf(g->a, "%s%d", name, k), expr_const(g->a, size), (Span){0});
}

/* ---- a case ------------------------------------------------------------------------- */

static void begin(Gen *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void begin(Gen *g, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    g->name = arena_printf(g->a, "%s_%d", arena_vprintf(g->a, fmt, ap), g->cs->cases.n);
    va_end(ap);
    g->b = (Builder){.m = g->m, .f = func_new(g->m, g->name)};
    g->n_random = 0;
}

static Type f32(int rank, Space *const *dims) {
    return type_make(DT_F32, rank, dims);
}
#define T(...)                                                                                     \
    f32((int)(sizeof((Space *[]){__VA_ARGS__}) / sizeof(Space *)), (Space *[]){__VA_ARGS__})

static Op *uniform(Gen *g, Type t) {
    t.dt = DT_F32;
    return b_random(&g->b, g->n_random++, t);
}

static void finish(Gen *g, Op *y, bool has_fd) {
    Builder *b = &g->b;
    bool has_loss = y->type.dt == DT_F32;
    b_output(b, "y", y);
    if (has_loss) {
        Op *x = y->type.layout == LAYOUT_CSR ? b_reduce(b, RED_SUM, y, 1, &y->type.dim[1]) : y;
        Op *each = b_binary(b, OP_MUL, x, uniform(g, x->type));
        b_loss(b, b_reduce(b, RED_SUM, each, each->type.rank, each->type.dim));
    }
    vec_push(g->a, &g->cs->cases, ((OpCase){g->name, b->f, has_loss, has_fd && has_loss}));
}

/* Parameters are shared by all cases of the same domain, place and type. */
static Op *param(Gen *g, int k, int domain, Type t) {
    static const char *const domains[] = {"any", "positive", "ties"};
    StrBuf path = sb_new(g->a);
    sb_printf(&path, "%s%d", domains[domain], k);
    for (int i = 0; i < t.rank; i++) sb_printf(&path, ".%s", t.dim[i]->name);
    Var *v = var_find(g->m, path.s);
    if (!v) {
        Init init = {.kind = INIT_CONST};
        v = var_new(g->m, VAR_PARAM, path.s, t, init, (Span){0});
        vec_push(g->a, &g->cs->vars, ((OpCaseVar){v, domain}));
    }
    return b_var(&g->b, v);
}

/* ---- elementwise --------------------------------------------------------------------- */

static void unary_cases(Gen *g, const OpGraph *x) {
    static const struct {
        OpKind op;
        int domain;
        bool fd;
    } t[] = {
        {OP_NEG, ANY, true},       {OP_ABS, ANY, true},        {OP_EXP, ANY, true},
        {OP_EXPM1, ANY, true},     {OP_LOG, POSITIVE, true},   {OP_LOG1P, POSITIVE, true},
        {OP_SQRT, POSITIVE, true}, {OP_RSQRT, POSITIVE, true}, {OP_TANH, ANY, true},
        {OP_SIGMOID, ANY, true},   {OP_ERF, ANY, true},        {OP_SIN, ANY, true},
        {OP_COS, ANY, true},       {OP_FLOOR, ANY, true},      {OP_DETACH, ANY, false},
        {OP_ISNAN, ANY, false},
    };
    for (size_t i = 0; i < COUNT(t); i++)
        for (int w = 0; w < N_WIDTHS; w++) {
            begin(g, "%s_%s_%d", op_mnemonic(t[i].op), x->name, widths[w]);
            Op *p = param(g, 0, t[i].domain, T(x->dst, g->w[w]));
            finish(g, b_unary(&g->b, t[i].op, p), t[i].fd);
        }
}

/* What the model asks for, in each type. */
static void store_as_cases(Gen *g, const OpGraph *x) {
    static const DType types[] = {DT_F32, DT_BF16, DT_F16};
    for (size_t i = 0; i < COUNT(types); i++)
        for (int w = 0; w < N_WIDTHS; w++) {
            begin(g, "store_as_%s_%s_%d", dtype_name(types[i]), x->name, widths[w]);
            Op *p = param(g, 0, ANY, T(x->dst, g->w[w]));
            finish(g, b_store_as(&g->b, p, types[i]), true);
        }
}

enum { SAME, PER_ROW, PER_COLUMN, SCALAR, CONSTANT, PERMUTED, SWAPPED, N_FORMS };
static const char *const forms[] = {"same",     "row",      "column", "scalar",
                                    "constant", "permuted", "swapped"};

/* The second operand of a binary operation over [x, w]. */
static Op *second(Gen *g, int form, int domain, Space *x, Space *w) {
    switch (form) {
    case PER_ROW:
    case SWAPPED:
        return param(g, 1, domain, T(x));
    case PER_COLUMN:
        return param(g, 1, domain, T(w));
    case SCALAR:
        return param(g, 1, domain, type_scalar(DT_F32));
    case CONSTANT:
        return b_const(&g->b, DT_F32, 1.25);
    case PERMUTED:
        return param(g, 1, domain, T(w, x));
    default:
        return param(g, 1, domain, T(x, w));
    }
}

static Op *binary_form(Gen *g, OpKind op, int form, int domain, Space *x, Space *w) {
    Op *p = param(g, 0, domain, T(x, w)), *q = second(g, form, domain, x, w);
    return form == SWAPPED ? b_binary(&g->b, op, q, p) : b_binary(&g->b, op, p, q);
}

static void binary_cases(Gen *g, const OpGraph *x) {
    static const OpKind ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX,
                                 OP_MIN, OP_POW, OP_LT,  OP_LE,  OP_EQ};
    for (size_t i = 0; i < COUNT(ops); i++)
        for (int form = 0; form < N_FORMS; form++)
            for (int k = 0; k < N_WIDTHS; k += 2) { /* two widths of each, in turn */
                int w = (k + (int)i + form) % N_WIDTHS;
                bool divides = ops[i] == OP_DIV || ops[i] == OP_POW;
                bool compares = (op_traits(ops[i]) & OPT_CMP) != 0;
                begin(g, "%s_%s_%s_%d", op_mnemonic(ops[i]), forms[form], x->name, widths[w]);
                int domain = divides ? POSITIVE : compares ? TIES : ANY;
                finish(g, binary_form(g, ops[i], form, domain, x->dst, g->w[w]), true);
            }
}

static void logic_cases(Gen *g, const OpGraph *x) {
    for (int w = 0; w < N_WIDTHS; w++) {
        Type t = T(x->dst, g->w[w]);
        Builder *b = &g->b;
        for (int k = 0; k < 3; k++) {
            static const char *const names[] = {"and", "or", "not"};
            begin(g, "%s_%d", names[k], widths[w]);
            Op *p = b_binary(b, OP_LT, param(g, 0, ANY, t), param(g, 1, ANY, t));
            Op *q = b_binary(b, OP_LT, param(g, 1, ANY, t), b_const(b, DT_F32, 0.5));
            finish(g, k == 2 ? b_unary(b, OP_NOT, p) : b_binary(b, k ? OP_OR : OP_AND, p, q),
                   false);
        }
        for (int form = 0; form < N_FORMS; form++) {
            begin(g, "select_%s_%d", forms[form], widths[w]);
            Op *p = param(g, 0, ANY, t), *q = second(g, form, ANY, x->dst, g->w[w]);
            Op *c = b_binary(b, OP_LT, uniform(g, t), b_const(b, DT_F32, 0.5));
            finish(g, form == SWAPPED ? b_select(b, c, q, p) : b_select(b, c, p, q), true);
        }
        begin(g, "select_row_mask_%d", widths[w]);
        Op *c = b_binary(b, OP_LT, uniform(g, T(x->dst)), b_const(b, DT_F32, 0.5));
        finish(g, b_select(b, c, param(g, 0, ANY, t), param(g, 1, ANY, t)), true);
        begin(g, "cast_%d", widths[w]);
        Op *whole = b_cast(b, param(g, 0, ANY, t), DT_I32);
        finish(g, b_binary(b, OP_MUL, b_cast(b, whole, DT_F32), param(g, 1, ANY, t)), false);
        begin(g, "copy_broadcast_%d", widths[w]);
        finish(g, b_copy(b, param(g, 0, ANY, T(g->w[w])), t), true);
        begin(g, "copy_transpose_%d", widths[w]);
        finish(g, b_copy(b, param(g, 0, ANY, t), T(g->w[w], x->dst)), true);
    }
}

/* ---- along maps --------------------------------------------------------------------------- */

static void map_cases(Gen *g, const char *name, Map *m, Type rest) {
    static const char *const reds[] = {"sum", "max", "min"};
    Type from = T(m->from), to = T(m->to);
    for (int i = 0; i < rest.rank; i++) from.dim[from.rank++] = to.dim[to.rank++] = rest.dim[i];
    begin(g, "gather_%s", name);
    finish(g, b_gather(&g->b, m, param(g, 0, ANY, to)), true);
    bool derived = m->from->kind == SP_EDGE && m->from->rel != REL_BASE;
    for (int r = 0; r < 3; r++) {
        begin(g, "segment_%s_%s", reds[r], name);
        /* a derived space gets its rows by a gather */
        Type nodes = from;
        if (derived) nodes.dim[0] = m->from->dst;
        Op *x = param(g, 1, ANY, nodes);
        if (derived) x = b_gather(&g->b, map_dst(g->m, m->from), x);
        if (derived) x = b_binary(&g->b, OP_ADD, x, uniform(g, from));
        finish(g, b_segment(&g->b, (RedKind)r, m, x), true);
    }
}

static void edge_cases(Gen *g, const OpGraph *x, Space *e, const char *name) {
    for (int w = 0; w < N_WIDTHS; w++) {
        map_cases(g, arena_printf(g->a, "%s_src_%d", name, widths[w]), map_src(g->m, e),
                  T(g->w[w]));
        map_cases(g, arena_printf(g->a, "%s_dst_%d", name, widths[w]), map_dst(g->m, e),
                  T(g->w[w]));
        if (e != x->edge) return; /* a derived one: one width will do */
    }
    map_cases(g, arena_printf(g->a, "%s_src_vector", name), map_src(g->m, e), f32(0, NULL));
    map_cases(g, arena_printf(g->a, "%s_dst_heads", name), map_dst(g->m, e), T(g->h, g->w[1]));
}

/* GAT's attention: softmax over the edges of a destination, then a weighted sum. */
static void attention_case(Gen *g, const OpGraph *x, int w) {
    Builder *b = &g->b;
    Map *src = map_src(g->m, x->edge), *dst = map_dst(g->m, x->edge);
    begin(g, "attention_%s_%d", x->name, widths[w]);
    Op *z = param(g, 0, ANY, T(x->src, g->h, g->w[w]));
    Op *s = b_gather(b, src, param(g, 0, ANY, T(x->src, g->h)));
    Op *t = b_gather(b, dst, param(g, 1, ANY, T(x->dst, g->h)));
    Op *score = b_binary(b, OP_ADD, s, t);
    Op *top = b_detach(b, b_segment(b, RED_MAX, dst, score));
    Op *e = b_unary(b, OP_EXP, b_binary(b, OP_SUB, score, b_gather(b, dst, top)));
    Op *sum = b_gather(b, dst, b_segment(b, RED_SUM, dst, e));
    Op *alpha = b_binary(b, OP_DIV, e, sum);
    finish(g, b_segment(b, RED_SUM, dst, b_binary(b, OP_MUL, b_gather(b, src, z), alpha)), true);
}

/* Edge weights carried to a derived relation; PyG's fill value 1 for added loops. */
static Op *weights_on(Gen *g, const OpGraph *x, Space *e) {
    if (e == x->edge) return b_data(&g->b, x->weight);
    Map *orig = map_orig(g->m, e, 0);
    Op *w = b_gather(&g->b, orig, weights_on(g, x, e->base[0]));
    return b_select(&g->b, b_valid(&g->b, orig), w, b_const(&g->b, DT_F32, 1));
}

/* A convolution: weighted sum of the neighbours, then a product. */
static void convolution_case(Gen *g, const OpGraph *x, int w) {
    Builder *b = &g->b;
    begin(g, "convolution_%s_%d", x->name, widths[w]);
    Op *z = b_gather(b, map_src(g->m, x->edge), param(g, 0, ANY, T(x->src, g->w[3])));
    Op *message = b_binary(b, OP_MUL, z, b_data(b, x->weight));
    Op *sum = b_segment(b, RED_SUM, map_dst(g->m, x->edge), message);
    Op *weight = param(g, 1, ANY, T(g->o[w], g->w[3]));
    finish(g, b_contract(b, sum, weight, T(x->dst, g->o[w])), true);
}

static void derived_cases(Gen *g, const OpGraph *x) {
    Span at = {0};
    Space *loops = space_derived(g->m, REL_SELF_LOOPS, x->edge, NULL, NULL, at);
    Space *back = space_derived(g->m, REL_REVERSE, x->edge, NULL, NULL, at);
    const char *keep = arena_printf(g->a, "keep.%s", x->name);
    Space *kept = space_derived(g->m, REL_WHERE, x->edge, NULL, keep, at);
    Builder load = {.m = g->m, .f = func_of(g->m, PHASE_LOAD)};
    Op *heavy = b_const(&load, DT_F32, 0.75);
    b_output(&load, keep, b_binary(&load, OP_LT, heavy, b_data(&load, x->weight)));
    struct {
        const char *name;
        Space *e;
    } t[] = {
        {"self_loops", loops},
        {"reverse", back},
        {"no_loops", space_derived(g->m, REL_NO_LOOPS, x->edge, NULL, NULL, at)},
        {"undirected", space_derived(g->m, REL_UNDIRECTED, x->edge, NULL, NULL, at)},
        {"union", space_derived(g->m, REL_UNION, x->edge, back, NULL, at)},
        {"loops_of_reverse", space_derived(g->m, REL_SELF_LOOPS, back, NULL, NULL, at)},
        {"where", kept},
        {"loops_of_where", space_derived(g->m, REL_SELF_LOOPS, kept, NULL, NULL, at)},
    };
    for (size_t i = 0; i < COUNT(t); i++) {
        const char *name = arena_printf(g->a, "%s_%s", t[i].name, x->name);
        edge_cases(g, x, t[i].e, name);
        if (t[i].e->base[0] == x->edge) /* parameters live on loaded spaces only */
            map_cases(g, arena_printf(g->a, "%s_orig", name), map_orig(g->m, t[i].e, 0),
                      T(g->w[1]));
        begin(g, "weight_%s", name);
        finish(g, b_segment(&g->b, RED_SUM, map_dst(g->m, t[i].e), weights_on(g, x, t[i].e)), true);
        begin(g, "random_%s", name);
        finish(g, uniform(g, T(t[i].e, g->w[1])), true);
    }
}

static void category_cases(Gen *g, const OpGraph *x) {
    Map *m = map_col(g->m, x->kind);
    map_cases(g, arena_printf(g->a, "kind_%s", x->name), m, T(g->w[1]));
    begin(g, "valid_%s", x->name);
    finish(g, b_valid(&g->b, m), false);
    begin(g, "index_%s", x->name);
    finish(g, b_index(&g->b, m), false);
    begin(g, "one_hot_%s", x->name);
    Op *hot = b_binary(&g->b, OP_EQ, b_index(&g->b, m), b_iota(&g->b, g->cs->n_cat));
    Op *p = param(g, 0, ANY, T(x->dst, g->cs->n_cat));
    finish(g, b_select(&g->b, hot, p, b_const(&g->b, DT_F32, 0)), true);
}

/* ---- along spaces ---------------------------------------------------------------------------- */

static void reduce_cases(Gen *g, const OpGraph *x) {
    static const char *const reds[] = {"sum", "max", "min"};
    for (int w = 0; w < N_WIDTHS; w++) {
        Type t = T(x->dst, g->w[w]);
        for (int r = 0; r < 3; r++)
            for (int over = 1; over < 4; over++) {
                Space *s[2] = {t.dim[over == 1], t.dim[1]};
                begin(g, "reduce_%s_%d_%s_%d", reds[r], over, x->name, widths[w]);
                finish(g, b_reduce(&g->b, (RedKind)r, param(g, 0, ANY, t), over == 3 ? 2 : 1, s),
                       true);
            }
        begin(g, "reduce_ties_%s_%d", x->name, widths[w]);
        finish(g, b_reduce(&g->b, RED_MAX, param(g, 0, TIES, t), 1, &g->w[w]), false);
        begin(g, "argmax_%s_%d", x->name, widths[w]);
        finish(g, b_argmax(&g->b, param(g, 0, TIES, t), g->w[w]), false);
        for (int ties = 0; ties < 3; ties++) {
            begin(g, "rank_%s_%d_%d", x->name, widths[w], ties);
            Op *p = param(g, 0, TIES, t);
            Op *mask = b_binary(&g->b, OP_LT, uniform(g, T(x->dst)), b_const(&g->b, DT_F32, 0.7));
            finish(g, b_rank(&g->b, p, mask, x->dst, 0.5 * ties), false);
        }
    }
}

static void product(Gen *g, const char *name, Type x, Type y, Type result) {
    begin(g, "contract_%s", name);
    finish(g, b_contract(&g->b, param(g, 0, ANY, x), param(g, 1, ANY, y), result), true);
}

static void contract_cases(Gen *g, const OpGraph *x) {
    Space *n = x->src, *h = g->h;
    for (int i = 0; i < N_WIDTHS; i++) {
        Space *w = g->w[i];
        const char *at = arena_printf(g->a, "%s_%d", x->name, widths[i]);
        for (int j = 0; j < N_WIDTHS; j++) {
            const char *both = arena_printf(g->a, "%s_%d", at, widths[j]);
            product(g, both, T(n, w), T(g->o[j], w), T(n, g->o[j]));
        }
        product(g, arena_printf(g->a, "io_%s", at), T(n, w), T(w, g->o[1]), T(n, g->o[1]));
        product(g, arena_printf(g->a, "turned_%s", at), T(n, w), T(g->o[1], w), T(g->o[1], n));
        product(g, arena_printf(g->a, "heads_%s", at), T(n, w), T(h, g->o[1], w), T(n, h, g->o[1]));
        product(g, arena_printf(g->a, "per_head_%s", at), T(n, h, w), T(h, g->o[1], w),
                T(n, h, g->o[1]));
        product(g, arena_printf(g->a, "dot_%s", at), T(n, h, w), T(h, w), T(n, h));
        product(g, arena_printf(g->a, "rows_%s", at), T(n, w), T(n, w), T(n));
        product(g, arena_printf(g->a, "all_%s", at), T(n, w), T(w, n), type_scalar(DT_F32));
        product(g, arena_printf(g->a, "gram_%s", at), T(n, w), T(n, g->o[1]), T(w, g->o[1]));
        product(g, arena_printf(g->a, "two_%s", at), T(n, h, w), T(g->o[1], h, w), T(n, g->o[1]));
    }
}

static void csr_cases(Gen *g, const OpGraph *x) {
    Builder *b = &g->b;
    Space *f = g->cs->feature;
    Column *c = g->cs->csr;
    Type t = T(x->src, f);
    for (int w = 0; w < N_WIDTHS; w++) {
        begin(g, "csr_contract_%d", widths[w]);
        finish(g, b_contract(b, b_data(b, c), param(g, 1, ANY, T(g->o[w], f)), T(x->src, g->o[w])),
               true);
        begin(g, "csr_dropout_%d", widths[w]);
        Op *kept = b_binary(b, OP_LE, b_const(b, DT_F32, 0.4), uniform(g, t));
        Op *data = b_binary(b, OP_DIV, b_data(b, c), b_const(b, DT_F32, 0.6));
        Op *dropped = b_select(b, kept, data, b_const(b, DT_F32, 0));
        finish(g, b_contract(b, dropped, param(g, 1, ANY, T(f, g->o[w])), T(x->src, g->o[w])),
               true);
    }
    begin(g, "csr_dense");
    finish(g, b_binary(b, OP_ADD, b_copy(b, b_data(b, c), t), param(g, 0, ANY, t)), true);
    begin(g, "csr_normalised");
    Op *sum = b_reduce(b, RED_SUM, b_data(b, c), 1, &f);
    Op *row = b_binary(b, OP_DIV, b_data(b, c), b_binary(b, OP_MAX, sum, b_const(b, DT_F32, 1)));
    finish(g, b_contract(b, row, param(g, 1, ANY, T(g->o[1], f)), T(x->src, g->o[1])), true);
    begin(g, "csr_columns");
    finish(g, b_reduce(b, RED_SUM, b_data(b, c), 1, &x->src), true);
    begin(g, "csr_times_param"); /* differentiated on a dense copy */
    Op *scaled = b_unary(b, OP_TANH, b_binary(b, OP_MUL, b_data(b, c), param(g, 0, ANY, T(f))));
    finish(g, b_contract(b, scaled, param(g, 1, ANY, T(g->o[1], f)), T(x->src, g->o[1])), true);
}

static void slice_case(Gen *g, Op *x, Space *to, int64_t off) {
    finish(g, b_slice(&g->b, x, x->type.dim[x->type.rank - 1], to, expr_const(g->a, off)), true);
}

static void view_cases(Gen *g, const OpGraph *x) {
    Space *both = space_dim(g->m, "w23", expr_const(g->a, 23), (Span){0});
    for (int w = 0; w < N_WIDTHS; w++) {
        begin(g, "view_flat_%s_%d", x->name, widths[w]);
        Op *p = param(g, 0, ANY, T(x->src, g->h, g->w[w]));
        finish(g, b_view(&g->b, p, T(x->src, g->hw[w])), true);
        begin(g, "view_split_%s_%d", x->name, widths[w]);
        p = param(g, 0, ANY, T(x->src, g->hw[w]));
        finish(g, b_view(&g->b, p, T(x->src, g->h, g->w[w])), true);
    }
    begin(g, "concat_%s", x->name);
    Op *p = param(g, 0, ANY, T(x->src, g->w[1])), *q = param(g, 0, ANY, T(x->src, g->w[2]));
    finish(g, b_concat(&g->b, p, q, g->w[1], g->w[2], both), true);
    begin(g, "concat_permuted_%s", x->name);
    p = param(g, 0, ANY, T(x->src, g->w[1])), q = param(g, 0, ANY, T(g->w[2], x->src));
    finish(g, b_concat(&g->b, p, q, g->w[1], g->w[2], both), true);
    static const int offsets[] = {0, 4, 7};
    for (size_t i = 0; i < COUNT(offsets); i++) {
        begin(g, "slice_%d_%s", offsets[i], x->name);
        slice_case(g, param(g, 0, ANY, T(x->src, both)), g->w[2], offsets[i]);
    }
    begin(g, "slice_all_%s", x->name);
    slice_case(g, param(g, 0, ANY, T(x->src, g->w[2])), g->o[2], 0);
}

static void source_cases(Gen *g, const OpGraph *x) {
    begin(g, "iota_%s", x->name);
    finish(g, b_iota(&g->b, x->edge), false);
    begin(g, "size_%s", x->name);
    finish(g, b_size(&g->b, x->edge), true);
    begin(g, "data_%s", x->name);
    finish(g, b_data(&g->b, x->weight), true);
    begin(g, "random_%s", x->name);
    finish(g, uniform(g, T(x->edge, g->h, g->w[1])), true);
    begin(g, "random_node_%s", x->name);
    finish(g, uniform(g, T(x->src, g->w[3])), true);
    begin(g, "input_%s", x->name);
    Op *lr = b_input(&g->b, "lr", type_scalar(DT_F32));
    finish(g, b_binary(&g->b, OP_MUL, param(g, 0, ANY, T(x->src)), lr), true);
    begin(g, "const_%s", x->name);
    finish(g, b_copy(&g->b, b_const(&g->b, DT_F32, -0.75), T(x->edge)), true);
}

static void pool_cases(Gen *g) {
    const OpPool *x = &g->cs->pool;
    Map *m = map_graph(g->m, x->node);
    for (int w = 0; w < N_WIDTHS; w++)
        map_cases(g, arena_printf(g->a, "graph_%d", widths[w]), m, T(g->w[w]));
    map_cases(g, "graph_vector", m, f32(0, NULL));
    begin(g, "graph_mean");
    Builder *b = &g->b;
    Op *n = b_segment(b, RED_SUM, m, b_copy(b, b_const(b, DT_F32, 1), T(x->node)));
    Op *sum = b_segment(b, RED_SUM, m, param(g, 0, ANY, T(x->node, g->w[1])));
    finish(g, b_binary(b, OP_DIV, sum, b_binary(b, OP_MAX, n, b_const(b, DT_F32, 1))), true);
    begin(g, "graph_random");
    finish(g, uniform(g, T(x->graph, g->w[1])), true);
}

/* ---- other element types ------------------------------------------------------------------ */

/* A parameter in another element type; whole numbers from -8 to 7 where it is one. */
static Op *param_as(Gen *g, int k, int domain, Type t, DType dt) {
    Op *p = param(g, k, domain, t);
    if (!dtype_is_float(dt)) p = b_binary(&g->b, OP_MUL, p, b_const(&g->b, DT_F32, 4));
    return b_cast(&g->b, p, dt);
}

static void typed_arithmetic(Gen *g, DType dt, Type t) {
    static const OpKind ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX, OP_MIN, OP_LT, OP_EQ};
    for (size_t i = 0; i < COUNT(ops); i++) {
        begin(g, "%s_%s", op_mnemonic(ops[i]), dtype_name(dt));
        Op *p = param_as(g, 0, ANY, t, dt), *q = param_as(g, 1, ANY, t, dt);
        if (ops[i] == OP_DIV) { /* never by 0 */
            q = b_binary(&g->b, OP_MUL, q, q);
            q = b_binary(&g->b, OP_ADD, q, b_const(&g->b, dt, 1));
        }
        Op *y = b_binary(&g->b, ops[i], p, q);
        finish(g, i % 2 ? b_cast(&g->b, y, DT_F32) : y, false);
    }
    for (int k = 0; k < 2; k++) {
        begin(g, "%s_%s", k ? "abs" : "neg", dtype_name(dt));
        finish(g, b_unary(&g->b, k ? OP_ABS : OP_NEG, param_as(g, 0, ANY, t, dt)), false);
    }
    begin(g, "select_%s", dtype_name(dt));
    Op *p = param_as(g, 0, ANY, t, dt), *q = param_as(g, 1, ANY, t, dt);
    Op *y = b_select(&g->b, b_binary(&g->b, OP_LT, p, q), b_const(&g->b, dt, 3), q);
    finish(g, b_cast(&g->b, y, DT_F32), false);
}

static void typed_functions(Gen *g, DType dt, Type t) {
    static const OpKind ops[] = {OP_EXP, OP_LOG, OP_SQRT, OP_RSQRT, OP_TANH,  OP_SIGMOID,
                                 OP_ERF, OP_SIN, OP_COS,  OP_FLOOR, OP_LOG1P, OP_EXPM1};
    for (size_t i = 0; i < COUNT(ops); i++) {
        begin(g, "%s_%s", op_mnemonic(ops[i]), dtype_name(dt));
        Op *y = b_unary(&g->b, ops[i], param_as(g, 0, POSITIVE, t, dt));
        finish(g, b_cast(&g->b, y, DT_F32), ops[i] != OP_FLOOR && dt == DT_F64);
    }
    begin(g, "pow_%s", dtype_name(dt));
    Op *y = b_binary(&g->b, OP_POW, param_as(g, 0, POSITIVE, t, dt), param_as(g, 1, ANY, t, dt));
    finish(g, b_cast(&g->b, y, DT_F32), dt == DT_F64);
    begin(g, "contract_%s", dtype_name(dt));
    Type out = T(t.dim[0], g->o[2]);
    out.dt = dt;
    Op *w = param_as(g, 1, ANY, T(g->o[2], t.dim[1]), dt);
    y = b_contract(&g->b, param_as(g, 0, ANY, t, dt), w, out);
    finish(g, b_cast(&g->b, y, DT_F32), dt == DT_F64);
}

static void typed_reductions(Gen *g, DType dt, const OpGraph *x) {
    static const char *const reds[] = {"sum", "max", "min"};
    Type t = T(x->src, g->w[1]);
    for (int r = 0; r < 3; r++) {
        begin(g, "reduce_%s_%s", reds[r], dtype_name(dt));
        finish(g, b_reduce(&g->b, (RedKind)r, param_as(g, 0, ANY, t, dt), 1, &t.dim[r % 2]), false);
        begin(g, "segment_%s_%s", reds[r], dtype_name(dt));
        Op *e = b_gather(&g->b, map_src(g->m, x->edge), param_as(g, 0, ANY, t, dt));
        Op *y = b_segment(&g->b, (RedKind)r, map_dst(g->m, x->edge), e);
        finish(g, b_cast(&g->b, y, DT_F32), false);
    }
    begin(g, "argmax_%s", dtype_name(dt));
    finish(g, b_argmax(&g->b, param_as(g, 0, TIES, t, dt), t.dim[1]), false);
    begin(g, "view_%s", dtype_name(dt));
    Op *p = param_as(g, 0, ANY, T(x->src, g->h, g->w[1]), dt);
    Type flat = T(x->src, g->hw[1]);
    flat.dt = dt;
    finish(g, b_view(&g->b, p, flat), false);
}

/* A library product, one that sums rows, a dot product and one per head: in 16 bits, and into f32.
 */
static void typed_products(Gen *g, DType in, DType out, const OpGraph *x) {
    Space *n = x->src, *h = g->h, *o = g->o[2];
    const struct {
        const char *name;
        Type x, y, result;
    } forms[] = {{"in", T(n, g->w[2]), T(o, g->w[2]), T(n, o)},
                 {"out", T(n, g->w[1]), T(g->w[1], o), T(n, o)},
                 {"gram", T(n, g->w[1]), T(n, o), T(g->w[1], o)},
                 {"heads", T(n, h, g->w[1]), T(h, o, g->w[1]), T(n, h, o)},
                 {"dot", T(n, h, g->w[1]), T(h, g->w[1]), T(n, h)}};
    for (size_t i = 0; i < COUNT(forms); i++) {
        Type result = forms[i].result;
        result.dt = out;
        begin(g, "contract_%s_%s_%s", forms[i].name, dtype_name(in), dtype_name(out));
        Op *y = b_contract(&g->b, param_as(g, 0, ANY, forms[i].x, in),
                           param_as(g, 1, ANY, forms[i].y, in), result);
        finish(g, b_cast(&g->b, y, DT_F32), true);
    }
}

static void type_cases(Gen *g, const OpGraph *x) {
    static const DType types[] = {DT_F64, DT_F16, DT_BF16, DT_I32, DT_I64};
    for (size_t i = 0; i < COUNT(types); i++) {
        Type t = T(x->dst, g->w[1 + i % 3]);
        typed_arithmetic(g, types[i], t);
        if (dtype_is_float(types[i])) typed_functions(g, types[i], t);
        typed_reductions(g, types[i], x);
        if (dtype_is_float(types[i])) typed_products(g, types[i], types[i], x);
        if (dtype_is_float(types[i]) && dtype_bytes(types[i]) == 2)
            typed_products(g, types[i], DT_F32, x);
        for (size_t k = 0; k < COUNT(types); k++) {
            begin(g, "cast_%s_%s", dtype_name(types[i]), dtype_name(types[k]));
            finish(g, b_cast(&g->b, param_as(g, 0, ANY, t, types[i]), types[k]), false);
        }
    }
}

/* Wider than any register and no multiple of one. */
static void wide_cases(Gen *g, const OpGraph *x) {
    Space *wide = dim(g, "w", 130, 130), *other = dim(g, "o", 130, 130);
    Builder *b = &g->b;
    begin(g, "wide_exp_%s", x->name);
    finish(g, b_unary(b, OP_EXP, param(g, 0, ANY, T(x->src, wide))), true);
    begin(g, "wide_mul_%s", x->name);
    finish(g, binary_form(g, OP_MUL, PER_COLUMN, ANY, x->src, wide), true);
    begin(g, "wide_max_%s", x->name);
    finish(g, b_reduce(b, RED_MAX, param(g, 0, ANY, T(x->src, wide)), 1, &wide), true);
    begin(g, "wide_argmax_%s", x->name);
    finish(g, b_argmax(b, param(g, 0, TIES, T(x->src, wide)), wide), false);
    product(g, arena_printf(g->a, "wide_in_%s", x->name), T(x->src, wide), T(g->o[1], wide),
            T(x->src, g->o[1]));
    product(g, arena_printf(g->a, "wide_out_%s", x->name), T(x->src, g->w[1]), T(other, g->w[1]),
            T(x->src, other));
    begin(g, "wide_convolution_%s", x->name);
    Op *z = b_gather(b, map_src(g->m, x->edge), param(g, 0, ANY, T(x->src, wide)));
    Op *message = b_binary(b, OP_MUL, z, b_data(b, x->weight));
    finish(g, b_segment(b, RED_SUM, map_dst(g->m, x->edge), message), true);
}

/* ---- the table -------- */

static void generate(Gen *g) {
    OpCases *cs = g->cs;
    for (int i = 0; i < cs->graphs.n; i++) {
        const OpGraph *x = &cs->graphs.v[i];
        edge_cases(g, x, x->edge, x->name);
        for (int w = 0; w < N_WIDTHS; w++) {
            attention_case(g, x, w);
            convolution_case(g, x, w);
        }
        source_cases(g, x);
        category_cases(g, x);
        if (x->src == x->dst) derived_cases(g, x);
    }
    const OpGraph *odd = graph_of(g, "odd"), *none = graph_of(g, "none");
    unary_cases(g, odd);
    unary_cases(g, none);
    store_as_cases(g, odd);
    store_as_cases(g, none);
    binary_cases(g, odd);
    logic_cases(g, odd);
    reduce_cases(g, odd);
    reduce_cases(g, none);
    contract_cases(g, odd);
    contract_cases(g, none);
    view_cases(g, odd);
    view_cases(g, none);
    csr_cases(g, odd);
    pool_cases(g);
    type_cases(g, odd);
    wide_cases(g, odd);
    wide_cases(g, graph_of(g, "hub"));
    wide_cases(g, none);
}

/* Symbols are made with their spaces, so this holds for all loaded ones. */
static void sizes(OpCases *cs) {
    cs->sym = NEWN(cs->m->a, int64_t, (size_t)cs->m->syms.n);
    for (int i = 0; i < cs->graphs.n; i++) {
        const OpGraph *x = &cs->graphs.v[i];
        *size_of(cs, x->src) = x->n_src;
        *size_of(cs, x->dst) = x->n_dst;
        *size_of(cs, x->edge) = x->n_edges;
    }
    *size_of(cs, cs->pool.node) = cs->pool.n_nodes;
    *size_of(cs, cs->pool.graph) = cs->pool.n_graphs;
    *size_of(cs, cs->n_cat) = N_CAT;
    *size_of(cs, cs->feature) = N_FEATURES;
}

OpCases *op_cases_build(Ctx *c) {
    OpCases *cs = NEW(c->a, OpCases);
    Gen g = {.cs = cs, .a = c->a, .m = module_new(c, "op_cases")};
    cs->m = g.m;
    cs->n_cat = space_dim(g.m, "K", NULL, (Span){0});
    cs->feature = space_dim(g.m, "F", NULL, (Span){0});
    func_new(g.m, "load");
    g.h = dim(&g, "h", HEADS, HEADS);
    for (int w = 0; w < N_WIDTHS; w++) {
        g.w[w] = dim(&g, "w", widths[w], widths[w]);
        g.o[w] = dim(&g, "o", widths[w], widths[w]);
        g.hw[w] = dim(&g, "hw", widths[w], HEADS * widths[w]);
    }
    graphs(&g);
    pool(&g);
    cs->csr =
        column_new(g.m, COL_CSR, graph_of(&g, "odd")->src, "x", 1, &cs->feature, NULL, (Span){0});
    generate(&g);
    sizes(cs);
    return cs;
}

/* ---- data -------- */

static double value(int domain, uint32_t what, int64_t i) {
    float u = rt_uniform(rt_stream_key(1, 0, what), (uint32_t)i, 0);
    switch (domain) {
    case POSITIVE:
        return 0.25f + 1.5f * u;
    case TIES:
        return floorf(3 * u) - 1;
    default:
        return 4 * u - 2;
    }
}

double *op_case_values(const OpCases *cs, const OpCaseVar *v, int64_t *n) {
    *n = expr_eval(type_count(cs->m->a, &v->var->type), cs->sym);
    double *x = NEWN(cs->m->a, double, (size_t)*n + 1);
    for (int64_t i = 0; i < *n; i++) x[i] = value(v->domain, (uint32_t)v->var->id, i);
    return x;
}

static void give_graph(const OpCases *cs, const OpGraph *x, const OpCaseSink *to) {
    Arena *a = cs->m->a;
    double *weight = NEWN(a, double, (size_t)x->n_edges + 1);
    double *kind = NEWN(a, double, (size_t)x->n_dst + 1);
    for (int64_t i = 0; i < x->n_edges; i++) weight[i] = value(POSITIVE, 1000, i);
    for (int64_t i = 0; i < x->n_dst; i++) kind[i] = (double)(i % (N_CAT + 1)) - 1;
    to->edges(to->user, x->edge, x->n_edges, x->from, x->to);
    to->column(to->user, x->weight, x->n_edges, weight);
    to->column(to->user, x->kind, x->n_dst, kind);
}

/* Row r has the columns r, r + 3, r + 6, ..; row 1 is empty. */
static void give_csr(const OpCases *cs, const OpCaseSink *to, int64_t rows) {
    int64_t ptr[64] = {0};
    int32_t col[256];
    double v[256];
    for (int64_t r = 0, n = 0; r < rows; ptr[++r] = n)
        for (int64_t c = r; c < N_FEATURES && r != 1; c += 3, n++) {
            col[n] = (int32_t)c;
            v[n] = value(ANY, 2000, n);
        }
    to->csr(to->user, cs->csr, ptr, col, v);
}

void op_cases_give(const OpCases *cs, const OpCaseSink *to) {
    for (int i = 0; i < cs->graphs.n; i++) {
        to->size(to->user, cs->graphs.v[i].src, cs->graphs.v[i].n_src);
        to->size(to->user, cs->graphs.v[i].dst, cs->graphs.v[i].n_dst);
    }
    to->size(to->user, cs->pool.node, cs->pool.n_nodes);
    to->size(to->user, cs->pool.graph, cs->pool.n_graphs);
    to->members(to->user, cs->pool.node, cs->pool.of);
    to->size(to->user, cs->n_cat, N_CAT);
    to->size(to->user, cs->feature, N_FEATURES);
    for (int i = 0; i < cs->graphs.n; i++) give_graph(cs, &cs->graphs.v[i], to);
    give_csr(cs, to, *size_of((OpCases *)cs, cs->csr->space));
    to->input(to->user, "lr", 0.125);
    for (int i = 0; i < cs->vars.n; i++) {
        int64_t n;
        double *x = op_case_values(cs, &cs->vars.v[i], &n);
        to->var(to->user, cs->vars.v[i].var, n, x);
    }
}

/* ---- for the interpreter -------- */

static void give_size(void *in, const Space *s, int64_t n) {
    interp_set_size(in, s, n);
}
static void give_edges(void *in, const Space *e, int64_t n, const int32_t *src,
                       const int32_t *dst) {
    interp_set_edges(in, e, n, src, dst);
}
static void give_column(void *in, const Column *c, int64_t n, const double *v) {
    (void)n;
    interp_set_column(in, c, v);
}
static void give_entries(void *in, const Column *c, const int64_t *ptr, const int32_t *col,
                         const double *v) {
    interp_set_csr(in, c, ptr, col, v);
}
static void give_var(void *in, const Var *v, int64_t n, const double *x) {
    (void)n;
    interp_set_var(in, v, x);
}
static void give_input(void *in, const char *name, double x) {
    interp_set_input(in, name, x);
}
static void give_members(void *in, const Space *node, const int32_t *graph) {
    interp_set_graphs(in, node, graph);
}

Interp *op_cases_interp(Ctx *c, const OpCases *cs) {
    Interp *in = interp_new(c, cs->m);
    OpCaseSink to = {in,           give_size, give_edges, give_column,
                     give_entries, give_var,  give_input, give_members};
    interp_set_seed(in, 42, 7);
    op_cases_give(cs, &to);
    interp_run(in, func_of(cs->m, PHASE_LOAD));
    return in;
}
