/* info: what the program is, and what it needs on given data before anything runs. */
#include "cli.h"

#include <ctype.h>
#include <string.h>

#include "runtime/bind.h"
#include "runtime/trainer.h"

static void print_shapes(RtCli *c) {
    int64_t all = 0;
    puts("\nParameters and state");
    for (int i = 0; i < gnnc_trainer_n_parameters(c->t); i++) {
        const char *name;
        int rank;
        int64_t dim[GNNC_MAX_RANK], n = 1;
        if (gnnc_trainer_parameter_info(c->t, i, &name, &rank, dim) != GNNC_OK) return;
        printf("  %-32s [", name);
        for (int k = 0; k < rank; k++) {
            printf("%s%lld", k ? ", " : "", (long long)dim[k]);
            n *= dim[k];
        }
        puts("]");
        all += n;
    }
    printf("  %lld numbers\n", (long long)all);
}

/* ---- columns --------------------------------------------------------------------------- */
enum { WORD = 16 };

static const char *lower(const char *name, char *to) {
    int i = 0;
    for (; name[i] && i < WORD - 1; i++) to[i] = (char)tolower((unsigned char)name[i]);
    to[i] = '\0';
    return to;
}

/* The element type that a program has of a column: what kernels read, or what maps are made of. */
static RtDtype kept_type(const rt_program *p, const rt_column *c) {
    static const RtDtype of[] = {
        [RT_F32] = RT_DT_F32, [RT_F64] = RT_DT_F64, [RT_F16] = RT_DT_F16, [RT_BF16] = RT_DT_BF16,
        [RT_I32] = RT_DT_I32, [RT_I64] = RT_DT_I64, [RT_I1] = RT_DT_BOOL};
    if (c->buf >= 0) return of[p->bufs[c->buf].dt];
    return rt_column_kind(c->kind)->element;
}

/* Columns that the program reads, one after the other; false: there are no more. */
typedef struct {
    const rt_column *want;
    const RtColumn *have;
    char disk[WORD], memory[WORD];
    bool mapped;
} Kept;

static bool next_column(const RtCli *c, int *i, Kept *k) {
    for (; *i < c->p->n_columns; ++*i) {
        k->want = &c->p->columns[*i];
        k->have = rt_bind_source(&c->t->x, *i);
        if (!k->have) continue;
        lower(rt_dtype_name(k->have->stored), k->disk);
        lower(rt_dtype_name(kept_type(c->p, k->want)), k->memory);
        k->mapped = k->want->buf >= 0 && rt_bind_is_mapped(&c->t->x, k->want->buf);
        ++*i;
        return true;
    }
    return false;
}

static void print_columns(const RtCli *c) {
    Kept k;
    puts("\nColumns, on disk and in memory");
    for (int i = 0; next_column(c, &i, &k);)
        printf("  %s.%-*s  %-10s %-4s  %-10s %s%s\n", c->p->spaces[k.want->space].name,
               (int)(24 - strlen(c->p->spaces[k.want->space].name)), k.want->name,
               rt_col_kind_name(k.have->kind), k.disk, rt_col_kind_name(k.want->kind), k.memory,
               k.mapped ? ", mapped" : "");
}

static void print_memory(RtCli *c) {
    gnnc_memory m = {.struct_size = sizeof m};
    if (gnnc_trainer_memory(c->t, &m) != GNNC_OK) return;
    const double mib = 1 << 20;
    puts("\nMemory, MiB");
    printf("  columns in mapped files      %10.2f\n", (double)m.data_bytes / mib);
    printf("  index arrays, conversions    %10.2f\n", (double)m.index_bytes / mib);
    printf("  parameters, optimizer, best  %10.2f\n", (double)m.parameter_bytes / mib);
    printf("  saved at load, outputs       %10.2f\n", (double)m.saved_bytes / mib);
    printf("  working memory of a step     %10.2f  (%.2f without sharing)\n",
           (double)m.arena_bytes / mib, (double)m.unpacked_bytes / mib);
    if (m.file_bytes) printf("    of this in a file          %10.2f\n", (double)m.file_bytes / mib);
    printf("  working memory of libraries  %10.2f\n", (double)m.library_bytes / mib);
    if (m.batch_bytes)
        printf("  mini-batches, about          %10.2f\n", (double)m.batch_bytes / mib);
    printf("  more while loading           %10.2f\n", (double)m.loading_bytes / mib);
    printf("  peak, all of it              %10.2f\n", (double)m.all_bytes / mib);
}

static void print_variants(const RtCli *c) {
    const rt_program *p = c->t->first_program;
    if (p->n_variants < 2) return;
    puts("\nVariants, estimated ms of a step on one thread");
    for (int i = 0; i < p->n_variants; i++)
        printf("%s %d %10.2f  %s\n", i == c->t->variant ? "  *" : "   ", i, c->t->estimate_ms[i],
               p->variants[i]->choice);
}

/* The variant that runs, where data have chosen one. */
static const rt_program *running(const RtCli *c) {
    return c->data && c->t->program ? c->t->program : c->p;
}

static void print_phases(const RtCli *c) {
    const rt_program *p = running(c);
    puts("\nPhases");
    for (int i = 0; i < p->n_phases; i++) {
        const rt_phase *ph = &p->phases[i];
        printf("  %-8s %3d steps: %d kernels, %d library calls\n", ph->name, ph->n_steps,
               ph->n_kernels, ph->n_library_calls);
    }
}

static void print_step(const gnnc_step_info *s) {
    printf("  %10.3f %10.3f %10.3f %10.3f  ", 1e-6 * (double)s->read_bytes,
           1e-6 * (double)s->gathered_bytes, 1e-6 * (double)s->written_bytes,
           1e-6 * (double)s->flops);
    rt_cli_print_step(s);
}

static void print_steps(RtCli *c) {
    const char *phase = "";
    printf("\nSteps\n  %10s %10s %10s %10s\n", "MB read", "gathered", "MB written", "MFLOP");
    for (int i = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        gnnc_step_info s = {.struct_size = sizeof s};
        if (gnnc_trainer_step_info(c->t, i, &s) != GNNC_OK) return;
        if (s.phase != phase)
            printf("  @%s%s\n", phase = s.phase, s.foreseen ? ", of a batch as estimated" : "");
        print_step(&s);
    }
}

/* As any other command would: weights tell sizes that data may lack. */
static gnnc_status load(RtCli *c) {
    gnnc_status st = GNNC_OK;
    if (c->weights) st = gnnc_trainer_load_weights(c->t, c->weights);
    return st == GNNC_OK ? gnnc_trainer_load(c->t, c->data) : st;
}

/* ---- JSON ------------------------------------------------------------------------------ */
static void json_memory(RtCli *c) {
    gnnc_memory m = {.struct_size = sizeof m};
    if (gnnc_trainer_memory(c->t, &m) != GNNC_OK) return;
    printf(",\"memory\":{\"data\":%zu,\"index\":%zu,\"parameter\":%zu,\"saved\":%zu", m.data_bytes,
           m.index_bytes, m.parameter_bytes, m.saved_bytes);
    printf(",\"arena\":%zu,\"unpacked\":%zu,\"library\":%zu,\"batches\":%zu,\"loading\":%zu,"
           "\"all\":%zu,\"file\":%zu}",
           m.arena_bytes, m.unpacked_bytes, m.library_bytes, m.batch_bytes, m.loading_bytes,
           m.all_bytes, m.file_bytes);
}

static void json_columns(const RtCli *c) {
    Kept k;
    fputs(",\"columns\":[", stdout);
    for (int i = 0, n = 0; next_column(c, &i, &k); n++) {
        printf("%s{\"space\":", n ? "," : "");
        rt_cli_json_string(c->p->spaces[k.want->space].name);
        fputs(",\"name\":", stdout);
        rt_cli_json_string(k.want->name);
        printf(",\"disk\":[\"%s\",\"%s\"],\"memory\":[\"%s\",\"%s\"],\"mapped\":%s}",
               rt_col_kind_name(k.have->kind), k.disk, rt_col_kind_name(k.want->kind), k.memory,
               k.mapped ? "true" : "false");
    }
    fputs("]", stdout);
}

static void json_steps(RtCli *c) {
    fputs(",\"steps\":[", stdout);
    for (int i = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        gnnc_step_info s = {.struct_size = sizeof s};
        if (gnnc_trainer_step_info(c->t, i, &s) != GNNC_OK) break;
        printf("%s{\"phase\":", i ? "," : "");
        rt_cli_json_string(s.phase);
        fputs(",\"name\":", stdout);
        rt_cli_json_string(s.name);
        fputs(",\"lines\":", stdout);
        rt_cli_json_string(s.lines);
        rt_cli_json_what(&s);
        printf(",\"read\":%lld,\"gathered\":%lld,\"written\":%lld,\"flops\":%lld%s}",
               (long long)s.read_bytes, (long long)s.gathered_bytes, (long long)s.written_bytes,
               (long long)s.flops, s.foreseen ? ",\"estimated\":true" : "");
    }
    putchar(']');
}

static void json_phases(const RtCli *c) {
    const rt_program *p = running(c);
    fputs(",\"phases\":[", stdout);
    for (int i = 0; i < p->n_phases; i++) {
        const rt_phase *ph = &p->phases[i];
        printf("%s{\"name\":", i ? "," : "");
        rt_cli_json_string(ph->name);
        printf(",\"steps\":%d,\"kernels\":%d,\"library_calls\":%d}", ph->n_steps, ph->n_kernels,
               ph->n_library_calls);
    }
    putchar(']');
}

/* What only data tell. */
static void json_of_data(RtCli *c) {
    gnnc_counters n = {.struct_size = sizeof n};
    gnnc_trainer_counters(c->t, &n);
    printf(",\"allocated\":%lld", (long long)n.allocated_bytes);
    json_memory(c);
    json_columns(c);
    json_steps(c);
}

static int info_json(RtCli *c) {
    if (c->data && load(c) != GNNC_OK) return rt_cli_failed(c);
    fputs("{\"program\":", stdout);
    rt_cli_json_string(c->p->name);
    printf(",\"fingerprint\":\"%016llx\"", (unsigned long long)c->p->fingerprint);
    json_phases(c);
    if (c->data) json_of_data(c);
    puts("}");
    return RT_EXIT_OK;
}

int rt_cli_info(RtCli *c) {
    if (c->json) return info_json(c);
    printf("%s: model %s (%s)\n", c->p->name,
           c->p->recipe.model_name ? c->p->recipe.model_name : c->p->name, c->p->source);
    printf("compiled by %s with %s\nprogram %016llx, libgnnrt %s\n", c->p->compiler, c->p->options,
           (unsigned long long)c->p->fingerprint, gnnc_version());
    rt_cli_print_needs(c, stdout);
    rt_cli_print_recipe(c, stdout);
    rt_cli_print_layers(c, stdout);
    print_phases(c);
    if (!c->data) {
        rt_cli_print_vars(c, RT_VAR_PARAM, "\nParameters: ", stdout);
        rt_cli_print_vars(c, RT_VAR_STATE, "State: ", stdout);
        puts("\nWith --data DIR: shapes, memory, bytes and FLOPs of every step.");
        return RT_EXIT_OK;
    }
    fflush(stdout);
    gnnc_status st = load(c);
    if (c->t->program) c->p = c->t->program; /* the variant */
    if (st != GNNC_OK) {
        int code = rt_cli_failed(c);
        if (st == GNNC_E_LIMIT) print_memory(c);
        return code;
    }
    if (c->weights) printf("\nWeights\n  %s fits\n", c->weights);
    print_shapes(c);
    print_columns(c);
    print_steps(c);
    print_variants(c);
    print_memory(c);
    return RT_EXIT_OK;
}
