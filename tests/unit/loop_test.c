/* The text form of kernels, and what loop_verify refuses. */
#include "ctx_test.h"

#include "codegen/loop/loop_text.h"

static const char kernel_text[] = "kernel t {\n"
                                  "  out y: f32[N_p, 16]\n"
                                  "  in x: f32[N_p, 16]\n"
                                  "  map dst_ptr: ptr dst(e)\n"
                                  "  map src: idx src(e)\n"
                                  "  map perm: perm src(e)\n"
                                  "  map by: idx dst(e) by src(e)\n"
                                  "  logical row: e\n"
                                  "  key k: 3\n"
                                  "  in part: f32[max(1, ceildiv(N_p, 1024))] partial 7\n"
                                  "  %n.0: i64 = size 2*N_p + 1\n"
                                  "  %c.1: f32 = const 0.5\n"
                                  "  for %v.2 in N_p parallel balanced dst(e), src(e) {\n"
                                  "    local acc: f32[16]\n"
                                  "    local sum: f32\n"
                                  "    store acc[%v.2] %c.1\n"
                                  "    store sum %c.1\n"
                                  "    for %e.3 in segment dst_ptr[%v.2] {\n"
                                  "      %src.4: i32 = load src[%e.3]\n"
                                  "      %src.5: i64 = cast %src.4\n"
                                  "      %is.6: i1 = ige %src.5 %n.0\n"
                                  "      if %is.6 {\n"
                                  "        for %f.7 in 16 vector unroll {\n"
                                  "          %x.8: f32 = load x[%src.5, %f.7]\n"
                                  "          acc sum acc[%f.7] %x.8\n"
                                  "          acc max sum %x.8\n"
                                  "        }\n"
                                  "      }\n"
                                  "    }\n"
                                  "    for %e.9 in segment dst_ptr[%v.2] {\n"
                                  "      prefetch x[src[%e.9 + 8]] lines 2\n"
                                  "    }\n"
                                  "    for %i.10 in chunk %v.2 of 64: 8*N_p vector {\n"
                                  "      %u.11: i64 = iadd %i.10 %n.0\n"
                                  "      %s.12: f32 = select %is.6 %c.1 %c.1\n"
                                  "      store y[%v.2, %u.11] %s.12\n"
                                  "    }\n"
                                  "  }\n"
                                  "}\n";

static Module *module(Ctx *c) {
    Module *m = module_new(c, "t");
    Space *p = space_node(m, "p", (Span){0});
    Space *e = space_edge(m, "e", p, p, (Span){0});
    map_dst(m, e);
    map_src(m, e);
    return m;
}

/* The kernel text with the first `from` replaced by `to`. */
static const char *edited(Ctx *c, const char *from, const char *to) {
    const char *at = strstr(kernel_text, from);
    CHECK_MSG(at != NULL, "'%s' is not in the text", from);
    if (!at) return kernel_text;
    return arena_printf(c->a, "%.*s%s%s", (int)(at - kernel_text), kernel_text, to,
                        at + strlen(from));
}

static LKernel *parse(Ctx *c, Module *m, const char *text) {
    int n = 0;
    LKernel *k = loop_parse(c, m, ctx_add_text(c, "t", text, strlen(text)), &n);
    return n == 1 ? k : NULL;
}

static const char *first_error(const Ctx *c) {
    return c->diags.n ? c->diags.v[0].text : "no error";
}

/* `is` is not in scope where the select uses it; put it right for the good kernel. */
static const char *good(Ctx *c) {
    return edited(c, "%s.12: f32 = select %is.6 %c.1 %c.1", "%s.12: f32 = add %c.1 %c.1");
}

static void round_trip(Ctx *c, void *arg) {
    (void)arg;
    Module *m = module(c);
    const char *text = good(c);
    LKernel *k = parse(c, m, text);
    CHECK_MSG(k != NULL, "%s", first_error(c));
    if (!k) return;
    CHECK_MSG(loop_verify(c, m, k), "%s", first_error(c));
    StrBuf b = sb_new(c->a);
    loop_print(&b, m, k);
    CHECK_STR(b.s, text);
}

static const char *printed(Ctx *c, const Module *m, const LKernel *k) {
    StrBuf b = sb_new(c->a);
    loop_print(&b, m, k);
    return b.s;
}

/* A register knows what gives it a value, a copy's the copy's. */
static void copied(Ctx *c, void *arg) {
    (void)arg;
    Module *m = module(c);
    const char *text = good(c);
    LKernel *k = parse(c, m, text);
    CHECK(k != NULL);
    if (!k) return;
    LKernel *copy = loop_copy(c->a, k);
    CHECK_MSG(loop_verify(c, m, copy), "%s", first_error(c));
    CHECK_STR(printed(c, m, copy), text);
    LStmt *loop = copy->body->next->next;
    CHECK(loop->kind == L_FOR && loop->var->def == loop && !loop_has(k->body, loop));
    loop->body = loop->body->next;
    copy->body->size = expr_const(c->a, 7);
    copy->bufs.v[0]->name = "other";
    CHECK_STR(printed(c, m, k), text);
    copy->body->dst->def = loop;
    CHECK(!loop_verify(c, m, copy));
    CHECK_MSG(strstr(first_error(c), "register 0 is another statement's") != NULL, "got: %s",
              first_error(c));
}

/* Each statement of statements.def with each of its parts; together they mean nothing. */
static const char every_part[] =
    "kernel t {\n"
    "  out y: f32[N_p, 16]\n"
    "  map ptr: ptr dst(e)\n"
    "  map src: idx src(e)\n"
    "  for %v.0 in N_p parallel balanced dst(e), src(e) hubs 256 rows 16 where N_p up_to 16"
    " vector 16 whole unroll flat 16 expand 8 prefix strips 16 jam serial collapse"
    " by ways split 2048 from 65536 few 256 to 1024 ahead 4 {\n"
    "    local acc: f32[16]\n"
    "    %x.1: f32 = load_old y[%v.0, %v.0] pack remat\n"
    "    %a.2: f32 = tanh %x.1 remat\n"
    "    store y[%v.0, %v.0] %a.2 pack\n"
    "    acc sum y[%v.0, %v.0] %x.1 pack\n"
    "    if %a.2 {\n"
    "      tile N_p by 64 vector 16 keeps y, acc {\n"
    "        prefetch y[src[%v.0 + 8]] lines 2\n"
    "      }\n"
    "    }\n"
    "    columns segment ptr[%v.0] by lanes masked promote y {\n"
    "      barrier\n"
    "    }\n"
    "    fold max acc by team\n"
    "  }\n"
    "}\n";

/* Records by kind which statements are among s (bit 31), and which parts of their lines. */
static void record_parts(const LStmt *s, unsigned *seen) {
    for (; s; s = s->next) {
        seen[s->kind] |= 1u << 31;
        const LPartText *part = loop_lines[s->kind].parts;
        for (int i = 0; part[i].part; i++)
            if (loop_has_field(s, &part[i])) seen[s->kind] |= 1u << i;
        record_parts(s->body, seen);
    }
}

/* No row of the table without its place in the text above. */
static void all_rows(Ctx *c, void *arg) {
    (void)arg;
    unsigned seen[LOOP_N_STMTS] = {0};
    Module *m = module(c);
    LKernel *k = parse(c, m, every_part);
    CHECK_MSG(k != NULL, "%s", first_error(c));
    if (!k) return;
    CHECK_STR(printed(c, m, k), every_part);
    CHECK_STR(printed(c, m, loop_copy(c->a, k)), every_part);
    record_parts(k->body, seen);
    for (int kind = 0; kind < LOOP_N_STMTS; kind++) {
        const LPartText *part = loop_lines[kind].parts;
        CHECK_MSG(seen[kind] >> 31, "statement %d, '%s', is missing", kind, loop_lines[kind].word);
        for (int i = 0; part[i].part; i++)
            CHECK_MSG(seen[kind] >> i & 1, "part %d, '%s', of statement %d, '%s', is missing", i,
                      part[i].word, kind, loop_lines[kind].word);
    }
}

typedef struct {
    const char *from, *to, *error;
} Case;

static void refused(Ctx *c, void *arg) {
    const Case *t = arg;
    Module *m = module(c);
    LKernel *k = parse(c, m, edited(c, t->from, t->to));
    CHECK_MSG(!k || !loop_verify(c, m, k), "accepted: %s", t->error);
    CHECK_MSG(c->diags.n == 1, "%d diagnostics", c->diags.n);
    CHECK_MSG(strstr(first_error(c), t->error) != NULL, "got: %s, want: %s", first_error(c),
              t->error);
}

TEST(kernels_print_as_they_were_read) {
    with_ctx(round_trip, NULL);
}

TEST(each_statement_of_the_table_prints_as_it_was_read) {
    with_ctx(all_rows, NULL);
}

TEST(copies_of_kernels_are_their_own) {
    with_ctx(copied, NULL);
}

TEST(broken_kernels_are_refused) {
    static const Case cases[] = {
        {"select", "select", "used where it is not defined"},
        {"kernel t", "kernel \"\"", "expected the kernel's name"},
        {"kernel t", "kernel a.t", "expected the kernel's name"},
        {"%x.8: f32 = load x[%src.5", "%x.8: f32 = load x[%e.99", "%e.99 is not defined"},
        {"%src.5: i64 = cast", "%e.3: i64 = cast", "%e.3 is defined twice"},
        {"%x.8: f32 = load", "%x.8: i32 = load", "is i32, not f32"},
        {"load x[%src.5, %f.7]", "load x[%src.4, %f.7]", "is i32, not i64"},
        {"load x[%src.5, %f.7]", "load x[%f.7]", "'x' has 2 dimensions"},
        {"load x[%src.5, %f.7]", "load z[%src.5, %f.7]", "no buffer 'z'"},
        {"acc sum acc[%f.7]", "acc sum x[%e.3, %f.7]", "not marked as written"},
        {"local acc: f32[16]", "local acc: f32[N_p]", "not constant"},
        {"in 16 vector", "in 16 parallel vector", "first outermost loop"},
        {"in 16 vector unroll", "in 16 vector unroll collapse", "part of the index"},
        {"segment dst_ptr", "segment src", "no bounds"},
        {"by src(e)", "by dst(e)", "in the order of that map's segments"},
        {"%e.9 + 8", "%e.9 + 0", "a number"},
        {"src[%e.9 + 8", "src[%v.2 + 8", "stands first in the loop of its entries"},
        {"prefetch x[src", "prefetch x[x", "is no index of rows"},
        {"prefetch x[src", "prefetch sum[src", "no rows in memory"},
        {"lines 2", "lines 65", "a number of lines"},
        {"lines 2", "tile", "no tile whose part"},
        {"if %is.6", "if %src.5", "is i64, not i1"},
        {"iadd %i.10", "iadd %c.1", "is f32, not i64"},
        {"ige %src.5 %n.0", "segment %src.5 %n.0", "no scalar function"},
        {"key k: 3", "key x: 3", "declared twice"},
        {"of 64", "off 64", "'of'"},
        {"dst(e)", "dst(q)", "no space 'q'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(refused, &cases[i]);
}

/* ---- updates in place ------------------------------------------------------------------- */
typedef struct {
    const char *body, *error; /* NULL: accepted */
} Update;

static void update(Ctx *c, void *arg) {
    const Update *t = arg;
    Module *m = module(c);
    LKernel *k = parse(c, m,
                       arena_printf(c->a,
                                    "kernel t {\n"
                                    "  out y: f32[N_p, 16]\n"
                                    "  in b: f32[N_p, 16]\n"
                                    "  map ptr: ptr dst(e)\n"
                                    "  map src: idx src(e)\n"
                                    "  %%c.0: f32 = const 0\n"
                                    "  for %%v.1 in N_p parallel {\n%s  }\n}\n",
                                    t->body));
    CHECK_MSG(k != NULL, "%s", first_error(c));
    if (!k) return;
    bool ok = loop_verify(c, m, k);
    CHECK_MSG(ok == !t->error, "%s: %s", t->error ? t->error : "good", first_error(c));
    CHECK_MSG(!t->error || strstr(first_error(c), t->error), "got: %s, want: %s", first_error(c),
              t->error);
}

TEST(what_is_overwritten_is_not_read) {
    static const Update cases[] = {
        {"for %f.2 in 16 { %x.3: f32 = load_old y[%v.1, %f.2] store y[%v.1, %f.2] %x.3 }", NULL},
        /* a sum in the row that is read */
        {"for %f.2 in 16 { store y[%v.1, %f.2] %c.0 }"
         "for %f.4 in 16 { %x.5: f32 = load_old y[%v.1, %f.4] store y[%v.1, %f.4] %x.5 }",
         "overwritten before its old value is read"},
        {"for %f.2 in 16 { acc sum y[%v.1, %f.2] %c.0 }", "added to before it is set"},
        {"for %f.2 in 16 { %x.3: f32 = load y[%v.1, %f.2] store y[%v.1, %f.2] %x.3 }",
         "read before it is written"},
        {"for %f.2 in 16 { %x.3: f32 = load_old b[%v.1, %f.2] store y[%v.1, %f.2] %x.3 }",
         "b has no old value"},
        /* each row is read whole, then written */
        {"local s: f32 store s %c.0 for %f.2 in 16 { %x.3: f32 = load_old y[%v.1, %f.2] "
         "acc sum s %x.3 } for %f.4 in 16 { %t.5: f32 = load s store y[%v.1, %f.4] %t.5 }",
         NULL},
        /* .. or by each of its elements */
        {"for %f.4 in 16 { local s: f32 store s %c.0 for %f.2 in 16 { "
         "%x.3: f32 = load_old y[%v.1, %f.2] acc sum s %x.3 } %t.5: f32 = load s "
         "store y[%v.1, %f.4] %t.5 }",
         "in a later iteration"},
        /* a neighbour's row */
        {"for %e.2 in segment ptr[%v.1] { %i.3: i32 = load src[%e.2] %u.4: i64 = cast %i.3 "
         "for %f.5 in 16 { %x.6: f32 = load_old y[%u.4, %f.5] store y[%v.1, %f.5] %x.6 } }",
         "in a later iteration"},
        /* the same row in every turn */
        {"for %k.2 in 3 { for %f.3 in 16 { %x.4: f32 = load_old y[%v.1, %f.3] "
         "store y[%v.1, %f.3] %x.4 } }",
         "in a later iteration"},
        {"for %k.2 in 1 { for %f.3 in 16 { %x.4: f32 = load_old y[%v.1, %f.3] "
         "store y[%v.1, %f.3] %x.4 } }",
         NULL},
        /* by tiles, and at an index that is computed from two */
        {"for %t.2 in 2 { for %f.3 in chunk %t.2 of 2: 16 { %x.4: f32 = load_old y[%v.1, %f.3] "
         "store y[%v.1, %f.3] %x.4 } }",
         NULL},
        {"%n.9: i64 = size 8 for %h.2 in 2 { %o.3: i64 = imul %h.2 %n.9 for %f.4 in 8 { "
         "%g.5: i64 = iadd %o.3 %f.4 %x.6: f32 = load_old y[%v.1, %g.5] "
         "store y[%v.1, %g.5] %x.6 } }",
         NULL},
        {"%n.9: i64 = size 8 for %f.4 in 16 { %g.5: i64 = irem %f.4 %n.9 "
         "%x.6: f32 = load_old y[%v.1, %g.5] store y[%v.1, %g.5] %x.6 }",
         "in a later iteration"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(update, &cases[i]);
}

TEST_MAIN()
