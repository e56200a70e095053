// What cuDNN answers about the memory of a recurrent layer.
#ifndef EMULATE_RNN_H
#define EMULATE_RNN_H

#include <stddef.h>

// cuDNN's own numbers (cudnnRNNAlgo_t, cudnnRNNMode_t, cudnnDataType_t, cudnnStatus_t).
enum { RNN_STANDARD = 0, RNN_PERSIST_STATIC = 1, RNN_PERSIST_STATIC_SMALL_H = 3 };
enum { RNN_RELU = 0, RNN_TANH = 1, RNN_LSTM = 2, RNN_GRU = 3 };
enum { RNN_FLOAT = 0, RNN_DOUBLE = 1, RNN_HALF = 2, RNN_BFLOAT16 = 9 };
enum { RNN_SUCCESS = 0, RNN_BAD_PARAM = 2000, RNN_NOT_SUPPORTED = 3000 };

struct rnn {
	int algo, mode, data_type;
	int input, hidden, projection; // sizes of a vector; projection equals hidden where there is none
	int layers, directions;        // directions: 1 or 2
	int batch, steps;              // steps: of the longest sequence
	const int *lengths;            // of each sequence; NULL: all have as many steps as the longest
	int padded;                    // CUDNN_RNN_PADDED_IO_ENABLED, which PyTorch sets unless the input is a PackedSequence
	int training;                  // CUDNN_FWD_MODE_TRAINING
	int dropout;                   // whether the dropout descriptor has a rate above 0
};

struct rnn_param {
	size_t offset; // in bytes, from the start of the weights
	int rows, columns;
};

// cudnnGetRNNWeightSpaceSize
size_t rnn_weight_space(const struct rnn *r);

// cudnnGetRNNTempSpaceSizes; the math type changes nothing, the algorithm not the reserve.
int rnn_temp_space(const struct rnn *r, size_t *workspace, size_t *reserve);

// Both of the above.
int rnn_sizes(const struct rnn *r, size_t *weights, size_t *workspace, size_t *reserve);

// cudnnGetRNNWeightParams: the matrix and the bias of one linear layer. A pseudo
// layer is one direction of a layer. A projection has no bias: its rows are 0.
int rnn_weight_params(const struct rnn *r, int pseudo_layer, int linear, struct rnn_param *matrix, struct rnn_param *bias);

#endif
