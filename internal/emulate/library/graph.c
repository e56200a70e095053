// CUDA graphs. A capture only says on which streams it is: PyTorch's allocator then
// takes what is allocated there from the graph's own pool, which stays the graph's
// (c10/cuda/CUDACachingAllocator.cpp, beginAllocateToPool). To launch a graph does
// nothing, as every kernel does.
#include "emulate.h"

#include <pthread.h>

enum { CAPTURE_ACTIVE = 1 }; // cudaStreamCaptureStatus
enum { MOST = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long captures;            // their ids
static handle graph, streams[MOST], events[MOST]; // of the one that is being captured: where it is, and what was recorded there
static int stream_count, event_count;

static int has(const handle *all, int n, handle one) {
	for (int i = 0; i < n; i++)
		if (all[i] == one) return 1;
	return 0;
}
static int captured(handle stream) {
	pthread_mutex_lock(&lock);
	int found = has(streams, stream_count, stream);
	pthread_mutex_unlock(&lock);
	return found;
}

// A stream that waits for an event of the capture is part of it from then on.
void capture_records(handle event, handle stream) {
	if (!stream_count) return;
	pthread_mutex_lock(&lock);
	if (has(streams, stream_count, stream) && !has(events, event_count, event) && event_count < MOST) events[event_count++] = event;
	pthread_mutex_unlock(&lock);
}
void capture_waits(handle stream, handle event) {
	if (!stream_count) return;
	pthread_mutex_lock(&lock);
	if (has(events, event_count, event) && !has(streams, stream_count, stream) && stream_count < MOST) streams[stream_count++] = stream;
	pthread_mutex_unlock(&lock);
}

EXPORT int cudaStreamBeginCapture(handle s, int mode) {
	pthread_mutex_lock(&lock);
	captures++;
	graph = fresh();
	streams[0] = s;
	stream_count = 1, event_count = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}
EXPORT int cudaStreamEndCapture(handle s, handle *made) {
	pthread_mutex_lock(&lock);
	*made = graph;
	stream_count = event_count = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}
EXPORT int cudaStreamIsCapturing(handle s, int *status) { return *status = captured(s) ? CAPTURE_ACTIVE : 0, 0; }

static int info(handle s, int *status, unsigned long long *id) {
	*status = captured(s) ? CAPTURE_ACTIVE : 0;
	if (id && *status) *id = captures;
	return 0;
}
static int nodes_of(handle *of, const handle **nodes, size_t *n) {
	if (of) *of = graph;
	if (nodes) *nodes = 0;
	if (n) *n = 0;
	return 0;
}
EXPORT int cudaStreamGetCaptureInfo_v2(handle s, int *status, unsigned long long *id, handle *of, const handle **nodes, size_t *n) { return info(s, status, id), nodes_of(of, nodes, n); }
EXPORT int cudaStreamGetCaptureInfo_v3(handle s, int *status, unsigned long long *id, handle *of, const handle **nodes, const void **edges, size_t *n) {
	if (edges) *edges = 0;
	return info(s, status, id), nodes_of(of, nodes, n);
}
// CUDA 13 has the third version under the name of the first.
EXPORT int cudaStreamGetCaptureInfo(handle s, int *status, unsigned long long *id, handle *of, const handle **nodes, const void **edges, size_t *n) {
	return cuda_major() >= 13 ? cudaStreamGetCaptureInfo_v3(s, status, id, of, nodes, edges, n) : info(s, status, id);
}
EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode) { return 0; }

EXPORT int cudaGraphInstantiate(handle *e, handle g, unsigned long long flags) { return *e = fresh(), 0; }
EXPORT int cudaGraphInstantiateWithFlags(handle *e, handle g, unsigned long long flags) { return *e = fresh(), 0; }
EXPORT int cudaGraphLaunch(handle e, handle s) { return emulate_launched(), 0; }
EXPORT int cudaGraphDestroy(handle g) { return 0; }
EXPORT int cudaGraphExecDestroy(handle e) { return 0; }
EXPORT int cudaGraphGetNodes(handle g, handle *nodes, size_t *n) { return *n = nodes ? 0 : 1, 0; } // asked whether there are any
EXPORT int cudaGraphNodeGetDependencies(handle node, handle *on, size_t *n) { return *n = 0, 0; }
EXPORT int cudaGraphDebugDotPrint(handle g, const char *path, unsigned flags) { return 0; }
