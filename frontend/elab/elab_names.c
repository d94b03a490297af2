/* What a wrong name might have meant (runtime/data/near.h), and which there are. */
#include "frontend/elab/elab.h"
#include "runtime/data/near.h"

#include <string.h>

enum { MOST_LISTED = 12 };

/* Adds a name to a list unless it is there. */
void elab_names_add(Elab *e, Names *to, const char *name) {
    for (int i = 0; i < to->n; i++)
        if (strcmp(to->v[i], name) == 0) return;
    vec_push(e->a, to, name);
}

/* The known name that is most like `wrong`. NULL: none is near enough. */
const char *elab_names_nearest(const char *wrong, const Names *known) {
    RtNear near = rt_near_begin(wrong);
    for (int i = 0; i < known->n; i++) rt_near_tell(&near, known->v[i]);
    return near.name;
}

/* The first few names as "a, b, c and 3 more", for messages. */
const char *elab_names_list(Elab *e, const Names *known) {
    StrBuf b = sb_new(e->a);
    for (int i = 0; i < known->n && i < MOST_LISTED; i++)
        sb_printf(&b, "%s%s", i ? ", " : "", known->v[i]);
    if (known->n > MOST_LISTED) sb_printf(&b, " and %d more", known->n - MOST_LISTED);
    return b.s ? b.s : "";
}

/* The end of a message about the name `wrong`: the nearest known name, else a list of them.
 * Editors that ask are given all. */
const char *elab_names_advice(Elab *e, const char *wrong, const Names *known) {
    elab_note_known(e, wrong, known);
    const char *near = elab_names_nearest(wrong, known);
    if (near) return arena_printf(e->a, "; did you mean '%s'?", near);
    return known->n ? arena_printf(e->a, "; there %s %s", known->n == 1 ? "is" : "are",
                                   elab_names_list(e, known))
                    : "";
}
