/* The pass store-values: which values of a function are stored, and by what each is made, a fusion
 * each.
 *
 *     %z = contract %x, %w                            gemm %z
 *     %h = fused add %z, %b                  ->       rows %r
 *     %r = max %h, %zero                              effect op 5
 *     output "h" %r
 *
 * What becomes of an operation follows from the module alone, so later passes ask for it, too
 * (cg_enter_func), and the text of a plan has no word about it. */
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* ---- what each operation becomes -------------------------------------------------------- */
/* Whether the result of op has a buffer from the start: data, a variable, an input or a saved
 * value. */
static bool is_source(const Op *op) {
    return op_has(op, OPT_SOURCE);
}

/* Whether every kernel that reads op computes it by itself, since it has no operands and no buffer:
 * constants and the like. */
static bool always_inline(const Op *op) {
    return op->n_in == 0 && !is_source(op) && op_has(op, OPT_PURE) && !op_has(op, OPT_LIB);
}

/* Whether the result of op has a row per node, edge or graph. A reduction without these rows would
 * be repeated in every row of the kernel that reads it. */
static bool has_rows(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind != SP_DIM) return true;
    return false;
}

/* Whether the kernels that read op may compute it by themselves instead of reading it from
 * memory. */
static bool may_inline(const Lower *lo, const Op *op) {
    if (op_has(op, OPT_LIB) || cg_info(lo, op)->gemm || cg_info(lo, op)->spmm) return false;
    if (always_inline(op)) return true;
    if (!op->fused) return false;
    return !(op_has(op, OPT_REDUCE) && !has_rows(op));
}

/* Whether `user` needs its operands in memory: host effects, library calls and matrix products
 * do. */
static bool wants_memory(const Lower *lo, const Op *user) {
    return op_has(user, OPT_EFFECT) || op_has(user, OPT_LIB) || cg_info(lo, user)->gemm;
}

/* By whom a value is read. */
typedef struct {
    int n;          /* how often, as operand */
    const Op *last; /* one of the readers: the first in the function */
} Uses;

/* Whether op is a concatenation that only another one reads, whose kernel writes the operands of op
 * itself, so that op needs no buffer. u: the uses of op. */
static bool is_concat_operand(const Op *op, const Uses *u) {
    return u->n == 1 && cg_concat_continues(op, u->last);
}

/* Sets what becomes of op (see Storage). used: something needs its result; in_memory: something
 * needs it in memory. */
static void choose_storage(Lower *lo, Op *op, bool used, bool in_memory) {
    OpInfo *i = cg_info(lo, op);
    i->base = op;
    if (!used)
        i->storage = HOW_DEAD;
    else if (is_source(op))
        i->storage = HOW_SOURCE;
    else if (op->type.dt != DT_VOID)
        i->storage = may_inline(lo, op) && !in_memory ? HOW_INLINE : HOW_STORED;
}

bool plan_is_first_rows(const Op *op) {
    int64_t off;
    return op->kind == OP_SLICE && op->type.rank && op->over[1] == op->type.dim[0] &&
           op->in[0]->type.dim[0] == op->over[0] && expr_is_const(op->off, &off) && off == 0;
}

/* Makes views and first rows of values in memory aliases of these, so that they need no copy. full:
 * by Op.id, values whose buffer must hold exactly that value, since an effect or a C function takes
 * it as it is. */
static void find_aliases(Lower *lo, const bool *full) {
    for (Op *op = lo->f->first; op; op = op->next) {
        OpInfo *i = cg_info(lo, op);
        if (i->storage == HOW_DEAD ||
            (op->kind != OP_VIEW && (!plan_is_first_rows(op) || full[op->id])))
            continue;
        const OpInfo *x = cg_info(lo, op->in[0]);
        if (x->storage != HOW_ALIAS && x->storage != HOW_STORED && x->storage != HOW_SOURCE)
            continue;
        i->storage = HOW_ALIAS;
        i->base = x->base;
    }
}

/* Makes the tables of the function, by number of operation, and numbers what gets a name. */
static void begin_function(Lower *lo) {
    func_number(lo->f);
    int n = lo->f->n_ops, n_dumped = 0, n_others = 0;
    lo->info = NEWN(lo->a, OpInfo, (size_t)n + 1);
    lo->reads = NEWN(lo->a, CgReads *, (size_t)n + 1);
    lo->slot = NEWN(lo->a, int, (size_t)n + 1);
    lo->sums = NEWN(lo->a, unsigned, (size_t)n + 1);
    lo->marks = NEW(lo->a, IrMarks);
    *lo->marks = ir_marks_new(lo->a, 2 * n + 1);
    lo->computed = NEW(lo->a, IrMarks);
    *lo->computed = ir_marks_new(lo->a, n + 1);
    lo->row_marks = NEW(lo->a, IrMarks);
    *lo->row_marks = ir_marks_new(lo->a, CG_PLACES * n);
    for (Op *op = lo->f->first; op; op = op->next) {
        bool dump = op->ask == ASK_APART || op->use.role == OUT_DUMP;
        cg_info(lo, op)->name_number = dump ? n_dumped++ : n_others++;
        cg_info(lo, op)->buf = -1;
        cg_info(lo, op)->gemm = cg_gemm_fits(lo, op);
    }
}

/* Decides what becomes of each op of the current function (lo->info), backwards from the effects,
 * and makes the tables by Op.id that lowering uses. */
static void choose_all_storage(Lower *lo) {
    begin_function(lo);
    int n = lo->f->n_ops;
    bool *used = NEWN(lo->a, bool, (size_t)n + 1), *memory = NEWN(lo->a, bool, (size_t)n + 1);
    bool *full = NEWN(lo->a, bool, (size_t)n + 1);
    Uses *uses = NEWN(lo->a, Uses, (size_t)n + 1);
    lo->guard = ir_guards(lo->a, lo->f, memory); /* conditions of steps */
    for (Op *op = lo->f->last; op; op = op->prev) {
        const Op *dense;
        used[op->id] |= op_acts(op);
        cg_info(lo, op)->spmm = used[op->id] && cg_wants_spmm(lo, op, &dense);
        if (cg_info(lo, op)->spmm) memory[dense->id] = true;
        choose_storage(lo, op, used[op->id], memory[op->id]);
        if (used[op->id] && !memory[op->id] && is_concat_operand(op, &uses[op->id]))
            cg_info(lo, op)->storage = HOW_INLINE;
        for (int k = 0; k < op->n_in && used[op->id]; k++) {
            used[op->in[k]->id] = true;
            uses[op->in[k]->id].n++;
            uses[op->in[k]->id].last = op;
            if (wants_memory(lo, op)) {
                memory[op->in[k]->id] = true;
                cg_info(lo, op->in[k])->wanted_by = op;
            }
            full[op->in[k]->id] |=
                op_has(op, OPT_EFFECT) || op->ext || (op->kind == OP_VIEW && full[op->id]);
        }
    }
    find_aliases(lo, full);
}

/* Checks that no value of the function is sparse any more. False after a diagnostic. */
static bool check_dense(Lower *lo) {
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->type.layout != LAYOUT_CSR) continue;
        diag_add(lo->c, DIAG_E0540, op->span,
                 "a value is still sparse: pass 'lower-csr' must run first");
        return false;
    }
    return true;
}

/* Checks that long reductions (over all nodes or edges) leave a dimension free for the partial sums
 * of their chunks (lower_long.c). False after a diagnostic. */
static bool check_ranks(Lower *lo) {
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->type.rank < MAX_RANK || !cg_is_long_reduction(op) || cg_gemm_fits(lo, op)) continue;
        diag_add(lo->c, DIAG_E0540, op->span,
                 "a sum over all nodes or edges leaves %d dimensions: at most %d can be kept",
                 op->type.rank, MAX_RANK - 1);
        return false;
    }
    return true;
}

bool cg_enter_func(Lower *lo, Func *f) {
    lo->f = f;
    if (!check_dense(lo) || !check_ranks(lo)) return false;
    choose_all_storage(lo);
    return true;
}

bool cg_enter_body(Lower *lo, const PFusion *loop) {
    Func *body = loop->roots.v[0]->body;
    lo->operand_bufs = loop->bufs;
    lo->n_carried = func_n_carried(body);
    return cg_enter_func(lo, body);
}

void cg_back_to(Lower *lo, const Lower *around) {
    lo->f = around->f;
    lo->operand_bufs = around->operand_bufs;
    lo->n_carried = around->n_carried;
    lo->info = around->info;
    lo->guard = around->guard;
    lo->reads = around->reads;
    lo->slot = around->slot;
    lo->sums = around->sums;
    lo->marks = around->marks;
    lo->computed = around->computed;
    lo->row_marks = around->row_marks;
}

/* ---- the pass -------------------------------------------------------------------------------- */
static bool store_in(Lower *lo, PFusions *list);

/* Makes the fusions of a loop's body, and goes back to the function around. */
static bool store_in_body(Lower *lo, PFusion *loop) {
    Lower around = *lo;
    bool ok = cg_enter_body(lo, loop) && store_in(lo, &loop->body);
    cg_back_to(lo, &around);
    return ok;
}

bool cg_has_fusion(const Lower *lo, const Op *op) {
    bool acts = op_has(op, OPT_EFFECT) && op->kind != OP_ASSIGN && op->kind != OP_NEXT;
    return acts || cg_info(lo, op)->storage == HOW_STORED;
}

/* Makes a fusion of each value of the current function that is stored, and of each effect. */
static bool store_in(Lower *lo, PFusions *list) {
    PFusion **made_by = NEWN(lo->a, PFusion *, (size_t)lo->f->n_ops + 1);
    for (const Op *op = lo->f->first; op; op = op->next) {
        if (!cg_has_fusion(lo, op)) continue;
        PFusion *f = op->kind == OP_RESULT ? made_by[op->in[0]->id] : NEW(lo->a, PFusion);
        if (!f->roots.n) {
            f->kind = cg_fusion_kind(lo, op);
            vec_push(lo->a, list, f);
        }
        vec_push(lo->a, &f->roots, op);
        made_by[op->id] = f;
    }
    for (int i = 0; i < list->n; i++)
        if (list->v[i]->kind == PF_LOOP && !store_in_body(lo, list->v[i])) return false;
    return true;
}

/* Why a value that readers could compute by themselves is stored, in words. */
static const char *stored_because(const Lower *lo, const Op *op) {
    const OpInfo *i = cg_info(lo, op);
    if (i->wanted_by)
        return arena_printf(lo->a, "'%s' takes it from memory", pass_named(i->wanted_by));
    if (op_has(op, OPT_LIB) || i->gemm || i->spmm) return "a library makes it";
    return "each row of a reader would compute all of it again";
}

/* Adds the remarks on the phase of the current function: how many values are stored, and which of
 * those that `fuse` had chosen for their readers' kernels. */
static void remark_phase(const Lower *lo) {
    int stored = 0, inside = 0;
    for (const Op *op = lo->f->first; op; op = op->next) {
        Storage storage = cg_info(lo, op)->storage;
        stored += storage == HOW_STORED;
        inside += storage == HOW_INLINE;
        if (storage == HOW_STORED && op->fused)
            pass_declined(lo->pc, op->span, "store-values", "'%s' is stored, though fused: %s",
                          pass_named(op), stored_because(lo, op));
    }
    pass_remark(lo->pc, lo->f->span, "store-values",
                "@%s: %d values are stored, %d are computed by their readers", lo->f->name, stored,
                inside);
}

/* Makes a phase of function f. False after diagnostics. */
static bool store_func(Lower *lo, Func *f) {
    PPhase *ph = NEW(lo->a, PPhase);
    ph->name = f->name;
    ph->func = f;
    lo->phase = lo->p->phases.n;
    vec_push(lo->a, &lo->p->phases, ph);
    if (!cg_enter_func(lo, f)) return false;
    if (lo->pc->remarks) remark_phase(lo);
    return store_in(lo, &ph->fusions);
}

/* Makes a phase of each function of the module, @load first, since others read what it saves.
 * Bodies of loops become part of the phase around them. */
static bool run(PassCtx *pc, Plan *p) {
    Module *m = p->m;
    Lower lower = cg_lower(pc, p);
    if (!cg_read_one_way(&lower)) return false;
    Func *load = func_of(m, PHASE_LOAD);
    if (load && !store_func(&lower, load)) return false;
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i] != load && !m->funcs.v[i]->body && !store_func(&lower, m->funcs.v[i]))
            return false;
    return true;
}

const Pass plan_pass_store_values = {
    .name = "store-values",
    .summary = "decide which values are stored, and by what each is made",
    .bars = PLAN_FUSIONS | PLAN_STEPS,
    .gives = PLAN_FUSIONS,
    .run_plan = run,
    .required = true,
};

PFusionKind cg_fusion_kind(const Lower *lo, const Op *op) {
    if (op->ext) return PF_CALL;
    if (op->kind == OP_LOOP) return PF_LOOP;
    if (op_has(op, OPT_EFFECT)) return PF_EFFECT;
    if (op->kind == OP_RANK) return PF_RANK;
    if (op->kind == OP_CONCAT) return PF_CONCAT;
    if (cg_info(lo, op)->gemm) return PF_GEMM;
    return cg_is_long_reduction(op) ? PF_SUM : PF_ROWS;
}
