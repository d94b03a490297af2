/* What the printer and the parser of the IR's text form share: keywords and the
 * fields of the recipe, each listed once. */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "ir/ir.h"

/* Keyword of an enum value, by value; text_find gives -1 for an unknown word. */
typedef struct {
    const char *const *word;
    int n;
} Words;
extern const Words text_reds, text_facts, text_asks; /* text_asks: from ASK_STORE on */
/* text_RelKind, ..: of each enumeration in runtime/contract.def. */
#define END(type, rt_type) extern const Words text_##type;
#include "runtime/contract.def"
int text_find(const Words *w, const char *s, size_t n);
const char *text_list(Arena *a, const Words *w, int first); /* those from there: "max, min" */

typedef enum { RF_TEXT, RF_WORD, RF_REAL, RF_INT, RF_BOOL } RecipeFieldKind;
typedef struct {
    const char *name;
    RecipeFieldKind kind;
    size_t offset; /* in Recipe */
    const Words *words;
} RecipeField;
extern const RecipeField text_recipe[];
extern const int text_n_recipe;

bool text_is_bare_name(const char *s);
bool text_is_bare_path(const char *s);
void ir_map_print(StrBuf *b, const Map *m);       /* "src(cites)" */
void ir_column_print(StrBuf *b, const Column *c); /* "paper.x" */
/* "  !gat.gnn:12:20-29"; nothing of a position that is unknown, or in own_file.  With its site,
 * where it has one: "!layers/gat.gnn:27:5-9<gat.gnn:12". */
void ir_span_print(StrBuf *b, const Ctx *c, uint32_t own_file, bool site, Span at);
/* Names of a function's values, by which text_hint_of() finds their hints again: a hint that is
 * taken gets ".1", ".2", ..; one that would be misread for such a name a dot behind it. */
const char *text_name_for(Arena *a, StrMap *taken, const char *hint);
/* Of a value whose name is not taken yet, nor a number. */
const char *text_hint_of(Arena *a, StrMap *taken, const char *name);
/* Of a list "z,%h" the term that asks for the value: its name, or "z" of "z.1".  NULL: none does.
 */
const char *text_asked(Arena *a, const char *list, const char *name);
/* The first of its terms that is not in `met`; NULL: there is none. */
const char *text_unmet(Arena *a, const char *list, const StrMap *matched);
bool text_is_number(const char *s); /* digits alone */
/* By Op.id: how the text writes the names of f's values, %x or %"x:y"; NULL: it has no result. */
const char **ir_value_names(Arena *a, const Func *f);
/* module_print(), but for positions in own_file alone. */
void module_print_of(StrBuf *b, const Module *m, uint32_t own_file);
void text_real(StrBuf *b, double x); /* shortest text that reads back to the same bits */

#endif
