/* What a compiled model is to the runtime: tables and functions that the generated
 * host driver defines (codegen/host/host.c writes them) and libgnnrt drives.  Everything
 * here is const; all state lives in the RtExec of a trainer.
 *
 * The driver's phase functions call back only what is declared under "services". */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gnnc.h"
#include "gnnc_extern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number in the names of shared libraries, libgnnrt.so.0 and libchurn.so.0: raised with a
 * change of gnnc.h by which a program that was compiled with the older one would not run.  The
 * Makefile and gnnc read it here. */
enum { RT_SO_VERSION = 0 };
enum {
    RT_PROGRAM_VERSION = 45,
    RT_MAX_RANK = 8,
    RT_MAX_VARIANTS = 8,
    RT_GROUP_MAX = 64,
    RT_STREAMS_MAX = 4, /* of a phase on a device */
    RT_MAX_HOPS = 64
};

typedef enum {
#define DTYPE(id, word, bytes, c_name) RT_##id,
#include "contract.def"
} rt_dtype;

/* contract.def says what each value means. */
#define ENUM(type, rt_type) typedef enum {
#define VALUE(id, rt_id, word) rt_id,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    rt_type;
#include "contract.def"

/* An index space.  For nodes, edges, graphs and stored entries `sym` is where its size
 * goes in the size table; dimensions bound by data have one too, others -1. */
typedef struct {
    const char *name;
    rt_space_kind kind;
    int sym;
    int64_t fixed; /* RT_SP_DIM of constant size, else -1 */
    rt_rel_kind rel;
    int src, dst, base[2]; /* spaces; -1 = none */
    int cond_buf;          /* RT_REL_WHERE: buffer u8[base], filled by the load phase before
                              rt_build_relation */
    int col;               /* RT_SP_NZ: its column */
    int graph;             /* RT_SP_NODE: its graph space or -1 */
    bool first;            /* of a batch: the first rows of `whole`, all that is needed where */
    int whole, hops;       /* `hops` layers follow */
    bool once;             /* `first`, NODE: the rows of the data that these are, each once */
    bool untimed;          /* NODE, EDGE of the data: rows are read whatever time they have, though
                              the model does not call them timeless */
    bool drawn;            /* links, which a step brings */
    bool of_batch;         /* only a mini-batch has its size */
    bool sampled;          /* a relation along which a sampled step draws neighbours */
    bool varies;           /* each batch has as many of them as it likes */
    bool in_batches;       /* a phase over batches reads along it, or along what it derives */
    bool unread;           /* EDGE of the data, of a program that serves: none need be there */
    bool numbered;         /* EDGE: a phase over all edges numbers or counts them, in 32 bits */
} rt_space;

typedef struct {
    const char *name;
    rt_col_kind kind;
    int space;            /* node, edge or graph space; edge columns are given in canonical order */
    int rank;             /* without the space itself */
    int dim[RT_MAX_RANK]; /* spaces of the other dimensions (their sizes are bound or checked) */
    int cat, nz;          /* spaces, -1 = none */
    int buf;              /* buffer that must hold it; -1 = not used by any phase */
    bool is_label;        /* nothing but "train" and "eval" reads it: data without it can be
                             predicted on */
} rt_column;

/* Index arrays to provide: i32[from] targets, i64[to+1] segment bounds, i32[from] segment order. */
typedef struct {
    rt_map_kind kind;
    int from, to;                   /* spaces */
    int col, which;                 /* COL, VIA: the column; ORIG: of which base of the relation */
    int idx_buf, ptr_buf, perm_buf; /* -1 = not needed */
    int pair[2], through; /* RT_MAP_PAIR: maps; a column of other rows is read through that
                             map of `from`, -1: none is.  RT_MAP_VIA: pair[0], read through that */
} rt_map;

typedef struct {
    const char *path; /* checkpoint name */
    rt_var_kind kind;
    rt_dtype dt;
    int buf;
    const char *group; /* NULL = default */
    rt_init_kind init;
    double a, b; /* of the initialiser (contract.def) */
    rt_var_role role;
    /* STATE: a step of training makes it `keeps` times itself plus what does not depend on it; 0:
     * something else.  Not `assigned`: no step changes it. */
    bool assigned;
    double keeps;
} rt_var;

/* Symbolic per-variable numbers, for the bound size table n: */
typedef struct {
    int rank;
    int64_t dim[RT_MAX_RANK];       /* checkpoint shape (PyG's) */
    int64_t count, fan_in, fan_out; /* elements; fans as initialisers have them */
    int64_t
        transposed; /* in memory: the transpose of the file's rows of so many elements; 0: as it */
} rt_var_shape;

typedef struct {
    const char *name; /* C identifier, unique */
    rt_buf_kind kind;
    rt_dtype dt;
    const char
        *io_name; /* INPUT, SAVED, OUTPUT: "lr", "loss", "pred", "grad.conv1.lin.weight", .. */
    int space; /* LOGICAL, CUTS: of which space; VAR, INPUT, SAVED, OUTPUT: space of dimension 0, or
                  -1 */
    int stream; /* KEY */
    int map,
        by; /* MAP: targets of a map, in the order of the segments of map `by`; -1 = own order */
    int phase, first,
        last;  /* TEMP: the steps of that phase between which it must exist; OUTPUT, SAVED: phase */
    int rank;  /* INPUT, OUTPUT, SAVED: without bound sizes */
    int block; /* TEMP: local to this one of its phase's `blocks`; -1 = to none */
    rt_output_role role; /* OUTPUT; SAVED: a layer of all rows */
    rt_split split;      /* .. a loss or metric: of its rows; 0 = of the step's */
    const char *of;      /* .. its name among its kind, "accuracy" of "accuracy.val"; or NULL */
    bool in_batches;     /* a phase that runs over batches touches it */
    unsigned whole; /* DATA that batches read, too, and MAP of a column: bit i, phase i reads it of
                       the whole data */
    int hops; /* OUTPUT of a program that serves rows: between them and what they are made of */
    /* Of processes that share rows, each on a device: 1 + the space of whose rows the device has
     * the own ones (or their segments) and those of others that it reads; 0: all.  local: MAP, its
     * numbers are those of rows that are held so (runtime/device/device_held.h). */
    int own;
    bool local;
} rt_buf;

struct RtExec;
struct rt_step_cost;

/* What a step is, for people: profiles, traces, info. */
typedef struct {
    const char *name; /* of the kernel; "gemm", "rank", .. */
    rt_step_kind kind;
    const char *note;  /* "z = contract x, w" */
    const char *lines; /* of model and library: "models/gcn.gnn:14,15 layers/prelude.gnn:5" */
    /* the user's among them, or his calls that led there: "gcn.gnn:13 (in conv1)" */
    const char *site;
} rt_step_info;

/* Steps that the host runs on blocks of rows, one block after the other (blocks.h). */
typedef struct {
    int first, last;
} rt_blocks;

typedef struct {
    const char *name;
    rt_phase_kind kind;
    bool batches; /* each run sees a batch, whose sizes and memory are its own */
    int n_steps;
    gnnc_status (*run)(struct RtExec *x); /* on the host; NULL = not compiled for it */
    gnnc_status (*run_device)(
        struct RtExec *x); /* on rt_program.device; NULL where there is none */
    bool buckets; /* run_device may be recorded for larger sizes than a batch's own, which its
                     kernels find at rt_device_sizes() */
    int n_kernels, n_library_calls; /* per run */
    const rt_step_info *steps;      /* [n_steps], or NULL: nothing is known of them */
    /* With n bound; NULL where `steps` is. */
    void (*cost)(int step, const int64_t *n, struct rt_step_cost *out);
    int n_blocks;
    const rt_blocks *blocks;                        /* in order */
    int64_t (*block_rows)(int i, const int64_t *n); /* rows that blocks[i] cuts; NULL: no blocks */
    /* Where run_device is recorded: streams that its steps are in, 0 or 1: one; bit i: products are
     * made in stream i. */
    int n_streams;
    unsigned product_streams;
    const char *buckets_lack; /* why not `buckets`, "a.gnn:12: .."; NULL: it has, or no batches */
} rt_phase;

/* Defaults from the model's train block; the command line and the C API override some. */
typedef struct {
    bool present;
    int n_metrics;
    const char *const *metrics; /* names as in outputs "<metric>.train" .. */
#define RECIPE(kind, name, word) CONTRACT_##kind name;
#define RECIPE_ENUM(type, rt_type, name, word) rt_type name;
#include "contract.def"
} rt_recipe;

/* How mini-batches are made (sample.h): the recipe's `sample` block. */

typedef struct {
#define SAMPLING(kind, name, word, first, of) CONTRACT_##kind name;
#define SAMPLING_ENUM(type, rt_type, name, word, first, of) rt_type name;
#include "contract.def"
    rt_seeds seeds;
    int n_hops;
    const int32_t *fanout;  /* [n_hops][n_spaces] of those that are sampled; -1 = all */
    int n_weights, n_times; /* columns: of edges; of edges and nodes */
    const int *weights, *times;
    int n_brought; /* columns of links, whose values come with who asks for their scores */
    const int *brought;
    int label, split; /* columns of what is learned; -1 where it is links */
} rt_sampling;

/* Products that a device may make with one call.  It keeps the addresses of its buffers, of all
 * groups in one table: from `first` on those of the n first operands, the n second ones, the n
 * results. */
typedef struct {
    int n, first;    /* n <= RT_GROUP_MAX */
    const int *bufs; /* [3 * n] in this order */
} rt_product_group;

/* A sparse product that the device's library may make: out[r, :] is the sum over entries k of row
 * r, from ptr[r] on, of w[k] * dense[idx[k], :], where w[k] is weight[perm[k]], or weight[k]
 * without perm, or 1 without weight (PSpmm).  Members that name buffers are their numbers, -1 =
 * none. */
typedef struct {
    int phase, step;
    int ptr, idx, perm, weight, dense, out;
    int64_t rows, cols, entries, width; /* width: columns of dense and out */
    bool wanted; /* whatever it moves; else where it moves so much less that it pays */
    int64_t own_bytes, library_bytes; /* that our kernel moves, and that the library does */
} rt_spmm;

/* Rows that processes need of those that others own: which the own rows of `from` reach through
 * index arrays, one after the other. */
enum { RT_REACH_MAX = 4 };
typedef struct {
    int from;                 /* space */
    int n, hop[RT_REACH_MAX]; /* buffers of maps: bounds of segments, or indices */
} rt_reach;

/* A step that brings rows of a buffer that other processes own (exchange.c), or a product that sums
 * such rows. */
typedef struct {
    int buf, space; /* whose rows */
    bool cuts;      /* its rows are those of partial sums, one for each cut of the space's rows */
    bool folds;     /* .. of f32, which are added: all get the sum alone, as the first of them */
    bool to_first;  /* .. none; the first process alone gets all rows */
    bool sampled;   /* with `reach`: of these rows those that are drawn in the step */
    int n;          /* of `reach`; 0 = all rows */
    const rt_reach *reach;
    /* How own rows of the next launch lead to rows of `buf`: those that lead to none of others
     * are computed while the exchange goes on; 0 = it is waited for. */
    int n_beside;
    const rt_reach *beside;
    bool sums; /* the product */
    int phase, step;
} rt_exchange_step;

/* A number of the model that is said when the program runs. */
typedef struct {
    const char *name;          /* "hidden" */
    int sym;                   /* the size that it is; -1: a real number, */
    int buf;                   /* .. which is this input; -1: nothing reads it */
    double first, least, most; /* first: where nobody says another */
    const char *why_least;     /* for people: what does not hold below; NULL = nothing to say */
    const char *why_most;      /* .. above */
} rt_model_option;

typedef struct rt_program {
    const char *name;     /* "gcn" */
    const char *source;   /* "models/gcn.gnn" */
    const char *compiler; /* "gnnc 0.1.0 (cpu, x86-64 ..)" */
    const char *options;  /* "-O2 -D hidden=16 --march=native" */
    bool tf32;            /* on a GPU, products of f32 round their factors, unless told not to */
    uint64_t fingerprint; /* of the IR: a checkpoint records it */
    int n_syms, n_spaces, n_columns, n_maps, n_vars, n_bufs, n_phases, n_streams;
    const char *const *syms;
    const rt_space *spaces;
    const rt_column *columns;
    const rt_map *maps;
    const rt_var *vars;
    const rt_buf *bufs;
    const rt_phase *phases;
    /* With n[n_syms] bound (spaces built later, such as `where`, may still be 0 before the load
     * phase): */
    int64_t (*buf_count)(int buf, const int64_t *n);            /* elements */
    void (*buf_shape)(int buf, const int64_t *n, int64_t *dim); /* rank entries; OUTPUT, SAVED */
    void (*var_shape)(int var, const int64_t *n, rt_var_shape *out);
    rt_recipe recipe;
    rt_sampling sampling; /* of the phase "train" */
    /* Programs that give the same results in other ways, this one first; which is best depends on
     * sizes (variant.c). */
    int n_variants; /* 0 = there is this one only */
    const struct rt_program *const *variants;
    const char *choice; /* what this one decided, for people; NULL = nothing */
    /* The variant that does the same with values in f32, for data whose 16-bit values would fill at
     * most so many bytes there; 0: there is none. */
    int in_f32;
    int64_t in_f32_bytes;
    const struct RtDeviceOps *device; /* whose memory run_device works on; NULL = none */
    /* There: rt_rank_f32 of values, mask, ranks, 16 bytes of work per element, int64_t[4] of outer,
     * len, inner and ties. */
    int (*device_rank)(void *const *arg, const int64_t *n, void *stream);
    /* Rows of columns of the data for a batch: RtGather[] there, int64_t[2] of how many these are
     * and the words they write (cuda/gather_list.h); NULL = no batches of rows. */
    int (*device_gather)(void *const *arg, const int64_t *n, void *stream);
    /* Rows of a batch to where they are among all rows: an RtGather whose `row` is of `to`,
     * int64_t[1] of the words it writes; NULL = no phase needs it. */
    int (*device_scatter)(void *const *arg, const int64_t *n, void *stream);
    /* A batch of neighbours, drawn there: an RtDraw (cuda/sample_list.h); NULL = the host draws. */
    int (*device_sample)(void *const *arg, const int64_t *n, void *stream);
    /* Index arrays of maps, built there: an RtMapsOp and what it reads (cuda/maps_list.h); NULL =
     * the host builds them. */
    int (*device_maps)(void *const *arg, const int64_t *n, void *stream);
    /* What goes around a loop of a recording (cuda/iterate.h); NULL = there is none. */
    int (*device_iterate)(void *const *arg, const int64_t *n, void *stream);
    int (*device_probe)(void *const *arg, const int64_t *n, void *stream); /* 0: it runs there */
    /* What steps of several processes left is added to a sum there (cuda/parts.h); NULL = they
     * share no steps. */
    int (*device_add_parts)(void *const *arg, const int64_t *n, void *stream);
    /* Rows that processes exchange, and their sums, there (cuda/rows_list.h); NULL = they share no
     * rows. */
    int (*device_rows)(void *const *arg, const int64_t *n, void *stream);
    int n_groups; /* of products, on the device */
    const rt_product_group *groups;
    int n_options;
    const rt_model_option *option; /* [n_options] the same in all variants but for sym and buf */
    bool by_parts;                 /* processes may share the rows of data in parts */
    int n_exchanges;
    const rt_exchange_step *exchanges;
    int n_spmms; /* sparse products of its library, with n bound */
    void (*spmm)(int i, const int64_t *n, rt_spmm *s);
    /* There: what the library reads of them (cuda/spmm.h). */
    int (*device_spmm)(void *const *arg, const int64_t *n, void *stream);
} rt_program;

/* What the symbol of a model is, `churn_program`.  Its size never changes: a linker copies it into
 * a program that names it (R_X86_64_COPY), where tables that grew would be cut. */
struct gnnc_program {
    int version;              /* RT_PROGRAM_VERSION; of another one nothing else is looked at */
    const rt_program *tables; /* must outlive what is made of it; this struct need not */
};

/* ---- what a running program sees ------------------------------------------------ */
typedef struct RtExec {
    const rt_program *program;
    int64_t *n; /* [n_syms] sizes */
    void **buf; /* [n_bufs] 64-byte aligned */
    int threads;
    const int64_t *const
        *balance;         /* [n_maps] row bounds of RT_CHUNKS chunks with equal work, or NULL */
    struct RtRuntime *rt; /* the runtime's own side: errors, allocator, counters */
    struct RtProfile *profile; /* NULL: nobody measures */
    int step;                  /* of the phase that runs */
} RtExec;

enum {
    RT_CHUNKS = 192, /* cuts of a balanced parallel loop, by entries: whole numbers of them for the
                      * usual numbers of threads, 3 times powers of 2 among them */
    RT_BALANCE_MAX = 32,     /* maps that one loop is balanced by */
    RT_ROWS_PER_CHUNK = 256, /* plain parallel loops: rows (iterations) per chunk */
};

typedef void rt_kernel(void *const *arg, const int64_t *n, int64_t lo, int64_t hi);

/* ---- services for the generated driver (runtime/exec/exec.c, gemm.c, rank.c) ------------ */
/* A model is linked with libgnnrt.so, too: what it calls is seen there.  In a library that has the
 * runtime inside it is not. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
void rt_profile_step(RtExec *x, int step);
/* Stands before each step of a phase: a store, and a test of a pointer where nobody measures. */
static inline void rt_step(RtExec *x, int step) {
    x->step = step;
    if (x->profile) rt_profile_step(x, step);
}

/* Runs k over [0, extent) in fixed chunks; one OpenMP loop; extent < 0: one serial call.
 * The generated driver calls it once per kernel step. */
void rt_launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t extent);
/* As above over the rows of the maps (one or more, to one space; the first RT_BALANCE_MAX count),
 * in chunks of equal numbers of rows and entries. */
void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int n_maps, const int *map);

/* As rt_launch over chunks of a sum over rows: within blocks, those of the present one. */
void rt_launch_chunks(RtExec *x, rt_kernel *k, void *const *arg, int64_t n_chunks);

/* A loop over blocks of rows: begin, then the steps while there is a next block.  In it, launches
 * and products do the block's rows; the n buffers in `local` hold the block's rows only. */
void rt_blocks_begin(RtExec *x, int64_t rows, const int *local, int n);
bool rt_blocks_next(RtExec *x);

/* Rows that processes share (distributed.c): of those of `space` the own ones.  extent: iterations
 * of the loop over all rows; balanced by n_maps maps, or by rows. */
void rt_launch_own(RtExec *x, int space, rt_kernel *k, void *const *arg, int64_t extent, int n_maps,
                   const int *map);
/* Of the sums over the rows of a space the own ones: k is run over cuts. */
void rt_launch_own_cuts(RtExec *x, int space, rt_kernel *k, void *const *arg);
void rt_copy_own(RtExec *x, int space, bool by_chunks, void *to, const void *from, size_t n_bytes);
/* Brings what others have of the rows of exchange i of the program. */
gnnc_status rt_exchange(RtExec *x, int i);

typedef struct {
    int64_t batch, m, n, k; /* C [m, n] is A [m, k] times B [k, n], `batch` times */
    int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row; /* strides, elements */
    bool long_k; /* k is rows of nodes or edges: the sum is cut into fixed chunks, added in order */
    rt_dtype in, out; /* of A and B, and of C: f32; or 16 bits, and f32 or the same; void: f32 */
} rt_gemm;

/* What one run of a step moves and computes (codegen/cost.h says how it is counted). */
typedef struct rt_step_cost {
    int64_t read, gathered,
        written; /* bytes; `gathered` is the part of `read` at computed places */
    int64_t flops;
    rt_gemm gemm;     /* RT_STEP_GEMM: its sizes, and B's strides where `weight` is; else all 0 */
    int weight;       /* .. the buffer of the variable that B is; -1: it is none */
    int64_t rank_len; /* RT_STEP_RANK: elements ranked together */
} rt_step_cost;
/* See PGemm in codegen/plan/plan.h.  Tiles and the split of a long k depend on sizes only. */
gnnc_status rt_gemm_f32(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c);
/* What a product on a device does at its end, in place of further steps (PEpilogue). */
typedef struct {
    rt_epilogue_kind kind;
    void *side, *out; /* f32 on the device */
} rt_epilogue;
/* rt_gemm_f32 with such an end: C itself need not be made.  *within = false: the device's library
 * cannot do that for these sizes, so C was made and nothing else. */
gnnc_status rt_device_gemm_with(RtExec *x, const rt_gemm *g, const rt_epilogue *e, const float *a,
                                const float *b, float *c, bool *within);
/* The products g[0..n) of a group, with one call where that is worth it and can be done. */
gnnc_status rt_device_gemm_group(RtExec *x, int group, const rt_gemm *g);
/* Sparse product i by the library; *made = false: it does not make that one. */
gnnc_status rt_device_spmm(RtExec *x, int i, bool *made);
/* Products of rows that processes share, part by part: of the own rows, or, with a long k, the sum
 * over all parts by a tree that their number fixes, which all processes get. */
gnnc_status rt_gemm_parts(RtExec *x, int space, const rt_gemm *g, const void *a, const void *b,
                          void *c);
/* Of 16-bit operands, summed in f32 (gemm_16.c); long k: with a result in f32. */
gnnc_status rt_gemm_16(RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c);

/* y = 1-based rank of v among mask != 0 along `len` of an [outer, len, inner] array; 0 elsewhere.
 * Ties have the lowest (ties 0), the mean (1) or the highest (2) of the ranks that they cover. */
gnnc_status rt_rank_f32(RtExec *x, const float *v, const uint8_t *mask, float *y, int64_t outer,
                        int64_t len, int64_t inner, int ties);
gnnc_status rt_build_relation(RtExec *x,
                              int space); /* load phase: after its condition was computed */
/* On a program's device: its buffers, by number, and a kernel's launch function.  `name` is for
 * messages. */
typedef int rt_device_kernel(void *const *arg, const int64_t *n, void *stream);
void **rt_device_buffers(RtExec *x);
/* n[n_syms] of the batch on the device, where x->n is rounded up; NULL: x->n it is. */
void *rt_device_sizes(RtExec *x);
void *rt_device_room(RtExec *x); /* where a kernel may keep something while it runs */
gnnc_status rt_device_launch(RtExec *x, rt_device_kernel *k, const char *name, void *const *arg);
/* Of rows of a space that processes share the own ones, by_chunks: of the chunks of their sums; the
 * last of `arg` is rt_device_own(). */
gnnc_status rt_device_launch_own(RtExec *x, int space, bool by_chunks, rt_device_kernel *k,
                                 const char *name, void *const *arg);
/* rt_gemm_parts() with such an end, of f32 and no long k; where the library cannot do that for a
 * part, kernel k does it for the part's rows. */
gnnc_status rt_device_gemm_parts_with(RtExec *x, int space, const rt_gemm *g, const rt_epilogue *e,
                                      const float *a, const float *b, float *c, rt_device_kernel *k,
                                      const char *name, void *const *arg);
void *rt_device_own(RtExec *x); /* an RtOwnRows (cuda/own_rows.h), set by that launch */
/* Where the device records the phase: what follows is in this stream, behind the n steps `after` of
 * others, each of which rt_device_mark() has marked when it was done.  Else it stays in the one
 * that there is. */
gnnc_status rt_device_stream(RtExec *x, int stream, int n, const int *after);
gnnc_status rt_device_mark(RtExec *x, int step);
void rt_copy(RtExec *x, void *to, const void *from, size_t n_bytes);
/* Does the condition in this buffer hold (or not, as asked)?  *st is set where it cannot be read.
 */
bool rt_when(RtExec *x, int buf, bool holds, gnnc_status *st);
/* The same of a loop that goes on while the condition holds; `line` for messages: "m.gnn:8".  One
 * that does not end after an end was asked for sets *st, too. */
bool rt_iterates(RtExec *x, int buf, const char *line, gnnc_status *st);
/* The same on a device, before iteration 0, 1, .. up to limit. */
bool rt_device_iterates(RtExec *x, int64_t iteration, int64_t limit, int buf, const char *line,
                        gnnc_status *st);
/* A function of the user's: inputs, then results. */
enum { RT_MAX_CALL = 64 };
typedef int rt_extern_fn(gnnc_tensor *t, void *stream);
typedef struct {
    const char *name, *line; /* for messages: "scale", "m.gnn:14" */
    rt_extern_fn *fn;
    int n_in, n_out;
    bool device, host; /* host: the phase stops for it, as a read-back counts it */
    int when;          /* buffer of the condition; -1 = always.  Else results are zeros. */
} rt_extern;
typedef struct {
    int buf;
    rt_dtype dt;
    int rank;
    int64_t size[RT_MAX_RANK];
} rt_arg;
gnnc_status rt_call(RtExec *x, const rt_extern *f, const rt_arg *arg);
/* print and assert reach the host's callback (gnnc_set_message_callback); never stdio. */
gnnc_status rt_print(RtExec *x, const char *text, int n, const int *bufs);
gnnc_status rt_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count);
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
