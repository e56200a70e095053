// The workspace of a convolution's plan, which cuDNN describes as JSON:
// {"operationGraph":{"tensors":[{"name":"1","dataType":…,"dim":[…]},…],
// "nodes":[{"operation":…,"X":"1","W":"2",…}]},"engine":{"engineId":62,"knobChoices":{…}}}
#include "conv.h"
#include "dnn.h"
#include "phantom.h"

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

// read_conv reads a convolution without groups.
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
	if (w.dim[1] != x.dim[1]) return 0; // groups
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
	if (card()->major != 9 || !read_conv(json, &c)) return without_device;
	return conv_workspace(&c, conv_h200, without_device);
}
