/* The front end: files in, IR text or diagnostics out.
 * Every ```gnn block of docs/language.md compiles, every ```gnn-error block and
 * every file of tests/errors fails with the text its `expect-error` comment gives,
 * and every file of models/ compiles.  `--dump file.gnn` prints a file's IR. */
#include "frontend/fe.h"
#include "frontend/syntax/parse.h"
#include "ctx_test.h"

#include <dirent.h>

static const char *const dirs[] = {"models"};

typedef struct {
    const char *path;
    FeOptions opt;
    Module *m;
    uint32_t from_text; /* not used when path is a file */
} Job;

static void run_job(Ctx *c, void *arg) {
    Job *j = arg;
    (void)c;
    j->m = fe_compile(c, j->path, &j->opt);
}

/* Compiles a file; *text gets the printed module or the diagnostics, malloc'ed. */
static bool compile(const char *path, FeOptions opt, char **text) {
    Ctx c;
    size_t n = 0;
    if (!ctx_init(&c, NULL)) return false;
    opt.dirs = dirs;
    opt.n_dirs = 1;
    Job j = {.path = path, .opt = opt};
    bool ran = ctx_run(&c, run_job, &j);
    bool ok = ran && c.n_errors == 0 && (j.m || opt.check_only);
    if (ok && j.m) ok = module_verify(&c, j.m, "the front end");
    FILE *f = open_memstream(text, &n);
    if (ok && j.m) {
        StrBuf b = sb_new(c.a);
        module_print(&b, j.m);
        fputs(b.s, f);
    } else
        diag_print_all(&c, f, false);
    fclose(f);
    ctx_free(&c);
    return ok;
}

static bool compile_text(const char *source, size_t n, FeOptions opt, char **text) {
    char path[] = "/tmp/gnnc_test_XXXXXX.gnn";
    int fd = mkstemps(path, 4);
    FILE *f = fdopen(fd, "wb");
    fwrite(source, 1, n, f);
    fclose(f);
    bool ok = compile(path, opt, text);
    remove(path);
    return ok;
}

static char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *s = malloc(*n + 1);
    *n = fread(s, 1, *n, f);
    s[*n] = 0;
    fclose(f);
    return s;
}

/* ---- expect-error ---------------------------------------------------------------- */
/* Every `expect-error: text` of the source must be in the diagnostics, at its line. */
static void check_expected(const char *name, const char *source, size_t n) {
    char *text;
    bool ok = compile_text(source, n, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(!ok, "%s: compiles, but must not", name);
    int line = 1, wanted = 0, errors = 0;
    for (const char *p = source; *p; p++) {
        if (*p == '\n') line++;
        if (strncmp(p, "expect-error: ", 14) != 0) continue;
        char want[200], at[32];
        snprintf(want, sizeof want, "%.*s", (int)strcspn(p + 14, "\n"), p + 14);
        snprintf(at, sizeof at, ".gnn:%d:", line);
        wanted++;
        bool found = false;
        for (const char *d = strstr(text, at); d && !found; d = strstr(d + 1, at)) {
            const char *end = strchr(d, '\n');
            const char *hit = strstr(d, want);
            found = hit && (!end || hit < end);
        }
        CHECK_MSG(found, "%s:%d: no error \"%s\" in\n%s", name, line, want, text);
    }
    for (const char *d = text; (d = strstr(d, ": error: ")); d++) errors++;
    CHECK_MSG(wanted > 0, "%s: no expect-error comment", name);
    CHECK_MSG(errors == wanted, "%s: %d errors, %d expected\n%s", name, errors, wanted, text);
    free(text);
}

TEST(documented_examples) {
    size_t n;
    char *doc = read_file("docs/language.md", &n);
    CHECK(doc != NULL);
    if (!doc) return;
    int blocks = 0;
    for (char *p = doc; (p = strstr(p, "\n```gnn"));) {
        bool error = strncmp(p + 7, "-error\n", 7) == 0;
        char *start = strchr(p + 1, '\n') + 1, *end = strstr(start, "\n```\n");
        if (!end) break;
        if (p - doc > 2 &&
            memcmp(p - 2, "`:", 2) == 0) { /* a named file, with others: docs.py has them */
            p = end + 1;
            continue;
        }
        char name[40];
        snprintf(name, sizeof name, "language.md block %d", ++blocks);
        char *block = strndup(start, (size_t)(end - start) + 1), *text;
        if (error)
            check_expected(name, block, strlen(block));
        else {
            bool ok = compile_text(block, strlen(block), (FeOptions){0}, &text);
            CHECK_MSG(ok, "%s:\n%s", name, text);
            free(text);
        }
        free(block);
        p = end + 1;
    }
    CHECK(blocks >= 6);
    free(doc);
}

static void each_file(const char *dir, void (*fn)(const char *path)) {
    DIR *d = opendir(dir);
    CHECK_MSG(d != NULL, "%s", dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        const char *dot = strrchr(f->d_name, '.');
        char path[512];
        if (!dot || strcmp(dot, ".gnn") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        fn(path);
    }
    if (d) closedir(d);
}

static void check_error_file(const char *path) {
    size_t n;
    char *s = read_file(path, &n);
    check_expected(path, s, n);
    free(s);
}

TEST(error_files) {
    each_file("tests/errors", check_error_file);
}

/* Every code of the language has a page entry, and an example that the test above runs
 * (E0106, E0104, E0309 need input that a text file cannot hold: tests below). */
TEST(every_code_is_documented) {
    size_t n;
    char *doc = read_file("docs/errors.md", &n);
    CHECK(doc != NULL);
    for (int i = 0; doc && i < N_DIAGS; i++) {
        const char *code = diag_code_name((DiagCode)i);
        if (code[2] < '1' || code[2] > '3') continue;
        char head[300];
        snprintf(head, sizeof head, "\n## %s: %s\n", code, diag_code_title((DiagCode)i));
        CHECK_MSG(strstr(doc, head) != NULL, "docs/errors.md lacks %s", head);
    }
    free(doc);
}

static void check_compiles(const char *path) {
    char *text;
    bool ok = compile(path, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(ok, "%s", text);
    free(text);
}

TEST(shipped_models) {
    each_file("models", check_compiles);
    each_file("models/layers", check_compiles);
}

/* ---- values of the IR --------------------------------------------------------------- */
static bool gives(const char *source, const char *const *want, int n) {
    char *text;
    bool ok = compile_text(source, strlen(source), (FeOptions){0}, &text);
    CHECK_MSG(ok, "%s", text);
    for (int i = 0; ok && i < n; i++)
        CHECK_MSG(strstr(text, want[i]) != NULL, "no '%s' in\n%s", want[i], text);
    free(text);
    return ok;
}
#define GIVES(source, ...)                                                                         \
    gives((source), (const char *const[]){__VA_ARGS__},                                            \
          (int)COUNT(((const char *const[]){__VA_ARGS__})))

#define GRAPH                                                                                      \
    "graph G { node n { x: csr f32[F]; k: cat[K]; y: class[C]; split }\n"                          \
    "  node u { x: f32[U] } edge e: n -> n { w: f32 } edge r: u -> n edge q: n -> u }\n"

TEST(checkpoint_paths_and_shapes) {
    GIVES(GRAPH "layer conv(out: int)(e: edge(S -> D), x: f32[S, I]) -> f32[D, out] {\n"
                "  lin_l = linear(out)\n"
                "  return lin_l(sum(x[e.src], over = e.dst)) }\n"
                "layer heads(n: int, out: int)(x: f32[N, I]) -> f32[N, n * out] {\n"
                "  param a: f32[n, out, I] = glorot() as \"att\"[1, n * out, I]\n"
                "  return flatten(x @ a, n, out) }\n"
                "model M(g: G) -> f32[n, C] {\n"
                "  convs = [t: conv(C) for t in g.edges if t.dst == n]\n"
                "  ls = [linear(8) for i in 0..2]\n"
                "  nn = sequential(linear(8), relu, linear(8))\n"
                "  hd = heads(2, 3)\n"
                "  h = ls[1](ls[0](g.n.x)) + nn(g.n.x)\n"
                "  z = hd(h)\n"
                "  return convs[u, r, n](g.r, g.u.x) + convs[e](g.e, h) + sum(z) }\n",
          "param \"convs.<n___e___n>.lin_l.weight\": f32[C, ", "= kaiming_uniform(2.23606797749979",
          "param \"convs.<u___r___n>.lin_l.bias\": f32[C]", "param \"ls.0.weight\"",
          "param \"nn.0.weight\"", "param \"nn.2.bias\"",
          "= glorot(1, fan_in 8, fan_out 6) as [1, 6, 8]");
}

TEST(a_dimension_flattened_with_one_is_itself) {
    GIVES(GRAPH "model M(g: G; k: int = 8) -> f32[n, C] { a = linear(k)\n  b = linear(C)\n"
                "  return b(flatten(expand(a(g.n.x), 1), 1, k)) }\n",
          "param \"b.weight\": f32[C, ");
}

TEST(csr_is_kept_by_dropout_and_products) {
    GIVES(GRAPH "model M(g: G) -> f32[n, C] { lin = linear(C)\n"
                "  return lin(dropout(g.n.x, 0.5)) }\n"
                "train M { target n.y loss cross_entropy optimizer adam }\n",
          "= mul %x, %6 : csr f32[n, F]", "contract %7, %lin.weight : f32[n, C]");
}

TEST(computed_if_becomes_a_selection) {
    GIVES(GRAPH
          "model M(g: G) -> f32[u, U] {\n"
          "  s = sum(g.u.x)\n"
          "  a = 1.0\n"
          "  if s > 0 { h = g.u.x; a = 2.0 } else if s < -1 { h = -g.u.x } else { h = g.u.x * 2 }\n"
          "  return h * a }\n",
          "= select %", ": f32[u, U]", "= neg %");
}

TEST(state_is_assigned_once_per_step) {
    GIVES(GRAPH "layer bn(;m: float = 0.1)(x: f32[N, I]) -> f32[N, I] {\n"
                "  state mu: f32[I] = 0 as \"running_mean\"\n"
                "  if training { mu = (1 - m) * mu + m * mean(x, N) }\n"
                "  return x - mu }\n"
                "model M(g: G) -> f32[n, C] { norm = bn(); lin = linear(C)\n"
                "  return norm(norm(lin(g.n.x))) }\n"
                "train M { target n.y loss cross_entropy optimizer sgd(lr = 0.1) }\n",
          "state \"norm.running_mean\": f32[C] = const(0)", "assign \"norm.running_mean\" %");
}

TEST(conditions_of_relations_go_to_load) {
    GIVES(GRAPH "model M(g: G) -> f32[n] {\n"
                "  a = g.e where g.e.w > 0.5\n"
                "  b = g.e where g.e.w > 0.5\n"
                "  l = with_self_loops(a, fill = \"mean\")\n"
                "  return sum(carry(a.w, b), over = b.dst) + sum(l.w, over = l.dst) }\n",
          "edge e_where = where(e, \"where_0\")", "func @load", "output \"where_0\"",
          "self_loops(e_where)");
}

TEST(categories_index_tables) {
    GIVES(GRAPH "model M(g: G; d: int = 4) -> f32[n, d] {\n"
                "  param emb: f32[K, d] = normal(0, 1)\n"
                "  return emb[g.n.k] }\n",
          "gather col(n.k) %emb : f32[n, d]");
}

TEST(recipe_in_full) {
    GIVES(GRAPH "model M(g: G; lr: float = 0.5) -> f32[n, C] { a = linear(8); b = linear(C)\n"
                "  return b(a(g.n.x)) }\n"
                "train M { target n.y loss 0.5 * cross_entropy, 2 * cross_entropy metric accuracy\n"
                "  optimizer sgd(lr, momentum = 0.9, nesterov = true) group a { lr_scale = 0.1 }\n"
                "  schedule step(every = 30, gamma = 0.5, warmup = 3) clip 2 epochs 7\n"
                "  keep best on val loss stop after 9 }\n",
          "optimizer = sgd", "lr = 0.5", "momentum = 0.9", "nesterov", "clip_norm = 2",
          "epochs = 7", "early_stop_patience = 9", "keep_metric = \"loss\"", "keep_split = val",
          "gamma = 0.5", "step_epochs = 30", "warmup_epochs = 3", "group \"a\"",
          "output \"accuracy.test\"");
}

/* ---- options ---------------------------------------------------------------------------- */
TEST(defines_override_constants_and_parameters) {
    const char *src = "const width = 4\n" GRAPH
                      "model M(g: G; hidden: int = 16, deep: bool = false) -> f32[n, hidden] {\n"
                      "  a = linear(deep ? width : 2); b = linear(hidden)\n"
                      "  return b(a(g.n.x)) }\n";
    const FeDefine good[] = {{"hidden", "64"}, {"width", "5"}, {"deep", "true"}};
    char *text;
    CHECK(compile_text(src, strlen(src), (FeOptions){.defs = good, .n_defs = 3}, &text));
    CHECK(strstr(text, "dim hidden = 64") && strstr(text, "dim d5 = 5"));
    free(text);
    const FeDefine bad[] = {{"hiden", "64"}, {"hidden", "many"}};
    CHECK(!compile_text(src, strlen(src), (FeOptions){.defs = bad, .n_defs = 2}, &text));
    CHECK(strstr(text, "no parameter of that name") && strstr(text, "'hidden' is an int"));
    free(text);
}

TEST(model_is_chosen_by_name) {
    const char *src = GRAPH "model A(g: G) -> f32[u, U] { return g.u.x }\n"
                            "model B(g: G) -> f32[u, U] { return g.u.x * 2 }\n";
    char *text;
    CHECK(compile_text(src, strlen(src), (FeOptions){.model = "A"}, &text));
    CHECK(!strstr(text, "= mul"));
    free(text);
    CHECK(!compile_text(src, strlen(src), (FeOptions){.model = "C"}, &text));
    CHECK(strstr(text, "there is no model 'C'") != NULL);
    free(text);
}

/* ---- hostile input ------------------------------------------------------------------------ */
static char *repeated(const char *head, const char *s, int n, const char *tail, size_t *len) {
    size_t h = strlen(head), w = strlen(s), t = strlen(tail);
    char *out = malloc(h + w * (size_t)n + t + 1);
    memcpy(out, head, h);
    for (int i = 0; i < n; i++) memcpy(out + h + w * (size_t)i, s, w);
    memcpy(out + h + w * (size_t)n, tail, t + 1);
    *len = h + w * (size_t)n + t;
    return out;
}

static void fails_with(const char *head, const char *s, int n, const char *tail, const char *want) {
    size_t len;
    char *src = repeated(head, s, n, tail, &len), *text;
    bool ok = compile_text(src, len, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(!ok && strstr(text, want), "%d times '%s': no %s in %.600s", n, s, want, text);
    free(text);
    free(src);
}

TEST(deep_nesting_is_an_error) {
    fails_with("const x = ", "(", 10000, "1", "E0104");
    fails_with("const x = ", "[", 10000, "1", "E0104");
    fails_with("const x = ", "-", 10000, "1", "E0104");
    fails_with("const x = ", "not ", 100000, "true", "E0104");
    fails_with("const x = 1", " + 1", 100000, "", "E0104");
    fails_with("const x = ", "1 ** ", 100000, "1", "E0104");
    fails_with("const x = ", "true ? 1 : ", 100000, "1", "E0104");
    fails_with("fn f(x) { ", "if true { ", 10000, "", "E0104");
    fails_with("fn f(x) { if x { } ", "else if x { } ", 100000, "}", "E0104");
    fails_with("fn f(x) { return x", "(1)", 10000, " }", "E0104");
}

TEST(a_users_name_hides_the_preludes) {
    const char *src = GRAPH "fn relu(x) { return x * 3.0 }\n"
                            "fn accuracy(pred, target, mask) -> f32 { return 1.0 }\n"
                            "model M(g: G) -> f32[n, C] { lin = linear(C)\n"
                            "  return relu(lin(g.n.x)) }\n"
                            "train M { target n.y loss cross_entropy metric accuracy\n"
                            "  optimizer adam keep best on val accuracy }\n";
    char *text;
    CHECK(compile_text(src, strlen(src), (FeOptions){0}, &text));
    CHECK(strstr(text, "const 3 : f32") && !strstr(text, "argmax"));
    free(text);
}

TEST(deep_calls_are_an_error) {
    char src[16384];
    int n = 0;
    for (int f = 0; f < 12; f++) {
        n += snprintf(src + n, sizeof src - (size_t)n, "fn f%d(x: f32[N]) { return ", f);
        for (int i = 0; i < 190; i++) n += snprintf(src + n, sizeof src - (size_t)n, "abs(");
        n += snprintf(src + n, sizeof src - (size_t)n, f < 11 ? "f%d(x)" : "x", f + 1);
        for (int i = 0; i < 190; i++) src[n++] = ')';
        n += snprintf(src + n, sizeof src - (size_t)n, " }\n");
    }
    char *text;
    CHECK(!compile_text(src, (size_t)n, (FeOptions){.check_only = true}, &text));
    CHECK_MSG(strstr(text, "E0104") != NULL, "%.500s", text);
    free(text);
}

TEST(broken_text_is_an_error) {
    fails_with("const x = 1 # caf\xc3", "", 0, "", "E0106");
    fails_with("const x = 1 # \xff", "", 0, "\n", "E0106");
    char *text, nul[] = "const x = 1\0 2";
    CHECK(!compile_text(nul, sizeof nul - 1, (FeOptions){.check_only = true}, &text));
    CHECK(strstr(text, "E0106") != NULL);
    free(text);
    fails_with("const x = ", "\xc3\xa9", 1, "\n", "E0101");
    fails_with("", "}", 1000, "", "E0103");
    fails_with("", "$", 1000, "", "E0101");
}

TEST(large_files_are_read_in_linear_time) {
    size_t len;
    char *text,
        *src = repeated("", "# 0123456789012345678901234567890123456789\n", 240000, "", &len);
    CHECK(compile_text(src, len, (FeOptions){.check_only = true}, &text));
    free(text);
    free(src);
    src = repeated("fn f(x: f32[N]) {\n", "  x = x + 1.0\n", 20000, "  return x\n}\n", &len);
    CHECK(compile_text(src, len, (FeOptions){.check_only = true}, &text));
    free(text);
    free(src);
    src = repeated("const ", "a", 10000000, " = 1", &len);
    CHECK(compile_text(src, len, (FeOptions){.check_only = true}, &text));
    free(text);
    free(src);
}

TEST(imports_may_be_cyclic_or_missing) {
    fails_with("import \"no/such.gnn\"\n", "", 0, "", "E0301");
    char path[] = "/tmp/gnnc_cycle_XXXXXX.gnn";
    FILE *f = fdopen(mkstemps(path, 4), "w");
    fprintf(f, "import \"%s\"\nfn f(x) { return x }\n", strrchr(path, '/') + 1);
    fclose(f);
    char *text;
    bool ok = compile(path, (FeOptions){.check_only = true}, &text);
    CHECK_MSG(ok, "%s", text);
    free(text);
    remove(path);
}

/* ---- memory ---------------------------------------------------------------------------------- */
/* The n-th allocation fails, for every n: nothing crashes, nothing stays. */
TEST(out_of_memory_at_every_allocation) {
    for (long n = 0; n < 1000; n++) {
        FewBlocks b;
        const Allocator from = few_blocks(&b, n, 8192);
        Ctx c;
        if (!ctx_init(&c, &from)) {
            CHECK(b.live == 0);
            continue;
        }
        Job j = {.path = "models/gat.gnn", .opt = {.dirs = dirs, .n_dirs = 1}};
        bool ran = ctx_run(&c, run_job, &j);
        bool done = ran && j.m;
        ctx_free(&c);
        CHECK_MSG(b.live == 0, "%ld blocks stay after failing the %ldth", b.live, n);
        if (done) return;
    }
    CHECK_MSG(false, "1000 allocations are not enough");
}

int main(int argc, char **argv) {
    char *text;
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) {
        bool ok = compile(argv[2], (FeOptions){0}, &text);
        fputs(text, ok ? stdout : stderr);
        free(text);
        return !ok;
    }
    return test_main_(argc, argv, __FILE__);
}
