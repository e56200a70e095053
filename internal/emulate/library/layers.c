// cuDNN's batch normalisation and recurrent layers, which are not graphs: their
// sizes are known to cuDNN alone, and it has no deviceless way to ask. They are
// answered by rule (bn.c, rnn.c).
#include "emulate.h"
#include "bn.h"
#include "rnn.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum { BAD_PARAM = 2000 };

// --- tensors, whose descriptors are cuDNN's own: they need no device
typedef int get_tensor_fn(handle, int, int *, int *, int *, int *);
typedef int set_tensor_fn(handle, int, int, const int *, const int *);

static struct batch_norm batch_norm(int mode, handle x) {
	get_tensor_fn *get = (get_tensor_fn *)cudnn_symbol("cudnnGetTensorNdDescriptor");
	int type = 0, n = 0, dim[8] = {0}, stride[8] = {0};
	struct batch_norm b = {.mode = mode};
	if (!get || get(x, 8, &type, &n, dim, stride) || n < 2) return b;
	b.channels_last = stride[1] == 1;
	b.element = type == RNN_FLOAT ? 4 : 2;
	b.channels = dim[1];
	b.pixels = dim[0];
	for (int i = 2; i < n && i < 8; i++) b.pixels *= dim[i];
	return b;
}

static int normalize(int mode, handle x, int backward) {
	struct batch_norm b = batch_norm(mode, x);
	work_add(&(struct work){.kind = WORK_BATCH_NORM, .type = b.element == 4 ? TYPE_FP32 : TYPE_FP16, .size = {backward, 1, (long)b.channels * b.pixels, b.channels}});
	return 0;
}
EXPORT int cudnnBatchNormalizationForwardTrainingEx(handle h, int mode, int ops, const void *alpha, const void *beta, handle x) { return normalize(mode, x, 0); }
EXPORT int cudnnBatchNormalizationBackwardEx(handle h, int mode, int ops, const void *alpha, const void *beta, const void *alpha_parameters, const void *beta_parameters, handle x) { return normalize(mode, x, 1); }
EXPORT int cudnnBatchNormalizationForwardInference(handle h, int mode, const void *alpha, const void *beta, handle x) {
	struct batch_norm b = batch_norm(mode, x);
	return work_bytes(WORK_KERNEL, TYPE_FP32, 2L * b.element * b.channels * b.pixels), 0;
}
EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle h, int mode, int ops, handle x, handle z, handle y, handle scale, handle activation, size_t *n) {
	struct batch_norm b = batch_norm(mode, x);
	return *n = bn_forward_workspace(&b), 0;
}
EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle h, int mode, int ops, handle x, handle y, handle dy, handle dz, handle dx, handle scale, handle activation, size_t *n) {
	struct batch_norm b = batch_norm(mode, x);
	return *n = bn_backward_workspace(&b), 0;
}
EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle h, int mode, int ops, handle activation, handle x, size_t *n) { return *n = 0, 0; }

// --- dropout: 24 bytes of random state for each thread that can be resident,
// as an H200 was seen to take
EXPORT int cudnnDropoutGetStatesSize(handle h, size_t *n) { return *n = 24L * card()->multiprocessors * card()->threads_per_multiprocessor, 0; }
// All that matters of a dropout descriptor is whether it drops anything.
struct dropout { float rate; };
EXPORT int cudnnCreateDropoutDescriptor(struct dropout **d) { return (*d = calloc(1, sizeof **d)) ? 0 : BAD_PARAM; }
EXPORT int cudnnDestroyDropoutDescriptor(struct dropout *d) { return free(d), 0; }
EXPORT int cudnnSetDropoutDescriptor(struct dropout *d, handle h, float rate, void *states, size_t n, unsigned long long seed) { return d->rate = rate, 0; }
EXPORT int cudnnRestoreDropoutDescriptor(struct dropout *d, handle h, float rate, void *states, size_t n, unsigned long long seed) { return d->rate = rate, 0; }

// --- recurrent layers, whose descriptors are ours
struct data { int batch, steps, vector; int *lengths; }; // lengths is 0 where all are as long

EXPORT int cudnnCreateRNNDescriptor(struct rnn **r) { return (*r = calloc(1, sizeof **r)) ? 0 : BAD_PARAM; }
EXPORT int cudnnDestroyRNNDescriptor(struct rnn *r) { return free(r), 0; }
EXPORT int cudnnCreateRNNDataDescriptor(struct data **d) { return (*d = calloc(1, sizeof **d)) ? 0 : BAD_PARAM; }
EXPORT int cudnnDestroyRNNDataDescriptor(struct data *d) {
	if (d) free(d->lengths);
	return free(d), 0;
}
EXPORT int cudnnSetRNNDescriptor_v8(struct rnn *r, int algo, int mode, int bias, int direction, int input_mode, int type, int precision, int math, int input, int hidden, int projection, int layers, struct dropout *dropout, unsigned flags) {
	*r = (struct rnn){.algo = algo, .mode = mode, .data_type = type, .input = input, .hidden = hidden, .projection = projection,
		.layers = layers, .directions = direction ? 2 : 1, .padded = flags & 1, .dropout = dropout && dropout->rate > 0};
	return 0;
}
EXPORT int cudnnSetRNNDataDescriptor(struct data *d, int type, int layout, int steps, int batch, int vector, const int *lengths, void *fill) {
	free(d->lengths);
	*d = (struct data){batch, steps, vector, 0};
	for (int i = 0; i < batch && !d->lengths; i++)
		if (lengths[i] != steps) d->lengths = memcpy(malloc(batch * sizeof *lengths), lengths, batch * sizeof *lengths);
	return 0;
}
EXPORT int cudnnGetRNNWeightSpaceSize(handle h, struct rnn *r, size_t *n) { return *n = rnn_weight_space(r), 0; }
EXPORT int cudnnGetRNNTempSpaceSizes(handle h, struct rnn *r, int training, struct data *x, size_t *workspace, size_t *reserve) {
	struct rnn own = *r;
	size_t work = 0, kept = 0;
	own.batch = x->batch;
	own.steps = x->steps;
	own.lengths = x->lengths;
	own.training = training;
	int status = rnn_temp_space(&own, &work, &kept);
	if (workspace) *workspace = work;
	if (reserve) *reserve = kept;
	return status;
}
static void set_tensor(handle d, int type, const struct rnn_param *p) {
	set_tensor_fn *set = (set_tensor_fn *)cudnn_symbol("cudnnSetTensorNdDescriptor");
	int dim[3] = {1, p->rows, p->columns}, stride[3] = {p->rows * p->columns, p->columns, 1};
	if (d && set) set(d, type, 3, dim, stride);
}
EXPORT int cudnnGetRNNWeightParams(handle h, struct rnn *r, int pseudo_layer, size_t n, char *weights, int linear, handle matrix_descriptor, void **matrix_at, handle bias_descriptor, void **bias_at) {
	struct rnn_param matrix, bias;
	int status = rnn_weight_params(r, pseudo_layer, linear, &matrix, &bias);
	if (status) return status;
	set_tensor(matrix_descriptor, r->data_type, &matrix);
	if (matrix_at) *matrix_at = weights + matrix.offset;
	if (bias.rows) set_tensor(bias_descriptor, r->data_type, &bias);
	if (bias_at) *bias_at = bias.rows ? weights + bias.offset : 0;
	return 0;
}
// A pass over a recurrent layer: one product after another, step by step.
static int recur(const struct rnn *r, const struct data *x, int sequential) {
	static const int gates[] = {[RNN_RELU] = 1, [RNN_TANH] = 1, [RNN_LSTM] = 4, [RNN_GRU] = 3};
	int type = r->data_type == RNN_FLOAT ? TYPE_FP32 : r->data_type == RNN_HALF ? TYPE_FP16 : r->data_type == RNN_DOUBLE ? TYPE_FP64 : TYPE_BF16;
	work_add(&(struct work){.kind = WORK_RECURRENT, .type = type,
		.size = {gates[r->mode], r->input, r->hidden, r->layers, r->directions, x->batch, x->steps, sequential}});
	return 0;
}
EXPORT int cudnnRNNForward(handle h, struct rnn *r, int mode, const int *lengths, struct data *x) { return recur(r, x, 1); }
EXPORT int cudnnRNNBackwardData_v8(handle h, struct rnn *r, const int *lengths, handle y_descriptor, const void *y, const void *dy, struct data *x) { return recur(r, x, 1); }
EXPORT int cudnnRNNBackwardWeights_v8(handle h, struct rnn *r, int add, const int *lengths, struct data *x) { return recur(r, x, 0); }
