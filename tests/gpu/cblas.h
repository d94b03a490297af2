/* The bundle needs no BLAS: its programs multiply on the GPU.  What runtime/exec/gemm.c would call
 * on the host is here in plain loops (host_blas.c). */
#ifndef GPU_CBLAS_H
#define GPU_CBLAS_H

typedef enum { CblasRowMajor = 101 } CBLAS_LAYOUT;
typedef enum { CblasNoTrans = 111, CblasTrans = 112 } CBLAS_TRANSPOSE;

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                 float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc);

#endif
