/* A CUDA runtime without a device: memory is that of the processor, up to a limit, and all calls are counted. For tests. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST = 1 << 16, DEVICES = 2, INVALID_VALUE = 1, NO_MEMORY = 2, INVALID_DEVICE = 101 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { void *address; size_t bytes; int device; } taken[MOST];
static size_t limit = (size_t)64 << 30;
static __thread int device;
static __thread int last;

/* mallocs, frees, bytes now, most bytes, wrong frees, waits, failed mallocs, bytes of the second device */
static uint64_t counts[8];

static int error(int code) {
    last = code;
    return code;
}

int cudaMalloc(void **address, size_t bytes) {
    /* The block is never touched: pages that nobody writes take no memory. */
    void *found = NULL;
    int at = 0;
    pthread_mutex_lock(&lock);
    while (at < MOST && taken[at].address != NULL) at++;
    if (at == MOST || counts[2] + bytes > limit || posix_memalign(&found, 256, bytes) != 0) {
        counts[6]++;
        pthread_mutex_unlock(&lock);
        return error(NO_MEMORY);
    }
    taken[at].address = found;
    taken[at].bytes = bytes;
    taken[at].device = device;
    counts[0]++;
    counts[2] += bytes;
    counts[7] += device == 1 ? bytes : 0;
    if (counts[2] > counts[3]) counts[3] = counts[2];
    pthread_mutex_unlock(&lock);
    *address = found;
    return 0;
}

int cudaFree(void *address) {
    int at = 0;
    if (address == NULL) return 0;
    pthread_mutex_lock(&lock);
    while (at < MOST && taken[at].address != address) at++;
    if (at == MOST) {
        counts[4]++;
        pthread_mutex_unlock(&lock);
        return error(INVALID_VALUE);
    }
    counts[1]++;
    counts[2] -= taken[at].bytes;
    counts[7] -= taken[at].device == 1 ? taken[at].bytes : 0;
    taken[at].address = NULL;
    pthread_mutex_unlock(&lock);
    free(address);
    return 0;
}

int cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    pthread_mutex_lock(&lock);
    *free_bytes = limit - counts[2];
    *total = limit;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cudaGetDevice(int *number) {
    *number = device;
    return 0;
}

int cudaSetDevice(int number) {
    if (number < 0 || number >= DEVICES) return error(INVALID_DEVICE);
    device = number;
    return 0;
}

int cudaDeviceSynchronize(void) {
    pthread_mutex_lock(&lock);
    counts[5]++;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cudaGetLastError(void) {
    int code = last;
    last = 0;
    return code;
}

const char *cudaGetErrorString(int code) {
    switch (code) {
    case 0: return "no error";
    case NO_MEMORY: return "out of memory";
    case INVALID_DEVICE: return "invalid device ordinal";
    default: return "invalid argument";
    }
}

void fake_limit(size_t bytes) {
    pthread_mutex_lock(&lock);
    limit = bytes;
    pthread_mutex_unlock(&lock);
}

void fake_counts(uint64_t *out) {
    int at;
    pthread_mutex_lock(&lock);
    for (at = 0; at < 8; at++) out[at] = counts[at];
    pthread_mutex_unlock(&lock);
}
