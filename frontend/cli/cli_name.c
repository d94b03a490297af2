/* What a library and its model may be called: its files are found by a compiler and a linker beside
 * those of the system, and its symbol is a C identifier. */
#include "frontend/cli/cli.h"

#include <ctype.h>
#include <string.h>

/* Whether s is one of the words, which are separated by spaces. */
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

/* Whether s is an identifier of C. */
static bool is_word(const char *s) {
    if (!*s || isdigit((unsigned char)*s)) return false;
    while (isascii((unsigned char)*s) && (isalnum((unsigned char)*s) || *s == '_')) s++;
    return !*s;
}

/* Why a model cannot have this name in C; NULL: it can. */
const char *cli_bad_name(Arena *a, const char *name) {
    return !is_word(name)
               ? arena_printf(a, "'%s' is not a C identifier, which names the model", name)
           : *name == '_' || is_in(keywords, name)
               ? arena_printf(a, "'%s' belongs to C or C++, and is no name for a model", name)
           : strncmp(name, "gnnc", 4) == 0 || strcmp(name, "rt") == 0 || !strncmp(name, "rt_", 3)
               ? arena_printf(a, "'%s' is no name for a model: gnnc.. and rt_.. are the runtime's",
                              name)
               : NULL;
}

/* Of Python 3.8 to 3.14, but for those that begin with '_'; and what the package itself imports.  A
 * package of such a name stands for the module, or cannot be imported. */
static const char modules[] =
    "abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit "
    "audioop base64 bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk "
    "cmath cmd code codecs codeop collections colorsys compileall compression concurrent "
    "configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime "
    "dbm decimal difflib dis distutils doctest dummy_threading email encodings ensurepip enum "
    "errno faulthandler fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc "
    "genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http "
    "idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 "
    "linecache locale logging lzma macpath mailbox mailcap marshal math mimetypes mmap "
    "modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers "
    "numpy opcode operator optparse os ossaudiodev parser pathlib pdb pickle pickletools pipes "
    "pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile "
    "pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter "
    "runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr "
    "socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics "
    "string stringprep struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny "
    "tarfile telnetlib tempfile termios test textwrap this threading time timeit tkinter token "
    "tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata "
    "unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib "
    "xml xmlrpc xxlimited xxsubtype zipapp zipfile zipimport zlib zoneinfo";
static const char python_keywords[] =
    "False None True and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise return try while "
    "with yield";

/* Why a Python package cannot have this name; NULL: it can. */
const char *cli_bad_package(Arena *a, const char *base) {
    if (!is_word(base) || *base == '_')
        return arena_printf(a,
                            "'%s' is no name for a Python package: -o says DIR/NAME, of letters, "
                            "digits and _",
                            base);
    if (is_in(python_keywords, base) || is_in(modules, base))
        return arena_printf(a, "'%s' is Python's own: say another -o", base);
    return NULL;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Why the files of a library cannot be named so, NULL: they can. The name must mean itself to
 * make, shells, pkg-config and CMake. */
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

/* The folder and the name of a library's files, as -o says or after the model's file. */
CliLibrary cli_library(Arena *a, const CliOptions *o) {
    if (!o->out) return (CliLibrary){"", cli_stem(a, o->files.v[0])};
    const char *slash = strrchr(o->out, '/');
    if (!slash) return (CliLibrary){"", o->out};
    return (CliLibrary){arena_strndup(a, o->out, (size_t)(slash + 1 - o->out)), slash + 1};
}
