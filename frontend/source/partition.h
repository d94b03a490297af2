/* `gnnc partition`: a data directory with its rows in parts (runtime/partition/partition.h). */
#ifndef FRONTEND_SOURCE_PARTITION_H
#define FRONTEND_SOURCE_PARTITION_H

#include <stdio.h>

/* argv[0] is "partition".  Returns the exit code: 0, 1 (diagnosed), 2 (usage). */
int gnnc_partition_main(int argc, char **argv, FILE *out, FILE *err);

#endif
