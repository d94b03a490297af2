/* A YAML file as the tree of the JSON reader, by libyaml: mappings, sequences and scalars, which
 * are texts, or NULL where they are empty or `null`. */
#include <string.h>
#include <yaml.h>

#include "source.h"

enum { MOST_DEPTH = 32, MOST_NODES = 1 << 14 };

typedef struct {
    RtPool *pool;
    const char *name;
    yaml_document_t doc;
    int n; /* nodes so far: one that is referred to often is made as often */
    RtError *err;
} Yaml;

static gnnc_status bad(const Yaml *y, size_t line, const char *what) {
    return rt_fail(y->err, GNNC_E_FORMAT, "%s:%zu: %s", y->name, line + 1, what);
}

static gnnc_status make(Yaml *y, int node, int depth, RtJson **out);

/* Makes the value of a YAML node and adds it to the items of `parent`; *last: its last one. */
static gnnc_status add(Yaml *y, int node, int depth, RtJson *parent, RtJson **last, RtJson **out) {
    gnnc_status st = make(y, node, depth, out);
    if (st != GNNC_OK) return st;
    if (*last)
        (*last)->next = *out;
    else
        parent->first = *out;
    *last = *out;
    parent->n++;
    return GNNC_OK;
}

/* Adds the members of a YAML mapping to the object `to`. A key that is no text, or is repeated,
 * is an error. */
static gnnc_status members(Yaml *y, const yaml_node_t *is, int depth, RtJson *to) {
    RtJson *last = NULL, *item;
    gnnc_status st = GNNC_OK;
    for (yaml_node_pair_t *p = is->data.mapping.pairs.start;
         p < is->data.mapping.pairs.top && st == GNNC_OK; p++) {
        const yaml_node_t *key = yaml_document_get_node(&y->doc, p->key);
        if (!key || key->type != YAML_SCALAR_NODE)
            return bad(y, is->start_mark.line, "a key that is no text");
        const char *text = (const char *)key->data.scalar.value;
        if (rt_json_get(to, text)) return bad(y, key->start_mark.line, "a key is repeated");
        st = add(y, p->value, depth, to, &last, &item);
        if (st != GNNC_OK) return st;
        item->key = rt_pool_strndup(y->pool, text, strlen(text));
        if (!item->key) st = rt_fail_nomem(y->err, y->name);
    }
    return st;
}

/* Makes a JSON value of a YAML node; numbers and bools stay texts. Deep or large documents are
 * refused, as aliases could make them endless. */
static gnnc_status make(Yaml *y, int node, int depth, RtJson **out) {
    const yaml_node_t *is = yaml_document_get_node(&y->doc, node);
    RtJson *last = NULL, *item, *v = *out = RT_NEW(y->pool, RtJson);
    gnnc_status st = GNNC_OK;
    if (!is || !v) return rt_fail_nomem(y->err, y->name);
    if (depth > MOST_DEPTH || ++y->n > MOST_NODES)
        return bad(y, is->start_mark.line, "nested too deeply, or too large");
    v->line = (int)is->start_mark.line + 1;
    if (is->type == YAML_MAPPING_NODE) {
        v->kind = RT_JSON_OBJECT;
        return members(y, is, depth + 1, v);
    }
    if (is->type == YAML_SEQUENCE_NODE) {
        v->kind = RT_JSON_ARRAY;
        for (yaml_node_item_t *i = is->data.sequence.items.start;
             i < is->data.sequence.items.top && st == GNNC_OK; i++)
            st = add(y, *i, depth + 1, v, &last, &item);
        return st;
    }
    const char *s = (const char *)is->data.scalar.value;
    bool plain = is->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool nothing = plain && (!*s || strcmp(s, "~") == 0 || strcmp(s, "null") == 0);
    v->kind = nothing ? RT_JSON_NULL : RT_JSON_STRING;
    v->text = rt_pool_strndup(y->pool, s, strlen(s));
    return v->text ? GNNC_OK : rt_fail_nomem(y->err, y->name);
}

/* Parses a YAML document to a JSON value, which lives in `pool`. */
gnnc_status source_yaml(RtPool *pool, RtBytes text, const char *name, RtJson **out, RtError *err) {
    Yaml y = {.pool = pool, .name = name, .err = err};
    yaml_parser_t p;
    gnnc_status st;
    if (!yaml_parser_initialize(&p)) return rt_fail_nomem(err, name);
    yaml_parser_set_input_string(&p, text.p, text.n);
    if (!yaml_parser_load(&p, &y.doc)) {
        st = bad(&y, p.problem_mark.line, p.problem ? p.problem : "no YAML");
        yaml_parser_delete(&p);
        return st;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&y.doc);
    st = root ? make(&y, 1, 0, out) : bad(&y, 0, "is empty");
    yaml_document_delete(&y.doc);
    yaml_parser_delete(&p);
    return st;
}
