/* The grammar of docs/language.md.  No conflicts; a broken statement or
 * declaration is skipped and the rest still parsed. */
%code requires {
#include "frontend/syntax/ast.h"
typedef struct Parser Parser;
}
%code {
#include "frontend/syntax/parse.h"
#include <string.h>
/* The whole parser stack lives on the C stack: nothing to free when memory runs
 * out in an action. */
#define YYINITDEPTH 3000
#define YYMAXDEPTH 3000
#define YYLLOC_DEFAULT(Cur, Rhs, N)                                              \
    do {                                                                         \
        if (N) (Cur) = span_join(YYRHSLOC(Rhs, 1), YYRHSLOC(Rhs, N));            \
        else (Cur) = (Span){0};                                                  \
    } while (0)
/* At the end of the file bison's own way out must stay: it gives up there. */
#define RECOVER(what)                                                            \
    do {                                                                         \
        if (fe_sync_##what(p, yychar)) yyclearin;                                \
        if (yychar != FE_EOF) yyerrok;                                            \
    } while (0)
#define NODE(k, at, text) ast_new(p->c, AST_##k, (at), (text))
#define ADD(x, kid) ast_add(p->c, (x), (kid))
#define MAKE(k, at, text, ...)                                                   \
    ast_make(p->c, AST_##k, (at), (text), (int)COUNT(((Ast *[]){__VA_ARGS__})),  \
             (Ast *[]){__VA_ARGS__})
#define BIN(o, at, x, y) with_op(MAKE(BINARY, (at), NULL, (x), (y)), OPR_##o)

static Ast *with_op(Ast *t, Operator o) {
    t->op = (int)o;
    return t;
}

static Ast *with_flag(Ast *t, int flag) {
    t->flag |= flag;
    return t;
}

static Ast *with_span(Ast *t, Span at) {
    t->span = at;
    return t;
}

static Ast *with_num(Ast *t, double num) {
    t->num = num;
    return t;
}

/* The children of `from` behind those of `to`. */
static Ast *add_all(Parser *p, Ast *to, Ast *from) {
    for (int i = 0; i < from->n; i++) ast_add(p->c, to, from->kid[i]);
    return to;
}

static void mark_all(Parser *p, const Ast *names, TokenRole role) {
    for (int i = 0; i < names->n; i++) fe_mark(p, names->kid[i]->span, role);
}

static Ast *by_name_only(Ast *formals) {
    for (int i = 0; i < formals->n; i++) formals->kid[i]->flag = 1;
    return formals;
}
}

%define api.pure full
%define api.prefix {fe_}
%define api.location.type {Span}
%define parse.error custom
%locations
%expect 0
%parse-param { Parser *p }
%lex-param { Parser *p }
%union {
    const char *text;
    double num;
    Ast *ast;
}

%token <text> NAME "name" STRING "string" ETYPE "element type"
%token <num> INT "integer" FLOAT "number"
%token SEP "end of statement" SEMI "';'"
%token IMPORT "'import'" CONST "'const'" GRAPH "'graph'" NODE_ "'node'" EDGE "'edge'" MODEL "'model'"
%token TRAIN "'train'" LAYER "'layer'" FN "'fn'" EXTERN "'extern'" PARAM "'param'" STATE "'state'"
%token FOR "'for'" IN "'in'" IF "'if'" ELSE "'else'" WHILE "'while'" RETURN "'return'" AS "'as'"
%token TRUE_ "'true'" FALSE_ "'false'" NONE "'none'" CSR "'csr'"
%token TARGET "'target'" LOSS "'loss'" METRIC "'metric'" OPTIMIZER "'optimizer'" GROUP "'group'"
%token SCHEDULE "'schedule'" CLIP "'clip'" EPOCHS "'epochs'" KEEP "'keep'" STOP "'stop'" SAMPLE "'sample'"
%token <text> HINT "'store' or 'fuse'"
%token ACCUMULATE "'accumulate'" EMA "'ema'"
%token ARROW "'->'" EQ "'=='" NE "'!='" LE "'<='" GE "'>='" POW "'**'" DOTDOT "'..'"
%token WHERE "'where'" AND "'and'" OR "'or'" NOT "'not'"

%right '?' ':'
%left WHERE
%left OR
%left AND
%precedence NOT
%nonassoc EQ NE '<' '>' LE GE
%nonassoc DOTDOT
%left '+' '-'
%left '*' '/' '%' '@'
%precedence NEG
%right POW
%precedence '(' '[' '.'

%type <ast> items item decl members member columns columns1 column opt_columns
%type <ast> formals formal_list formal opt_result type dims dim_list dim opt_minimize extern_attrs
%type <ast> block stmts stmt_list stmt names saved saved_list saved_one opt_else opt_kept opt_timeless
%type <ast> expr args arg_list arg pairs titems titem settings setting exprs paths path keep_words opt_if callee_type
%type <text> any_name keep_word word

%%
file: items                         { p->result = with_span($1, @1); }
    ;
items: %empty                       { $$ = NODE(FILE, span_of(p->file, 1, 1, 1, 1), NULL); }
    | items item                    { $$ = ADD($1, $2); }
    | items SEP
    ;
item: decl
    | error                         { RECOVER(declaration); $$ = NODE(BAD, @1, NULL); }
    ;
decl: IMPORT STRING                 { $$ = NODE(IMPORT, @$, $2); }
    | CONST NAME '=' expr           { fe_mark(p, @2, ROLE_DECLARES); $$ = MAKE(CONST, @$, $2, $4); }
    | GRAPH NAME lbrace members rbrace { fe_mark(p, @2, ROLE_DECLARES); $$ = $4; $$->kind = AST_GRAPH; $$->text = $2; $$->span = @2; }
    | LAYER NAME '(' formals ')' '(' formals ')' opt_result block
                                    { fe_mark(p, @2, ROLE_DECLARES); $$ = MAKE(LAYER, @2, $2, $4, $7, $9, $10); }
    | FN NAME '(' formals ')' opt_result opt_minimize block
                                    { fe_mark(p, @2, ROLE_DECLARES); $$ = MAKE(FN, @2, $2, $4, $6, $8); $$->flag = $7 != NULL; }
    | EXTERN FN NAME '(' formals ')' opt_result extern_attrs
                                    { fe_mark(p, @3, ROLE_DECLARES); $$ = add_all(p, MAKE(EXTERN, @3, $3, $5, $7), $8); }
    | MODEL NAME '(' formals ')' opt_result block
                                    { fe_mark(p, @2, ROLE_DECLARES); $$ = MAKE(MODEL, @2, $2, $4, $6, $7); }
    | TRAIN NAME lbrace titems rbrace { $$ = $4; $$->kind = AST_TRAIN; $$->text = $2; $$->span = @2; }
    ;
opt_minimize: %empty                { $$ = NULL; }
    | NAME                          { fe_mark(p, @1, ROLE_WORD); $$ = NODE(NAME, @1, $1);
                                      if (strcmp($1, "minimize") != 0)
                                          diag_add(p->c, DIAG_E0103, @1, "expected 'minimize' or the body, found '%s'", $1); }
    ;
extern_attrs: %empty                { $$ = NODE(LIST, ((Span){0}), NULL); }
    | extern_attrs NAME             { fe_mark(p, @2, ROLE_WORD); $$ = ADD($1, NODE(NAME, @2, $2)); }
    | extern_attrs STRING           { $$ = ADD($1, NODE(STRING, @2, $2)); }
    ;

/* ---- graphs ---- */
members: %empty                     { $$ = NODE(LIST, ((Span){0}), NULL); }
    | members member                { $$ = ADD($1, $2); }
    | members SEP
    ;
member: NODE_ NAME opt_timeless opt_columns
                                    { fe_mark(p, @2, ROLE_DATA); $$ = $4; $$->kind = AST_NODE_DECL; $$->text = $2; $$->span = @2;
                                      $$->flag = $3 ? DECL_TIMELESS : 0; }
    | EDGE NAME ':' NAME ARROW NAME opt_timeless opt_columns
                                    { fe_mark(p, @2, ROLE_DATA); $$ = MAKE(EDGE_DECL, @2, $2, NODE(NAME, @4, $4), NODE(NAME, @6, $6));
                                      $$->flag = $7 ? DECL_TIMELESS : 0;
                                      add_all(p, $$, $8); $$->span = span_join(@2, @6); }
    | EDGE NAME '=' NAME '(' NAME ')'
                                    { fe_mark(p, @4, ROLE_WORD); fe_mark(p, @2, ROLE_DATA); $$ = MAKE(EDGE_ALIAS, @2, $2, NODE(NAME, @4, $4), NODE(NAME, @6, $6)); $$->span = span_join(@2, @7); }
    | GRAPH lbrace columns rbrace   { $$ = $3; $$->kind = AST_GRAPH_DECL; $$->text = "graph"; $$->span = @1; }
    | error                         { RECOVER(statement); $$ = NODE(BAD, @1, NULL); }
    ;
opt_timeless: %empty                { $$ = NULL; }
    | NAME                          { fe_mark(p, @1, ROLE_WORD); $$ = NODE(NAME, @1, $1);
                                      if (strcmp($1, "timeless") != 0)
                                          diag_add(p->c, DIAG_E0103, @1, "expected 'timeless', the columns or the end of the line, found '%s'", $1); }
    ;
opt_columns: %empty                 { $$ = NODE(LIST, ((Span){0}), NULL); }
    | lbrace columns rbrace         { $$ = $2; }
    ;
columns: %empty                     { $$ = NODE(LIST, ((Span){0}), NULL); }
    | columns1
    | SEP                           { $$ = NODE(LIST, ((Span){0}), NULL); }
    | columns1 SEP
    | SEP columns1                  { $$ = $2; }
    | SEP columns1 SEP              { $$ = $2; }
    ;
columns1: column                    { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | columns1 SEP column           { $$ = ADD($1, $3); }
    ;
column: NAME ':' type               { fe_mark(p, @1, ROLE_DATA); $$ = MAKE(COLUMN, @$, $1, $3); }
    | NAME                          { fe_mark(p, @1, ROLE_DATA); $$ = MAKE(COLUMN, @$, $1, NULL); }
    | error                         { RECOVER(statement); $$ = NODE(BAD, @1, NULL); }
    ;

/* ---- formals and types ---- */
formals: %empty                     { $$ = NODE(LIST, ((Span){0}), NULL); }
    | formal_list
    | SEMI formal_list              { $$ = by_name_only($2); }
    | formal_list SEMI formal_list  { $$ = add_all(p, $1, by_name_only($3)); }
    ;
formal_list: formal                 { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | formal_list ',' formal        { $$ = ADD($1, $3); }
    ;
formal: word                        { fe_mark(p, @1, ROLE_BINDS); $$ = MAKE(FORMAL, @1, $1, NULL, NULL); }
    | word ':' type                 { fe_mark(p, @1, ROLE_BINDS); $$ = MAKE(FORMAL, @$, $1, $3, NULL); }
    | word '=' expr                 { fe_mark(p, @1, ROLE_BINDS); $$ = MAKE(FORMAL, @$, $1, NULL, $3); }
    | word ':' type '=' expr        { fe_mark(p, @1, ROLE_BINDS); $$ = MAKE(FORMAL, @$, $1, $3, $5); }
    | word ':' type '=' expr NAME   { fe_mark(p, @1, ROLE_BINDS); fe_mark(p, @6, ROLE_WORD);
                                      $$ = MAKE(FORMAL, @$, $1, $3, $5, NODE(NAME, @6, $6));
                                      if (strcmp($6, "settable") != 0)
                                          diag_add(p->c, DIAG_E0103, @6, "expected 'settable', ',' or the end of the parameters, found '%s'", $6); }
    ;
word: NAME                          /* these two are keywords only where a declaration stands */
    | EDGE                          { $$ = "edge"; }
    | NODE_                         { $$ = "node"; }
    ;
opt_result: %empty                  { $$ = NULL; }
    | ARROW type                    { $$ = $2; }
    ;
type: callee_type
    | callee_type dims              { $$ = with_flag(with_span(add_all(p, $1, $2), @$), TYPE_DIMS); }
    | CSR ETYPE dims                { $$ = with_flag(with_span(add_all(p, NODE(TYPE, @$, $2), $3), @$), TYPE_CSR | TYPE_DIMS); }
    | NAME                          { $$ = NODE(TYPE, @1, $1); }
    | NAME dims                     { $$ = with_flag(with_span(add_all(p, NODE(TYPE, @$, $1), $2), @$), TYPE_DIMS); }
    | NAME '(' exprs ')'            { $$ = with_flag(with_span(add_all(p, NODE(TYPE, @$, $1), $3), @$), TYPE_ARGS); }
    | EDGE                          { $$ = NODE(TYPE, @1, "edge"); }
    | EDGE '(' NAME ARROW NAME ')'  { $$ = with_flag(MAKE(TYPE, @$, "edge", NODE(NAME, @3, $3), NODE(NAME, @5, $5)), TYPE_ARGS); }
    | NODE_                         { $$ = NODE(TYPE, @1, "node"); }
    | LAYER                         { $$ = NODE(TYPE, @1, "layer"); }
    | LAYER '(' NAME ARROW NAME ')' { $$ = with_flag(MAKE(TYPE, @$, "layer", NODE(NAME, @3, $3), NODE(NAME, @5, $5)), TYPE_ARGS); }
    ;
callee_type: ETYPE                  { $$ = NODE(TYPE, @1, $1); }
    ;
dims: '[' ']'                       { $$ = NODE(LIST, @$, NULL); }
    | '[' dim_list ']'              { $$ = $2; }
    ;
dim_list: dim                       { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | dim_list ',' dim              { $$ = ADD($1, $3); }
    ;
dim: expr
    | DOTDOT                        { $$ = NODE(DOTS, @1, ".."); }
    ;

/* ---- statements ---- */
lbrace: '{'                         { fe_block_open(p); }
    ;
rbrace: '}'                         { fe_block_close(p); }
    ;
block: lbrace stmts rbrace          { $$ = $2; $$->kind = AST_BLOCK; $$->span = @$; }
    ;
stmts: %empty                       { $$ = NODE(BLOCK, ((Span){0}), NULL); }
    | stmt_list
    | stmt_list SEP
    ;
stmt_list: stmt                     { $$ = ADD(NODE(BLOCK, @1, NULL), $1); }
    | stmt_list SEP stmt            { $$ = ADD($1, $3); }
    ;
stmt: expr                          { $$ = MAKE(EVAL, @$, NULL, $1); }
    | expr '=' expr                 { if ($1->kind == AST_NAME) fe_mark(p, $1->span, ROLE_BINDS);
                                      $$ = MAKE(LET, @$, NULL, $1, $3); }
    | PARAM names ':' type opt_kept '=' expr saved
                                    { mark_all(p, $2, ROLE_BINDS); $$ = MAKE(VAR, @$, "param", $2, $4, $7, $8, $5); }
    | STATE names ':' type '=' expr saved
                                    { mark_all(p, $2, ROLE_BINDS); $$ = MAKE(VAR, @$, "state", $2, $4, $6, $7, NULL); }
    | FOR NAME IN expr block        { fe_mark(p, @2, ROLE_BINDS); $$ = MAKE(FOR, @$, $2, $4, $5); }
    | FOR EDGE expr block           { $$ = MAKE(FOR_EDGE, @$, NULL, $3, $4); }
    | IF expr block opt_else        { $$ = MAKE(IF, @$, NULL, $2, $3, $4); }
    | WHILE expr block              { $$ = MAKE(WHILE, @$, NULL, $2, $3); }
    | WHILE expr NAME expr block    { fe_mark(p, @3, ROLE_WORD); $$ = MAKE(WHILE, @$, $3, $2, $5, $4); }
    | HINT names                    { $$ = $2; $$->kind = AST_HINT; $$->text = $1; $$->span = @$; }
    | RETURN expr                   { $$ = MAKE(RETURN, @$, NULL, $2); }
    | error                         { RECOVER(statement); $$ = NODE(BAD, @1, NULL); }
    ;
opt_else: %empty                    { $$ = NULL; }
    | ELSE block                    { $$ = $2; }
    | ELSE IF expr block opt_else   { $$ = MAKE(IF, @$, NULL, $3, $4, $5); }
    ;
names: NAME                         { $$ = ADD(NODE(LIST, @1, NULL), NODE(NAME, @1, $1)); }
    | names ',' NAME                { $$ = ADD($1, NODE(NAME, @3, $3)); }
    ;
opt_kept: %empty                    { $$ = NULL; }
    | '@' ETYPE                     { $$ = NODE(TYPE, @$, $2); }
    ;
saved: %empty                       { $$ = NULL; }
    | AS saved_list                 { $$ = $2; }
    ;
saved_list: saved_one               { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | saved_list ',' saved_one      { $$ = ADD($1, $3); }
    ;
saved_one: STRING                   { $$ = NODE(SAVED, @1, $1); }
    | STRING dims                   { $$ = with_flag(with_span(add_all(p, NODE(SAVED, @$, $1), $2), @$), 1); }
    ;

/* ---- expressions ---- */
expr: word                          { fe_mark(p, @1, ROLE_USES); $$ = NODE(NAME, @1, $1); }
    | GRAPH                         { $$ = NODE(NAME, @1, "graph"); }
    | ETYPE                         { $$ = NODE(NAME, @1, $1); }
    | INT                           { $$ = with_num(NODE(INT, @1, NULL), $1); }
    | FLOAT                         { $$ = with_num(NODE(FLOAT, @1, NULL), $1); }
    | STRING                        { $$ = NODE(STRING, @1, $1); }
    | TRUE_                         { $$ = with_num(NODE(BOOL, @1, NULL), 1); }
    | FALSE_                        { $$ = with_num(NODE(BOOL, @1, NULL), 0); }
    | NONE                          { $$ = NODE(NONE, @1, NULL); }
    | '(' expr ')'                  { $$ = $2; fe_mark(p, @1, ROLE_GROUP); }
    | expr '?' expr ':' expr        { $$ = MAKE(SELECT, @$, NULL, $1, $3, $5); fe_mark(p, @4, ROLE_SELECT); }
    | expr WHERE expr               { $$ = BIN(WHERE, @$, $1, $3); }
    | expr OR expr                  { $$ = BIN(OR, @$, $1, $3); }
    | expr AND expr                 { $$ = BIN(AND, @$, $1, $3); }
    | NOT expr                      { $$ = with_op(MAKE(UNARY, @$, NULL, $2), OPR_NOT); }
    | expr EQ expr                  { $$ = BIN(EQ, @$, $1, $3); }
    | expr NE expr                  { $$ = BIN(NE, @$, $1, $3); }
    | expr '<' expr                 { $$ = BIN(LT, @$, $1, $3); }
    | expr '>' expr                 { $$ = BIN(GT, @$, $1, $3); }
    | expr LE expr                  { $$ = BIN(LE, @$, $1, $3); }
    | expr GE expr                  { $$ = BIN(GE, @$, $1, $3); }
    | expr DOTDOT expr              { $$ = BIN(RANGE, @$, $1, $3); }
    | expr '+' expr                 { $$ = BIN(ADD, @$, $1, $3); }
    | expr '-' expr                 { $$ = BIN(SUB, @$, $1, $3); }
    | expr '*' expr                 { $$ = BIN(MUL, @$, $1, $3); }
    | expr '/' expr                 { $$ = BIN(DIV, @$, $1, $3); }
    | expr '%' expr                 { $$ = BIN(MOD, @$, $1, $3); }
    | expr '@' expr                 { $$ = BIN(AT, @$, $1, $3); }
    | '-' expr %prec NEG            { $$ = with_op(MAKE(UNARY, @$, NULL, $2), OPR_NEG); fe_mark(p, @1, ROLE_PREFIX); }
    | expr POW expr                 { $$ = BIN(POW, @$, $1, $3); }
    | expr '(' args ')'             { $$ = with_span(add_all(p, MAKE(CALL, @$, NULL, $1), $3), @$); }
    | expr '[' exprs ']'            { $$ = with_span(add_all(p, MAKE(INDEX, @$, NULL, $1), $3), @$); }
    | expr '.' NAME                 { fe_mark(p, @3, ROLE_MEMBER); $$ = MAKE(MEMBER, @$, $3, $1); }
    | '[' ']'                       { $$ = NODE(ARRAY, @$, NULL); fe_mark(p, @1, ROLE_GROUP); }
    | '[' exprs ']'                 { $$ = $2; $$->kind = AST_ARRAY; $$->span = @$; fe_mark(p, @1, ROLE_GROUP); }
    | '[' ':' ']'                   { $$ = NODE(DICT, @$, NULL); fe_mark(p, @1, ROLE_GROUP); }
    | '[' pairs ']'                 { $$ = $2; $$->span = @$; fe_mark(p, @1, ROLE_GROUP); }
    | '[' expr FOR NAME IN expr opt_if ']'
                                    { fe_mark(p, @4, ROLE_BINDS); $$ = MAKE(ARRAY_FOR, @$, $4, $2, $6, $7); fe_mark(p, @1, ROLE_GROUP); }
    | '[' expr ':' expr FOR NAME IN expr opt_if ']'
                                    { $$ = MAKE(DICT_FOR, @$, $6, $2, $4, $8, $9); fe_mark(p, @1, ROLE_GROUP); fe_mark(p, @6, ROLE_BINDS); }
    ;
opt_if: %empty                      { $$ = NULL; }
    | IF expr                       { $$ = $2; }
    ;
pairs: expr ':' expr                { $$ = ADD(NODE(DICT, @$, NULL), MAKE(PAIR, @$, NULL, $1, $3)); }
    | pairs ',' expr ':' expr       { $$ = ADD($1, MAKE(PAIR, span_join(@3, @5), NULL, $3, $5)); }
    ;
exprs: expr                         { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | exprs ',' expr                { $$ = ADD($1, $3); }
    ;
args: %empty                        { $$ = NODE(LIST, ((Span){0}), NULL); }
    | arg_list
    ;
arg_list: arg                       { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | arg_list ',' arg              { $$ = ADD($1, $3); }
    ;
arg: expr
    | word '=' expr                 { fe_mark(p, @1, ROLE_NAMED); $$ = MAKE(NAMED, @$, $1, $3); }
    ;

/* ---- recipes ---- */
titems: %empty                      { $$ = NODE(LIST, ((Span){0}), NULL); }
    | titems titem                  { $$ = ADD($1, $2); fe_mark(p, @2, ROLE_ITEM); }
    | titems SEP
    ;
titem: TARGET any_name '.' NAME     { fe_mark(p, @4, ROLE_MEMBER); $$ = MAKE(TARGET, @$, $2, NODE(NAME, @4, $4)); }
    | TARGET any_name               { $$ = MAKE(TARGET, @$, $2, NULL); }
    | LOSS exprs                    { $$ = $2; $$->kind = AST_LOSS; }
    | METRIC exprs                  { $$ = $2; $$->kind = AST_METRIC; }
    | OPTIMIZER expr                { $$ = MAKE(OPTIMIZER, @$, NULL, $2); }
    | GROUP paths lbrace stmts rbrace
                                    { $$ = MAKE(GROUP, @$, NULL, $2); add_all(p, $$, $4); $$->span = @2; }
    | SCHEDULE expr                 { $$ = MAKE(SCHEDULE, @$, NULL, $2); }
    | CLIP expr                     { $$ = MAKE(CLIP, @$, NULL, $2); }
    | ACCUMULATE expr               { $$ = MAKE(ACCUMULATE, @$, NULL, $2); }
    | EMA expr                      { $$ = MAKE(EMA, @$, NULL, $2); }
    | EPOCHS expr                   { $$ = MAKE(EPOCHS, @$, NULL, $2); }
    | KEEP keep_words               { $$ = $2; $$->kind = AST_KEEP; $$->span = @$; }
    | STOP NAME expr                { fe_mark(p, @2, ROLE_WORD); $$ = MAKE(STOP, @$, $2, $3); }
    | SAMPLE lbrace settings rbrace { $$ = $3; $$->kind = AST_SAMPLE; $$->span = @1; }
    | error                         { RECOVER(statement); $$ = NODE(BAD, @1, NULL); }
    ;
settings: %empty                    { $$ = NODE(LIST, ((Span){0}), NULL); }
    | settings setting              { $$ = ADD($1, $2); }
    | settings SEP
    ;
setting: NAME exprs                 { $$ = $2; $$->kind = AST_SETTING; $$->text = $1; $$->span = @1; fe_mark(p, @1, ROLE_ITEM); }
    | error                         { RECOVER(statement); $$ = NODE(BAD, @1, NULL); }
    ;
any_name: NAME
    | GRAPH                         { $$ = "graph"; }
    ;
keep_words: keep_word               { $$ = ADD(NODE(LIST, @1, NULL), NODE(NAME, @1, $1)); }
    | keep_words keep_word          { $$ = ADD($1, NODE(NAME, @2, $2)); }
    ;
keep_word: NAME                     { fe_mark(p, @1, ROLE_WORD); $$ = $1; }
    | TRAIN                         { $$ = "train"; }
    ;
paths: path                         { $$ = ADD(NODE(LIST, @1, NULL), $1); }
    | paths ',' path                { $$ = ADD($1, $3); }
    ;
path: NAME                          { fe_mark(p, @1, ROLE_PATH); $$ = NODE(NAME, @1, $1); }
    | STRING                        { $$ = NODE(NAME, @1, $1); }
    | path '.' NAME                 { fe_mark(p, @3, ROLE_MEMBER); $$ = NODE(NAME, @$, arena_printf(p->c->a, "%s.%s", $1->text, $3)); }
    | path '.' INT                  { $$ = NODE(NAME, @$, arena_printf(p->c->a, "%s.%.0f", $1->text, $3)); }
    ;
%%

/* "unexpected ')', expected a name or ..." with at most four suggestions. */
static int yyreport_syntax_error(const yypcontext_t *ctx, Parser *p) {
    enum { MAX_EXPECTED = 5 };
    yysymbol_kind_t want[MAX_EXPECTED];
    StrBuf b = sb_new(p->c->a);
    yysymbol_kind_t got = yypcontext_token(ctx);
    sb_printf(&b, "unexpected %s", got == YYSYMBOL_YYEOF ? "end of file" : yysymbol_name(got));
    int n = yypcontext_expected_tokens(ctx, want, MAX_EXPECTED);
    for (int i = 0; n > 0 && n < MAX_EXPECTED && i < n; i++)
        sb_printf(&b, "%s%s", i == 0 ? ", expected " : " or ", yysymbol_name(want[i]));
    fe_error(yypcontext_location(ctx), p, b.s);
    return 0;
}
