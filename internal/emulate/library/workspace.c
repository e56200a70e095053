// What a plan takes and does. cuDNN describes it as JSON:
// {"operationGraph":{"tensors":[{"name":"1","dataType":…,"dim":[…]},…],
// "nodes":[{"operation":…,"X":"1","W":"2",…}]},"engine":{"engineId":62,"knobChoices":{…}}}
#include "conv.h"
#include "dnn.h"
#include "emulate.h"
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// after returns what follows a key's colon, or 0.
static const char *after(const char *json, const char *key) {
	char quoted[64];
	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	const char *at = json ? strstr(json, quoted) : 0;
	return at ? at + strlen(quoted) : 0;
}

static int number(const char *json, const char *key, int otherwise) {
	const char *at = after(json, key);
	return at ? atoi(at) : otherwise;
}

struct tensor { long dim[5], stride[5]; int rank, type; };

// longs reads a list of at most five, and returns how many there are.
static int longs(const char *at, long *out) {
	int n = 0;
	for (; n < 5 && at && *at && *at != ']'; n++) out[n] = strtol(at + 1, (char **)&at, 10);
	return n;
}

// tensor finds the one that a node calls by a key, as X or dX.
static int tensor(const char *json, const char *node, const char *key, struct tensor *t) {
	const char *name = after(node, key);
	char start[64];
	int length = name && *name == '"' ? strcspn(name + 1, "\"") : 0;
	if (!length || length > 32) return 0;
	snprintf(start, sizeof start, "{\"name\":\"%.*s\"", length, name + 1);
	const char *at = strstr(json, start), *dim = after(at, "dim"), *type = after(at, "dataType");
	if (!dim || !type) return 0;
	t->type = !strncmp(type, "\"CUDNN_DATA_BFLOAT16\"", 21) ? CONV_BFLOAT16 : !strncmp(type, "\"CUDNN_DATA_HALF\"", 17) ? CONV_HALF : CONV_FLOAT;
	memset(t->stride, 0, sizeof t->stride);
	longs(after(at, "stride"), t->stride);
	return (t->rank = longs(dim, t->dim)) >= 3;
}

static long pixels(const struct tensor *t) {
	long n = 1;
	for (int i = 2; i < t->rank; i++) n *= t->dim[i];
	return n;
}

// read_conv reads a convolution.
static int read_conv(const char *json, struct conv *c) {
	const char *node = after(json, "nodes"), *operation = after(node, "operation"), *engine = after(json, "engine");
	struct tensor x, w, y;
	if (!operation || !engine) return 0;
	if (!strncmp(operation, "\"CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD", 44)) c->direction = CONV_FORWARD;
	else if (!strncmp(operation, "\"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA", 50)) c->direction = CONV_INPUT_GRADIENT;
	else if (!strncmp(operation, "\"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER", 52)) c->direction = CONV_WEIGHT_GRADIENT;
	else return 0;
	if (!tensor(json, node, c->direction == CONV_INPUT_GRADIENT ? "dX" : "X", &x)) return 0;
	if (!tensor(json, node, c->direction == CONV_WEIGHT_GRADIENT ? "dW" : "W", &w)) return 0;
	if (!tensor(json, node, c->direction == CONV_FORWARD ? "Y" : "dY", &y)) return 0;
	c->groups = w.dim[1] ? x.dim[1] / w.dim[1] : 1;
	c->data_type = x.type;
	c->batch = x.dim[0];
	c->channels = x.dim[1];
	c->filters = w.dim[0];
	c->taps = pixels(&w);
	c->input_pixels = pixels(&x);
	c->output_pixels = pixels(&y);
	c->channels_last = x.stride[1] == 1;
	c->engine = number(engine, "engineId", -1);
	c->tile = number(engine, "CUDNN_KNOB_TYPE_TILE_SIZE", -1);
	c->depth = number(engine, "CUDNN_KNOB_TYPE_TILEK", 0);
	c->whole = number(engine, "CUDNN_KNOB_TYPE_WORKSPACE", 0);
	c->cluster_m = number(engine, "CUDNN_KNOB_TYPE_TILE_CGA_M", 1);
	c->cluster_n = number(engine, "CUDNN_KNOB_TYPE_TILE_CGA_N", 1);
	return c->cluster_m > 0 && c->cluster_n > 0;
}

long plan_workspace(const char *json, long without_device) {
	struct conv c;
	if (card()->major != 9 || !read_conv(json, &c) || c.groups != 1) return without_device;
	return conv_workspace(&c, conv_h200, without_device);
}

static int type_of(int cudnn_type) { return cudnn_type == CONV_FLOAT ? TYPE_FP32 : cudnn_type == CONV_HALF ? TYPE_FP16 : TYPE_BF16; }

// is_causal reports whether a graph compares the numbers of queries and keys.
static int is_causal(const char *json) { return strstr(json, "GEN_INDEX") != 0; }

// read_attention reads the node that stands for all of attention, or the products of its
// graph: two of them forward, five backward. Both begin with queries and keys.
static int read_attention(const char *json, struct work *w) {
	static const char product[] = "\"operation\":\"CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR\"", whole[] = "\"operation\":\"CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR\"";
	const char *nodes = after(json, "nodes"), *one = nodes ? strstr(nodes, whole) : 0, *first = nodes ? strstr(nodes, product) : 0;
	struct tensor q, k;
	long keys;
	int products = 0;
	if (one && tensor(json, one, "Q", &q) && tensor(json, one, "K", &k)) keys = k.dim[2];
	else if (first && tensor(json, first, "matA", &q) && tensor(json, first, "matB", &k)) keys = k.dim[k.rank - 1];
	else return 0;
	for (const char *at = first; at; at = strstr(at + 1, product)) products++;
	*w = work_attention(type_of(q.type), ATTENTION_CUDNN, products > 2, q.dim[0] * q.dim[1], q.dim[2], keys, q.dim[3], is_causal(json));
	return 1;
}

// plan_conv's type is that of its tensors, or TF32 where plain numbers are multiplied on
// tensor cores.
enum { TENSOR_CORE = 1 << 0 }; // cudnnBackendNumericalNote_t

static void plan_conv(const struct conv *c, unsigned notes, struct work *w) {
	int type = type_of(c->data_type);
	if (type == TYPE_FP32 && notes & TENSOR_CORE) type = TYPE_TF32;
	*w = (struct work){.kind = WORK_CONVOLUTION, .type = type,
		.size = {c->direction, c->batch, c->channels, c->filters, c->taps, c->input_pixels, c->output_pixels, c->groups, c->channels_last}};
}

void plan_work(const char *json, unsigned notes, struct work *w) {
	struct conv c;
	memset(w, 0, sizeof *w);
	if (read_conv(json, &c)) plan_conv(&c, notes, w);
	else if (!read_attention(json, w)) memset(w, 0, sizeof *w), w->kind = WORK_KERNEL;
}
