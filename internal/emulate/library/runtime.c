// The CUDA runtime: kernels are counted and dropped, streams are always done.
#include "emulate.h"
#include "abi.h"
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __thread int last_error, device;

static int fail(int status) { return last_error = status; }

int current_device(void) { return device; }

handle fresh(void) {
	static uintptr_t next = 0x10000;
	return (handle)__atomic_add_fetch(&next, 64, __ATOMIC_RELAXED);
}

int nothing(void) { return 0; }

int not_emulated(const char *name, int status) {
	static char said[64][64];
	static int n;
	for (int i = 0; i < n; i++)
		if (!strcmp(said[i], name)) return status;
	if (n < 64) snprintf(said[n++], sizeof *said, "%s", name);
	fprintf(stderr, "memorymark: %s is not emulated; it answers with an error\n", name);
	return status;
}

// --- devices
EXPORT int cudaGetDeviceCount(int *n) { return *n = device_count(), 0; }
EXPORT int cudaGetDevice(int *d) { return *d = device, 0; }
EXPORT int cudaSetDevice(int d) {
	if (d < 0 || d >= device_count()) return fail(CUDA_INVALID_DEVICE);
	device = d;
	take(d, 0); // the context comes with it
	return 0;
}
EXPORT int cudaInitDevice(int d, unsigned flags, unsigned device_flags) { return cudaSetDevice(d); }
EXPORT int cudaSetDeviceFlags(unsigned flags) { return 0; }
EXPORT int cudaGetDeviceFlags(unsigned *flags) { return *flags = 0, 0; }
EXPORT int cudaDriverGetVersion(int *v) { return *v = card()->driver, 0; }
EXPORT int cudaRuntimeGetVersion(int *v) {
	int (*real)(int *) = next_symbol("cudaRuntimeGetVersion");
	if (real && !real(v)) return 0;
	return *v = 13000, 0;
}
int cuda_major(void) {
	static int major;
	if (!major) {
		int v = 0;
		cudaRuntimeGetVersion(&v);
		major = v / 1000;
	}
	return major;
}
EXPORT int cudaDeviceGetPCIBusId(char *s, int n, int d) { return snprintf(s, n, "0000:%02x:00.0", d), 0; }
EXPORT int cudaDeviceGetByPCIBusId(int *d, const char *s) { return *d = 0, 0; }
EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
	if (least) *least = 0;
	if (greatest) *greatest = -5;
	return 0;
}
EXPORT int cudaDeviceCanAccessPeer(int *yes, int a, int b) { return *yes = a != b, 0; }
EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags) { return 0; }
// A card takes its time, in which the program's other threads continue: autograd's lets
// go of the gradients that it returned (Engine::thread_main, engine.cpp), so that they
// are free when a program synchronizes and then empties the cache, as graphs do.
EXPORT int cudaDeviceSynchronize(void) {
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return work_bytes(WORK_WAIT, TYPE_FP32, 0), 0;
}
EXPORT int cudaDeviceReset(void) { return 0; }
EXPORT int cudaDeviceSetLimit(int which, size_t n) { return 0; }
EXPORT int cudaDeviceGetLimit(size_t *n, int which) { return *n = 0, 0; }

// --- errors
static const struct { int status; const char *name, *text; } errors[] = {
	{0, "cudaSuccess", "no error"},
	{CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
	{CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported: this GPU is emulated"},
};
EXPORT const char *cudaGetErrorString(int status) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].status == status) return errors[i].text;
	return "unknown error of an emulated GPU";
}
EXPORT const char *cudaGetErrorName(int status) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].status == status) return errors[i].name;
	return "cudaErrorUnknown";
}
EXPORT int cudaGetLastError(void) {
	int e = last_error;
	last_error = 0;
	return e;
}
EXPORT int cudaPeekAtLastError(void) { return last_error; }

// --- memory
EXPORT int cudaMalloc(void **p, size_t n) {
	*p = n ? device_malloc(device, n) : 0;
	return *p || !n ? 0 : fail(CUDA_OUT_OF_MEMORY);
}
EXPORT int cudaFree(void *p) {
	if (p) device_free(p);
	return 0;
}
EXPORT int cudaMemGetInfo(size_t *left, size_t *total) {
	take(device, 0); // a context comes with the question
	*total = card()->memory;
	*left = free_bytes(device);
	return 0;
}

// Pinned memory is ordinary memory; who asks must be told that it is pinned.
static struct { char *at; size_t n; } pinned[65536];
static int pinned_count;
static long pinned_bytes, pinned_peak;
static pthread_mutex_t pinned_mutex = PTHREAD_MUTEX_INITIALIZER;

static void pin(void *p, size_t n) {
	n = (n + 4095) / 4096 * 4096; // whole pages
	pthread_mutex_lock(&pinned_mutex);
	if (pinned_count < 65536) {
		pinned[pinned_count].at = p;
		pinned[pinned_count++].n = n;
		pinned_bytes += n;
		if (pinned_bytes > pinned_peak) pinned_peak = pinned_bytes;
	}
	pthread_mutex_unlock(&pinned_mutex);
}
static int unpin(void *p) {
	int found = 0;
	pthread_mutex_lock(&pinned_mutex);
	for (int i = 0; i < pinned_count && !found; i++)
		if (pinned[i].at == p) pinned_bytes -= pinned[i].n, pinned[i] = pinned[--pinned_count], found = 1;
	pthread_mutex_unlock(&pinned_mutex);
	return found;
}
static int is_pinned(const void *p) {
	int found = 0;
	pthread_mutex_lock(&pinned_mutex);
	for (int i = 0; i < pinned_count && !found; i++)
		found = (char *)p >= pinned[i].at && (char *)p < pinned[i].at + pinned[i].n;
	pthread_mutex_unlock(&pinned_mutex);
	return found;
}
EXPORT long emulate_pinned_peak(void) { return pinned_peak; }
EXPORT int cudaHostAlloc(void **p, size_t n, unsigned flags) {
	if (posix_memalign(p, 4096, n ? n : 1)) return fail(CUDA_OUT_OF_MEMORY);
	pin(*p, n);
	return 0;
}
EXPORT int cudaMallocHost(void **p, size_t n) { return cudaHostAlloc(p, n, 0); }
// Managed memory lies on the host, where the program may touch it: what pages
// of it would be on the card cannot be known.
EXPORT int cudaMallocManaged(void **p, size_t n, unsigned flags) { return cudaHostAlloc(p, n, 0); }
EXPORT int cudaMemPrefetchAsync(const void *p, size_t n, int d, handle stream) { return 0; }
EXPORT int cudaMemAdvise(const void *p, size_t n, int advice, int d) { return 0; }
EXPORT int cudaFreeHost(void *p) {
	if (unpin(p)) free(p);
	return 0;
}
EXPORT int cudaHostRegister(void *p, size_t n, unsigned flags) { return pin(p, n), 0; }
EXPORT int cudaHostUnregister(void *p) { return unpin(p), 0; }
EXPORT int cudaHostGetDevicePointer(void **d, void *h, unsigned flags) { return *d = h, 0; }
EXPORT int cudaPointerGetAttributes(struct pointer_attributes *a, const void *p) {
	memset(a, 0, sizeof *a + (cuda_major() >= 13 ? CUDA13_POINTER_WORDS * sizeof(long) : 0));
	a->device = device_of(p);
	if (a->device >= 0) {
		a->type = 2;
		a->device_pointer = (void *)p;
		return 0;
	}
	a->host_pointer = (void *)p;
	if (is_pinned(p)) {
		a->type = 1;
		a->device = 0;
		a->device_pointer = (void *)p;
	}
	return 0;
}

// A copy within the card reads and writes there, others go over the bus.
static void copied(const void *to, const void *from, size_t n) {
	if (device_of(to) >= 0 && device_of(from) >= 0) work_bytes(WORK_KERNEL, TYPE_FP32, 2 * n);
	else work_bytes(WORK_COPY, TYPE_FP32, n);
}
EXPORT int cudaMemcpy(void *to, const void *from, size_t n, int kind) {
	copied(to, from, n);
	work_bytes(WORK_WAIT, TYPE_FP32, 0);
	return copy_bytes(to, from, n), 0;
}
EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, handle stream) { return copied(to, from, n), copy_bytes(to, from, n), 0; }
EXPORT int cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t n) { return copy_bytes(to, from, n), 0; }
EXPORT int cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t n, handle stream) { return copy_bytes(to, from, n), 0; }
EXPORT int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind) {
	for (size_t i = 0; i < height; i++) copy_bytes((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
	return 0;
}
EXPORT int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, handle stream) {
	return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
EXPORT int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, int kind) { return 0; }
EXPORT int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t n, size_t offset, int kind, handle stream) { return 0; }
EXPORT int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset, int kind) { return memset(to, 0, n), 0; }
EXPORT int cudaMemset(void *to, int value, size_t n) {
	if (written()) memset(to, value, n);
	return work_bytes(WORK_FILL, TYPE_FP32, n), 0;
}
EXPORT int cudaMemsetAsync(void *to, int value, size_t n, handle stream) { return cudaMemset(to, value, n); }
EXPORT int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, handle stream) {
	for (size_t i = 0; i < height; i++) cudaMemset((char *)to + i * pitch, value, width);
	return 0;
}
EXPORT int cudaGetSymbolAddress(void **p, const void *symbol) { // somewhere on the device
	static void *symbols;
	if (!symbols) symbols = device_malloc(device, 2 * MIB);
	return *p = symbols, 0;
}
EXPORT int cudaGetSymbolSize(size_t *n, const void *symbol) { return *n = 4096, 0; }
struct ipc { char reserved[64]; };
EXPORT int cudaIpcGetMemHandle(void *h, void *p) { return memset(h, 0, 64), 0; }
EXPORT int cudaIpcOpenMemHandle(void **p, struct ipc h, unsigned flags) { return fail(not_emulated("cudaIpcOpenMemHandle", CUDA_NOT_SUPPORTED)); }
EXPORT int cudaIpcCloseMemHandle(void *p) { return 0; }
EXPORT int cudaIpcGetEventHandle(void *h, handle event) { return memset(h, 0, 64), 0; }
EXPORT int cudaIpcOpenEventHandle(handle *event, struct ipc h) { return *event = fresh(), 0; }

// --- streams and events
EXPORT int cudaStreamCreate(handle *s) { return *s = fresh(), 0; }
EXPORT int cudaStreamCreateWithFlags(handle *s, unsigned flags) { return *s = fresh(), 0; }
EXPORT int cudaStreamCreateWithPriority(handle *s, unsigned flags, int priority) { return *s = fresh(), 0; }
EXPORT int cudaStreamDestroy(handle s) { return 0; }
EXPORT int cudaStreamQuery(handle s) { return 0; }
EXPORT int cudaStreamSynchronize(handle s) { return work_bytes(WORK_WAIT, TYPE_FP32, 0), 0; }
EXPORT int cudaStreamWaitEvent(handle s, handle event, unsigned flags) { return capture_waits(s, event), 0; }
EXPORT int cudaStreamGetPriority(handle s, int *priority) { return *priority = 0, 0; }
EXPORT int cudaStreamGetFlags(handle s, unsigned *flags) { return *flags = 0, 0; }
EXPORT int cudaStreamGetDevice(handle s, int *d) { return *d = device, 0; }
EXPORT int cudaStreamGetId(handle s, unsigned long long *id) { return *id = (uintptr_t)s, 0; }
EXPORT int cudaStreamAddCallback(handle s, void (*f)(handle, int, void *), void *data, unsigned flags) { return f(s, 0, data), 0; }
EXPORT int cudaLaunchHostFunc(handle s, void (*f)(void *), void *data) { return f(data), 0; }
EXPORT int cudaEventCreate(handle *e) { return *e = fresh(), 0; }
EXPORT int cudaEventCreateWithFlags(handle *e, unsigned flags) { return *e = fresh(), 0; }
EXPORT int cudaEventDestroy(handle e) { return 0; }
EXPORT int cudaEventRecord(handle e, handle s) { return capture_records(e, s), 0; }
EXPORT int cudaEventRecordWithFlags(handle e, handle s, unsigned flags) { return capture_records(e, s), 0; }
EXPORT int cudaEventQuery(handle e) { return 0; }
EXPORT int cudaEventSynchronize(handle e) { return work_bytes(WORK_WAIT, TYPE_FP32, 0), 0; }
EXPORT int cudaEventElapsedTime(float *ms, handle from, handle to) { return *ms = 1, 0; }
EXPORT int cudaEventElapsedTime_v2(float *ms, handle from, handle to) { return *ms = 1, 0; }
EXPORT int cudaProfilerStart(void) { return 0; }
EXPORT int cudaProfilerStop(void) { return 0; }

// --- kernels
// Kernels are known by the address of their stub, and by the name that it was
// registered with, in a hash table.
enum { KERNELS = 1 << 17 };
static struct kernel { const void *stub; const char *name; } kernels[KERNELS];
static int kernel_count;

static struct kernel *kernel(const void *stub) {
	for (size_t i = (uintptr_t)stub / 16 % KERNELS;; i = (i + 1) % KERNELS)
		if (!kernels[i].stub || kernels[i].stub == stub) return &kernels[i];
}

static void remember(const void *stub, const char *name) {
	struct kernel *k = kernel(stub);
	if (k->stub || kernel_count++ < KERNELS / 2) *k = (struct kernel){stub, name};
}

static int launch(const void *stub, struct dim grid, struct dim block, void **args) {
	const char *name = kernel(stub)->name;
	emulate_launched();
	if (!name || !strstr(name, "distribution_elementwise")) first_launch();
	if (name && (strstr(name, "loat16") || strstr(name, "c104Half"))) halves_launched();
	work_kernel(name, grid, block, args);
	return 0;
}

EXPORT int cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared, handle s) { return launch(f, grid, block, args); }
EXPORT int __cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared, handle s) { return launch(f, grid, block, args); }
EXPORT int __cudaLaunchKernel_ptsz(const void *f, struct dim grid, struct dim block, void **args, size_t shared, handle s) { return launch(f, grid, block, args); }
EXPORT int cudaLaunchKernelExC(const struct launch_config *c, const void *f, void **args) { return launch(f, c->grid, c->block, args); }
EXPORT int cudaLaunchCooperativeKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared, handle s) { return launch(f, grid, block, args); }
EXPORT int cudaFuncGetAttributes(struct function_attributes *a, const void *f) {
	const struct card *c = card();
	memset(a, 0, sizeof *a);
	a->max_threads = 1024;
	a->registers = 32;
	// PyTorch has no kernels for 8.9 of their own: those of 8.6 run there.
	a->ptx_version = a->binary_version = c->major == 8 && c->minor == 9 ? 86 : c->major * 10 + c->minor;
	a->max_dynamic_shared = 49152;
	a->preferred_carveout = -1;
	return 0;
}
EXPORT int cudaFuncSetAttribute(const void *f, int which, int value) { return 0; }
EXPORT int cudaFuncSetCacheConfig(const void *f, int config) { return 0; }
EXPORT int cudaFuncSetSharedMemConfig(const void *f, int config) { return 0; }
EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int threads, size_t shared) { return *n = occupancy(threads, shared), 0; }
EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int threads, size_t shared, unsigned flags) { return *n = occupancy(threads, shared), 0; }
EXPORT int cudaOccupancyMaxActiveClusters(int *n, const void *f, const void *config) { return *n = card()->multiprocessors / 2, 0; }
EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *n, const void *f, int blocks, int threads) { return *n = card()->shared_optin, 0; }

// --- what nvcc's stubs call
EXPORT void **__cudaRegisterFatBinary(void *binary) {
	static void *handles[1];
	return handles;
}
EXPORT void __cudaRegisterFatBinaryEnd(void **h) {}
EXPORT void __cudaUnregisterFatBinary(void **h) {}
EXPORT void __cudaRegisterFunction(void **h, const char *f, char *device_function, const char *name, int threads, void *a, void *b, void *c, void *d, int *e) { remember(f, name); }
EXPORT void __cudaRegisterVar(void **h, char *var, char *device_var, const char *name, int ext, size_t n, int constant, int global) {}
EXPORT void __cudaRegisterManagedVar(void **h, void **p, char *device_var, const char *name, int ext, size_t n, int constant, int global) {}
EXPORT char __cudaInitModule(void **h) { return 1; }
EXPORT int __cudaGetKernel(handle *k, const void *f) { return *k = (handle)f, 0; }
static __thread struct { struct dim grid, block; size_t shared; void *stream; } configuration;
EXPORT unsigned __cudaPushCallConfiguration(struct dim grid, struct dim block, size_t shared, void *stream) {
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}
EXPORT int __cudaPopCallConfiguration(struct dim *grid, struct dim *block, size_t *shared, void **stream) {
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*stream = configuration.stream;
	return 0;
}
EXPORT int cudaGetFuncBySymbol(handle *k, const void *f) { return *k = (handle)f, 0; }
