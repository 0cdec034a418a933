/* Follows a schedule over one static array of exactly the block's size, and compares every result with that of a run in which each storage has
 * memory of its own and every op runs once. What a kernel computes depends on every byte that it reads, so that one byte that another storage
 * wrote over changes all that follows. */
#include <stdio.h>

#include "remat_schedule.h"

/* What is compiled into a device: the schedule, BLOCK, OPS, STORAGES, TOTAL and the tables of the network. */
#include "network.h"

#pragma GCC poison malloc calloc realloc free

static uint8_t block[BLOCK];       /* all that the schedule needs */
static uint8_t second[TOTAL];      /* the second memory */
static uint8_t reference[TOTAL];   /* each storage by itself */
static uint8_t expected[WORKSPACE]; /* the workspace of the other run */
static uint64_t where[STORAGES], duplicate[STORAGES];
static uint8_t is_there[STORAGES], is_twice[STORAGES];

static uint32_t mix(uint32_t sum, const uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * UINT32_C(16777619) + 1;
    return sum;
}

static void fill(uint8_t *bytes, uint64_t count, uint32_t seed) {
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* A number below 0 stands for an input or a weight. */
static uint32_t operands(uint32_t op, const uint8_t *memory, const uint64_t *place, int *missing) {
    uint32_t sum = op + 1;
    for (uint32_t i = reads_from[op]; i < reads_from[op + 1]; i++) {
        int32_t storage = reads[i];
        if (storage < 0) {
            sum = sum * 31 + (uint32_t)-storage;
        } else {
            *missing |= memory == block && !is_there[storage];
            sum = mix(sum, memory + place[storage], sizes[storage]);
        }
    }
    return sum;
}

/* The kernel writes all over its workspace first, then all results, and reads its operands again for each of them. */
static int run(uint32_t op, uint8_t *memory, const uint64_t *place, uint8_t *workspace) {
    int missing = 0;
    uint32_t sum = operands(op, memory, place, &missing);
    fill(workspace, workspaces[op], ~sum);
    for (uint32_t i = makes_from[op]; i < makes_from[op + 1]; i++) {
        uint32_t storage = makes[i];
        uint64_t to = memory == block && is_twice[storage] ? duplicate[storage] : place[storage];
        fill(memory + to, sizes[storage], sum + storage);
    }
    for (uint32_t i = makes_from[op]; i < makes_from[op + 1]; i++) {
        uint32_t storage = makes[i];
        if (memory != block) continue;
        uint64_t from = is_twice[storage] ? duplicate[storage] : place[storage];
        for (uint64_t byte = 0; byte < sizes[storage]; byte++)
            if (block[from + byte] != reference[starts[storage] + byte]) return 1;
        is_there[storage] = 1;
        is_twice[storage] = 0;
    }
    return missing || operands(op, memory, place, &missing) != sum;
}

static void move(uint8_t *to, const uint8_t *from, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) to[i] = from[i];
}

int main(void) {
    for (uint32_t op = 0; op < OPS; op++)
        if (run(op, reference, starts, expected)) return printf("the reference run fails at op %u\n", (unsigned)op), 1;
    remat_schedule schedule;
    if (remat_open(&schedule, schedule_bytes, sizeof schedule_bytes) != REMAT_OK) return printf("no schedule\n"), 1;
    if (schedule.block != BLOCK || schedule.ops != OPS || schedule.storages != STORAGES) return printf("another one\n"), 1;
    remat_step step;
    uint64_t workspace = 0;
    unsigned steps = 0, runs = 0, moves = 0;
    for (; remat_next(&schedule, &step); steps++) {
        uint8_t *here = block + (step.kind == REMAT_RUN || step.kind == REMAT_WORKSPACE ? 0 : where[step.id]);
        switch (step.kind) {
            case REMAT_PLACE: where[step.id] = step.offset; break;
            case REMAT_DUPLICATE: duplicate[step.id] = step.offset, is_twice[step.id] = 1; break;
            case REMAT_WORKSPACE: workspace = step.offset; break;
            case REMAT_RUN:
                if (run(step.id, block, where, block + workspace)) return printf("step %u: op %u\n", steps, (unsigned)step.id), 1;
                workspace = 0;
                runs++;
                break;
            case REMAT_PAGE_IN:
                move(here, second + starts[step.id], sizes[step.id]);
                is_there[step.id] = 1;
                moves++;
                break;
            case REMAT_PAGE_OUT: move(second + starts[step.id], here, sizes[step.id]); moves++; /* and it is given up */
            /* fall through */
            case REMAT_FREE: is_there[step.id] = 0; fill(here, sizes[step.id], steps); break;
        }
    }
    unsigned outputs = 0;
    for (uint32_t storage = 0; storage < STORAGES; storage++) {
        if (!stays[storage]) continue;
        if (!is_there[storage]) return printf("output %u is missing\n", (unsigned)storage), 1;
        for (uint64_t byte = 0; byte < sizes[storage]; byte++)
            if (block[where[storage] + byte] != reference[starts[storage] + byte]) return printf("output %u differs\n", (unsigned)storage), 1;
        outputs++;
    }
    return printf("%u runs, %u moves, %u outputs\n", runs, moves, outputs) < 0;
}
