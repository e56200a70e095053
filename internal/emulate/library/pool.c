// The driver's pools, behind cudaMallocAsync and PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync.
//
// A pool takes memory from the driver in chunks and keeps it until it is trimmed, as far as its threshold says; PyTorch asks
// for all of it to be kept (c10/cuda/CUDAMallocAsyncAllocator.cpp, lazy_init_device), and trims when its cache is emptied. PyTorch's
// statistics are the pool's attributes.
//
// How a pool places allocations is not documented. On an H200 (driver 580) three programs showed (one is testdata/h200/pool_sizes.py): chunks are of
// 32 MiB and follow one another, an allocation may span several, and a chunk is given back if nothing is in it. What is in use counts as it
// was asked for. The smallest sufficient gap is taken, of equal ones the highest; if there is none, chunks are added where the lowest gap
// begins. All but two of the figures of what is reserved are exact then, and those are a chunk too small.
#include "emulate.h"
#include "abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (32 * MIB)
#define ROUND 512
#define CHUNKS (POOL_SPAN / CHUNK)
#define NOWHERE UINT64_MAX

// of cudaMemPoolAttr
enum { REUSE_LAST = 3, RELEASE_THRESHOLD = 4, RESERVED_NOW = 5, RESERVED_HIGH = 6, USED_NOW = 7, USED_HIGH = 8 };

struct block { uint64_t at, bytes; }; // at: from the base

static struct pool {
	char *base;
	struct block *blocks; // by address
	int n, space;
	unsigned char has[CHUNKS]; // which chunks have memory
	uint64_t used, used_high, reserved, reserved_high, threshold;
} pools[MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// A pool's handle is not 0 and tells its device.
static handle handle_of(int device) { return (handle)(uintptr_t)(64 + device); }
static struct pool *pool_of(handle h) { return &pools[((uintptr_t)h - 64) % MAX_DEVICES]; }

static uint64_t up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }
static uint64_t end_of(const struct block *b) { return b->at + up(b->bytes, ROUND); }

// narrow finds the narrowest stretch with memory in a gap that is wide enough, if it is not wider than the best so far.
static void narrow(const struct pool *p, uint64_t from, uint64_t to, uint64_t n, uint64_t *best, uint64_t *width) {
	while (from < to) {
		uint64_t end = from;
		while (end < to && p->has[end / CHUNK]) end = up(end + 1, CHUNK);
		if (end > to) end = to;
		if (end - from >= n && end - from <= *width) *best = from, *width = end - from;
		from = end > from ? end : up(from + 1, CHUNK);
	}
}

// place finds where an allocation goes, and at which block's place in the list it is.
static uint64_t place(const struct pool *p, uint64_t n, int *i) {
	uint64_t from = 0, best = NOWHERE, width = UINT64_MAX, lowest = NOWHERE;
	for (int j = 0; j <= p->n; j++) {
		uint64_t to = j < p->n ? p->blocks[j].at : POOL_SPAN;
		if (to - from >= n) {
			narrow(p, from, to, n, &best, &width);
			if (lowest == NOWHERE) lowest = from;
		}
		if (j < p->n) from = end_of(&p->blocks[j]);
	}
	if (best == NOWHERE) best = lowest;
	for (*i = p->n; *i > 0 && p->blocks[*i - 1].at > best; --*i) {}
	return best;
}

// grow gives memory to the chunks of a stretch.
static int grow(int device, struct pool *p, uint64_t at, uint64_t n) {
	uint64_t more = 0;
	for (uint64_t c = at / CHUNK; c < up(at + n, CHUNK) / CHUNK; c++) more += p->has[c] ? 0 : CHUNK;
	if (!take(device, more)) return 0;
	memset(p->has + at / CHUNK, 1, up(at + n, CHUNK) / CHUNK - at / CHUNK);
	p->reserved += more;
	if (p->reserved > p->reserved_high) p->reserved_high = p->reserved;
	return 1;
}

// trim gives back empty chunks, the last first.
static void trim(int device, struct pool *p, uint64_t keep) {
	uint64_t c = CHUNKS;
	for (int i = p->n; i >= 0; i--) {
		uint64_t from = i > 0 ? up(end_of(&p->blocks[i - 1]), CHUNK) / CHUNK : 0;
		for (; c > from && p->reserved > keep; c--) {
			if (!p->has[c - 1]) continue;
			p->has[c - 1] = 0;
			p->reserved -= CHUNK;
			take(device, -(long)CHUNK);
		}
		if (i > 0 && p->blocks[i - 1].at / CHUNK < c) c = p->blocks[i - 1].at / CHUNK;
	}
}

static void *add(int device, struct pool *p, size_t bytes) {
	int i;
	uint64_t n = up(bytes, ROUND), at = place(p, n, &i);
	if (!p->base || at == NOWHERE || !grow(device, p, at, n)) return 0;
	if (p->n == p->space) p->blocks = realloc(p->blocks, (p->space = p->space ? 2 * p->space : 256) * sizeof *p->blocks);
	memmove(p->blocks + i + 1, p->blocks + i, (p->n++ - i) * sizeof *p->blocks);
	p->blocks[i] = (struct block){at, bytes};
	p->used += bytes;
	if (p->used > p->used_high) p->used_high = p->used;
	return p->base + at;
}

static int allocate(void **out, size_t n, int device) {
	struct pool *p = &pools[device];
	*out = 0;
	if (!n) return 0;
	pthread_mutex_lock(&mutex);
	if (!p->base) p->base = pool_span(device);
	if ((*out = add(device, p, n))) peaks_note(device, p->used, p->reserved);
	pthread_mutex_unlock(&mutex);
	return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

EXPORT int cudaMallocAsync(void **p, size_t n, handle stream) { return allocate(p, n, current_device()); }
EXPORT int cudaMallocFromPoolAsync(void **p, size_t n, handle pool, handle stream) { return allocate(p, n, pool_of(pool) - pools); }

EXPORT int cudaFreeAsync(void *address, handle stream) {
	int device = device_of(address);
	if (device < 0) return 0;
	struct pool *p = &pools[device];
	uint64_t at = (uintptr_t)address - (uintptr_t)p->base;
	if (!p->base || at >= POOL_SPAN) return device_free(address), 0; // from cudaMalloc, which may be freed so, too
	pthread_mutex_lock(&mutex);
	int i = p->n - 1;
	while (i >= 0 && p->blocks[i].at > at) i--;
	if (i >= 0 && p->blocks[i].at == at) {
		p->used -= p->blocks[i].bytes;
		empty_pages(address, p->blocks[i].bytes);
		memmove(p->blocks + i, p->blocks + i + 1, (--p->n - i) * sizeof *p->blocks);
	}
	if (p->reserved > p->threshold) trim(device, p, p->threshold);
	peaks_note(device, p->used, p->reserved);
	pthread_mutex_unlock(&mutex);
	return 0;
}

EXPORT int cudaDeviceGetDefaultMemPool(handle *pool, int d) { return *pool = handle_of(d), 0; }
EXPORT int cudaDeviceGetMemPool(handle *pool, int d) { return *pool = handle_of(d), 0; }
EXPORT int cudaMemPoolSetAccess(handle pool, const void *d, size_t n) { return 0; }

EXPORT int cudaMemPoolGetAttribute(handle pool, int which, void *value) {
	struct pool *p = pool_of(pool);
	const uint64_t values[] = {[RELEASE_THRESHOLD] = p->threshold, [RESERVED_NOW] = p->reserved, [RESERVED_HIGH] = p->reserved_high, [USED_NOW] = p->used, [USED_HIGH] = p->used_high};
	if (which <= REUSE_LAST) *(int *)value = 1;
	else if (which <= USED_HIGH) *(uint64_t *)value = values[which];
	else return CUDA_NOT_SUPPORTED;
	return 0;
}

// The only value that the high marks take is 0: from now on.
EXPORT int cudaMemPoolSetAttribute(handle pool, int which, void *value) {
	struct pool *p = pool_of(pool);
	if (which == RELEASE_THRESHOLD) p->threshold = *(uint64_t *)value;
	if (which == RESERVED_HIGH) p->reserved_high = p->reserved;
	if (which == USED_HIGH) p->used_high = p->used;
	return 0;
}

EXPORT int cudaMemPoolTrimTo(handle pool, size_t keep) {
	struct pool *p = pool_of(pool);
	pthread_mutex_lock(&mutex);
	trim(p - pools, p, keep);
	pthread_mutex_unlock(&mutex);
	return 0;
}
