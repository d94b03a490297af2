/* What a model's Python package says of it: its docstring, and _facts.py, which the support code
 * (runtime/python) reads. */
#include <string.h>

#include "codegen/host/host.h"
#include "ir/text.h"

/* Writes s as a Python string; NULL as None. */
static void put_string(Host *h, const char *s) {
    if (!s) {
        host_puts(h, "None");
        return;
    }
    host_puts(h, "\"");
    for (; *s; s++) {
        if (*s == '\\' || *s == '"') host_puts(h, "\\");
        sb_put(&h->b, s, 1);
    }
    host_puts(h, "\"");
}

/* Writes s as a Python docstring. Quotes are escaped only where another follows, as three would end
 * it. */
static void put_docstring(Host *h, const char *s) {
    host_puts(h, "\"\"\"");
    for (; *s; s++) {
        if (*s == '\\' || (*s == '"' && s[1] == '"')) host_puts(h, "\\");
        sb_put(&h->b, s, 1);
    }
    host_puts(h, "\"\"\"\n");
}

/* A writer with an empty text for plan p. */
static Host new_host(Ctx *c, const Plan *p) {
    return (Host){.c = c, .a = c->a, .p = p, .m = p->m, .b = sb_new(c->a)};
}

/* ---- the docstring --------------------------------------------------------------------------- */
/* Whether the first prediction of the model is a score per edge: sessions have a method of their
 * own for these. */
static bool scores_links(const Plan *p) {
    for (int i = 0; i < p->bufs.n; i++) {
        const PBuf *b = p->bufs.v[i];
        if (b->kind == PB_OUTPUT && b->use.role == OUT_PRED)
            return b->type.rank == 1 && b->type.dim[0]->kind == SP_EDGE;
    }
    return false;
}

/* Writes an example of how the package is used. rows: it can also predict single rows from saved
 * weights. */
static void put_usage(Host *h, const char *package, bool rows) {
    host_printf(h,
                "\n    import %s\n    g = %s.Graph.read(\"data\")\n"
                "    t = %s.Trainer(g, seed=1)\n    t.train(progress=True)\n"
                "    scores = t.predict()\n",
                package, package, package);
    if (rows)
        host_printf(h,
                    "    t.save_weights(\"%s.safetensors\")\n"
                    "    s = %s.Model(\"%s.safetensors\").session(g)\n"
                    "    %s\n",
                    package, package, package,
                    scores_links(h->p) ? "scores = s.predict_links([0, 1], [2, 3])"
                                       : "rows = s.predict([1, 2, 3])");
}

const char *host_python_doc(Ctx *c, const Plan *p, const HostPackage *k) {
    Host h = new_host(c, p), text = new_host(c, p);
    host_title(&text);
    put_usage(&text, k->name, k->rows != NULL);
    const char *predict = !k->rows          ? "Trainer.predict"
                          : scores_links(p) ? "Trainer.predict, Session.predict_links"
                                            : "Trainer.predict, Session.predict";
    host_describe(&text, predict, "Trainer.embed, by that name");
    if (!k->rows) {
        host_puts(&text, "\nThere is no Model and no Session of it: ");
        host_comment(&text, k->no_rows);
        host_puts(&text, ".\n");
    }
    put_docstring(&h, text.b.s); /* ends with a newline */
    return h.b.s;
}

/* ---- _facts.py -------- */
/* Writes the columns of table s as a Python dictionary from name to kind. */
static void put_columns(Host *h, const Space *s) {
    host_puts(h, "{");
    for (int i = 0, n = 0; i < h->m->cols.n; i++) {
        const Column *col = h->m->cols.v[i];
        if (col->space != s) continue;
        host_puts(h, n++ ? ", " : "");
        put_string(h, col->name);
        host_puts(h, ": ");
        put_string(h, text_ColKind.word[col->kind]);
    }
    host_puts(h, "}");
}

/* Writes a Python variable with all tables of a kind: a dictionary from their names to their
 * columns, for edges with the names of the node types that they join. type: the variable's type
 * annotation. */
static void put_tables(Host *h, const char *name, const char *type, HostTable kind) {
    host_printf(h, "%s: %s = {\n", name, type);
    for (int i = 0; i < h->m->spaces.n; i++) {
        const Space *s = h->m->spaces.v[i];
        if (host_table(s) != kind) continue;
        host_puts(h, "    ");
        put_string(h, s->name);
        host_puts(h, ": ");
        if (kind == HOST_EDGES) {
            host_puts(h, "(");
            put_string(h, s->src->name);
            host_puts(h, ", ");
            put_string(h, s->dst->name);
            host_puts(h, ", ");
        }
        put_columns(h, s);
        host_puts(h, kind == HOST_EDGES ? "),\n" : ",\n");
    }
    host_puts(h, "}\n");
}

/* Writes a Python variable with a string as its value, or None. type: its type annotation. */
static void put_constant(Host *h, const char *name, const char *type, const char *value) {
    host_printf(h, "%s: %s = ", name, type);
    put_string(h, value);
    host_puts(h, "\n");
}

const char *host_python_facts(Ctx *c, const Plan *p, const HostPackage *k) {
    static const char columns[] = "Dict[str, Dict[str, str]]";
    Host h = new_host(c, p);
    host_puts(&h, "\"\"\"What the model is to the code beside this file: written by gnnc.\"\"\"\n"
                  "from typing import Dict, Optional, Tuple\n\n");
    put_constant(&h, "MODEL", "str", host_model_name(p));
    put_constant(&h, "LIBRARY", "str", k->library);
    put_constant(&h, "PROGRAM", "str", host_symbol(&h));
    host_puts(&h, "# Of rows by themselves; where there is none, why.\n");
    put_constant(&h, "ROWS_PROGRAM", "Optional[str]", k->rows);
    put_constant(&h, "NO_ROWS", "Optional[str]", k->no_rows);
    host_puts(&h, "# The data: tables with the kinds of their columns; edges from and to which "
                  "nodes.\n");
    put_tables(&h, "NODES", columns, HOST_NODES);
    put_tables(&h, "EDGES", "Dict[str, Tuple[str, str, Dict[str, str]]]", HOST_EDGES);
    put_tables(&h, "GRAPHS", columns, HOST_GRAPHS);
    return h.b.s;
}
