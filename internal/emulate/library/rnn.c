// The memory of recurrent layers. cuDNN asks the device before it answers, so
// that these rules stand in for it. They were found from 34,800 answers of cuDNN
// 9.19 on an H200 without dropout and 27,336 with it, and reproduce all of them.
// What the buffers are for is inferred from their sizes.
#include "rnn.h"

enum {
	HEADER = 256,              // at the start of workspace and reserve
	BLAS_WORKSPACE = 8 << 20,  // for the matrix products of each direction of each layer
	GATE_STEPS = 256,          // the standard algorithm multiplies this many steps of the input at once
	PERSISTENT_ROOM = 4864,    // bytes for each hidden unit, the least that PERSIST_STATIC takes in backward
};

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }
static size_t max(size_t a, size_t b) { return a > b ? a : b; }
static size_t min(size_t a, size_t b) { return a < b ? a : b; }

static size_t element(const struct rnn *r) { return r->data_type == RNN_DOUBLE ? 8 : r->data_type == RNN_FLOAT ? 4 : 2; }

// Bytes of a buffer of n elements: each starts at a multiple of 32.
static size_t buffer(const struct rnn *r, size_t n) { return up(n * element(r), 32); }

static size_t gates(const struct rnn *r) { return r->mode == RNN_LSTM ? 4 : r->mode == RNN_GRU ? 3 : 1; }
static int is_projected(const struct rnn *r) { return r->projection != r->hidden; }
static int drops_out(const struct rnn *r) { return r->dropout && r->layers > 1; } // between layers only

// The persistent kernels exist for float and half. Otherwise cuDNN takes the
// standard algorithm and does not say so.
static int is_persistent(const struct rnn *r) {
	return r->algo != RNN_STANDARD && (r->data_type == RNN_FLOAT || r->data_type == RNN_HALF);
}

// With a projection already cudnnSetRNNDescriptor_v8 fails, else cudnnGetRNNTempSpaceSizes.
static int is_supported(const struct rnn *r) {
	int gated = r->mode == RNN_LSTM || r->mode == RNN_GRU;
	switch (r->algo) {
	case RNN_PERSIST_STATIC: return !is_projected(r) && (!gated || r->hidden < 2048); // 1536 is supported, 2048 is not
	case RNN_PERSIST_STATIC_SMALL_H: return !is_projected(r) && r->hidden <= (gated ? 192 : 384);
	}
	return 1;
}

// Vectors of all sequences in the first steps.
static size_t vectors(const struct rnn *r, int steps) {
	if (!r->lengths)
		return (size_t)r->batch * min(steps, r->steps);
	size_t n = 0;
	for (int i = 0; i < r->batch; i++)
		n += min(steps, r->lengths[i]);
	return n;
}

// Width of what a layer reads: the first one the input, the others the output of all directions below.
static size_t layer_input(const struct rnn *r, int layer) { return layer ? (size_t)r->directions * r->projection : (size_t)r->input; }

// Elements of the matrices of one direction of a layer: input, recurrent, projection.
static size_t layer_matrices(const struct rnn *r, int layer) {
	size_t n = gates(r) * r->hidden * (layer_input(r, layer) + r->projection);
	return is_projected(r) ? n + (size_t)r->projection * r->hidden : n;
}

static size_t matrices(const struct rnn *r) {
	size_t n = 0;
	for (int layer = 0; layer < r->layers; layer++)
		n += r->directions * layer_matrices(r, layer);
	return n;
}

// Each gate has two biases, as PyTorch has them (CUDNN_RNN_DOUBLE_BIAS).
static size_t layer_biases(const struct rnn *r) { return 2 * gates(r) * r->hidden; }

size_t rnn_weight_space(const struct rnn *r) {
	return (matrices(r) + r->layers * r->directions * layer_biases(r)) * element(r);
}

// All matrices come first, one pseudo layer after the other: the input's of all
// gates, the recurrent of all gates, the projection's. Then all biases likewise.
int rnn_weight_params(const struct rnn *r, int pseudo_layer, int linear, struct rnn_param *matrix, struct rnn_param *bias) {
	int g = (int)gates(r), layer = pseudo_layer / r->directions;
	if (pseudo_layer < 0 || layer >= r->layers || linear < 0 || linear > 2 * g || (linear == 2 * g && !is_projected(r)))
		return RNN_BAD_PARAM;
	size_t offset = 0, in = layer_input(r, layer), out = r->projection;
	for (int p = 0; p < pseudo_layer; p++)
		offset += layer_matrices(r, p / r->directions);
	offset += (size_t)r->hidden * (linear < g ? linear * in : g * in + (linear - g) * out);
	*matrix = (struct rnn_param){offset * element(r), r->hidden, (int)(linear < g ? in : out)};
	if (linear == 2 * g) {
		*matrix = (struct rnn_param){matrix->offset, r->projection, r->hidden};
		*bias = (struct rnn_param){0};
		return RNN_SUCCESS;
	}
	offset = matrices(r) + pseudo_layer * layer_biases(r) + (size_t)linear * r->hidden;
	*bias = (struct rnn_param){offset * element(r), r->hidden, 1};
	return RNN_SUCCESS;
}

// The standard algorithm in one direction works on several layers at once, each
// some steps behind the one below. This is how many steps of results it keeps.
// The thresholds are observed: they lie at batches of 1 to 2, 8 to 12, 16 to 20
// and 96 to 100 sequences, and at 100 to 128 steps.
static size_t pipeline_steps(const struct rnn *r) {
	size_t steps = r->batch <= 1 ? 32 : r->batch <= 8 ? 16 : r->batch <= 16 ? 8 : r->batch <= 96 ? 4 : 2;
	if (r->steps >= 128)
		steps = max(steps, 8);
	return r->layers * steps + max(steps, 8);
}

// Shapes of the buffers, in elements.
struct shapes {
	size_t input, output;  // x and y
	size_t layer;          // what one direction of a layer computes for all vectors
	size_t hidden, cell;   // the states hx and cx, of all layers
};

static struct shapes shapes(const struct rnn *r) {
	size_t n = vectors(r, r->steps), states = (size_t)r->layers * r->directions * r->batch;
	return (struct shapes){n * r->input, n * r->directions * r->projection, n * r->hidden, states * r->projection, states * r->hidden};
}

// Workspace of forward and backward alike.
static size_t common(const struct rnn *r, struct shapes s) {
	size_t n = HEADER + (size_t)r->layers * r->directions * BLAS_WORKSPACE;
	n += buffer(r, matrices(r)); // the weights as the kernels want them
	if (r->mode == RNN_LSTM)
		n += buffer(r, 2 * s.cell);
	if (r->directions == 2)
		n += buffer(r, is_persistent(r) ? s.cell : 2 * s.cell);
	if (is_projected(r))
		n += buffer(r, r->directions * s.layer); // the output before it is projected
	if (r->padded) // cuDNN works on packed sequences: two arrays of indices, x and y without padding, cx and cy in their order
		n += 2 * up(sizeof(int) * r->batch, 16) + buffer(r, s.input) + buffer(r, s.output) + (r->mode == RNN_LSTM ? 2 * buffer(r, s.cell) : 0);
	return n;
}

static size_t forward(const struct rnn *r, struct shapes s) {
	int at_once = is_persistent(r) || r->directions == 2 ? r->steps : GATE_STEPS;
	size_t n = buffer(r, gates(r) * r->directions * vectors(r, at_once) * r->hidden); // the input times its weights
	if (is_persistent(r))
		n += buffer(r, 2 * s.cell) + buffer(r, 4 * gates(r) * s.layer);
	else
		n += buffer(r, gates(r) * s.cell); // the state times its weights, of one step
	if (r->directions == 2)
		n += buffer(r, 2 * r->directions * s.layer); // output of the layer below and of this one
	else if (drops_out(r))
		n += buffer(r, s.layer); // a layer's input, which has space of its own with both directions
	if (r->padded)
		n += 2 * buffer(r, s.hidden); // hx and hy in the order of the packed sequences
	return n;
}

static size_t backward(const struct rnn *r, struct shapes s) {
	size_t d = r->directions, n = buffer(r, d * d * max(s.layer, s.input)); // gradient of a layer's input
	if (r->layers == 1)
		n += buffer(r, d * s.layer); // gradient of a layer's output
	else if (d == 2 || is_persistent(r))
		n += buffer(r, 2 * d * s.layer); // the same of this layer and of the one above
	else
		n += buffer(r, min(s.layer, pipeline_steps(r) * r->batch * r->hidden));
	n += buffer(r, is_persistent(r) ? 2 * s.cell : s.cell); // gradient of the state
	if (is_persistent(r)) {
		size_t least = r->algo == RNN_PERSIST_STATIC ? (size_t)r->hidden * (PERSISTENT_ROOM + 2 * r->batch) : 0;
		n += buffer(r, (r->mode == RNN_GRU ? 2 : 1) * gates(r) * s.layer); // gradients of the gates
		n += up(max(8 * s.layer * element(r), least), 32);
	}
	if (r->padded) // dx, dy; hx, hy and their gradients; gradients of cx and cy
		n += buffer(r, s.input) + buffer(r, s.output) + 4 * buffer(r, s.hidden) + (r->mode == RNN_LSTM ? 2 * buffer(r, s.cell) : 0);
	return n;
}

// What forward keeps for backward: the gates (a GRU six values for each unit), an
// LSTM's cells, outputs before and after the projection, outputs between layers.
static size_t kept(const struct rnn *r, struct shapes s) {
	size_t layer = r->directions * s.layer, all = r->layers * layer;
	size_t n = HEADER + buffer(r, (r->mode == RNN_GRU ? 6 : gates(r)) * all) + buffer(r, (r->layers - 1) * layer);
	if (r->mode == RNN_LSTM)
		n += buffer(r, all);
	if (is_projected(r))
		n += buffer(r, all) + buffer(r, r->layers * s.output);
	if (drops_out(r)) { // a bit for each value: kept or dropped, of padded sequences, each direction's input
		size_t padded = (size_t)r->batch * r->steps * r->projection;
		n += (r->layers - 1) * r->directions * up((r->directions * padded + 7) / 8, 32);
	}
	return n;
}

int rnn_temp_space(const struct rnn *r, size_t *workspace, size_t *reserve) {
	if (!is_supported(r))
		return RNN_NOT_SUPPORTED;
	struct shapes s = shapes(r);
	*workspace = common(r, s) + (r->training ? max(forward(r, s), backward(r, s)) : forward(r, s));
	*reserve = r->training ? kept(r, s) : 0;
	return RNN_SUCCESS;
}

int rnn_sizes(const struct rnn *r, size_t *weights, size_t *workspace, size_t *reserve) {
	*weights = rnn_weight_space(r);
	return rnn_temp_space(r, workspace, reserve);
}
