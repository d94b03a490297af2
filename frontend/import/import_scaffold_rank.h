/* A starter model for a task that ranks (runtime/import/import_task.h, RtTaskRanks). */
#ifndef FRONTEND_IMPORT_SCAFFOLD_RANK_H
#define FRONTEND_IMPORT_SCAFFOLD_RANK_H

#include "import_scaffold.h"
#include "runtime/data/json.h"

gnnc_status scaffold_rank(RtPool *pool, const RtDataset *d, const ScaffoldHow *how, RtText *text,
                          RtError *err);

#endif
