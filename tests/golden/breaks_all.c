/* For breaks_all.gnn, which is not linked: reports need the declarations alone. */
#include <gnnc_extern.h>
int bend(const gnnc_tensor *x, gnnc_tensor *y) {
    return x->rank - y->rank;
}
int bend_grad(const gnnc_tensor *x, const gnnc_tensor *y, const gnnc_tensor *dy, gnnc_tensor *dx) {
    return x->rank + y->rank - dy->rank - dx->rank;
}
int rank_of(const gnnc_tensor *x, gnnc_tensor *y) {
    return x->rank - y->rank;
}
int tell(const gnnc_tensor *x) {
    return x->rank;
}
