/* Preloaded into a process, counts the bytes that malloc and its kin hand out: the live sum now, and its peak since the last
 * reset. Bytes are those the allocator set aside (malloc_usable_size), so blocks cost what they really take. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic long live, peak;

static void *taken(void *block) {
    if (block) {
        long now = atomic_fetch_add(&live, (long)malloc_usable_size(block)) + (long)malloc_usable_size(block);
        long seen = atomic_load(&peak);
        while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now)) {
        }
    }
    return block;
}

static void given_back(void *block) {
    if (block) atomic_fetch_sub(&live, (long)malloc_usable_size(block));
}

/* glibc's own names for the real functions: dlsym would itself allocate. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) { return taken(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = taken(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void *realloc(void *block, size_t size) {
    long before = block ? (long)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);
    if (moved || size == 0) atomic_fetch_sub(&live, before);
    return taken(moved);
}

void free(void *block) {
    given_back(block);
    __libc_free(block);
}

long heap_live(void) { return atomic_load(&live); }
long heap_peak(void) { return atomic_load(&peak); }
void heap_reset(void) { atomic_store(&peak, atomic_load(&live)); }
