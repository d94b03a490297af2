/* The verifier: a good module passes, and each way to break one is noticed and
 * blamed on the pass, with the operation and its line. */
#include "ir_text.h"

static const char good[] =
    "module \"m\" {\n"
    "  node n\n  edge e: n -> n\n  edge kept = where(e, \"keep\")\n  dim F\n  dim G\n"
    "  column n.x: f32[n, F]\n  column e.w: f32[e]\n  streams 1\n"
    "  param \"w\": f32[F] = const(0) as [F]\n"
    "  func @load {\n"
    "    %w = data e.w : f32[e]\n    %z = const 0 : f32\n    %k = lt %z, %w : i1[e]\n"
    "    output \"keep\" %k\n    output \"w\" %w\n  }\n"
    "  func @train {\n"
    "    %x = data n.x : f32[n, F]  !m.gnn:7:3\n"
    "    %y = exp %x : f32[n, F]  !m.gnn:8:3\n"
    "    %g = gather src(e) %y : f32[e, F]  !m.gnn:9:3\n"
    "    %s = saved \"w\" : f32[e]\n"
    "    %m = mul %g, %s : f32[e, F]\n"
    "    %h = segment sum dst(e) %m : f32[n, F]\n"
    "    %r = random 0 : f32[n, F]\n"
    "    %v = var \"w\" : f32[F]\n"
    "    %hv = mul %h, %v : f32[n, F]\n"
    "    %u = reduce sum [n] %hv : f32[F]\n"
    "    assign \"w\" %u\n"
    "    output \"h\" %h\n  }\n"
    "}\n";

typedef struct {
    Ctx c;
    Module *m;
    Func *load, *train;
} Fix;

static Fix setup(void) {
    Fix x;
    CHECK(ctx_init(&x.c, NULL));
    x.m = module_parse(&x.c, ctx_add_text(&x.c, "m.gir", good, strlen(good)));
    if (!x.m) diag_print_all(&x.c, stderr, false);
    CHECK(x.m && module_verify(&x.c, x.m, "nothing"));
    x.load = func_of(x.m, PHASE_LOAD);
    x.train = func_of(x.m, PHASE_TRAIN);
    return x;
}

static Op *value(Func *f, const char *hint) {
    for (Op *op = f->first; op; op = op->next)
        if (op->hint && strcmp(op->hint, hint) == 0) return op;
    return NULL;
}

static Op *effect(Func *f, OpKind k) {
    for (Op *op = f->first; op; op = op->next)
        if (op->kind == k) return op;
    return NULL;
}

/* Breaks x, then expects the verifier to say `phrase` and to name the pass. */
#define BREAKS(name, phrase, ...)                                                                  \
    TEST(name) {                                                                                   \
        Fix x = setup();                                                                           \
        Func *f = x.train;                                                                         \
        (void)f;                                                                                   \
        __VA_ARGS__;                                                                               \
        CHECK(!module_verify(&x.c, x.m, "'shuffle'"));                                             \
        CHECK(x.c.diags.n > 0 && strstr(x.c.diags.v[0].text, "after 'shuffle': "));                \
        CHECK_MSG(x.c.diags.n > 0 && strstr(x.c.diags.v[0].text, phrase), "got: %s",               \
                  x.c.diags.n ? x.c.diags.v[0].text : "nothing");                                  \
        ctx_free(&x.c);                                                                            \
    }

BREAKS(use_before_definition, "operand 1 of 'gather' (%g) is defined after it",
       op_move_before(value(f, "y"), value(f, "m")))
BREAKS(a_removed_operand, "operand 1 of 'exp' (%y) is not in the function",
       op_remove(value(f, "x")))
BREAKS(an_operand_of_another_function, "is not in the function",
       value(f, "m")->in[1] = value(x.load, "w"))
BREAKS(an_operand_without_result, "defined after it", value(f, "m")->in[1] = f->last)
BREAKS(a_missing_operand, "has 1 operands, not 2", value(f, "m")->n_in = 1)
BREAKS(a_wrong_result_type, "is f32[n], but its operands make it f32[n, F]",
       value(f, "y")->type.rank = 1)
BREAKS(a_space_twice, "repeated or foreign space", value(f, "y")->type.dim[1] = x.m->spaces.v[0])
BREAKS(an_ill_typed_operand, "is ill-typed", value(f, "g")->in[0] = value(f, "v");
       op_move_before(value(f, "v"), f->first))
BREAKS(no_map, "lacks a map", value(f, "g")->map = NULL)
BREAKS(an_unknown_stream, "lacks a known stream", value(f, "r")->stream = 5)
BREAKS(an_unknown_column, "lacks a column",
       value(f, "x")->col = &(Column){.id = 0, .space = x.m->spaces.v[0]})
BREAKS(a_second_output, "a second 'output' \"h\"", Builder b = {.m = x.m, .f = f};
       b_output(&b, "h", value(f, "y")))
BREAKS(a_second_assignment, "a second 'assign' \"w\"", Builder b = {.m = x.m, .f = f};
       b_assign(&b, x.m->vars.v[0], value(f, "u")))
BREAKS(a_fused_effect, "cannot be fused", effect(f, OP_OUTPUT)->fused = true)
BREAKS(saved_without_output, "@load has no output \"gone\"", value(f, "s")->name = "gone")
BREAKS(saved_of_another_type, "but @load puts out", value(f, "s")->name = "keep")
BREAKS(a_condition_gone, "needs an output \"keep\" of type i1[e] in @load",
       op_remove(effect(x.load, OP_OUTPUT)))
BREAKS(a_checkpoint_shape, "differ in their number of elements",
       x.m->vars.v[0]->save_shape[0] = expr_const(x.c.a, 3))
BREAKS(a_broken_list, "the list of operations is broken", value(f, "g")->prev = NULL)
BREAKS(a_wrong_count, "does not have 2 members", f->n_ops = 2)
BREAKS(a_node_type_of_fixed_size, "the space 'n' is inconsistent",
       x.m->spaces.v[0]->size = expr_const(x.c.a, 3))
BREAKS(a_function_twice, "a second @train", func_new(x.m, "train"))

TEST(the_model_line_is_named) {
    Fix x = setup();
    value(x.train, "y")->type.dt = DT_F64;
    CHECK(!module_verify(&x.c, x.m, "'cse'"));
    const Diag *d = &x.c.diags.v[0];
    CHECK(d->span.line == 8 && strcmp(x.c.sources.v[d->span.file].path, "m.gnn") == 0);
    CHECK_STR(d->text, "after 'cse': 'exp' (%y) is f64[n, F], but its operands make it f32[n, F] "
                       "in @train");
    ctx_free(&x.c);
}

TEST_MAIN()
