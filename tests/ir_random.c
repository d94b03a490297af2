#include "ir_random.h"

#include <math.h>
#include <string.h>

#include "ir_data.h"

enum { N_EDGES = 11, N_NODES = 5, N_DIMS = 12, MAX_VALUES = 96, MAX_ELEMENTS = 5000, INEXACT = 99 };

struct RandomSpaces {
    Module *m;
    Space *node[N_NODES], *edge[N_EDGES], *graph;
    Space *dim[N_DIMS]; /* 1, 7, 16, 33, heads, heads*7, 7+16, another 16, wide ones, open ones */
    Space *cat;
    VEC(Column *) floats;
    Column *csr, *kind, *label;
    VEC(Map *) maps;
    int n_states;
};

enum { W1, W7, W16, W33, HEADS, HEADS7, W23, V16, N_CONST_DIMS = V16 + 3 };

/* |v| <= bound; every element is a multiple of 2^-bits, or bits = INEXACT */
typedef struct {
    Op *op;
    double bound;
    int bits;
    bool used;
} Value;

typedef struct {
    RandomSpaces *s;
    Module *m;
    Builder b;
    const RandomCase *c;
    Value v[MAX_VALUES];
    int n, n_items, n_random, n_params;
    uint64_t state;
} Gen;

/* ---- spaces ------------------------------------------------------------------------------ */

static void add_relations(RandomSpaces *s) {
    Module *m = s->m;
    Span at = {0};
    Space *c = space_edge(m, "cites", s->node[0], s->node[0], at);
    Space *back = space_derived(m, REL_REVERSE, c, NULL, NULL, at);
    Space *all[N_EDGES] = {c,
                           space_edge(m, "writes", s->node[1], s->node[0], at),
                           space_edge(m, "likes", s->node[1], s->node[2], at),
                           space_edge(m, "void", s->node[3], s->node[0], at),
                           space_derived(m, REL_SELF_LOOPS, c, NULL, NULL, at),
                           back,
                           space_derived(m, REL_UNDIRECTED, c, NULL, NULL, at),
                           space_derived(m, REL_UNION, c, back, NULL, at),
                           space_derived(m, REL_WHERE, c, NULL, "keep", at),
                           space_edge(m, "many", s->node[4], s->node[0], at),
                           space_edge(m, "back", s->node[1], s->node[4], at)};
    memcpy(s->edge, all, sizeof all);
    for (int i = 0; i < N_EDGES; i++) {
        vec_push(m->a, &s->maps, map_src(m, all[i]));
        vec_push(m->a, &s->maps, map_dst(m, all[i]));
        if (all[i]->rel != REL_BASE) vec_push(m->a, &s->maps, map_orig(m, all[i], 0));
    }
}

static Column *add_float(RandomSpaces *s, Space *on, const char *name, int n, Space *const *dims) {
    Column *c = column_new(s->m, COL_FLOAT, on, name, n, dims, NULL, (Span){0});
    vec_push(s->m->a, &s->floats, c);
    return c;
}

static void add_columns(RandomSpaces *s) {
    Module *m = s->m;
    Span at = {0};
    Space *open = s->dim[N_DIMS - 1] = space_dim(m, "F", NULL, at);
    add_float(s, s->node[0], "x", 1, &s->dim[W7]);
    add_float(s, s->node[1], "x", 1, &s->dim[W33]);
    add_float(s, s->node[2], "y", 0, NULL);
    add_float(s, s->edge[0], "weight", 0, NULL);
    add_float(s, s->edge[1], "z", 1, &s->dim[W16]);
    add_float(s, s->graph, "t", 1, &s->dim[W1]);
    s->csr = column_new(m, COL_CSR, s->node[0], "words", 1, &open, NULL, at);
    s->kind = column_new(m, COL_CAT, s->node[2], "kind", 0, NULL, s->cat, at);
    s->label = column_new(m, COL_CLASS, s->node[0], "label", 0, NULL, s->cat, at);
    vec_push(m->a, &s->maps, map_col(m, s->kind));
    vec_push(m->a, &s->maps, map_col(m, s->label));
}

static void add_load(RandomSpaces *s) {
    Builder b = {.m = s->m, .f = func_new(s->m, "load")};
    Op *weight = b_data(&b, s->floats.v[3]);
    b_output(&b, "keep", b_binary(&b, OP_LT, b_const(&b, DT_F32, -0.5), weight));
}

RandomSpaces *ir_random_spaces(Module *m) {
    static const struct {
        const char *name;
        int size;
    } dims[N_CONST_DIMS] = {{"w1", 1},   {"w7", 7},   {"w16", 16}, {"w33", 33}, {"h", 3},
                            {"hw7", 21}, {"w23", 23}, {"v16", 16}, {"w70", 70}, {"w131", 131}};
    static const char *const nodes[N_NODES] = {"paper", "author", "hub", "none", "large"};
    RandomSpaces *s = NEW(m->a, RandomSpaces);
    Span at = {0};
    s->m = m;
    s->graph = space_graph(m, "mol", at);
    for (int i = 0; i < N_NODES; i++) s->node[i] = space_node(m, nodes[i], at);
    s->node[1]->graph = s->graph;
    for (int i = 0; i < N_CONST_DIMS; i++)
        s->dim[i] = space_dim(m, dims[i].name, expr_const(m->a, dims[i].size), at);
    s->cat = s->dim[N_CONST_DIMS] = space_dim(m, "K", NULL, at);
    add_relations(s);
    add_columns(s);
    vec_push(m->a, &s->maps, map_graph(m, s->node[1]));
    add_load(s);
    return s;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static uint32_t draw(Gen *g, uint32_t bound) {
    g->state = rt_splitmix64(g->state);
    return (uint32_t)((g->state >> 33) % bound);
}

static bool is_f32(const Value *v) {
    return v->op->type.dt == DT_F32 && v->op->type.layout == LAYOUT_DENSE;
}

/* A value of the element type, the latest more often; NULL: there is none. */
static Value *choose(Gen *g, DType dt) {
    for (int tries = 0; tries < 20 && g->n; tries++) {
        uint32_t back = draw(g, (uint32_t)g->n);
        if (draw(g, 3)) back = draw(g, back + 1);
        Value *v = &g->v[g->n - 1 - (int)back];
        if (v->op->type.dt == dt && v->op->type.layout == LAYOUT_DENSE) return v;
    }
    return NULL;
}

static Space *any_dim(Gen *g) {
    return g->s->dim[draw(g, N_DIMS)];
}

static Space *any_rows(Gen *g) {
    uint32_t k = draw(g, N_NODES + 3);
    return k < N_NODES ? g->s->node[k] : k == N_NODES ? g->s->graph : g->s->edge[k - N_NODES - 1];
}

static int64_t elements(const Gen *g, const Type *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= ir_data_size(g->m, t->dim[i]);
    return n;
}

static Type any_type(Gen *g) {
    Type t = type_scalar(DT_F32);
    if (draw(g, 5)) t.dim[t.rank++] = any_rows(g);
    for (uint32_t more = draw(g, 3); more > 0; more--) {
        Space *d = any_dim(g);
        if (!type_has(&t, d)) t.dim[t.rank++] = d;
    }
    if (t.rank > 1 && !draw(g, 4)) {
        Space *first = t.dim[0];
        t.dim[0] = t.dim[t.rank - 1];
        t.dim[t.rank - 1] = first;
    }
    while (elements(g, &t) > MAX_ELEMENTS) t.rank--;
    return t;
}

/* ---- adding values --------------------------------------------------------------------------- */

static bool is_cut(const Gen *g, int item) {
    for (int i = 0; i < g->c->n_cuts; i++)
        if (g->c->cut[i] == item) return true;
    return false;
}

/* Parameters live on loaded spaces: the trainer initialises them before anything runs. */
static bool is_loaded(const Type *t) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i]->kind == SP_EDGE && t->dim[i]->rel != REL_BASE) return false;
    return true;
}

static Op *variable(Gen *g, VarKind kind, const char *stem, Type t) {
    StrBuf path = sb_new(g->m->a);
    sb_puts(&path, stem);
    for (int i = 0; i < t.rank; i++) sb_printf(&path, ".%s", t.dim[i]->name);
    Var *v = var_find(g->m, path.s);
    if (!v) v = var_new(g->m, kind, path.s, t, (Init){.kind = INIT_CONST}, (Span){0});
    return b_var(&g->b, v);
}

static void put(Gen *g, Op *op, double bound, int bits) {
    int item = g->n_items++;
    if (g->n == MAX_VALUES) return;
    bool can = op->type.dt == DT_F32 && op->type.layout == LAYOUT_DENSE && is_loaded(&op->type);
    if (is_cut(g, item) && can && op->kind != OP_VAR) op = variable(g, VAR_PARAM, "p0", op->type);
    bool exact = !g->c->smooth && bits < INEXACT && bound > 0 && log2(bound) + bits <= 23;
    g->v[g->n++] = (Value){.op = op, .bound = fmax(bound, 1e-3), .bits = exact ? bits : INEXACT};
}

static bool is_exact(const Value *v) {
    return v->bits < INEXACT;
}

static int finer(const Value *x, const Value *y) {
    return x->bits > y->bits ? x->bits : y->bits;
}

/* Now and then the model has a word on fusion. */
static OpAsk hint_for(const Gen *g, OpKind k) {
    int i = (5 * g->n + (int)k) % 13;
    return i == 0 ? ASK_STORE : i == 1 ? ASK_FUSE : ASK_NOTHING;
}

/* The op if it is well-typed and not too large. */
static Op *build(Gen *g, Op proto) {
    Op typed = proto;
    if (op_infer(g->m, &typed) || typed.type.rank > 4) return NULL;
    if (elements(g, &typed.type) > MAX_ELEMENTS) return NULL;
    if (typed.type.rank) proto.ask = hint_for(g, proto.kind);
    return b_op(&g->b, &proto);
}

/* Brings a value back to where functions are tame. */
static Op *tame(Gen *g, Value *x, double limit) {
    x->used = true;
    if (x->bound <= limit) return x->op;
    Op *scale = b_const(&g->b, DT_F32, limit / x->bound);
    return b_binary(&g->b, OP_MUL, x->op, scale);
}

static Op *positive(Gen *g, Value *x) {
    Op *y = b_unary(&g->b, OP_ABS, tame(g, x, 8));
    return b_binary(&g->b, OP_ADD, y, b_const(&g->b, DT_F32, 0.5));
}

/* ---- kinds of items -------- */

static void gen_source(Gen *g) {
    RandomSpaces *s = g->s;
    Type t = any_type(g);
    static const double plain[] = {0, 1, -1, 0.5, 2};
    uint32_t k = draw(g, 13);
    if (k == 12) {
        double v = plain[draw(g, COUNT(plain))];
        Op *c = b_const(&g->b, DT_F32, v);
        put(g, draw(g, 2) ? b_copy(&g->b, c, t) : c, fabs(v), 1);
    } else if (k < 5 && is_loaded(&t)) {
        Op *v = variable(g, VAR_PARAM, draw(g, 2) ? "p0" : "p1", t);
        put(g, v, 2, 4);
    } else if (k < 8) {
        put(g, b_data(&g->b, s->floats.v[draw(g, (uint32_t)s->floats.n)]), 2, 4);
    } else if (k < 10) {
        put(g, b_random(&g->b, g->n_random++, t), 1, 24);
    } else if (k == 10) {
        Map *m = s->maps.v[draw(g, (uint32_t)s->maps.n)];
        if (draw(g, 2))
            put(g, b_valid(&g->b, m), 1, 0);
        else
            put(g, b_index(&g->b, m), 40, 0);
    } else {
        Space *d = draw(g, 2) ? any_dim(g) : any_rows(g);
        if (draw(g, 2))
            put(g, b_iota(&g->b, d), 40, 0);
        else
            put(g, b_size(&g->b, d), 64, 0);
    }
}

static void gen_smooth(Gen *g, Value *x) {
    static const OpKind any[] = {OP_TANH, OP_SIGMOID, OP_ERF, OP_SIN, OP_COS};
    static const OpKind grows[] = {OP_EXP, OP_EXPM1};
    static const OpKind above[] = {OP_LOG, OP_LOG1P, OP_SQRT, OP_RSQRT};
    switch (draw(g, 3)) {
    case 0:
        put(g, b_unary(&g->b, any[draw(g, COUNT(any))], tame(g, x, 8)), 1, INEXACT);
        break;
    case 1:
        put(g, b_unary(&g->b, grows[draw(g, COUNT(grows))], tame(g, x, 2)), 8, INEXACT);
        break;
    default:
        put(g, b_unary(&g->b, above[draw(g, COUNT(above))], positive(g, x)), 3, INEXACT);
    }
}

static void gen_cast(Gen *g, Value *x) {
    static const DType to[] = {DT_I32, DT_F64, DT_F16, DT_BF16, DT_I64, DT_F64};
    DType dt = to[draw(g, COUNT(to))];
    if (!is_exact(x) || x->bound > 1000) return;
    x->used = true;
    Op *y = b_cast(&g->b, x->op, dt);
    bool whole = dt == DT_I32 || dt == DT_I64;
    if (draw(g, 2) && (dt == DT_I32 || dt == DT_F64)) y = b_binary(&g->b, OP_ADD, y, y);
    put(g, b_cast(&g->b, y, DT_F32), 2 * x->bound, whole ? 0 : dt == DT_F64 ? x->bits : INEXACT);
}

static void gen_unary(Gen *g) {
    Value *x = choose(g, DT_F32);
    if (!x) return;
    double bound = x->bound;
    int bits = x->bits;
    Type t = x->op->type;
    switch (draw(g, 9)) {
    case 0:
        put(g, b_unary(&g->b, OP_NEG, x->op), bound, bits);
        break;
    case 1:
        put(g, b_unary(&g->b, OP_ABS, x->op), bound, bits);
        break;
    case 2:
        if (!is_exact(x)) return;
        put(g, b_unary(&g->b, OP_FLOOR, x->op), bound + 1, 0);
        break;
    case 3:
        put(g, b_detach(&g->b, x->op), bound, bits);
        break;
    case 4:
        gen_cast(g, x);
        return;
    case 5:
        if (t.rank < 2) return;
        t.dim[0] = x->op->type.dim[t.rank - 1];
        t.dim[t.rank - 1] = x->op->type.dim[0];
        put(g, b_copy(&g->b, x->op, t), bound, bits);
        break;
    default:
        gen_smooth(g, x);
    }
    x->used = true;
}

static void gen_compare(Gen *g, Value *x, Value *y) {
    static const OpKind ops[] = {OP_LT, OP_LE, OP_EQ};
    if (!is_exact(x) || !is_exact(y)) return;
    Op *op = build(g, (Op){.kind = ops[draw(g, 3)], .n_in = 2, .in = (Op *[]){x->op, y->op}});
    if (op) put(g, op, 1, 0);
}

static void gen_arithmetic(Gen *g, Value *x, Value *y) {
    static const OpKind ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_MAX, OP_MIN, OP_MUL, OP_ADD};
    OpKind k = ops[draw(g, COUNT(ops))];
    bool jumps = k == OP_MAX || k == OP_MIN, exact = is_exact(x) && is_exact(y);
    if ((jumps && !exact) || x->bound * y->bound > 1e4) return;
    Op *op = build(g, (Op){.kind = k, .n_in = 2, .in = (Op *[]){x->op, y->op}});
    if (!op) return;
    x->used = y->used = true;
    if (k == OP_MUL)
        put(g, op, x->bound * y->bound, exact ? x->bits + y->bits : INEXACT);
    else
        put(g, op, x->bound + y->bound, exact ? finer(x, y) : INEXACT);
}

static void gen_binary(Gen *g) {
    Value *x = choose(g, DT_F32), *y = choose(g, DT_F32);
    if (!x || !y) return;
    Op *probe = build(g, (Op){.kind = OP_ADD, .n_in = 2, .in = (Op *[]){x->op, y->op}});
    if (!probe) return;
    op_remove(probe);
    switch (draw(g, 8)) {
    case 0:
        gen_compare(g, x, y);
        break;
    case 1:
        x->used = true;
        put(g, b_binary(&g->b, OP_DIV, x->op, positive(g, y)), 2 * x->bound, INEXACT);
        break;
    case 2:
        put(g, b_binary(&g->b, OP_POW, positive(g, x), tame(g, y, 2)), 80, INEXACT);
        break;
    default:
        gen_arithmetic(g, x, y);
    }
}

static void gen_select(Gen *g) {
    Value *c = choose(g, DT_I1), *x = choose(g, DT_F32), *y = choose(g, DT_F32);
    if (!c || !x || !y) return;
    Op *zero = draw(g, 3) ? NULL : b_const(&g->b, DT_F32, 0);
    Op *other = zero ? zero : y->op;
    Op *in[3] = {c->op, x->op, other};
    if (draw(g, 4) == 0) in[1] = other, in[2] = x->op;
    Op *op = build(g, (Op){.kind = OP_SELECT, .n_in = 3, .in = in});
    if (!op) return;
    x->used = y->used = true;
    bool exact = is_exact(x) && is_exact(y);
    put(g, op, fmax(x->bound, y->bound), exact ? finer(x, y) : INEXACT);
}

/* The category of a row against all of them. */
static void gen_one_hot(Gen *g) {
    Map *m = map_col(g->m, draw(g, 2) ? g->s->kind : g->s->label);
    Op *all = b_iota(&g->b, m->to), *own = b_index(&g->b, m);
    put(g, b_binary(&g->b, OP_EQ, own, all), 1, 0);
}

static void gen_logic(Gen *g) {
    if (draw(g, 4) == 0) {
        gen_one_hot(g);
        return;
    }
    Value *x = choose(g, DT_I1), *y = choose(g, DT_I1);
    if (!x || !y) return;
    Op *op = NULL;
    if (draw(g, 3) == 0)
        op = b_unary(&g->b, OP_NOT, x->op);
    else if (draw(g, 3) == 0)
        op = b_cast(&g->b, x->op, DT_F32);
    else
        op = build(
            g, (Op){.kind = draw(g, 2) ? OP_AND : OP_OR, .n_in = 2, .in = (Op *[]){x->op, y->op}});
    if (op) put(g, op, 1, 0);
}

static void gen_along_map(Gen *g) {
    Value *x = choose(g, DT_F32);
    for (int tries = 0; x && tries < 8; tries++) {
        Map *m = g->s->maps.v[draw(g, (uint32_t)g->s->maps.n)];
        RedKind r = (RedKind)draw(g, 3);
        Op *op = build(g, (Op){.kind = OP_GATHER, .map = m, .n_in = 1, .in = &x->op});
        bool gathered = op != NULL;
        if (r != RED_SUM && !is_exact(x) && draw(g, 2)) r = RED_SUM; /* ties have one cause */
        Op sum = {.kind = OP_SEGMENT, .map = m, .red = r, .n_in = 1, .in = &x->op};
        if (!op) op = build(g, sum);
        if (!op) continue;
        x->used = true;
        double n = gathered || r != RED_SUM ? 1 : (double)ir_data_size(g->m, m->from) + 1;
        put(g, op, n * x->bound, x->bits);
        return;
    }
}

static void gen_reduce(Gen *g) {
    Value *x = choose(g, DT_F32);
    if (!x || x->op->type.rank == 0) return;
    Type t = x->op->type;
    uint32_t at = draw(g, (uint32_t)t.rank), more = draw(g, 4);
    Op op = {.kind = OP_REDUCE, .red = (RedKind)draw(g, 3), .n_in = 1, .in = &x->op};
    op.over[op.n_over++] = t.dim[at];
    if (more == 0 && t.rank > 1) op.over[op.n_over++] = t.dim[(at + 1) % (uint32_t)t.rank];
    if (op.red != RED_SUM && !is_exact(x) && draw(g, 2)) op.red = RED_SUM;
    double n = 1;
    for (int i = 0; i < op.n_over && op.red == RED_SUM; i++)
        n *= (double)ir_data_size(g->m, op.over[i]) + 1;
    x->used = true;
    if (more == 3 && is_exact(x)) {
        op.kind = OP_ARGMAX;
        put(g, b_cast(&g->b, b_argmax(&g->b, x->op, t.dim[at]), DT_F32), 64, 0);
        return;
    }
    put(g, b_op(&g->b, &op), n * x->bound, x->bits);
}

/* All spaces of both; of the shared ones some are summed, one at least. */
static Type product_type(Gen *g, const Type *x, const Type *y, double *n) {
    Type t = type_scalar(DT_F32);
    Space *all[2 * MAX_RANK];
    int n_all = 0, summed = 0;
    for (int i = 0; i < x->rank; i++) all[n_all++] = x->dim[i];
    for (int i = 0; i < y->rank; i++)
        if (!type_has(x, y->dim[i])) all[n_all++] = y->dim[i];
    for (int i = 0; i < n_all; i++) {
        bool shared = type_has(x, all[i]) && type_has(y, all[i]);
        if (shared && (summed == 0 || draw(g, 2))) {
            summed++;
            *n *= (double)ir_data_size(g->m, all[i]) + 1;
        } else if (t.rank < 4) {
            t.dim[t.rank++] = all[i];
        }
    }
    for (int i = t.rank - 1; i > 0 && !draw(g, 3); i--) {
        Space *s = t.dim[i];
        t.dim[i] = t.dim[i - 1];
        t.dim[i - 1] = s;
    }
    return t;
}

static void gen_contract(Gen *g) {
    for (int tries = 0; tries < 6; tries++) {
        Value *x = choose(g, DT_F32), *y = choose(g, DT_F32);
        double n = 1;
        if (!x || !y || x->bound * y->bound > 1e3) continue;
        Type t = product_type(g, &x->op->type, &y->op->type, &n);
        if (n == 1) continue;
        Op *op =
            build(g, (Op){.kind = OP_CONTRACT, .type = t, .n_in = 2, .in = (Op *[]){x->op, y->op}});
        if (!op) continue;
        x->used = y->used = true;
        bool exact = is_exact(x) && is_exact(y);
        put(g, op, n * x->bound * y->bound, exact ? x->bits + y->bits : INEXACT);
        return;
    }
}

/* A product of a value with a new parameter: a linear layer. */
static void gen_linear(Gen *g) {
    Value *x = choose(g, DT_F32);
    if (!x || x->op->type.rank == 0 || x->bound > 100) return;
    Type t = x->op->type;
    int at = (int)draw(g, (uint32_t)t.rank);
    Space *in = t.dim[at], *out = any_dim(g);
    if (in->kind != SP_DIM || type_has(&t, out)) return;
    Type w = type_make(DT_F32, 2, draw(g, 2) ? (Space *[]){in, out} : (Space *[]){out, in});
    t.dim[at] = out;
    if (elements(g, &t) > MAX_ELEMENTS) return;
    x->used = true;
    Op *weight = variable(g, VAR_PARAM, "p0", w);
    double n = (double)ir_data_size(g->m, in) + 1;
    put(g, b_contract(&g->b, x->op, weight, t), 2 * n * x->bound,
        is_exact(x) ? x->bits + 4 : INEXACT);
}

static void gen_view(Gen *g) {
    Value *x = choose(g, DT_F32);
    if (!x) return;
    Type t = x->op->type, from = t;
    Space *const *d = g->s->dim;
    if (draw(g, 3) == 0) { /* an index of one value comes or goes */
        int at = type_find(&t, d[W1]);
        if (at < 0) t.dim[t.rank++] = d[W1];
        for (int k = at; at >= 0 && k + 1 < t.rank; k++) t.dim[k] = t.dim[k + 1];
        t.rank -= at >= 0;
    }
    for (int i = 0; i < from.rank && type_eq(&t, &from); i++) {
        if (from.dim[i] == d[W16] || from.dim[i] == d[V16])
            t.dim[i] = from.dim[i] == d[W16] ? d[V16] : d[W16];
        else if (from.dim[i] == d[HEADS7] && from.rank < 4 && !type_has(&from, d[HEADS]) &&
                 !type_has(&from, d[W7])) {
            for (int k = t.rank++; k > i; k--) t.dim[k] = t.dim[k - 1];
            t.dim[i] = d[HEADS], t.dim[i + 1] = d[W7];
            break;
        }
        if (i + 1 < from.rank && from.dim[i] == d[HEADS] && from.dim[i + 1] == d[W7] &&
            !type_has(&from, d[HEADS7])) {
            t.dim[i] = d[HEADS7];
            for (int k = i + 1; k + 1 < t.rank; k++) t.dim[k] = t.dim[k + 1];
            t.rank--;
            break;
        }
    }
    for (int i = 0; i < t.rank; i++)
        for (int k = 0; k < i; k++)
            if (t.dim[i] == t.dim[k]) return;
    if (type_eq(&t, &from)) return;
    x->used = true;
    put(g, b_view(&g->b, x->op, t), x->bound, x->bits);
}

static void gen_concat(Gen *g) {
    Value *x = choose(g, DT_F32);
    Space *const *d = g->s->dim;
    if (!x) return;
    Op proto = {.kind = OP_SLICE, .n_in = 1, .in = &x->op, .n_over = 2};
    proto.over[0] = d[draw(g, 2) ? W23 : W33];
    proto.over[1] = d[draw(g, 2) ? W7 : W16];
    proto.off = expr_const(g->m->a, draw(g, 8));
    Op *op = build(g, proto);
    double bound = x->bound;
    int bits = x->bits;
    for (int tries = 0; !op && tries < 6; tries++) {
        Value *y = choose(g, DT_F32);
        Op join = {.kind = OP_CONCAT, .n_in = 2, .in = (Op *[]){x->op, y->op}, .n_over = 3};
        join.over[0] = d[W7], join.over[1] = d[W16], join.over[2] = d[W23];
        op = build(g, join);
        bound = fmax(x->bound, y->bound);
        bits = finer(x, y);
        if (op) y->used = true;
    }
    if (!op) return;
    x->used = true;
    put(g, op, bound, bits);
}

static void gen_rank(Gen *g) {
    Value *x = choose(g, DT_F32), *mask = choose(g, DT_I1);
    if (!x || !mask || !is_exact(x) || x->op->type.rank == 0) return;
    Op proto = {.kind = OP_RANK, .n_in = 2, .in = (Op *[]){x->op, mask->op}, .n_over = 1};
    proto.imm = 0.5 * draw(g, 3);
    proto.over[0] = x->op->type.dim[draw(g, (uint32_t)x->op->type.rank)];
    Op *op = build(g, proto);
    if (op) put(g, op, 64, 1);
}

static Type T1(Space *s) {
    return type_make(DT_F32, 1, &s);
}

/* sum |row| + 0.5 of a CSR value */
static Op *positive_rows(Gen *g, Op *x) {
    Op *sum = b_reduce(&g->b, RED_SUM, b_unary(&g->b, OP_ABS, x), 1, &x->type.dim[1]);
    return b_binary(&g->b, OP_ADD, sum, b_const(&g->b, DT_F32, 0.5));
}

/* x W, W x', or x' y */
static void gen_csr_product(Gen *g, Op *x, Space *out) {
    Space *n = x->type.dim[0], *f = x->type.dim[1];
    bool rows = draw(g, 3) == 0, first = draw(g, 2);
    Space *sum = rows ? n : f, *stays = rows ? f : n;
    Type other = type_make(DT_F32, 2, draw(g, 2) ? (Space *[]){sum, out} : (Space *[]){out, sum});
    Type t = type_make(DT_F32, 2, draw(g, 4) ? (Space *[]){stays, out} : (Space *[]){out, stays});
    Op *w = variable(g, VAR_PARAM, "p0", other);
    put(g, first ? b_contract(&g->b, x, w, t) : b_contract(&g->b, w, x, t), 160, INEXACT);
}

/* CSR features: scaled, dropped out, multiplied by a parameter. */
static void gen_csr(Gen *g) {
    Builder *b = &g->b;
    Column *c = g->s->csr;
    Space *f = c->type.dim[1], *out = any_dim(g);
    if (out == f) out = g->s->dim[W7];
    Op *x = b_data(b, c);
    if (draw(g, 2)) {
        Op *keep = b_binary(b, OP_LE, b_const(b, DT_F32, 0.25),
                            b_random(b, g->n_random++, type_make(DT_F32, 2, c->type.dim)));
        x = b_select(b, keep, b_binary(b, OP_MUL, x, b_const(b, DT_F32, 2)), b_const(b, DT_F32, 0));
    }
    if (!draw(g, 4)) x = b_unary(b, OP_TANH, x);
    if (!draw(g, 4)) x = b_binary(b, OP_MUL, x, variable(g, VAR_PARAM, "p1", T1(f)));
    if (!draw(g, 4)) x = b_binary(b, OP_DIV, x, positive_rows(g, x));
    switch (draw(g, 5)) {
    case 0:
        put(g, b_copy(b, x, type_make(DT_F32, 2, c->type.dim)), 8, INEXACT);
        break;
    case 1:
        put(g, b_reduce(b, RED_SUM, x, 1, &c->type.dim[draw(g, 2)]), 80, INEXACT);
        break;
    default:
        gen_csr_product(g, x, out);
    }
}

static void assign(Gen *g, Var *v, Op *x) {
    int item = g->n_items++;
    if (!is_cut(g, item)) b_assign(&g->b, v, x);
}

static Op *state(Gen *g, const char *func, Type t) {
    return variable(g, VAR_STATE, arena_printf(g->m->a, "s%d_%s", g->s->n_states++, func), t);
}

/* A state that is read, changed and assigned; two that are exchanged; one that takes a
 * value as it is. */
static void gen_state(Gen *g, const char *func) {
    Value *x = choose(g, DT_F32);
    if (!x || !is_loaded(&x->op->type)) return;
    Op *old = state(g, func, x->op->type);
    Op *half = b_const(&g->b, DT_F32, 0.5);
    put(g, old, 2, 4);
    switch (draw(g, 4)) {
    case 0: {
        Op *other = state(g, func, x->op->type);
        put(g, other, 2, 4);
        assign(g, old->var, other);
        assign(g, other->var, old);
        break;
    }
    case 1:
        assign(g, old->var, x->op);
        break;
    default: {
        Op *sum = b_binary(&g->b, OP_ADD, b_binary(&g->b, OP_MUL, old, half), x->op);
        put(g, sum, x->bound + 1, INEXACT);
        assign(g, old->var, sum);
    }
    }
}

static void gen_item(Gen *g, const char *func) {
    switch (draw(g, 26)) {
    case 24:
    case 25:
        gen_view(g);
        break;
    case 0:
    case 1:
    case 2:
        gen_source(g);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        gen_unary(g);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        gen_binary(g);
        break;
    case 11:
        gen_select(g);
        break;
    case 12:
        gen_logic(g);
        break;
    case 13:
    case 14:
    case 15:
    case 16:
        gen_along_map(g);
        break;
    case 17:
        gen_reduce(g);
        break;
    case 18:
        gen_contract(g);
        break;
    case 19:
        gen_linear(g);
        break;
    case 20:
        gen_view(g);
        break;
    case 21:
        gen_concat(g);
        break;
    case 22:
        draw(g, 2) ? gen_csr(g) : gen_rank(g);
        break;
    default:
        gen_state(g, func);
    }
}

/* ---- a function -------- */

static Op *term(Gen *g, const Value *v) {
    Op *r = b_random(&g->b, g->n_random++, v->op->type);
    Op *each = b_binary(&g->b, OP_MUL, v->op, r);
    if (v->bound > 4) each = b_binary(&g->b, OP_MUL, each, b_const(&g->b, DT_F32, 4 / v->bound));
    if (each->type.rank == 0) return each;
    return b_reduce(&g->b, RED_SUM, each, each->type.rank, each->type.dim);
}

/* Every value that nothing uses, up to eight of them, is part of the loss; some are
 * outputs as well, and so are some that are used. */
static void finish(Gen *g) {
    Op *loss = NULL;
    int n_terms = 0;
    for (int i = g->n - 1; i >= 0; i--) {
        const Value *v = &g->v[i];
        bool shown = draw(g, 6) == 0, wanted = is_f32(v) && !v->used && n_terms < 8;
        int item = g->n_items++;
        if (is_cut(g, item)) continue;
        if (shown && v->op->type.layout == LAYOUT_DENSE)
            b_output(&g->b, arena_printf(g->m->a, "y%d", i), v->op);
        if (!wanted) continue;
        Op *t = term(g, v);
        loss = loss ? b_binary(&g->b, OP_ADD, loss, t) : t;
        n_terms++;
    }
    b_loss(&g->b, loss ? loss : b_const(&g->b, DT_F32, 0));
}

Func *ir_random_func(RandomSpaces *s, const RandomCase *c, const char *name, int *n_items) {
    Gen *g = NEW(s->m->a, Gen);
    *g = (Gen){.s = s, .m = s->m, .c = c, .state = c->seed};
    g->b = (Builder){.m = s->m, .f = func_new(s->m, name)};
    s->n_states = 0;
    for (int i = 0; i < 3; i++) gen_source(g);
    for (uint32_t left = 4 + draw(g, 40); left > 0; left--) gen_item(g, name);
    finish(g);
    *n_items = g->n_items;
    return g->b.f;
}
