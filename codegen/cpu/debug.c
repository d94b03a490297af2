/* Debug information: each kernel is a subprogram in the .gnn file it comes from, and each
 * instruction carries the line of its statement, so perf and gdb speak of the model. */
#include "codegen/cpu/cpu.h"

/* The debug information of a source file, made on first use. */
static LLVMMetadataRef file_of(Cg *g, uint32_t file) {
    int n = g->c->sources.n;
    if (n == 0 || (int)file >= n) return LLVMDIBuilderCreateFile(g->di, "gnnc", 4, ".", 1);
    if (g->di_file[file]) return g->di_file[file];
    const char *path = ctx_source_name(g->c, file), *dir = path[0] == '/' ? "" : ".";
    return g->di_file[file] = LLVMDIBuilderCreateFile(g->di, path, strlen(path), dir, strlen(dir));
}

/* Adds a module flag. */
static void add_module_flag(Cg *g, const char *name, unsigned v) {
    LLVMMetadataRef m = LLVMValueAsMetadata(LLVMConstInt(g->i32, v, 0));
    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, name, strlen(name), m);
}

void cpu_debug_begin(Cg *g) {
    if (!g->opt->debug_info) return;
    g->di_file = NEWN(g->a, LLVMMetadataRef, g->c->sources.n + 1);
    g->di = LLVMCreateDIBuilder(g->mod);
    add_module_flag(g, "Debug Info Version", LLVMDebugMetadataVersion());
    /* gdb 13 warns of 5's name tables, one an object, and ignores them. */
    add_module_flag(g, "Dwarf Version", 4);
    LLVMDIBuilderCreateCompileUnit(g->di, LLVMDWARFSourceLanguageC11,
                                   file_of(g, g->plan->main_file), "gnnc", 4, g->opt->opt_level > 0,
                                   "", 0, 0, "", 0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0,
                                   "", 0);
}

/* Adds the kernel to the debug information, as a function at its place in the model. */
void cpu_debug_kernel(CgFn *f) {
    Cg *g = f->g;
    LLVMSetCurrentDebugLocation2(g->b, NULL);
    if (!g->di) return;
    LLVMMetadataRef file = file_of(g, f->k->span.file), none = NULL;
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(g->di, file, &none, 0, LLVMDIFlagZero);
    size_t n = strlen(f->k->name);
    f->subprogram = LLVMDIBuilderCreateFunction(g->di, file, f->k->name, n, f->k->name, n, file,
                                                f->k->span.line, type, 0, 1, f->k->span.line,
                                                LLVMDIFlagZero, g->opt->opt_level > 0);
    LLVMSetSubprogram(f->fn, f->subprogram);
    cpu_debug_at(f, f->k->span);
}

void cpu_debug_at(CgFn *f, Span at) {
    Cg *g = f->g;
    if (!g->di || at.line == 0) return;
    LLVMMetadataRef scope = f->subprogram;
    if (at.file != f->k->span.file)
        scope = LLVMDIBuilderCreateLexicalBlockFile(g->di, scope, file_of(g, at.file), 0);
    LLVMMetadataRef here = LLVMDIBuilderCreateDebugLocation(g->lc, at.line, at.col, scope, NULL);
    LLVMSetCurrentDebugLocation2(g->b, here);
}

void cpu_debug_end(Cg *g) {
    if (g->di) LLVMDIBuilderFinalize(g->di);
}
