/* Random functions (ir_random.h), forward and backward, and every function of
 * tests/regress/ *.gir: the interpreter against compiled code at -O0, -O2 and with large values in
 * bf16 (level 18).
 *
 * A batch of functions is one program per level, compiled and run in a child process,
 * so that a crash is a result like any other; the batch is then halved until the culprit
 * is alone.  A failing function is made small by cutting items out as long as it still
 * fails, and its text is printed: a file for tests/regress.
 *
 *     RANDOM_IR=first:count build/tests/unit/random_ir_test functions    more seeds */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler.h"
#include "cpu_executor.h"
#include "ir_data.h"
#include "ir_random.h"
#include "passes/autodiff.h"
#include "passes/threshold.h"

#ifdef HAS_ASAN
enum { N_SEEDS = 30 }; /* five times as long each */
#else
enum { N_SEEDS = 120 };
#endif
enum { BATCH = 60, N_TRAIN = 8, STEPS = 3, SHOWN = 3, WHY = 240 };

typedef struct {
    RandomCase c;
    bool trains; /* as @train, with an optimizer, several steps: a program of its own */
    int n_items, n_ops;
    bool failed;
    char why[WHY];
} Trial;

typedef struct {
    const char *path; /* a .gir, or NULL: the trials */
    Trial *trials;
    int n, level, out;
} Job;

typedef struct {
    int index, n_items, n_ops;
    bool failed;
    char why[WHY];
} Result;

/* ---- in the child ----------------------------------------------------------------------- */

/* A large epsilon: Adam's step must not hang on the sign of a rounding error. */
static Recipe recipe(uint32_t seed) {
    static const OptimKind kinds[] = {OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW};
    Recipe r = {.present = true, .optim = kinds[seed % 3], .lr = ir_data_lr, .epochs = 1};
    r.weight_decay = seed % 2 ? 0.01 : 0;
    r.momentum = seed % 4 < 2 ? 0.9 : 0;
    r.nesterov = seed % 4 == 1;
    r.beta1 = 0.9, r.beta2 = 0.99, r.eps = 0.25;
    r.clip_norm = seed % 5 < 3 ? 1 : 0;
    r.accumulate = seed % 7 == 0 ? 2 : 0;
    r.ema = seed % 6 == 5 ? 0.9 : 0;
    return r;
}

static bool trains(const Job *j) {
    return j->trials && j->trials->trains;
}

static Module *module_of(Ctx *c, const Job *j) {
    if (j->path) {
        uint32_t file = ctx_add_file(c, j->path, (Span){0});
        Module *m = file == UINT32_MAX ? NULL : module_parse(c, file);
        return m && module_verify(c, m, "parse") ? m : NULL;
    }
    Module *m = module_new(c, "random");
    RandomSpaces *s = ir_random_spaces(m);
    for (int i = 0; i < j->n; i++) {
        const char *name = trains(j) ? "train" : arena_printf(c->a, "f%d", i);
        ir_random_func(s, &j->trials[i].c, name, &j->trials[i].n_items);
    }
    if (trains(j)) m->recipe = recipe(j->trials->c.seed);
    return module_verify(c, m, "the generator") ? m : NULL;
}

static bool with_gradients(Ctx *c, Module *m) {
    PassCtx p = {.ctx = c, .a = c->a};
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        bool has = false;
        for (const Op *op = f->first; op; op = op->next)
            has |= op->kind == OP_OUTPUT && op->use.role == OUT_GRAD;
        if (!has && func_output(f, "loss") && !pass_autodiff_func(&p, m, f)) return false;
    }
    return true;
}

static Interp *interp_on(Ctx *c, Module *m, bool exact) {
    Interp *in = interp_new(c, m);
    interp_set_exact(in, exact);
    ir_data_interp(in, m);
    Func *load = func_of(m, PHASE_LOAD);
    if (load) interp_run(in, load);
    return in;
}

static bool start(Ctx *c, CpuExec *x, Module *m) {
    const char *dir = cpu_exec_dir(c);
    if (!dir || !ir_data_write(c, m, dir)) return false;
    if (!cpu_exec_load(x, dir, IR_DATA_SEED, ir_data_lr)) {
        fprintf(stderr, "load: %s\n", cpu_exec_error(x));
        return false;
    }
    for (int i = 0; i < m->vars.n; i++) {
        int64_t n;
        const double *v = ir_data_var(m, m->vars.v[i], &n);
        if (m->vars.v[i]->kind < VAR_SLOT) /* one that nothing reads may be gone */
            cpu_exec_set(x, m->vars.v[i]->path, n, v);
    }
    return true;
}

static void send_result(const Job *j, const Result *r) {
    if (write(j->out, r, sizeof *r) != (ssize_t)sizeof *r) _exit(3);
}

static void run_all(Ctx *c, const Job *j, CpuExec *x, Module *m) {
    CpuOracle o = {.rounded = interp_on(c, m, false), .exact = interp_on(c, m, true)};
    for (int i = 0, at = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        if (!strcmp(f->name, "load")) continue;
        StrBuf why = sb_new(c->a);
        sb_puts(&why, "");
        Result r = {.index = at, .n_ops = f->n_ops};
        r.failed = !cpu_exec_agrees(x, &o, f, &why);
        if (!j->path) r.n_items = j->trials[at].n_items;
        snprintf(r.why, sizeof r.why, "%s", why.s);
        send_result(j, &r);
        at++;
    }
}

static void at_step(Interp *in, int step, double decay) {
    interp_set_seed(in, IR_DATA_SEED, (uint64_t)step);
    interp_set_input(in, "step", step + 1);
    interp_set_input(in, "weight_decay", decay);
}

static void run_steps(Ctx *c, const Job *j, CpuExec *x, Module *m) {
    CpuOracle o = {.rounded = interp_on(c, m, false), .exact = interp_on(c, m, true)};
    Func *f = func_of(m, PHASE_TRAIN);
    StrBuf why = sb_new(c->a);
    Result r = {.n_items = j->trials->n_items, .n_ops = f->n_ops};
    sb_puts(&why, "");
    for (int step = 0; step < STEPS && !r.failed; step++) {
        at_step(o.rounded, step, m->recipe.weight_decay);
        at_step(o.exact, step, m->recipe.weight_decay);
        r.failed = !cpu_exec_agrees(x, &o, f, &why);
    }
    snprintf(r.why, sizeof r.why, "%s", why.s);
    send_result(j, &r);
}

/* In 16 bits the interpreter sees what the passes made: it is they who say where to round. */
static void train(Ctx *c, const Job *j, Module *seen, Module *m) {
    PassOptions o = {.verify_each = true};
    bool ok = j->level & CPU_EXEC_BF16 ? cpu_exec_train_passes(c, seen, j->level)
                                       : pass_run_all(c, seen, "autodiff,optimizer", &o);
    if (!ok) return;
    if (!cpu_exec_train_passes(c, m, j->level)) return;
    CpuExec *x = cpu_exec_build(c, m, j->level);
    if (x && start(c, x, seen)) run_steps(c, j, x, seen);
}

/* Half of the cases with each threshold of the passes at an end of its range: nothing may hang on
 * them but time.  (A loop that is longer than the limit of `unroll` would be refused.) */
static const int *thresholds(Ctx *c, uint64_t seed) {
    int *t = NEWN(c->a, int, N_PASS_THRESHOLDS);
    if (seed % 4 < 2) return NULL;
    for (int i = 0; i < N_PASS_THRESHOLDS; i++) {
        const PassThresholdText *x = pass_threshold_text((PassThreshold)i);
        t[i] = i == PASS_T_UNROLL_OPS ? x->usual : seed % 4 == 2 ? x->least : x->most;
    }
    return t;
}

static void work(Ctx *c, void *arg) {
    const Job *j = arg;
    if (j->trials) c->thresholds = thresholds(c, j->trials->c.seed);
    Module *seen = module_of(c, j), *m = module_of(c, j);
    if (m && trains(j)) train(c, j, seen, m);
    if (!m || trains(j)) return;
    bool low = j->level & CPU_EXEC_BF16;
    if (!(low ? cpu_exec_passes(c, seen, j->level) : with_gradients(c, seen))) return;
    if (!cpu_exec_passes(c, m, j->level)) return;
    CpuExec *x = cpu_exec_build(c, m, j->level);
    if (x && start(c, x, seen)) run_all(c, j, x, seen);
}

static void child(Job *j) {
    Ctx c;
    if (!ctx_init(&c, NULL)) _exit(3);
    signal(SIGABRT, SIG_DFL);
    bool ok = ctx_run(&c, work, j);
    if (j->n == 1 || j->path) diag_print_all(&c, stderr, false);
    ctx_free(&c);
    _exit(ok ? 0 : 3);
}

/* ---- batches -------- */

/* How many functions gave a result before the child ended. */
static int run_child(Job j, Result *got, int max, int *status) {
    int fd[2], n = 0;
    fflush(NULL);
    if (pipe(fd) != 0) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        j.out = fd[1];
        child(&j);
    }
    close(fd[1]);
    while (n < max && read(fd[0], &got[n], sizeof *got) == (ssize_t)sizeof *got) n++;
    close(fd[0]);
    waitpid(pid, status, 0);
    return n;
}

static void mark(Trial *t, const Result *r, int level) {
    t->n_items = r->n_items;
    t->n_ops = r->n_ops;
    if (!r->failed || t->failed) return;
    t->failed = true;
    snprintf(t->why, sizeof t->why, "-O%d %.*s", level, WHY - 8, r->why);
}

static void check_level(Trial *t, int n, int level) {
    for (; n > 1 && t->trains; n--) check_level(t++, 1, level);
    Result *got = calloc((size_t)n, sizeof *got);
    int status = 0,
        done = got ? run_child((Job){.trials = t, .n = n, .level = level}, got, n, &status) : 0;
    for (int i = 0; i < done; i++) mark(&t[i], &got[i], level);
    free(got);
    if (done == n) return;
    if (done == 0 && n > 1) { /* before anything ran: whose fault? */
        check_level(t, n / 2, level);
        check_level(t + n / 2, n - n / 2, level);
        return;
    }
    Result broken = {.failed = true, .n_items = t[done].n_items, .n_ops = 1 << 20};
    snprintf(broken.why, WHY, "%s, status %d", done ? "the function crashed" : "no program",
             status);
    mark(&t[done], &broken, level);
    if (done + 1 < n) check_level(t + done + 1, n - done - 1, level);
}

static void check_trials(Trial *t, int n) {
    check_level(t, n, 0);
    check_level(t, n, 2);
    check_level(t, n, 2 | CPU_EXEC_BF16);
}

/* ---- making it small -------- */

static bool has_cut(const RandomCase *c, int item) {
    for (int i = 0; i < c->n_cuts; i++)
        if (c->cut[i] == item) return true;
    return false;
}

/* All ways to cut `size` neighbouring items, in one batch; the first that still fails. */
static bool cut_once(Trial *from, int size) {
    RandomCase *c = &from->c;
    int n_items = from->n_items;
    Trial *t = calloc((size_t)n_items, sizeof *t);
    int n = 0, found = -1;
    for (int at = n_items - size; t && at >= 0; at -= size) {
        Trial *x = &t[n];
        x->trains = from->trains;
        x->c = *c;
        for (int k = at; k < at + size; k++)
            if (!has_cut(c, k) && x->c.n_cuts < IR_RANDOM_CUTS) x->c.cut[x->c.n_cuts++] = k;
        if (x->c.n_cuts > c->n_cuts) n++;
    }
    if (n) check_trials(t, n);
    for (int i = 0; i < n && found < 0; i++)
        if (t[i].failed) found = i;
    if (found >= 0) {
        *c = t[found].c;
        memcpy(from->why, t[found].why, WHY);
    }
    free(t);
    return found >= 0;
}

static void shrink(Trial *t) {
    for (int size = t->n_items / 2; size > 0; size /= 2)
        while (cut_once(t, size)) {
        }
}

/* A case without a program has told nobody how many items it has. */
static void count_items(Ctx *c, void *arg) {
    Trial *t = arg;
    ir_random_func(ir_random_spaces(module_new(c, "random")), &t->c, "f", &t->n_items);
}

static void print_case(Ctx *c, void *arg) {
    const Trial *t = arg;
    Module *m = module_new(c, "random");
    RandomSpaces *s = ir_random_spaces(m);
    int n;
    ir_random_func(s, &t->c, "f", &n);
    pass_run_all(c, m, "dce", NULL);
    StrBuf text = sb_new(c->a);
    module_print(&text, m);
    fprintf(stderr, "// seed %u: %s\n%s\n", t->c.seed, t->why, text.s);
}

static void report(Trial *t) {
    Ctx c;
    fprintf(stderr, "seed %u: %s; making it small ..\n", t->c.seed, t->why);
    if (!ctx_init(&c, NULL)) return;
    ctx_run(&c, count_items, t);
    shrink(t);
    ctx_run(&c, print_case, t);
    ctx_free(&c);
}

static void check_seeds(Trial like, unsigned count) {
    unsigned first = 1;
    const char *more = getenv("RANDOM_IR");
    if (more) sscanf(more, "%u:%u", &first, &count);
    Trial *t = calloc(count, sizeof *t);
    int n_failed = 0;
    for (unsigned i = 0; t && i < count; i++) {
        t[i] = like;
        t[i].c.seed = first + i;
    }
    for (unsigned i = 0; t && i < count; i += BATCH)
        check_trials(t + i, (int)(count - i < BATCH ? count - i : BATCH));
    for (unsigned i = 0; t && i < count; i++) {
        CHECK_MSG(!t[i].failed, "seed %u: %s", t[i].c.seed, t[i].why);
        if (t[i].failed && n_failed++ < SHOWN) report(&t[i]);
    }
    free(t);
}

TEST(random_functions_agree) {
    check_seeds((Trial){.trains = false}, N_SEEDS);
}

/* Several steps of @train, with its optimizer. */
TEST(random_training_agrees) {
    check_seeds((Trial){.trains = true, .c.smooth = true}, N_TRAIN);
}

/* ---- what was found before -------- */

static void replay(const char *path, int level) {
    static Result got[64];
    int status = 0, n = run_child((Job){.path = path, .level = level}, got, 64, &status);
    CHECK_MSG(n > 0 && status == 0, "%s: -O%d: status %d after %d functions", path, level, status,
              n);
    for (int i = 0; i < n; i++) CHECK_MSG(!got[i].failed, "%s: -O%d: %s", path, level, got[i].why);
}

TEST(what_was_found_before_agrees) {
    DIR *d = opendir("tests/regress");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".gir")) continue;
        snprintf(path, sizeof path, "tests/regress/%s", e->d_name);
        replay(path, 0);
        replay(path, 2);
        replay(path, 2 | CPU_EXEC_BF16);
    }
    if (d) closedir(d);
}

TEST_MAIN()
