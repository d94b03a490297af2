/* What a program is, for who has no data yet: its recipe, and the tables and columns that it reads.
 * Spaces of kinds that data hold, in the program's order, are its tables.  And what kinds and
 * elements of columns are called. */
#include "runtime/contract.h"
#include "runtime/data/column.h"
#include "runtime/exec/exec.h"

/* NULL: it is none of ours. */
static const rt_program *tables_of(const gnnc_program *program) {
    return program && program->version == RT_PROGRAM_VERSION ? program->tables : NULL;
}

/* ---- the program -------------------------------------------------------------------------- */
gnnc_status gnnc_program_describe(const gnnc_program *program, gnnc_program_info *out) {
    const rt_program *p = tables_of(program);
    if (!p || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_program_info, out, embeds);
    if (st != GNNC_OK) return st;
    gnnc_program_info own = {.name = p->name,
                             .model = p->recipe.model_name ? p->recipe.model_name : p->name,
                             .source = p->source,
                             .compiler = p->compiler,
                             .options = p->options,
                             .fingerprint = p->fingerprint,
                             .has_recipe = p->recipe.present,
                             .trains = rt_phase_of(p, RT_PHASE_TRAIN) != NULL,
                             .evaluates = rt_phase_of(p, RT_PHASE_EVAL) != NULL,
                             .predicts = rt_phase_of(p, RT_PHASE_PREDICT) != NULL,
                             .embeds = rt_phase_of(p, RT_PHASE_EMBED) != NULL,
                             .shares_rows = p->by_parts};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* ---- the recipe ----------------------------------------------------------------------------- */
/* What a batch consists of, in a word; NULL: steps see the whole graph. */
static const char *batch_of(const rt_sampling *s) {
    if (!s->batch) return NULL;
    return s->train_links == RT_LINKS_PAIRS     ? "links"
           : s->train_links == RT_LINKS_QUERIES ? "queries"
                                                : rt_seeds_words.word[s->seeds];
}

/* Describes the schedule; what has no meaning with this one is 0. */
static void describe_schedule(const rt_recipe *r, gnnc_recipe *own) {
    bool steps = r->sched == RT_SCHED_STEP, waits = r->sched == RT_SCHED_PLATEAU;
    own->schedule = rt_sched_kind_words.word[r->sched];
    own->warmup_epochs = r->warmup_epochs;
    if (steps) own->step_epochs = r->step_epochs;
    if (waits) own->patience = r->patience;
    if (steps || waits) own->gamma = r->gamma;
    if (r->sched > RT_SCHED_STEP) own->min_lr = r->min_lr;
}

/* How the recipe chooses the epoch that is kept, for the caller's description. */
static void describe_keeping(const rt_recipe *r, gnnc_recipe *own) {
    static const char *const split[] = {"", "train", "val", "test"};
    own->epochs = r->epochs;
    own->early_stop_patience = r->early_stop_patience;
    if (!r->keep_metric) return;
    own->keep_metric = r->keep_metric;
    own->keep_split = split[r->keep_split & 3];
    own->keep_max = r->keep_max;
}

gnnc_status gnnc_program_recipe(const gnnc_program *program, gnnc_recipe *out) {
    const rt_program *p = tables_of(program);
    if (!p || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_recipe, out, negatives);
    if (st != GNNC_OK) return st;
    const rt_recipe *r = &p->recipe;
    const rt_sampling *s = &p->sampling;
    if (!r->present) return GNNC_E_MISSING;
    gnnc_recipe own = {.target = r->target ? r->target : r->learned,
                       .outcome = rt_outcome_words.word[r->outcome],
                       .n_metrics = r->n_metrics,
                       .metrics = r->metrics,
                       .optimizer = rt_optim_kind_words.word[r->optim],
                       .lr = r->lr,
                       .weight_decay = r->weight_decay,
                       .momentum = r->momentum,
                       .nesterov = r->nesterov,
                       .clip_norm = r->clip_norm,
                       .batch = s->batch,
                       .batch_of = batch_of(s),
                       .n_hops = s->n_hops,
                       .n_times = s->n_times,
                       .negatives = s->negatives};
    describe_schedule(r, &own);
    describe_keeping(r, &own);
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* ---- tables and columns -------- */
/* Does a data directory hold it?  A batch's rows are of the data's, and derived relations are
 * made. */
static bool is_table(const rt_space *s) {
    if (s->first) return false;
    return s->kind == RT_SP_NODE || s->kind == RT_SP_GRAPH ||
           (s->kind == RT_SP_EDGE && s->rel == RT_REL_BASE);
}

/* The space of table i, from 0; -1: there is none. */
static int space_of(const rt_program *p, int i) {
    for (int s = 0; s < p->n_spaces; s++)
        if (is_table(&p->spaces[s]) && i-- == 0) return s;
    return -1;
}

int gnnc_program_n_tables(const gnnc_program *program) {
    const rt_program *p = tables_of(program);
    int n = 0;
    for (int s = 0; p && s < p->n_spaces; s++) n += is_table(&p->spaces[s]);
    return n;
}

gnnc_status gnnc_program_table(const gnnc_program *program, int table, gnnc_needed_table *out) {
    const rt_program *p = tables_of(program);
    if (!p || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_needed_table, out, dst_type);
    if (st != GNNC_OK) return st;
    int space = table < 0 ? -1 : space_of(p, table);
    if (space < 0) return GNNC_E_RANGE;
    const rt_space *s = &p->spaces[space];
    bool edges = s->kind == RT_SP_EDGE;
    gnnc_needed_table own = {.name = s->name,
                             .kind = edges                    ? GNNC_EDGES
                                     : s->kind == RT_SP_GRAPH ? GNNC_GRAPHS
                                                              : GNNC_NODES,
                             .src_type = edges ? p->spaces[s->src].name : NULL,
                             .dst_type = edges ? p->spaces[s->dst].name : NULL};
    for (int i = 0; i < p->n_columns; i++) own.n_columns += p->columns[i].space == space;
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* Column i of a space's; NULL: there is none. */
static const rt_column *column_of(const rt_program *p, int space, int i) {
    for (int c = 0; c < p->n_columns && i >= 0; c++)
        if (p->columns[c].space == space && i-- == 0) return &p->columns[c];
    return NULL;
}

gnnc_status gnnc_program_column(const gnnc_program *program, int table, int column,
                                gnnc_needed_column *out) {
    const rt_program *p = tables_of(program);
    if (!p || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_needed_column, out, categories);
    if (st != GNNC_OK) return st;
    int space = table < 0 ? -1 : space_of(p, table);
    const rt_column *c = space < 0 ? NULL : column_of(p, space, column);
    if (!c) return GNNC_E_RANGE;
    gnnc_needed_column own = {.name = c->name,
                              .declared = rt_col_facts[c->kind].said,
                              .kind = (int32_t)c->kind,
                              .is_label = c->is_label,
                              .rank = c->rank,
                              .categories = c->cat >= 0 ? p->spaces[c->cat].name : NULL};
    for (int i = 0; i < c->rank; i++) own.size[i] = p->spaces[c->dim[i]].name;
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */
/* Parameters, then states; NULL: there is no i-th. */
static const rt_var *variable(const rt_program *p, int i) {
    static const rt_var_kind order[] = {RT_VAR_PARAM, RT_VAR_STATE};
    for (int k = 0; k < 2; k++)
        for (int v = 0; v < p->n_vars; v++)
            if (p->vars[v].kind == order[k] && i-- == 0) return &p->vars[v];
    return NULL;
}

int gnnc_program_n_parameters(const gnnc_program *program) {
    const rt_program *p = tables_of(program);
    int n = 0;
    for (int v = 0; p && v < p->n_vars; v++)
        n += p->vars[v].kind == RT_VAR_PARAM || p->vars[v].kind == RT_VAR_STATE;
    return n;
}

const char *gnnc_program_parameter(const gnnc_program *program, int i, int *is_state) {
    const rt_program *p = tables_of(program);
    const rt_var *v = p && i >= 0 ? variable(p, i) : NULL;
    if (v && is_state) *is_state = v->kind == RT_VAR_STATE;
    return v ? v->path : NULL;
}

/* ---- words -------- */
const char *gnnc_kind_text(gnnc_kind kind) {
    return (int)kind >= 0 && (int)kind < rt_col_kind_words.n ? rt_col_kind_words.word[kind] : "";
}

const char *gnnc_element_text(gnnc_element element) {
    static const char *const text[] = {
        [GNNC_DT_F16] = "f16",  [GNNC_DT_F32] = "f32", [GNNC_DT_F64] = "f64",
        [GNNC_DT_I8] = "i8",    [GNNC_DT_I16] = "i16", [GNNC_DT_I32] = "i32",
        [GNNC_DT_I64] = "i64",  [GNNC_DT_U8] = "u8",   [GNNC_DT_U16] = "u16",
        [GNNC_DT_U32] = "u32",  [GNNC_DT_U64] = "u64", [GNNC_DT_BOOL] = "bool",
        [GNNC_DT_BF16] = "bf16"};
    int i = (int)element;
    return i > 0 && i < (int)(sizeof text / sizeof *text) ? text[i] : "";
}
