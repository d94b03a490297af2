/* What plan_verify refuses, and that modules which cannot be lowered are reported. */
#include "ctx_test.h"

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/plan/plan.h"

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

static const char updated[] = "module \"t\" {\n"
                              "  node v\n"
                              "  dim F = 16\n"
                              "  dim O = 8\n"
                              "  column v.x: f32[v, F]\n"
                              "  param \"w\": f32[F, O] = const(0)\n"
                              "  func @train {\n"
                              "    %x = data v.x : f32[v, F]\n"
                              "    %w = var \"w\" : f32[F, O]\n"
                              "    %z = contract %x, %w : f32[v, O]\n"
                              "    output \"y\" %z\n"
                              "    %n = mul %w, %w : f32[F, O]\n"
                              "    assign \"w\" %n\n"
                              "  }\n"
                              "}\n";

static Plan *plan_of(Ctx *c, const char *ir) {
    Module *m = module_parse(c, ctx_add_text(c, "t", ir, strlen(ir)));
    CHECK(m != NULL);
    return m ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
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
    const char *error, *ir; /* NULL: text */
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

/* The update of w, which is made in place, before the product that wants the old w. */
static void updated_early(Plan *p) {
    PStep **s = p->phases.v[0]->steps.v, *update = s[p->phases.v[0]->steps.n - 1];
    CHECK(s[0]->kind == PS_GEMM && update->kind == PS_KERNEL && update->op->kind == OP_MUL);
    memmove(s + 1, s, (size_t)(p->phases.v[0]->steps.n - 1) * sizeof *s);
    s[0] = update;
}
/* A kernel that wants t where z is. */
static void another_value(Plan *p) {
    int z = step_of(p, PS_GEMM)->bufs[2];
    PStep *s = step_of(p, PS_KERNEL);
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == z) s->kernel->bufs.v[i]->value = s->op;
}

static void refused(Ctx *c, void *arg) {
    const Case *t = arg;
    Plan *p = plan_of(c, t->ir ? t->ir : text);
    CHECK(p && plan_verify(c, p));
    t->break_it(p);
    CHECK_MSG(!plan_verify(c, p), "accepted: %s", t->error);
    const char *got = c->diags.n ? c->diags.v[0].text : "no error";
    CHECK_MSG(strstr(got, t->error) != NULL, "got: %s, want: %s", got, t->error);
}

TEST(broken_plans_are_refused) {
    static const Case cases[] = {
        {swap_steps, "read before it is written", NULL},
        {write_data, "must not be written", NULL},
        {other_size, "has another size", NULL},
        {two_names, "under two names", NULL},
        {short_life, "outside of its life", NULL},
        {no_stride, "its strides are not those of the values", NULL},
        {no_buffer, "no such buffer", NULL},
        {broken_kernel, "out of range", NULL},
        {updated_early, "var_w is read as 'w', which another value", updated},
        {another_value, "is read as 'y', which another value has overwritten", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(refused, &cases[i]);
}

static const char missing[] = "module \"t\" {\n  node v\n  func @eval {\n"
                              "    %s = saved \"deg\" : f32[v]\n    output \"y\" %s\n  }\n}\n";
static const char sparse[] = "module \"t\" {\n  node v\n  dim F\n"
                             "  column v.x: csr f32[v, F] nz x.nz\n  func @eval {\n"
                             "    %x = data v.x : csr f32[v, F]\n"
                             "    %y = neg %x : csr f32[v, F]\n    output \"y\" %y\n  }\n}\n";

static const char wide[] =
    "module \"t\" {\n  node v\n  dim A = 1\n  dim B = 1\n  dim C = 1\n  dim D = 1\n"
    "  dim E = 2\n  dim F = 2\n  dim G = 2\n  dim H = 2\n"
    "  param \"p\": f32[v, A, B, C, D] = const(0)\n"
    "  param \"q\": f32[v, E, F, G, H] = const(0)\n  func @eval {\n"
    "    %p = var \"p\" : f32[v, A, B, C, D]\n    %q = var \"q\" : f32[v, E, F, G, H]\n"
    "    %z = contract %p, %q : f32[A, B, C, D, E, F, G, H]\n    output \"y\" %z\n  }\n}\n";

static void not_lowered(Ctx *c, void *arg) {
    const char *const *t = arg;
    CHECK(!plan_of(c, t[0]));
    CHECK(c->diags.n == 1 && strstr(c->diags.v[0].text, t[1]));
}

TEST(what_cannot_be_lowered_is_reported) {
    with_ctx(not_lowered, (const char *[]){missing, "no phase saves an output called 'deg'"});
    with_ctx(not_lowered, (const char *[]){sparse, "still sparse"});
    with_ctx(not_lowered, (const char *[]){wide, "leaves 8 dimensions: at most 7 can be kept"});
}

TEST_MAIN()
