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
static int element(const char *name) {
	if (strstr(name, "BFloat16") || strstr(name, "bfloat16") || strstr(name, "4HalfE")) return 2;
	return 4;
}

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
// width, height and threads, by which it is found.
static long reduction(struct dim block, void **args) {
	const int *p = args[0];
	for (int i = 11; i < 64; i++)
		if (p[i] == (int)block.x && p[i + 1] == (int)block.y && p[i + 2] == (int)(block.x * block.y) && p[i - 11] > 0 && p[i - 11] <= 16 && p[i - 10] > 0 && p[i - 9] > 0)
			return (long)p[i - 11] * p[i - 10] * p[i - 9];
	return 0;
}

// A packed accessor of three dimensions: the data, then sizes of 4 or 8 bytes.
static long accessor(void **args) {
	const int *narrow = (const int *)args[0] + 2;
	const long *wide = (const long *)args[0] + 1;
	if (wide[0] >> 32) return (long)narrow[0] * narrow[1] * narrow[2];
	return wide[0] * wide[1] * wide[2];
}

// Kernels of which two sizes make up the elements. A parameter of -1 is the
// grid's width; tensors is how often an element is read or written.
static const struct sized { const char *name; int rows, columns, tensors; } sized[] = {
	{"vectorized_layer_norm_kernel", -1, 0, 2}, // layer_norm_kernel.cu
	{"layer_norm_grad_input_kernel", -1, 6, 3},
	{"GammaBetaBackward", 0, 1, 2},
	{"cunn_SoftMaxForward", -1, 2, 2}, // SoftMax.cu, PersistentSoftmax.cuh
	{"cunn_SoftMaxBackward", -1, 3, 3},
	{"softmax_warp_forward", 2, 4, 2},
	{"softmax_warp_backward", 3, 5, 3},
	{"batch_norm_collect_statistics_channels_last", 5, 6, 1}, // Normalization.cuh
	{"batch_norm_transform_input_channels_last", 7, 8, 2},
	{"batch_norm_backward_reduce_channels_last", 10, 11, 2},
};

static long bytes(const char *name, struct dim grid, struct dim block, void **args) {
	if (strstr(name, "multi_tensor_apply_kernel")) return multi_tensor(name, grid, args);
	if (strstr(name, "reduce_kernel") && strstr(name, "ReduceOp")) return reduction(block, args);
	if (strstr(name, "fused_dropout_kernel")) return integer(args, 3) * (2 * element(name) + 1);
	if (strstr(name, "elementwise_kernel") && !strstr(name, "index_elementwise")) return elementwise(name, args);
	for (const struct sized *k = sized; k < sized + sizeof sized / sizeof *sized; k++)
		if (strstr(name, k->name))
			return (k->rows < 0 ? grid.x : integer(args, k->rows)) * integer(args, k->columns) * k->tensors * element(name);
	if (strstr(name, "channels_last")) return 0;
	if (strstr(name, "batch_norm_collect_statistics")) return accessor(args) * element(name);
	if (strstr(name, "batch_norm_transform_input")) return 2 * accessor(args) * element(name);
	if (strstr(name, "batch_norm_backward")) return 4 * accessor(args) * element(name);
	return 0;
}

// DepthwiseConv2d.cu: where the kernel's sides and the number of results are.
static int depthwise(const char *name, void **args) {
	static const struct { const char *name; int elements, sides; } kernels[] = {{"conv_depthwise2d_forward", 5, 12}, {"conv_depthwise2d_backward", 3, 11}, {"conv_depthwise2d_grad_weight", -1, 11}};
	for (int direction = 0; direction < 3; direction++) {
		int elements = kernels[direction].elements, sides = kernels[direction].sides;
		if (!strstr(name, kernels[direction].name)) continue;
		long pixels = elements >= 0 ? integer(args, elements) : integer(args, 3) * integer(args, 5) * integer(args, 9) * integer(args, 10);
		work_add(&(struct work){.kind = WORK_CONVOLUTION, .type = element(name) == 2 ? TYPE_BF16 : TYPE_FP32,
			.size = {direction, 1, 2, 2, integer(args, sides) * integer(args, sides + 1), pixels / 2, pixels / 2, 2}});
		return 1;
	}
	return 0;
}

// PyTorch's kernels of attention have (queries, keys) or their sizes among the
// parameters: after the scale come head_dim, head_dim_value, num_queries and
// num_keys (mem_eff_attention/kernel_forward.h, kernel_backward.h). Its flash
// kernels have seqlen_q, seqlen_k behind the batch (flash_attn/src/flash.h).
static int attention(const char *name, struct dim grid, void **args) {
	int efficient = strstr(name, "fmha_cutlass") != 0, flash = strstr(name, "flash_fwd") || strstr(name, "flash_bwd_dq_dk_dv");
	if (!efficient && !flash) return 0;
	const int *p = args[0];
	int backward = strstr(name, "fmha_cutlassB") || strstr(name, "flash_bwd");
	long queries = 0, keys = 0, dim = 0, groups = (long)grid.y * grid.z;
	for (int i = 6; i < 120 && !dim; i++) {
		float scale;
		memcpy(&scale, &p[i], sizeof scale);
		int tile_rows = grid.x ? (efficient ? p[i + 3] + (int)grid.x - 1 : 0) / (int)grid.x : 0;
		if (efficient && scale > 1e-4 && scale <= 4 && p[i + 1] > 0 && p[i + 1] <= 1024 && p[i + 2] > 0 && p[i + 2] <= 1024 && p[i + 3] > 0 && p[i + 4] > 0 && tile_rows <= 128)
			dim = (p[i + 1] + p[i + 2]) / 2, queries = p[i + 3], keys = p[i + 4];
		if (flash && p[i] == (int)grid.y && p[i + 1] > 0 && p[i + 2] > 0 && p[i + 3] == 0 && p[i + 4] > 0 && p[i + 4] <= 512)
			queries = p[i + 1], keys = p[i + 2], dim = p[i + 4];
	}
	if (!dim) return 0;
	int type = strstr(name, "_f32_") ? TYPE_FP32 : strstr(name, "bf16") || strstr(name, "bfloat16") ? TYPE_BF16 : TYPE_FP16;
	long operations = (backward ? 10 : 4) * groups * queries * keys * dim, moved = (backward ? 8 : 4) * groups * dim * (queries + keys) / 2 * (type == TYPE_FP32 ? 4 : 2);
	work_add(&(struct work){.kind = WORK_ATTENTION, .type = type, .size = {operations, moved, backward}});
	return 1;
}

void work_kernel(const char *name, struct dim grid, struct dim block, void **args) {
	if (!name || !args || !args[0]) {
		work_bytes(WORK_KERNEL, 16 * threads(grid) * threads(block));
		return;
	}
	if (attention(name, grid, args) || depthwise(name, args)) return;
	long n = bytes(name, grid, block, args);
	int plausible = n > 0 && n < 64L << 30; // another version's parameters may be others
	work_bytes(WORK_KERNEL, plausible ? n : 16 * threads(grid) * threads(block));
}
