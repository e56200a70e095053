// NCCL: one rank that talks to no other. Collectives return at once; of their
// results only what is small and was just copied to the device is known, the
// same from every rank.
#include "emulate.h"

#include <stdlib.h>
#include <string.h>

enum { INVALID_USAGE = 5 };
struct unique_id { char bytes[128]; };
struct communicator { int ranks, rank; };

static size_t size_of(int type) {
	static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	return type >= 0 && type < (int)sizeof sizes ? sizes[type] : 4;
}

static int communicators;

EXPORT int emulate_communicators(void) { return communicators; }

static int join(struct communicator **c, int ranks, int rank) {
	if (!communicators++) first_communicator();
	*c = malloc(sizeof **c);
	**c = (struct communicator){ranks, rank};
	return 0;
}

EXPORT int ncclGetVersion(int *v) { return *v = 22809, 0; }
EXPORT int ncclGetUniqueId(struct unique_id *id) { return memset(id, 7, sizeof *id), 0; }
EXPORT const char *ncclGetErrorString(int status) { return status ? "an error of an emulated NCCL" : "no error"; }
EXPORT const char *ncclGetLastError(struct communicator *c) { return ""; }
EXPORT int ncclCommInitRank(struct communicator **c, int ranks, struct unique_id id, int rank) { return join(c, ranks, rank); }
EXPORT int ncclCommInitRankConfig(struct communicator **c, int ranks, struct unique_id id, int rank, void *config) { return join(c, ranks, rank); }
EXPORT int ncclCommInitRankScalable(struct communicator **c, int ranks, int rank, int ids, struct unique_id *id, void *config) { return join(c, ranks, rank); }
EXPORT int ncclCommInitAll(struct communicator **c, int n, const int *devices) {
	for (int i = 0; i < n; i++) join(&c[i], n, i);
	return 0;
}
// Who else is of the same colour is not known: all are.
EXPORT int ncclCommSplit(struct communicator *c, int color, int key, struct communicator **out, void *config) { return join(out, c->ranks, c->rank); }
EXPORT int ncclCommShrink(struct communicator *c, int *without, int n, struct communicator **out, void *config, int flags) { return join(out, c->ranks - n, c->rank); }
EXPORT int ncclCommGetAsyncError(struct communicator *c, int *status) { return *status = 0, 0; }
EXPORT int ncclCommCount(struct communicator *c, int *n) { return *n = c->ranks, 0; }
EXPORT int ncclCommUserRank(struct communicator *c, int *rank) { return *rank = c->rank, 0; }
EXPORT int ncclCommCuDevice(struct communicator *c, int *d) { return *d = current_device(), 0; }
EXPORT int ncclMemAlloc(void **p, size_t n) { return (*p = device_malloc(current_device(), n)) ? 0 : 1; }
EXPORT int ncclMemFree(void *p) { return device_free(p), 0; }

EXPORT int ncclAllGather(const void *from, void *to, size_t n, int type, struct communicator *c, handle s) { return duplicate_bytes(to, from, n * size_of(type), c->ranks), 0; }
EXPORT int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, struct communicator *c, handle s) { return duplicate_bytes(to, from, n * size_of(type), 1), 0; }
EXPORT int ncclReduce(const void *from, void *to, size_t n, int type, int op, int root, struct communicator *c, handle s) { return duplicate_bytes(to, from, n * size_of(type), 1), 0; }

// A group of broadcasts, one from each rank, gathers (ProcessGroupNCCL.cpp does
// so for a list of tensors since PyTorch 2.15): what others send is what this
// rank sends.
static __thread struct { int depth, waiting; const void *own; void *to[MAX_DEVICES]; size_t n[MAX_DEVICES], own_n; } group;

EXPORT int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, struct communicator *c, handle s) {
	n *= size_of(type);
	if (!group.depth || root == c->rank) duplicate_bytes(to, from, n, 1);
	if (group.depth && root == c->rank) group.own = from, group.own_n = n;
	if (group.depth && root != c->rank && group.waiting < MAX_DEVICES) group.to[group.waiting] = to, group.n[group.waiting++] = n;
	return 0;
}
EXPORT int ncclGroupStart(void) { return group.depth++, 0; }
EXPORT int ncclGroupEnd(void) {
	if (--group.depth > 0) return 0;
	for (int i = 0; i < group.waiting; i++)
		if (group.own && group.n[i] == group.own_n) duplicate_bytes(group.to[i], group.own, group.own_n, 1);
	memset(&group, 0, sizeof group);
	return 0;
}
EXPORT int ncclBcast(void *p, size_t n, int type, int root, struct communicator *c, handle s) { return 0; }

// What would have to answer something is refused.
#define REFUSED(name) EXPORT int name(void) { return not_emulated(#name, INVALID_USAGE); }
REFUSED(ncclCommGetUniqueId) REFUSED(ncclCommGrow) REFUSED(ncclCommMemStats) // a communicator that grows
REFUSED(ncclCommWindowRegister) REFUSED(ncclWinGetUserPtr)                    // memory that other cards write to
REFUSED(ncclDevCommCreate) REFUSED(ncclDevCommDestroy) REFUSED(ncclGetPeerDevicePointer) REFUSED(ncclGetLsaMultimemDevicePointer)
