/* One kernel: its function, its arguments, its statements.
 *
 * Arrays reach the function through a pointer table, so LLVM cannot know what
 * aliases.  Every access therefore carries alias scopes: all read-only buffers
 * share one scope, every written buffer has its own (loop.h promises that they
 * do not overlap). */
#include "codegen/cpu/cpu.h"

/* ---- statements ---------------------------------------------------------------------- */

/* Emits a conditional block. In a vector loop the condition may differ between lanes: then the body
 * runs under a mask, and only if some lane wants it (so its uniform loads are wanted too). */
static void emit_if(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    LLVMValueRef cond = f->reg[s->cond->id].v, outer = f->mask;
    if (f->reg[s->cond->id].shape == SHAPE_VARYING) {
        f->mask = outer ? LLVMBuildAnd(g->b, outer, cond, "") : cond;
        cond = cpu_any_lane(f, f->mask);
    }
    LLVMBasicBlockRef then = cpu_new_block(f, "then"), end = cpu_new_block(f, "endif");
    LLVMBuildCondBr(g->b, cond, then, end);
    LLVMPositionBuilderAtEnd(g->b, then);
    cpu_block(f, s->body);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
    f->mask = outer;
}

/* Emits two versions of a parallel loop (a narrow and a wide one) and the choice between them by a
 * size known at run time. */
static void emit_versions(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    cpu_debug_at(f, s->span);
    LLVMBasicBlockRef first = cpu_new_block(f, "narrow"), second = cpu_new_block(f, "wide"),
                      end = cpu_new_block(f, "end");
    LLVMValueRef most = cpu_i64(g, s->sched.max);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLE, cpu_size(f, s->sched.where), most, ""),
                    first, second);
    LLVMPositionBuilderAtEnd(g->b, first);
    cpu_for(f, s);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(second, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, second);
    cpu_for(f, s->next);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
}

void cpu_block_until(CgFn *f, const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next) cpu_stmt(f, s);
}

void cpu_block(CgFn *f, const LStmt *s) {
    cpu_block_until(f, s, NULL);
}

void cpu_stmt(CgFn *f, const LStmt *s) {
    if (loop_has_place(s) && !s->sched.jam) cpu_debug_at(f, s->span);
    switch (s->kind) {
    case L_FOR:
        if (s->sched.where && !s->sched.is_second) emit_versions(f, s);
        if (!s->sched.where) cpu_for(f, s);
        break;
    case L_IF:
        emit_if(f, s);
        break;
    case L_PREFETCH:
        cpu_prefetch(f, s);
        break;
    case L_TILE:
        cpu_tile(f, s);
        break;
    case L_LET:
        f->reg[s->dst->id] = cpu_let(f, s);
        break;
    case L_LOAD:
        f->reg[s->dst->id] = cpu_load(f, s);
        break;
    case L_STORE:
        cpu_store(f, s);
        break;
    case L_ACC:
        cpu_acc(f, s);
        break;
    case L_LOCAL:
        cpu_local(f, s);
        break;
    case L_COLUMNS: /* of a device's teams: no loop of its own */
        cpu_block(f, s->body);
        break;
    case L_BARRIER:
    case L_FOLD:
        break;
    }
}

/* ---- the function -------------------------------------------------------------------- */

/* Records which statement defines each register. */
static void record_definitions(CgFn *f, const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_LET) f->def[s->dst->id] = s;
        if (loop_has_body(s)) record_definitions(f, s->body);
    }
}

/* Adds an attribute to the function, if LLVM knows it. */
static void add_attribute(CgFn *f, LLVMAttributeIndex at, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    if (kind) /* names come and go with LLVM's versions */
        LLVMAddAttributeAtIndex(f->fn, at, LLVMCreateEnumAttribute(f->g->lc, kind, 0));
}

/* Adds an LLVM attribute with a text value to the kernel's function. */
static void add_text_attribute(CgFn *f, const char *name, const char *value) {
    LLVMAttributeRef a = LLVMCreateStringAttribute(f->g->lc, name, (unsigned)strlen(name), value,
                                                   (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

/* Adds the function's attributes. Without those for vector width LLVM splits 512-bit vectors in two
 * on many machines. */
static void add_function_attributes(CgFn *f) {
    Cg *g = f->g;
    add_attribute(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
    for (unsigned i = 1; i <= 2; i++) {
        add_attribute(f, i, "noalias");
        add_attribute(f, i, "readonly");
        add_attribute(f, i, "nocapture");
    }
    const char *bits = arena_printf(g->a, "%d", g->machine.lanes * 32);
    add_text_attribute(f, "target-cpu", g->machine.cpu);
    add_text_attribute(f, "target-features", g->machine.features);
    add_text_attribute(f, "prefer-vector-width", bits);
    add_text_attribute(f, "min-legal-vector-width", bits);
    add_text_attribute(f, "frame-pointer", g->opt->debug_info ? "all" : "none");
}

/* An alias scope, which its name tells from others: it holds the kernel's and the buffer's. */
static LLVMMetadataRef new_scope(Cg *g, const char *name, LLVMMetadataRef domain) {
    /* A scope is told apart from others by its name, which holds the kernel's and the buffer's. */
    LLVMMetadataRef part[2] = {LLVMMDStringInContext2(g->lc, name, strlen(name)), domain};
    return LLVMMDNodeInContext2(g->lc, part, domain ? 2 : 1);
}

/* A list of alias scopes as metadata. */
static LLVMValueRef scope_list(Cg *g, LLVMMetadataRef *s, int n) {
    return LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, s, (size_t)n));
}

/* Makes the alias scopes of the kernel's buffers: written buffers alias nothing else. */
static void make_alias_scopes(CgFn *f) {
    Cg *g = f->g;
    int n = f->k->bufs.n;
    LLVMMetadataRef domain = new_scope(g, f->k->name, NULL);
    LLVMMetadataRef read_only = new_scope(g, arena_printf(g->a, "%s.read", f->k->name), domain);
    LLVMMetadataRef *scope = NEWN(g->a, LLVMMetadataRef, n + 1),
                    *other = NEWN(g->a, LLVMMetadataRef, n + 1);
    for (int i = 0; i < n; i++)
        scope[i] = f->k->bufs.v[i]->written
                       ? new_scope(g, arena_printf(g->a, "%s.%d", f->k->name, i), domain)
                       : read_only;
    for (int i = 0; i < n; i++) {
        int n_other = 0;
        if (scope[i] != read_only) other[n_other++] = read_only;
        for (int j = 0; j < n; j++)
            if (j != i && scope[j] != read_only) other[n_other++] = scope[j];
        f->scope[i] = scope_list(g, &scope[i], 1);
        f->noalias[i] = scope_list(g, other, n_other);
    }
}

/* Loads the buffers' pointers from the argument table. */
static void load_pointers(CgFn *f) {
    Cg *g = f->g;
    LLVMMetadataRef align = LLVMValueAsMetadata(cpu_i64(g, 64));
    LLVMValueRef aligned = LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, &align, 1));
    for (int i = 0; i < f->k->bufs.n; i++) {
        LLVMValueRef at = cpu_i64(g, i);
        at = LLVMBuildInBoundsGEP2(g->entry, g->ptr, LLVMGetParam(f->fn, 0), &at, 1, "");
        f->buf[i] = LLVMBuildLoad2(g->entry, g->ptr, at, f->k->bufs.v[i]->name);
        LLVMSetMetadata(f->buf[i], g->md_align, aligned);
    }
}

/* Creates the function and its entry block. */
static void begin_function(CgFn *f) {
    Cg *g = f->g;
    LLVMTypeRef param[4] = {g->ptr, g->ptr, g->i64, g->i64};
    f->fn = LLVMAddFunction(g->mod, f->k->name, LLVMFunctionType(g->void_, param, 4, 0));
    f->n = LLVMGetParam(f->fn, 1);
    f->lo = LLVMGetParam(f->fn, 2);
    f->hi = LLVMGetParam(f->fn, 3);
    add_function_attributes(f);
    LLVMBasicBlockRef entry = cpu_new_block(f, "entry"), start = cpu_new_block(f, "start");
    LLVMPositionBuilderAtEnd(g->b, entry);
    LLVMValueRef last = LLVMBuildBr(g->b, start);
    LLVMPositionBuilderBefore(g->entry, last);
    LLVMPositionBuilderAtEnd(g->b, start);
}

/* Emits one bound x of a range, clamped to [at, at + extent) and relative to `at`. */
static LLVMValueRef clamp_bound(CgFn *f, LLVMValueRef x, LLVMValueRef at, LLVMValueRef extent) {
    Cg *g = f->g;
    LLVMValueRef zero = cpu_i64(g, 0);
    x = LLVMBuildNSWSub(g->entry, x, at, "");
    x = cpu_select_size(g, LLVMIntSGT, x, zero);
    return cpu_select_size(g, LLVMIntSLT, x, extent);
}

/* Emits several independent parallel loops of one kernel. Their ranges are concatenated: the kernel
 * is called for a part [lo, hi) of the whole, and each loop takes the part of its own range that
 * lies in it. */
static void emit_joined_loops(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    LLVMValueRef lo = f->lo, hi = f->hi, at = cpu_i64(g, 0);
    for (; s; s = s->next) {
        if (s->kind == L_FOR && !s->sched.is_second) {
            LLVMValueRef extent = cpu_size(f, s->extent);
            f->lo = clamp_bound(f, lo, at, extent);
            f->hi = clamp_bound(f, hi, at, extent);
            at = LLVMBuildNSWAdd(g->entry, at, extent, "");
        }
        cpu_stmt(f, s);
    }
}

void cpu_kernel(Cg *g, const LKernel *k) {
    CgFn f = {.g = g, .k = k, .lanes = 1};
    f.reg = NEWN(g->a, CgVal, k->n_regs + 1);
    f.def = NEWN(g->a, const LStmt *, k->n_regs + 1);
    f.buf = NEWN(g->a, LLVMValueRef, k->bufs.n + 1);
    f.scope = NEWN(g->a, LLVMValueRef, k->bufs.n + 1);
    f.noalias = NEWN(g->a, LLVMValueRef, k->bufs.n + 1);
    f.sym = NEWN(g->a, LLVMValueRef, g->plan->m->syms.n + 1);
    f.local = NEWN(g->a, CgLocal, k->locals.n + 1);
    record_definitions(&f, k->body);
    LLVMSetCurrentDebugLocation2(g->b,
                                 NULL); /* of the kernel before: the entry block must not take it */
    begin_function(&f);
    cpu_debug_kernel(&f);
    make_alias_scopes(&f);
    load_pointers(&f);
    if (loop_is_joined(k))
        emit_joined_loops(&f, k->body);
    else
        cpu_block(&f, k->body);
    LLVMBuildRetVoid(g->b);
}
