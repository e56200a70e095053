// The workspace of those convolutions whose kernels share tiles among thread blocks.
#ifndef EMULATE_CONV_H
#define EMULATE_CONV_H

enum { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT };
enum { CONV_FLOAT = 0, CONV_HALF = 2, CONV_BFLOAT16 = 9 }; // cudnnDataType_t; float stands for TF32

// A convolution, and the plan that cuDNN's heuristics chose for it.
struct conv {
	int direction, data_type;
	long batch, channels, filters, taps, groups; // taps: of the filter, r * s
	long input_pixels, output_pixels;    // of one image, h * w and p * q
	int channels_last;
	int engine;                          // engineId
	int tile, depth, whole, cluster_m, cluster_n; // knobs TILE_SIZE, TILEK, WORKSPACE, TILE_CGA_M, TILE_CGA_N
};

// Multiprocessors that can form clusters together, ended by 0. Their sum is what the card has.
extern const int conv_h200[];

// What cuDNN would take on a card, given what it takes when it plans without one.
long conv_workspace(const struct conv *c, const int *card, long deviceless);

#endif
