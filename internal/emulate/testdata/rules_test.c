// rules_test rnn|dropout|bn|conv|products < ROWS: prints the rows that a rule misses, and how many it has right.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bn.h"
#include "conv.h"
#include "rnn.h"

static char line[512], type[16];
static int type_of(void) { return !strcmp(type, "fp32") ? RNN_FLOAT : !strcmp(type, "fp16") ? RNN_HALF : RNN_BFLOAT16; }

static int recurrent(int dropout) {
	struct rnn r = {.dropout = dropout};
	int math, bidirectional, packed, projection, inference, at = 0, want_status = 0, lengths[1024];
	size_t want[3] = {0}, got[3] = {0};
	sscanf(line, "%d %d %15s %d %d %d %d %d %d %d %d %d %d | %n", &r.algo, &r.mode, type, &math, &r.input, &r.hidden, &r.layers,
		&bidirectional, &r.batch, &r.steps, &packed, &projection, &inference, &at);
	if (sscanf(line + at, "%zu %zu %zu", want, want + 1, want + 2) != 3) want_status = atoi(strchr(line + at, ' '));
	for (int i = 0; i < r.batch; i++) lengths[i] = r.steps - i > 1 ? r.steps - i : 1; // as they were asked for
	r.data_type = type_of();
	r.directions = 1 + bidirectional;
	r.projection = projection ? projection : r.hidden;
	r.padded = !packed;
	r.training = !inference;
	r.lengths = packed ? lengths : 0;
	int status = rnn_sizes(&r, got, got + 1, got + 2);
	return status == want_status && (status || !memcmp(got, want, sizeof got));
}

static int rnn_row(void) { return recurrent(0); }
static int dropout_row(void) { return recurrent(1); }

static int bn_row(void) {
	int channels_last, mode, n, c, size, status[3];
	size_t want[3];
	sscanf(line, "%15s %d %d %d %d %d | %d %zu %d %zu %d %zu", type, &channels_last, &mode, &n, &c, &size, status, want, status + 1, want + 1, status + 2, want + 2);
	struct batch_norm b = {mode, channels_last || size == 1, type_of() == RNN_FLOAT ? 4 : 2, (size_t)n * size * size, c};
	return bn_forward_workspace(&b) == want[0] && bn_backward_workspace(&b) == want[1] && want[2] == 0;
}

static int conv_row(void) {
	struct conv c;
	long deviceless, want;
	sscanf(line, "%15s %d %d %ld %ld %ld %ld %ld %ld %d %d %d %d %d %d %ld %ld", type, &c.direction, &c.data_type, &c.batch, &c.channels, &c.filters, &c.taps,
		&c.input_pixels, &c.output_pixels, &c.engine, &c.tile, &c.depth, &c.whole, &c.cluster_m, &c.cluster_n, &deviceless, &want);
	return conv_workspace(&c, conv_h200, deviceless) == want;
}

static int product_row(void) {
	struct conv c = {.taps = 1, .groups = 1, .tile = -1, .cluster_m = 1, .cluster_n = 1};
	long deviceless, want;
	sscanf(line, "%d %d %ld %ld %ld %ld %d %d %ld | %ld", &c.direction, &c.data_type, &c.batch, &c.channels, &c.filters, &c.input_pixels, &c.engine, &c.whole, &deviceless, &want);
	c.output_pixels = c.input_pixels;
	return conv_workspace(&c, conv_h200, deviceless) == want;
}

int main(int argc, char **argv) {
	static const struct { const char *name; int (*row)(void); } rules[] = {{"rnn", rnn_row}, {"dropout", dropout_row}, {"bn", bn_row}, {"conv", conv_row}, {"products", product_row}};
	int (*row)(void) = 0;
	for (int i = 0; i < 5; i++)
		if (!strcmp(argv[argc - 1], rules[i].name)) row = rules[i].row;
	int all = 0, right = 0;
	while (fgets(line, sizeof line, stdin)) {
		int ok = row();
		all++, right += ok;
		if (!ok) fputs(line, stdout);
	}
	printf("%d of %d\n", right, all);
	return right != all;
}
