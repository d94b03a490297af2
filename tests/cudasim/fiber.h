/* Stacks to switch between. */
#ifndef CUDASIM_FIBER_H
#define CUDASIM_FIBER_H

typedef struct Fiber Fiber;

/* run must never return; number: of the fibers there are, for caches.  NULL: no memory. */
Fiber *fiber_new(void (*run)(void *), void *arg, int number);
void fiber_free(Fiber *f);
Fiber *fiber_host(void); /* the stack that the host is on; made on first use */
void fiber_switch(Fiber *from, Fiber *to);

#endif
