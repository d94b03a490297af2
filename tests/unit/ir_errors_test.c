/* Mistakes in IR text: each has its code and place, several are found in one run,
 * and no text, however hostile, does harm. */
#include "ir_text.h"

#define HEAD                                                                                       \
    "module \"m\" {\n"                                                                             \
    "node n\nnode k\ngraph g\nedge e: n -> n\nedge f: k -> n\ndim F\ndim C\n"                      \
    "column n.x: f32[n, F]\ncolumn n.y: class[C]\ncolumn n.s: csr f32[n, F] nz ones\n"             \
    "param \"w\": f32[F] = const(0)\nstreams 2\n"
#define FUNC HEAD "func @train {\n%x = data n.x : f32[n, F]\n%c = const 1 : f32\n"
enum { HEAD_LINES = 13, FUNC_LINES = HEAD_LINES + 3 };

typedef struct {
    const char *line, *code, *text; /* text: part of the message */
    unsigned col;
} Case;

static const Case module_cases[] = {
    {"blah", "E0401", "'blah' does not start a statement", 1},
    {"42", "E0401", "expected a statement", 1},
    {"dim \"F", "E0401", "not closed", 5},
    {"dim \"\\q\"", "E0401", "unknown escape", 5},
    {"dim $", "E0401", "unexpected character", 5},
    {"dim D = 12abc", "E0401", "not a number", 9},
    {"dim D = 1 +", "E0401", "expected a size", 1},
    {"edge h n -> n", "E0401", "expected ':'", 8},
    {"edge h: n n", "E0401", "expected '->'", 11},
    {"edge h = base(e)", "E0401", "not a relation expression", 6},
    {"dim D = foo(1, 2)", "E0401", "not max, min or ceildiv", 9},
    {"dim D = E", "E0402", "there is no size 'E'", 9},
    {"edge h: n -> p", "E0402", "no space 'p'", 14},
    {"edge h = reverse(q)", "E0402", "no space 'q'", 18},
    {"column p.x: f32[n]", "E0402", "starts with no space", 8},
    {"recipe {\nspeed = 1\n}", "E0402", "no setting 'speed'", 1},
    {"dim F", "E0403", "'F' is already taken", 5},
    {"node a size F", "E0403", "the size 'F' is already taken", 13},
    {"edge a = reverse(e)\nedge b = reverse(e)", "E0403", "the same relation as 'a'", 6},
    {"column n.x: f32[n]", "E0403", "already taken", 8},
    {"param \"w\": f32 = const(0)", "E0403", "already taken", 7},
    {"member n: g\nmember n: g", "E0403", "already belongs", 8},
    {"recipe {\n}\nrecipe {\n}", "E0403", "second recipe", 8},
    {"dim D = 99999999999999999999", "E0407", "whole number", 9},
    {"dim D = 0 - 5", "E0407", "0 to 2^40 entries, not -5", 5},
    {"dim D = 9000000000000000000", "E0407", "0 to 2^40", 5},
    {"dim D = 1.5", "E0407", "whole number", 9},
    {"streams 9999999", "E0407", "whole number", 9},
    {"dim D = ((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))", "E0408",
     "too deeply", 42},
    {"dim D = (F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)"
     "*(F+C)*(F+C)*(F+C)*(F+C)*(F+C)",
     "E0408", "too large", 9},
    {"edge h: n -> F", "E0409", "'F' is not a node type", 14},
    {"edge h = self_loops(f)", "E0409", "joins two node types", 6},
    {"edge h = union(e, f)", "E0409", "join different node types", 6},
    {"column F.x: f32[F]", "E0409", "cannot have data", 8},
    {"column n.z: f32[F]", "E0409", "must be f32[n, ..]", 13},
    {"column n.z: f32[n, F, F]", "E0409", "stands twice", 23},
    {"column n.z: csr f32[n] nz o", "E0409", "exactly two", 13},
    {"column n.z: void", "E0409", "cannot be void", 13},
    {"param \"v\": f32[F] = glorot(1)", "E0409", "needs fan_in and fan_out", 21},
    {"param \"v\": csr f32[n, F] = const(0)", "E0409", "is dense", 12},
    {"param \"v\": f32[n, F] transposed 2 = const(0)", "E0407", "last as written", 33},
    {"func @a {\n}\nfunc @a {\n}", "E0403", "'@a' is defined twice", 6},
};

static const Case func_cases[] = {
    {"%y = frobnicate %x : f32[n, F]", "E0404", "no operation 'frobnicate'", 6},
    {"%y = neg %z : f32[n, F]", "E0405", "'%z' is defined before", 10},
    {"%y = add %x, %y : f32[n, F]", "E0405", "'%y' is defined before", 14},
    {"%x = neg %x : f32[n, F]", "E0403", "'%x' is defined twice", 1},
    {"%y = neg %x : f32[n]", "E0406", "is f32[n, F], not f32[n]", 6},
    {"%y = neg %x, %x : f32[n, F]", "E0406", "takes 1 operand, not 2", 6},
    {"%y = add %x : f32[n, F]", "E0406", "takes 2 operands, not 1", 6},
    {"neg %x : f32[n, F]", "E0406", "needs a name for its result", 1},
    {"neg %x", "E0406", "needs a name for its result", 1},
    {"%y = copy %x", "E0406", "its type, which nothing else says", 6},
    {"%y = output \"a\" %x", "E0406", "has no result", 6},
    {"output \"a\" %x : f32[n, F]", "E0406", "has no result", 1},
    {"%y = gather src(e) %c : f32[e]", "E0406", "gather", 6},
    {"%y = gather src(n) %x : f32[e, F]", "E0409", "'n' has no map 'src'", 17},
    {"%y = gather graph(n) %x : f32[e, F]", "E0409", "'n' has no map 'graph'", 19},
    {"%y = gather orig(e, 0) %x : f32[e, F]", "E0409", "'e' has no map 'orig'", 18},
    {"%y = gather orig(e, 7) %x : f32[e, F]", "E0407", "from 0 to 1", 21},
    {"%y = gather up(e) %x : f32[e, F]", "E0401", "expected a map", 13},
    {"%y = index col(n.x) : i32[n]", "E0409", "no categories", 16},
    {"%y = index col(n.q) : i32[n]", "E0402", "no column 'n.q'", 16},
    {"%y = segment mean dst(e) %x : f32[n, F]", "E0401", "sum, max or min", 14},
    {"%y = var \"v\" : f32[F]", "E0402", "no variable \"v\"", 10},
    {"%y = random 2 : f32[n]", "E0407", "from 0 to 1", 13},
    {"%y = concat [F, C] %x, %x : f32[n]", "E0409", "needs 3 spaces", 13},
    {"%y = slice [F, C] %x : f32[n, C]", "E0401", "expected 'at'", 19},
    {"%y = reduce sum [] %x : f32", "E0401", "the name of a space", 18},
    {"%y = const q : f32", "E0401", "a number", 12},
    {"%y = const 1 : f77", "E0401", "an element type", 16},
    {"%y = const 1 : f32 !nowhere", "E0401", "a position", 20},
    {"{", "E0401", "expected an operation", 1},
    {"%y neg", "E0401", "expected '='", 4},
};

static void parse_only(Ctx *c, void *arg) {
    Round *r = arg;
    r->m = module_parse(c, ctx_add_text(c, "t.gir", r->text, r->n));
}

static void check_case(const Case *k, const char *before, const char *after, unsigned lines) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n%s", before, k->line, after);
    for (const char *p = k->line; *p; p++) lines += *p == '\n' && !strchr(p, '}');
    Ctx c;
    Round r = {.text = text, .n = strlen(text)};
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, parse_only, &r));
    bool found = false;
    for (int i = 0; i < c.diags.n && !found; i++) {
        const Diag *d = &c.diags.v[i];
        found = !strcmp(diag_code_name(d->code), k->code) && strstr(d->text, k->text) &&
                d->span.col == k->col && d->span.line > lines;
    }
    CHECK_MSG(found && !r.m && c.n_errors == 1, "%s: %d errors", k->line, c.n_errors);
    if (!found || c.n_errors != 1) diag_print_all(&c, stderr, false);
    ctx_free(&c);
}

TEST(each_mistake_has_its_message) {
    for (size_t i = 0; i < COUNT(module_cases); i++)
        check_case(&module_cases[i], HEAD, "}\n", HEAD_LINES);
    for (size_t i = 0; i < COUNT(func_cases); i++)
        check_case(&func_cases[i], FUNC, "}\n}\n", FUNC_LINES);
}

TEST(every_code_of_the_parser_has_a_case) {
    const char *codes[] = {"E0401", "E0402", "E0403", "E0404", "E0405",
                           "E0406", "E0407", "E0408", "E0409"};
    for (size_t i = 0; i < COUNT(codes); i++) {
        bool found = false;
        for (size_t k = 0; k < COUNT(module_cases); k++)
            found |= !strcmp(module_cases[k].code, codes[i]);
        for (size_t k = 0; k < COUNT(func_cases); k++)
            found |= !strcmp(func_cases[k].code, codes[i]);
        CHECK_MSG(found, "no case for %s", codes[i]);
    }
}

TEST(several_mistakes_are_found_at_once) {
    const char *text = FUNC "%a = nope %x : f32[n, F]\n"
                            "%b = neg %a : f32[n, F]\n" /* uses a broken value: silent */
                            "%d = neg %q : f32[n, F]\n"
                            "%e = neg %x : f32[F]\n}\n"
                            "func @b {\n%z = const 1\n}\n}\n";
    Ctx c;
    Round r = {.text = text, .n = strlen(text)};
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, parse_only, &r));
    CHECK(c.n_errors == 4 && !r.m);
    if (c.n_errors != 4) diag_print_all(&c, stderr, false);
    ctx_free(&c);
}

/* Parses and verifies; whatever it says, it must come back. */
static void feed(const char *text, size_t n) {
    Ctx c;
    Round r = {.text = text, .n = n};
    CHECK(ctx_init(&c, NULL) && ctx_run(&c, round_run, &r));
    CHECK((r.m == NULL) == (c.n_errors > 0 && !r.printed));
    free(r.printed);
    ctx_free(&c);
}

TEST(a_text_may_end_anywhere) {
    const char *text = FUNC "%y = gather src(e) %x : f32[e, F] !\"a b\":1:2-3\n"
                            "%z = segment sum dst(e) %y : f32[n, F]\n"
                            "output \"z\\n\" %z\n}\nrecipe {\nlr = 1e-3\ngroup \"g\" "
                            "lr_scale = 1 weight_decay = 2\n}\n}\n";
    for (size_t n = 0; n <= strlen(text); n++) feed(text, n);
}

TEST(changed_bytes_do_no_harm) {
    const char *text = FUNC "%y = gather src(e) %x : f32[e, F]\n"
                            "%z = segment sum dst(e) %y : f32[n, F]\n"
                            "%w = slice [F, C] at 2*F - C %z : f32[n, C] !a:1:2-3:4\n}\n}\n";
    char s[2048];
    uint32_t r = 1;
    for (int i = 0; i < 3000; i++) {
        strcpy(s, text);
        for (int k = 0; k < 3; k++) {
            r = r * 1664525 + 1013904223;
            s[(r >> 8) % strlen(text)] =
                (char)(r >> 3 & 1 ? "%@\"()[]{},:=!-*"[(r >> 24) % 14] : (int)(r >> 24));
        }
        feed(s, strlen(text));
    }
}

static char *repeated(const char *head, const char *part, size_t times, size_t *n) {
    size_t h = strlen(head), p = strlen(part);
    char *s = malloc(h + p * times + 1);
    memcpy(s, head, h);
    for (size_t i = 0; i < times; i++) memcpy(s + h + i * p, part, p);
    *n = h + p * times;
    return s;
}

TEST(long_texts_are_read_in_linear_time) {
    const struct {
        const char *head, *part;
    } cases[] = {{HEAD "dim D = ", "("},
                 {HEAD "dim D = ", "-"},
                 {HEAD "dim D = 1", " + F"},
                 {HEAD "dim D = F", "*max(F, 2)"},
                 {HEAD "dim ", "a"},
                 {HEAD, "dim "},
                 {HEAD, "{"},
                 {FUNC, "%c "},
                 {FUNC, "}\nfunc @f {\n"},
                 {FUNC "print \"a\" %c", ", %c"},
                 {FUNC, "%y = neg %x : f32[n, F]\n"},
                 {HEAD, "\n"},
                 {HEAD, "\xff"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t n;
        char *s = repeated(cases[i].head, cases[i].part, (2u << 20) / strlen(cases[i].part), &n);
        feed(s, n);
        free(s);
    }
}

TEST(a_module_of_ten_megabytes) {
    StrBuf b;
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    b = sb_new(c.a);
    sb_puts(&b, FUNC "%v0 = neg %x : f32[n, F]\n");
    for (int i = 1; b.n < 10u << 20; i++)
        sb_printf(&b, "%%v%d = add %%v%d, %%c : f32[n, F]\n", i, i - 1);
    sb_puts(&b, "}\n}\n");
    Round r = {.text = b.s, .n = b.n};
    round_run(&c, &r);
    CHECK(r.m && r.verified);
    CHECK(r.printed && strlen(r.printed) > 10u << 20);
    free(r.printed);
    ctx_free(&c);
}

TEST_MAIN()
