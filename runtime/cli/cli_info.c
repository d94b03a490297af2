/* info: what the program is, and what it needs on given data before anything runs. */
#include "cli.h"
#include "cli_options.h"

#include <string.h>

/* Prints parameters and state with their shapes. */
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
static const char *kind(int32_t k) {
    return gnnc_kind_text((gnnc_kind)k);
}

static const char *element(int32_t e) {
    return gnnc_element_text((gnnc_element)e);
}

/* Prints the loaded columns: kind and type on disk and in memory. */
static void print_columns(const RtCli *c) {
    gnnc_loaded_column k = {.struct_size = sizeof k};
    puts("\nColumns, on disk and in memory");
    for (int i = 0; gnnc_trainer_column_info(c->t, i, &k) == GNNC_OK; i++)
        printf("  %s.%-*s  %-10s %-4s  %-10s %s%s\n", k.table, (int)(24 - strlen(k.table)),
               k.column, kind(k.data_kind), element(k.data_element), kind(k.kind),
               element(k.element), k.is_mapped ? ", mapped" : "");
}

/* Prints what takes memory. */
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

/* Prints the variants of the program with the estimated time of each. */
static void print_variants(const RtCli *c) {
    gnnc_variant_info v = {.struct_size = sizeof v};
    if (gnnc_trainer_n_variants(c->t) < 2) return;
    puts("\nVariants, estimated ms of a step on one thread");
    for (int i = 0; gnnc_trainer_variant_info(c->t, i, &v) == GNNC_OK; i++)
        printf("%s %d %10.2f  %s\n", v.in_use ? "  *" : "   ", i, v.estimate_ms, v.choice);
}

/* Prints how many kernels and library calls each phase has. */
static void print_phases(const RtCli *c) {
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    puts("\nPhases");
    for (int i = 0; gnnc_trainer_phase_info(c->t, i, &ph) == GNNC_OK; i++)
        printf("  %-8s %3d steps: %d kernels, %d library calls\n", ph.name, ph.n_steps,
               ph.n_kernels, ph.n_library_calls);
}

/* Prints bytes and FLOPs of a step. */
static void print_step(const gnnc_step_info *s) {
    printf("  %10.3f %10.3f %10.3f %10.3f  ", 1e-6 * (double)s->read_bytes,
           1e-6 * (double)s->gathered_bytes, 1e-6 * (double)s->written_bytes,
           1e-6 * (double)s->flops);
    rt_cli_print_step(s);
}

/* Prints bytes and FLOPs of all steps. */
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
/* print_memory() as a member of a JSON object. */
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

/* print_columns() as a member of a JSON object. */
static void json_columns(const RtCli *c) {
    gnnc_loaded_column k = {.struct_size = sizeof k};
    fputs(",\"columns\":[", stdout);
    for (int i = 0; gnnc_trainer_column_info(c->t, i, &k) == GNNC_OK; i++) {
        printf("%s{\"space\":", i ? "," : "");
        rt_cli_json_string(k.table);
        fputs(",\"name\":", stdout);
        rt_cli_json_string(k.column);
        printf(",\"disk\":[\"%s\",\"%s\"],\"memory\":[\"%s\",\"%s\"],\"mapped\":%s}",
               kind(k.data_kind), element(k.data_element), kind(k.kind), element(k.element),
               k.is_mapped ? "true" : "false");
    }
    fputs("]", stdout);
}

/* print_steps() as a member of a JSON object. */
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
        rt_cli_json_what(&s, stdout);
        printf(",\"read\":%lld,\"gathered\":%lld,\"written\":%lld,\"flops\":%lld%s}",
               (long long)s.read_bytes, (long long)s.gathered_bytes, (long long)s.written_bytes,
               (long long)s.flops, s.foreseen ? ",\"estimated\":true" : "");
    }
    putchar(']');
}

/* print_phases() as a member of a JSON object. */
static void json_phases(const RtCli *c) {
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    fputs(",\"phases\":[", stdout);
    for (int i = 0; gnnc_trainer_phase_info(c->t, i, &ph) == GNNC_OK; i++) {
        printf("%s{\"name\":", i ? "," : "");
        rt_cli_json_string(ph.name);
        printf(",\"steps\":%d,\"kernels\":%d,\"library_calls\":%d}", ph.n_steps, ph.n_kernels,
               ph.n_library_calls);
    }
    putchar(']');
}

/* ---- what processes send in one run of each phase ----------------------------------------- */
static int processes(const RtCli *c) {
    return c->n_processes < INT32_MAX ? (int)c->n_processes : INT32_MAX;
}

/* Of step i; false: it sends nothing. */
static bool sends(RtCli *c, int i, gnnc_traffic *out, gnnc_step_info *step) {
    *out = (gnnc_traffic){.struct_size = sizeof *out};
    *step = (gnnc_step_info){.struct_size = sizeof *step};
    return gnnc_trainer_step_traffic(c->t, i, processes(c), out) == GNNC_OK && out->messages &&
           gnnc_trainer_step_info(c->t, i, step) == GNNC_OK;
}

/* Prints what each exchange sends between processes. */
static void print_sent(RtCli *c) {
    gnnc_traffic s;
    gnnc_step_info step;
    printf("\nSent between %lld processes%s\n  %13s %13s  %8s\n", (long long)c->n_processes,
           rt_cli_option_int(c, "reduce_fast") ? ", sums by a library counted as the least" : "",
           "bytes", "at least", "messages");
    for (int i = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        if (!sends(c, i, &s, &step)) continue;
        printf("  %13lld %13lld  %8lld  @%s ", (long long)s.bytes, (long long)s.least_bytes,
               (long long)s.messages, step.phase);
        rt_cli_print_step(&step);
    }
}

/* false: the trainer says why not. */
static bool print_traffic(RtCli *c) {
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    gnnc_traffic s = {.struct_size = sizeof s};
    if (!c->n_processes) return true;
    if (gnnc_trainer_step_traffic(c->t, 0, processes(c), &s) != GNNC_OK) return false;
    print_sent(c);
    printf(
        "\nBetween %lld processes, in one run     bytes  messages        halo      to all        "
        "sums    at least\n",
        (long long)c->n_processes);
    for (int i = 0; gnnc_trainer_phase_info(c->t, i, &ph) == GNNC_OK; i++) {
        s = (gnnc_traffic){.struct_size = sizeof s};
        if (gnnc_trainer_traffic(c->t, ph.name, processes(c), &s) != GNNC_OK) return false;
        printf("  %-26s %15lld %9lld %11lld %11lld %11lld %11lld\n", ph.name, (long long)s.bytes,
               (long long)s.messages, (long long)s.halo_bytes, (long long)s.whole_bytes,
               (long long)s.sum_bytes, (long long)s.least_bytes);
    }
    return true;
}

/* Prints bytes and messages as members of a JSON object. */
static void json_counts(const gnnc_traffic *s) {
    printf("\"bytes\":%lld,\"at_least\":%lld,\"messages\":%lld,\"halo\":%lld,\"to_all\":%lld,"
           "\"sums\":%lld",
           (long long)s->bytes, (long long)s->least_bytes, (long long)s->messages,
           (long long)s->halo_bytes, (long long)s->whole_bytes, (long long)s->sum_bytes);
}

/* Prints what is sent between processes, by phase and by exchange, as a member of a JSON object. */
static void json_traffic(RtCli *c) {
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    gnnc_traffic s = {.struct_size = sizeof s};
    gnnc_step_info step;
    if (!c->n_processes) return;
    printf(",\"traffic\":{\"processes\":%lld,\"phases\":[", (long long)c->n_processes);
    for (int i = 0; gnnc_trainer_phase_info(c->t, i, &ph) == GNNC_OK; i++) {
        s = (gnnc_traffic){.struct_size = sizeof s};
        gnnc_trainer_traffic(c->t, ph.name, processes(c), &s);
        printf("%s{\"phase\":\"%s\",", i ? "," : "", ph.name);
        json_counts(&s);
        putchar('}');
    }
    fputs("],\"exchanges\":[", stdout);
    for (int i = 0, n = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        if (!sends(c, i, &s, &step)) continue;
        printf("%s{\"step\":%d,\"phase\":\"%s\",", n++ ? "," : "", i, step.phase);
        json_counts(&s);
        fputs(",\"lines\":", stdout);
        rt_cli_json_string(step.lines);
        rt_cli_json_what(&step, stdout);
        putchar('}');
    }
    fputs("]}", stdout);
}

/* What only data tell. */
static void json_of_data(RtCli *c) {
    gnnc_counters n = {.struct_size = sizeof n};
    gnnc_trainer_counters(c->t, &n);
    printf(",\"allocated\":%lld", (long long)n.allocated_bytes);
    json_memory(c);
    json_columns(c);
    json_steps(c);
    json_traffic(c);
}

/* `info --json`. */
static int info_json(RtCli *c) {
    gnnc_traffic s = {.struct_size = sizeof s};
    if (c->data && load(c) != GNNC_OK) return rt_cli_failed(c);
    if (c->data && c->n_processes &&
        gnnc_trainer_step_traffic(c->t, 0, processes(c), &s) != GNNC_OK)
        return rt_cli_failed(c);
    fputs("{\"program\":", stdout);
    rt_cli_json_string(c->is.name);
    printf(",\"fingerprint\":\"%016llx\"", (unsigned long long)c->is.fingerprint);
    json_phases(c);
    if (c->data) json_of_data(c);
    puts("}");
    return RT_EXIT_OK;
}

/* `info`: prints what the program is, and with data its shapes, steps and memory. */
int rt_cli_info(RtCli *c) {
    if (c->json) return info_json(c);
    printf("%s: model %s (%s)\n", c->is.name, c->is.model, c->is.source);
    printf("compiled by %s with %s\nprogram %016llx, libgnnrt %s\n", c->is.compiler, c->is.options,
           (unsigned long long)c->is.fingerprint, gnnc_version());
    rt_cli_print_needs(c, stdout);
    rt_cli_print_recipe(c, stdout);
    rt_cli_print_layers(c, stdout);
    print_phases(c);
    if (!c->data) {
        rt_cli_print_parameters(c, false, "\nParameters: ", stdout);
        rt_cli_print_parameters(c, true, "State: ", stdout);
        puts("\nWith --data DIR: shapes, memory, bytes and FLOPs of every step.");
        return RT_EXIT_OK;
    }
    fflush(stdout);
    gnnc_status st = load(c);
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
    return print_traffic(c) ? RT_EXIT_OK : rt_cli_failed(c);
}
