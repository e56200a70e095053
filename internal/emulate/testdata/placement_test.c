// placement_test < SEGMENTS: how many pairs of neighbouring segments the rules of memory.c put in the order of the driver.
#include <stdio.h>
#include <stdlib.h>
#include "emulate.h"

const struct card *card(void) {
	static const struct card h200 = {.memory = 1L << 40};
	return &h200;
}
int current_device(void) { return 0; }

static struct { long recorded; void *placed; } segments[1 << 12];
static int n;

static void allocate_segment(long mib, long at) {
	segments[n].placed = device_malloc(0, mib * MIB);
	segments[n++].recorded = at;
}

static void free_segment(long at) {
	for (int i = 0; i < n; i++)
		if (segments[i].recorded == at) {
			device_free(segments[i].placed);
			segments[i] = segments[--n];
			return;
		}
}

// An argument says that the process works on 16-bit numbers: it casts to them, or reads
// them, before it makes a handle.
int main(int count, char **args) {
	if (count > 1) halves_launched();
	char what;
	long mib, at, right = 0, all = 0;
	while (scanf(" %c", &what) == 1) {
		switch (what) {
		case 'K': first_launch(); break;
		case 'B': new_blas_handle(); break;
		case 'H': first_tensor_cores(); break;
		case 'N': first_communicator(); break;
		case 'f': if (scanf("%ld", &at) == 1) free_segment(at); break;
		case 's': if (scanf("%ld %ld", &mib, &at) == 2) allocate_segment(mib, at); break;
		}
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++) {
			all++;
			right += (segments[i].recorded < segments[j].recorded) == (segments[i].placed < segments[j].placed);
		}
	printf("%ld %ld\n", right, all);
	return 0;
}
