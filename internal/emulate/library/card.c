// The card, as MEMORYMARK_EMULATE_CARD describes it: "name=NVIDIA H200;memory=150109880320;…".
#include "emulate.h"
#include "abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct card the_card;
static int devices = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void set(const char *key, const char *value) {
	struct card *c = &the_card;
	long n = atol(value);
	if (!strcmp(key, "name")) snprintf(c->name, sizeof c->name, "%s", value);
	else if (!strcmp(key, "memory")) c->memory = n;
	else if (!strcmp(key, "context")) c->context = n;
	else if (!strcmp(key, "capability")) sscanf(value, "%d.%d", &c->major, &c->minor);
	else if (!strcmp(key, "multiprocessors")) c->multiprocessors = n;
	else if (!strcmp(key, "threads_per_multiprocessor")) c->threads_per_multiprocessor = n;
	else if (!strcmp(key, "blocks_per_multiprocessor")) c->blocks_per_multiprocessor = n;
	else if (!strcmp(key, "shared_per_multiprocessor")) c->shared_per_multiprocessor = n;
	else if (!strcmp(key, "shared_optin")) c->shared_optin = n;
	else if (!strcmp(key, "l2")) c->l2 = n;
	else if (!strcmp(key, "clock_khz")) c->clock_khz = n;
	else if (!strcmp(key, "memory_clock_khz")) c->memory_clock_khz = n;
	else if (!strcmp(key, "bus_bits")) c->bus_bits = n;
	else if (!strcmp(key, "driver")) c->driver = n;
}

static void read_card(void) {
	the_card.shared_per_block = 49152; // of every card that PyTorch knows
	const char *text = getenv("MEMORYMARK_EMULATE_CARD"), *count = getenv("MEMORYMARK_EMULATE_GPUS");
	if (!text) {
		fprintf(stderr, "memorymark: MEMORYMARK_EMULATE_CARD is not set; start the program with \"memorymark run\"\n");
		return;
	}
	char *copy = strdup(text), *rest = copy;
	for (char *field; (field = strsep(&rest, ";"));) {
		char *value = strchr(field, '=');
		if (value) *value++ = 0, set(field, value);
	}
	free(copy);
	if (count) devices = atoi(count);
	if (devices < 1) devices = 1;
	if (devices > MAX_DEVICES) devices = MAX_DEVICES;
}

const struct card *card(void) {
	pthread_once(&once, read_card);
	return &the_card;
}

int device_count(void) {
	card();
	return devices;
}

// A kernel's registers are not known here, so that only threads, blocks and
// shared memory limit it. What PyTorch and CUB size by it was right on all of
// the truth.
int occupancy(int threads, size_t shared) {
	if (threads <= 0) return 0;
	const struct card *c = card();
	int n = c->threads_per_multiprocessor / ((threads + 31) / 32 * 32);
	if (n > c->blocks_per_multiprocessor) n = c->blocks_per_multiprocessor;
	if (shared) {
		long each = (shared + 127) / 128 * 128 + 1024; // the driver keeps 1 KiB for itself
		if (c->shared_per_multiprocessor / each < n) n = c->shared_per_multiprocessor / each;
	}
	return n;
}

// Limits that are the same for every card since Volta, or that nothing asks for.
static const struct { int which, value; } common[] = {
	{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, // threads of a block, blocks of a grid
	{9, 65536}, {10, 32}, {11, 2147483647}, {12, 65536},                                // constant memory, warp, pitch, registers
	{14, 512}, {15, 1}, {19, 1}, {23, 65536}, {30, 512}, {31, 1}, {32, 1}, {34, 6},     // textures, overlap, kernels at once, ECC
	{40, 3}, {41, 1}, {51, 32}, {78, 1}, {79, 1}, {80, 1}, {82, 65536}, {83, 1},        // copy engines, unified addressing, priorities, caches
	{87, 2}, {89, 1}, {90, 1}, {91, 1}, {95, 1}, {96, 1},                               // managed memory, preemption, cooperative launches
	{99, 1}, {102, 1}, {103, 1}, {111, 1024}, {113, 1}, {115, 1},                       // host registration, virtual memory, memory pools
};

int attribute(int which) {
	const struct card *c = card();
	switch (which) {
	case 8: return c->shared_per_block;
	case 13: return c->clock_khz;
	case 16: return c->multiprocessors;
	case 36: return c->memory_clock_khz;
	case 37: return c->bus_bits;
	case 38: return c->l2;
	case 39: return c->threads_per_multiprocessor;
	case 75: return c->major;
	case 76: return c->minor;
	case 81: return c->shared_per_multiprocessor;
	case 97: return c->shared_optin;
	case 106: return c->blocks_per_multiprocessor;
	case 108: return c->l2 / 8 * 5; // persisting L2
	case 120: return c->major >= 9; // clusters
	}
	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		if (common[i].which == which) return common[i].value;
	return 0;
}

// The two versions have the same fields but for those that CUDA 13 dropped.
#define FILL(p)                                                                                                     \
	do {                                                                                                            \
		memset(p, 0, sizeof *p);                                                                                    \
		snprintf(p->name, sizeof p->name, "%s", c->name);                                                           \
		memcpy(p->uuid, "memorymarkphantm", 16);                                                                    \
		p->uuid[15] = device;                                                                                       \
		p->totalGlobalMem = c->memory;                                                                              \
		p->sharedMemPerBlock = c->shared_per_block;                                                                 \
		p->regsPerBlock = p->regsPerMultiprocessor = p->totalConstMem = 65536;                                      \
		p->warpSize = 32;                                                                                           \
		p->memPitch = 2147483647;                                                                                   \
		p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;                                   \
		p->maxThreadsDim[2] = 64;                                                                                   \
		p->maxGridSize[0] = 2147483647;                                                                             \
		p->maxGridSize[1] = p->maxGridSize[2] = 65535;                                                              \
		p->major = c->major;                                                                                        \
		p->minor = c->minor;                                                                                        \
		p->textureAlignment = p->surfaceAlignment = 512;                                                            \
		p->texturePitchAlignment = 32;                                                                              \
		p->multiProcessorCount = c->multiprocessors;                                                                \
		p->canMapHostMemory = p->concurrentKernels = p->ECCEnabled = p->unifiedAddressing = 1;                      \
		p->pciDeviceID = device;                                                                                    \
		p->asyncEngineCount = 3;                                                                                    \
		p->memoryBusWidth = c->bus_bits;                                                                            \
		p->l2CacheSize = c->l2;                                                                                     \
		p->persistingL2CacheMaxSize = c->l2 / 8 * 5;                                                                \
		p->maxThreadsPerMultiProcessor = c->threads_per_multiprocessor;                                             \
		p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;                    \
		p->sharedMemPerMultiprocessor = c->shared_per_multiprocessor;                                               \
		p->managedMemory = p->concurrentManagedAccess = p->computePreemptionSupported = p->cooperativeLaunch = 1;   \
		p->sharedMemPerBlockOptin = c->shared_optin;                                                                \
		p->maxBlocksPerMultiProcessor = c->blocks_per_multiprocessor;                                               \
		p->reservedSharedMemPerBlock = 1024;                                                                        \
		p->hostRegisterSupported = p->memoryPoolsSupported = p->unifiedFunctionPointers = 1;                        \
		p->clusterLaunch = c->major >= 9;                                                                           \
	} while (0)

static int properties(void *out, int device) {
	const struct card *c = card();
	if (device < 0 || device >= device_count()) return CUDA_INVALID_DEVICE;
	if (cuda_major() >= 13) {
		struct cuda13_properties *p = out;
		FILL(p);
	} else {
		struct cuda12_properties *p = out;
		FILL(p);
		p->clockRate = c->clock_khz;
		p->memoryClockRate = c->memory_clock_khz;
		p->deviceOverlap = 1;
	}
	return 0;
}

EXPORT int cudaGetDeviceProperties(void *p, int device) { return properties(p, device); }
EXPORT int cudaGetDeviceProperties_v2(void *p, int device) { return properties(p, device); }
EXPORT int cudaDeviceGetAttribute(int *value, int which, int device) {
	*value = attribute(which);
	return device < device_count() ? 0 : CUDA_INVALID_DEVICE;
}
