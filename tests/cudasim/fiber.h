/* Stacks to switch between. */
#ifndef CUDASIM_FIBER_H
#define CUDASIM_FIBER_H

typedef struct Fiber Fiber;

Fiber *fiber_new(void (*run)(void *), void *arg); /* run must never return; NULL: no memory */
void fiber_free(Fiber *f);
Fiber *fiber_host(void); /* the stack that the host is on; made on first use */
void fiber_switch(Fiber *from, Fiber *to);

#endif
