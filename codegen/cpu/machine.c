/* Which processor: lanes per register and whether it fuses multiply and add.
 * LLVM's C interface cannot be asked, so the names are listed; `native` goes by
 * the features of the machine at hand. */
#include "codegen/cpu/cpu.h"

/* A processor by LLVM's name: f32 per vector register, and whether it fuses multiply and add. */
typedef struct {
    const char *name;
    int lanes;
    bool fma;
} Known;

static const Known known[] = {
    {"x86-64", 4, false},        {"x86-64-v2", 4, false},      {"x86-64-v3", 8, true},
    {"x86-64-v4", 16, true},     {"nehalem", 4, false},        {"westmere", 4, false},
    {"sandybridge", 8, false},   {"ivybridge", 8, false},      {"haswell", 8, true},
    {"broadwell", 8, true},      {"skylake", 8, true},         {"alderlake", 8, true},
    {"raptorlake", 8, true},     {"meteorlake", 8, true},      {"arrowlake", 8, true},
    {"sierraforest", 8, true},   {"skylake-avx512", 16, true}, {"cascadelake", 16, true},
    {"cooperlake", 16, true},    {"icelake-client", 16, true}, {"icelake-server", 16, true},
    {"tigerlake", 16, true},     {"rocketlake", 16, true},     {"sapphirerapids", 16, true},
    {"emeraldrapids", 16, true}, {"graniterapids", 16, true},  {"znver1", 8, true},
    {"znver2", 8, true},         {"znver3", 8, true},          {"znver4", 16, true},
    {"generic", 4, false},       {"neoverse-n1", 4, true},     {"neoverse-n2", 4, true},
    {"neoverse-v1", 4, true},    {"neoverse-v2", 4, true},     {"apple-m1", 4, true},
};

/* Whether the feature `one`, spelled as "+fma", is in LLVM's comma-separated list. */
static bool has_feature(const char *features, const char *one) {
    size_t n = strlen(one);
    for (const char *p = strstr(features, one); p; p = strstr(p + 1, one))
        if ((p == features || p[-1] == ',') && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

/* Half of the vector registers: AVX-512 and ARM have 32, other x86 16. */
static int count_sum_registers(bool arm, int lanes) {
    return arm || lanes == 16 ? 16 : 8;
}

/* Whether LLVM's default target, the machine at hand, is ARM. */
static bool host_is_arm(void) {
    char *host = LLVMGetDefaultTargetTriple();
    bool arm = strncmp(host, "aarch64", 7) == 0 || strncmp(host, "arm64", 5) == 0;
    LLVMDisposeMessage(host);
    return arm;
}

/* Finds the features of the machine at hand. */
static void find_native(CgMachine *out) {
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    size_t n_cpu = strlen(cpu), n_features = strlen(features);
    char *copy = malloc(n_cpu + n_features + 2);
    bool arm = host_is_arm();
    if (copy) {
        memcpy(copy, cpu, n_cpu + 1);
        memcpy(copy + n_cpu + 1, features, n_features + 1);
    }
    LLVMDisposeMessage(cpu), LLVMDisposeMessage(features);
    out->owned = copy;
    out->cpu = copy ? copy : "generic";
    out->features = copy ? copy + n_cpu + 1 : "";
    bool avx512 =
        has_feature(out->features, "+avx512f") && has_feature(out->features, "+avx512vl") &&
        has_feature(out->features, "+avx512bw") && has_feature(out->features, "+avx512dq");
    out->lanes = avx512 ? 16 : has_feature(out->features, "+avx2") ? 8 : 4;
    out->fma = arm || has_feature(out->features, "+fma");
    out->sum_registers = count_sum_registers(arm, out->lanes);
}

/* Adds an error if the processor is of another architecture than the machine at hand. */
static bool is_other_architecture(Ctx *c, const char *march, bool arm) {
    if (!strcmp(march, "generic") || arm == host_is_arm()) return false;
    diag_add(c, DIAG_E0531, (Span){0},
             "'%s' is %s processor, and this gnnc makes code for %s machines alone", march,
             arm ? "an ARM" : "an x86", arm ? "x86" : "ARM");
    return true;
}

/* Finds the processor that --march names. False after a diagnostic. */
bool cpu_machine_find(Ctx *c, const char *march, CgMachine *out) {
    *out = (CgMachine){0};
    if (!march || !strcmp(march, "native")) {
        find_native(out);
        return true;
    }
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(march, known[i].name)) {
            bool arm = !strncmp(march, "neoverse", 8) || !strncmp(march, "apple", 5);
            if (is_other_architecture(c, march, arm)) return false;
            *out = (CgMachine){.cpu = march,
                               .features = "",
                               .lanes = known[i].lanes,
                               .sum_registers = count_sum_registers(arm, known[i].lanes),
                               .fma = known[i].fma};
            return true;
        }
    diag_add(
        c, DIAG_E0531, (Span){0},
        "'%s' is not a processor known to --march; there are: native, x86-64, "
        "x86-64-v2, x86-64-v3, x86-64-v4, haswell, skylake-avx512, icelake-server, sapphirerapids, "
        "znver2, znver3, znver4, neoverse-n1, and others of their kind",
        march);
    return false;
}
