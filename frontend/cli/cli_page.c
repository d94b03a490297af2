/* --emit=html: the texts of all stages of one compile, and the reports, in one page. */
#include "codegen/loop_passes/loops.h"
#include "codegen/report/report_page.h"
#include "frontend/cli/cli.h"

#include <string.h>
#include <sys/stat.h>

enum { MOST_TEXTS = 6 };

typedef struct {
    Ctx *c;
    const CliOptions *o;
    PageText text[MOST_TEXTS];
    int n;
} Page;

static void add(Page *p, const char *kind, const char *title, const char *text, size_t n) {
    p->text[p->n++] = (PageText){kind, title, text, n};
}

static void add_buf(Page *p, const char *kind, const char *title, const StrBuf *b) {
    add(p, kind, title, b->s ? b->s : "", b->n);
}

/* Adds the texts of the IR and of the plan's steps to the page. */
static void add_graph(Page *p, const Plan *plan) {
    StrBuf ir = sb_new(p->c->a), steps = sb_new(p->c->a);
    module_print_file(&ir, plan->m);
    add_buf(p, "ir", "graph IR", &ir);
    plan_print_steps(&steps, plan);
    add_buf(p, "plan", "step plan", &steps);
}

/* Adds the texts of all kernels' loops, with their places in the model. */
static void add_loops(Page *p, const Plan *plan) {
    StrBuf b = sb_new(p->c->a);
    for (int i = 0; i < plan->kernels.n; i++) loop_print_places(&b, plan->m, plan->kernels.v[i]);
    add_buf(p, "loops", "loops", &b);
}

/* Emits the kernels to a file and adds its text to the page. False after a diagnostic. */
static bool add_emitted(Page *p, const Plan *plan, const Target *t, EmitKind kind, const char *path,
                        const char *name, const char *title) {
    TargetOptions to = {p->o->march, p->o->opt_level, true};
    struct stat s;
    if (!t->emit_kernels(p->c, plan, &to, kind, path)) return false;
    const char *text = cli_read(p->c, path, &s);
    add(p, name, title, text ? text : "", text ? (size_t)s.st_size : 0);
    return true;
}

/* Adds LLVM IR and assembly of the CPU's kernels. False after a diagnostic. */
static bool add_cpu(Page *p, const Plan *plan, const Target *t, const char *dir) {
    const char *llvm = arena_printf(p->c->a, "%s/page.ll", dir);
    const char *as = arena_printf(p->c->a, "%s/page.s", dir);
    return add_emitted(p, plan, t, EMIT_IR_TEXT, llvm, "llvm", "LLVM IR") &&
           add_emitted(p, plan, t, EMIT_ASM, as, "asm", "assembly");
}

/* Adds CUDA C and PTX of the kernels; without nvcc, why there is no PTX. False after a
 * diagnostic. */
static bool add_cuda(Page *p, const Plan *plan, const char *dir, ReportOptions *ro,
                     ReportBuilts *built) {
    const char *source = arena_printf(p->c->a, "%s/kernels.cu", dir), *ptx = NULL;
    CliHome home;
    size_t n = 0;
    if (!cli_find_home(p->c, &home) ||
        !add_emitted(p, plan, &target_cuda, EMIT_IR_TEXT, source, "cuda", "CUDA C"))
        return false;
    bool ok = cli_cuda_assemble(p->c, &home, p->o, source, dir, &ptx, &n, built, &ro->not_built);
    if (ok) ro->built = built;
    add(p, "asm", ok ? "PTX" : arena_printf(p->c->a, "PTX: %s", ro->not_built), ptx, n);
    return p->c->n_errors == 0;
}

/* Writes the page of --emit=html: all texts that a model becomes, and all reports. since: when
 * compiling began, in milliseconds. */
bool cli_page(Ctx *c, Plan *plan, const Target *t, const CliOptions *o, ReportOptions *ro,
              double since) {
    Page p = {.c = c, .o = o};
    TargetOptions to = {o->march, o->opt_level, true};
    ReportBuilts built = {0};
    StrBuf b = sb_new(c->a);
    const char *dir = cli_temp_dir(c, o);
    if (!dir) return false;
    add_graph(&p, plan);
    if (!loop_pass_arrange(c, plan, t, &to)) return false;
    add_loops(&p, plan);
    ro->on = t;
    if (t == &target_cuda ? !add_cuda(&p, plan, dir, ro, &built) : !add_cpu(&p, plan, t, dir))
        return false;
    ro->compile_ms = cli_now_ms() - since;
    report_page(&b, c, plan, ro, p.text, p.n);
    return cli_write(c, o->out, b.s, b.n);
}
