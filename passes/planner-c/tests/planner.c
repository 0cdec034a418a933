/* Calls every function of the planner's interface in C, and checks what it says. With COUNTED it brings the allocator. */
#include "remat_planner.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef COUNTED
static size_t taken, most;

void *remat_planner_allocate(size_t size, size_t alignment) {
    /* What was allocated stands before it, for any alignment. */
    char *all, *result;
    if (alignment > 16 || !(all = malloc(size + 2 * 16))) return NULL;
    result = all + 16 + (16 - (size_t)all % 16) % 16;
    ((void **)result)[-1] = all;
    taken += size;
    most = taken > most ? taken : most;
    return result;
}

void remat_planner_release(void *pointer, size_t size, size_t alignment) {
    (void)alignment;
    taken -= size;
    free(((void **)pointer)[-1]);
}

/* Core libraries of systems that unwind name it; nothing unwinds here. */
void rust_eh_personality(void) {}

void remat_planner_panic(void) {
    fputs("the library made a mistake\n", stderr);
    abort();
}
#endif

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* Every two buffers that are needed at one time are apart, aligned and below the height. */
static void judge(const remat_buffer *buffers, const uint64_t *offsets, size_t count, uint64_t alignment, uint64_t height) {
    for (size_t i = 0; i < count; i++) {
        CHECK(offsets[i] % alignment == 0 && offsets[i] + buffers[i].size <= height);
        for (size_t j = 0; j < i; j++) {
            int meet = buffers[i].begin < buffers[j].end && buffers[j].begin < buffers[i].end;
            int apart = offsets[i] + buffers[i].size <= offsets[j] || offsets[j] + buffers[j].size <= offsets[i];
            CHECK(!meet || apart);
        }
    }
}

static void place_some(void) {
    /* The load is 4, and 5 the least height. */
    remat_buffer buffers[] = {{1, 4, 6}, {2, 8, 13}, {2, 6, 9}, {2, 1, 5}, {1, 4, 8}, {2, 0, 4}, {1, 5, 7}};
    uint64_t offsets[7], height = 0, load = 0;
    CHECK(remat_load(buffers, 7, &load) == REMAT_PLANNER_OK);
    CHECK(remat_place(buffers, 7, 1, 100000, offsets, &height) == REMAT_PLANNER_OK);
    judge(buffers, offsets, 7, 1, height);
    printf("small: load %u, height %u\n", (unsigned)load, (unsigned)height);
    CHECK(remat_place(buffers, 7, 64, 0, offsets, &height) == REMAT_PLANNER_OK);
    judge(buffers, offsets, 7, 64, height);
    CHECK(remat_place(buffers, 7, 1, 10, offsets, NULL) == REMAT_PLANNER_OK);
    CHECK(remat_place(NULL, 0, 1, 10, NULL, &height) == REMAT_PLANNER_OK && height == 0);
}

/* A deep search: it must not depend on the stack. */
static void place_many(void) {
    enum { COUNT = 3000 };
    static remat_buffer buffers[COUNT];
    static uint64_t offsets[COUNT];
    uint64_t state = 1, height, load;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        buffers[i].size = 64 * (1 + (state >> 33) % 5000);
        buffers[i].begin = i;
        buffers[i].end = i + 1 + (state >> 50) % 60;
    }
    CHECK(remat_load(buffers, COUNT, &load) == REMAT_PLANNER_OK);
    CHECK(remat_place(buffers, COUNT, 64, 5000, offsets, &height) == REMAT_PLANNER_OK);
    judge(buffers, offsets, COUNT, 64, height);
    CHECK(height >= load);
}

static void order_some(void) {
    /* Two branches: 20 and then 2 bytes, 30 and then 3; they meet. The higher hill runs first. */
    remat_value values[] = {{20, 0, 0}, {2, 1, 0}, {30, 2, 0}, {3, 3, 0}, {1, 4, 1}};
    remat_pair reads[] = {{1, 0}, {3, 2}, {4, 1}, {4, 3}};
    remat_dag dag = {5, NULL, values, 5, reads, 4, NULL, 0};
    uint32_t order[5];
    uint64_t peak = 0, bound = 0;
    CHECK(remat_order(&dag, 1000, order, &peak, &bound) == REMAT_PLANNER_OK);
    printf("order %u %u %u %u %u, peak %u, bound %u\n", order[0], order[1], order[2], order[3], order[4], (unsigned)peak, (unsigned)bound);
    remat_pair after[] = {{2, 1}};
    dag.after = after;
    dag.after_count = 1;
    CHECK(remat_order(&dag, 1000, order, &peak, NULL) == REMAT_PLANNER_OK && peak == 35 && order[0] == 0);
    uint64_t workspace[] = {0, 0, 0, 0, 100};
    dag.workspace = workspace;
    CHECK(remat_order(&dag, 1000, order, &peak, &bound) == REMAT_PLANNER_OK && peak == 106 && bound == 106);
}

static void refuse_what_is_wrong(void) {
    remat_buffer buffers[] = {{8, 0, 2}, {8, 3, 3}};
    uint64_t offsets[2] = {7, 7}, height = 7;
    CHECK(remat_place(buffers, 2, 1, 1, offsets, &height) == REMAT_PLANNER_LIFETIME);
    CHECK(remat_load(buffers, 2, &height) == REMAT_PLANNER_LIFETIME);
    CHECK(remat_place(buffers, 1, 0, 1, offsets, &height) == REMAT_PLANNER_ALIGNMENT);
    CHECK(remat_place(NULL, 1, 1, 1, offsets, &height) == REMAT_PLANNER_POINTER);
    CHECK(remat_place(buffers, 1, 1, 1, NULL, &height) == REMAT_PLANNER_POINTER);
    CHECK(remat_place(buffers, SIZE_MAX, 1, 1, offsets, &height) == REMAT_PLANNER_POINTER);
    buffers[0].size = UINT64_MAX;
    CHECK(remat_place(buffers, 1, 1, 1, offsets, &height) == REMAT_PLANNER_TOO_LARGE);
    CHECK(offsets[0] == 7 && height == 7);

    remat_value value = {8, 0, 0};
    remat_pair pairs[] = {{0, 0}, {9, 0}, {0, 9}};
    remat_dag dag = {2, NULL, &value, 1, pairs, 1, NULL, 0};
    uint32_t order[2] = {7, 7};
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_CIRCLE);
    dag.reads = pairs + 1;
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_NUMBER);
    dag.reads = pairs + 2;
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_NUMBER);
    dag.reads = NULL;
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_POINTER);
    dag.read_count = 0;
    value.bytes = UINT64_MAX;
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_TOO_LARGE);
    dag.op_count = (size_t)UINT32_MAX;
    CHECK(remat_order(&dag, 1, order, NULL, NULL) == REMAT_PLANNER_TOO_MANY);
    CHECK(remat_order(NULL, 1, order, NULL, NULL) == REMAT_PLANNER_POINTER);
    CHECK(order[0] == 7);
}

int main(void) {
    place_some();
    place_many();
    order_some();
    refuse_what_is_wrong();
#ifdef COUNTED
    CHECK(taken == 0 && most > 0);
#endif
    puts("done");
    return 0;
}
