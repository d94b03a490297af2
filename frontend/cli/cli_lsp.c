/* gnnc lsp: the language server on standard input and output.  What has arrived is read before the
 * next message is answered, so that a request that was cancelled meanwhile is not done, and several
 * changes in a row are one compile. */
#include "frontend/cli/cli.h"
#include "frontend/editor/lsp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_HEADER = 8192, PIECE = 1 << 16 };
#define MOST_MESSAGE ((size_t)CTX_MAX_SOURCE_BYTES)

typedef struct {
    char *text; /* [n] of cap */
    size_t n, cap;
    size_t done;     /* messages before it have been answered .. */
    size_t foreseen; /* .. and those before this have been looked at */
    bool over;       /* the end of standard input, or an error */
    const char *why;
} Input;

/* A message in the buffer: its body, and how long it is with its header. */
typedef struct {
    const char *body;
    size_t n, whole;
} Frame;

/* Ends the reading of messages, for the reason `why`. Always false. */
static bool refuse(Input *in, const char *why) {
    in->why = why;
    in->over = true;
    return false;
}

/* Sets *n to the length of a message, from its header. False: the header has none that is right. */
static bool header_value(const char *from, const char *end, size_t *n) {
    static const char name[] = "content-length:";
    for (const char *line = from; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        if (len >= sizeof name && strncasecmp(line, name, sizeof name - 1) == 0) {
            const char *s = line + sizeof name - 1;
            while (s < end && *s == ' ') s++;
            size_t digits = strspn(s, "0123456789");
            if (!digits || digits > 10 || (s[digits] != '\r' && s[digits] != '\n')) return false;
            *n = strtoul(s, NULL, 10);
            return true;
        }
        line += len + 1;
    }
    return false;
}

/* Finds the message that begins at `at` in the buffer. False: it is not whole yet, or wrong,
 * which ends the reading. */
static bool find_frame(Input *in, size_t at, Frame *f) {
    const char *from = in->text + at;
    size_t left = in->n - at;
    const char *end = left ? memmem(from, left, "\r\n\r\n", 4) : NULL;
    if (!end && left > MOST_HEADER) return refuse(in, "a message has no header that ends");
    if (!end) return false;
    if (!header_value(from, end + 4, &f->n)) return refuse(in, "a message has no Content-Length");
    if (f->n > MOST_MESSAGE) return refuse(in, "a message is larger than 256 MB");
    f->body = end + 4;
    f->whole = (size_t)(end + 4 - from) + f->n;
    return f->whole <= left;
}

/* Drops the messages that were answered from the buffer, once they are half of it. */
static void drop_done(Input *in) {
    if (!in->done || in->done < in->n - in->done) return;
    memmove(in->text, in->text + in->done, in->n - in->done);
    in->n -= in->done;
    in->foreseen -= in->foreseen < in->done ? in->foreseen : in->done;
    in->done = 0;
}

/* Makes room for the next piece of input. False: memory ran out, which ends the reading. */
static bool make_room(Input *in) {
    drop_done(in);
    if (in->cap - in->n > PIECE) return true; /* and a 0 behind it */
    size_t cap = 2 * in->cap + 2 * PIECE;
    char *wider = realloc(in->text, cap);
    if (!wider) return refuse(in, "out of memory");
    in->text = wider;
    in->cap = cap;
    return true;
}

static bool has_more(void) {
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Reads a piece of standard input; in->over is set at its end. */
static void read_some(Input *in) {
    if (!make_room(in)) return;
    ssize_t n = read(STDIN_FILENO, in->text + in->n, PIECE);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) in->over = true;
    if (n > 0) in->n += (size_t)n;
    in->text[in->n] = 0;
}

/* Looks ahead at the messages that wait for one that cancels a request; at each message once. */
static void foresee_all(Lsp *l, Input *in) {
    Frame f;
    while (find_frame(in, in->foreseen, &f)) {
        if (memmem(f.body, f.n, "cancelRequest", 13)) lsp_foresee(l, f.body, f.n);
        in->foreseen += f.whole;
    }
}

/* Reads and answers messages until the client ends. True: it ended as the protocol says. */
static bool serve(Lsp *l, Input *in) {
    Frame f;
    for (;;) {
        while (!in->over && in->n - in->done < MOST_MESSAGE && has_more()) read_some(in);
        if (in->n > in->done && find_frame(in, in->done, &f)) {
            size_t next = in->done + f.whole;
            if (in->foreseen < next) in->foreseen = next;
            foresee_all(l, in);
            if (!lsp_take(l, f.body, f.n)) return lsp_ended_well(l);
            in->done = next;
            continue;
        }
        if (in->over) return false;
        lsp_idle(l);
        read_some(in);
    }
}

static bool send_out(void *user, const char *text, size_t n) {
    (void)user;
    return cli_write_all(STDOUT_FILENO, text, n);
}

static void *std_alloc(void *user, size_t n) {
    (void)user;
    return malloc(n);
}

static void std_free(void *user, void *block) {
    (void)user;
    free(block);
}

/* The command `gnnc lsp`: a language server on standard input and output. False: it was not told
 * to end. */
bool cli_lsp(Ctx *c, const CliOptions *o) {
    const Allocator from = {.alloc = std_alloc, .release = std_free};
    Input in = {.text = NULL};
    Lsp *l = lsp_new(&from, o, send_out, NULL);
    bool ok = l && serve(l, &in);
    lsp_free(l);
    free(in.text);
    if (in.why) diag_add(c, DIAG_E0002, (Span){0}, "standard input: %s", in.why);
    return ok;
}
