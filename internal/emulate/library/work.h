// What a program asks of the card, in the order in which it asks.
#ifndef EMULATE_WORK_H
#define EMULATE_WORK_H

#include "abi.h"

enum work_kind {
	WORK_PRODUCT,     // of matrices: m, n, k, how many
	WORK_CONVOLUTION, // direction, batch, channels, filters, taps, input pixels, output pixels, groups
	WORK_ATTENTION,   // operations, bytes
	WORK_RECURRENT,   // gates, input, hidden, layers, directions, batch, steps, passes
	WORK_KERNEL,      // bytes that it moves
	WORK_COPY,        // bytes, between the host and the card
	WORK_WAIT,        // of the host, for the card
};

enum work_type { TYPE_FP32, TYPE_TF32, TYPE_FP16, TYPE_BF16, TYPE_FP64, TYPE_INT8, TYPE_FP8 };

enum { WORK_SIZES = 8 };

struct work {
	int kind, type;
	int backward; // launched by autograd's thread, not by Python
	long size[WORK_SIZES];
};

// The work that follows is added by whoever launches it.
void work_add(const struct work *w);
void work_product(int type, long m, long n, long k, long count);
void work_bytes(int kind, long bytes);

// kernel.c: the work of a kernel, from its name and parameters.
void work_kernel(const char *name, struct dim grid, struct dim block, void **args);

#endif
