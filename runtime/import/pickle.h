/* A safe reader of Python pickles that hold plain data, NumPy arrays and SciPy
 * CSR matrices.  Nothing is ever called: a class or function is only its name,
 * and an object only its name, arguments and state. */
#ifndef RUNTIME_PICKLE_H
#define RUNTIME_PICKLE_H

#include "runtime/data/csr.h"
#include "runtime/data/npy.h"

typedef enum {
    RT_PY_NONE,
    RT_PY_BOOL,
    RT_PY_INT,
    RT_PY_FLOAT,
    RT_PY_STRING,
    RT_PY_TUPLE,
    RT_PY_LIST,
    RT_PY_DICT,
    RT_PY_GLOBAL,
    RT_PY_OBJECT
} RtPyKind;

typedef struct RtPy RtPy;
struct RtPy {
    RtPyKind kind;
    int64_t i; /* INT, BOOL */
    double f;
    RtBytes s; /* STRING; GLOBAL: "module name" */
    /* TUPLE, LIST; DICT and OBJECT: keys and values in turn, in order of setting */
    int64_t n, cap;
    RtPy **v;
    RtPy *callee, *args, *state; /* OBJECT */
};

/* Protocols 0x80 2 to 5, the opcodes that data need; others are refused. */
gnnc_status rt_pickle_parse(RtPool *pool, RtBytes file, const char *name, RtPy **out, RtError *err);
/* A numpy.ndarray, row-major or column-major. */
gnnc_status rt_pickle_array(RtPool *pool, const RtPy *v, const char *name, RtArray *out,
                            RtError *err);
/* A scipy.sparse.csr_matrix; rows sorted, shapes checked. */
gnnc_status rt_pickle_csr(RtPool *pool, const RtPy *v, const char *name, RtCsr *out, RtError *err);

#endif
