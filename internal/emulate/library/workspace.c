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

struct tensor { long dim[5]; int rank, type; };

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
	for (t->rank = 0; t->rank < 5 && *dim && *dim != ']'; t->rank++) t->dim[t->rank] = strtol(dim + 1, (char **)&dim, 10);
	return t->rank >= 3;
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

static long elements(const struct tensor *t) {
	long n = 1;
	for (int i = 0; i < t->rank; i++) n *= t->dim[i];
	return n;
}

// read_attention adds up the products of a graph, or reads the one node that
// stands for all of them.
static int read_attention(const char *json, struct work *w) {
	static const char product[] = "\"operation\":\"CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR\"", whole[] = "\"operation\":\"CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR\"";
	const char *nodes = after(json, "nodes"), *one = nodes ? strstr(nodes, whole) : 0;
	struct tensor a, b, c;
	w->kind = WORK_ATTENTION;
	if (one && tensor(json, one, "Q", &a) && tensor(json, one, "K", &b)) {
		w->type = type_of(a.type);
		w->size[0] = 4 * elements(&a) * b.dim[2];
		w->size[1] = 4 * elements(&a) * (w->type == TYPE_FP32 ? 4 : 2);
		return 1;
	}
	int products = 0;
	for (const char *at = nodes; at && (at = strstr(at, product)); at++) {
		if (!tensor(json, at, "matA", &a) || !tensor(json, at, "matB", &b) || !tensor(json, at, "matC", &c)) return 0;
		if (!products++) w->type = type_of(a.type), w->size[1] = elements(&a) * (w->type == TYPE_FP32 ? 4 : 2);
		w->size[0] += 2 * elements(&c) * a.dim[a.rank - 1];
	}
	w->size[2] = products > 2;
	w->size[1] *= products > 2 ? 8 : 4;
	return products;
}

// How a convolution is computed: its type, and how many multiplications a result
// takes. Filters of 3 x 3 have ways that take fewer than there are taps: Winograd's
// with tiles of 4 x 4 takes 16 for 4 results, Fourier's with tiles of 32 x 32 about 3.
enum { TENSOR_CORE = 1 << 0, FFT = 1 << 3, WINOGRAD = 1 << 5 }; // cudnnBackendNumericalNote_t

static void plan_conv(const struct conv *c, unsigned notes, struct work *w) {
	int type = type_of(c->data_type);
	long taps = c->taps;
	if (type == TYPE_FP32 && notes & TENSOR_CORE) type = TYPE_TF32;
	if (type != TYPE_FP32 && notes && !(notes & TENSOR_CORE)) type = TYPE_FP32; // on the ordinary cores
	if (notes & WINOGRAD && taps == 9) taps = 4;
	if (notes & FFT && taps > 3) taps = 3;
	*w = (struct work){.kind = WORK_CONVOLUTION, .type = type,
		.size = {c->direction, c->batch, c->channels, c->filters, taps, c->input_pixels, c->output_pixels, c->groups}};
}

void plan_work(const char *json, unsigned notes, struct work *w) {
	struct conv c;
	memset(w, 0, sizeof *w);
	if (read_conv(json, &c)) plan_conv(&c, notes, w);
	else if (!read_attention(json, w)) memset(w, 0, sizeof *w), w->kind = WORK_KERNEL;
}
