/* Planned memory for the CUDA provider of ONNX Runtime: three functions that it calls in the place of its arena. C99 and C++.
 *
 *     remat_cuda_settings settings = {"model.onnx.arena", NULL, -1, 0};
 *     remat_cuda_functions functions;
 *     const char *why = remat_cuda_open(&settings, &functions);
 *     if (why != NULL) { fprintf(stderr, "%s\n", why); return 1; }
 *     remat_cuda_provider options;                          keys and values for UpdateCUDAProviderOptions
 *     remat_cuda_options(&functions, &options);
 *     api->UpdateCUDAProviderOptions(cuda, options.keys, options.values, 3);
 *     api->SessionOptionsAppendExecutionProvider_CUDA_V2(session_options, cuda);
 *     api->AddSessionConfigEntry(session_options, "remat.arena.cuda", options.session);
 *     api->RegisterCustomOpsLibrary_V2(session_options, "./libremat_arena.so");
 *     api->CreateSession(environment, "model.onnx", session_options, &session);
 *
 * The provider then requests weights, results and what its kernels work in from `alloc`. What the plan foresees lies in one block of `cudaMalloc`; the rest
 * gets memory of its own, and is counted (`remat_arena_stats` with `functions.session`, in remat_arena.h). Every session options has functions of its own.
 * The last two lines before the session is created tell when it loads; a program without them calls `remat_cuda_load_begins` before it creates a
 * session and `remat_cuda_load_ends` afterwards, on the thread that creates it, and turns the memory pattern off (`DisableMemPattern`).
 *
 * The provider takes no `user_compute_stream` beside such functions, and ignores `gpu_mem_limit`. */
#ifndef REMAT_CUDA_H
#define REMAT_CUDA_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What sessions are to have. */
typedef struct remat_cuda_settings {
    const char *plan;    /* path of the plan; NULL for none: everything has memory of its own */
    const char *library; /* path of the CUDA runtime (libcudart); NULL for that which the process has, else that of the system */
    int device;          /* number of the device; negative for that of the thread which requests memory first */
    int record;          /* not 0: requests are recorded, `remat_arena_events` gives them */
} remat_cuda_settings;

/* What the provider calls. A request without bytes, and one for which there is no memory, gives NULL; the provider ends the run then with a status. */
typedef struct remat_cuda_functions {
    void *(*alloc)(size_t);    /* gpu_external_alloc */
    void (*free)(void *);      /* gpu_external_free */
    void (*empty_cache)(void); /* gpu_external_empty_cache */
    int64_t session;           /* the number of the sessions for the other functions */
} remat_cuda_functions;

/* A request, or a free, that was recorded. */
typedef struct remat_cuda_event {
    uint64_t address;
    uint64_t bytes;  /* 0 when it is freed */
    uint64_t thread; /* by a number */
} remat_cuda_event;

/* Makes functions for the sessions of one session options. NULL, or why there are none: text that is valid until the thread calls this again. There
 * are functions for 64 at one time. */
const char *remat_cuda_open(const remat_cuda_settings *settings, remat_cuda_functions *functions);

/* A session begins to load on this thread, and is loaded. */
void remat_cuda_load_begins(int64_t session);
void remat_cuda_load_ends(int64_t session);

/* No more sessions are made with these functions. Once all is freed that they gave, `remat_cuda_open` may give them to others. */
void remat_cuda_close(int64_t session);

/* Moves up to `most` recorded events, the oldest first, to `events`. How many they were. */
size_t remat_arena_events(size_t session, remat_cuda_event *events, size_t most);

/* The functions as text. */
typedef struct remat_cuda_provider {
    const char *keys[3];
    const char *values[3];
    char session[24]; /* the value of the session config entry `remat.arena.cuda` */
    char text[3][24];
} remat_cuda_provider;

static inline void remat_cuda_options(const remat_cuda_functions *functions, remat_cuda_provider *provider) {
    const uintptr_t values[3] = {(uintptr_t)functions->alloc, (uintptr_t)functions->free,
                                 (uintptr_t)functions->empty_cache};
    int at;
    provider->keys[0] = "gpu_external_alloc";
    provider->keys[1] = "gpu_external_free";
    provider->keys[2] = "gpu_external_empty_cache";
    for (at = 0; at < 3; at++) {
        snprintf(provider->text[at], sizeof provider->text[at], "%llu", (unsigned long long)values[at]);
        provider->values[at] = provider->text[at];
    }
    snprintf(provider->session, sizeof provider->session, "%lld", (long long)functions->session);
}

#ifdef __cplusplus
}
#endif

#endif
