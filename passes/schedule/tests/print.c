/* Prints each schedule of standard input, which a length of four bytes precedes, on a line. */
#include <stdio.h>
#include <stdlib.h>

#include "remat_schedule.h"

static int print(const uint8_t *data, size_t bytes) {
    static const char *const names[] = {"run", "free", "out", "in", "place", "duplicate", "workspace"};
    remat_schedule schedule;
    enum remat_result result = remat_open(&schedule, data, bytes);
    if (result != REMAT_OK) return printf("error %d\n", (int)result);
    printf("%u %u %llu %llu block %llu %llu %llu sizes", (unsigned)schedule.ops, (unsigned)schedule.storages,
           (unsigned long long)schedule.peak, (unsigned long long)schedule.second_peak,
           (unsigned long long)schedule.block, (unsigned long long)schedule.alignment,
           (unsigned long long)schedule.outputs);
    uint64_t *sizes = calloc(schedule.storages + 1, sizeof *sizes);
    if (!sizes) abort();
    remat_sizes(&schedule, sizes, schedule.storages);
    for (uint32_t i = 0; i < schedule.storages; i++) printf(" %llu", (unsigned long long)sizes[i]);
    free(sizes);
    printf(" steps");
    remat_step step;
    while (remat_next(&schedule, &step)) {
        printf(" %s %u", names[step.kind], (unsigned)step.id);
        if (step.kind >= REMAT_PLACE) printf(" at %llu", (unsigned long long)step.offset);
    }
    return printf("\n");
}

int main(void) {
    uint8_t length[4];
    while (fread(length, 1, 4, stdin) == 4) {
        size_t bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
        /* Exactly as many bytes as there are, so that a read behind them is found. */
        uint8_t *data = malloc(bytes ? bytes : 1);
        if (!data || fread(data, 1, bytes, stdin) != bytes) return 1;
        print(data, bytes);
        free(data);
    }
    return 0;
}
