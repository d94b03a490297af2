/* The model M of model.gnn, compiled by gnnc -O2 --target=cpu --march=native.
 *
 *     gnnc_trainer_create(&t, &model_program)    (gnnc.h)
 *
 * It reads
 *     node user
 *       x: f32[F]
 *       y: class[C]    (to train and evaluate)
 *       split: split    (to train and evaluate)
 *     node place
 *       v: f32[V]
 *     edge likes: user -> user
 *     edge lives: user -> place
 *
 * It gives, as f32
 *     pred[user, C]    gnnc_trainer_predict
 */
#ifndef MODEL_PROGRAM_H
#define MODEL_PROGRAM_H

#include <gnnc.h>

#define MODEL_MODEL "M"

/* Names of columns in schema.json.  In shapes, -1 is a size that data or weights bring. */
#define MODEL_INPUT_USER_X "user.x"
#define MODEL_INPUT_USER_X_RANK 2
#define MODEL_INPUT_USER_X_SHAPE {-1, -1}
#define MODEL_INPUT_USER_Y "user.y"
#define MODEL_INPUT_USER_Y_RANK 1
#define MODEL_INPUT_USER_Y_SHAPE {-1}
#define MODEL_INPUT_USER_SPLIT "user.split"
#define MODEL_INPUT_USER_SPLIT_RANK 1
#define MODEL_INPUT_USER_SPLIT_SHAPE {-1}
#define MODEL_INPUT_PLACE_V "place.v"
#define MODEL_INPUT_PLACE_V_RANK 2
#define MODEL_INPUT_PLACE_V_SHAPE {-1, -1}

#define MODEL_OUTPUT_PRED "pred"
#define MODEL_OUTPUT_PRED_RANK 2
#define MODEL_OUTPUT_PRED_SHAPE {-1, -1}

#ifdef __cplusplus
extern "C" {
#endif
extern const gnnc_program model_program;
#ifdef __cplusplus
}
#endif
#endif
