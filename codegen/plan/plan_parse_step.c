/* Steps of a plan's text (plan_print.c):
 *
 *     0: gemm(x, w, z) batch=1 m=N_v .. epilogue adds a bias, b, for 1 [alone: ..]  ; z = ..
 *     steps 1..2 in blocks of N_v
 *     1: kernel gcn_train_h_3(h, z) over=N_v balanced dst(e) within 0  ; h = add z, b
 *
 * Parts that are made of words are told by what they begin with.  The reasons in them are taken as
 * they are. */
#include "codegen/plan/plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Removes from the line's end the annotation that begins with `marker`, and returns its text; NULL:
 * it has none. */
static const char *cut_annotation(Arena *a, const char *from, const char **end,
                                  const char *marker) {
    size_t n = strlen(marker);
    const char *at = memmem(from, (size_t)(*end - from), marker, n);
    if (!at) return NULL;
    const char *text = arena_strndup(a, at + n, (size_t)(*end - at) - n);
    *end = at;
    return text;
}

/* Removes the parts that are made of words from the end of a step's line (note, epilogue, group,
 * sparse product) and returns their texts. */
static PlanTails cut_annotations(PlanReader *r, const char *end) {
    Arena *a = r->p.a;
    const char *from = r->p.p;
    while (end > from && strchr(" \r\n", end[-1])) end--;
    cut_annotation(a, from, &end, PLAN_INSTANCE); /* the operation's position says it, too */
    PlanTails tails = {.note = cut_annotation(a, from, &end, "  ; ")};
    cut_annotation(a, from, &end, " within "); /* the product says it, too */
    tails.spmm = cut_annotation(a, from, &end, " spmm ");
    tails.call = cut_annotation(a, from, &end, " [");
    tails.epilogue = cut_annotation(a, from, &end, " epilogue ");
    r->p.end = end;
    return tails;
}

/* Adds an error at the current token; returns false. */
static bool step_error(PlanReader *r, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "%s", what);
}

/* ---- what the lexer reads ----------------------------------------------------------------- */
/* Reads the buffers of a step, "(x, w, z)". */
static bool parse_step_bufs(PlanReader *r, int **bufs, int *n) {
    VEC(int) ids = {0};
    if (!parse_expect(&r->p, '(')) return false;
    while (!parse_is(&r->p, ')')) {
        int id = -1;
        if (!plan_parse_buf(r, &id)) return false;
        vec_push(r->p.a, &ids, id);
        if (!parse_accept(&r->p, ',')) break;
    }
    *n = ids.n;
    *bufs = NEWN(r->p.a, int, (size_t)ids.n + 1);
    if (ids.n) memcpy(*bufs, ids.v, (size_t)ids.n * sizeof *ids.v);
    return parse_expect(&r->p, ')');
}

/* Reads the sizes and strides of a matrix product, "name=SIZE" each. */
static bool parse_gemm(PlanReader *r, PGemm *g) {
    for (int i = 0; i < PLAN_GEMM_SIZES; i++) {
        const PGemmSize *size = &plan_gemm_sizes[i];
        if (!parse_accept_word(&r->p, size->name))
            return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "expected '%s=' and a size",
                              size->name);
        if (!parse_expect(&r->p, '=') ||
            !parse_expr(&r->p, (const Expr **)((char *)g + size->offset)))
            return false;
    }
    g->long_k = parse_accept_word(&r->p, "long_k");
    return true;
}

/* Reads the maps by whose entries the kernel's rows are divided among threads. */
static bool parse_balance(PlanReader *r, MapList *maps) {
    do {
        Map *m = NULL;
        if (!parse_map(&r->p, &m)) return false;
        vec_push(r->p.a, maps, m);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the buffer that decides whether the step runs, "[not] BUFFER". */
static bool parse_condition(PlanReader *r, PStep *s) {
    s->pred_not = parse_accept_word(&r->p, "not");
    return plan_parse_buf(r, &s->pred);
}

/* Reads the name of a kernel that no earlier step runs. */
static bool parse_kernel_name(PlanReader *r, LKernel **out) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "the name of what is called", &name)) return false;
    *out = strmap_get(&r->kernels, name);
    if (*out) strmap_put(r->p.a, &r->kernels, name, NULL);
    return *out || parse_fail(&r->p, DIAG_E0542, at,
                              "'%s' is no kernel, or of a step before this one", name);
}

/* Reads the kernel that zeroes padding rows before a matrix product, and the operands that it
 * writes: "clears KERNEL(x, y)". */
static bool parse_clear(PlanReader *r, PStep *s) {
    PClear *clear = s->clear = NEW(r->p.a, PClear);
    int *bufs = NULL;
    if (!parse_kernel_name(r, &clear->kernel) || !parse_step_bufs(r, &bufs, &clear->n_bufs))
        return false;
    if (clear->n_bufs < 1 || clear->n_bufs > 2)
        return step_error(r, "one operand or two are cleared");
    memcpy(clear->bufs, bufs, (size_t)clear->n_bufs * sizeof *bufs);
    return true;
}

/* Reads paths to rows of an exchange: a partitioned space, and the index arrays that lead from its
 * local rows to the rows. */
static bool parse_halos(PlanReader *r, PHaloList *to) {
    do {
        PHalo halo = {0};
        if (!parse_space(&r->p, &halo.from) || !parse_expect(&r->p, '(')) return false;
        do {
            if (halo.n_via == PLAN_HALO_DEPTH_MAX)
                return step_error(r, "rows are reached through too many arrays");
            if (!plan_parse_buf(r, &halo.via[halo.n_via++])) return false;
        } while (parse_accept(&r->p, ','));
        if (!parse_expect(&r->p, ')')) return false;
        vec_push(r->p.a, to, halo);
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the partitioned space whose local rows a step computes. "cuts of" means partial sums by
 * chunk; of an exchange it also reads which remote rows it fetches. */
static bool parse_partition(PlanReader *r, PStep *s) {
    s->partials = parse_accept_word(&r->p, "cuts");
    if (s->partials && !parse_accept_word(&r->p, "of")) return parse_expected(&r->p, "'of'");
    if (!parse_space(&r->p, &s->partition)) return false;
    if (s->kind != PS_EXCHANGE || parse_accept_word(&r->p, "all")) return true;
    s->folds = s->partials && parse_accept_word(&r->p, "sum");
    s->to_first = !s->folds && parse_accept_word(&r->p, "first");
    if (s->folds || s->to_first) return true;
    s->sampled = parse_accept_word(&r->p, "sampled");
    if (!parse_accept_word(&r->p, "reach")) return parse_expected(&r->p, "'all' or 'reach'");
    return parse_halos(r, &s->halos) &&
           (!parse_accept_word(&r->p, "beside") || parse_halos(r, &s->beside));
}

/* Reads the stream that a device runs the step in, and which earlier steps of other streams it
 * waits for: "stream 1 after 3, 5". */
static bool parse_stream(PlanReader *r, PStep *s) {
    PBranch *b = s->branch = NEW(r->p.a, PBranch);
    int64_t stream = 0, step = 0;
    if (!parse_int(&r->p, "a stream", 0, RT_STREAMS_MAX - 1, &stream)) return false;
    b->stream = (int)stream;
    if (!parse_accept_word(&r->p, "after"))
        return b->stream || step_error(r, "stream 0 is said where a step waits for others");
    do {
        if (b->n_after == RT_STREAMS_MAX) return step_error(r, "it waits for too many steps");
        if (!parse_int(&r->p, "an earlier step", 0, r->ph->steps.n - 1, &step)) return false;
        b->after[b->n_after++] = r->ph->steps.v[step];
    } while (parse_accept(&r->p, ','));
    return true;
}

/* Reads the name of the C function that a call runs; the section "facts" says which it is. */
static bool parse_symbol(PlanReader *r) {
    const char *name = NULL;
    return parse_name(&r->p, "the name of what is called", &name);
}

/* Reads what a part of a step's line has behind its word. */
static bool parse_part(PlanReader *r, PStep *s, const PStepPartText *part) {
    switch (part->part) {
    case SP_KERNEL:
        return parse_kernel_name(r, &s->kernel);
    case SP_SPACE:
        return parse_space(&r->p, &s->space);
    case SP_SYMBOL:
        return parse_symbol(r);
    case SP_BUFS:
        return parse_step_bufs(r, &s->bufs, &s->n_bufs);
    case SP_SIZES:
        return parse_gemm(r, &s->gemm);
    case SP_EXTENT:
        return parse_expect(&r->p, '=') && parse_expr(&r->p, &s->extent);
    case SP_MAPS:
        return parse_balance(r, &s->balance);
    case SP_FLAG:
        return *(bool *)((char *)s + part->offset) = true;
    case SP_LIMIT:
        return parse_int(&r->p, "a limit", 1, INT32_MAX, &s->limit);
    case SP_OWN:
        return parse_partition(r, s);
    case SP_CONDITION:
        return parse_condition(r, s);
    case SP_CLEAR:
        return parse_clear(r, s);
    case SP_STREAM:
        return parse_stream(r, s);
    case SP_EPILOGUE: /* cut_annotations() has taken these from the line */
    case SP_GROUP:
    case SP_SPMM:
    case SP_WITHIN:
        break;
    }
    return true;
}

/* Reads the parts of a step's line. */
static bool parse_parts(PlanReader *r, PStep *s) {
    for (const PStepPartText *part = plan_step_facts(s->kind)->line; part->part; part++)
        if ((!*part->word || parse_accept_word(&r->p, part->word)) && !parse_part(r, s, part))
            return false;
    return r->p.tok.kind == T_END || parse_expected(&r->p, "the end of the step");
}

/* Reads a loop over blocks of rows: "steps 1..2 in blocks of SIZE". */
static bool parse_blocks(PlanReader *r) {
    PBlocks blocks = {0};
    if (!plan_parse_range(r, &blocks.first, &blocks.last)) return false;
    if (!parse_accept_word(&r->p, "in") || !parse_accept_word(&r->p, "blocks") ||
        !parse_accept_word(&r->p, "of"))
        return parse_expected(&r->p, "'in blocks of' and a number of rows");
    if (!parse_expr(&r->p, &blocks.rows)) return false;
    int after = r->ph->blocks.n ? r->ph->blocks.v[r->ph->blocks.n - 1].last : -1;
    if (blocks.first <= after || blocks.first != r->ph->steps.n || blocks.last < blocks.first)
        return step_error(
            r, "a loop over blocks stands before its first step, behind the one before it");
    vec_push(r->p.a, &r->ph->blocks, blocks);
    return true;
}

/* Reads one line of a phase: a step, or a loop over blocks. end: of the line. False after a
 * diagnostic. */
bool plan_parse_step(PlanReader *r, const char *end) {
    int kind = 0;
    int64_t number = 0;
    if (r->p.tok.kind == T_NAME && !strcmp(r->p.tok.s, "steps")) return parse_blocks(r);
    PlanTails tails = cut_annotations(r, end);
    PStep *s = NEW(r->p.a, PStep);
    s->pred = -1;
    s->note = tails.note;
    s->span = s->in_text = r->p.tok.span;
    if (!parse_int(&r->p, "the step's number", r->ph->steps.n, r->ph->steps.n, &number) ||
        !parse_expect(&r->p, ':') || !parse_word(&r->p, &text_PStepKind, "a kind of steps", &kind))
        return false;
    s->kind = (PStepKind)kind;
    if (!parse_parts(r, s)) return false;
    vec_push(r->p.a, &r->ph->steps, s);
    vec_push(r->p.a, &r->tails, tails);
    return true;
}

/* ---- what needs all steps of the phase ---------------------------------------------------- */
/* Adds an error about step number i; returns false. */
static bool step_error_at(PlanReader *r, int i, const char *what) {
    return parse_fail(&r->p, DIAG_E0542, r->ph->steps.v[i]->span, "step %d: %s", i, what);
}

/* Reads the numbers of the steps that a product's epilogue replaces, "3 4". A sum of an operand's
 * rows (PE_SUM_A, PE_SUM_B) replaces two kernels, the one of the chunks and the one that adds them;
 * the product itself stays where it is. Any other epilogue replaces one kernel and writes that
 * kernel's result (e->out). */
static bool parse_covers(PlanReader *r, int product, PEpilogue *e, const char *numbers) {
    int max_steps = e->kind == PE_SUM_A || e->kind == PE_SUM_B ? 2 : 1;
    for (char *end; *numbers; numbers = end) {
        long i = strtol(numbers, &end, 10);
        PStep *s = end > numbers && i >= 0 && i < r->ph->steps.n ? r->ph->steps.v[i] : NULL;
        if (!s || s->kind != PS_KERNEL || s->covered_by || e->n_covers == max_steps)
            return step_error_at(r, product, "it covers a step that it cannot");
        s->covered_by = r->ph->steps.v[product];
        e->covers[e->n_covers++] = s;
    }
    if (e->n_covers < max_steps) return step_error_at(r, product, "it covers too few steps");
    const PStep *end = e->covers[0];
    for (int i = 0; i < end->n_bufs && i < end->kernel->bufs.n; i++)
        if (max_steps == 1 && end->kernel->bufs.v[i]->written) e->out = end->bufs[i];
    if (max_steps == 2) e->out = r->ph->steps.v[product]->bufs[2];
    return e->out >= 0 || step_error_at(r, product, "it covers a kernel without a result");
}

/* Reads the epilogue of a matrix product: what the library call does to the result, the extra
 * operand, and the steps that this replaces. */
static bool parse_epilogue(PlanReader *r, int product, const char *text) {
    PEpilogue *epilogue = r->ph->steps.v[product]->epilogue = NEW(r->p.a, PEpilogue);
    *epilogue = (PEpilogue){.side = -1, .out = -1};
    bool none = !strncmp(text, "none: ", 6);
    if (none) epilogue->why_not = text + 6;
    if (none) return true;
    const char *covers_text = strstr(text, ", for ");
    if (!covers_text)
        return step_error_at(r, product, "an epilogue says of which steps it is: ', for 3'");
    const char *kind_text = arena_strndup(r->p.a, text, (size_t)(covers_text - text)),
               *side = strstr(kind_text, ", ");
    const PBuf *b = side ? strmap_get(&r->bufs, side + 2) : NULL;
    size_t n = side ? (size_t)(side - kind_text) : strlen(kind_text);
    int kind = text_find(&text_PEpilogueKind, kind_text, n);
    if (kind <= PE_NONE || (kind != PE_RELU) != (b != NULL))
        return step_error_at(r, product, "there is no such epilogue, or no such buffer");
    epilogue->kind = (PEpilogueKind)kind;
    epilogue->side = b ? b->id : -1;
    return parse_covers(r, product, epilogue, covers_text + 6);
}

/* Forms a group of the steps first .. last: matrix products that one library call computes, or
 * kernels that one launch runs. */
static bool form_group(PlanReader *r, int product, int first, int last, bool same_shape) {
    PPhase *ph = r->ph;
    if (first < 0 || last <= first || last >= ph->steps.n || product < first || product > last)
        return step_error_at(r, product, "a group has two steps or more, and it is one of them");
    if (product > first) {
        PGroup *group = ph->steps.v[first]->group;
        bool is_member = group && product - first < group->steps.n &&
                         group->steps.v[product - first] == ph->steps.v[product];
        return is_member || step_error_at(r, product, "its group is another one");
    }
    PGroup *group = NEW(r->p.a, PGroup);
    group->same_shape = same_shape;
    for (int i = first; i <= last; i++) {
        if (ph->steps.v[i]->kind != ph->steps.v[first]->kind || ph->steps.v[i]->group)
            return step_error_at(r, i, "a group is of products, or kernels, each in one");
        ph->steps.v[i]->group = group;
        vec_push(r->p.a, &group->steps, ph->steps.v[i]);
    }
    return true;
}

/* Reads whether a product or kernel is in a group, "group 3..5, of one shape]", or why a product is
 * in none, "alone: why (with 3)]". */
static bool parse_call_note(PlanReader *r, int product, const char *text) {
    PStep *s = r->ph->steps.v[product];
    size_t n = strlen(text);
    int first = 0, last = 0;
    if (!n || text[n - 1] != ']') return step_error_at(r, product, "']' is missing");
    if (sscanf(text, "group %9d..%9d", &first, &last) == 2)
        return form_group(r, product, first, last, strstr(text, "of one ") != NULL);
    if (strncmp(text, "alone: ", 7) != 0 || s->kind != PS_GEMM)
        return step_error_at(r, product, "a product is in a group, or alone");
    const char *with = strstr(text, " (with ");
    s->separate_because = arena_strndup(r->p.a, text + 7, with ? (size_t)(with - text) - 7 : n - 8);
    if (!with) return true;
    if (sscanf(with, " (with %9d", &first) != 1 || first < 0 || first >= r->ph->steps.n)
        return step_error_at(r, product, "there is no such step");
    s->separate_from = r->ph->steps.v[first];
    return true;
}

/* Reads whether the library may do a sparse product; the section "facts" has its operands. */
static bool parse_spmm_note(PlanReader *r, int at, const char *text) {
    PSpmm *product = r->ph->steps.v[at]->spmm = NEW(r->p.a, PSpmm); /* the facts say the rest */
    product->index = -1;
    if (!strncmp(text, "none: ", 6)) product->why_not = text + 6;
    if (product->why_not) return true;
    bool is_next = sscanf(text, "%9d", &product->index) == 1 && product->index == r->n_spmm++;
    return is_next || step_error_at(r, at, "sparse products are numbered from 0 on");
}

/* Sets the positions by which loop steps and their ends refer to each other. */
static bool match_loops(PlanReader *r) {
    VEC(int) open_loops = {0};
    PPhase *ph = r->ph;
    for (int i = 0; i < ph->steps.n; i++) {
        if (ph->steps.v[i]->kind == PS_LOOP) vec_push(r->p.a, &open_loops, i);
        if (ph->steps.v[i]->kind != PS_END) continue;
        if (!open_loops.n) return step_error_at(r, i, "no loop is open");
        ph->steps.v[i]->other = open_loops.v[--open_loops.n];
        ph->steps.v[open_loops.v[open_loops.n]]->other = i;
    }
    return !open_loops.n || step_error_at(r, open_loops.v[open_loops.n - 1], "the loop has no end");
}

/* Finds the loop over blocks that each block-local temporary belongs to. False: the last loop over
 * blocks ends behind the phase's steps. */
static bool find_blocks(PlanReader *r) {
    PPhase *ph = r->ph;
    if (ph->blocks.n && ph->blocks.v[ph->blocks.n - 1].last >= ph->steps.n)
        return step_error_at(r, ph->steps.n - 1, "the last loop over blocks goes on");
    for (int i = 0; i < ph->blocks.n; i++)
        for (int k = ph->blocks.v[i].first; k <= ph->blocks.v[i].last; k++)
            for (int j = 0; j < ph->steps.v[k]->n_bufs; j++) {
                PBuf *b = r->plan->bufs.v[ph->steps.v[k]->bufs[j]];
                if (b->block >= 0) b->block = i;
            }
    return true;
}

/* Completes a phase after all of its steps are read: annotations and loops refer to steps by
 * number. */
bool plan_parse_match(PlanReader *r) {
    for (int i = 0; i < r->ph->steps.n; i++) {
        const PlanTails *tails = &r->tails.v[i];
        const PStep *s = r->ph->steps.v[i];
        const PStepFacts *facts = plan_step_facts(s->kind);
        bool is_product = facts->parts & SP_EPILOGUE && s->n_bufs == facts->n_bufs;
        if ((tails->epilogue && !is_product) || (tails->call && !(facts->parts & SP_GROUP)))
            return step_error_at(r, i, "it is no product");
        if (tails->spmm && !(facts->parts & SP_SPMM)) return step_error_at(r, i, "it is no kernel");
        if ((tails->epilogue && !parse_epilogue(r, i, tails->epilogue)) ||
            (tails->call && !parse_call_note(r, i, tails->call)) ||
            (tails->spmm && !parse_spmm_note(r, i, tails->spmm)))
            return false;
    }
    r->tails.n = 0;
    return match_loops(r) && find_blocks(r);
}

/* Reads the name of a buffer; *buf gets its number. False after a diagnostic. */
bool plan_parse_buf(PlanReader *r, int *buf) {
    Span at = r->p.tok.span;
    const char *name = NULL;
    if (!parse_name(&r->p, "the name of a buffer", &name)) return false;
    const PBuf *b = strmap_get(&r->bufs, name);
    if (!b) return parse_fail(&r->p, DIAG_E0542, at, "there is no buffer '%s'", name);
    *buf = b->id;
    return true;
}

/* Reads two numbers, "3..14", that follow the current word. */
bool plan_parse_range(PlanReader *r, int *first, int *last) {
    const char *end = text_line_end(r->p.p, r->p.end), *s = r->p.p;
    char text[64];
    size_t n = (size_t)(end - s) < sizeof text - 1 ? (size_t)(end - s) : sizeof text - 1;
    int used = 0;
    memcpy(text, s, n);
    text[n] = 0;
    if (sscanf(text, " %9d..%9d%n", first, last, &used) != 2 || !used)
        return parse_expected(&r->p, "'steps' and two numbers, as '3..14'");
    r->p.p = s + used;
    parse_lex_next(&r->p);
    return true;
}
