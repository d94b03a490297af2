/* The driver's phase functions: a comment and a call per step. */
#include <inttypes.h>

#include "codegen/host/host.h"

/* Writes a position in the model as "file:line", inside a comment. */
static void put_position(Host *h, Span at) {
    host_comment(h, ctx_source_name(h->c, at.file));
    host_printf(h, ":%u", at.line);
}

/* Writes the comment above a step of the driver: its number, what it computes, in which instance of
 * a layer, and its model lines, the user's own first. */
static void emit_step_comment(Host *h, int index, const PStep *s) {
    host_printf(h, "\n    /* %d: ", index);
    host_comment(h, s->note ? s->note : "");
    if (s->span.line && (int)s->span.file < h->c->sources.n) {
        const Span user = ctx_user_span(h->c, s->span);
        const bool inside = user.file != s->span.file || user.line != s->span.line;
        host_puts(h, "  (");
        if (s->span.site_name) host_comment(h, s->span.site_name);
        if (s->span.site_name) host_puts(h, ", ");
        if (inside) put_position(h, user);
        if (inside) host_puts(h, ", ");
        put_position(h, s->span);
        host_puts(h, ")");
    }
    host_puts(h, " */\n");
}

/* The name of buffer number `id`, without the prefix B_. */
static const char *buf_name(const Host *h, int id) {
    return h->p->bufs.v[id]->name;
}

/* Sets h->has_segment_bounds: by map, whether the plan has a buffer with the bounds of its
 * segments. */
static void find_segment_bounds(Host *h) {
    h->has_segment_bounds = NEWN(h->a, bool, (size_t)h->m->maps.n + 1);
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        if (b->kind == PB_MAP && b->map_part == LB_MAP_PTR)
            h->has_segment_bounds[b->map->id] = true;
    }
}

/* Writes the buffers of step s as elements of an array, of which *n stand there already. */
static void emit_bufs(Host *h, const PStep *s, int *n) {
    for (int i = 0; i < s->n_bufs; i++, ++*n)
        host_printf(h, "%sbuf[B_%s]",
                    *n == 0  ? ""
                    : *n % 4 ? ", "
                             : ",\n                        ",
                    buf_name(h, s->bufs[i]));
}

/* Writes the array of buffers that the kernel of step s gets, or, on a device, those of all kernels
 * of its group. pred: the buffer of the condition that a device kernel tests, or -1. On a device a
 * work area follows and, where sizes may be rounded up, the batch's true sizes, or, where processes
 * share the step's rows, which are own. */
static void emit_arguments(Host *h, const PStep *s, int pred) {
    const PGroup *g = h->device ? s->group : NULL;
    int n = 0;
    host_puts(h, "\n        (void *const[]){");
    if (s->n_bufs == 0) host_puts(h, "NULL");
    for (int i = 0; g && i < g->steps.n; i++) emit_bufs(h, g->steps.v[i], &n);
    if (!g) emit_bufs(h, s, &n);
    if (pred >= 0) host_printf(h, ", buf[B_%s]", buf_name(h, pred));
    if (h->device) host_puts(h, ", rt_device_room(x)");
    if (h->device && h->bucketed) host_puts(h, ", rt_device_sizes(x)");
    if (h->device && s->partition) host_puts(h, ", rt_device_own(x)");
    host_puts(h, "}");
}

/* Writes the launch of the kernel of step s on the device. */
static void emit_device_kernel(Host *h, const char *indent, const PStep *s) {
    const char *name = s->kernel->name;
    if (s->partition)
        host_printf(h, "%sst = rt_device_launch_own(x, %s, %s, ", indent,
                    h->space[s->partition->id], s->partials ? "true" : "false");
    else
        host_printf(h, "%sst = rt_device_launch(x, ", indent);
    host_printf(h, "%s_%s, \"%s\",", name, h->device, name);
    emit_arguments(h, s, s->pred);
    host_puts(h, ");\n");
}

/* Writes a sparse product by the device's library, and the launch of the kernel for when the
 * library declines it. */
static void emit_spmm(Host *h, int index, const PStep *s) {
    host_printf(h,
                "    bool made_%d;\n    st = rt_device_spmm(x, %d, &made_%d);\n"
                "    if (st == GNNC_OK && !made_%d)\n",
                index, s->spmm->index, index, index);
    emit_device_kernel(h, "        ", s);
}

/* By how many maps the rows of step s are cut into chunks of equal numbers of entries: those whose
 * segment bounds the plan has. */
static int count_balance_maps(const Host *h, const PStep *s) {
    int n = 0;
    for (int i = 0; i < s->balance.n; i++) n += h->has_segment_bounds[s->balance.v[i]->id];
    return n;
}

/* Writes the arguments of a balanced launch: the number of these maps and an array of their ids. */
static void emit_balance(Host *h, const PStep *s) {
    const char *before = "";
    host_printf(h, "%d, (const int[]){", count_balance_maps(h, s));
    for (int i = 0; i < s->balance.n; i++) {
        if (!h->has_segment_bounds[s->balance.v[i]->id]) continue;
        host_printf(h, "%s%d", before, s->balance.v[i]->id);
        before = ", ";
    }
    host_puts(h, "}");
}

/* Writes the launch of a host kernel over the rows that this process owns; processes share the rows
 * of the data. */
static void emit_local_rows_kernel(Host *h, const PStep *s) {
    host_printf(h, "    rt_launch_own%s(x, %s, %s,", s->partials ? "_cuts" : "",
                h->space[s->partition->id], s->kernel->name);
    emit_arguments(h, s, -1);
    if (!s->partials) {
        host_puts(h, ",\n        ");
        host_expr(h, s->extent);
        host_puts(h, ", ");
        if (count_balance_maps(h, s))
            emit_balance(h, s);
        else
            host_puts(h, "0, NULL");
    }
    host_puts(h, ");\n");
}

/* Writes the launch of the kernel of step s on the host: balanced over chunks of equal numbers of
 * entries if it has maps for that, else over the iterations of its parallel loop; an extent of -1
 * is one serial call. */
static void emit_kernel(Host *h, const PStep *s) {
    if (s->partition) {
        emit_local_rows_kernel(h, s);
        return;
    }
    bool balanced = s->extent && count_balance_maps(h, s) > 0;
    host_printf(h, "    rt_launch%s(x, %s,",
                balanced      ? "_balanced"
                : s->by_chunk ? "_chunks"
                              : "",
                s->kernel->name);
    emit_arguments(h, s, -1);
    host_puts(h, ",\n        ");
    if (balanced)
        emit_balance(h, s);
    else if (s->extent)
        host_expr(h, s->extent);
    else
        host_puts(h, "-1");
    host_puts(h, ");\n");
}

/* Writes a size of a matrix product as a member of an initializer. */
static void emit_gemm_field(Host *h, const char *name, const Expr *e) {
    host_printf(h, "        .%s = ", name);
    host_expr(h, e);
    host_puts(h, ",\n");
}

/* Writes the three buffers of a matrix product: A, B and C. */
static void emit_operands(Host *h, const PStep *s) {
    host_printf(h, "buf[B_%s], buf[B_%s], buf[B_%s]", buf_name(h, s->bufs[0]),
                buf_name(h, s->bufs[1]), buf_name(h, s->bufs[2]));
}

/* Writes the end of a matrix product that does further steps on the device, and the launches of
 * these steps for when the library cannot do them for the sizes at hand; of rows that processes
 * share the runtime decides, part by part. */
static void emit_epilogue(Host *h, int index, const PStep *s) {
    const PEpilogue *e = s->epilogue;
    const PStep *end = e->covers[0];
    host_printf(h,
                "        &(const rt_epilogue){.kind = %s, .side = ", host_PEpilogueKind[e->kind]);
    if (e->side >= 0)
        host_printf(h, "buf[B_%s]", buf_name(h, e->side));
    else
        host_puts(h, "NULL");
    host_printf(h, ", .out = buf[B_%s]},\n        ", buf_name(h, e->out));
    emit_operands(h, s);
    if (s->partition) {
        host_printf(h, ", %s_%s, \"%s\",", end->kernel->name, h->device, end->kernel->name);
        emit_arguments(h, end, end->pred);
        host_puts(h, ");\n");
        return;
    }
    host_printf(h, ", &within_%d);\n    if (st == GNNC_OK && !within_%d) { /* steps", index, index);
    const PPhase *ph = h->p->phases.v[h->phase];
    for (int i = 0; i < e->n_covers; i++) host_printf(h, " %d", plan_step_index(ph, e->covers[i]));
    host_puts(h, " */\n");
    for (int i = 0; i < e->n_covers; i++) {
        if (i) host_puts(h, "        if (st != GNNC_OK) return st;\n");
        emit_device_kernel(h, "        ", e->covers[i]);
    }
    host_puts(h, "    }\n");
}

/* Writes the sizes and strides (see PGemm) of a matrix product as members of an initializer. */
static void emit_sizes(Host *h, const PStep *s) {
    const PGemm *g = &s->gemm;
    DType in = h->p->bufs.v[s->bufs[0]]->dt, out = h->p->bufs.v[s->bufs[2]]->dt;
    for (int i = 0; i < PLAN_GEMM_SIZES; i++)
        emit_gemm_field(h, plan_gemm_sizes[i].name, plan_gemm_size(g, i));
    if (in != DT_F32)
        host_printf(h, "        .in = %s,\n        .out = %s,\n", host_dtype(in), host_dtype(out));
    host_printf(h, "        .long_k = %s}", g->long_k ? "true" : "false");
}

/* Writes one library call for all matrix products of group g. */
static void emit_group(Host *h, const PGroup *g) {
    host_printf(h, "    st = rt_device_gemm_group(x, %d, (const rt_gemm[]){\n",
                plan_group_index(h->p, g));
    for (int i = 0; i < g->steps.n; i++) {
        host_printf(h, "      { /* %s */\n", buf_name(h, g->steps.v[i]->bufs[2]));
        emit_sizes(h, g->steps.v[i]);
        host_puts(h, i + 1 < g->steps.n ? ",\n" : "});\n");
    }
}

/* Writes the matrix product of step number `index`: with its epilogue on a device (within_N: the
 * library did the steps of the epilogue, too), over the rows that this process owns where processes
 * share rows, else as a plain library call. */
static void emit_gemm(Host *h, int index, const PStep *s) {
    bool has_epilogue = h->device && s->epilogue && s->epilogue->kind;
    if (has_epilogue && s->partition)
        host_printf(h, "    st = rt_device_gemm_parts_with(x, %s, &(rt_gemm){\n",
                    h->space[s->partition->id]);
    else if (has_epilogue)
        host_printf(h, "    bool within_%d;\n    st = rt_device_gemm_with(x, &(rt_gemm){\n", index);
    else if (s->partition)
        host_printf(h, "    st = rt_gemm_parts(x, %s, &(rt_gemm){\n", h->space[s->partition->id]);
    else
        host_printf(h, "    st = rt_gemm_%s(x, &(rt_gemm){\n",
                    h->p->bufs.v[s->bufs[0]]->dt == DT_F32 ? "f32" : "16");
    emit_sizes(h, s);
    h->n_exchanges += s->partition && s->gemm.long_k; /* its sums have a row of the table, too */
    host_puts(h, ",\n");
    if (has_epilogue) {
        emit_epilogue(h, index, s);
        return;
    }
    host_puts(h, "        ");
    emit_operands(h, s);
    host_puts(h, ");\n");
}

/* Writes the launch that zeroes the padding rows behind a batch's rows, if the sizes are rounded:
 * the product of step s sums over these rows, too. */
static void emit_clear(Host *h, const PStep *s) {
    const PClear *c = s->clear;
    if (!h->device || !h->bucketed || !c) return;
    const char *name = c->kernel->name;
    host_printf(h,
                "    if (rt_device_sizes(x)) {\n"
                "        st = rt_device_launch(x, %s_%s, \"%s\",\n"
                "            (void *const[]){",
                name, h->device, name);
    for (int i = 0; i < c->n_bufs; i++) host_printf(h, "buf[B_%s], ", buf_name(h, c->bufs[i]));
    host_puts(h, "rt_device_room(x), rt_device_sizes(x)});\n"
                 "        if (st != GNNC_OK) return st;\n    }\n");
}

/* Writes the number of elements of dimensions from .. to - 1 of type t as a C expression. */
static void emit_axis_product(Host *h, const Type *t, int from, int to) {
    const Expr *e = expr_const(h->a, 1);
    for (int i = from; i < to; i++) e = expr_mul(h->a, e, t->dim[i]->size);
    host_expr(h, e);
}

/* Writes the call that ranks the elements along an axis. The axis is given by the sizes before it,
 * of it, and behind it. */
static void emit_rank(Host *h, const PStep *s) {
    const Type *t = &s->op->in[0]->type; /* the buffer's may be that of a view */
    host_printf(h, "    st = rt_rank_f32(x, buf[B_%s], buf[B_%s], buf[B_%s], ",
                buf_name(h, s->bufs[0]), buf_name(h, s->bufs[1]), buf_name(h, s->bufs[2]));
    emit_axis_product(h, t, 0, s->rank_axis);
    host_puts(h, ", ");
    emit_axis_product(h, t, s->rank_axis, s->rank_axis + 1);
    host_puts(h, ", ");
    emit_axis_product(h, t, s->rank_axis + 1, t->rank);
    host_printf(h, ", %d);\n", (int)(2 * s->op->imm));
}

/* Writes the copy of a buffer to another, of the rows that this process owns if processes share
 * these. */
static void emit_copy(Host *h, const PStep *s) {
    const PBuf *from = h->p->bufs.v[s->bufs[0]];
    host_printf(h, s->partition ? "    rt_copy_own(x, %s, %s, " : "    rt_copy(x, ",
                s->partition ? h->space[s->partition->id] : "", s->partials ? "true" : "false");
    host_printf(h, "buf[B_%s], buf[B_%s], (size_t)", buf_name(h, s->bufs[1]), from->name);
    host_expr(h, from->count);
    host_printf(h, " * %d);\n", dtype_bytes(from->dt));
}

/* Writes the call that prints the values of buffers on the host. */
static void emit_print(Host *h, const PStep *s) {
    host_puts(h, "    st = rt_print(x, ");
    host_string(h, s->text);
    host_printf(h, ", %d, ", s->n_bufs);
    if (s->n_bufs == 0)
        host_puts(h, "NULL");
    else
        host_puts(h, "(const int[]){");
    for (int i = 0; i < s->n_bufs; i++)
        host_printf(h, "%sB_%s", i ? ", " : "", buf_name(h, s->bufs[i]));
    host_puts(h, s->n_bufs ? "});\n" : ");\n");
}

/* Writes the call that stops with the step's message unless the condition in a buffer holds
 * everywhere. */
static void emit_assert(Host *h, const PStep *s) {
    const PBuf *cond = h->p->bufs.v[s->bufs[0]];
    host_puts(h, "    st = rt_assert(x, ");
    host_string(h, s->text);
    host_printf(h, ", buf[B_%s], ", cond->name);
    host_expr(h, cond->count);
    host_puts(h, ");\n");
}

/* Writes the head of a loop. Where a device may record the phase as a graph, which takes a loop
 * with a limit, rt_device_iterates() lets the device read the condition. Else the host reads it
 * before each iteration (rt_iterates), from its own memory or the device's. */
static void emit_loop(Host *h, int index, const PStep *s) {
    if (h->device && (s->recorded || (h->bucketed && s->limit))) {
        host_printf(h, "    for (int64_t i%d = 0; rt_device_iterates(x, i%d, %" PRId64 ", B_%s, ",
                    index, index, s->limit, buf_name(h, s->bufs[0]));
        host_string(h, host_line(h, s));
        host_printf(h, ", &st); i%d++) {\n", index);
        return;
    }
    if (s->limit)
        host_printf(h, "    for (int64_t i%d = 0; i%d < %" PRId64 " && ", index, index, s->limit);
    else
        host_puts(h, "    while (");
    host_printf(h, "rt_iterates(x, B_%s, ", buf_name(h, s->bufs[0]));
    host_string(h, host_line(h, s));
    host_puts(h, ", &st)");
    if (s->limit) host_printf(h, "; i%d++", index);
    host_puts(h, ") {\n");
}

/* Whether the host decides if step s runs. On a device conditions stay there: kernels test them,
 * library calls compute both arms, and the result is selected. */
static bool has_host_condition(const Host *h, const PStep *s) {
    return s->pred >= 0 && s->kind != PS_CALL && (!h->device || plan_step_interrupts(s, true));
}

/* Writes the call that does a step. Returns whether it sets `st`. */
static bool emit_call(Host *h, int index, const PStep *s) {
    switch (s->kind) {
    case PS_KERNEL:
        if (!h->device)
            emit_kernel(h, s);
        else if (s->spmm && s->spmm->index >= 0)
            emit_spmm(h, index, s);
        else
            emit_device_kernel(h, "    ", s);
        return h->device != NULL;
    case PS_COPY:
        emit_copy(h, s);
        return false;
    case PS_GEMM:
        if (h->device && s->group) {
            for (int i = 0; i < s->group->steps.n; i++) emit_clear(h, s->group->steps.v[i]);
            emit_group(h, s->group);
        } else {
            emit_clear(h, s);
            emit_gemm(h, index, s);
        }
        break;
    case PS_RANK:
        emit_rank(h, s);
        break;
    case PS_RELATION:
        host_printf(h, "    st = rt_build_relation(x, %s);\n", h->space[s->space->id]);
        break;
    case PS_CALL:
        host_call(h, index, s);
        break;
    case PS_PRINT:
        emit_print(h, s);
        break;
    case PS_ASSERT:
        emit_assert(h, s);
        break;
    case PS_EXCHANGE:
        host_printf(h, "    st = rt_exchange(x, %d);\n", h->n_exchanges++);
        break;
    case PS_LOOP:
    case PS_END:
        break; /* emit_step()'s */
    }
    return true;
}

/* Finds the steps of a device's phase that steps of other streams wait for. */
static void find_marked(Host *h, const PPhase *ph) {
    h->stream = 0;
    h->marked = NULL;
    if (!h->device || !plan_has_streams(ph)) return;
    h->marked = NEWN(h->a, bool, (size_t)ph->steps.n + 1);
    for (int i = 0; i < ph->steps.n; i++) {
        const PBranch *b = ph->steps.v[i]->branch;
        for (int k = 0; b && k < b->n_after; k++)
            h->marked[plan_step_index(ph, b->after[k])] = true;
    }
}

/* Writes that the device does the step in its stream, behind the steps of others that it needs;
 * nothing where it only comes after the step before it. */
static void emit_stream(Host *h, const PStep *s) {
    const PPhase *ph = h->p->phases.v[h->phase];
    const int stream = s->branch ? s->branch->stream : 0, n = s->branch ? s->branch->n_after : 0;
    if (!h->marked || (stream == h->stream && !n)) return;
    h->stream = stream;
    host_printf(h, "    st = rt_device_stream(x, %d, %d, ", stream, n);
    for (int i = 0; i < n; i++)
        host_printf(h, "%s%d", i ? ", " : "(const int[]){",
                    plan_step_index(ph, s->branch->after[i]));
    host_puts(h, n ? "});\n" : "NULL);\n");
    host_puts(h, "    if (st != GNNC_OK) return st;\n");
}

/* Writes step number `index` of the current phase. A step that another one does on the device is
 * only mentioned in a comment. */
static void emit_step(Host *h, int index, const PStep *s) {
    bool conditional = has_host_condition(h, s);
    const PStep *covering = s->group ? s->group->steps.v[0] : s->covered_by;
    if (h->device && covering && covering != s) {
        host_printf(h, "    /* within %d */\n",
                    plan_step_index(h->p->phases.v[h->phase], covering));
        return;
    }
    if (s->kind == PS_END) {
        host_puts(h, "    }\n    if (st != GNNC_OK) return st;\n");
        return;
    }
    host_printf(h, "    rt_step(x, %d);\n", index);
    if (s->kind == PS_LOOP) {
        emit_loop(h, index, s);
        return;
    }
    if (conditional)
        host_printf(h, "    if (rt_when(x, B_%s, %s, &st)) {\n", buf_name(h, s->pred),
                    s->pred_not ? "false" : "true");
    emit_stream(h, s);
    bool returns_status = emit_call(h, index, s);
    if (conditional) host_puts(h, "    }\n");
    if (returns_status || conditional) host_puts(h, "    if (st != GNNC_OK) return st;\n");
    if (!h->marked || !h->marked[index]) return;
    host_printf(h, "    st = rt_device_mark(x, %d);\n    if (st != GNNC_OK) return st;\n", index);
}

/* Writes loop number `loop` over blocks of rows of the phase: its steps, indented, run on one block
 * after the other. */
static void emit_blocked_steps(Host *h, const PPhase *ph, int loop) {
    const PBlocks *l = &ph->blocks.v[loop];
    int n = 0;
    host_puts(h, "\n    rt_blocks_begin(x, ");
    host_expr(h, l->rows);
    host_puts(h, ", (const int[]){");
    for (int k = h->first_local[loop]; k >= 0; k = h->next_local[k])
        host_printf(h, "%sB_%s", n++ ? ", " : "", buf_name(h, k));
    host_printf(h, "}, %d);\n    while (rt_blocks_next(x)) {\n", n);
    StrBuf outer = h->b;
    h->b = sb_new(h->a);
    for (int i = l->first; i <= l->last; i++) {
        emit_step_comment(h, i, ph->steps.v[i]);
        emit_step(h, i, ph->steps.v[i]);
    }
    const char *body = h->b.s;
    h->b = outer;
    for (bool fresh = true; *body; fresh = *body++ == '\n') {
        if (fresh && *body != '\n') host_puts(h, "    ");
        sb_put(&h->b, body, 1);
    }
    host_puts(h, "    }\n");
}

/* Lists, for each loop over blocks of the phase, the buffers that hold one block at a time:
 * h->first_local and h->next_local are linked lists in the order of buffers. */
static void find_locals(Host *h, const PPhase *ph) {
    h->first_local = NEWN(h->a, int, (size_t)ph->blocks.n + 1);
    h->next_local = NEWN(h->a, int, (size_t)h->p->bufs.n + 1);
    for (int i = 0; i < ph->blocks.n; i++) h->first_local[i] = -1;
    for (int i = h->p->bufs.n - 1; i >= 0; i--) {
        const PBuf *b = h->p->bufs.v[i];
        if (b->kind != PB_TEMP || b->phase != h->phase || b->block < 0) continue;
        h->next_local[i] = h->first_local[b->block];
        h->first_local[b->block] = i;
    }
}

/* Writes the steps of a phase. On the host, steps that run block by block of rows (to stay in the
 * cache) are in loops. */
static void emit_phase_body(Host *h, const PPhase *ph) {
    find_locals(h, ph);
    find_marked(h, ph);
    for (int i = 0, next = 0; i < ph->steps.n; i++) {
        if (!h->device && next < ph->blocks.n && ph->blocks.v[next].first == i) {
            i = ph->blocks.v[next].last;
            emit_blocked_steps(h, ph, next++);
            continue;
        }
        emit_step_comment(h, i, ph->steps.v[i]);
        emit_step(h, i, ph->steps.v[i]);
    }
}

/* Writes a C function for each phase of the plan, for the host or for h->device. Of a program for
 * both it is called twice; the wrappers of C functions, which both use, are written by the first
 * call. */
void host_phases(Host *h) {
    h->n_exchanges = 0;
    find_segment_bounds(h);
    for (int i = 0; i < h->p->phases.n; i++) {
        const PPhase *ph = h->p->phases.v[i];
        h->phase = i;
        h->bucketed = plan_has_buckets(h->a, h->p, ph);
        if (!h->device || !plan_on_host(h->p)) host_call_wrappers(h, ph);
        host_printf(h, "static gnnc_status run_phase_%d%s%s(RtExec *x) { /* ", i,
                    h->device ? "_" : "", h->device ? h->device : "");
        host_comment(h, ph->name);
        host_printf(h, " */\n    void **buf = %s;\n",
                    h->device ? "rt_device_buffers(x)" : "x->buf");
        host_puts(h, "    const int64_t *n = x->n;\n"
                     "    gnnc_status st = GNNC_OK;\n    (void)buf, (void)n;\n");
        emit_phase_body(h, ph);
        host_puts(h, "    return st;\n}\n\n");
    }
}
