// What a program asks of the card, in the order in which it asks.
#ifndef EMULATE_WORK_H
#define EMULATE_WORK_H

#include "abi.h"

// The kinds of launches and what their sizes are: those of internal/steptime/kind.go,
// in its order.
enum work_kind {
	WORK_PRODUCT, WORK_CONVOLUTION, WORK_ATTENTION, WORK_BATCH_NORM, WORK_RECURRENT, WORK_KERNEL, WORK_WIDEN, WORK_ROW, WORK_STRIDED, WORK_DROPOUT,
	WORK_LAYER_NORM, WORK_LAYER_NORM_BACKWARD, WORK_SOFTMAX, WORK_SOFTMAX_BACKWARD, WORK_LOG_SOFTMAX, WORK_LOG_SOFTMAX_BACKWARD, WORK_NLL_LOSS,
	WORK_SUM_ROWS, WORK_SUM_COLUMNS, WORK_EMBEDDING, WORK_EMBEDDING_BACKWARD, WORK_MAX_POOL, WORK_MAX_POOL_BACKWARD, WORK_UPSAMPLE, WORK_GROUP_NORM,
	WORK_FOREACH, WORK_FILL, WORK_COPY, WORK_WAIT,
};

enum work_type { TYPE_FP32, TYPE_TF32, TYPE_FP16, TYPE_BF16, TYPE_FP64, TYPE_INT8, TYPE_FP8 };

enum { WORK_SIZES = 9 };

struct work {
	int kind, type;
	int backward; // launched by autograd's thread, not by Python
	long size[WORK_SIZES];
};

// The work that follows is added by whoever launches it.
void work_add(const struct work *w);
void work_bytes(int kind, int type, long bytes);

enum { ATTENTION_CUDNN, ATTENTION_FLASH, ATTENTION_EFFICIENT };

// work_attention makes the work of a kernel for attention: directions 0 and 1, how many
// heads there are in all images or texts, and the share of the scores that a causal mask
// leaves.
struct work work_attention(int type, int implementation, int backward, long heads, long queries, long keys, long dim, int causal);

// kernel.c: the work of a kernel, from its name and parameters.
void work_kernel(const char *name, struct dim grid, struct dim block, void **args);

#endif
