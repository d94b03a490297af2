/* Codes that only a mistake in the compiler itself can cause, so that no input file
 * gives them: each is provoked by hand. */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "ctx_test.h"

#include <unistd.h>

typedef struct {
    void (*provoke)(Ctx *c);
    DiagCode code;
    const char *text;
} Case;

static Module *parse(Ctx *c, const char *body) {
    const char *text = arena_printf(c->a,
                                    "module \"t\" {\n"
                                    "  node v\n"
                                    "  column v.x: f32[v]\n"
                                    "  func @train {\n"
                                    "    %%x = data v.x : f32[v]\n"
                                    "    %%y = tanh %%x : f32[v]\n"
                                    "%s"
                                    "  }\n"
                                    "}\n",
                                    body);
    Module *m = module_parse(c, ctx_add_text(c, "t.gir", text, strlen(text)));
    CHECK(m != NULL);
    return m;
}

static Plan *plan(Ctx *c) {
    Module *m = parse(c, "    output \"y\" %y\n");
    Plan *p = m ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
    CHECK(p && p->kernels.n == 1);
    return p;
}

/* A pass that forgets a type. */
static void broken_ir(Ctx *c) {
    Module *m = parse(c, "    output \"y\" %y\n");
    m->funcs.v[0]->last->in[0]->type.dt = DT_I32;
    CHECK(!module_verify(c, m, "a bad pass"));
}

static void broken_kernel(Ctx *c) {
    Plan *p = plan(c);
    p->kernels.v[0]->bufs.v[0]->written = false;
    CHECK(!loop_verify(c, p->m, p->kernels.v[0]));
}

static void broken_plan(Ctx *c) {
    Plan *p = plan(c);
    p->phases.v[0]->steps.v[0]->bufs[0] = 99;
    CHECK(!plan_verify(c, p));
}

static void broken_kernel_text(Ctx *c) {
    static const char text[] = "kernel k {\n  out y: f32[N_v]\n  store z\n}\n";
    Plan *p = plan(c);
    int n = 0;
    CHECK(!loop_parse(c, p->m, ctx_add_text(c, "k.loops", text, strlen(text)), &n));
}

/* LLVM refuses to define a function of such a name. */
static void broken_llvm(Ctx *c) {
    char path[] = "/tmp/gnnc_diag_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    TargetOptions o = {.march = "native", .opt_level = 2};
    Plan *p = plan(c);
    p->kernels.v[0]->name = "llvm.donothing";
    CHECK(!target_cpu.emit_kernels(c, p, &o, EMIT_OBJECT, path));
    close(fd);
    unlink(path);
}

static const Case cases[] = {
    {broken_ir, DIAG_E0501, "after a bad pass"},
    {broken_kernel, DIAG_E0541, "not marked as written"},
    {broken_plan, DIAG_E0542, "no such buffer"},
    {broken_kernel_text, DIAG_E0543, "no buffer 'z'"},
    {broken_llvm, DIAG_E0530, "the generated LLVM IR is broken"},
};

static void run(Ctx *c, void *arg) {
    const Case *t = arg;
    t->provoke(c);
    const char *code = diag_code_name(t->code);
    CHECK_MSG(c->diags.n == 1, "%s: %d diagnostics", code, c->diags.n);
    if (!c->diags.n) return;
    CHECK_MSG(c->diags.v[0].code == t->code, "%s, not %s", diag_code_name(c->diags.v[0].code),
              code);
    CHECK_MSG(strstr(c->diags.v[0].text, t->text), "%s: %s", code, c->diags.v[0].text);
}

TEST(what_only_the_compiler_does_wrong_has_a_code) {
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(run, &cases[i]);
}

/* A pass that gathers nodes where there are none. */
static void bad_pass(Ctx *c, void *arg) {
    Module *m = parse(c, "    output \"y\" %y\n");
    Space *v = space_node(m, "other", (Span){0}), *e = space_edge(m, "e", v, v, (Span){0});
    Builder b = {.m = m, .f = m->funcs.v[0], .span = m->funcs.v[0]->last->span};
    c->stage = "pass 'bad'";
    b_gather(&b, map_src(m, e), m->funcs.v[0]->last->in[0]);
    *(bool *)arg = true;
}

static LStmt *tanh_in(LStmt *s) {
    while (s && !(s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_TANH))
        s = s->kind == L_FOR ? s->body : s->next;
    return s;
}

/* A kernel that computes a product where there is but one value; LLVM's objects are there. */
static void bad_kernel(Ctx *c, void *arg) {
    Plan *p = plan(c);
    LStmt *s = tanh_in(p->kernels.v[0]->body);
    CHECK(s);
    if (s) s->op = OP_CONTRACT;
    TargetOptions o = {.march = "native", .opt_level = 2};
    target_cpu.emit_kernels(c, p, &o, EMIT_OBJECT, "/dev/null");
    *(bool *)arg = true;
}

static void ends_with_a_fault(void (*breaks)(Ctx *, void *), const char *says) {
    Ctx c;
    bool went_on = false;
    CHECK(ctx_init(&c, NULL));
    CHECK(!ctx_run(&c, breaks, &went_on));
    CHECK(c.faulted && !went_on && c.n_errors == 1 && c.diags.n == 2);
    if (c.diags.n) {
        CHECK(c.diags.v[0].code == DIAG_E0502 && c.diags.v[0].span.line > 0);
        CHECK_MSG(strstr(c.diags.v[0].text, says), "%s", c.diags.v[0].text);
    }
    ctx_free(&c);
}

TEST(a_rule_that_is_broken_ends_the_compilation_with_a_diagnostic) {
    ends_with_a_fault(bad_pass, "pass 'bad': cannot build 'gather': ");
    ends_with_a_fault(bad_kernel, "kernel 't_train_y_1': 'contract' has no code");
}

TEST_MAIN()
