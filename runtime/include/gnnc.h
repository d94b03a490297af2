/* gnnc run-time library, public interface.
 *
 * Every call that can fail returns a gnnc_status from the one list below; the
 * library never exits, aborts or prints.  Usable from C99 and C++. */
#ifndef GNNC_H
#define GNNC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text).  Values are part of the ABI: append, never renumber. */
#define GNNC_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(E_NOMEM, -1, "out of memory")                                                                \
    X(E_SHAPE, -2, "tensor shape mismatch")                                                        \
    X(E_RANGE, -3, "value out of range")                                                           \
    X(E_IO, -4, "input or output failed")                                                          \
    X(E_FORMAT, -5, "malformed file")                                                              \
    X(E_DTYPE, -6, "element type mismatch")                                                        \
    X(E_VALUE, -7, "NaN or infinite value")                                                        \
    X(E_MISSING, -8, "no such name")                                                               \
    X(E_ARG, -9, "invalid argument")

typedef enum gnnc_status {
#define GNNC_STATUS(name, value, text) GNNC_##name = value,
    GNNC_STATUS_MAP(GNNC_STATUS)
#undef GNNC_STATUS
} gnnc_status;

/* A short text for a status, never NULL; static, valid for ever. */
const char *gnnc_status_text(gnnc_status status);

#ifdef __cplusplus
}
#endif
#endif
