/* The model GCN of models/gcn.gnn, compiled by gnnc -O2 --target=cpu,cuda --march=native --specialize.
 *
 *     gnnc_trainer_create(&t, &model_program)    (gnnc.h)
 *
 * It reads
 *     node paper
 *       x: csr f32[F = 1433]
 *       y: class[C]    (to train and evaluate)
 *       split: split    (to train and evaluate)
 *     edge cites: paper -> paper
 *
 * It gives, as f32
 *     pred[paper, C = 7]    gnnc_trainer_predict
 *     h[paper, hidden = 16]    gnnc_trainer_embed, by that name
 */
#ifndef MODEL_PROGRAM_H
#define MODEL_PROGRAM_H

#include <gnnc.h>

#define MODEL_MODEL "GCN"

/* Names of columns in schema.json.  In shapes, -1 is a size that data or weights bring. */
#define MODEL_INPUT_PAPER_X "paper.x"
#define MODEL_INPUT_PAPER_X_RANK 2
#define MODEL_INPUT_PAPER_X_SHAPE {-1, 1433}
#define MODEL_INPUT_PAPER_Y "paper.y"
#define MODEL_INPUT_PAPER_Y_RANK 1
#define MODEL_INPUT_PAPER_Y_SHAPE {-1}
#define MODEL_INPUT_PAPER_SPLIT "paper.split"
#define MODEL_INPUT_PAPER_SPLIT_RANK 1
#define MODEL_INPUT_PAPER_SPLIT_SHAPE {-1}

#define MODEL_OUTPUT_PRED "pred"
#define MODEL_OUTPUT_PRED_RANK 2
#define MODEL_OUTPUT_PRED_SHAPE {-1, 7}
#define MODEL_LAYER_H "h"
#define MODEL_LAYER_H_RANK 2
#define MODEL_LAYER_H_SHAPE {-1, 16}

#ifdef __cplusplus
extern "C" {
#endif
extern const gnnc_program model_program;
#ifdef __cplusplus
}
#endif
#endif
