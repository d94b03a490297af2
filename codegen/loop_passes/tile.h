/* Statements of a row that may be done for a tile of its columns at a time (tile_rows.c), for the
 * pass that does so and for who checks a text (tile.c, loop_verify.c). */
#ifndef CODEGEN_TILE_H
#define CODEGEN_TILE_H

#include "codegen/loop_passes/loops.h"

/* The most statements of a tile. */
enum { LOOP_TILE_STATEMENTS_MAX = 16 };

/* A candidate for L_TILE. */
typedef struct {
    const LKernel *k;
    LStmt *stmt[LOOP_TILE_STATEMENTS_MAX]; /* loops over `width` columns, and loops over
                                              entries around such */
    int n;
    const Expr *width;               /* number of columns of the row */
    const LStmt *row[LOOP_KEPT_MAX]; /* for each row that registers keep: an access to it */
    int n_rows;
    const LStmt *jam;   /* the loop over heads around the statements, or NULL */
    int64_t heads;      /* its extent, else 1 */
    int lanes;          /* columns per vector */
    bool optional;      /* be tiled, but need not */
    const char *reason; /* why the statements cannot be tiled, in words */
} LoopTile;

/* Sets t->reason; returns false. */
bool loop_tile_refuse(LoopTile *t, const char *why);
/* Whether s is a vector loop over all columns of the tile. */
bool loop_tile_is_vector_loop(const LoopTile *t, const LStmt *s);
/* Whether one of the statements is a loop over entries. */
bool loop_tile_has_entries(const LoopTile *t);
/* Whether the statements in t can be run tile by tile; t->row is then filled in. */
bool loop_tile_is_legal(LoopTile *t);
/* Fills t with the longest run of statements, from s on and before `end`, that can be run tile by
 * tile; false: there is none. */
bool loop_find_tile(LoopTile *t, LStmt *s, const LStmt *end);

#endif
