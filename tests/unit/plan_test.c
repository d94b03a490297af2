/* What plan_verify refuses, and that modules which cannot be lowered are reported. */
#include "test.h"

#include "codegen/plan.h"

static const char text[] = "module \"t\" {\n"
                           "  node v\n"
                           "  dim F\n"
                           "  dim O = 8\n"
                           "  column v.x: f32[v, F]\n"
                           "  param \"w\": f32[F, O] = const(0)\n"
                           "  func @train {\n"
                           "    %x = data v.x : f32[v, F]\n"
                           "    %w = var \"w\" : f32[F, O]\n"
                           "    %z = contract %x, %w : f32[v, O]\n"
                           "    %t = tanh %z : f32[v, O]\n"
                           "    %y = neg %t : f32[v, O]\n"
                           "    %g = contract %x, %z : f32[F, O]\n"
                           "    %n = sub %w, %g : f32[F, O]\n"
                           "    output \"y\" %y\n"
                           "    assign \"w\" %n\n"
                           "  }\n"
                           "}\n";

static Plan *plan_of(Ctx *c, const char *ir) {
    Module *m = module_parse(c, ctx_add_text(c, "t", ir, strlen(ir)));
    CHECK(m != NULL);
    return m ? plan_build(c, m) : NULL;
}

static PStep *step_of(Plan *p, PStepKind kind) {
    for (int i = 0; i < p->phases.v[0]->steps.n; i++)
        if (p->phases.v[0]->steps.v[i]->kind == kind) return p->phases.v[0]->steps.v[i];
    return NULL;
}

static int buf_of(const Plan *p, PBufKind kind) {
    for (int i = 0; i < p->bufs.n; i++)
        if (p->bufs.v[i]->kind == kind) return i;
    return -1;
}

typedef struct {
    void (*break_it)(Plan *p);
    const char *error;
} Case;

static void swap_steps(Plan *p) {
    PStep **s = p->phases.v[0]->steps.v, *first = s[0];
    s[0] = s[1];
    s[1] = first;
}
static void write_data(Plan *p) {
    step_of(p, PS_GEMM)->bufs[2] = buf_of(p, PB_DATA);
}
static void other_size(Plan *p) {
    PStep *s = step_of(p, PS_KERNEL);
    s->bufs[s->n_bufs - 1] = buf_of(p, PB_VAR);
}
static void two_names(Plan *p) {
    PStep *s = step_of(p, PS_KERNEL);
    s->bufs[0] = s->bufs[s->n_bufs - 1];
}
static void short_life(Plan *p) {
    p->bufs.v[step_of(p, PS_GEMM)->bufs[2]]->last = 0;
}
static void no_stride(Plan *p) {
    step_of(p, PS_GEMM)->gemm.a_col = p->bufs.v[buf_of(p, PB_VAR)]->count;
}
static void no_buffer(Plan *p) {
    step_of(p, PS_GEMM)->bufs[1] = p->bufs.n;
}
static void broken_kernel(Plan *p) {
    step_of(p, PS_KERNEL)->kernel->n_regs = 1;
}

static void refused(Ctx *c, void *arg) {
    const Case *t = arg;
    Plan *p = plan_of(c, text);
    CHECK(p && plan_verify(c, p));
    t->break_it(p);
    CHECK_MSG(!plan_verify(c, p), "accepted: %s", t->error);
    const char *got = c->diags.n ? c->diags.v[0].text : "no error";
    CHECK_MSG(strstr(got, t->error) != NULL, "got: %s, want: %s", got, t->error);
}

static void with_ctx(void (*fn)(Ctx *, void *), void *arg) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, fn, arg));
    ctx_free(&c);
}

TEST(broken_plans_are_refused) {
    static const Case cases[] = {
        {swap_steps, "read before it is written"},
        {write_data, "must not be written"},
        {other_size, "has another size"},
        {two_names, "under two names"},
        {short_life, "outside of its life"},
        {no_stride, "no stride of an operand is 1"},
        {no_buffer, "no such buffer"},
        {broken_kernel, "out of range"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(refused, (void *)&cases[i]);
}

static const char missing[] = "module \"t\" {\n  node v\n  func @eval {\n"
                              "    %s = saved \"deg\" : f32[v]\n    output \"y\" %s\n  }\n}\n";
static const char sparse[] = "module \"t\" {\n  node v\n  dim F\n"
                             "  column v.x: csr f32[v, F] nz x.nz\n  func @eval {\n"
                             "    %x = data v.x : csr f32[v, F]\n"
                             "    %y = neg %x : csr f32[v, F]\n    output \"y\" %y\n  }\n}\n";

static void not_lowered(Ctx *c, void *arg) {
    const char *const *t = arg;
    CHECK(!plan_of(c, t[0]));
    CHECK(c->diags.n == 1 && strstr(c->diags.v[0].text, t[1]));
}

TEST(what_cannot_be_lowered_is_reported) {
    with_ctx(not_lowered, (const char *[]){missing, "no output of @load is called 'deg'"});
    with_ctx(not_lowered, (const char *[]){sparse, "still sparse"});
}

TEST_MAIN()
