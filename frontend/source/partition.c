/* The command line of `gnnc partition`, and what it reports.  Here and not in the compiler's
 * library, as METIS is linked by gnnc alone. */
#include "partition.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "runtime/cli/bytes.h"
#include "runtime/data/csv.h"
#include "runtime/data/number.h"
#include "runtime/partition/partition.h"

static const char usage[] =
    "usage: gnnc partition DIR PARTS -o OUT [options]\n"
    "\n"
    "Writes the data directory DIR with its nodes in another order: those of a part follow each\n"
    "other, parts have as much of everything, and few edges lie between them.\n"
    "\n"
    "  -o OUT           the data directory to write\n"
    "  --method METHOD  metis: the METIS library, in memory; stream: reads the edges from their\n"
    "                   file several times; rows: keeps the order (default: metis if it fits)\n"
    "  --memory BYTES   memory that it may take (K, M, G; default: what is free)\n"
    "  --seed N         random seed of metis (0)\n"
    "  --force          replace the data directory if it exists\n"
    "  --help           or -h: print this\n";

static const char *const methods[] = {
    [RT_PARTITION_METIS] = "metis", [RT_PARTITION_STREAM] = "stream", [RT_PARTITION_ROWS] = "rows"};

typedef struct {
    const char *from, *parts, *to, *method, *memory, *seed;
    bool force, help;
    RtPartitionOptions how;
    const char *work; /* where an unfinished run leaves what it did; NULL: it did nothing */
} Options;

/* ---- the report ----------------------------------------------------------------------------- */
static double share(int64_t n, int64_t of) {
    return of ? 100.0 * (double)n / (double)of : 0;
}

/* Of what there is nothing, no part has more than its share. */
static double over(int64_t most, int64_t all, int n_parts) {
    return all ? (double)most * n_parts / (double)all : 1;
}

/* Prints how many times its share the largest part has: of edges, of each table's rows and of
 * the rows that are learned from. */
static void print_balance(FILE *out, const RtPartition *p) {
    int64_t edges = 0;
    fputs("  most of a part, in shares:", out);
    for (int i = 0; i < p->moves.n_parts; i++)
        if (p->part[i].edges > edges) edges = p->part[i].edges;
    fprintf(out, " edges %.2f", over(edges, p->edges, p->moves.n_parts));
    for (int i = 0; i < p->n_tables; i++) {
        const RtPartTable *t = &p->table[i];
        fprintf(out, ", %s %.2f", t->name, over(t->most, t->rows, p->moves.n_parts));
        if (t->train)
            fprintf(out, " (train %.2f)", over(t->most_train, t->train, p->moves.n_parts));
    }
    fputc('\n', out);
}

/* Prints a line for each part, and how much data a layer exchanges between parts. */
static void print_parts(FILE *out, const RtPartition *p) {
    int64_t in = 0, back = 0;
    fprintf(out, "  %5s %12s %12s %12s %12s %12s\n", "part", "nodes", "edges", "train", "rows in",
            "rows out");
    for (int i = 0; i < p->moves.n_parts; i++) {
        const RtPartStats *f = &p->part[i];
        fprintf(out, "  %5d %12lld %12lld %12lld %12lld %12lld\n", i, (long long)f->nodes,
                (long long)f->edges, (long long)f->train, (long long)f->in, (long long)f->out);
        in += f->in;
        back += f->out;
    }
    fprintf(
        out,
        "  rows in: of other parts, that edges come from; rows out: that they go to\n"
        "  a layer of 64 f32 numbers a row needs %.2f MB of other parts, its gradient %.2f MB\n",
        (double)in * 256e-6, (double)back * 256e-6);
}

/* Prints how a data directory was partitioned. */
static void print_report(FILE *out, const Options *o, const RtPartition *p) {
    fprintf(out, "%s: %d parts, by %s%s\n", o->to, p->moves.n_parts, methods[p->by],
            p->resumed ? ", begun by an earlier run" : "");
    fprintf(out, "  cut: %lld of %lld edges, %.2f %% (by chance %.2f %%)\n", (long long)p->cut,
            (long long)p->edges, share(p->cut, p->edges), 100 * p->by_chance);
    print_balance(out, p);
    print_parts(out, p);
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* Partitions the data and writes the moved directory; where the run is ended on the way, the next
 * one goes on. */
static gnnc_status make_parts(Options *o, const RtDataset *d, RtPool *pool, RtPartition *p,
                              RtError *err) {
    RtWork work;
    RtPartitionOptions how = o->how;
    gnnc_status st = rt_work_open(pool, o->to, &work, err);
    if (st != GNNC_OK) return st;
    how.work = &work;
    o->work = work.path;
    st = rt_partition(pool, d, &how, p, err);
    if (st == GNNC_OK) st = rt_dataset_write_moved(d, &p->moves, &work, o->force, err);
    rt_work_close(pool, &work, st);
    return st;
}

/* Reads a data directory and makes one in parts. */
static gnnc_status make(Options *o, RtPool *pool, RtPartition *p, RtError *err) {
    RtDataset *d = NULL;
    bool taken;
    gnnc_status st;
    TRY(st, rt_dataset_place(pool, o->to, &taken, err));
    if (taken && !o->force)
        return rt_fail(err, GNNC_E_IO, "%s: exists already; --force replaces it", o->to);
    TRY(st, rt_dataset_open_mapped(NULL, o->from, &d, err));
    st = make_parts(o, d, pool, p, err);
out:
    rt_dataset_close(d);
    return st;
}

/* Prints what went wrong, and whether what was done is of use. */
static void print_error(FILE *err, const Options *o, gnnc_status st, const RtError *e) {
    fprintf(err, "gnnc partition: error: %s\n", e->text);
    if (st == GNNC_E_IO && o->work && access(o->work, F_OK) == 0)
        fprintf(err, "gnnc partition: the same command goes on with %s\n", o->work);
}

/* Partitions as the options say, with a report to `out`. Returns the exit status. */
static int partition(Options *o, FILE *out, FILE *err) {
    RtPool pool;
    RtError e = {""};
    RtPartition p = {.edges = 0};
    rt_pool_init(&pool, NULL);
    gnnc_status st = make(o, &pool, &p, &e);
    if (st == GNNC_OK)
        print_report(out, o, &p);
    else
        print_error(err, o, st, &e);
    rt_pool_free(&pool);
    return st == GNNC_OK ? 0 : 1;
}

/* ---- the command line ------------------------------------------------------------------------ */
/* Reads an option without a value. False: it is none of them. */
static bool flag(Options *o, const char *arg) {
    if (strcmp(arg, "--force") == 0) return o->force = true;
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) return o->help = true;
    return false;
}

/* Reads the options' values into numbers. NULL, or what is wrong with them. */
static const char *read_words(Options *o) {
    int64_t n = 0;
    if (!o->from) return "which data directory?";
    if (!o->parts || !rt_cell_integer(o->parts, &n)) return "how many parts? gnnc partition DIR 4";
    if (n < 1 || n > RT_PARTS_MOST) return "there may be 1 to 4096 parts";
    if (!o->to || !*o->to) return "where to? -o OUT";
    o->how.n_parts = (int)n;
    for (int m = RT_PARTITION_METIS; o->method && m <= RT_PARTITION_ROWS; m++)
        if (strcmp(o->method, methods[m]) == 0) o->how.by = (RtPartitionMethod)m;
    if (o->method && o->how.by == RT_PARTITION_CHOOSE) return "--method is metis, stream or rows";
    if (o->memory && (!rt_read_bytes(o->memory, &o->how.memory) || !o->how.memory))
        return "--memory is a number of bytes: 64M, 4G";
    n = 0;
    if (o->seed && (!rt_cell_integer(o->seed, &n) || n < 0)) return "--seed is a whole number";
    o->how.seed = (uint64_t)n;
    return NULL;
}

/* Reads the command line of `gnnc partition`. False after a message. */
static bool parse(int argc, char **argv, Options *o, FILE *err) {
    const SourceOption texts[] = {{"-o", &o->to},
                                  {"--method", &o->method},
                                  {"--memory", &o->memory},
                                  {"--seed", &o->seed},
                                  {NULL, NULL}};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        SourceOptionRead read = source_option(texts, argc, argv, &i, "partition", err);
        if (read == OPTION_WRONG) return false;
        if (read == OPTION_READ) continue;
        if (word[0] == '-' && !flag(o, word))
            return fprintf(err, "gnnc partition: unknown option %s\n", word), false;
        if (word[0] != '-' && o->parts)
            return fprintf(err, "gnnc partition: one word too many: %s\n", word), false;
        if (word[0] != '-') *(o->from ? &o->parts : &o->from) = word;
    }
    const char *wrong = o->help ? NULL : read_words(o);
    if (wrong) fprintf(err, "gnnc partition: %s\n", wrong);
    return !wrong;
}

/* The command `gnnc partition`. Returns its exit status. */
int gnnc_partition_main(int argc, char **argv, FILE *out, FILE *err) {
    Options o = {.force = false};
    if (!parse(argc, argv, &o, err)) return fputs(usage, err), 2;
    if (o.help) return fputs(usage, out) >= 0 ? 0 : 1;
    int status = partition(&o, out, err);
    return fflush(out) == 0 ? status : 1;
}
