/* Why two values have kernels of their own, in words: for remarks and reports. */
#include "codegen/plan/plan.h"

static const char *const apart_text[UNFUSED_COUNT_] = {
    [UNFUSED_NOT] = "reads it, in the loop of others over the same elements",
    [UNFUSED_GATHER] = "in place it would be computed once per entry",
    [UNFUSED_ENTRY] = "sums it over entries: it has a row for each of them",
    [UNFUSED_VIEW] = "reads it through a view: only values with the same dimensions share rows",
    [UNFUSED_ALL_ROWS] = "reads it in each row: it must be complete",
    [UNFUSED_OTHER_ROW] = "reads it at other rows",
    [UNFUSED_SCALAR] = "makes a scalar: scalars share a launch with neighbours alone",
    [UNFUSED_DIM] = "has no node's or edge's rows: it shares a launch with neighbours alone",
    [UNFUSED_ASSIGNED] = "makes a variable's next value, in a kernel of its own",
    [UNFUSED_CROWDED] = "sums over too many relations for one kernel",
    [UNFUSED_WIDE] = "makes sums with rows too long, or of unknown length, to stand beside others",
    [UNFUSED_RECOMPUTED] = "is computed again where it is needed, which holds less memory",
    [UNFUSED_GUARD] = "is wanted under another condition",
    [UNFUSED_FULL] = "reads it: its kernel has as many results as one may have",
    [UNFUSED_BOTH_ENDS] = "sums over the other end of the same edges: their rows differ in length",
    [UNFUSED_SIBLING] = "also needs other rows of",
    [UNFUSED_LATER] = "also needs",
    [UNFUSED_PRODUCT] = "reads it: a matrix product's result is in memory",
    [UNFUSED_SPARSE] = "reads it: a sparse product that a library may make has a kernel of its own",
    [UNFUSED_SUM] = "reads it when its sums over all rows are complete",
    [UNFUSED_CONCAT] = "reads it: the parts of a concatenation are copied side by side",
    [UNFUSED_CALL] = "reads it: it is made by a call, not in a kernel",
    [UNFUSED_LONG] = "sums it over all rows, in parts of its own",
    [UNFUSED_COPY] = "copies it beside others",
};

/* Why two kernels are not fused, as a text that follows the name of the one that reads the
 * value. */
const char *plan_unfused_text(UnfusedCause why) {
    return apart_text[why];
}

/* What one may set to have them together; none: that reader needs memory. */
static const char *const apart_cure[UNFUSED_COUNT_] = {
    [UNFUSED_FULL] = "--form-kernels.max-roots or --form-kernels.max-ops",
    [UNFUSED_WIDE] = "--fuse.max-row, or --specialize where the data know the width",
    [UNFUSED_RECOMPUTED] = "--disable-pass=remat",
    [UNFUSED_SPARSE] = "--spmm=own",
};

/* The option that would let the two kernels be fused; NULL: there is none. */
const char *plan_unfused_remedy(UnfusedCause why) {
    return apart_cure[why];
}
