/* What libremat_arena.so counts of the sessions of ONNX Runtime that follow plans of memory, and how they give memory back. C99 and C++.
 *
 *     api->AddSessionConfigEntry(options, "remat.arena.plan", "model.onnx.arena");
 *     api->RegisterCustomOpsLibrary_V2(options, "./libremat_arena.so");
 *     api->CreateSession(environment, "model.onnx", options, &session);
 *     ... runs ...
 *     remat_arena_figures figures = {0};
 *     remat_arena_stats(0, &figures, sizeof figures);
 *
 * A program is linked with the library (`cc program.c ./libremat_arena.so`), or finds the functions by `dlopen` and `dlsym`; it has to be the
 * same file that the runtime loads, since each counts for itself. All functions may be called from every thread, at any time.
 *
 * Configuration entries of session options, all text:
 *
 *     remat.arena.plan          the file of the plan
 *     remat.arena.limit         most bytes with which runs of the session go on: what runs of all sessions take, weights apart
 *     remat.arena.limit.action  `wait` (the default) or `fail`: what a run does that would take more
 *     remat.arena.share         `process` or the absolute path of a file: one block for the runs of all sessions of this process, or of all
 *                               processes of one user that name the file; one run at a time, outputs apart
 *     remat.weights.resident    about how many bytes of the file of the weights stay in the memory, where the plan says which of them runs read: a part
 *                               for ever, and of the others what is read and what comes next; without it nothing is asked for or dropped
 *     remat.arena.record        `1`, for programs that record: allocations are noted
 *     remat.arena.log           the least severity, 0 to 4, of messages of the runtime that reach the error stream; 2 unless set
 *     remat.arena.huge_pages    `0`: blocks lie in small pages
 *     remat.arena.cuda          for the CUDA provider: the number of its functions (remat_cuda.h), in the place of a plan
 *     remat.paging.folder       the folder of the file to which models with pages move results; /var/tmp unless set
 */
#ifndef REMAT_ARENA_H
#define REMAT_ARENA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of the allocations of sessions. New fields come at the end only: a library that is older than this header leaves those that it does not
 * know as they are. Sizes are in bytes. */
typedef struct remat_arena_figures {
    uint64_t runs;                /* runs that began as a plan does */
    uint64_t placed;              /* buffers that got their planned place in the block */
    uint64_t planned_outside;     /* buffers that stay outside of the block by plan */
    uint64_t missed;              /* buffers that no plan foresees */
    uint64_t refused;             /* buffers whose planned place was taken */
    uint64_t at_load;             /* buffers that were allocated while a session loaded */
    uint64_t blocks;              /* blocks now */
    uint64_t block_bytes;         /* the largest block that the plans may need */
    uint64_t most_blocks;         /* most blocks at one time */
    uint64_t outside_bytes;       /* what runs have outside of blocks now */
    uint64_t most_outside_bytes;  /* most of that at one time */
    uint64_t used_bytes;          /* what blocks take of the memory now, at most */
    uint64_t most_used_bytes;     /* most of that at one time */
    uint64_t shapes;              /* shapes whose places are known */
    uint64_t waits;               /* allocations that waited for other runs to make room */
    uint64_t waiting_nanoseconds; /* how long they waited, together */
    uint64_t refused_runs;        /* runs that the limit ended */
    uint64_t limit_bytes;         /* the limit; 0 without one */
    uint64_t reserved_bytes;      /* what counts against limits now */
    uint64_t most_reserved_bytes; /* most of that at one time */
    uint64_t returned_bytes;      /* what loading had left in the heap, returned with the first run */
    uint64_t weights_asked_bytes;   /* weights that were asked for ahead, together */
    uint64_t weights_dropped_bytes; /* weights that were dropped, together */
    uint64_t shared_bytes;          /* the block that it shares with others, in memory; of all sessions together each block once */
    /* Of the process, whichever session it is: */
    uint64_t paged_out_bytes;          /* what runs wrote to second memories */
    uint64_t paged_in_bytes;           /* what runs read from them */
    uint64_t second_memory_bytes;      /* what second memories hold now */
    uint64_t most_second_memory_bytes; /* most of that at one time */
} remat_arena_figures;

/* Writes the figures of the sessions of the options that were registered as number `session`, from 0, or of all together where it is negative, to the
 * first `bytes` bytes of `figures`. How many bytes were written; 0 where there are no such options. */
size_t remat_arena_stats(int64_t session, remat_arena_figures *figures, size_t bytes);

/* All sessions give the memory of their blocks back to the system that neither a live buffer nor a run that goes on needs; how many bytes that
 * were. So does the heap of the process with what nobody uses, which does not count. Libraries without limits do not have it. */
uint64_t remat_arena_trim(void);

/* A part of the file of the weights. */
typedef struct remat_arena_weight {
    uint64_t offset;
    uint64_t bytes;
} remat_arena_weight;

/* For programs that record runs, one at a time: from now on it is noted which parts of this file runs read, through mappings that are there now. It
 * takes the signal of invalid accesses until the next function ends it. */
void remat_arena_weights_begin(const char *file);

/* Ends what the function before began, and writes up to `most` parts that were read to `weights`, in the order in which each was begun, one that was
 * read again much later once more. How many there are. */
size_t remat_arena_weights(remat_arena_weight *weights, size_t most);

#ifdef __cplusplus
}
#endif

#endif
