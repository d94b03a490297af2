/* A wheel, as the Python Packaging Authority's "Binary distribution format" has it (PEP 427): a zip
 * archive (PKWARE APPNOTE 6.3) of a package's files and of what pip reads.  The same files make the
 * same bytes: no time is told. */
#include "frontend/cli/cli.h"
#include "frontend/sha256.h"

#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { LOCAL_SIG = 0x04034b50, CENTRAL_SIG = 0x02014b50, END_SIG = 0x06054b50 };
enum { VERSION = 20, BY_UNIX = 3 << 8, DEFLATED = 8, UTF8 = 1 << 11 };
enum { DAY_ONE = 1 << 5 | 1 }; /* 1980-01-01, the first day there is */

typedef struct {
    StrBuf b, central;
    int n;
} Zip;

/* Writes the n lowest bytes of v, the lowest first. */
static void put_le(StrBuf *b, uint64_t v, int n) {
    for (; n; n--, v >>= 8) {
        char c = (char)(v & 0xff);
        sb_put(b, &c, 1);
    }
}

/* The fields that stand before a file and in the directory. */
static void put_facts(StrBuf *b, const CliWheelFile *f, size_t n_packed) {
    put_le(b, VERSION, 2);
    put_le(b, UTF8, 2);
    put_le(b, DEFLATED, 2);
    put_le(b, 0, 2); /* midnight */
    put_le(b, DAY_ONE, 2);
    put_le(b, crc32_z(0, (const Bytef *)f->text, f->n), 4);
    put_le(b, n_packed, 4);
    put_le(b, f->n, 4);
    put_le(b, strlen(f->name), 2);
    put_le(b, 0, 2); /* no extra field */
}

/* false: zlib has no memory.  The room is taken first: the arena jumps away where it has none. */
static bool deflate_all(Arena *a, const CliWheelFile *f, const char **out, size_t *n) {
    uLong room = deflateBound(NULL, (uLong)f->n);
    char *to = arena_alloc(a, room, 1, 1);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)f->text,
                  .avail_in = (uInt)f->n,
                  .next_out = (Bytef *)to,
                  .avail_out = (uInt)room};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    bool ok = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *out = to;
    *n = z.total_out;
    deflateEnd(&z);
    return ok;
}

/* Adds a file to the archive. False: memory ran out, or it is too large for a plain archive. */
static bool zip_add(Zip *z, const CliWheelFile *f) {
    const char *packed;
    size_t n, at = z->b.n;
    if (f->n > INT32_MAX / 2 || at > INT32_MAX / 2 || !deflate_all(z->b.a, f, &packed, &n))
        return false; /* 32 bits hold every size and place */
    put_le(&z->b, LOCAL_SIG, 4);
    put_facts(&z->b, f, n);
    sb_puts(&z->b, f->name);
    sb_put(&z->b, packed, n);
    put_le(&z->central, CENTRAL_SIG, 4);
    put_le(&z->central, BY_UNIX | VERSION, 2);
    put_facts(&z->central, f, n);
    put_le(&z->central, 0, 6); /* no comment, disk 0, not known to be text */
    put_le(&z->central, (uint64_t)(S_IFREG | f->mode) << 16, 4);
    put_le(&z->central, at, 4);
    sb_puts(&z->central, f->name);
    z->n++;
    return true;
}

/* Writes the directory of the archive behind its files. */
static void zip_end(Zip *z) {
    size_t at = z->b.n;
    sb_put(&z->b, z->central.s, z->central.n);
    put_le(&z->b, END_SIG, 4);
    put_le(&z->b, 0, 4); /* disk 0 */
    put_le(&z->b, (uint64_t)z->n, 2);
    put_le(&z->b, (uint64_t)z->n, 2);
    put_le(&z->b, z->central.n, 4);
    put_le(&z->b, at, 4);
    put_le(&z->b, 0, 2); /* no comment */
}

/* ---- what pip reads -------- */
/* "sha256=" and the hash in base 64 for file names, without padding. */
static const char *hash(Arena *a, const CliWheelFile *f) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t h[SHA256_BYTES + 1] = {0};
    char text[(SHA256_BYTES * 8 + 5) / 6 + 1] = {0};
    cli_sha256(f->text, f->n, h);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        size_t bit = 6 * i;
        unsigned pair = (unsigned)h[bit / 8] << 8 | h[bit / 8 + 1];
        text[i] = digit[pair >> (10 - bit % 8) & 63];
    }
    return arena_printf(a, "sha256=%s", text);
}

typedef VEC(CliWheelFile) WheelFiles;

/* Adds a text file to the wheel's own directory. */
static void add_info(Arena *a, WheelFiles *files, const char *dir, const char *name,
                     const char *text) {
    CliWheelFile f = {arena_printf(a, "%s/%s", dir, name), text, strlen(text), 0644};
    vec_push(a, files, f);
}

/* The text of RECORD: each file with its hash and size. */
static const char *record(Arena *a, const WheelFiles *files, const char *dir) {
    StrBuf b = sb_new(a);
    for (int i = 0; i < files->n; i++)
        sb_printf(&b, "%s,%s,%zu\n", files->v[i].name, hash(a, &files->v[i]), files->v[i].n);
    sb_printf(&b, "%s/RECORD,,\n", dir);
    return b.s;
}

/* Writes a wheel of these files to `path`. False after a diagnostic. */
bool cli_wheel(Ctx *c, const CliWheel *w, const char *path) {
    Arena *a = c->a;
    Zip z = {.b = sb_new(a), .central = sb_new(a)};
    WheelFiles files = {0};
    const char *dir = arena_printf(a, "%s-%s.dist-info", w->distribution, GNNC_VERSION_TEXT);
    for (int i = 0; i < w->n; i++) vec_push(a, &files, w->file[i]);
    add_info(a, &files, dir, "METADATA",
             arena_printf(a,
                          "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\n"
                          "Requires-Python: >=3.9\nRequires-Dist: numpy\n",
                          w->package, GNNC_VERSION_TEXT, w->summary));
    add_info(a, &files, dir, "WHEEL",
             arena_printf(a,
                          "Wheel-Version: 1.0\nGenerator: gnnc %s\nRoot-Is-Purelib: false\n"
                          "Tag: %s\n",
                          GNNC_VERSION_TEXT, w->tag));
    add_info(a, &files, dir, "RECORD", record(a, &files, dir));
    for (int i = 0; i < files.n; i++)
        if (!zip_add(&z, &files.v[i])) {
            diag_add(c, DIAG_E0003, (Span){0}, "cannot pack '%s' into '%s'", files.v[i].name, path);
            return false;
        }
    zip_end(&z);
    return cli_write(c, path, z.b.s, z.b.n);
}
