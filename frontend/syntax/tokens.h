/* The text of a file as tokens, for those who write it again or look for names in it. */
#ifndef FRONTEND_TOKENS_H
#define FRONTEND_TOKENS_H

#include "ir/base.h"

/* What the grammar knows of a token that its text does not tell (grammar.y marks it). */
typedef enum {
    ROLE_PLAIN,
    ROLE_GROUP,  /* '(' and '[' that begin a value: no call, index or list of dimensions */
    ROLE_PREFIX, /* the '-' of -x */
    ROLE_SELECT, /* the ':' of c ? a : b */
    ROLE_ITEM,   /* the first word of a setting, or of an item of a recipe */
    /* of names: */
    ROLE_DECLARES, /* of a layer, function, model, graph or constant */
    ROLE_BINDS,    /* of the body that it stands in: a parameter, x = .., for x in .. */
    ROLE_DATA,     /* of a node type, relation or column */
    ROLE_USES,     /* a keyword that is a name here */
    ROLE_MEMBER,   /* behind a dot */
    ROLE_NAMED,    /* of an argument: f(x = 1) */
    ROLE_PATH,     /* the first name of a path of parameters */
    ROLE_WORD,     /* no name: `timeless`, `limit`, what `keep` says */
} TokenRole;

/* A token as the grammar sees it; SEP of a line break has no text. */
typedef struct {
    int code;
    Span span;
    bool first_on_line;
    bool begins; /* a statement, a declaration, or what stands behind '{' */
    TokenRole role;
} GivenToken;

/* The whole text of a file: for those who write it again. */
typedef struct {
    VEC(GivenToken) token;
    VEC(Span) comment;
} TokenList;

#endif
