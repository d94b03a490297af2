/* Asks memory for a row before its turn:
 *
 *     prefetch z[src[e + 8]] lines 2     =>     prefetch 2 lines from z[src[min(e + 8, last)], 0]
 *     prefetch z[src[e + 16]] tile              .. the lines of the tile's part of that row */
#include "codegen/cpu/cpu.h"

/* The number of cache lines to prefetch. */
static int count_lines(const CgFn *f, const LStmt *s) {
    int bytes = f->tile_width * dtype_bytes(s->buf->dt);
    return s->n_lines ? s->n_lines : (bytes + CPU_LINE - 1) / CPU_LINE;
}

/* Emits the prefetch, for reading, of the cache line at address `at`. */
static void emit_prefetch_line(CgFn *f, LLVMValueRef at) {
    Cg *g = f->g;
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0), near = LLVMConstInt(g->i32, 3, 0);
    LLVMValueRef arg[4] = {at, zero, near, LLVMConstInt(g->i32, 1, 0)};
    LLVMTypeRef over = g->ptr;
    cpu_call(g, "llvm.prefetch", &over, 1, arg, 4);
}

/* Emits the position of the entry that is prefetched, at most that of the last entry. */
static LLVMValueRef emit_position(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    LLVMValueRef at = f->reg[s->at->id].v;
    LLVMValueRef ahead = LLVMBuildNSWAdd(g->b, at, cpu_i64(g, s->ahead), "");
    LLVMValueRef last = cpu_size(f, s->ptr->dim[0]);
    last = LLVMBuildNSWSub(g->b, last, cpu_i64(g, 1), "");
    LLVMValueRef over = LLVMBuildICmp(g->b, LLVMIntSGT, ahead, last, "");
    return LLVMBuildSelect(g->b, over, last, ahead, "");
}

void cpu_prefetch(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    LLVMValueRef i = cpu_load_at(f, s->ptr, emit_position(f, s));
    i = LLVMBuildIntCast2(g->b, i, g->i64, 1, "");
    for (int k = 1; k < s->buf->rank; k++)
        i = LLVMBuildMul(g->b, i, cpu_size(f, s->buf->dim[k]), "");
    if (!s->n_lines) i = LLVMBuildAdd(g->b, i, f->tile_start, "");
    LLVMTypeRef t = cpu_mem_type(g, s->buf->dt);
    LLVMValueRef row = LLVMBuildGEP2(g->b, t, f->buf[s->buf->id], &i, 1, "");
    for (int k = 0; k < count_lines(f, s); k++) {
        LLVMValueRef at = cpu_i64(g, (int64_t)k * CPU_LINE);
        emit_prefetch_line(f, LLVMBuildGEP2(g->b, g->i8, row, &at, 1, ""));
    }
}
