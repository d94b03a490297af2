/* The public header as C99 and as C++, and the example of docs/runtime.md. */
#include "test.h"

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
    CHECK(shell("cc -I%s/runtime/include -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "
                "-x c %s%s/runtime/include/gnnc.h",
                "") == 0);
    if (system("command -v c++ >/dev/null 2>&1") != 0) return;
    CHECK(shell("c++ -I%s/runtime/include -Wall -Wextra -Wpedantic -Werror -fsyntax-only "
                "-x c++ %s%s/runtime/include/gnnc.h",
                "") == 0);
}

TEST(documented_example_compiles) {
    find_top();
    CHECK(shell("sed -n '/^```c$/,/^```$/p' %s/docs/runtime.md | grep -v '^```' | cc %s"
                "-I%s/runtime/include -std=c99 -Wall -Wextra -Werror -fsyntax-only -x c -",
                "") == 0);
}

TEST_MAIN()
