/*===- PageFile.c - pages in a file ---------------------------------------===*/
/*
 * One unlinked file holds all pages, in the folder $REMAT_PAGE_DIR, else $TMPDIR, else /tmp. (A folder in memory, as /tmp is on some
 * systems, saves nothing.) A page lies at an offset that no page has had before, and a hole is punched where it was released: files are
 * sparse, so the file system does the work of an allocator. Where it knows no holes, the file is cut when the last page goes.
 *
 * Nothing here is allocated on the heap, whose peak is what programs with pages promise: the table of pages is mapped.
 */

#define _GNU_SOURCE
#include "Remat/RematRuntime.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/**
 * A handle is a mark, the generation of its slot, and the number of the slot. The generation tells a stale handle; the mark makes it the
 * address of nothing, as programs compare handles with addresses of buffers where they find out who owns what.
 */
#define SLOT_BITS 24
#define SLOTS ((uint64_t)1 << SLOT_BITS)
#define MARK ((uint64_t)1 << 62)

typedef struct Slot {
  /** Odd while the slot holds a page. */
  uint64_t generation;
  uint64_t bytes;
  off_t offset;
  /** The next free slot, while it holds none. */
  uint64_t next_free;
} Slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
/** Address space for all slots; the system gives memory to those that are touched. */
static Slot *slots;
/** Slots that were ever taken, and the first free one among them; SLOTS if there is none. */
static uint64_t used_slots, free_slot = SLOTS;
static off_t end_of_file;
static RematPageStatistics statistics;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  /* stderr has no buffer, so this takes nothing from the heap. */
  fprintf(stderr, "remat runtime: %s\n", message);
  abort();
}

/*===----------------------------------------------------------------------===*/
/* File and table                                                             */
/*===----------------------------------------------------------------------===*/

static void open_once(void) {
  if (file >= 0)
    return;
  const char *folder = getenv("REMAT_PAGE_DIR");
  if (!folder || !*folder)
    folder = getenv("TMPDIR");
  if (!folder || !*folder)
    folder = "/tmp";
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/remat-pages-XXXXXX", folder);
  if (length < 0 || (size_t)length >= sizeof path)
    die("the path of the folder for pages is too long: `%s`", folder);
  file = mkostemp(path, O_CLOEXEC);
  if (file < 0)
    die("cannot make a file for pages in `%s`: %s", folder, strerror(errno));
  unlink(path);
  void *table =
      mmap(NULL, SLOTS * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED)
    die("cannot map the table of pages: %s", strerror(errno));
  slots = table;
}

/** The slot of a handle. The lock is held. */
static Slot *slot_of(intptr_t page) {
  uint64_t handle = (uint64_t)page, number = handle & (SLOTS - 1), generation = (handle ^ MARK) >> SLOT_BITS;
  if (number >= used_slots || slots[number].generation != generation || generation % 2 == 0)
    die("`%#jx` is no page, or one that was released", (uintmax_t)handle);
  return &slots[number];
}

intptr_t remat_page_create(intptr_t bytes) {
  if (bytes < 0)
    die("a page of %jd bytes", (intmax_t)bytes);
  pthread_mutex_lock(&lock);
  open_once();
  uint64_t number = free_slot;
  if (number != SLOTS)
    free_slot = slots[number].next_free;
  else if (used_slots < SLOTS)
    number = used_slots++;
  else
    die("more than %ju pages at once", (uintmax_t)SLOTS);
  Slot *slot = &slots[number];
  if (__builtin_add_overflow(end_of_file, (off_t)bytes, &end_of_file))
    die("the file of pages is too large");
  *slot = (Slot){.generation = slot->generation + 1, .bytes = (uint64_t)bytes, .offset = end_of_file - (off_t)bytes};
  statistics.pages += 1;
  statistics.bytes += slot->bytes;
  if (statistics.bytes > statistics.peak_bytes)
    statistics.peak_bytes = statistics.bytes;
  intptr_t handle = (intptr_t)(MARK | slot->generation << SLOT_BITS | number);
  pthread_mutex_unlock(&lock);
  return handle;
}

void remat_page_destroy(intptr_t page) {
  pthread_mutex_lock(&lock);
  Slot *slot = slot_of(page);
  statistics.pages -= 1;
  statistics.bytes -= slot->bytes;
  /* Both give space back; a file system that cannot is no error. */
  int ignored;
  if (statistics.pages == 0) {
    ignored = ftruncate(file, 0);
    end_of_file = 0;
  } else {
    ignored =
        slot->bytes ? fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, slot->offset, (off_t)slot->bytes) : 0;
  }
  (void)ignored;
  slot->generation += 1;
  slot->next_free = free_slot;
  free_slot = (uint64_t)(slot - slots);
  pthread_mutex_unlock(&lock);
}

void remat_page_statistics(RematPageStatistics *out) {
  pthread_mutex_lock(&lock);
  *out = statistics;
  pthread_mutex_unlock(&lock);
}

/*===----------------------------------------------------------------------===*/
/* Transfers                                                                  */
/*===----------------------------------------------------------------------===*/

typedef enum Direction { PAGE_WRITE, PAGE_READ } Direction;

/** Moves all bytes, however many the system takes at a time. */
static void transfer(Direction direction, char *memory, size_t bytes, off_t offset) {
  while (bytes) {
    ssize_t moved = direction == PAGE_WRITE ? pwrite(file, memory, bytes, offset) : pread(file, memory, bytes, offset);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      die("cannot %s %zu bytes of a page: %s", direction == PAGE_WRITE ? "write" : "read", bytes,
          moved < 0 ? strerror(errno) : "they were never written");
    memory += moved;
    offset += moved;
    bytes -= (size_t)moved;
  }
}

/** Where the page lies, after a check that the transfer is as large as the page is. */
static off_t begin(Direction direction, intptr_t page, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  Slot *slot = slot_of(page);
  if (slot->bytes != bytes)
    die("a transfer of %ju bytes for a page of %ju", (uintmax_t)bytes, (uintmax_t)slot->bytes);
  if (direction == PAGE_WRITE) {
    statistics.writes += 1;
    statistics.written_bytes += bytes;
  } else {
    statistics.reads += 1;
    statistics.read_bytes += bytes;
  }
  off_t offset = slot->offset;
  pthread_mutex_unlock(&lock);
  return offset;
}

void remat_page_write(intptr_t page, intptr_t memory, intptr_t bytes) {
  transfer(PAGE_WRITE, (char *)memory, (size_t)bytes, begin(PAGE_WRITE, page, (uint64_t)bytes));
}

void remat_page_read(intptr_t page, intptr_t memory, intptr_t bytes) {
  transfer(PAGE_READ, (char *)memory, (size_t)bytes, begin(PAGE_READ, page, (uint64_t)bytes));
}

/** Moves the elements of the given dimensions, and returns the offset behind them in the page. */
static off_t transfer_strided(Direction direction, char *memory, size_t element, intptr_t rank, const intptr_t *extents,
                              const intptr_t *strides, off_t offset) {
  /* Dimensions that are contiguous move at once. */
  size_t run = element;
  intptr_t inner = rank;
  while (inner > 0 && (extents[inner - 1] == 1 || strides[inner - 1] * (intptr_t)element == (intptr_t)run)) {
    run *= (size_t)extents[inner - 1];
    --inner;
  }
  if (inner == 0) {
    transfer(direction, memory, run, offset);
    return offset + (off_t)run;
  }
  for (intptr_t i = 0; i < extents[0]; ++i)
    offset = transfer_strided(direction, memory + i * strides[0] * (intptr_t)element, element, rank - 1, extents + 1,
                              strides + 1, offset);
  return offset;
}

static void begin_strided(Direction direction, intptr_t page, intptr_t memory, intptr_t element, intptr_t rank,
                          const intptr_t *layout) {
  uint64_t bytes = (uint64_t)element;
  for (intptr_t i = 0; i < rank; ++i)
    bytes *= (uint64_t)layout[i];
  off_t offset = begin(direction, page, bytes);
  if (bytes)
    transfer_strided(direction, (char *)memory, (size_t)element, rank, layout, layout + rank, offset);
}

void remat_page_write_strided(intptr_t page, intptr_t memory, intptr_t element_bytes, intptr_t rank, intptr_t layout) {
  begin_strided(PAGE_WRITE, page, memory, element_bytes, rank, (const intptr_t *)layout);
}

void remat_page_read_strided(intptr_t page, intptr_t memory, intptr_t element_bytes, intptr_t rank, intptr_t layout) {
  begin_strided(PAGE_READ, page, memory, element_bytes, rank, (const intptr_t *)layout);
}
