/* Functions of the user's: their text, their gradients against finite differences, what passes
 * may do with calls, plans against the interpreter, and what is refused. */
#include "ctx_test.h"

#include <math.h>

#include "codegen/plan_passes/plan_pass.h"
#include "ir/interp.h"
#include "codegen/loop/loop_interp.h"
#include "passes/pass.h"

enum { N = 3, F = 2 };

/* mix(x, k, on, a) = on ? x^2 a^k : x, with k integer and `on` per row; a is f64. */
static const char mix_text[] =
    "module \"mix\" {\n  has typed\n  node n\n  dim F = 2\n"
    "  column n.x: f32[n, F]\n  param \"w\": f32[n, F] = const(0)\n  param \"b\": f32 = const(0)\n"
    "  extern \"mix\" from \"mix.c\" grad \"mix_grad\"\n"
    "  extern \"look\" from \"mix.c\" effect\n"
    "  func @train {\n"
    "    %w = var \"w\" : f32[n, F]\n    %b = var \"b\" : f32\n    %a = cast %b : f64\n"
    "    %k = const 2 : i32\n    %zero = const 0 : f32\n    %m = reduce max [F] %w : f32[n]\n"
    "    %on = lt %zero, %m : i1[n]\n"
    "    %y = call \"mix\" %w, %k, %on, %a : f32[n, F]\n"
    "    %again = call \"mix\" %w, %k, %on, %a : f32[n, F]\n"
    "    %unused = call \"mix\" %y, %k, %on, %a : f32[n, F]\n"
    "    %yy = mul %y, %again : f32[n, F]\n    %l = reduce sum [n, F] %yy : f32\n"
    "    %c = lt %l, %zero : i1\n    call_effect when \"look\" %c, %y\n"
    "    call_effect \"look\" %l\n    output \"loss\" %l as loss\n  }\n}\n";

static const double w0[N * F] = {0.5, -1, -0.25, -2, 1.5, 0.75}, b0[1] = {1.25};

typedef struct {
    int mixes, grads, looks;
    double seen;
} Calls;

static int mix(void *user, int n_in, const OpTensor *const *in, int n_out, OpTensor *const *out) {
    ((Calls *)user)->mixes++;
    if (n_in != 4 || n_out != 1 || in[1]->type.dt != DT_I32 || in[2]->type.rank != 1) return 3;
    for (int64_t i = 0; i < in[0]->count; i++) {
        double x = in[0]->v[i], on = in[2]->v[i / F], a = in[3]->v[0];
        out[0]->v[i] = on ? x * x * pow(a, in[1]->v[0]) : x;
    }
    return 0;
}

static int mix_grad(void *user, int n_in, const OpTensor *const *in, int n_out,
                    OpTensor *const *out) {
    ((Calls *)user)->grads++;
    if (n_in != 6 || n_out != 2) return 3;
    double k = in[1]->v[0], a = in[3]->v[0];
    out[1]->v[0] = 0;
    for (int64_t i = 0; i < in[0]->count; i++) {
        double x = in[0]->v[i], g = in[5]->v[i];
        bool on = in[2]->v[i / F] != 0;
        out[0]->v[i] = on ? g * 2 * x * pow(a, k) : g;
        if (on) out[1]->v[0] += g * x * x * k * pow(a, k - 1);
    }
    return 0;
}

static int look(void *user, int n_in, const OpTensor *const *in, int n_out, OpTensor *const *out) {
    (void)out;
    ((Calls *)user)->looks++;
    ((Calls *)user)->seen = in[0]->v[0];
    return n_in == 1 && n_out == 0 ? 0 : 3;
}

static Module *module_of(Ctx *c, const char *text) {
    Module *m = module_parse(c, ctx_add_text(c, "t.gir", text, strlen(text)));
    CHECK(m && module_verify(c, m, NULL));
    if (!m) diag_print_all(c, stderr, false);
    return m;
}

static Interp *given(Ctx *c, Module *m, Calls *calls, const double *w, const double *b) {
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    interp_set_size(in, space_find(m, "n"), N);
    interp_set_var(in, var_find(m, "w"), w);
    interp_set_var(in, var_find(m, "b"), b);
    interp_set_extern(in, "mix", mix, calls);
    interp_set_extern(in, "mix_grad", mix_grad, calls);
    interp_set_extern(in, "look", look, calls);
    return in;
}

static double loss(Ctx *c, Module *m, const double *w, const double *b) {
    Calls calls = {0};
    Interp *in = given(c, m, &calls, w, b);
    CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    return interp_output(in, "loss")->v[0];
}

CTX_TEST(text_parses_back) {
    (void)arg;
    Module *m = module_of(c, mix_text);
    StrBuf once = sb_new(c->a), twice = sb_new(c->a);
    module_print(&once, m);
    Module *again = module_of(c, once.s);
    module_print(&twice, again);
    CHECK_STR(once.s, twice.s);
    CHECK(strstr(twice.s, "extern \"mix\" from \"mix.c\" grad \"mix_grad\""));
    CHECK(strstr(twice.s, "call_effect when \"look\" %c, %y"));
}

/* d loss / d v[i] by a central difference */
static double slope(Ctx *c, Module *m, bool of_w, int i) {
    double w[N * F], b[1] = {b0[0]}, h = 1e-5;
    memcpy(w, w0, sizeof w);
    double *v = of_w ? &w[i] : b, at = *v;
    *v = at + h;
    double up = loss(c, m, w, b);
    *v = at - h;
    return (up - loss(c, m, w, b)) / (2 * h);
}

static void check_gradients(Ctx *c, const char *passes) {
    Module *plain = module_of(c, mix_text), *m = module_of(c, mix_text);
    PassOptions o = {.verify_each = true};
    Calls calls = {0};
    CHECK(pass_run_all(c, m, passes, &o));
    Interp *in = given(c, m, &calls, w0, b0);
    CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    const OpTensor *dw = interp_output(in, "grad.w"), *db = interp_output(in, "grad.b");
    for (int i = 0; i < N * F; i++)
        CHECK_MSG(fabs(dw->v[i] - slope(c, plain, true, i)) < 1e-6, "dw[%d] = %g", i, dw->v[i]);
    CHECK_MSG(fabs(db->v[0] - slope(c, plain, false, 0)) < 1e-6, "db = %g", db->v[0]);
    CHECK(calls.looks == 1); /* the condition of the other does not hold */
    CHECK(calls.seen == interp_output(in, "loss")->v[0]);
}

CTX_TEST(gradients_are_those_of_the_gradient_function) {
    (void)arg;
    check_gradients(c, pass_pipeline_named(0, true));
    check_gradients(c, pass_pipeline_named(2, true));
}

/* Of three equal or unused calls one stays, each gradient is one call. */
CTX_TEST(pure_calls_are_merged_and_dropped_effects_stay) {
    (void)arg;
    Module *m = module_of(c, mix_text);
    Calls calls = {0};
    CHECK(pass_run_all(c, m, pass_pipeline_named(2, true), NULL));
    Interp *in = given(c, m, &calls, w0, b0);
    CHECK(interp_run(in, func_of(m, PHASE_TRAIN)));
    CHECK_MSG(calls.mixes == 1 && calls.grads == 1, "%d, %d", calls.mixes, calls.grads);
}

static void check_plan(Ctx *c, const char *passes) {
    Module *m = module_of(c, mix_text);
    Calls calls = {0};
    CHECK(pass_run_all(c, m, passes, NULL));
    Plan *p = plan_of_module(c, m, NULL, SPMM_OWN, NULL);
    CHECK(p && plan_verify(c, p));
    if (!p) return;
    Interp *in = given(c, m, &calls, w0, b0);
    LoopRun *r = loop_run_new(c, p, in);
    CHECK_MSG(loop_run_phase(r, 0), "%s", loop_run_error(r));
    CHECK(calls.looks == 1);
    CHECK(interp_run(in, func_of(m, PHASE_TRAIN)));
    static const char *const outputs[] = {"loss", "grad.w", "grad.b"};
    for (size_t k = 0; k < COUNT(outputs); k++) {
        int64_t n;
        const double *got = loop_run_output(r, 0, outputs[k], &n);
        const OpTensor *want = interp_output(in, outputs[k]);
        for (int64_t i = 0; got && i < n; i++)
            CHECK_MSG(fabs(got[i] - want->v[i]) < 1e-9, "%s[%d]", outputs[k], (int)i);
        CHECK(got && n == want->count);
    }
}

CTX_TEST(plans_call_what_the_interpreter_calls) {
    (void)arg;
    check_plan(c, pass_pipeline_named(0, true));
    check_plan(c, pass_pipeline_named(2, true));
}

CTX_TEST(broken_plans_are_found) {
    (void)arg;
    Module *m = module_of(c, mix_text);
    Plan *p = plan_of_module(c, m, NULL, SPMM_OWN, NULL);
    for (int i = 0; p && i < p->phases.v[0]->steps.n; i++) {
        PStep *s = p->phases.v[0]->steps.v[i];
        if (s->kind != PS_CALL || s->n_bufs == s->n_in) continue;
        s->bufs[s->n_in] = s->bufs[0];
        CHECK(!plan_verify(c, p));
        return;
    }
    CHECK(!"a call in the plan");
}

CTX_TEST(without_a_function_the_interpreter_says_so) {
    (void)arg;
    Module *m = module_of(c, mix_text);
    Interp *in = interp_new(c, m);
    interp_set_size(in, space_find(m, "n"), N);
    interp_set_var(in, var_find(m, "w"), w0);
    interp_set_var(in, var_find(m, "b"), b0);
    CHECK(!interp_run(in, func_of(m, PHASE_TRAIN)));
    CHECK(strstr(interp_error(in), "no C function 'mix'"));
}

static int seven(void *user, int n_in, const OpTensor *const *in, int n_out, OpTensor *const *out) {
    (void)user, (void)n_in, (void)in, (void)n_out, (void)out;
    return 7;
}

CTX_TEST(a_status_ends_the_run) {
    (void)arg;
    Module *m = module_of(c, mix_text);
    Calls calls = {0};
    Interp *in = given(c, m, &calls, w0, b0);
    interp_set_extern(in, "mix", seven, NULL); /* the one given last counts */
    CHECK(!interp_run(in, func_of(m, PHASE_TRAIN)));
    CHECK(strstr(interp_error(in), "status 7"));
}

/* ---- what is refused ------------------------------------------------------------------ */
static void refused(Ctx *c, const char *lines, const char *want) {
    const char *text =
        arena_printf(c->a,
                     "module \"t\" {\n  node n\n  dim F\n"
                     "  column n.x: csr f32[n, F] nz nz\n"
                     "  column n.f: f32[n, F]\n  column n.t: id\n"
                     "  extern \"f\" from \"f.c\"\n  extern \"e\" from \"f.c\" effect\n"
                     "  func @train {\n    %%x = data n.x : csr f32[n, F]\n"
                     "    %%f = data n.f : f32[n, F]\n    %%t = data n.t : i64[n]\n"
                     "    %s\n  }\n}\n",
                     lines);
    int before = c->diags.n;
    module_parse(c, ctx_add_text(c, "t.gir", text, strlen(text)));
    bool found = false;
    for (int i = before; i < c->diags.n; i++) found = found || strstr(c->diags.v[i].text, want);
    CHECK_MSG(found, "no '%s' for: %s", want, lines);
}

CTX_TEST(ill_formed_calls_are_refused) {
    (void)arg;
    refused(c, "%y = call \"f\" %x : f32[n]", "csr");
    refused(c, "%y = call \"f\" %t : f32[n]", "C functions take");
    refused(c, "%y = call \"f\" %f : i64[n]", "C functions give");
    refused(c, "%y = call \"f\" %f : csr f32[n, F]", "C functions give");
    refused(c, "%y = call \"g\" %f : f32[n]", "no function \"g\"");
    refused(c, "%y = call \"e\" %f : f32[n]", "an effect");
    refused(c, "call_effect \"f\" %f", "not an effect");
    refused(c, "call \"f\" %f", "needs a name");
    refused(c, "call_effect when \"e\" %f", "one truth value");
    refused(c, "%y = call_grad \"f\" %f, %f, %f : f32[n, F]", "no gradient function");
    refused(c, "%y = result 1 %f : f32[n, F]", "no result 1");
    refused(c, "extern \"f\" from \"f.c\"", "no operation");
}

static void gradient(Ctx *c, const char *text, bool ok) {
    Module *m = module_of(c, text);
    int before = c->n_errors;
    CHECK(pass_run_all(c, m, "autodiff", NULL) == ok);
    CHECK((c->n_errors == before) == ok);
}

/* Only where a gradient would have to go through is one missed. */
CTX_TEST(a_missing_gradient_is_an_error_where_it_matters) {
    (void)arg;
#define HEAD                                                                                       \
    "module \"t\" {\n  node n\n  column n.x: f32[n]\n  param \"w\": f32[n] = const(0)\n"           \
    "  extern \"f\" from \"f.c\"\n  func @train {\n    %w = var \"w\" : f32[n]\n"                  \
    "    %x = data n.x : f32[n]\n"
#define TAIL "    %l = reduce sum [n] %z : f32\n    output \"loss\" %l as loss\n  }\n}\n"
    gradient(c, HEAD "    %z = call \"f\" %w : f32[n]\n" TAIL, false);
    gradient(c,
             HEAD "    %y = call \"f\" %w : f32[n]\n    %d = detach %y : f32[n]\n"
                  "    %z = mul %d, %w : f32[n]\n" TAIL,
             true);
    gradient(c, HEAD "    %y = call \"f\" %x : f32[n]\n    %z = mul %y, %w : f32[n]\n" TAIL, true);
    gradient(c,
             HEAD "    %y = call \"f\" %w : i32[n]\n    %c = cast %y : f32[n]\n"
                  "    %z = mul %c, %w : f32[n]\n" TAIL,
             true);
    gradient(c,
             HEAD "    %y = call \"f\" %w : f32[n]\n    output \"y\" %y\n"
                  "    %z = mul %x, %w : f32[n]\n" TAIL,
             true);
}

TEST_MAIN()
