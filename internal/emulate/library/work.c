// What a step asks of the card, from which its time is estimated: every launch
// in its order. Equal ones are kept once, and the order as their numbers. The
// tables are static: memory that comes and goes would change where the kernel
// has addresses for the driver's regions (memory.c).
#define _GNU_SOURCE
#include "work.h"
#include "emulate.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_ITEMS = 1 << 13, MOST_LAUNCHES = 1 << 17 };

static struct step {
	struct work items[MOST_ITEMS];
	uint16_t order[MOST_LAUNCHES];
	int items_used, launches;
	long calls; // of PyTorch's functions
	double weight;
} steps[2], *now = &steps[0], *kept = &steps[1];
static int finished; // steps
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int find(const struct work *w) {
	static int slots[2 * MOST_ITEMS]; // a hash table of numbers from 1
	uint64_t hash = 14695981039346656037u;
	const unsigned char *bytes = (const unsigned char *)w;
	if (!now->items_used) memset(slots, 0, sizeof slots);
	for (size_t i = 0; i < sizeof *w; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
	for (size_t i = hash % (2 * MOST_ITEMS);; i = (i + 1) % (2 * MOST_ITEMS)) {
		if (slots[i] && !memcmp(&now->items[slots[i] - 1], w, sizeof *w)) return slots[i] - 1;
		if (slots[i]) continue;
		if (now->items_used == MOST_ITEMS) return -1;
		now->items[now->items_used] = *w;
		slots[i] = ++now->items_used;
		return now->items_used - 1;
	}
}

// weight is how much is asked for, to tell a full batch from the rest of an
// epoch: bytes, and operations at 100 a byte.
static double weight(const struct work *w) {
	const long *s = w->size;
	switch (w->kind) {
	case WORK_PRODUCT: return .02 * s[0] * s[1] * s[2] * s[3];
	case WORK_CONVOLUTION: return .02 * s[1] * s[2] * s[3] * s[4] * s[6] / (s[7] ? s[7] : 1);
	case WORK_RECURRENT: return .02 * s[0] * s[2] * s[2] * s[3] * s[4] * s[5] * s[6];
	case WORK_ATTENTION: return .01 * s[0];
	}
	return s[0];
}

void work_add(const struct work *w) {
	struct work own;
	memset(&own, 0, sizeof own); // the hash is of every byte
	own.kind = w->kind, own.type = w->type, own.backward = syscall(SYS_gettid) != getpid();
	memcpy(own.size, w->size, sizeof own.size);
	pthread_mutex_lock(&mutex);
	int i = now->launches < MOST_LAUNCHES ? find(&own) : -1;
	if (i >= 0) now->order[now->launches] = i;
	if (now->launches <= MOST_LAUNCHES) now->launches += i < 0 ? MOST_LAUNCHES + 1 : 1; // too much for the tables
	now->weight += weight(&own);
	pthread_mutex_unlock(&mutex);
}

void work_bytes(int kind, int type, long bytes) { work_add(&(struct work){.kind = kind, .type = type, .size = {bytes}}); }

// Two products of queries and keys, half of them if causal; backward has two and a half
// times that, since it computes the scores again.
struct work work_attention(int type, int implementation, int backward, long heads, long queries, long keys, long dim, int causal) {
	long operations = 4 * heads * queries * keys * dim / (causal ? 2 : 1), moved = 2 * heads * dim * (queries + keys) * (type == TYPE_FP32 ? 4 : 2);
	if (backward) operations = operations / 2 * 5, moved *= 2;
	return (struct work){.kind = WORK_ATTENTION, .type = type, .size = {operations, moved, backward, implementation, queries, keys, dim, heads}};
}

// For the Python side: an optimizer's step ends. The first is left out, since a
// program does much once before and in it; of the others the largest is kept.
EXPORT void emulate_stepped(long calls) {
	pthread_mutex_lock(&mutex);
	now->calls = calls;
	if (finished++ && now->weight >= kept->weight) {
		struct step *free = kept;
		kept = now, now = free;
	}
	now->items_used = now->launches = 0;
	now->weight = 0;
	pthread_mutex_unlock(&mutex);
}

// In a forked child, which counts its own steps.
EXPORT void emulate_work_forget(void) {
	now->items_used = now->launches = kept->items_used = kept->launches = finished = 0;
	now->weight = kept->weight = 0;
}

// emulate_work gives out the step that was kept. A step that is too long for the
// tables has no launches.
EXPORT int emulate_work(const struct work **items, int *n, const uint16_t **order, long *calls) {
	*items = kept->items, *n = kept->items_used, *order = kept->order, *calls = kept->calls;
	return kept->launches <= MOST_LAUNCHES ? kept->launches : 0;
}
