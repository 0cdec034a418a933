/* Runs a network whole, each storage in memory of its own, then as its program says, in tiles over one static array, and compares the results bit by
 * bit. Input and block share the memory of the device; weights lie in its flash. */
#include <stdio.h>
#include <string.h>

#include "remat_schedule.h"

enum place { NOWHERE, FROM_INPUT, IN_FLASH, IN_MEMORY };
enum kind { VIEW, CONV, CLIP, ADD, GLOBALAVERAGEPOOL, GEMM, SLICE, CONCAT };

typedef struct { uint32_t dims[4]; enum place place; uint32_t at; } tensor;
typedef struct { enum kind kind; uint32_t first, count, result; int stride, top, left, group, axis, start; } op;

/* What is compiled into the device. */
#include "network.h"

#pragma GCC poison malloc calloc realloc free

/* All memory that the network has: more would not compile. */
static struct { float input[INPUT]; float block[BLOCK]; } ram;
typedef char it_fits[sizeof ram <= MEMORY ? 1 : -1];

static float flash[WEIGHTS];
static float reference[WHOLE];
static uint32_t where[STORAGES];

/* A network, and where its storages lie in which memory. */
typedef struct { const tensor *tensors; const uint32_t *operands; float *memory; const uint32_t *starts; } network;

static float *data(const network *net, const tensor *t) {
    switch (t->place) {
        case FROM_INPUT: return ram.input;
        case IN_FLASH: return flash + t->at;
        default: return net->memory + net->starts[t->at];
    }
}

static uint32_t elements(const tensor *t) { return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; }

static void conv(const op *o, const tensor *to, float *y, const tensor *from, const float *x, const tensor *kernel, const float *w, const float *b) {
    const int height = (int)from->dims[2], width = (int)from->dims[3], kh = (int)kernel->dims[2], kw = (int)kernel->dims[3];
    const uint32_t inside = kernel->dims[1], each = to->dims[1] / (uint32_t)o->group;
    for (uint32_t m = 0; m < to->dims[1]; m++)
        for (int row = 0; row < (int)to->dims[2]; row++)
            for (int column = 0; column < (int)to->dims[3]; column++) {
                float sum = b[m];
                for (uint32_t c = 0; c < inside; c++)
                    for (int i = 0; i < kh; i++)
                        for (int j = 0; j < kw; j++) {
                            int h = row * o->stride + i - o->top, v = column * o->stride + j - o->left;
                            if (h < 0 || h >= height || v < 0 || v >= width) continue;
                            sum += x[((int)(m / each * inside + c) * height + h) * width + v] * w[((int)(m * inside + c) * kh + i) * kw + j];
                        }
                *y++ = sum;
            }
}

/* Copies `from` into the rows of `to` that begin at `start` of an axis, or out of them. */
static void rows(const tensor *all, float *whole, const tensor *part, float *own, int axis, uint32_t start, int out) {
    uint32_t at[4];
    for (at[0] = 0; at[0] < part->dims[0]; at[0]++)
        for (at[1] = 0; at[1] < part->dims[1]; at[1]++)
            for (at[2] = 0; at[2] < part->dims[2]; at[2]++)
                for (at[3] = 0; at[3] < part->dims[3]; at[3]++) {
                    uint32_t place = 0;
                    for (int i = 0; i < 4; i++) place = place * all->dims[i] + at[i] + (i == axis ? start : 0);
                    if (out) *own++ = whole[place];
                    else whole[place] = *own++;
                }
}

static void run(const network *net, const op *o) {
    const tensor *to = net->tensors + o->result, *from[16];
    float *y = data(net, to), *x[16];
    for (uint32_t i = 0; i < o->count && i < 16; i++) {
        from[i] = net->tensors + net->operands[o->first + i];
        x[i] = from[i]->place == NOWHERE ? 0 : data(net, from[i]);
    }
    uint32_t start = 0;
    switch (o->kind) {
        case VIEW: break;
        case CONV: conv(o, to, y, from[0], x[0], from[1], x[1], x[2]); break;
        case CLIP:
            for (uint32_t i = 0; i < elements(to); i++) y[i] = x[0][i] < 0.0f ? 0.0f : x[0][i] > 6.0f ? 6.0f : x[0][i];
            break;
        case ADD:
            for (uint32_t i = 0; i < elements(to); i++) y[i] = x[0][i] + x[1][i];
            break;
        case GLOBALAVERAGEPOOL: {
            const uint32_t pixels = from[0]->dims[2] * from[0]->dims[3];
            for (uint32_t c = 0; c < to->dims[1]; c++) {
                float sum = 0.0f;
                for (uint32_t i = 0; i < pixels; i++) sum += x[0][c * pixels + i];
                y[c] = sum / (float)pixels;
            }
            break;
        }
        case GEMM:
            for (uint32_t n = 0; n < to->dims[1]; n++) {
                float sum = x[2][n];
                for (uint32_t k = 0; k < from[0]->dims[1]; k++) sum += x[0][k] * x[1][k * to->dims[1] + n];
                y[n] = sum;
            }
            break;
        case SLICE: rows(from[0], x[0], to, y, o->axis, (uint32_t)o->start, 1); break;
        case CONCAT:
            for (uint32_t i = 0; i < o->count && i < 16; i++) {
                rows(to, y, from[i], x[i], o->axis, start, 0);
                start += from[i]->dims[o->axis];
            }
            break;
    }
}

static void fill(float *numbers, uint32_t count, uint32_t seed) {
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
        numbers[i] = ((float)(seed >> 8) / 16777216.0f - 0.5f) / 2.0f;
    }
}

int main(void) {
    (void)sizeof(it_fits);
    fill(ram.input, INPUT, 1);
    fill(flash, WEIGHTS, 2);
    const network whole = {whole_tensors, whole_operands, reference, whole_starts};
    for (uint32_t i = 0; i < WHOLE_OPS; i++) run(&whole, whole_ops + i);

    const network tiled = {tiled_tensors, tiled_operands, ram.block, where};
    remat_schedule schedule;
    remat_step step;
    uint32_t runs = 0;
    if (remat_open(&schedule, program, sizeof program) != REMAT_OK) return printf("no program\n"), 1;
    if (schedule.ops != OPS || schedule.storages != STORAGES || schedule.block != 4 * BLOCK) return printf("another one\n"), 1;
    while (remat_next(&schedule, &step)) {
        if (step.kind == REMAT_PLACE) where[step.id] = (uint32_t)(step.offset / 4);
        /* What is freed becomes numbers that are none, so that nobody reads it unseen. */
        else if (step.kind == REMAT_FREE) memset(ram.block + where[step.id], 0xff, 4 * sizes[step.id]);
        else if (step.kind == REMAT_RUN) run(&tiled, tiled_ops + step.id), runs++;
        else return printf("no kernel needs that\n"), 1;
    }
    const tensor *before = whole_tensors + whole_ops[WHOLE_OPS - 1].result, *after = tiled_tensors + tiled_ops[OPS - 1].result;
    const float *expected = data(&whole, before), *found = data(&tiled, after);
    for (uint32_t i = 0; i < elements(before); i++) {
        if (memcmp(expected + i, found + i, sizeof *found) != 0) return printf("number %u: %g, not %g\n", (unsigned)i, found[i], expected[i]), 1;
        if (i > 0 && expected[i] == expected[i - 1]) return printf("all the same\n"), 1;
    }
    return printf("%u ops, %u numbers\n", (unsigned)runs, (unsigned)elements(before)) < 0;
}
