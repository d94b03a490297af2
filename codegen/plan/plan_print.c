/* --emit=plan: the buffers, then each phase's steps with what they read and write; what is rather
 * for the parser than for a reader comes behind: kernels, which values of the graph steps are for
 * (plan_facts.c), and the module. */
#include <inttypes.h>

#include "codegen/lower/lower.h"
#include "codegen/loop/loop_text.h"
#include "codegen/plan/plan_text.h"
#include "ir/text.h"

/* Prints what a buffer holds: a column, variable, index array, global row ids, chunk bounds, the
 * key of a random stream, or an input or output. */
static void print_source(StrBuf *b, const PBuf *what) {
    switch (what->kind) {
    case PB_MAP:
        ir_map_print(b, what->map);
        sb_printf(b, " %s", loop_part_words[what->map_part]);
        if (!what->by) break;
        sb_puts(b, " by ");
        ir_map_print(b, what->by);
        break;
    case PB_DATA:
        ir_column_print(b, what->col);
        break;
    case PB_VAR:
        ir_string_print(b, what->var->path);
        break;
    case PB_LOGICAL:
    case PB_CUTS:
        ir_name_print(b, what->space->name);
        break;
    case PB_KEY:
        sb_printf(b, "%d", what->stream);
        break;
    default:
        ir_string_print(b, what->io_name);
    }
}

/* Prints the line of a buffer: number, kind, name, type, what it holds and when it is live. */
static void print_buffer(StrBuf *b, const Plan *p, const PBuf *buf) {
    sb_printf(b, "  %%%d %s %s: %s[", buf->id, text_PBufKind.word[buf->kind], buf->name,
              dtype_name(buf->dt));
    expr_print(b, buf->count);
    sb_puts(b, "]");
    if (buf->kind != PB_TEMP) {
        sb_puts(b, " of ");
        print_source(b, buf);
    }
    if (buf->phase >= 0) {
        sb_puts(b, " in @");
        ir_name_print(b, p->phases.v[buf->phase]->name);
    }
    if (buf->kind == PB_TEMP && p->flags & PLAN_LIVES)
        sb_printf(b, " steps %d..%d", buf->first, buf->last);
    if (buf->block >= 0) sb_puts(b, " a block");
    if (buf->own) {
        sb_puts(b, " own ");
        ir_name_print(b, buf->own->name);
    }
    if (buf->local) sb_puts(b, " local");
    if (buf->type.rank || buf->type.layout != LAYOUT_DENSE) {
        sb_puts(b, " holds ");
        type_print(b, &buf->type);
    }
    sb_puts(b, "\n");
}

/* Prints the buffers of a step, "(x, w, z)". */
static void print_buf_names(StrBuf *b, const Plan *p, const int *bufs, int n) {
    sb_puts(b, "(");
    for (int i = 0; i < n; i++) sb_printf(b, "%s%s", i ? ", " : "", p->bufs.v[bufs[i]]->name);
    sb_puts(b, ")");
}

/* Prints the sizes and strides of a matrix product. */
static void print_gemm(StrBuf *b, const PGemm *g) {
    for (int i = 0; i < PLAN_GEMM_SIZES; i++) {
        sb_printf(b, " %s=", plan_gemm_sizes[i].name);
        expr_print(b, plan_gemm_size(g, i));
    }
    if (g->long_k) sb_puts(b, " long_k");
}

/* Prints what the library call does to a product's result, the extra operand (such as a bias), and
 * the numbers of the steps that this replaces. */
static void print_epilogue(StrBuf *b, const Plan *p, const PPhase *ph, const PEpilogue *e) {
    if (!e->kind) {
        sb_printf(b, " none: %s", e->why_not);
        return;
    }
    sb_printf(b, " %s", plan_epilogue_text(e));
    if (e->side >= 0) sb_printf(b, ", %s", p->bufs.v[e->side]->name);
    sb_puts(b, ", for");
    for (int i = 0; i < e->n_covers; i++) sb_printf(b, " %d", plan_step_index(ph, e->covers[i]));
}

/* Prints the group of products that one library call computes, or of kernels that one launch runs,
 * or why this product is a call of its own. */
static void print_group(StrBuf *b, const PPhase *ph, const PStep *s) {
    const PGroup *g = s->group;
    if (!g) {
        sb_printf(b, "alone: %s", s->separate_because);
        if (s->separate_from) sb_printf(b, " (with %d)", plan_step_index(ph, s->separate_from));
        sb_puts(b, "]");
        return;
    }
    int first = plan_step_index(ph, g->steps.v[0]);
    sb_printf(b, "group %d..%d, %s]", first, first + g->steps.n - 1,
              s->kind == PS_KERNEL ? "of one form"
              : g->same_shape      ? "of one shape"
                                   : "of several shapes");
}

/* Prints a path to rows: a space, and the index arrays that lead from its rows to others. */
static void print_halo(StrBuf *b, const Plan *p, const PHalo *halo, const char *before) {
    sb_puts(b, before);
    ir_name_print(b, halo->from->name);
    for (int k = 0; k < halo->n_via; k++)
        sb_printf(b, "%s%s", k ? ", " : "(", p->bufs.v[halo->via[k]]->name);
    sb_puts(b, ")");
}

/* Prints the partitioned space whose local rows a step computes ("cuts of": partial sums by chunk).
 * Of an exchange it prints which remote rows are fetched: for each space, the index arrays that
 * lead to them; and which rows of the next step are computed meanwhile. */
static void print_partition(StrBuf *b, const Plan *p, const PStep *s) {
    sb_puts(b, s->partials ? " cuts of " : " ");
    ir_name_print(b, s->partition->name);
    if (s->kind == PS_EXCHANGE && !s->halos.n)
        sb_puts(b, s->folds ? " sum" : s->to_first ? " first" : " all");
    if (s->sampled) sb_puts(b, " sampled");
    for (int i = 0; i < s->halos.n; i++) print_halo(b, p, &s->halos.v[i], i ? ", " : " reach ");
    for (int i = 0; i < s->beside.n; i++) print_halo(b, p, &s->beside.v[i], i ? ", " : " beside ");
}

/* Prints the layer instance that a step belongs to, and where that is applied: "(in conv1,
 * gcn.gnn:12)". */
static void print_instance(StrBuf *b, const Plan *p, Span at) {
    const Ctx *c = p->m->ctx;
    if (!at.site_name || at.site_file >= (uint32_t)c->sources.n) return;
    sb_printf(b, PLAN_INSTANCE "%s, %s:%u)", at.site_name, ctx_source_name(c, at.site_file),
              at.site_line);
}

/* Prints what a part of a step's line has behind its word. */
static void print_part(StrBuf *b, const Plan *p, const PPhase *ph, const PStep *s,
                       const PStepPartText *part) {
    switch (part->part) {
    case SP_KERNEL:
        sb_printf(b, " %s", s->kernel->name);
        break;
    case SP_SPACE:
        sb_puts(b, " ");
        ir_name_print(b, s->space->name);
        break;
    case SP_SYMBOL:
        sb_printf(b, " %s", cg_symbol(s->op));
        break;
    case SP_BUFS:
        print_buf_names(b, p, s->bufs, s->n_bufs);
        break;
    case SP_SIZES:
        print_gemm(b, &s->gemm);
        break;
    case SP_EXTENT:
        sb_puts(b, "=");
        expr_print(b, s->extent);
        break;
    case SP_MAPS:
        sb_puts(b, " ");
        loop_maps_print(b, &s->balance);
        break;
    case SP_LIMIT:
        sb_printf(b, " %" PRId64, s->limit);
        break;
    case SP_OWN:
        print_partition(b, p, s);
        break;
    case SP_CONDITION:
        sb_printf(b, " %s%s", s->pred_not ? "not " : "", p->bufs.v[s->pred]->name);
        break;
    case SP_STREAM:
        sb_printf(b, " %d", s->branch->stream);
        for (int i = 0; i < s->branch->n_after; i++)
            sb_printf(b, "%s %d", i ? "," : " after", plan_step_index(ph, s->branch->after[i]));
        break;
    case SP_CLEAR:
        sb_printf(b, " %s", s->clear->kernel->name);
        print_buf_names(b, p, s->clear->bufs, s->clear->n_bufs);
        break;
    case SP_EPILOGUE:
        print_epilogue(b, p, ph, s->epilogue);
        break;
    case SP_GROUP:
        print_group(b, ph, s);
        break;
    case SP_SPMM:
        if (s->spmm->index < 0)
            sb_printf(b, " none: %s", s->spmm->why_not);
        else
            sb_printf(b, " %d", s->spmm->index);
        break;
    case SP_WITHIN:
        sb_printf(b, " %d", plan_step_index(ph, s->covered_by));
        break;
    case SP_FLAG: /* its word is all */
        break;
    }
}

/* Prints a step in one line: its kind, its kernel or function, its buffers and all that is decided
 * about it, which plan_parse() reads back; then its note as a comment. */
static void print_step(StrBuf *b, const Plan *p, const PPhase *ph, const PStep *s) {
    sb_puts(b, text_PStepKind.word[s->kind]);
    for (const PStepPartText *part = plan_step_facts(s->kind)->line; part->part; part++) {
        if (!plan_step_has(s, part)) continue;
        if (*part->word) sb_printf(b, " %s", part->word);
        print_part(b, p, ph, s, part);
    }
    if (!s->note) return;
    sb_printf(b, "  ; %s", s->note);
    print_instance(b, p, s->span);
}

/* Prints which steps of a phase run on one block of rows after the other, and how many rows those
 * have. */
static void print_blocks(StrBuf *b, const PBlocks *l) {
    sb_printf(b, "  steps %d..%d in blocks of ", l->first, l->last);
    expr_print(b, l->rows);
    sb_puts(b, "\n");
}

/* Prints the kernels. */
static void print_kernels(StrBuf *b, const Plan *p) {
    for (int i = 0; i < p->kernels.n; i++) loop_print(b, p->m, p->kernels.v[i]);
}

/* Prints buffers and steps; places: steps end with their source position. */
static void print_steps(StrBuf *b, const Plan *p, bool places) {
    sb_puts(b, "buffers {\n");
    for (int i = 0; i < p->bufs.n; i++) print_buffer(b, p, p->bufs.v[i]);
    sb_puts(b, "}\n");
    for (int i = 0; i < p->phases.n; i++) {
        const PPhase *ph = p->phases.v[i];
        sb_puts(b, "phase @");
        ir_name_print(b, ph->name);
        sb_puts(b, " {\n");
        for (int k = 0, next = 0; k < ph->steps.n; k++) {
            if (next < ph->blocks.n && ph->blocks.v[next].first == k)
                print_blocks(b, &ph->blocks.v[next++]);
            sb_printf(b, "  %d: ", k);
            print_step(b, p, ph, ph->steps.v[k]);
            if (places) ir_span_print(b, p->m->ctx, UINT32_MAX, true, ph->steps.v[k]->span);
            sb_puts(b, "\n");
        }
        sb_puts(b, "}\n");
    }
}

void plan_print_steps(StrBuf *b, const Plan *p) {
    print_steps(b, p, true);
}

/* Prints the plan. Kernels that are scheduled for a target stand first: who prints those wants to
 * see them. */
void plan_print(StrBuf *b, const Plan *p) {
    if (p->scheduled_for) print_kernels(b, p);
    print_steps(b, p, false);
    if (!p->scheduled_for) print_kernels(b, p);
    plan_print_facts(b, p);
    module_print_of(b, p->m, p->text_file);
}
