/* The text form: print, parse and print again gives the same text, for modules
 * that use every statement and every operation. */
#include "ir_text.h"

static const char small[] =
    "module \"gat\" {\n"
    "  source \"gat.gnn\"\n"
    "  has typed fused\n"
    "  streams 3\n"
    "  sym K\n"
    "  node paper  !gat.gnn:4:8-13\n"
    "  edge cites: paper -> paper\n"
    "  edge cites_sl = self_loops(cites)\n"
    "  dim F\n"
    "  dim C\n"
    "  dim heads = 8\n"
    "  dim out = 8\n"
    "  dim all = 64\n"
    "  column paper.x: csr f32[paper, F] nz paper_x\n"
    "  column paper.y: class[C]\n"
    "  column paper.split: split\n"
    "  param \"conv1.lin.weight\": f32[heads, out, F] = glorot(1, fan_in F, fan_out 64) as [64, "
    "F]\n"
    "  param \"conv1.bias\": f32[all] = const(0) group \"no_decay\"\n"
    "  state \"steps\": f32 = const(0)\n"
    "  slot \"m\": f32[all] = const(0) of \"conv1.bias\"\n"
    "  slot \"scale\": f32 = const(65536) role loss_scale\n"
    "  recipe {\n"
    "    model = \"GAT\"\n"
    "    target = \"paper.y\"\n"
    "    optimizer = adam\n"
    "    lr = 0.005\n"
    "    beta1 = 0.9\n"
    "    nesterov = 1\n"
    "    schedule = cosine\n"
    "    epochs = 200\n"
    "    keep_metric = \"accuracy\"\n"
    "    keep_max = 1\n"
    "    keep_split = val\n"
    "    group lr_scale = 1 weight_decay = 0.0005\n"
    "    group \"no_decay\" lr_scale = 0.1 weight_decay = 0\n"
    "  }\n"
    "\n"
    "  func @train {\n"
    "    %x = data paper.x : csr f32[paper, F]  !gat.gnn:12:20-29\n"
    "    %w = var \"conv1.lin.weight\" : f32[heads, out, F]\n"
    "    %z = contract %x, %w : f32[paper, heads, out]  !layers/gat.gnn:7:3-8:1\n"
    "    %zs = fused gather src(cites_sl) %z : f32[cites_sl, heads, out]  !\"a b.gnn\":7:3\n"
    "    %h = segment sum dst(cites_sl) %zs : f32[paper, heads, out]\n"
    "    %5 = random 2 : f32[paper, heads, out]\n"
    "    %p = const 0.6 : f32\n"
    "    %7 = lt %5, %p : i1[paper, heads, out]\n"
    "    %zero = const 0 : f32\n"
    "    %d = select %7, %h, %zero : f32[paper, heads, out]\n"
    "    %l = reduce sum [paper, heads, out] %d : f32\n"
    "    output \"loss\" %l as loss\n"
    "    output \"grad.conv1.bias\" %l as grad \"conv1.bias\"\n"
    "    output \"accuracy.val\" %l as metric \"accuracy\" val\n"
    "    output \"log:norm\" %l as log \"norm\"\n"
    "    %steps = var \"steps\" : f32\n"
    "    %one = const 1 : f32\n"
    "    %17 = add %steps, %one : f32\n"
    "    assign \"steps\" %17\n"
    "    %nan = const nan : f32\n"
    "    %inf = const -inf : f32\n"
    "    print \"loss \\\"now\\\"\\n\" %l, %nan, %inf\n"
    "  }\n"
    "\n"
    "  func @eval {\n"
    "  }\n"
    "}\n";

TEST(a_module_prints_as_it_was_written) {
    char *text = round_trip(small, true);
    CHECK(text);
    if (text) CHECK_STR(text, small);
    free(text);
}

static char *computation(const char *text) {
    Ctx c;
    Round r = {.text = text, .n = strlen(text)};
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, round_run, &r) && r.m);
    free(r.printed);
    StrBuf b = sb_new(c.a);
    module_print_computation(&b, r.m);
    char *s = strdup(b.s);
    ctx_free(&c);
    return s;
}

static void same_computation(const char *one, const char *other, bool same) {
    char *x = computation(one), *y = computation(other);
    CHECK_MSG((strcmp(x, y) == 0) == same, "%s\n%s", x, y);
    free(x);
    free(y);
}

TEST(a_computation_has_no_positions_paths_or_messages) {
    static const char one[] = "module \"a\" {\n  source \"a.gnn\"\n"
                              "  extern \"f\" from \"here/f.c\"\n  func @train {\n"
                              "    %x = const 1 : f32  !a.gnn:3:4-5\n"
                              "    print \"x\" %x\n  }\n}\n",
                      moved[] = "module \"b\" {\n  source \"to/b.gnn\"\n"
                                "  extern \"f\" from \"there/f.c\"\n  func @train {\n"
                                "    %y = const 1 : f32  !to/b.gnn:30:4-5\n"
                                "    print \"now x\" %y\n  }\n}\n",
                      other[] = "module \"a\" {\n  source \"a.gnn\"\n"
                                "  extern \"f\" from \"here/f.c\"\n  func @train {\n"
                                "    %x = const 2 : f32  !a.gnn:3:4-5\n"
                                "    print \"x\" %x\n  }\n}\n";
    same_computation(one, moved, true);
    same_computation(one, other, false);
}

/* Every operation, attribute and relation; hand-written, so numbers and blanks
 * differ from what the printer writes: the second print must equal the first. */
static const char every[] =
    "// every statement\n"
    "module \"every\" {\n"
    "  streams 1\n"
    "  graph mol\n  node atom timeless\n  node other timeless size \"odd name\"\n  member atom: "
    "mol\n"
    "  edge bond: atom -> atom timeless\n  edge likes: other -> atom\n  edge likes2: other -> "
    "atom\n"
    "  edge b1 = self_loops(bond)\n  edge b2 = no_loops(bond)\n  edge b3 = reverse(likes)\n"
    "  edge b4 = undirected(bond)\n  edge b5 = union(likes, likes2) size E5\n"
    "  edge b6 = where(bond, \"keep\")\n"
    "  dim F dim H = 4 dim G = 8*F - 2*4*F + 4\n dim FH = H*F\n dim F2 = F + H\n dim half = "
    "ceildiv(F, 2)\n"
    "  dim big = max(F, min(E_bond, 3 + N_atom)) dim K dim C dim T size TT\n"
    "  column atom.x: csr f32[atom, F] nz \"stored ones\" size nz_size\n"
    "  column atom.f: f32[atom, F]\n  column atom.v: f32[atom]\n column bond.w: f32[bond]\n"
    "  column atom.kind: cat[K]\n  column mol.y: multilabel[T]\n column atom.c: class[C]\n"
    "  column atom.t: time\n column atom.id: id\n column atom.split: split\n"
    "  param \"w\": f32[F, H] = kaiming_uniform(2.23606797749979, fan_in F)\n"
    "  param \"u\": f32[F] = uniform(-1e-3, 1)\n param \"n\": f32[F] = normal(0, 1)\n"
    "  slot \"w.m\": f32[F, H] = const(0)\n"
    "  extern \"f\" from \"c\" grad \"d\"\n  extern \"g\" from \"c\" effect device\n"
    "  func @load {\n"
    "    %w = data bond.w : f32[bond]\n    %z = const 0 : f32\n    %k = le %w, %z : i1[bond]\n"
    "    output \"keep\" %k\n    output \"ws\" %w\n  }\n"
    "  body @b {\n    %go = arg 0 : i1\n    %h = arg 1 : f32[atom, F]\n"
    "    next 0 %go\n    next 1 %h\n  }\n"
    "  func @all {\n"
    "    %c = const 1.5 : f32\n    %i = iota atom : i32[atom]\n    %n = size atom : f32\n"
    "    %x = data atom.x : csr f32[atom, F]\n    %f = data atom.f : f32[atom, F]\n"
    "    %w = var \"w\" : f32[F, H]\n    %lr = input \"lr\" : f32\n"
    "    %s = saved \"ws\" : f32[bond]\n    %r = random 0 : f32[atom, F]\n"
    "    %a1 = neg %f : f32[atom, F]\n    %a2 = abs %f : f32[atom, F]\n"
    "    %a3 = exp %f : f32[atom, F]\n    %a4 = expm1 %f : f32[atom, F]\n"
    "    %a5 = log %f : f32[atom, F]\n    %a6 = log1p %f : f32[atom, F]\n"
    "    %a7 = sqrt %f : f32[atom, F]\n    %a8 = rsqrt %f : f32[atom, F]\n"
    "    %a9 = tanh %f : f32[atom, F]\n    %b1 = sigmoid %f : f32[atom, F]\n"
    "    %b2 = erf %f : f32[atom, F]\n    %b3 = sin %f : f32[atom, F]\n"
    "    %b4 = cos %f : f32[atom, F]\n    %b5 = floor %f : f32[atom, F]\n"
    "    %q = isnan %f : i1[atom, F]\n    %b6 = not %q : i1[atom, F]\n"
    "    %b7 = cast %i : f32[atom]\n    %b8 = detach %f : f32[atom, F]\n"
    "    %w1 = store_as f32 %f : f32[atom, F]\n    %w2 = store_as bf16 %f : f32[atom, F]\n"
    "    %w3 = store_as f16 %f : f32[atom, F]\n"
    "    %b9 = copy %f : f32[F, atom]\n    %xd = copy %x : f32[atom, F]\n"
    "    %c1 = add %f, %c : f32[atom, F]\n    %c2 = sub %f, %b9 : f32[F, atom]\n"
    "    %c3 = mul %x, %c : csr f32[atom, F]\n    %c4 = div %f, %c : f32[atom, F]\n"
    "    %c5 = max %f, %c : f32[atom, F]\n    %c6 = min %f, %c : f32[atom, F]\n"
    "    %c7 = pow %f, %c : f32[atom, F]\n    %c8 = lt %f, %c : i1[atom, F]\n"
    "    %c9 = le %f, %c : i1[atom, F]\n    %d1 = eq %f, %c : i1[atom, F]\n"
    "    %d2 = and %c8, %q : i1[atom, F]\n    %d3 = or %c8, %q : i1[atom, F]\n"
    "    %d4 = select %d2, %f, %c : f32[atom, F]\n"
    "    %e1 = gather src(bond) %f : f32[bond, F]\n    %e2 = gather src(b3) %c1 : f32[b3, F]\n"
    "    %e3 = segment sum dst(bond) %e1 : f32[atom, F]\n"
    "    %e4 = segment max src(bond) %e1 : f32[atom, F]\n"
    "    %e5 = segment min graph(atom) %f : f32[mol, F]\n"
    "    %e6 = valid col(atom.kind) : i1[atom]\n    %e7 = index col(atom.c) : i32[atom]\n"
    "    %e9 = copy %c : f32[likes2]\n    %e8 = gather orig(b5, 1) %e9 : f32[b5]\n"
    "    %f1 = reduce max [F, atom] %f : f32\n    %f2 = argmax F %f : i32[atom]\n"
    "    %f3 = contract %f, %w : f32[H, atom]\n    %f4 = contract %x, %w : f32[atom, H]\n"
    "    %f5 = concat [F, H, F2] %f, %f4 : f32[atom, F2]\n"
    "    %f6 = slice [F2, H] at F %f5 : f32[atom, H]\n"
    "    %f8 = reduce min [F] %f : f32[atom]\n    %f9 = iota atom : i32[atom]\n"
    "    %g1 = valid col(atom.c) : i1[atom]\n    %g2 = rank atom 0.5 %f8, %g1 : f32[atom]\n"
    "    %g3 = view %w : f32[FH]\n    %g4 = valid orig(b1, 0) : i1[b1]\n"
    "    %g5 = data atom.x : f32[\"stored ones\"]\n"
    "    %g6 = index row(\"stored ones\") : i32[\"stored ones\"]\n"
    "    %g7 = index nzcol(\"stored ones\") : i32[\"stored ones\"]\n"
    "    %h1 = call \"f\" %f, %i, %q, %c : f32[atom]\n"
    "    %h2 = call_grad \"f\" %f, %i, %q, %c, %h1, %h1 : f32[atom, F]\n"
    "    %h3 = result 1 %h2 : f32\n"
    "    %h4 = call_effect \"g\" : i32[F]\n    call_effect \"g\" %h3\n"
    "    %f7 = var \"u\" : f32[F]\n    %ok = eq %c, %c : i1\n"
    "    assign \"u\" %f7\n    output \"g2\" %g2\n    print \"nothing\"\n"
    "    assert \"finite\" %ok\n    print when \"bad\" %ok, %f\n"
    "    call_effect when \"g\" %ok, %h4\n"
    "    %m = reduce max [atom, F] %f : f32\n    %m1 = isnan %m : i1\n"
    "    %l1 = loop @b limit 3 %m1, %f : i1\n    %l2 = loop @b %m1, %f : i1\n"
    "    %l3 = result 1 %l2 : f32[atom, F]\n"
    "  }\n"
    "}\n";

TEST(every_operation_round_trips) {
    char *once = round_trip(every, true);
    CHECK(once);
    char *twice = once ? round_trip(once, true) : NULL;
    CHECK(twice);
    if (once && twice) CHECK_STR(twice, once);
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl)                                          \
    CHECK_MSG(once &&strstr(once, " " mnemonic), "no '%s' in the text", mnemonic);
#include "ir/ops.def"
#undef OP
    free(once);
    free(twice);
}

static const char *const odd_hints[] = {"z",   "z.1", "z", "z",   "z.1", "z.2", "z.4",
                                        "a-b", "3",   "",  "d.:", "e.",  "e",   "z"};

static void build_hints(Ctx *c, void *arg) {
    Module *m = module_new(c, "odd \"name\"\n");
    Builder b = {.m = m, .f = func_new(m, "two words")};
    for (size_t i = 0; i < COUNT(odd_hints); i++)
        b_const(&b, DT_F32, (double)i)->hint = odd_hints[i];
    b_print(&b, "tab\t\x01", 1, &b.f->first);
    StrBuf s = sb_new(c->a);
    module_print(&s, m);
    *(char **)arg = strdup(s.s);
}

TEST(value_names_are_unique_and_clean) {
    Ctx c;
    char *text = NULL;
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, build_hints, &text));
    CHECK_STR(text, "module \"odd \\\"name\\\"\\n\" {\n\n  func @\"two words\" {\n"
                    "    %z = const 0 : f32\n    %z.1. = const 1 : f32\n"
                    "    %z.1 = const 2 : f32\n    %z.2 = const 3 : f32\n"
                    "    %z.1..1 = const 4 : f32\n    %z.2. = const 5 : f32\n"
                    "    %z.4 = const 6 : f32\n    %\"a-b\" = const 7 : f32\n"
                    "    %\"3.\" = const 8 : f32\n    %9 = const 9 : f32\n"
                    "    %\"d.:\" = const 10 : f32\n    %e.. = const 11 : f32\n"
                    "    %e = const 12 : f32\n    %z.3 = const 13 : f32\n"
                    "    print \"tab\\t\\x01\" %z\n  }\n}\n");
    char *again = round_trip(text, true);
    CHECK(again);
    if (again) CHECK_STR(again, text);
    free(again);
    Round r = {.text = text, .n = strlen(text)};
    CHECK(ctx_run(&c, round_run, &r) && r.m);
    const Op *op = r.m ? r.m->funcs.v[0]->first : NULL;
    for (size_t i = 0; i < COUNT(odd_hints) && op; i++, op = op->next)
        CHECK_STR(op->hint ? op->hint : "", odd_hints[i]);
    free(r.printed);
    free(text);
    ctx_free(&c);
}

static const char listed[] = "module \"m\" {\n"
                             "  pending \"canon,lower-csr\"\n"
                             "  node n  !m.gnn:1:2\n"
                             "  edge e: n -> n\n"
                             "  maps dst(e), src(e)\n"
                             "\n"
                             "  func @predict {\n"
                             "    %one = const 1 : f32  !lib.gnn:2:1<m.gnn:2\n"
                             "    %x = copy %one : f32[n]\n"
                             "    %y = gather src(e) %x : f32[e]\n"
                             "    %z = gather dst(e) %x : f32[e]\n"
                             "  }\n"
                             "}\n"
                             "sources {\n"
                             "  \"lib.gnn\" library\n"
                             "    2:  the { line\n"
                             "  \"m.gnn\"\n"
                             "}\n";

static void read_listed(Ctx *c, void *arg) {
    StrBuf b = sb_new(c->a);
    Module *m = module_parse(c, ctx_add_text(c, "t.gir", listed, strlen(listed)));
    CHECK(m && m->funcs.v[0]->first->next->span.line == 0);
    if (!m) return;
    module_print_file(&b, m);
    *(char **)arg = strdup(b.s);
}

TEST(the_text_of_a_file_has_what_is_to_come_maps_and_sources) {
    Ctx c;
    char *text = NULL;
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, read_listed, &text));
    CHECK_STR(text ? text : "", listed);
    free(text);
    ctx_free(&c);
}

/* Runs with the n-th block refused, for every n: no crash, nothing left behind.
 * Small blocks make nearly every allocation one of its own. */
static void starve(const char *text, bool parses) {
    bool done = false;
    int n = 0;
    for (; !done && n < 100000; n += n < 300 ? 1 : 13) {
        FewBlocks some;
        Allocator from = few_blocks(&some, n, 64);
        Ctx c;
        Round r = {.text = text, .n = strlen(text)};
        if (!ctx_init(&c, &from)) continue;
        done = ctx_run(&c, round_run, &r);
        CHECK((done && parses) == (r.printed != NULL));
        free(r.printed);
        ctx_free(&c);
        CHECK(some.live == 0);
    }
    CHECK_MSG(done && n > 30, "only %d blocks", n);
}

TEST(memory_may_run_out_anywhere) {
    starve(small, true);
    starve("module \"m\" {\n  dim F = G\n  node n n\n  func @f {\n    %x = neg %y : f32\n"
           "    %z = const 1 : i9\n  }\n",
           false);
}

static char *read_docs(void) {
    Ctx c;
    const char *here = __FILE__, *tail = strstr(here, "tests/unit/");
    char path[1024];
    CHECK(ctx_init(&c, NULL));
    snprintf(path, sizeof path, "%.*sdocs/ir.md", (int)(tail - here), here);
    uint32_t f = ctx_add_file(&c, path, (Span){0});
    char *s = strdup(f == UINT32_MAX ? "" : c.sources.v[f].text);
    ctx_free(&c);
    return s;
}

TEST(the_manual_is_true) {
    char *docs = read_docs(), quoted[64];
    int examples = 0;
    CHECK(*docs);
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl)                                          \
    snprintf(quoted, sizeof quoted, "`%s", mnemonic);                                              \
    CHECK_MSG(strstr(docs, quoted), "docs/ir.md does not have '%s'", mnemonic);
#include "ir/ops.def"
#undef OP
    for (char *at = docs, *end; (at = strstr(at, "```gir\n")); at = end + 1, examples++) {
        at += strlen("```gir\n");
        end = strstr(at, "```");
        *end = 0;
        char *text = round_trip(at, true);
        CHECK(text);
        if (text) CHECK_STR(text, at);
        free(text);
    }
    CHECK(examples > 0);
    free(docs);
}

TEST_MAIN()
