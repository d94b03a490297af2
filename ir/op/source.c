/* Sources: constants, data, variables, scalars of the runtime, random streams.
 * They have no operands, hence no gradients; what they are is in their attributes. */
#include "ir/interp.h"
#include "ir/op/op.h"
#include "runtime/exec/rng.h"

static const char *infer_const(Module *m, Op *op) {
    (void)m;
    if (op->type.dt == DT_VOID || op->type.rank) return "a constant is a scalar with a type";
    if (op->type.layout != LAYOUT_DENSE) return "a constant is dense";
    return NULL;
}

static const char *infer_over(Module *m, Op *op) {
    if (op->n_over != 1) return op_err(m, "'%s' is of one space", op_mnemonic(op->kind));
    op->type = op->kind == OP_SIZE ? type_scalar(DT_F32) : type_make(DT_I32, 1, op->over);
    return NULL;
}

/* A CSR column may also be read as its stored values, f32[nz] (pass lower_csr), and as dense
 * rows (pass density); one of floating-point numbers rounded to 16 bits (pass precision). */
static const char *infer_data(Module *m, Op *op) {
    if (!op->col) return "'data' lacks its column";
    const Column *c = op->col;
    bool stored = c->nz && op->type.rank == 1 && op->type.dim[0] == c->nz;
    if (stored && op->type.dt == c->type.dt && op->type.layout == LAYOUT_DENSE) return NULL;
    if (stored) return op_err(m, "the stored values of '%s' are dense f32", c->name);
    bool rows =
        c->nz &&
        type_eq(&op->type,
                &(Type){.dt = c->type.dt, .rank = 2, .dim = {c->type.dim[0], c->type.dim[1]}});
    Type low = c->type;
    low.dt = op->type.dt;
    bool half = low.dt == DT_BF16 || low.dt == DT_F16;
    if (half && c->kind == COL_FLOAT && type_eq(&op->type, &low)) return NULL;
    if (!rows) op->type = c->type;
    return NULL;
}

/* Checks a `random`: a dense f32 value of a stream that the module has. Returns what is wrong, or
 * NULL. */
static const char *infer_random(Module *m, Op *op) {
    if (op->type.dt != DT_F32) return "'random' makes f32 values";
    if (op->type.layout != LAYOUT_DENSE) return "'random' makes dense values";
    if (op->stream < 0 || op->stream >= m->n_streams)
        return op_err(m, "there is no random stream %d", op->stream);
    return NULL;
}

/* Checks a source (constant, size, data, variable, random, input, saved) and gives it its type.
 * Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    switch (op->kind) {
    case OP_CONST:
        return infer_const(m, op);
    case OP_IOTA:
    case OP_SIZE:
        return infer_over(m, op);
    case OP_DATA:
        return infer_data(m, op);
    case OP_VAR:
        if (!op->var) return "'var' lacks its variable";
        op->type = op->var->type;
        return NULL;
    case OP_RANDOM:
        return infer_random(m, op);
    default: /* input, saved */
        if (!op->name) return op_err(m, "'%s' lacks its name", op_mnemonic(op->kind));
        if (op->type.dt == DT_VOID) return op_err(m, "'%s' lacks its type", op->name);
        return NULL;
    }
}

static bool copy_in(Interp *in, const Op *op, const double *from, OpTensor *out) {
    if (!from) return interp_fail(in, op, "its value was not given");
    for (int64_t i = 0; i < out->count; i++) out->v[i] = from[i];
    return true;
}

/* Evaluates a sparse column as dense rows in the interpreter: zeros where nothing is stored. False:
 * it was not given. */
static bool eval_rows(Interp *in, const Op *op, OpTensor *out) {
    const InterpCsr *s = interp_csr(in, op);
    const double *v = interp_column(in, op->col);
    int64_t width = interp_size(in, op->type.dim[1]);
    if (!s || !v) return interp_fail(in, op, "its value was not given");
    for (int64_t i = 0; i < out->count; i++) out->v[i] = 0;
    for (int64_t k = 0; k < s->n; k++) out->v[s->row[k] * width + s->col[k]] = v[k];
    return true;
}

/* Fills `out` with uniform numbers in [0, 1), which stream, step and each element's row key and
 * column determine (counter-based, as in runtime/exec/rng.h). */
static bool eval_random(Interp *in, const Op *op, OpTensor *out) {
    RtKey key = interp_stream_key(in, op->stream);
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w)) {
        uint32_t row, col;
        if (!interp_random_index(in, &w, &row, &col)) return false;
        out->v[w.at] = (double)rt_uniform(key, row, col);
    }
    return true;
}

/* Evaluates a source in the interpreter. False: its value was not given. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    switch (op->kind) {
    case OP_CONST:
        out->v[0] = op->imm;
        return true;
    case OP_SIZE:
        out->v[0] = (double)interp_size(in, op->over[0]);
        return true;
    case OP_IOTA:
        for (int64_t i = 0; i < out->count; i++) out->v[i] = (double)i;
        return true;
    case OP_DATA:
        if (op->col->nz && op->type.rank == 2 && op->type.layout == LAYOUT_DENSE)
            return eval_rows(in, op, out);
        return copy_in(in, op, interp_column(in, op->col), out);
    case OP_VAR:
        if (!copy_in(in, op, interp_var(in, op->var), out)) return false;
        interp_as_stored(in, op->var, interp_var(in, op->var), out->v);
        return true;
    case OP_INPUT:
        return copy_in(in, op, interp_input(in, op->name, out->count), out);
    case OP_SAVED:
        return copy_in(in, op, interp_saved(in, op->name, out->count), out);
    default:
        return eval_random(in, op, out);
    }
}

const OpImpl op_source = {.infer = infer, .vjp = NULL, .eval = eval};
