/* Prints what the header says: the size of the figures, and what the library writes of them before any session is there. */
#include "remat_arena.h"

#include <stdio.h>
#include <string.h>

int main(void) {
    remat_arena_figures figures;
    memset(&figures, 0xff, sizeof figures);
    size_t written = remat_arena_stats(-1, &figures, sizeof figures);
    printf("%zu %zu %zu\n", sizeof figures, written, remat_arena_stats(0, &figures, sizeof figures));
    return figures.runs == 0 && figures.block_bytes == 0 ? 0 : 1;
}
