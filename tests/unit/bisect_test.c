/* gnnc --bisect finds a fault that is planted in the pass that fuses: the pass, the change of it
 * and the function.  Programs are judged by what they compute: this test is the command, too. */
#define pass_fuse right_fuse
#include "passes/fuse.c"
#undef pass_fuse

#include <math.h>
#include <unistd.h>

#include "ctx_test.h"
#include "frontend/cli/cli.h"
#include "ir/interp.h"
#include "ir_data.h"

/* A difference that is computed in its user's kernel has its operands the other way round. */
static bool run_wrongly(PassCtx *p, Module *m) {
    bool ok = right_fuse.run(p, m);
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_SUB && op->fused && type_eq(&op->in[0]->type, &op->type)) {
                Op *x = op->in[0];
                op->in[0] = op->in[1];
                op->in[1] = x;
            }
    return ok;
}

extern const Pass pass_fuse;
const Pass pass_fuse = {
    .name = "fuse",
    .summary = "a wrong one",
    .needs = IR_TYPED | IR_NO_CSR,
    .gives = IR_FUSED,
    .run = run_wrongly,
};

/* ---- the command --------------------------------------------------------------------------- */
static const char model[] = "tests/passes/pipeline_gcn.gir";

static double loss_of(Ctx *c, const char *path, const char *passes) {
    Module *m = module_parse(c, ctx_add_file(c, path, (Span){0}));
    if (!m || c->n_errors || !pass_run_all(c, m, passes, NULL)) return NAN;
    Interp *in = interp_new(c, m);
    ir_data_interp(in, m);
    Func *load = func_of(m, PHASE_LOAD);
    if ((load && !interp_run(in, load)) || !interp_run(in, func_of(m, PHASE_TRAIN))) return NAN;
    const OpTensor *loss = interp_output(in, "loss");
    return loss ? loss->v[0] : NAN;
}

typedef struct {
    const char *path;
    bool good;
} Judged;

static void judge(Ctx *c, void *arg) {
    Judged *j = arg;
    double got = loss_of(c, j->path, ""), want = loss_of(c, model, "");
    j->good = fabs(got - want) <= 1e-5 * fabs(want);
}

/* ---- the search ---------------------------------------------------------------------------- */
static char self[4096];

typedef struct {
    const char *command, *option;
    bool ok;
    int diags;
    char *said;
    char why[200];
} Job;

static void search(Ctx *c, void *arg) {
    Job *j = arg;
    CliOptions o;
    size_t n;
    char *argv[] = {
        (char *)"gnnc",     (char *)model,      (char *)"--target=cpu", (char *)"--emit=ir",
        (char *)"--bisect", (char *)j->command, (char *)j->option,      NULL};
    c->outside.own_process = true;
    c->outside.out = open_memstream(&j->said, &n);
    CHECK(cli_parse(c->a, &o, j->option ? 7 : 6, argv, stderr));
    j->ok = cli_act(c, &o);
    fclose(c->outside.out);
    if (c->diags.n) snprintf(j->why, sizeof j->why, "%s", c->diags.v[0].text);
}

TEST(a_fault_in_fusion_is_found_with_the_change_and_the_function) {
    char command[5000];
    snprintf(command, sizeof command, "'%s' --judge", self);
    Job j = {.command = command};
    with_ctx(search, &j);
    CHECK_MSG(j.ok, "%s", j.why);
    CHECK_MSG(strstr(j.said, "the first bad pass: fuse#1, number ") == j.said, "%s", j.said);
    CHECK_MSG(strstr(j.said, "of its changes: ") && strstr(j.said, " in @train\n"), "%s", j.said);
    CHECK_MSG(strstr(j.said, "  good: --disable-pass=fuse#1\n"), "%s", j.said);
    /* One line differs: the one whose operands are the wrong way round. */
    const char *gone = strstr(j.said, "\n-"), *come = strstr(j.said, "\n+");
    CHECK_MSG(gone && come && !strstr(gone + 1, "\n-") && !strstr(come + 1, "\n+"), "%s", j.said);
    CHECK_MSG(gone && strstr(gone, "= sub ") && come && strstr(come, "= fused sub "), "%s", j.said);
    free(j.said);
}

TEST(what_is_no_pass_s_fault_is_told) {
    static const struct {
        const char *command, *option, *why;
    } all[] = {
        {"true #", NULL, "is content with the program that all passes make"},
        {"false #", NULL, "is not content without any pass"},
        {"true #", "--bisect-limit=3", "is content with the program that all passes make"},
        {"no_such_command_of_gnnc", NULL, "ended with 127: it could not be run"},
        {"exit 125 #", NULL, "ended with 125: it could not tell"},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        Job j = {.command = all[i].command, .option = all[i].option};
        with_ctx(search, &j);
        CHECK_MSG(!j.ok && strstr(j.why, all[i].why), "%s: %s", all[i].command, j.why);
        CHECK_STR(j.said, "");
        free(j.said);
    }
}

int main(int argc, char **argv) {
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) return 2;
    if (argc != 3 || strcmp(argv[1], "--judge") != 0) return test_main_(argc, argv, __FILE__);
    Judged j = {.path = argv[2]};
    with_ctx(judge, &j);
    return !j.good;
}
