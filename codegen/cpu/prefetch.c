/* Prefetching gathered rows.
 *
 *     for e in segment ptr[v] prefetch 8 {
 *       src = load src[e];  .. load z[src, f] ..      =>    prefetch z[src[e + 8], 0 ..]
 *
 * A row at a computed place is in no cache and on nobody's list: without a hint each entry
 * waits for memory.  Segments lie one behind the other, so the entry some positions on is
 * mostly the next row's, and wanted soon too.  The first lines of a row are asked for; the
 * machine's own prefetcher sees the run and brings the others.  All sixteen lines of a row
 * of 256 floats were slower than four: they crowd the buffers for lines under way. */
#include "codegen/cpu/cpu.h"

enum { LINE = 64, LINES_MAX = 4, ROWS_MAX = 4 };

/* r as (index array)[position], seen through casts; NULL otherwise. */
static const LStmt *index_load(const LStmt *body, const LStmt *loop, const LReg *r) {
    for (const LStmt *s = body; s; s = s->next) {
        if (s->dst != r) continue;
        bool cast = s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_CAST;
        if (cast) return index_load(body, loop, s->arg[0]);
        bool index = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank == 1;
        return index && s->idx[0] == loop->var && !dtype_is_float(s->buf->dt) ? s : NULL;
    }
    return NULL;
}

typedef struct {
    const LBuf *buf;
    const LStmt *index;
} Row;

typedef struct {
    const LStmt *loop;
    Row row[ROWS_MAX];
    int n;
} Rows;

static void add_row(Rows *r, const LBuf *buf, const LStmt *index) {
    for (int i = 0; i < r->n; i++)
        if (r->row[i].buf == buf && r->row[i].index->buf == index->buf) return;
    if (r->n < ROWS_MAX) r->row[r->n++] = (Row){buf, index};
}

static void find_rows(Rows *r, const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR || s->kind == L_IF) find_rows(r, s->body);
        if (s->kind != L_LOAD || s->buf->kind != LB_VALUE || s->buf->rank == 0) continue;
        const LStmt *index = index_load(r->loop->body, r->loop, s->idx[0]);
        if (index) add_row(r, s->buf, index);
    }
}

/* Lines of a row, as far as that is known. */
static int lines_of(const LBuf *b) {
    int64_t bytes = dtype_bytes(b->dt), n;
    for (int i = 1; i < b->rank; i++) {
        if (!expr_is_const(b->dim[i], &n)) return 2;
        bytes *= n;
    }
    int64_t lines = (bytes + LINE - 1) / LINE;
    return (int)(lines < LINES_MAX ? lines : LINES_MAX);
}

static void prefetch_line(CgFn *f, LLVMValueRef at) {
    Cg *g = f->g;
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), near = LLVMConstInt(g->i32, 3, 0);
    LLVMValueRef arg[4] = {at, zero, near, LLVMConstInt(g->i32, 1, 0)};
    LLVMTypeRef over = g->ptr;
    cpu_call(g, "llvm.prefetch", &over, 1, arg, 4);
}

static void prefetch_row(CgFn *f, const Row *r, LLVMValueRef position) {
    Cg *g = f->g;
    LLVMValueRef i = cpu_load_at(f, r->index->buf, position);
    i = LLVMBuildIntCast2(g->b, i, g->i64, 1, "");
    for (int k = 1; k < r->buf->rank; k++)
        i = LLVMBuildMul(g->b, i, cpu_size(f, r->buf->dim[k]), "");
    LLVMTypeRef t = cpu_mem_type(g, r->buf->dt);
    LLVMValueRef row = LLVMBuildGEP2(g->b, t, f->buf[r->buf->id], &i, 1, "");
    for (int k = 0; k < lines_of(r->buf); k++) {
        LLVMValueRef at = cpu_i64(g, (int64_t)k * LINE);
        prefetch_line(f, LLVMBuildGEP2(g->b, g->i8, row, &at, 1, ""));
    }
}

void cpu_prefetch(CgFn *f, const LStmt *s, LLVMValueRef position) {
    Cg *g = f->g;
    Rows r = {.loop = s};
    if (s->sched.prefetch == 0 || g->opt->opt_level == 0) return;
    find_rows(&r, s->body);
    LLVMValueRef ahead = LLVMBuildNSWAdd(g->b, position, cpu_i64(g, s->sched.prefetch), "");
    for (int i = 0; i < r.n; i++) {
        LLVMValueRef last = cpu_size(f, r.row[i].index->buf->dim[0]);
        last = LLVMBuildNSWSub(g->b, last, cpu_i64(g, 1), "");
        LLVMValueRef over = LLVMBuildICmp(g->b, LLVMIntSGT, ahead, last, "");
        prefetch_row(f, &r.row[i], LLVMBuildSelect(g->b, over, last, ahead, ""));
    }
}
