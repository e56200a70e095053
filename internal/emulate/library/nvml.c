// NVML: as many cards as there are, what the processes of this run hold of them, and nothing else
// known. PyTorch counts devices with it where CUDA must not be opened yet.
#include "emulate.h"

#include <stdio.h>

enum { NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, PROCESSES = 64 };

static int device_of_handle(handle d) { return (int)(uintptr_t)d - 1; }

EXPORT int nvmlInit(void) { return 0; }
EXPORT int nvmlInit_v2(void) { return 0; }
EXPORT int nvmlInitWithFlags(unsigned flags) { return 0; }
EXPORT int nvmlShutdown(void) { return 0; }
EXPORT const char *nvmlErrorString(int status) { return status ? "not supported by an emulated GPU" : "success"; }
EXPORT int nvmlDeviceGetCount(unsigned *n) { return *n = device_count(), 0; }
EXPORT int nvmlDeviceGetCount_v2(unsigned *n) { return *n = device_count(), 0; }
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, handle *d) { return *d = (handle)(uintptr_t)(i + 1), 0; }
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle *d) { 
	// cudaDeviceGetPCIBusId has the number as the bus, the properties, which PyTorch reads, as the device on it.
	unsigned bus = 0, device = 0;
	sscanf(id, "%*x:%x:%x", &bus, &device);
	return *d = (handle)(uintptr_t)(bus + device + 1), 0;
}
EXPORT int nvmlDeviceGetUUID(handle d, char *s, unsigned n) { return snprintf(s, n, "GPU-70686e74-6d6d-0000-0000-%012x", (unsigned)(uintptr_t)d), 0; }
EXPORT int nvmlDeviceGetName(handle d, char *s, unsigned n) { return snprintf(s, n, "%s", card()->name), 0; }
EXPORT int nvmlDeviceGetMemoryInfo(handle d, unsigned long long *total_free_used) {
	int64_t pids[PROCESSES], bytes[PROCESSES];
	int count = share_processes(device_of_handle(d), pids, bytes, PROCESSES);
	total_free_used[0] = card()->memory;
	total_free_used[2] = 0;
	for (int i = 0; i < count; i++) total_free_used[2] += bytes[i];
	total_free_used[1] = total_free_used[0] - total_free_used[2];
	return 0;
}
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
EXPORT int nvmlDeviceGetMemoryInfo_v2(handle d, struct memory_v2 *m) {
	unsigned long long now[3];
	nvmlDeviceGetMemoryInfo(d, now);
	return m->total = now[0], m->reserved = 0, m->free = now[1], m->used = now[2], 0;
}
struct process { unsigned pid; unsigned long long used; unsigned instance, compute_instance; };
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(handle d, unsigned *n, struct process *out) {
	int64_t pids[PROCESSES], bytes[PROCESSES];
	unsigned room = *n;
	*n = share_processes(device_of_handle(d), pids, bytes, PROCESSES);
	if (*n > room) return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *n; i++) out[i] = (struct process){pids[i], bytes[i], ~0u, ~0u};
	return 0;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(handle d, unsigned *n, struct process *out) { return nvmlDeviceGetComputeRunningProcesses_v3(d, n, out); }
struct process_v1 { unsigned pid; unsigned long long used; };
EXPORT int nvmlDeviceGetComputeRunningProcesses(handle d, unsigned *n, struct process_v1 *out) {
	struct process all[PROCESSES];
	unsigned room = *n, most = PROCESSES;
	nvmlDeviceGetComputeRunningProcesses_v3(d, &most, all);
	*n = most;
	if (*n > room) return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *n; i++) out[i] = (struct process_v1){all[i].pid, all[i].used};
	return 0;
}
EXPORT int nvmlSystemGetDriverVersion(char *s, unsigned n) { return snprintf(s, n, "emulated"), 0; }
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
