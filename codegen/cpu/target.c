/* The cpu target: kernels through LLVM to text, assembly or an object file.
 *
 * Every LLVM object hangs off a Cg and is released once, also when memory runs out
 * in the middle (ctx_defer).  LLVM's own vectorisers stay off: the schedule of the
 * loop IR decides, vector code is written out explicitly, and the result does not
 * depend on what a vectoriser happens to find. */
#include "codegen/cpu/cpu.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include <pthread.h>

/* From 18 on, instcombine aborts when one round was not enough, unless told otherwise. */
#if LLVM_VERSION_MAJOR >= 18
#define COMBINE "instcombine<no-verify-fixpoint>"
#else
#define COMBINE "instcombine"
#endif

/* Frees all LLVM objects of a compilation; it also runs when memory is out. */
static void release(void *p) {
    Cg *g = p;
    if (g->di) LLVMDisposeDIBuilder(g->di);
    if (g->b) LLVMDisposeBuilder(g->b);
    if (g->entry) LLVMDisposeBuilder(g->entry);
    if (g->mod) LLVMDisposeModule(g->mod);
    if (g->layout) LLVMDisposeTargetData(g->layout);
    if (g->tm) LLVMDisposeTargetMachine(g->tm);
    if (g->triple) LLVMDisposeMessage(g->triple);
    if (g->message) LLVMDisposeMessage(g->message);
    if (g->out) LLVMDisposeMemoryBuffer(g->out);
    if (g->lc) LLVMContextDispose(g->lc);
    free(g->machine.owned);
    *g = (Cg){0};
}

/* LLVM would print; a failure reaches the user through the call that failed. */
static void ignore_remark(LLVMDiagnosticInfoRef info, void *user) {
    (void)info, (void)user;
}

static unsigned md_kind(Cg *g, const char *name) {
    return LLVMGetMDKindIDInContext(g->lc, name, (unsigned)strlen(name));
}

/* Fetches the LLVM types and metadata kinds that emission uses. */
static void make_types(Cg *g) {
    g->i1 = LLVMInt1TypeInContext(g->lc);
    g->i8 = LLVMInt8TypeInContext(g->lc);
    g->i16 = LLVMInt16TypeInContext(g->lc);
    g->i32 = LLVMInt32TypeInContext(g->lc);
    g->i64 = LLVMInt64TypeInContext(g->lc);
    g->f16 = LLVMHalfTypeInContext(g->lc);
    g->f32 = LLVMFloatTypeInContext(g->lc);
    g->f64 = LLVMDoubleTypeInContext(g->lc);
    g->ptr = LLVMPointerTypeInContext(g->lc, 0);
    g->void_ = LLVMVoidTypeInContext(g->lc);
    g->md_scope = md_kind(g, "alias.scope");
    g->md_noalias = md_kind(g, "noalias");
    g->md_align = md_kind(g, "align");
    g->md_invariant = md_kind(g, "invariant.load");
}

/* Takes over an error text of LLVM's, so that it is freed even if reporting it runs out of memory.
 */
static const char *keep_message(Cg *g, char *message) {
    if (g->message) LLVMDisposeMessage(g->message);
    g->message = message;
    return message ? message : "unknown error";
}

/* Adds an error with LLVM's message; false. */
static bool fail(Cg *g, const char *what, char *message) {
    diag_add(g->c, DIAG_E0530, (Span){0}, "%s: %s", what, keep_message(g, message));
    return false;
}

/* Registers the machine's target in LLVM, whose list is one for the process: one thread at a time.
 */
static void register_targets(void) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

/* What loop passes read of the processor. */
static TargetMachine machine_for_passes(const CgMachine *m, const TargetOptions *o) {
    return (TargetMachine){.lanes = m->lanes,
                           .sums = m->sum_registers,
                           .prefetches = o->opt_level > 0,
                           .line = CPU_LINE};
}

/* Finds the processor that options name. False after diagnostics. */
static bool find_machine(Ctx *c, const TargetOptions *o, TargetMachine *to) {
    CgMachine m;
    if (!cpu_machine_find(c, o->march, &m)) return false;
    *to = machine_for_passes(&m, o);
    free(m.owned);
    return true;
}

/* Makes the LLVM target machine of the processor that the options name. False after a diagnostic.
 */
static bool make_machine(Cg *g) {
    static pthread_once_t entered = PTHREAD_ONCE_INIT;
    LLVMTargetRef t;
    char *message = NULL;
    pthread_once(&entered, register_targets);
    if (!cpu_machine_find(g->c, g->opt->march, &g->machine)) return false;
    g->triple = LLVMGetDefaultTargetTriple();
    if (LLVMGetTargetFromTriple(g->triple, &t, &message)) return fail(g, g->triple, message);
    LLVMCodeGenOptLevel level =
        g->opt->opt_level < 2 ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
    g->tm = LLVMCreateTargetMachine(t, g->triple, g->machine.cpu, g->machine.features, level,
                                    LLVMRelocPIC, LLVMCodeModelDefault);
    if (!g->tm) return fail(g, g->machine.cpu, NULL);
    g->layout = LLVMCreateTargetDataLayout(g->tm);
    return true;
}

/* Makes the LLVM module, and builders for the current place and for the entry block. */
static void make_module(Cg *g) {
    const char *path = g->plan->m->source_path ? g->plan->m->source_path : g->plan->m->name;
    g->mod = LLVMModuleCreateWithNameInContext(g->plan->m->name, g->lc);
    LLVMSetSourceFileName(g->mod, path, strlen(path));
    LLVMSetTarget(g->mod, g->triple);
    LLVMSetModuleDataLayout(g->mod, g->layout);
    g->b = LLVMCreateBuilderInContext(g->lc);
    g->entry = LLVMCreateBuilderInContext(g->lc);
}

/* Checks the module with LLVM's verifier. False after a diagnostic. */
static bool verify(Cg *g) {
    char *message = NULL;
    bool bad = LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &message);
    if (bad) return fail(g, "the generated LLVM IR is broken", message);
    LLVMDisposeMessage(message);
    return true;
}

/* LLVM's passes: what kernels need of -O3, in the order that pays: registers out of allocas, then
 * address arithmetic, invariants out of loops, and a last cleanup. At -O1 code is to come soon. */
static const char *pass_pipeline(int opt_level) {
    if (opt_level == 0) return "function(sroa)";
    if (opt_level == 1) return "function(sroa,early-cse<memssa>)";
    return "function(sroa,early-cse<memssa>,simplifycfg," COMBINE ",loop-mssa(licm),"
           "loop(indvars,loop-unroll-full),sroa,gvn," COMBINE ",dse,loop-mssa(licm),simplifycfg,"
           "early-cse<memssa>)";
}

/* Runs LLVM's passes over the module. Its vectorizers are off, as kernels are vectorized already.
 * False after a diagnostic. */
static bool optimise(Cg *g) {
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(o, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(o, 0);
    LLVMErrorRef e = LLVMRunPasses(g->mod, pass_pipeline(g->opt->opt_level), g->tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (!e) return true;
    char *message = LLVMGetErrorMessage(e), *copy = LLVMCreateMessage(message);
    LLVMDisposeErrorMessage(message);
    return fail(g, "LLVM passes", copy);
}

/* Writes LLVM IR; LLVM's own writing ends the process where the disk is full. */
static bool write_text(Cg *g, const char *path) {
    const char *text = keep_message(g, LLVMPrintModuleToString(g->mod));
    return ctx_write(g->c, path, text, strlen(text));
}

/* Writes the module as LLVM IR, assembly or an object file. False after a diagnostic. */
static bool write_out(Cg *g, EmitKind kind, const char *path) {
    char *message = NULL;
    if (kind == EMIT_IR_TEXT) return write_text(g, path);
    LLVMCodeGenFileType type = kind == EMIT_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(g->tm, g->mod, type, &message, &g->out)) {
        diag_add(g->c, DIAG_E0003, (Span){0}, "%s: %s", path ? path : "standard output",
                 keep_message(g, message));
        return false;
    }
    return ctx_write(g->c, path, LLVMGetBufferStart(g->out), LLVMGetBufferSize(g->out));
}

/* Compiles the plan's kernels. False after diagnostics. */
static bool compile(Cg *g, EmitKind kind, const char *path) {
    g->lc = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(g->lc, ignore_remark, NULL);
    make_types(g);
    if (!make_machine(g)) return false;
    make_module(g);
    cpu_debug_begin(g);
    for (int i = 0; i < g->plan->kernels.n; i++) {
        const LKernel *k = g->plan->kernels.v[i];
        TargetMachine machine = machine_for_passes(&g->machine, g->opt);
        Loops l;
        ctx_poll(g->c);
        if (loop_is_behind(k)) continue;
        if (!loop_pass_all(g->c, g->plan, &target_cpu, &machine, k, &l)) return false;
        g->c->stage = arena_printf(g->a, "kernel '%s'", k->name);
        cpu_kernel(g, l.k.v[0]);
    }
    g->c->stage = NULL;
    cpu_debug_end(g);
#ifndef NDEBUG
    if (!verify(g)) return false;
#endif
    return optimise(g) && write_out(g, kind, path);
}

/* Compiles the plan's kernels to a file and releases what LLVM holds. */
static bool emit_kernels(Ctx *c, const Plan *p, const TargetOptions *o, EmitKind kind,
                         const char *path) {
    Cg *g = NEW(c->a, Cg);
    ctx_defer(c, release, g);
    *g = (Cg){.c = c, .a = c->a, .plan = p, .opt = o};
    bool ok = compile(g, kind, path);
    release(g);
    return ok;
}

const Target target_cpu = {
    .name = "cpu",
    .lanes = 16,
    .emit_kernels = emit_kernels,
    .find_machine = find_machine,
    .loop_passes =
        "vector-width,flatten,expand-scalars,strip-mine,unroll-loops,vectorise-outer,tile,prefetch,"
        "compare-random",
};
