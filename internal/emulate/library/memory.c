// Address space and memory.
//
// Where segments lie decides between free blocks of equal size (PyTorch's
// allocator takes the lower address), so they are placed as the driver places
// them. Its rules are what its calls of mmap and the addresses in 143 recorded
// processes show (H200, driver 580):
//
//   - It takes address space in regions of whole 32 MiB, at the highest place
//     that has space for one and 32 MiB more.
//   - An allocation goes to the latest region with enough space, at its lowest gap.
//   - A region that becomes empty is given back.
//   - With the context come a region for code and one for local memory. With
//     the first kernel of PyTorch's that is none of those that draw random numbers
//     it allocates 2 MiB, exchanges local memory for more, and allocates 4 and
//     10 MiB.
//   - Each handle of cuBLAS is an allocation of 64 MiB, the first one brings a
//     region of code. The first product of 16-bit numbers, or in TF32, brings two
//     more; a handle does where a kernel of 16-bit numbers has run.
//   - The first communicator of NCCL fills these regions and begins another.
//
// Addresses are numbers here: nothing is mapped behind them, so whoever follows
// a device pointer on the host is stopped at once, and they are the same on
// every machine. Where values are computed there is host memory at the same
// addresses, page by page as it is written. A real process has other mappings above and between the
// driver's regions, which move some of them.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // MAP_FIXED_NOREPLACE
#endif
#include "emulate.h"
#include "abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION (32 * MIB)
#define GRANULE (2 * MIB) // of what the driver gives out
#define SPAN (512L << 30) // of addresses, for each device
#define TOP 0x780000000000 // above all devices: a process has nothing near it

struct span { uintptr_t at; long size; };

struct region {
	uintptr_t at;
	long size, taken;
	struct span *used; // by address
	int n, room, device;
};

static struct region *regions; // the latest last
static int region_count, region_room;

static struct device {
	int open, launched, handles, multiplied;
	struct span *holes; // address space that no region has, the highest first
	int hole_count, hole_room;
	uintptr_t local; // the driver's first region for local memory
	long taken, peak;
} devices[MAX_DEVICES];

static long limit; // of each device; 0: what the card has
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long up(long n, long unit) { return (n + unit - 1) / unit * unit; }

static void insert_hole(struct device *v, int i, struct span hole) {
	if (v->hole_count == v->hole_room) {
		v->hole_room = v->hole_room ? 2 * v->hole_room : 8;
		v->holes = realloc(v->holes, v->hole_room * sizeof *v->holes);
	}
	memmove(v->holes + i + 1, v->holes + i, (v->hole_count++ - i) * sizeof *v->holes);
	v->holes[i] = hole;
}

// give_back makes a gap of a region, or widens those that it touches.
static void give_back(struct device *v, uintptr_t at, long size) {
	int i = 0;
	while (i < v->hole_count && v->holes[i].at > at) i++; // the first below
	struct span *above = i > 0 ? &v->holes[i - 1] : 0, *below = i < v->hole_count ? &v->holes[i] : 0;
	if (below && below->at + below->size == at) {
		below->size += size;
		if (above && above->at == at + size) {
			below->size += above->size;
			memmove(above, below, (v->hole_count-- - i) * sizeof *v->holes);
		}
	} else if (above && above->at == at + size) {
		above->at = at;
		above->size += size;
	} else {
		insert_hole(v, i, (struct span){at, size});
	}
}

static struct region *new_region(int device, long bytes) {
	struct device *v = &devices[device];
	long size = up(bytes, REGION);
	int i = 0;
	while (i < v->hole_count && v->holes[i].size < size + REGION) i++;
	if (i == v->hole_count) return 0;
	v->holes[i].size -= size;
	if (region_count == region_room) {
		region_room = region_room ? 2 * region_room : 64;
		regions = realloc(regions, region_room * sizeof *regions);
	}
	struct region *r = &regions[region_count++];
	*r = (struct region){.at = v->holes[i].at + v->holes[i].size, .size = size, .device = device};
	return r;
}

static void insert(struct region *r, int i, uintptr_t at, long size) {
	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 8;
		r->used = realloc(r->used, r->room * sizeof *r->used);
	}
	memmove(r->used + i + 1, r->used + i, (r->n - i) * sizeof *r->used);
	r->used[i] = (struct span){at, size};
	r->n++;
	r->taken += size;
}

// place finds a region's lowest gap that is wide enough.
static uintptr_t place(struct region *r, long size) {
	if (r->size - r->taken < size) return 0;
	uintptr_t at = r->at;
	for (int i = 0; i <= r->n; i++) {
		uintptr_t end = i < r->n ? r->used[i].at : r->at + r->size;
		if ((long)(end - at) >= size) {
			insert(r, i, at, size);
			return at;
		}
		if (i < r->n) at = r->used[i].at + r->used[i].size;
	}
	return 0;
}

static uintptr_t allocate(int device, long size) {
	for (int i = region_count - 1; i >= 0; i--) {
		uintptr_t at = regions[i].device == device ? place(&regions[i], size) : 0;
		if (at) return at;
	}
	struct region *r = new_region(device, size);
	return r ? place(r, size) : 0;
}

// release frees an allocation, and its region if that was the last of it.
static long release(uintptr_t at) {
	for (int i = 0; i < region_count; i++) {
		struct region *r = &regions[i];
		if (at < r->at || at >= r->at + r->size) continue;
		for (int j = 0; j < r->n; j++) {
			if (r->used[j].at != at) continue;
			long size = r->used[j].size;
			memmove(r->used + j, r->used + j + 1, (r->n - j - 1) * sizeof *r->used);
			r->taken -= size;
			if (--r->n == 0) {
				give_back(&devices[r->device], r->at, r->size);
				free(r->used);
				memmove(r, r + 1, (region_count - i - 1) * sizeof *r);
				region_count--;
			}
			return size;
		}
	}
	return 0;
}

// own takes a region of the driver's own and says where what is in it lies.
static uintptr_t own(int d, long size, long used) {
	struct region *r = new_region(d, size);
	return r ? place(r, used) : 0;
}

int backed(void) {
	static int known;
	if (!known) {
		const char *values = getenv("MEMORYMARK_EMULATE_VALUES");
		known = values && !strcmp(values, "computed") ? 2 : 1;
	}
	return known == 2;
}

// available is the host's memory that a program may take.
static long available(void) {
	long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %ld", &kib) != 1) {}
	if (f) fclose(f);
	return kib ? kib << 10 : 1L << 62;
}

// Before the host runs out of memory, and ends whatever program it likes to.
static void require_host_memory(long bytes) {
	static long have;
	if (!have) have = available();
	if (bytes <= have) return;
	fprintf(stderr, "memorymark: computed values need as much host memory as the program takes of the GPU's, and of this machine's %ld MiB were available; run it with --values assumed\n", have >> 20);
	_exit(EXIT_HOST_MEMORY);
}

// back maps memory at a device's addresses.
static void back(void *at, size_t bytes) {
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == at) return;
	fprintf(stderr, "memorymark: this machine does not map %zu GiB of address space, which computed values need (ulimit -v, vm.overcommit_memory)\n", bytes >> 30);
	exit(1);
}

// What a context takes, and how much of its regions.
static void open_device(int d) {
	struct device *v = &devices[d];
	if (v->open) return;
	v->open = 1;
	insert_hole(v, 0, (struct span){TOP - (d + 1) * SPAN, SPAN});
	if (backed()) back((void *)(TOP - (d + 1) * SPAN), SPAN);
	own(d, 96 * MIB, 72 * MIB); // code
	v->local = own(d, 416 * MIB, 414 * MIB);
}

static struct device *lock(int d) {
	pthread_mutex_lock(&mutex);
	open_device(d);
	return &devices[d];
}

static void unlock(void) { pthread_mutex_unlock(&mutex); }

void first_launch(void) {
	int d = current_device();
	if (devices[d].launched) return;
	struct device *v = lock(d);
	if (!v->launched) {
		v->launched = 1;
		allocate(d, 2 * MIB);
		release(v->local);
		own(d, 512 * MIB, 506 * MIB);
		allocate(d, 4 * MIB);
		allocate(d, 10 * MIB);
	}
	unlock();
}

static int halves; // whether a kernel of 16-bit numbers has run

void halves_launched(void) { halves = 1; }

static void bring_tensor_cores(int d) {
	if (devices[d].multiplied) return;
	devices[d].multiplied = 1;
	own(d, 256 * MIB, 256 * MIB);
	own(d, 96 * MIB, 96 * MIB);
}

void new_blas_handle(void) {
	int d = current_device();
	struct device *v = lock(d);
	if (!v->handles++) own(d, 64 * MIB, 64 * MIB);
	allocate(d, 64 * MIB);
	if (halves) bring_tensor_cores(d); // before PyTorch allocates the handle's workspace
	unlock();
}

void first_tensor_cores(void) {
	int d = current_device();
	if (devices[d].multiplied) return;
	lock(d);
	bring_tensor_cores(d);
	unlock();
}

// NCCL's kernels take more code and local memory, and run before the first
// segment of a program that begins with its process group. The six recorded
// processes of DDP show what is left then: nothing of the first regions, and all
// but 14 MiB of a new one. Of a program that has used the card before, nothing is
// known.
void first_communicator(void) {
	int d = current_device();
	struct device *v = lock(d);
	if (!v->launched) {
		v->launched = 1;
		release(v->local);
		own(d, 512 * MIB, 512 * MIB);
		allocate(d, 24 * MIB); // what was left of the region for code
		own(d, 32 * MIB, 14 * MIB);
	}
	unlock();
}

static long most(void) {
	long have = card()->memory - card()->context;
	return limit && limit < have ? limit : have;
}

static int take_locked(struct device *v, long bytes) {
	int d = v - devices;
	share_lock();
	int ok = bytes <= 0 || v->taken + bytes <= most() - share_others(d);
	if (ok) {
		v->taken += bytes;
		if (v->taken > v->peak) v->peak = v->taken;
		share_hold(d, card()->context + v->taken);
	}
	share_unlock();
	return ok;
}

int take(int d, long bytes) {
	struct device *v = lock(d);
	if (backed()) require_host_memory(v->taken + bytes);
	int ok = take_locked(v, bytes);
	unlock();
	return ok;
}

void *device_malloc(int d, size_t bytes) {
	struct device *v = lock(d);
	long size = up(bytes ? bytes : 1, GRANULE);
	uintptr_t at = 0;
	if (backed()) require_host_memory(v->taken + size);
	if (take_locked(v, size) && !(at = allocate(d, size))) take_locked(v, -size);
	unlock();
	return (void *)at;
}

void empty_pages(void *at, size_t bytes) {
	uintptr_t from = up((uintptr_t)at, 4096), to = ((uintptr_t)at + bytes) / 4096 * 4096;
	if (backed() && to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}

void device_free(void *address) {
	int d = device_of(address);
	if (d < 0) return;
	struct device *v = lock(d);
	long size = release((uintptr_t)address);
	take_locked(v, -size);
	empty_pages(address, size);
	unlock();
}

void *pool_span(int d) {
	lock(d);
	void *at = (void *)own(d, POOL_SPAN, POOL_SPAN);
	unlock();
	return at;
}

static struct span rooms[256]; // of expandable segments
static int room_count;

void *reserve_room(size_t bytes) {
	pthread_mutex_lock(&mutex);
	void *at = room_count < 256 ? mmap(0, bytes, backed() ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
	if (at == MAP_FAILED) at = 0;
	if (at) rooms[room_count++] = (struct span){(uintptr_t)at, bytes};
	unlock();
	return at;
}

int device_of(const void *address) {
	uintptr_t a = (uintptr_t)address;
	if (a < TOP && a >= TOP - MAX_DEVICES * SPAN) return (TOP - 1 - a) / SPAN;
	int d = -1;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < room_count && d < 0; i++)
		if (a >= rooms[i].at && a < rooms[i].at + rooms[i].size) d = 0;
	unlock();
	return d;
}

long free_bytes(int d) {
	struct device *v = lock(d);
	share_lock();
	long left = most() - v->taken - share_others(d);
	share_unlock();
	unlock();
	return left > 0 ? left : 0;
}

// For the program around: a limit that can be changed, and what was taken.
EXPORT void emulate_limit(long bytes) { limit = bytes; }
EXPORT long emulate_taken(int device) { return device >= 0 && device < MAX_DEVICES ? devices[device].taken : 0; }
EXPORT long emulate_peak(int device) { return device >= 0 && device < MAX_DEVICES ? devices[device].peak : 0; }

__attribute__((constructor)) static void read_limit(void) {
	const char *text = getenv("MEMORYMARK_EMULATE_LIMIT");
	if (text) limit = atol(text);
}
