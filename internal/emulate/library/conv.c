// Hopper's convolution kernels (sm90) compute tiles in clusters of thread blocks.
// Where the last round of tiles leaves clusters idle, several of them share a
// tile: each sums a part of the reduction, and the parts are added up in a binary
// tree. The parts lie in the workspace. How many clusters run at once cuDNN asks
// the device; without one it takes 18 multiprocessors for granted. All else is
// the same, so that the difference can be computed.
//
// Found by asking cuDNN 9.19 without a device (any shape and knobs may be asked
// for) and checked against plans made on an H200. Constants are observed.
#include "conv.h"

// The groups follow from the workspaces that were measured: 66, 39, 30, 22, 17,
// 15, 15 clusters of 2 to 8 blocks and 7 of 16 run at once
// (cudaOccupancyMaxActiveClusters answers the same question).
const int conv_h200[] = {18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2, 0};
static const int no_card[] = {18, 0};

// Rows and columns of a tile by the knob TILE_SIZE; cuDNN's numbering.
static const struct tile { int m, n; } tiles[] = {
	[0] = {128, 128}, [1] = {128, 64}, [2] = {128, 32}, [3] = {256, 128}, [4] = {256, 64}, [5] = {64, 64}, [6] = {128, 256},
	[7] = {64, 128}, [9] = {64, 256}, [16] = {256, 32}, [18] = {64, 192}, [19] = {128, 192}, [20] = {256, 96},
};

static long over(long n, long by) { return (n + by - 1) / by; }
static long min(long a, long b) { return a < b ? a : b; }

static int has_rule(const struct conv *c) {
	static const int half[] = {62, 67, 65}, tf32[] = {67, 71, 68};
	int known = c->tile >= 0 && c->tile < (int)(sizeof tiles / sizeof *tiles) && tiles[c->tile].m;
	return known && c->engine == (c->data_type == CONV_FLOAT ? tf32 : half)[c->direction];
}

// Clusters of tiles in the result.
static long clusters(const struct conv *c) {
	struct tile t = tiles[c->tile];
	long m, n;
	switch (c->direction) {
	case CONV_FORWARD: m = over(c->batch * c->output_pixels, t.m), n = over(c->filters, t.n); break;
	case CONV_INPUT_GRADIENT: m = over(c->batch * c->input_pixels, t.m), n = over(c->channels, t.n); break;
	default: m = over(c->filters, t.m), n = c->taps * over(c->channels, t.n);
	}
	return over(m, c->cluster_m) * over(n, c->cluster_n);
}

// Elements of the reduction in one step of a kernel, and its steps for a tile.
static long step(const struct conv *c) { return c->depth ? 64 : 32; }
static long steps(const struct conv *c) {
	switch (c->direction) {
	case CONV_FORWARD: return c->taps * over(c->channels, step(c));
	case CONV_INPUT_GRADIENT: return c->taps * over(c->filters, step(c));
	default: return over(c->batch * c->output_pixels, step(c));
	}
}

static long clusters_at_once(const int *card, int size) {
	long n = 0;
	for (; *card; card++)
		n += *card / size;
	return n ? n : 1;
}

// Into how many parts the tiles of the last round are split, at most that many, if
// rounds before it are full. The unit of time is a step.
static long parts(const struct conv *c, long rounds, long most) {
	struct tile t = tiles[c->tile];
	long all = steps(c), best = 1;
	if (c->whole || most < 2)
		return 1;
	if (rounds == 0) { // a few tiles and a long reduction: as many parts as have more than 1,024 elements each
		long n = min(most, all / (1024 / step(c) + 1));
		if (n >= 9)
			return n;
	}
	double scale = (c->data_type == CONV_BFLOAT16 ? 1 : 0.125) * 64 / step(c);
	double level = (36.9 + 63.0 * 64 * 64 / (t.m * t.n)) * scale; // to add two parts
	double start = 26.9 * scale;
	// The kernels of 128 x 64 tiles and short steps are slower if they can split; those of TF32's input gradient are not.
	double pace = c->tile == 1 && !c->depth && !(c->data_type == CONV_FLOAT && c->direction == CONV_INPUT_GRADIENT) ? 1.1 : 1;
	double least = (rounds + 1) * all;
	for (long n = 2; n <= most && all / n >= 128 / step(c); n++) {
		double tree = 0;
		for (long left = n; left > 1; left = over(left, 2))
			tree += level;
		if (rounds) { // the next tile's steps hide the additions
			tree -= pace * all - start;
			tree = tree > 0 ? tree : 0;
		}
		double time = pace * (rounds * all + over(all, n)) + tree;
		if (time < least)
			best = n, least = time;
	}
	return best;
}

// What the scheduler of tiles takes: a counter if tiles are handed out one by one
// (more than two rounds), and of the tiles that are split a semaphore for each
// addition and a tile of floats for each part.
static long scheduler(const struct conv *c, const int *card) {
	struct tile t = tiles[c->tile];
	int blocks = c->cluster_m * c->cluster_n;
	long all = clusters(c), at_once = clusters_at_once(card, blocks), last = all % at_once;
	long n = last ? parts(c, all / at_once, at_once / last) : 1, bytes = all > 2 * at_once ? 4 : 0;
	if (n > 1) {
		long additions = 0, split = last * blocks;
		for (long left = n; left > 1; left = over(left, 2))
			additions += over(left, 2);
		bytes += 32 + 4 * split * additions + 4L * split * n * t.m * t.n;
	}
	return bytes ? bytes + 127 : 0; // enough to align to 128
}

// 1 x 1 convolutions are batched products that cuDNN may leave to cuBLASLt. If there
// are more tiles than multiprocessors, its kernel hands them out one by one, by a
// counter in the workspace; it needs rows that are aligned to 16 bytes. Which tile
// it takes is not known without a device. What its time is made of, to read the
// factors and to start a tile, was fitted to 9,430 of cuDNN's workspaces on an H200,
// of which it tells 94 % (testdata/products.txt.gz).
struct product { long batch, columns, rows, sum; };

static struct product product(const struct conv *c) {
	switch (c->direction) {
	case CONV_FORWARD: return (struct product){c->batch, c->input_pixels, c->filters, c->channels};
	case CONV_INPUT_GRADIENT: return (struct product){c->batch, c->input_pixels, c->channels, c->filters};
	default: return (struct product){c->batch, c->channels, c->filters, c->input_pixels};
	}
}

static long product_counter(const struct conv *c, const int *card) {
	static const struct tile half[] = {{64, 128}, {64, 96}, {64, 192}, {128, 96}, {64, 64}, {32, 64}, {96, 192}}, tf32[] = {{64, 64}, {96, 64}, {64, 96}, {96, 128}};
	int is_tf32 = c->data_type == CONV_FLOAT, count = is_tf32 ? sizeof tf32 / sizeof *tf32 : sizeof half / sizeof *half;
	struct product p = product(c);
	long start = is_tf32 ? 77 : 11, tiles = 0, multiprocessors = 0;
	double least = 0;
	if (c->whole == 0 || c->input_pixels % (is_tf32 ? 4 : 8))
		return 0;
	for (; *card; card++)
		multiprocessors += *card;
	for (int i = 0; i < count; i++) {
		struct tile t = (is_tf32 ? tf32 : half)[i];
		long n = p.batch * over(p.columns, t.m) * over(p.rows, t.n);
		double time = (double)over(n, multiprocessors) * (p.sum * (t.m + t.n) + start * t.m * t.n);
		if (!tiles || time < least)
			tiles = n, least = time;
	}
	return tiles <= multiprocessors ? 0 : is_tf32 ? 400 : 272;
}

static int is_product(const struct conv *c) {
	static const int engines[] = {58, 63, 62};
	return c->taps == 1 && c->tile < 0 && c->input_pixels == c->output_pixels && c->engine == engines[c->direction];
}

long conv_workspace(const struct conv *c, const int *card, long deviceless) {
	if (is_product(c))
		return deviceless + product_counter(c, card);
	if (!has_rule(c))
		return deviceless;
	long rest = deviceless - scheduler(c, no_card); // tensors in another layout
	return rest < 0 ? deviceless : rest + scheduler(c, card);
}
