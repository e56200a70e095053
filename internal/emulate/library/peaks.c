// The peaks of PyTorch's allocator, by phase of the program.
//
// The caching allocator tells the profiler the bytes that it holds at each allocation and free
// (c10/cuda/CUDACachingAllocator.cpp, alloc_found_block and free_block; c10/core/Allocator.cpp).
// This library is asked first, so it needs no statistics of the program's: the program may reset
// its own as it likes.
//
// The line of the program that a new peak was reached at is known to Python only, which cannot be
// called here: the allocator's mutex is held. Py_AddPendingCall has Python look as soon as the
// operator returns, when the frame that called it is still running.
#define _GNU_SOURCE
#include "emulate.h"

#include <dlfcn.h>
#include <pthread.h>

#define PHASES 8 // phases.py has fewer
#define DEVICE_CUDA 1 // c10/core/DeviceType.h

struct c10_device { int8_t type, index; };

static struct peak { long allocated, reserved; } peaks[PHASES][MAX_DEVICES], now[MAX_DEVICES];
static int phase;
static int (*observer)(void *); // Python's, if the process has one
static volatile int pending;
static volatile uintptr_t thread; // that reached the latest peak
static volatile int reached;      // its phase

__attribute__((weak)) int Py_AddPendingCall(int (*)(void *), void *);

static void observe(void) {
	reached = phase;
	thread = (uintptr_t)pthread_self();
	if (!observer || pending || !Py_AddPendingCall) return;
	pending = 1;
	if (Py_AddPendingCall(observer, 0)) pending = 0; // too many wait already: the next peak will do
}

void peaks_note(int device, long allocated, long reserved) {
	struct peak *p = &peaks[phase][device];
	now[device] = (struct peak){allocated, reserved};
	if (reserved > p->reserved) p->reserved = reserved;
	if (allocated <= p->allocated) return;
	p->allocated = allocated;
	observe();
}

typedef void reporter(void *, long, unsigned long, unsigned long, struct c10_device);

// c10::reportMemoryUsageToProfiler(void*, long, unsigned long, unsigned long, c10::Device)
EXPORT reporter _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *p, long size, unsigned long allocated, unsigned long reserved, struct c10_device d) {
	static reporter *real;
	if (!real) {
		void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
		if (library) real = (reporter *)dlsym(library, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
	}
	if (d.type == DEVICE_CUDA && d.index >= 0 && d.index < MAX_DEVICES) peaks_note(d.index, allocated, reserved);
	if (real) real(p, size, allocated, reserved, d);
}

// For the Python side.

// emulate_phase begins a phase with what is held now.
EXPORT void emulate_phase(int next) {
	if (next < 0 || next >= PHASES) return;
	phase = next;
	for (int d = 0; d < MAX_DEVICES; d++)
		if (now[d].allocated) peaks_note(d, now[d].allocated, now[d].reserved);
}

EXPORT void emulate_observe_peaks(int (*call)(void *)) { observer = call, pending = 0; }

// emulate_reached tells the observer the phase and the thread of the latest peak.
EXPORT int emulate_reached(uintptr_t *of) {
	pending = 0;
	return *of = thread, reached;
}

EXPORT void emulate_phase_peak(int p, int device, long *allocated, long *reserved) {
	*allocated = peaks[p][device].allocated, *reserved = peaks[p][device].reserved;
}

EXPORT void emulate_forget_peaks(void) { // in a forked child
	for (int p = 0; p < PHASES; p++)
		for (int d = 0; d < MAX_DEVICES; d++) peaks[p][d] = (struct peak){0, 0};
	for (int d = 0; d < MAX_DEVICES; d++) now[d] = (struct peak){0, 0};
	pending = 0;
}
