/* Buffers through ggml's allocator of graphs: reads `begin end size` of each, prints the offsets. Its functions are static, hence the source file. */
#include "ggml-alloc.c"

#include <stdio.h>
#include <stdlib.h>

/* What ggml says and how it ends are elsewhere in it. */
void ggml_abort(const char *file, int line, const char *format, ...) {
    fprintf(stderr, "%s:%d: %s\n", file, line, format);
    exit(4);
}

void ggml_log_internal(enum ggml_log_level level, const char *format, ...) {
    (void)level;
    fputs(format, stderr);
}

struct event {
    long long time;
    int begins, buffer;
};

static int compare(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins) return x->begins - y->begins;
    return x->buffer - y->buffer;
}

int main(void) {
    int count;
    if (scanf("%d", &count) != 1) return 2;
    struct event *events = calloc(2 * (size_t)count + 1, sizeof *events);
    size_t *sizes = calloc((size_t)count + 1, sizeof *sizes);
    struct buffer_address *addresses = calloc((size_t)count + 1, sizeof *addresses);
    for (int i = 0; i < count; i++) {
        long long begin, end, size;
        if (scanf("%lld %lld %lld", &begin, &end, &size) != 3) return 2;
        sizes[i] = (size_t)size;
        events[2 * i] = (struct event){begin, 1, i};
        events[2 * i + 1] = (struct event){end, 0, i};
    }
    qsort(events, 2 * (size_t)count, sizeof *events, compare);
    struct ggml_dyn_tallocr *allocator = ggml_dyn_tallocr_new(16, SIZE_MAX / 2);
    for (int i = 0; i < 2 * count; i++) {
        int buffer = events[i].buffer;
        if (events[i].begins) addresses[buffer] = ggml_dyn_tallocr_alloc(allocator, sizes[buffer], NULL);
        else ggml_dyn_tallocr_free_bytes(allocator, addresses[buffer], sizes[buffer]);
    }
    for (int i = 0; i < count; i++) {
        if (addresses[i].chunk != 0) return 3;
        printf("%zu\n", addresses[i].offset);
    }
    return 0;
}
