/* One kernel: a comment, its signature, its statements. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* An axis whose index is 0 and is not written. */
static bool is_one(const Expr *e) {
    int64_t n;
    return expr_is_const(e, &n) && n == 1;
}

/* ---- what is needed ------------------------------------------------------------------- */
/* Registers are defined before they are used, so walking backwards sees users first. */
static void mark_use(CuFn *f, const LReg *r) {
    if (r) f->used[r->id] = true;
}

static void mark_stmt(CuFn *f, const LStmt *s);

static void mark_block(CuFn *f, const LStmt *s) {
    if (!s) return;
    mark_block(f, s->next);
    mark_stmt(f, s);
}

static void mark_stmt(CuFn *f, const LStmt *s) {
    bool value = s->kind == L_LET || s->kind == L_LOAD;
    if (value && !f->used[s->dst->id]) return;
    for (int i = 0; s->kind == L_LET && i < s->n_arg; i++) mark_use(f, s->arg[i]);
    bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
    for (int i = 0; access && i < s->buf->rank; i++)
        if (!is_one(s->buf->dim[i])) mark_use(f, s->idx[i]);
    if (access && s->buf->kind == LB_LOCAL) f->local_used[s->buf->id] = true;
    if (s->kind == L_STORE || s->kind == L_ACC) mark_use(f, s->src);
    if (s->kind == L_IF) mark_use(f, s->cond);
    if (s->kind == L_FOR && s->range != LR_EXTENT) mark_use(f, s->at);
    if (s->kind == L_FOR || s->kind == L_IF) mark_block(f, s->body);
}

/* ---- memory ------------------------------------------------------------------------------ */
/* Row-major; an axis of extent 1 has index 0. */
static const char *offset(CuFn *f, const LBuf *b, LReg *const *idx) {
    const char *at = NULL;
    for (int i = 0; i < b->rank; i++) {
        if (is_one(b->dim[i])) continue;
        const char *x = f->reg[idx[i]->id];
        if (!at)
            at = x;
        else
            at = arena_printf(f->a, "%s%s%s * %s + %s", strchr(at, ' ') ? "(" : "", at,
                              strchr(at, ' ') ? ")" : "", cu_expr(f, b->dim[i]), x);
    }
    return at ? at : "0";
}

static const char *element(CuFn *f, const LStmt *s) {
    const LBuf *b = s->buf;
    if (b->kind != LB_LOCAL)
        return arena_printf(f->a, "%s[%s]", f->buf[b->id], offset(f, b, s->idx));
    if (b->rank == 0) return f->local[b->id];
    return arena_printf(f->a, "%s[%s]", f->local[b->id], offset(f, b, s->idx));
}

/* Local arrays hold values as registers do. */
static const char *loaded(CuFn *f, const LBuf *b, const char *at) {
    if (b->kind == LB_LOCAL) return at;
    if (b->dt == DT_F16 || b->dt == DT_BF16) return arena_printf(f->a, "gn_load(%s)", at);
    return b->dt == DT_I1 ? arena_printf(f->a, "%s != 0", at) : at;
}

static void put(CuFn *f, const LBuf *b, const char *at, const char *v) {
    bool half = b->dt == DT_F16 || b->dt == DT_BF16;
    if (b->kind != LB_LOCAL && half)
        cu_line(f, "gn_store(%s, %s);", at, v);
    else
        cu_line(f, "%s = %s;", at, v);
}

static void accumulate(CuFn *f, const LStmt *s) {
    const char *at = element(f, s), *old = loaded(f, s->buf, at);
    if (strchr(old, ' ')) old = arena_printf(f->a, "(%s)", old);
    put(f, s->buf, at, cu_combine(f, s->red, s->buf->dt, old, f->reg[s->src->id]));
}

static void local(CuFn *f, const LBuf *b) {
    int64_t n = 1, extent;
    if (!f->local_used[b->id]) return;
    for (int i = 0; i < b->rank; i++)
        if (expr_is_const(b->dim[i], &extent)) n *= extent;
    if (b->rank == 0)
        cu_line(f, "%s %s;", cu_type(b->dt), f->local[b->id]);
    else
        cu_line(f, "%s %s[%lld];", cu_type(b->dt), f->local[b->id], (long long)(n ? n : 1));
}

/* ---- loops --------------------------------------------------------------------------------- */
static void block(CuFn *f, const LStmt *s);

static void open_segment(CuFn *f, const LStmt *s) {
    const char *v = f->reg[s->var->id], *ptr = f->buf[s->ptr->id], *at = f->reg[s->at->id];
    cu_line(f, "const int64_t gn_end_%d = %s[%s + 1];", s->var->id, ptr, at);
    cu_line(f, "for (int64_t %s = %s[%s]; %s < gn_end_%d; %s++) {", v, ptr, at, v, s->var->id, v);
    f->depth++;
}

static void open_chunk(CuFn *f, const LStmt *s) {
    const char *v = f->reg[s->var->id], *n = cu_expr(f, s->extent), *at = f->reg[s->at->id];
    int id = s->var->id;
    cu_line(f, "const int64_t gn_len_%d = gn_ceildiv(%s, %s);", id, n, cu_expr(f, s->n_chunks));
    cu_line(f, "const int64_t gn_end_%d = gn_min64((%s + 1) * gn_len_%d, %s);", id, at, id, n);
    cu_line(f, "for (int64_t %s = %s * gn_len_%d; %s < gn_end_%d; %s++) {", v, at, id, v, id, v);
    f->depth++;
}

static void loop(CuFn *f, const LStmt *s) {
    const char *v = f->reg[s->var->id];
    if (s->range == LR_SEGMENT) {
        open_segment(f, s);
    } else if (s->range == LR_CHUNK) {
        open_chunk(f, s);
    } else {
        if (s->sched.unroll) cu_line(f, "#pragma unroll");
        cu_line(f, "for (int64_t %s = 0; %s < %s; %s++) {", v, v, cu_expr(f, s->extent), v);
        f->depth++;
    }
    block(f, s->body);
    f->depth--;
    cu_line(f, "}");
}

static void statement(CuFn *f, const LStmt *s) {
    switch (s->kind) {
    case L_FOR:
        loop(f, s);
        break;
    case L_IF:
        cu_line(f, "if (%s) {", f->reg[s->cond->id]);
        f->depth++;
        block(f, s->body);
        f->depth--;
        cu_line(f, "}");
        break;
    case L_LET:
        if (f->used[s->dst->id])
            cu_line(f, "const %s %s = %s;", cu_type(s->dst->dt), f->reg[s->dst->id], cu_let(f, s));
        break;
    case L_LOAD:
        if (f->used[s->dst->id])
            cu_line(f, "const %s %s = %s;", cu_type(s->dst->dt), f->reg[s->dst->id],
                    loaded(f, s->buf, element(f, s)));
        break;
    case L_STORE:
        put(f, s->buf, element(f, s), f->reg[s->src->id]);
        break;
    case L_ACC:
        accumulate(f, s);
        break;
    case L_LOCAL:
        local(f, s->buf);
        break;
    }
}

static void block(CuFn *f, const LStmt *s) {
    for (; s; s = s->next) statement(f, s);
}

static void pure_until(CuFn *f, const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next) statement(f, s);
}

/* ---- the function ------------------------------------------------------------------------------
 */
/* v, h and f from one index: the last varies fastest. */
static void split_index(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *rest = "gn_i";
    for (int i = c->n_inner; i >= 0; i--) {
        const LStmt *l = i ? c->inner[i - 1] : c->parallel;
        const char *v = f->reg[l->var->id], *n = cu_expr(f, l->extent);
        bool last = i == 0;
        if (f->used[l->var->id] && last) cu_line(f, "const int64_t %s = %s;", v, rest);
        if (f->used[l->var->id] && !last) cu_line(f, "const int64_t %s = %s %% (%s);", v, rest, n);
        if (!last) rest = arena_printf(f->a, "%s / (%s)", rest, n);
    }
}

static void parallel_body(CuFn *f) {
    const CuSched *c = &f->sched;
    cu_line(f, "GN_ROWS(gn_i, gn_extent) {");
    f->depth++;
    split_index(f);
    const LStmt *s = c->parallel->body;
    for (int i = 0; i < c->n_inner; i++) {
        pure_until(f, s, c->inner[i]);
        s = c->inner[i]->body;
    }
    block(f, s);
    f->depth--;
    cu_line(f, "}");
}

static void comment_text(CuFn *f, const char *s) {
    StrBuf *b = &f->cu->b;
    for (; *s; s++) {
        sb_put(b, s, 1);
        if ((s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*')) sb_puts(b, " ");
        if (*s == '\n' && s[1]) sb_puts(b, " * ");
    }
}

/* One line of the model. */
static void comment_source(CuFn *f, Span at) {
    const Ctx *c = f->cu->c;
    if (!at.line || (int)at.file >= c->sources.n) return;
    const Source *src = &c->sources.v[at.file];
    const char *p = src->text;
    for (uint32_t line = 1; line < at.line && p; line++)
        if ((p = strchr(p, '\n'))) p++;
    size_t n = p ? strcspn(p, "\n") : 0;
    sb_printf(&f->cu->b, " * %s:%u: ", src->path, at.line);
    comment_text(f, n ? arena_strndup(f->a, p, n) : "");
    sb_puts(&f->cu->b, "\n");
}

static void comment(CuFn *f) {
    const LKernel *k = f->k;
    StrBuf text = sb_new(f->a);
    sb_puts(&f->cu->b, "/*\n");
    for (int i = 0; i < k->computes.n; i++) {
        Span at = k->computes.v[i]->span;
        bool said = false;
        for (int j = 0; j < i; j++) {
            Span other = k->computes.v[j]->span;
            said |= other.file == at.file && other.line == at.line;
        }
        if (!said) comment_source(f, at);
    }
    loop_print(&text, f->cu->plan->m, k);
    sb_puts(&f->cu->b, " * ");
    comment_text(f, text.s);
    sb_puts(&f->cu->b, " */\n");
}

static void signature(CuFn *f) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    StrBuf *b = &f->cu->b;
    sb_printf(b, "static __global__ void __launch_bounds__(GN_THREADS) %s(", k->name);
    for (int i = 0; i < k->bufs.n; i++)
        sb_printf(b, "\n    %s%s *__restrict__ %s,", k->bufs.v[i]->written ? "" : "const ",
                  cu_mem_type(k->bufs.v[i]->dt), f->buf[i]);
    for (int i = 0; i < m->syms.n; i++)
        if (f->sym[i]) sb_printf(b, "\n    const int64_t %s,", f->sym[i]);
    sb_puts(b, "\n    const int64_t gn_extent) {\n");
}

void cu_kernel(Cu *cu, const LKernel *k) {
    CuFn fn = {.cu = cu, .a = cu->a, .k = k}, *f = &fn;
    f->used = NEWN(cu->a, bool, k->n_regs + 1);
    f->local_used = NEWN(cu->a, bool, k->locals.n + 1);
    mark_block(f, k->body);
    cu_names(f);
    cu_schedule(f);
    comment(f);
    signature(f);
    f->depth = 1;
    if (f->sched.parallel) {
        pure_until(f, k->body, f->sched.parallel);
        parallel_body(f);
    } else {
        cu_line(f, "GN_SERIAL(gn_extent) {");
        f->depth++;
        block(f, k->body);
        f->depth--;
        cu_line(f, "}");
    }
    f->depth = 0;
    cu_line(f, "}");
    cu_launch(f);
}
