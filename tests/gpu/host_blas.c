/* See cblas.h; and OpenMP's count of threads, of which there is one. */
#include "cblas.h"

int omp_get_max_threads(void);
void omp_set_num_threads(int n);
int omp_get_max_threads(void) {
    return 1;
}
void omp_set_num_threads(int n) {
    (void)n;
}

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                 float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc) {
    (void)layout;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0, *to = &c[(long)i * ldc + j];
            for (int p = 0; p < k; p++)
                sum += (ta == CblasNoTrans ? a[(long)i * lda + p] : a[(long)p * lda + i]) *
                       (tb == CblasNoTrans ? b[(long)p * ldb + j] : b[(long)j * ldb + p]);
            *to = alpha * sum + (beta != 0 ? beta * *to : 0);
        }
}
