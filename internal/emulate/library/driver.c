// The CUDA driver: what Triton, torch.compile and expandable segments ask of
// it. PyTorch's own calls go through the runtime above. The runtimes inside
// NVIDIA's libraries do not: they begin with cuInit, which tells them that
// there is no device, so that nothing of theirs follows a pointer of ours.
#define _GNU_SOURCE
#include "emulate.h"
#include "abi.h"
#include "work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cudaMemGetInfo(size_t *, size_t *);
int cudaSetDevice(int);

enum { NO_DEVICE = 100 };
static const handle context = (handle)128;

EXPORT int cuInit(unsigned flags) { return NO_DEVICE; }
EXPORT int cuGetExportTable(const void **table, const void *id) { return *table = 0, CUDA_NOT_SUPPORTED; } // private: not needed
EXPORT int cuDriverGetVersion(int *v) { return *v = card()->driver, 0; }
EXPORT int cuGetErrorString(int status, const char **s) { return *s = status ? "an error of an emulated GPU" : "no error", 0; }
EXPORT int cuGetErrorName(int status, const char **s) { return *s = status ? "CUDA_ERROR_UNKNOWN" : "CUDA_SUCCESS", 0; }

EXPORT int cuLogsRegisterCallback(void *call, void *data, handle *h) { return *h = fresh(), 0; } // nothing is ever logged
EXPORT int cuLogsUnregisterCallback(handle h) { return 0; }

EXPORT int cuDeviceGet(int *d, int i) { return *d = i, i < device_count() ? 0 : CUDA_INVALID_DEVICE; }
EXPORT int cuDeviceGetCount(int *n) { return *n = device_count(), 0; }
EXPORT int cuDeviceGetName(char *s, int n, int d) { return snprintf(s, n, "%s", card()->name), 0; }
EXPORT int cuDeviceTotalMem_v2(size_t *n, int d) { return *n = card()->memory, 0; }
EXPORT int cuDeviceGetAttribute(int *value, int which, int d) { return *value = attribute(which), 0; }
EXPORT int cuDeviceGetUuid_v2(void *uuid, int d) { return memcpy(uuid, "memorymarkphantm", 16), 0; }
EXPORT int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { return *flags = 0, *active = 1, 0; }
EXPORT int cuDevicePrimaryCtxRetain(handle *c, int d) { return *c = context, 0; }
EXPORT int cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
EXPORT int cuCtxGetCurrent(handle *c) { return *c = context, 0; }
EXPORT int cuCtxSetCurrent(handle c) { return 0; }
EXPORT int cuCtxPushCurrent_v2(handle c) { return 0; }
EXPORT int cuCtxPopCurrent_v2(handle *c) { return *c = context, 0; }
EXPORT int cuCtxGetDevice(int *d) { return *d = current_device(), 0; }
EXPORT int cuCtxSynchronize(void) { return 0; }
EXPORT int cuCtxGetId(handle c, unsigned long long *id) { return *id = 1, 0; }

EXPORT int cuModuleLoad(handle *m, const char *path) { return *m = fresh(), 0; }
EXPORT int cuModuleLoadData(handle *m, const void *image) { return *m = fresh(), 0; }
EXPORT int cuModuleLoadDataEx(handle *m, const void *image, unsigned n, void *options, void **values) { return *m = fresh(), 0; }
EXPORT int cuModuleUnload(handle m) { return 0; }
EXPORT int cuModuleGetFunction(handle *f, handle m, const char *name) { return *f = fresh(), 0; }
EXPORT int cuModuleGetGlobal_v2(void **p, size_t *n, handle m, const char *name) {
	int cudaGetSymbolAddress(void **, const void *);
	if (n) *n = 4096;
	return cudaGetSymbolAddress(p, 0);
}
EXPORT int cuLibraryLoadData(handle *l, const void *code, void *a, void **b, unsigned n, void *c, void **d, unsigned k) { return *l = fresh(), 0; }
EXPORT int cuLibraryUnload(handle l) { return 0; }
EXPORT int cuLibraryGetKernel(handle *f, handle l, const char *name) { return *f = fresh(), 0; }
EXPORT int cuKernelGetFunction(handle *f, handle k) { return *f = k, 0; }
EXPORT int cuLinkCreate_v2(unsigned n, void *options, void **values, handle *s) { return *s = fresh(), 0; }
EXPORT int cuLinkAddData_v2(handle s, int type, void *data, size_t n, const char *name, unsigned k, void *options, void **values) { return 0; }
EXPORT int cuLinkComplete(handle s, void **cubin, size_t *n) {
	static char empty[64];
	return *cubin = empty, *n = sizeof empty, 0;
}
EXPORT int cuLinkDestroy(handle s) { return 0; }

// Registers decide how many warps torch.compile gives a kernel, not what it allocates.
EXPORT int cuFuncGetAttribute(int *value, int which, handle f) { return *value = which == 4 ? 32 : which == 0 ? 1024 : 0, 0; }
EXPORT int cuFuncSetAttribute(handle f, int which, int value) { return 0; }
EXPORT int cuFuncSetCacheConfig(handle f, int config) { return 0; }
static int launch(struct dim grid, struct dim block) {
	emulate_launched();
	first_launch();
	work_kernel(0, grid, block, 0);
	return 0;
}
EXPORT int cuLaunchKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, handle s, void **args, void **extra) { return launch((struct dim){gx, gy, gz}, (struct dim){bx, by, bz}); }
EXPORT int cuLaunchKernelEx(const struct launch_config *c, handle f, void **args, void **extra) { return launch(c->grid, c->block); }
EXPORT int cuLaunchCooperativeKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, handle s, void **args) { return launch((struct dim){gx, gy, gz}, (struct dim){bx, by, bz}); }
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, handle f, int threads, size_t shared) { return *n = occupancy(threads, shared), 0; }
EXPORT int cuOccupancyMaxActiveClusters(int *n, handle f, const void *config) { return *n = card()->multiprocessors / 2, 0; }
EXPORT int cuTensorMapEncodeTiled(void *map) { return 0; }
EXPORT int cuStreamSynchronize(handle s) { return 0; }

EXPORT int cuPointerGetAttribute(void *out, int which, uintptr_t p) {
	int d = device_of((void *)p);
	if (which == 2) *(int *)out = d >= 0 ? 2 : 1;      // memory type
	else if (which == 9) *(int *)out = d >= 0 ? d : 0; // device
	else *(uintptr_t *)out = p;
	return 0;
}
EXPORT int cuMemAlloc_v2(void **p, size_t n) { return (*p = device_malloc(current_device(), n)) ? 0 : CUDA_OUT_OF_MEMORY; }
EXPORT int cuMemFree_v2(void *p) { return device_free(p), 0; }
EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total) { return cudaMemGetInfo(left, total); }
EXPORT int cuMemcpyHtoD_v2(void *to, const void *from, size_t n) { return copy_bytes(to, from, n), 0; }
EXPORT int cuMemcpyDtoH_v2(void *to, const void *from, size_t n) { return copy_bytes(to, from, n), 0; }

// Expandable segments: addresses are reserved once, memory is put behind it in pages.
EXPORT int cuMemAddressReserve(void **p, size_t n, size_t alignment, void *at, unsigned long long flags) { return (*p = reserve_room(n)) ? 0 : CUDA_OUT_OF_MEMORY; }
EXPORT int cuMemAddressFree(void *p, size_t n) { return 0; }
EXPORT int cuMemGetAllocationGranularity(size_t *n, const void *properties, int option) { return *n = 2 * MIB, 0; }
EXPORT int cuMemCreate(uint64_t *h, size_t n, const void *properties, unsigned long long flags) {
	if (!take(current_device(), n)) return CUDA_OUT_OF_MEMORY;
	*h = (uint64_t)n << 8 | current_device(); // all that is to know about it
	return 0;
}
EXPORT int cuMemRelease(uint64_t h) { return take(h & 0xff, -(long)(h >> 8)), 0; }
EXPORT int cuMemMap(void *p, size_t n, size_t offset, uint64_t h, unsigned long long flags) { return 0; }
EXPORT int cuMemUnmap(void *p, size_t n) { return empty_pages(p, n), 0; }
EXPORT int cuMemSetAccess(void *p, size_t n, const void *access, size_t count) { return 0; }

// Entry points by name. The newest version of each is the only one.
static void *entry(const char *name) {
	static void *self;
	char versioned[128];
	if (!self) self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!self) return 0;
	for (int v = 4; v >= 2; v--) {
		snprintf(versioned, sizeof versioned, "%s_v%d", name, v);
		void *f = dlsym(self, versioned);
		if (f) return f;
	}
	return dlsym(self, name);
}
static int by_name(const char *name, void **f, int *status) {
	*f = entry(name);
	if (status) *status = *f ? 0 : 1; // found, not found
	return *f ? 0 : CUDA_NOT_FOUND;
}
EXPORT int cuGetProcAddress_v2(const char *name, void **f, int version, unsigned long long flags, int *status) { return by_name(name, f, status); }
EXPORT int cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long flags, int *status) { return by_name(name, f, status); }
EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version, unsigned long long flags, int *status) { return by_name(name, f, status); }
