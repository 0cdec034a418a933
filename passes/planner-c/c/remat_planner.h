/* Plans of memory: offsets of buffers in one block, and the order of ops that takes the least memory. C99; the library is remat-planner-c.
 *
 *     remat_buffer buffers[] = {{4096, 0, 2}, {1024, 1, 4}, {2048, 2, 4}};
 *     uint64_t offsets[3], height;
 *     if (remat_place(buffers, 3, 16, 100000, offsets, &height) != REMAT_PLANNER_OK) return;
 *     char *arena = malloc(height);   ... buffer i lies at arena + offsets[i]
 *
 * Sizes, offsets, heights and peaks are in bytes. Efforts are numbers of tries, one of which takes about a microsecond where some hundred buffers
 * or ops are planned: answers are the same on every machine. With effort 0 there is an answer, by greedy passes; 100,000 is a good number.
 * Functions keep nothing between calls and may be called from several threads. They write their results when they return REMAT_PLANNER_OK, and
 * nothing else. No pointer is kept. Arrays of results must not be those of arguments.
 *
 * Memory is taken while a function runs and given back before it returns: some hundred bytes for each buffer, 8 for each two buffers
 * that are needed at one time, and 64 for each try up to 2 million; of an order, some hundred bytes for each op, value and pair, and the
 * tries' sets of ops, 64 MiB and 150 bytes for each of a million of them at most.
 */
#ifndef REMAT_PLANNER_H
#define REMAT_PLANNER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum remat_planner_result {
    REMAT_PLANNER_OK = 0,
    REMAT_PLANNER_POINTER,   /* a pointer is null that must not be, or an array is larger than memory */
    REMAT_PLANNER_LIFETIME,  /* a buffer ends before it begins, or when it does */
    REMAT_PLANNER_ALIGNMENT, /* the alignment is 0 */
    REMAT_PLANNER_TOO_LARGE, /* bytes add up to more than 2^62 */
    REMAT_PLANNER_TOO_MANY,  /* more than 2^29 ops or values, 2^30 pairs, or 2^31 buffers */
    REMAT_PLANNER_NUMBER,    /* a pair or a value names an op or a value that is not there */
    REMAT_PLANNER_CIRCLE,    /* ops wait for each other in a circle */
    REMAT_PLANNER_INTERNAL   /* a mistake of the library; where it has no standard library, the program is told instead, see below */
};

/* Memory that is needed from time `begin` on until before `end`, in any unit of time. */
typedef struct {
    uint64_t size;
    uint64_t begin;
    uint64_t end;
} remat_buffer;

/* Offsets of `count` buffers in one block, each a multiple of `alignment`, such that no two share a byte at one time. `offsets` has room for `count`
 * numbers; `height`, which may be null, gets the size of the block. The height is the lowest one that is found. */
int remat_place(const remat_buffer *buffers, size_t count, uint64_t alignment, uint64_t effort, uint64_t *offsets, uint64_t *height);

/* The largest sum of sizes that are needed at one time, which no height is below. */
int remat_load(const remat_buffer *buffers, size_t count, uint64_t *load);

#define REMAT_PLANNER_INPUT UINT32_MAX

/* What an op makes. It takes its bytes from then on until its last reader has run, to the end where it stays, only while its op runs where nobody reads it.
 * An input of the graph has REMAT_PLANNER_INPUT as producer, and takes its bytes from the beginning. Weights, which are always there, are no values. */
typedef struct {
    uint64_t bytes;
    uint32_t producer;
    uint32_t stays; /* 0, or 1 for an output of the graph */
} remat_value;

/* `op` reads value `other`, or runs after op `other` for another reason. */
typedef struct {
    uint32_t op;
    uint32_t other;
} remat_pair;

/* A directed acyclic graph; ops and values are numbered from 0. Arrays without elements may be null. */
typedef struct {
    size_t op_count;
    const uint64_t *workspace; /* of each op, bytes that it takes while it runs; null where there is none */
    const remat_value *values;
    size_t value_count;
    const remat_pair *reads;
    size_t read_count;
    const remat_pair *after;
    size_t after_count;
} remat_dag;

/* An order of all ops with a low peak, the most bytes that are there at one time. `order` has room for `op_count` numbers. `peak` and `bound` may be
 * null; no order has a peak below `bound`, so where the two are the same there is no better one. */
int remat_order(const remat_dag *dag, uint64_t effort, uint32_t *order, uint64_t *peak, uint64_t *bound);

/* A library that is built without the standard library (`--no-default-features`) takes these from the program. */

/* `size` bytes, not 0, at a multiple of `alignment`, a power of two of at most 16; null where there are none: then the program is told. */
void *remat_planner_allocate(size_t size, size_t alignment);
/* Gives back what was allocated with this size and alignment. */
void remat_planner_release(void *pointer, size_t size, size_t alignment);
/* Memory is exhausted, or the library made a mistake. Must not return. */
void remat_planner_panic(void);

#ifdef __cplusplus
}
#endif
#endif
