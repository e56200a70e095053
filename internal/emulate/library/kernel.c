// The bytes that a kernel moves. A kernel is known by the name that it was
// registered with and by its parameters, which the host has laid out for it.
// Of most of PyTorch's kernels one of them says how many elements there are;
// the others are taken to move 16 bytes in each thread.
#include "work.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static long threads(struct dim d) { return (long)d.x * d.y * d.z; }
static long integer(void **args, int i) { return *(int *)args[i]; }

// Mangled names have types in them: c10::BFloat16 is N3c108BFloat16E.
static int type_in(const char *name) {
	if (strstr(name, "BFloat16") || strstr(name, "bfloat16")) return TYPE_BF16;
	return strstr(name, "4HalfE") ? TYPE_FP16 : TYPE_FP32;
}

static int element(const char *name) { return type_in(name) == TYPE_FP32 ? 4 : 2; }

// count reads the number behind a part of a name, as 3 of St5arrayIPcLm3E.
static int count(const char *name, const char *before, int otherwise) {
	const char *at = strstr(name, before);
	return at ? atoi(at + strlen(before)) : otherwise;
}

// The kernels of Loops.cuh begin with how many elements there are. Contiguous
// tensors come as std::array<char*, n>; of others the number is not in the name.
static long elementwise(const char *name, void **args) {
	int tensors = count(name, "St5arrayIPcLm", 0), size = element(name);
	long n = integer(args, 0);
	if (strstr(name, "LoadWithCast") || strstr(name, "bfloat16_copy")) return n * (tensors ? tensors : 2) * 3; // one side is half
	return tensors ? n * tensors * size : n * size * 5 / 2;
}

// The kernels of MultiTensorApply.cuh begin with addresses[depth][most] and
// numel_for_tensor[most]; a block has a chunk of one tensor.
static long multi_tensor(const char *name, struct dim grid, void **args) {
	static const int most[] = {110, 64, 48, 36, 30};
	enum { CHUNK = 65536 };
	const char *depth_at = strstr(name, "MetadataI");
	if (!depth_at || !(depth_at = strstr(depth_at, "Li"))) return 0;
	int depth = atoi(depth_at + 2), scalars = strstr(name, "ScalarListMetadata") != 0;
	if (depth < 1 || depth > 5) return 0;
	int room = depth == 1 && scalars ? 96 : most[depth - 1];
	const int64_t *numel = (const int64_t *)args[0] + (long)depth * room;
	long left = grid.x, elements = 0;
	for (int i = 0; i < room && left > 0; i++) {
		long chunks = (numel[i] + CHUNK - 1) / CHUNK, taken = chunks < left ? chunks : left;
		if (chunks <= 0) break;
		elements += taken < chunks ? taken * CHUNK : numel[i];
		left -= taken;
	}
	return elements * depth * element(name);
}

// Reduce.cuh's parameter has a ReduceConfig: the size of an element, how many
// are summed up for a result, how many results, eight factors, and the block's
// width, height and threads, by which it is found. The fourth factor is that of
// neighbours in a block, which are summed up where rows are.
static struct work reduction(struct dim block, void **args) {
	const int *p = args[0];
	for (int i = 11; i < 64; i++)
		if (p[i] == (int)block.x && p[i + 1] == (int)block.y && p[i + 2] == (int)(block.x * block.y) && p[i - 11] > 0 && p[i - 11] <= 16 && p[i - 10] > 0 && p[i - 9] > 0)
			return (struct work){.kind = p[i - 5] ? WORK_SUM_COLUMNS : WORK_SUM_ROWS, .type = p[i - 11] == 2 ? TYPE_BF16 : TYPE_FP32, .size = {(long)p[i - 11] * p[i - 10] * p[i - 9]}};
	return (struct work){0};
}

// A packed accessor of three dimensions: the data, then sizes of 4 or 8 bytes.
static struct sizes { long n, channels, rest; } accessor(void **args) {
	const int *narrow = (const int *)args[0] + 2;
	const long *wide = (const long *)args[0] + 1;
	if (wide[0] >> 32) return (struct sizes){narrow[0], narrow[1], narrow[2]};
	return (struct sizes){wide[0], wide[1], wide[2]};
}

// Kernels of which two parameters, of 4 or of 8 bytes, make up the elements. A
// parameter of -1 is the grid's width; tensors is how often an element is read or written.
static const struct sized { const char *name; int kind, rows, columns, wide, tensors; } sized[] = {
	{"vectorized_layer_norm_kernel", WORK_LAYER_NORM, -1, 0, 0, 2}, // layer_norm_kernel.cu
	{"layer_norm_grad_input_kernel", WORK_LAYER_NORM_BACKWARD, -1, 6, 0, 3},
	{"GammaBetaBackward", WORK_KERNEL, 0, 1, 0, 0}, // is part of the time of the one before
	{"cunn_SoftMaxForward", WORK_SOFTMAX, -1, 2, 0, 2}, // SoftMax.cu, PersistentSoftmax.cuh
	{"cunn_SoftMaxBackward", WORK_SOFTMAX_BACKWARD, -1, 3, 0, 3},
	{"softmax_warp_forward", WORK_SOFTMAX, 2, 4, 0, 2},
	{"softmax_warp_backward", WORK_SOFTMAX_BACKWARD, 3, 5, 0, 3},
	{"embedding_backward_feature_kernel", WORK_EMBEDDING_BACKWARD, 3, 4, 2, 2}, // Embedding.cu
	{"compute_grad_weight", WORK_EMBEDDING_BACKWARD, 3, 4, 3, 2}, // EmbeddingBackwardKernel.cu
};

static long parameter(const struct sized *k, int i, int bit, struct dim grid, void **args) {
	if (i < 0) return grid.x;
	return k->wide & bit ? *(long *)args[i] : integer(args, i);
}

// is_logarithmic tells log_softmax from softmax, which are the same kernels.
static int is_logarithmic(const char *name) {
	const char *flag = strstr(name, "softmax_warp") ? strstr(name, "Lb") : 0;
	return strstr(name, "LogSoftMax") || (flag && flag[2] == '1');
}

// Normalization.cuh has several kernels for a batch normalisation, of which the first
// one stands for all.
static int batch_norm(const char *name, void **args, struct work *w) {
	static const struct { const char *name; int direction, rows, columns; } first[] = {
		{"batch_norm_collect_statistics_channels_last", 0, 5, 6}, {"batch_norm_backward_reduce_channels_last", 1, 10, 11},
		{"batch_norm_collect_statistics", 0, -1, -1}, {"batch_norm_backward_kernel", 1, -1, -1},
	};
	if (!strstr(name, "batch_norm_")) return 0;
	for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
		if (!strstr(name, first[i].name)) continue;
		struct sizes s = first[i].rows < 0 ? accessor(args) : (struct sizes){integer(args, first[i].rows), integer(args, first[i].columns), 1};
		*w = (struct work){.kind = WORK_BATCH_NORM, .type = type_in(name), .size = {first[i].direction, 0, s.n * s.channels * s.rest, s.channels}};
		return 1;
	}
	if (strstr(name, "transform_input") || strstr(name, "backward_elemt")) {
		*w = (struct work){.kind = WORK_KERNEL};
		return 1;
	}
	return 0;
}

// The kernels of Loops.cuh by what they do. Those that are not vectorized read by
// computed addresses: tensors in another order, or ones that are broadcast.
static int kind_of_elementwise(const char *name) {
	if (strstr(name, "FillFunctor")) return WORK_FILL;
	if (strstr(name, "tofloat32_copy")) return WORK_WIDEN;
	if (strstr(name, "vectorized_") || strstr(name, "unrolled_") || !strstr(name, "elementwise_kernelILi")) return WORK_KERNEL;
	return strstr(name, "copy_kernel") ? WORK_STRIDED : WORK_ROW;
}

// named is what a kernel with such a name does.
static struct work named(const char *name, struct dim grid, struct dim block, void **args) {
	struct work w = {.kind = WORK_KERNEL, .type = type_in(name)};
	if (strstr(name, "multi_tensor_apply_kernel")) {
		w.kind = WORK_FOREACH, w.size[0] = multi_tensor(name, grid, args);
	} else if (strstr(name, "reduce_kernel") && strstr(name, "ReduceOp")) {
		return reduction(block, args);
	} else if (strstr(name, "fused_dropout_kernel")) {
		w.kind = WORK_DROPOUT, w.size[0] = integer(args, 3) * (2 * element(name) + 1);
	} else if (strstr(name, "elementwise_kernel") && !strstr(name, "index_elementwise")) {
		w.kind = kind_of_elementwise(name), w.size[0] = elementwise(name, args);
	} else if (strstr(name, "vectorized_gather_kernel")) { // IndexKernelUtils.cu
		w.kind = WORK_EMBEDDING, w.size[0] = 2 * integer(args, 3) * *(long *)args[4];
	} else if (strstr(name, "nll_loss_")) {
		w.kind = WORK_NLL_LOSS;
	} else if (strstr(name, "max_pool_forward")) { // every other pixel of every other row, and its index: DilatedMaxPool2d.cu
		long results = strstr(name, "nhwc") ? integer(args, 1) * integer(args, 2) * integer(args, 5) * integer(args, 6) : integer(args, 0);
		w.kind = WORK_MAX_POOL, w.size[0] = results * (5 * element(name) + 8);
	} else if (!batch_norm(name, args, &w)) {
		for (const struct sized *k = sized; k < sized + sizeof sized / sizeof *sized; k++) {
			if (!strstr(name, k->name)) continue;
			w.kind = k->kind + (k->kind == WORK_SOFTMAX || k->kind == WORK_SOFTMAX_BACKWARD ? 2 * is_logarithmic(name) : 0);
			w.size[0] = parameter(k, k->rows, 1, grid, args) * parameter(k, k->columns, 2, grid, args) * k->tensors * element(name);
			break;
		}
	}
	return w;
}

// DepthwiseConv2d.cu: where the kernel's parameters are. In forward and for the gradient
// of the input there is how many results there are, for that of filters the batch.
static int depthwise(const char *name, void **args) {
	static const struct { const char *name; int count, channels, in, out, sides; } kernels[] = {
		{"conv_depthwise2d_forward", 5, 6, 8, 10, 12}, {"conv_depthwise2d_backward", 3, 4, 7, 9, 11}, {"conv_depthwise2d_grad_weight", 3, 4, 7, 9, 11},
	};
	for (int direction = 0; direction < 3; direction++) {
		if (!strstr(name, kernels[direction].name)) continue;
		const int *at = &kernels[direction].count;
		long channels = integer(args, at[1]), in = integer(args, at[2]) * integer(args, at[2] + 1), out = integer(args, at[3]) * integer(args, at[3] + 1);
		long results = channels * (direction ? in : out), batch = direction == 2 ? integer(args, at[0]) : results ? integer(args, at[0]) / results : 0;
		work_add(&(struct work){.kind = WORK_CONVOLUTION, .type = type_in(name),
			.size = {direction, batch, channels, channels, integer(args, at[4]) * integer(args, at[4] + 1), in, out, channels}});
		return 1;
	}
	return 0;
}

// PyTorch's kernels of attention have (queries, keys) or their sizes among the
// parameters: after the scale come head_dim, head_dim_value, num_queries and
// num_keys, and two further the kind of mask (mem_eff_attention/kernel_forward.h,
// kernel_backward.h). Its flash kernels have seqlen_q, seqlen_k behind the batch
// (flash_attn/src/flash.h), and whether they drop and are causal in their name.
static int attention(const char *name, struct dim grid, void **args) {
	int efficient = strstr(name, "fmha_cutlass") != 0, flash = strstr(name, "flash_fwd") || strstr(name, "flash_bwd_dq_dk_dv");
	if (!efficient && !flash) return 0;
	const int *p = args[0];
	int backward = strstr(name, "fmha_cutlassB") || strstr(name, "flash_bwd");
	long queries = 0, keys = 0, dim = 0, groups = (long)grid.y * grid.z;
	const char *traits = strstr(name, "float16_tE") ? strstr(name, "float16_tE") : strstr(name, "half_tE"), *drops = traits ? strstr(traits, "Lb") : 0;
	int causal = flash && drops && !strncmp(drops + 3, "ELb1", 4);
	for (int i = 6; i < 120 && !dim; i++) {
		float scale;
		memcpy(&scale, &p[i], sizeof scale);
		int tile_rows = grid.x ? (efficient ? p[i + 3] + (int)grid.x - 1 : 0) / (int)grid.x : 0;
		if (efficient && scale > 1e-4 && scale <= 4 && p[i + 1] > 0 && p[i + 1] <= 1024 && p[i + 2] > 0 && p[i + 2] <= 1024 && p[i + 3] > 0 && p[i + 4] > 0 && tile_rows <= 128)
			dim = (p[i + 1] + p[i + 2]) / 2, queries = p[i + 3], keys = p[i + 4], causal = (p[i + 6] & 255) != 0;
		if (flash && p[i] == (int)grid.y && p[i + 1] > 0 && p[i + 2] > 0 && p[i + 3] == 0 && p[i + 4] > 0 && p[i + 4] <= 512)
			queries = p[i + 1], keys = p[i + 2], dim = p[i + 4];
	}
	if (!dim) return 0;
	int type = strstr(name, "_f32_") ? TYPE_FP32 : strstr(name, "bf16") || strstr(name, "bfloat16") ? TYPE_BF16 : TYPE_FP16;
	struct work w = work_attention(type, efficient ? ATTENTION_EFFICIENT : ATTENTION_FLASH, backward != 0, groups, queries, keys, dim, causal);
	work_add(&w);
	return 1;
}

void work_kernel(const char *name, struct dim grid, struct dim block, void **args) {
	struct work w = {.kind = WORK_KERNEL};
	if (name && args && args[0]) {
		if (attention(name, grid, args) || depthwise(name, args)) return;
		w = named(name, grid, block, args);
	}
	int part = name && (strstr(name, "batch_norm_") || strstr(name, "GammaBeta"));
	if (!part && (w.size[0] <= 0 || w.size[0] > 64L << 30)) w.size[0] = 16 * threads(grid) * threads(block); // another version's parameters may be others
	work_add(&w);
}
