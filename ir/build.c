/* The builder and the editing functions.  A function's operations form a list;
 * the builder inserts before a cursor.  Result types come from each op's infer(),
 * so an ill-typed operation cannot be built: that would be a bug of the caller,
 * and ctx_fault names the op and says why. */
#include "ir/ir.h"

#include <string.h>

/* ---- inserting --------------------------------------------------------------- */
/* Inserts an operation into a function's list, before `at`; at the end for NULL. */
static void link_before(Func *f, Op *op, Op *at) {
    op->func = f;
    op->next = at;
    op->prev = at ? at->prev : f->last;
    *(op->prev ? &op->prev->next : &f->first) = op;
    *(at ? &at->prev : &f->last) = op;
    f->n_ops++;
}

/* Removes an operation from its function's list. */
static void unlink_op(Op *op) {
    Func *f = op->func;
    *(op->prev ? &op->prev->next : &f->first) = op->next;
    *(op->next ? &op->next->prev : &f->last) = op->prev;
    f->n_ops--;
    op->prev = op->next = NULL;
    op->func = NULL;
}

Span b_site(const Builder *b, Span at) {
    if (b->site.line == 0) return at;
    at.site_file = b->site.file;
    at.site_line = b->site.line;
    at.site_name = b->site.site_name;
    return at;
}

/* Makes the builder's new operations come from the same line as `like`. */
void b_like(Builder *b, const Op *like) {
    b->span = like->span;
    b->want = like->want;
    b->update = like->update;
}

/* A builder whose operations stand for `like`. */
Builder b_for(Module *m, Func *f, Op *at, const Op *like) {
    Builder b = {.m = m, .f = f, .at = at};
    b_like(&b, like);
    return b;
}

/* ---- readers ------------------------------------------------------------------- */
/* Adds a reader to an operation's list. */
static void add_user(Arena *a, Op *x, Op *user) {
    Use *u = NEW(a, Use);
    *u = (Use){.user = user, .next = x->users};
    x->users = u;
}

/* Adds an operation to its operands' lists of readers. */
static void add_as_user(Func *f, Op *op) {
    for (int i = 0; f->users && i < op->n_in; i++) add_user(f->users, op->in[i], op);
}

/* Makes each operation of a function know its readers. */
void func_keep_users(Arena *a, Func *f) {
    func_drop_users(f);
    f->users = a;
    for (Op *op = f->first; op; op = op->next) add_as_user(f, op);
}

/* Stops that. */
void func_drop_users(Func *f) {
    f->users = NULL;
    for (Op *op = f->first; op; op = op->next) op->users = NULL;
}

/* Sets an operand. */
void op_set_in(Op *op, int i, Op *x) {
    op->in[i] = x;
    if (op->func->users) add_user(op->func->users, x, op);
}

/* Replaces an operand. */
static void replace_in(Op *user, const Op *old, Op *with) {
    for (int i = 0; i < user->n_in; i++)
        if (user->in[i] == old) user->in[i] = with;
}

/* Replaces an operation in all its readers. */
void op_replace_uses(Func *f, Op *old, Op *with) {
    for (Op *op = f->users ? NULL : f->first; op; op = op->next) replace_in(op, old, with);
    if (!f->users || !old->users) return;
    Use *last = NULL;
    for (Use *u = old->users; u; last = u, u = u->next) replace_in(u->user, old, with);
    last->next = with->users;
    with->users = old->users;
    old->users = NULL;
}

/* ---- inserting an operation -------------------------------------------------------- */
/* Makes an operation from its prototype, infers its type and inserts it where the builder stands.
 * An operation that is wrong is a fault of the caller. */
Op *b_op(Builder *b, const Op *proto) {
    Op *op = NEW(b->m->a, Op);
    *op = *proto;
    op->users = NULL;
    op->in = NEWN(b->m->a, Op *, (size_t)proto->n_in);
    if (proto->n_in) memcpy(op->in, proto->in, (size_t)proto->n_in * sizeof *op->in);
    if (op->span.line == 0) op->span = b->span;
    bool copy = proto->func != NULL; /* says itself what is wanted */
    if (!copy && !op->want) {
        op->want = b->want;
        op->update = b->update;
    }
    op->span = b_site(b, op->span);
    const char *why = op->untyped ? NULL : op_infer(b->m, op);
    if (why) ctx_fault(b->m->ctx, op->span, "cannot build '%s': %s", op_mnemonic(op->kind), why);
    link_before(b->f, op, b->at);
    add_as_user(b->f, op);
    return op;
}

/* ---- sources ------------------------------------------------------------------- */
Op *b_const(Builder *b, DType dt, double v) {
    return b_op(b, &(Op){.kind = OP_CONST, .type = type_scalar(dt), .imm = v});
}

Op *b_iota(Builder *b, Space *s) {
    return b_op(b, &(Op){.kind = OP_IOTA, .n_over = 1, .over = {s}});
}

Op *b_size(Builder *b, Space *s) {
    return b_op(b, &(Op){.kind = OP_SIZE, .n_over = 1, .over = {s}});
}

Op *b_data(Builder *b, Column *c) {
    return b_op(b, &(Op){.kind = OP_DATA, .col = c, .hint = c->name});
}

Op *b_var(Builder *b, Var *v) {
    return b_op(b, &(Op){.kind = OP_VAR, .var = v, .hint = v->path});
}

/* Copies a text to the module's arena. */
static const char *copy_text(Builder *b, const char *s) {
    return arena_strndup(b->m->a, s, strlen(s));
}

Op *b_input(Builder *b, const char *name, Type t) {
    name = copy_text(b, name);
    return b_op(b, &(Op){.kind = OP_INPUT, .name = name, .hint = name, .type = t});
}

Op *b_saved(Builder *b, const char *name, Type t) {
    name = copy_text(b, name);
    return b_op(b, &(Op){.kind = OP_SAVED, .name = name, .hint = name, .type = t});
}

Op *b_random(Builder *b, int stream, Type t) {
    if (stream >= b->m->n_streams) b->m->n_streams = stream + 1;
    return b_op(b, &(Op){.kind = OP_RANDOM, .stream = stream, .type = t});
}

/* ---- elementwise ------------------------------------------------------------------ */
Op *b_unary(Builder *b, OpKind k, Op *x) {
    return b_op(b, &(Op){.kind = k, .n_in = 1, .in = (Op *[]){x}});
}

Op *b_binary(Builder *b, OpKind k, Op *x, Op *y) {
    return b_op(b, &(Op){.kind = k, .n_in = 2, .in = (Op *[]){x, y}});
}

Op *b_select(Builder *b, Op *cond, Op *x, Op *y) {
    return b_op(b, &(Op){.kind = OP_SELECT, .n_in = 3, .in = (Op *[]){cond, x, y}});
}

Op *b_cast(Builder *b, Op *x, DType dt) {
    return b_op(b, &(Op){.kind = OP_CAST, .n_in = 1, .in = (Op *[]){x}, .type = type_scalar(dt)});
}

Op *b_copy(Builder *b, Op *x, Type t) {
    return b_op(b, &(Op){.kind = OP_COPY, .n_in = 1, .in = (Op *[]){x}, .type = t});
}

Op *b_detach(Builder *b, Op *x) {
    return b_unary(b, OP_DETACH, x);
}

Op *b_store_as(Builder *b, Op *x, DType dt) {
    return b_op(b, &(Op){.kind = OP_STORE_AS, .n_in = 1, .in = (Op *[]){x}, .dtype = dt});
}

/* ---- along maps --------------------------------------------------------------------- */
Op *b_gather(Builder *b, Map *m, Op *x) {
    return b_op(b, &(Op){.kind = OP_GATHER, .map = m, .n_in = 1, .in = (Op *[]){x}});
}

Op *b_segment(Builder *b, RedKind r, Map *m, Op *x) {
    return b_op(b, &(Op){.kind = OP_SEGMENT, .red = r, .map = m, .n_in = 1, .in = (Op *[]){x}});
}

Op *b_valid(Builder *b, Map *m) {
    return b_op(b, &(Op){.kind = OP_VALID, .map = m});
}

Op *b_index(Builder *b, Map *m) {
    return b_op(b, &(Op){.kind = OP_INDEX, .map = m});
}

/* ---- along spaces --------------------------------------------------------------------- */
Op *b_reduce(Builder *b, RedKind r, Op *x, int n_over, Space *const *over) {
    CTX_HOLDS(b->m->ctx, n_over >= 0 && n_over <= MAX_RANK, b->span);
    if (n_over == 0) return x;
    Op proto = {.kind = OP_REDUCE, .red = r, .n_in = 1, .in = (Op *[]){x}, .n_over = n_over};
    for (int i = 0; i < n_over; i++) proto.over[i] = over[i];
    return b_op(b, &proto);
}

Op *b_argmax(Builder *b, Op *x, Space *over) {
    return b_op(
        b, &(Op){.kind = OP_ARGMAX, .n_in = 1, .in = (Op *[]){x}, .n_over = 1, .over = {over}});
}

Op *b_contract(Builder *b, Op *x, Op *y, Type result) {
    return b_op(b, &(Op){.kind = OP_CONTRACT, .n_in = 2, .in = (Op *[]){x, y}, .type = result});
}

Op *b_view(Builder *b, Op *x, Type t) {
    return b_op(b, &(Op){.kind = OP_VIEW, .n_in = 1, .in = (Op *[]){x}, .type = t});
}

/* Appends `concat x y`: the rows of y after those of x. x has dimension dx and y has dy; the result
 * has `into`, as long as both together, in their place. */
Op *b_concat(Builder *b, Op *x, Op *y, Space *dx, Space *dy, Space *into) {
    return b_op(b, &(Op){.kind = OP_CONCAT,
                         .n_in = 2,
                         .in = (Op *[]){x, y},
                         .n_over = 3,
                         .over = {dx, dy, into}});
}

/* Appends `slice x`: the part of x's dimension `from` that begins at index `offset` and is as long
 * as space `to`, which replaces `from`. */
Op *b_slice(Builder *b, Op *x, Space *from, Space *to, const Expr *offset) {
    return b_op(b, &(Op){.kind = OP_SLICE,
                         .n_in = 1,
                         .in = (Op *[]){x},
                         .n_over = 2,
                         .over = {from, to},
                         .off = offset});
}

/* Appends `rank x mask`: the rank (from 1) of each element among the elements along space `over`
 * where mask holds. ties: 0, 0.5 or 1 gives equal elements the lowest, mean or highest of their
 * ranks. */
Op *b_rank(Builder *b, Op *x, Op *mask, Space *over, double ties) {
    return b_op(b, &(Op){.kind = OP_RANK,
                         .n_in = 2,
                         .in = (Op *[]){x, mask},
                         .n_over = 1,
                         .over = {over},
                         .imm = ties});
}

/* ---- functions in C ------------------------------------------------------------------- */
Op *b_call(Builder *b, const Extern *f, int n, Op *const *x, Type result) {
    OpKind kind = f->effect ? OP_CALL_EFFECT : OP_CALL;
    return b_op(
        b, &(Op){.kind = kind, .ext = f, .n_in = n, .in = (Op **)(uintptr_t)x, .type = result});
}

Op *b_result(Builder *b, Op *call, int which) {
    if (which == 0) return call;
    return b_op(b, &(Op){.kind = OP_RESULT, .imm = which, .n_in = 1, .in = &call});
}

Op *b_arg(Builder *b, int which, Type t) {
    return b_op(b, &(Op){.kind = OP_ARG, .imm = which, .type = t});
}

Op *b_next(Builder *b, int which, Op *x) {
    return b_op(b, &(Op){.kind = OP_NEXT, .imm = which, .n_in = 1, .in = &x});
}

Op *b_loop(Builder *b, Func *body, int64_t limit, int n, Op *const *x) {
    Op proto = {.kind = OP_LOOP, .body = body, .imm = (double)limit, .n_in = n, .in = (Op **)x};
    return b_op(b, &proto);
}

/* ---- effects ------------------------------------------------------------------------------ */
Op *b_assign(Builder *b, Var *v, Op *x) {
    return b_op(b, &(Op){.kind = OP_ASSIGN, .var = v, .n_in = 1, .in = (Op *[]){x}});
}

Op *b_output_as(Builder *b, const char *name, OutputUse use, Op *x) {
    Op proto = {
        .kind = OP_OUTPUT, .name = copy_text(b, name), .n_in = 1, .in = (Op *[]){x}, .use = use};
    return b_op(b, &proto);
}

Op *b_output(Builder *b, const char *name, Op *x) {
    return b_output_as(b, name, (OutputUse){.role = OUT_VALUE}, x);
}

Op *b_loss(Builder *b, Op *x) {
    return b_output_as(b, "loss", (OutputUse){.role = OUT_LOSS}, x);
}

Op *b_print(Builder *b, const char *text, int n, Op *const *x) {
    Op proto = {.kind = OP_PRINT, .name = copy_text(b, text), .n_in = n};
    proto.in = NEWN(b->m->a, Op *, (size_t)n);
    for (int i = 0; i < n; i++) proto.in[i] = x[i];
    return b_op(b, &proto);
}

Op *b_assert(Builder *b, const char *text, Op *cond) {
    return b_op(
        b, &(Op){.kind = OP_ASSERT, .name = copy_text(b, text), .n_in = 1, .in = (Op *[]){cond}});
}

/* ---- editing -------------------------------------------------------------------------------- */
/* Removes an operation. */
void op_remove(Op *op) {
    unlink_op(op);
}

/* Moves an operation. */
void op_move_before(Op *op, Op *at) {
    if (op == at) return;
    Func *f = op->func;
    unlink_op(op);
    link_before(f, op, at);
}
