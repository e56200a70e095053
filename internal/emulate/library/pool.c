// The driver's pools, behind cudaMallocAsync and PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync.
//
// A pool takes memory from the driver in chunks and keeps it until it is trimmed, as far as its threshold says; PyTorch asks
// for all of it to be kept (c10/cuda/CUDAMallocAsyncAllocator.cpp, lazy_init_device), and trims when its cache is emptied. The driver maps
// free memory of a pool to where it is needed, so a pool does not fragment. PyTorch's statistics are the pool's attributes.
//
// Chunks are taken to be of 32 MiB and allocations to be rounded to 512 bytes; neither is documented or was measured.
#include "emulate.h"
#include "abi.h"

#include <pthread.h>

#define CHUNK (32 * MIB)
#define ROUND 512

// of cudaMemPoolAttr
enum { REUSE_LAST = 3, RELEASE_THRESHOLD = 4, RESERVED_NOW = 5, RESERVED_HIGH = 6, USED_NOW = 7, USED_HIGH = 8 };

static struct pool { uint64_t used, used_high, reserved, reserved_high, threshold; } pools[MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// A pool's handle is not 0 and tells its device.
static handle handle_of(int device) { return (handle)(uintptr_t)(64 + device); }
static struct pool *pool_of(handle h) { return &pools[((uintptr_t)h - 64) % MAX_DEVICES]; }

static uint64_t up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

static int grow(int device, struct pool *p, uint64_t used) {
	if (used <= p->reserved) return 1;
	uint64_t more = up(used - p->reserved, CHUNK);
	if (!take(device, more)) return 0;
	p->reserved += more;
	if (p->reserved > p->reserved_high) p->reserved_high = p->reserved;
	return 1;
}

static void trim(int device, struct pool *p, uint64_t keep) {
	uint64_t least = up(p->used > keep ? p->used : keep, CHUNK);
	if (least >= p->reserved) return;
	take(device, -(long)(p->reserved - least));
	p->reserved = least;
}

static int allocate(void **out, size_t n, int device) {
	struct pool *p = &pools[device];
	n = up(n, ROUND);
	*out = 0;
	if (!n) return 0;
	pthread_mutex_lock(&mutex);
	if (grow(device, p, p->used + n) && (*out = pool_address(device, n))) {
		p->used += n;
		if (p->used > p->used_high) p->used_high = p->used;
		peaks_note(device, p->used, p->reserved);
	}
	pthread_mutex_unlock(&mutex);
	return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

EXPORT int cudaMallocAsync(void **p, size_t n, handle stream) { return allocate(p, n, current_device()); }
EXPORT int cudaMallocFromPoolAsync(void **p, size_t n, handle pool, handle stream) { return allocate(p, n, pool_of(pool) - pools); }

EXPORT int cudaFreeAsync(void *address, handle stream) {
	int device = device_of(address);
	if (device < 0) return 0;
	size_t n = pool_release(address);
	if (!n) return device_free(address), 0; // from cudaMalloc, which may be freed so, too
	struct pool *p = &pools[device];
	pthread_mutex_lock(&mutex);
	p->used -= n;
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
