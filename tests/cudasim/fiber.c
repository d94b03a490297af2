/* Switching stacks by hand: on x86-64 a dozen instructions, elsewhere ucontext, which asks
 * the system each time.  AddressSanitizer is told of every switch. */
#include "fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

/* Tops of stacks that differ by the same power of two would share a few sets of the caches. */
enum { STACK_BYTES = 256 * 1024, LINE = 64, COLOURS = 128 };

struct Fiber {
    void *stack;   /* NULL: the host's */
    size_t colour; /* bytes of its top that are left free */
    void *sp;      /* x86-64: where it stopped */
    void (*run)(void *);
    void *arg;
    const void *bottom; /* of its stack, for the sanitizer */
    size_t bytes;
    Fiber *came_from;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};

static void arrived(Fiber *f, void *fake) {
#ifdef HAS_ASAN
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake, &bottom, &bytes);
    if (f->came_from && !f->came_from->stack)
        f->came_from->bottom = bottom, f->came_from->bytes = bytes;
#else
    (void)f, (void)fake;
#endif
}

static void enter(Fiber *f) {
    arrived(f, NULL);
    f->run(f->arg);
    abort();
}

#if defined(__x86_64__)
void cudasim_swap(void **from, void *to);
__asm__(".text\n"
        ".globl cudasim_swap\n"
        ".type cudasim_swap, @function\n"
        "cudasim_swap:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size cudasim_swap, .-cudasim_swap\n"
        /* A new fiber starts here with itself in rbx. */
        ".type cudasim_start, @function\n"
        "cudasim_start:\n"
        "    movq %rbx, %rdi\n    call *%r12\n    ud2\n"
        ".size cudasim_start, .-cudasim_start\n"
        ".globl cudasim_start\n"
        ".section .note.GNU-stack,\"\",@progbits\n.text\n");
void cudasim_start(void);

static void prepare(Fiber *f) {
    void **sp = (void **)((char *)f->stack + STACK_BYTES - f->colour);
    *--sp = (void *)(uintptr_t)cudasim_start;
    *--sp = NULL;                     /* rbp */
    *--sp = f;                        /* rbx */
    *--sp = (void *)(uintptr_t)enter; /* r12 */
    *--sp = NULL, *--sp = NULL, *--sp = NULL;
    f->sp = sp;
}

static void swap(Fiber *from, Fiber *to) {
    cudasim_swap(&from->sp, to->sp);
}
#else
static void enter_halves(unsigned high, unsigned low) {
    enter((Fiber *)((uintptr_t)high << 32 | low));
}

static void prepare(Fiber *f) {
    uintptr_t p = (uintptr_t)f;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, (void (*)(void))enter_halves, 2, (unsigned)((uint64_t)p >> 32),
                (unsigned)p);
}

static void swap(Fiber *from, Fiber *to) {
    swapcontext(&from->context, &to->context);
}
#endif

Fiber *fiber_new(void (*run)(void *), void *arg, int number) {
    Fiber *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->stack == MAP_FAILED) {
        free(f);
        return NULL;
    }
    f->colour = (size_t)(number % COLOURS) * LINE * 3;
    f->run = run;
    f->arg = arg;
    f->bottom = f->stack;
    f->bytes = STACK_BYTES;
    prepare(f);
    return f;
}

void fiber_free(Fiber *f) {
    if (!f) return;
    if (f->stack) munmap(f->stack, STACK_BYTES);
    free(f);
}

Fiber *fiber_host(void) {
    static Fiber host;
    return &host;
}

void fiber_switch(Fiber *from, Fiber *to) {
    void *fake = NULL;
    to->came_from = from;
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&fake, to->bottom, to->bytes);
#endif
    swap(from, to);
    arrived(from, fake);
}
