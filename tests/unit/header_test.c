/* The public header as C99 and as C++, and the example of docs/c-interface.md. */
#include "test.h"

#include <gnnc.h>

static char top[512];

static int shell(const char *fmt, const char *a) {
    char line[1400];
    snprintf(line, sizeof line, fmt, top, a, top);
    return system(line);
}

static void find_top(void) {
    snprintf(top, sizeof top, "%s", __FILE__);
    char *at = strstr(top, "tests/unit");
    if (at == top)
        snprintf(top, sizeof top, ".");
    else if (at)
        at[-1] = '\0';
}

TEST(header_is_c99_and_cxx) {
    find_top();
    static const char *const headers[] = {"gnnc.h", "gnnc_dlpack.h", "gnnc_arrow.h",
                                          "../../frontend/include/gnncc.h"};
    bool cxx = system("command -v c++ >/dev/null 2>&1") == 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char c[64];
        snprintf(c, sizeof c, "-fsyntax-only -include %s", headers[i]);
        CHECK(shell("cc -I%s/runtime/include -std=c99 -Wall -Wextra -Wpedantic -Werror %s "
                    "-x c /dev/null",
                    c) == 0);
        if (cxx)
            CHECK(shell("c++ -I%s/runtime/include -Wall -Wextra -Wpedantic -Werror %s "
                        "-x c++ /dev/null",
                        c) == 0);
    }
}

/* Where a caller of version 0.1 finds the fields of public structures: they grow at the end only.
 */
TEST(fields_of_public_structures_stay_where_they_are) {
    CHECK(offsetof(gnnc_memory, struct_size) == 0 && offsetof(gnnc_memory, batch_bytes) == 88);
    CHECK(offsetof(gnnc_counters, struct_size) == 0 && offsetof(gnnc_counters, eval_ns) == 72);
    CHECK(offsetof(gnnc_step_info, struct_size) == 0 && offsetof(gnnc_step_info, foreseen) == 160);
    CHECK(offsetof(gnnc_pipeline, struct_size) == 0 && offsetof(gnnc_pipeline, step_wait_s) == 40);
    CHECK(offsetof(gnnc_option, struct_size) == 0 && offsetof(gnnc_option, text_default) == 112);
    CHECK(offsetof(gnnc_array, struct_size) == 0 && offsetof(gnnc_array, user) == 168);
    CHECK(offsetof(gnnc_table_info, struct_size) == 0 && offsetof(gnnc_table_info, graphs) == 48);
    CHECK(offsetof(gnnc_column_info, n_splits) == 112);
    CHECK(offsetof(gnnc_values, struct_size) == 0 && offsetof(gnnc_values, n_categories) == 48);
    CHECK(offsetof(gnnc_rows, struct_size) == 0 && offsetof(gnnc_rows, error) == 64);
    CHECK(offsetof(gnnc_metric_info, struct_size) == 0 && offsetof(gnnc_metric_info, value) == 40);
    CHECK(offsetof(gnnc_processes, struct_size) == 0 && offsetof(gnnc_processes, user) == 24);
    CHECK(offsetof(gnnc_baseline, struct_size) == 0 && offsetof(gnnc_baseline, test) == 32);
    CHECK(offsetof(gnnc_encoded, struct_size) == 0 && offsetof(gnnc_encoded, may_lack) == 56);
    CHECK(offsetof(gnnc_cells, struct_size) == 0 && offsetof(gnnc_cells, numbers) == 24);
    CHECK(offsetof(gnnc_raw, struct_size) == 0 && offsetof(gnnc_raw, error) == 48);
    CHECK(offsetof(gnnc_limits, struct_size) == 0 && offsetof(gnnc_limits, flops_per_s) == 16);
}

TEST(documented_example_compiles) {
    find_top();
    CHECK(shell("sed -n '/^```c$/,/^```$/p' %s/docs/c-interface.md | grep -v '^```' | cc %s"
                "-I%s/runtime/include -std=c99 -Wall -Wextra -Werror -fsyntax-only -x c -",
                "") == 0);
}

TEST_MAIN()
