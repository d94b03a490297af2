/* A data directory from values in memory: what the interpreter is given, a compiled
 * program finds on disk (docs/data.md).  Columns that were not given are left out;
 * edge columns are in the order of the edges as loaded. */
#ifndef TESTS_CPU_DATA_H
#define TESTS_CPU_DATA_H

#include "ir/ir.h"

typedef struct CpuData CpuData;

CpuData *cpu_data_new(Ctx *c, const Module *m);
void cpu_data_size(CpuData *d, const Space *s, int64_t n); /* nodes, graphs, open dimensions */
void cpu_data_edges(CpuData *d, const Space *e, int64_t n, const int32_t *src, const int32_t *dst);
void cpu_data_graphs(CpuData *d, const Space *node, const int32_t *graph); /* [N], ascending */
void cpu_data_column(CpuData *d, const Column *col, const double *v);
void cpu_data_csr(CpuData *d, const Column *col, const int64_t *ptr, const int32_t *idx,
                  const double *v);
bool cpu_data_write(CpuData *d, const char *dir); /* false after a diagnostic */

#endif
