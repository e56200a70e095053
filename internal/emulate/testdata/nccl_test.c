// A list of tensors is gathered by a group of broadcasts, one from each rank
// (PyTorch 2.15): every rank is taken to have sent what this one did.
#include <stdint.h>
#include <stdio.h>

typedef struct opaque *handle;
struct unique_id { char bytes[128]; };
int cudaMalloc(void **, size_t), cudaMemcpy(void *, const void *, size_t, int);
int ncclCommInitRank(handle *, int, struct unique_id, int), ncclGroupStart(void), ncclGroupEnd(void);
int ncclBroadcast(const void *, void *, size_t, int, int, handle, handle);

int main(void) {
	enum { RANKS = 3, MINE = 1, INT64 = 4 };
	handle communicator;
	int64_t sent = 42, got;
	void *input, *outputs[RANKS];
	cudaMalloc(&input, sizeof sent);
	cudaMemcpy(input, &sent, sizeof sent, 1);
	ncclCommInitRank(&communicator, RANKS, (struct unique_id){{0}}, MINE);
	for (int i = 0; i < RANKS; i++) cudaMalloc(&outputs[i], sizeof sent);
	ncclGroupStart();
	for (int i = 0; i < RANKS; i++) ncclBroadcast(i == MINE ? input : outputs[i], outputs[i], 1, INT64, i, communicator, 0);
	ncclGroupEnd();
	for (int i = 0; i < RANKS; i++) {
		cudaMemcpy(&got, outputs[i], sizeof got, 2);
		if (got != sent) return printf("rank %d sent %ld instead of %ld\n", i, (long)got, (long)sent), 1;
	}
	return 0;
}
