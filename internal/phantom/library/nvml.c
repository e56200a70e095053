// NVML: as many cards as there are, nothing running on them, and nothing else
// known. PyTorch counts devices with it where CUDA must not be opened yet.
#include "phantom.h"

#include <stdio.h>

enum { NOT_SUPPORTED = 3 };

EXPORT int nvmlInit(void) { return 0; }
EXPORT int nvmlInit_v2(void) { return 0; }
EXPORT int nvmlInitWithFlags(unsigned flags) { return 0; }
EXPORT int nvmlShutdown(void) { return 0; }
EXPORT const char *nvmlErrorString(int status) { return status ? "not supported by an emulated GPU" : "success"; }
EXPORT int nvmlDeviceGetCount(unsigned *n) { return *n = device_count(), 0; }
EXPORT int nvmlDeviceGetCount_v2(unsigned *n) { return *n = device_count(), 0; }
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, handle *d) { return *d = (handle)(uintptr_t)(i + 1), 0; }
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle *d) { return *d = (handle)1, 0; }
EXPORT int nvmlDeviceGetUUID(handle d, char *s, unsigned n) { return snprintf(s, n, "GPU-70686e74-6d6d-0000-0000-%012x", (unsigned)(uintptr_t)d), 0; }
EXPORT int nvmlDeviceGetName(handle d, char *s, unsigned n) { return snprintf(s, n, "%s", card()->name), 0; }
EXPORT int nvmlDeviceGetMemoryInfo(handle d, unsigned long long *total_free_used) {
	total_free_used[0] = card()->memory;
	total_free_used[1] = free_bytes(0);
	total_free_used[2] = total_free_used[0] - total_free_used[1];
	return 0;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses(handle d, unsigned *n, void *infos) { return *n = 0, 0; }
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(handle d, unsigned *n, void *infos) { return *n = 0, 0; }
EXPORT int nvmlSystemGetDriverVersion(char *s, unsigned n) { return snprintf(s, n, "phantom"), 0; }
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *v) { return *v = card()->driver, 0; }
EXPORT int nvmlDeviceGetNvLinkState(handle d, unsigned link, unsigned *up) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(handle d, unsigned link, int *type) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(handle d, unsigned link, void *info) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetCudaComputeCapability(handle d, int *major, int *minor) { return *major = card()->major, *minor = card()->minor, 0; }
EXPORT int nvmlDeviceGetUtilizationRates(handle d, void *rates) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetTemperature(handle d, int sensor, unsigned *t) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetPowerUsage(handle d, unsigned *mw) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetClockInfo(handle d, int type, unsigned *mhz) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetP2PStatus(handle a, handle b, int which, int *status) { return *status = 0, 0; }
