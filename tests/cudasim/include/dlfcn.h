/* The libraries that runtime/cuda opens are parts of the simulator (dl.c). */
#ifndef CUDASIM_DLFCN_H
#define CUDASIM_DLFCN_H

#ifdef __cplusplus
extern "C" {
#endif

enum { RTLD_LOCAL = 0, RTLD_NOW = 2 };

void *cudasim_dlopen(const char *name,
                     int flags); /* NULL if CUDASIM_NO_LIBRARY is 1 or a part of the name */
void *cudasim_dlsym(void *library, const char *name);
const char *cudasim_dlerror(void);

#define dlopen cudasim_dlopen
#define dlsym cudasim_dlsym
#define dlerror cudasim_dlerror

#ifdef __cplusplus
}
#endif
#endif
