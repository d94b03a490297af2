/* The part of YAML 1.2 that configuration files use: block mappings and sequences of
 * plain or quoted scalars on one line, and comments.  No anchors, tags, flow style,
 * block scalars or several documents: these are refused. */
#ifndef RUNTIME_YAML_H
#define RUNTIME_YAML_H

#include "runtime/data/json.h"

/* The tree is that of the JSON reader; every scalar is a STRING, an empty one or `null`
 * NULL. */
gnnc_status rt_yaml_parse(RtPool *pool, RtBytes text, const char *name, RtJson **out, RtError *err);

#endif
