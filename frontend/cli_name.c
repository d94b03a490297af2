/* What a library and its model may be called: its files are found by a compiler and a linker beside
 * those of the system, and its symbol is a C identifier. */
#include "frontend/cli.h"

#include <ctype.h>
#include <string.h>

static bool is_in(const char *words, const char *s) {
    size_t n = strlen(s);
    for (const char *at = words; (at = strstr(at, s)); at++)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return n != 0;
    return false;
}

/* Of C17, C++20, and those that C23 makes of macros. */
static const char keywords[] =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq";

/* name.h would hide a header of C, or one of POSIX that much includes, from who looks into its
 * directory, .. */
static const char headers[] =
    "assert complex ctype dirent dlfcn errno fcntl features fenv float getopt inttypes iso646 "
    "limits "
    "locale malloc math memory poll pthread regex sched semaphore setjmp signal stdalign stdarg "
    "stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string strings "
    "termios tgmath threads time uchar unistd wchar wctype";
/* .. and libname.so a library that programs are linked with. */
static const char libraries[] = "asan atomic c cblas cublas cudart cusparse dl dnnl gcc gcc_s "
                                "gfortran gomp lapack lsan m metis "
                                "nsl openblas pthread quadmath resolv rt stdc++ tsan ubsan util z";

const char *cli_bad_name(Arena *a, const char *name) {
    bool word = *name && !isdigit((unsigned char)*name);
    for (const char *s = name; word && *s; s++)
        word = isascii((unsigned char)*s) && (isalnum((unsigned char)*s) || *s == '_');
    return !word ? arena_printf(a, "'%s' is not a C identifier, which names the model", name)
           : *name == '_' || is_in(keywords, name)
               ? arena_printf(a, "'%s' belongs to C or C++, and is no name for a model", name)
           : strncmp(name, "gnnc", 4) == 0 || strcmp(name, "rt") == 0 || !strncmp(name, "rt_", 3)
               ? arena_printf(a, "'%s' is no name for a model: gnnc.. and rt_.. are the runtime's",
                              name)
               : NULL;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Plain, so that it means itself to make, shells, pkg-config and CMake. */
const char *cli_bad_base(Arena *a, const char *base) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
    if (!*base || *base == '.' || *base == '-' || *base == '+' || base[strspn(base, plain)])
        return arena_printf(a,
                            "'%s' is no name for the files of a library: -o says DIR/NAME, of "
                            "letters, digits and _ . + -",
                            base);
    if (ends_with(base, ".so") || ends_with(base, ".a") || ends_with(base, ".h"))
        return arena_printf(a,
                            "'%s' is one file, and a library is several: -o churn makes churn.h, "
                            "libchurn.so, libchurn.a, ..",
                            base);
    if (strncmp(base, "gnnc", 4) == 0 || strcmp(base, "gnnrt") == 0)
        return arena_printf(a, "%s.h and lib%s.so are the runtime's: say another -o", base, base);
    if (is_in(headers, base) || is_in(libraries, base))
        return arena_printf(a, "%s.h and lib%s.so would stand for the system's: say another -o",
                            base, base);
    return NULL;
}

CliLibrary cli_library(Arena *a, const CliOptions *o) {
    if (!o->out) return (CliLibrary){"", cli_stem(a, o->files.v[0])};
    const char *slash = strrchr(o->out, '/');
    if (!slash) return (CliLibrary){"", o->out};
    return (CliLibrary){arena_strndup(a, o->out, (size_t)(slash + 1 - o->out)), slash + 1};
}
