/* A session whose rows are asked about at a date (bind_at.c): all entities that are there then. */
#include <math.h>

#include "runtime/bind/bind.h"
#include "runtime/data/dates.h"
#include "session.h"

gnnc_status gnnc_session_open_at(gnnc_session *s, gnnc_model *m, gnnc_graph *g, const char *at) {
    RtSessionAt asked = {.time = NAN, .put = rt_bind_at};
    if (!s || !m || !g || !at) return GNNC_E_ARG;
    if (!rt_cell_time(at, &asked.time) || !(fabs(asked.time) < 0x1p63))
        return rt_fail(&s->rt.err, GNNC_E_RANGE, "'%.64s': a date is expected, 2024-01-31", at);
    return rt_session_open(s, m, g, &asked);
}
