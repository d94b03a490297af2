/* Statements of a row that may be done for a tile of its columns at a time (tile_rows.c), for the
 * pass that does so and for who checks a text (tile.c, loop_verify.c). */
#ifndef CODEGEN_TILE_H
#define CODEGEN_TILE_H

#include "codegen/loop_passes/loops.h"

enum { LOOP_TILE_STATEMENTS_MAX = 16 };

typedef struct {
    const LKernel *k;
    LStmt *stmt[LOOP_TILE_STATEMENTS_MAX]; /* vector loops over `width`, entry loops around such */
    int n;
    const Expr *width;
    const LStmt *row[LOOP_KEPT_MAX]; /* the first access to each row that registers keep */
    int n_rows;
    const LStmt *jam; /* the loop over heads around the statements, or NULL */
    int64_t heads;    /* its extent, else 1 */
    int lanes;
    bool optional;      /* be tiled, but need not */
    const char *reason; /* not */
} LoopTile;

bool loop_tile_refuse(LoopTile *t, const char *why); /* false, for which t says why */
bool loop_tile_is_vector_loop(const LoopTile *t,
                              const LStmt *s); /* a vector loop over all columns */
bool loop_tile_has_entries(const LoopTile *t);
/* May the statements that t has be done tile by tile?  It then knows their rows. */
bool loop_tile_is_legal(LoopTile *t);
/* The longest run of statements from s on, before `end`, that may. */
bool loop_find_tile(LoopTile *t, LStmt *s, const LStmt *end);

#endif
