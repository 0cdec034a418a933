/*===- RematRuntime.h - what lowered pages call -------------------*- C -*-===*/
/*
 * The functions that `remat-lower-pages` puts calls of into programs. `libremat_runtime.so` keeps pages in a file; a target with another
 * second memory (flash, host memory behind a bus) defines them itself.
 *
 * Arguments have the width of a pointer, as `index` has. Transfers are over when a function returns. There is nobody to report errors to
 * in a compiled program: what cannot be done ends the process with a message.
 */

#ifndef REMAT_REMATRUNTIME_H
#define REMAT_REMATRUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A page of so many bytes. The handle is not 0, nor the address of a buffer. The contents are undefined until they are written. */
intptr_t remat_page_create(intptr_t bytes);

/** Gives a page up. */
void remat_page_destroy(intptr_t page);

/** Copies a contiguous tensor, all of the page, into it. */
void remat_page_write(intptr_t page, intptr_t memory, intptr_t bytes);

/** Copies the page into a contiguous tensor. */
void remat_page_read(intptr_t page, intptr_t memory, intptr_t bytes);

/**
 * The same for tensors that are not contiguous: `layout` points to `rank` extents and then `rank` strides, in elements, the outermost
 * dimension first; `memory` to the element at the origin. In the page the elements lie row by row.
 */
void remat_page_write_strided(intptr_t page, intptr_t memory, intptr_t element_bytes, intptr_t rank, intptr_t layout);
void remat_page_read_strided(intptr_t page, intptr_t memory, intptr_t element_bytes, intptr_t rank, intptr_t layout);

/** What happened in this process so far. */
typedef struct RematPageStatistics {
  /** Pages that there are now, and their bytes. */
  uint64_t pages, bytes;
  /** The most bytes that there were at once. */
  uint64_t peak_bytes;
  /** How many transfers there were in each direction, and the bytes they moved. */
  uint64_t writes, written_bytes, reads, read_bytes;
} RematPageStatistics;

/** Only in `libremat_runtime.so`. */
void remat_page_statistics(RematPageStatistics *statistics);

#ifdef __cplusplus
}
#endif

#endif /* REMAT_REMATRUNTIME_H */
