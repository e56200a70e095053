// What cuDNN answers about the workspace of batch normalisation.
#ifndef EMULATE_BN_H
#define EMULATE_BN_H

#include <stddef.h>

enum { BN_SPATIAL = 1, BN_SPATIAL_PERSISTENT = 2 }; // cudnnBatchNormMode_t

struct batch_norm {
	int mode;
	int channels_last;     // the stride of the channels is 1, also of a tensor [n, c, 1, 1]
	int element;           // bytes of an element of x
	size_t pixels, channels; // pixels: n * h * w
};

// cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize
size_t bn_forward_workspace(const struct batch_norm *b);
// cudnnGetBatchNormalizationBackwardExWorkspaceSize
size_t bn_backward_workspace(const struct batch_norm *b);
// cudnnGetBatchNormalizationTrainingExReserveSpaceSize answers 0 (CUDNN_BATCHNORM_OPS_BN).

#endif
