// What copies from the device bring.
//
// Nothing is behind a device pointer, so a value that the program reads is
// known only if it is told:
//
//   - the Python side, which follows small tensors on the host (shadows), lays
//     out the bytes of the next copies (emulate_answer), or of addresses for
//     the duration of one call (emulate_known);
//   - otherwise a small copy that was just made to that address, directly or by
//     a collective: DDP checks its parameters and its buckets in that way.
//
// Everything else reads as zero and is counted.
//
// With MEMORYMARK_EMULATE_VALUES=computed there is host memory behind device
// pointers (memory.c), in which the Python side computes what kernels would
// (computed.py). Copies are then real. But an operator that runs for its
// allocations alone reads and writes what its kernels have not: on its thread
// (emulate_enter to emulate_leave) nothing is written, and reads bring what is
// laid out as above.
#include "emulate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct answer { unsigned char *bytes; size_t n; } answers[4096];
static unsigned first_answer, next_answer;

static struct known { uintptr_t at; const unsigned char *bytes; size_t n; } knowns[256];
static int known_count;

static long unanswered, launches;

static __thread int operators; // that this thread is in

EXPORT void emulate_enter(void) { operators++; }

EXPORT void emulate_answer(const void *bytes, size_t n) {
	pthread_mutex_lock(&mutex);
	if (next_answer - first_answer < 4096) {
		struct answer *a = &answers[next_answer++ % 4096];
		a->bytes = malloc(n);
		a->n = n;
		memcpy(a->bytes, bytes, n);
	}
	pthread_mutex_unlock(&mutex);
}

EXPORT void emulate_known(uintptr_t at, const void *bytes, size_t n) {
	pthread_mutex_lock(&mutex);
	if (known_count < 256) knowns[known_count++] = (struct known){at, bytes, n};
	pthread_mutex_unlock(&mutex);
}

EXPORT void emulate_forget(void) { // the call is over
	pthread_mutex_lock(&mutex);
	while (first_answer != next_answer) free(answers[first_answer++ % 4096].bytes);
	known_count = 0;
	pthread_mutex_unlock(&mutex);
}

EXPORT void emulate_leave(void) {
	operators--;
	if (known_count || first_answer != next_answer) emulate_forget();
}

EXPORT int emulate_pending(void) { return next_answer - first_answer; }
EXPORT long emulate_unanswered(void) { return unanswered; }
EXPORT long emulate_launches(void) { return launches; }

// Small copies to the device, for as long as no kernel can have written there:
// which addresses a kernel writes to is not known, so a few launches end it.
enum { MIRRORS = 256, MIRROR_BYTES = 1 << 16, MIRROR_LAUNCHES = 8 };
static struct mirror { uintptr_t at; size_t n; unsigned char *bytes; long launches; } mirrors[MIRRORS];
static int next_mirror;

void emulate_launched(void) { __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED); }

static const unsigned char *mirrored(uintptr_t at, size_t n) {
	for (int i = 0; i < MIRRORS; i++) {
		struct mirror *m = &mirrors[(next_mirror + MIRRORS - 1 - i) % MIRRORS]; // the latest first
		if (m->bytes && at >= m->at && at + n <= m->at + m->n && launches - m->launches <= MIRROR_LAUNCHES)
			return m->bytes + (at - m->at);
	}
	return 0;
}

static void mirror(uintptr_t at, const void *bytes, size_t n) {
	if (n == 0 || n > MIRROR_BYTES) return;
	struct mirror *m = &mirrors[next_mirror++ % MIRRORS];
	unsigned char *copy = malloc(n);
	memcpy(copy, bytes, n); // before the old one goes, which may be the source
	free(m->bytes);
	*m = (struct mirror){at, n, copy, launches};
}

int written(void) { return backed() && !operators; }

static void read_device(void *to, uintptr_t from, size_t n) {
	memset(to, 0, n);
	for (int i = 0; i < known_count; i++)
		if (from >= knowns[i].at && from + n <= knowns[i].at + knowns[i].n) {
			memcpy(to, knowns[i].bytes + (from - knowns[i].at), n);
			return;
		}
	if (first_answer != next_answer) {
		struct answer *a = &answers[first_answer++ % 4096];
		memcpy(to, a->bytes, a->n < n ? a->n : n);
		free(a->bytes);
		return;
	}
	const unsigned char *m = mirrored(from, n);
	if (m) memcpy(to, m, n);
	else unanswered++;
}

void copy_bytes(void *to, const void *from, size_t n) {
	int to_device = device_of(to) >= 0, from_device = device_of(from) >= 0;
	if ((!to_device && !from_device) || written()) {
		memmove(to, from, n);
		return;
	}
	pthread_mutex_lock(&mutex);
	if (!to_device) read_device(to, (uintptr_t)from, n);
	else if (!from_device) mirror((uintptr_t)to, from, n);
	else {
		const unsigned char *m = mirrored((uintptr_t)from, n);
		if (m) mirror((uintptr_t)to, m, n);
	}
	pthread_mutex_unlock(&mutex);
}

void duplicate_bytes(void *to, const void *from, size_t n, int times) {
	if (backed()) {
		for (int i = 0; i < times; i++) memmove((char *)to + i * n, from, n);
		return;
	}
	pthread_mutex_lock(&mutex);
	const unsigned char *m = n <= MIRROR_BYTES ? mirrored((uintptr_t)from, n) : 0;
	if (m && n * times <= MIRROR_BYTES) {
		unsigned char *all = malloc(n * times);
		for (int i = 0; i < times; i++) memcpy(all + i * n, m, n);
		mirror((uintptr_t)to, all, n * times);
		free(all);
	}
	pthread_mutex_unlock(&mutex);
}
