/* Uses the runtime as lowered programs do, well (without argument) or badly. Exits with 0 if everything is as `RematRuntime.h` says. */

#include "Remat/RematRuntime.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("line %d: %s does not hold\n", __LINE__, #condition);                                                     \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { MIB = 1 << 20 };

static char buffer[MIB], other[MIB];

static intptr_t address(void *memory) { return (intptr_t)memory; }

static void fill(char *memory, char value) { memset(memory, value, MIB); }

/** Bytes that the file of pages takes on the disk. */
static long bytes_on_disk(void) {
  long bytes = -1;
  DIR *descriptors = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(descriptors));) {
    struct stat status;
    char path[512], target[512] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "remat-pages-") && stat(path, &status) == 0)
      bytes = status.st_blocks * 512L;
  }
  closedir(descriptors);
  return bytes;
}

static void pages_keep_what_was_written(void) {
  intptr_t first = remat_page_create(MIB), second = remat_page_create(MIB), empty = remat_page_create(0);
  CHECK(first && second && empty && first != second);
  fill(buffer, 1);
  remat_page_write(first, address(buffer), MIB);
  fill(buffer, 2);
  remat_page_write(second, address(buffer), MIB);
  remat_page_write(empty, address(buffer), 0);
  for (int again = 0; again < 2; ++again) {
    remat_page_read(first, address(other), MIB);
    CHECK(other[0] == 1 && other[MIB - 1] == 1);
    remat_page_read(second, address(other), MIB);
    CHECK(other[0] == 2 && other[MIB - 1] == 2);
  }
  remat_page_destroy(first);
  intptr_t third = remat_page_create(MIB);
  CHECK(third != first && third != second);
  fill(buffer, 3);
  remat_page_write(third, address(buffer), MIB);
  remat_page_read(second, address(other), MIB);
  CHECK(other[0] == 2 && other[MIB - 1] == 2);
  remat_page_destroy(second);
  remat_page_destroy(third);
  remat_page_destroy(empty);

  RematPageStatistics statistics;
  remat_page_statistics(&statistics);
  CHECK(statistics.pages == 0 && statistics.bytes == 0 && statistics.peak_bytes == 2 * MIB);
  CHECK(statistics.writes == 4 && statistics.written_bytes == 3 * MIB && statistics.reads == 5 &&
        statistics.read_bytes == 5 * MIB);
}

/** Every second element of every second row, and a transposed tensor. */
static void strided_tensors_lie_row_by_row(void) {
  int32_t tensor[4][6], back[2][3], transposed[6][4];
  for (int i = 0; i < 24; ++i)
    tensor[i / 6][i % 6] = i;
  intptr_t part = remat_page_create(sizeof back), all = remat_page_create(sizeof tensor);
  intptr_t part_layout[] = {2, 3, 12, 2};
  remat_page_write_strided(part, address(&tensor[1][1]), 4, 2, address(part_layout));
  remat_page_read(part, address(back), sizeof back);
  for (int i = 0; i < 6; ++i)
    CHECK(back[i / 3][i % 3] == tensor[1 + 2 * (i / 3)][1 + 2 * (i % 3)]);

  remat_page_write(all, address(tensor), sizeof tensor);
  /* Read into memory whose rows are the columns of the page: extents of the page, strides of the memory. */
  intptr_t transposed_layout[] = {4, 6, 1, 4};
  remat_page_read_strided(all, address(transposed), 4, 2, address(transposed_layout));
  for (int i = 0; i < 24; ++i)
    CHECK(transposed[i % 6][i / 6] == i);
  /* Contiguous, one element of rank 0, and none. */
  intptr_t contiguous[] = {4, 6, 6, 1}, none[] = {0, 6, 6, 1};
  remat_page_write_strided(all, address(transposed), 4, 2, address(contiguous));
  intptr_t scalar = remat_page_create(4), nothing = remat_page_create(0);
  remat_page_write_strided(scalar, address(&tensor[3][5]), 4, 0, 0);
  remat_page_read(scalar, address(back), 4);
  CHECK(back[0][0] == 23);
  remat_page_write_strided(nothing, address(tensor), 4, 2, address(none));
  remat_page_destroy(part);
  remat_page_destroy(all);
  remat_page_destroy(scalar);
  remat_page_destroy(nothing);
}

static void space_comes_back_and_the_heap_is_left_alone(void) {
  /* The first page opens the file. */
  remat_page_destroy(remat_page_create(1));
  struct mallinfo2 before = mallinfo2();
  intptr_t kept = remat_page_create(MIB);
  fill(buffer, 9);
  remat_page_write(kept, address(buffer), MIB);
  for (int i = 0; i < 64; ++i) {
    intptr_t page = remat_page_create(MIB);
    remat_page_write(page, address(buffer), MIB);
    remat_page_destroy(page);
  }
  struct mallinfo2 after = mallinfo2();
  CHECK(after.uordblks == before.uordblks && after.hblkhd == before.hblkhd);
  CHECK(bytes_on_disk() >= MIB && bytes_on_disk() < 3 * MIB);
  remat_page_read(kept, address(other), MIB);
  CHECK(other[MIB / 2] == 9);
  remat_page_destroy(kept);
  CHECK(bytes_on_disk() == 0);
}

int main(int count, char **arguments) {
  if (count == 1) {
    pages_keep_what_was_written();
    strided_tensors_lie_row_by_row();
    space_comes_back_and_the_heap_is_left_alone();
    return 0;
  }
  intptr_t page = remat_page_create(8);
  const char *what = arguments[1];
  if (!strcmp(what, "stale") || !strcmp(what, "twice")) {
    remat_page_destroy(page);
    if (!strcmp(what, "twice"))
      remat_page_destroy(page);
    /* Takes the same slot. */
    remat_page_create(8);
    remat_page_write(page, address(buffer), 8);
  } else if (!strcmp(what, "size")) {
    remat_page_write(page, address(buffer), 9);
  } else if (!strcmp(what, "unwritten")) {
    remat_page_read(page, address(buffer), 8);
  } else if (!strcmp(what, "negative")) {
    remat_page_create(-1);
  }
  return 0;
}
