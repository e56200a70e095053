// cuBLAS and cuBLASLt: handles, and products that are not computed. PyTorch
// brings the workspaces, so that nothing of its memory depends on the rest.
#include "phantom.h"

#include <string.h>
#include <unistd.h>

// Making a handle loads kernels, which takes a real card some tenths of a second.
// Where there are collectives, PyTorch's watchdog uses that time to let go of
// the tensors of those that are done (ProcessGroupNCCL.cpp looks every 100 ms).
EXPORT int cublasCreate_v2(handle *h) {
	if (phantom_communicators()) usleep(150000);
	return *h = fresh(), 0;
}
EXPORT int cublasGetMathMode(handle h, int *mode) { return *mode = 0, 0; }
EXPORT int cublasGetPointerMode_v2(handle h, int *mode) { return *mode = 0, 0; }
EXPORT int cublasGetStream_v2(handle h, handle *s) { return *s = 0, 0; }
EXPORT int cublasGetVersion_v2(handle h, int *v) { return *v = cuda_major() * 10000 + 100, 0; }
EXPORT const char *cublasGetStatusString(int status) { return status ? "CUBLAS_STATUS of an emulated GPU" : "CUBLAS_STATUS_SUCCESS"; }

EXPORT int cublasLtCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cublasLtMatmulDescCreate(handle *h, int compute, int scale) { return *h = fresh(), 0; }
EXPORT int cublasLtMatmulPreferenceCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cublasLtMatrixTransformDescCreate(handle *h, int scale) { return *h = fresh(), 0; }
EXPORT int cublasLtMatrixLayoutCreate(handle *h, int type, uint64_t rows, uint64_t columns, int64_t leading) { return *h = fresh(), 0; }
// One algorithm, which needs no workspace: cublasLtMatmulHeuristicResult_t has 96 bytes.
EXPORT int cublasLtMatmulAlgoGetHeuristic(handle h, handle op, handle a, handle b, handle c, handle d, handle preference, int wanted, void *result, int *found) {
	memset(result, 0, 96);
	*found = 1;
	return 0;
}
