/* What a wrong name might have meant, for messages. */
#ifndef RUNTIME_NEAR_H
#define RUNTIME_NEAR_H

/* The closest so far to `wrong` of the names that were told. */
typedef struct {
    const char *wrong;
    const char *name; /* NULL: none is near enough */
    int most;         /* differences that a nearer one may have */
} RtNear;

/* Short names allow fewer differences. */
RtNear rt_near_begin(const char *wrong);
/* Of equally near names the first one stays. */
void rt_near_tell(RtNear *near, const char *name);

#endif
