#include "passes/threshold.h"

#include <string.h>

#include "runtime/program.h"

static const PassThresholdText table[] = {
#define THRESHOLD(id, pass, name, usual, least, most, what) {pass, name, what, usual, least, most},
#include "passes/thresholds.def"
#undef THRESHOLD
};

/* Name, range and meaning of a threshold. */
const PassThresholdText *pass_threshold_text(PassThreshold t) {
    return &table[t];
}

/* The value of a threshold in this compile. */
int pass_threshold(const Ctx *c, PassThreshold t) {
    return c->thresholds ? c->thresholds[t] : table[t].usual;
}

/* The threshold called "fuse.max-loads"; N_PASS_THRESHOLDS: none. */
PassThreshold pass_threshold_find(const char *name, size_t n) {
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) {
        const PassThresholdText *x = &table[t];
        size_t pass = strlen(x->pass), rest = strlen(x->name);
        if (n == pass + 1 + rest && name[pass] == '.' && memcmp(name, x->pass, pass) == 0 &&
            memcmp(name + pass + 1, x->name, rest) == 0)
            return (PassThreshold)t;
    }
    return N_PASS_THRESHOLDS;
}

/* Prints the thresholds that are not at their default. */
void pass_thresholds_put(StrBuf *b, const Ctx *c) {
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) {
        int is = pass_threshold(c, (PassThreshold)t);
        if (is != table[t].usual) sb_printf(b, " --%s.%s=%d", table[t].pass, table[t].name, is);
    }
}
