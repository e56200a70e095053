// cuBLAS and cuBLASLt: handles, and products that are not computed but counted.
// PyTorch brings the workspaces, so that nothing of its memory depends on the rest.
#include "emulate.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// --- products of matrices
enum { TF32_MATH = 3, COMPUTE_FAST_TF32 = 77 };                        // cublasMath_t, cublasComputeType_t
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_16BF = 14, R_8F = 28 }; // cudaDataType_t; from R_8F on all have 8 bits

static __thread int math; // PyTorch sets it before every product

static int type_of(int data, int fast) {
	switch (data) {
	case R_32F: return fast ? TYPE_TF32 : TYPE_FP32;
	case R_64F: return TYPE_FP64;
	case R_16F: return TYPE_FP16;
	case R_16BF: return TYPE_BF16;
	case R_8I: return TYPE_INT8;
	}
	return data >= R_8F ? TYPE_FP8 : TYPE_FP32;
}

// How a product's operands lie: whether cuBLAS transposes them and how far apart their
// columns are. Its matrices are by columns, so that its left operand is PyTorch's right
// one, and what it does not transpose has rows there.
struct operands { int ta, tb; long a, b, c; };
enum { FORWARD_LAYOUT, INPUT_LAYOUT, WEIGHT_LAYOUT }; // steptime.Layout

static int layout(struct operands o) { return o.tb ? WEIGHT_LAYOUT : o.ta ? FORWARD_LAYOUT : INPUT_LAYOUT; }

// aligned is the largest power of 2, up to 16 bytes, of which all rows are multiples.
static int aligned(int size, struct operands o) {
	int bytes = 16;
	while (bytes > 1 && (o.a * size | o.b * size | o.c * size) % bytes) bytes /= 2;
	return bytes;
}

static int product(int data, int compute, long m, long n, long k, long count, struct operands o) {
	int type = type_of(data, math == TF32_MATH || compute == COMPUTE_FAST_TF32);
	int size = type == TYPE_FP64 ? 8 : type == TYPE_FP16 || type == TYPE_BF16 ? 2 : type == TYPE_INT8 || type == TYPE_FP8 ? 1 : 4;
	if (type == TYPE_FP16 || type == TYPE_BF16 || type == TYPE_TF32) first_tensor_cores();
	work_add(&(struct work){.kind = WORK_PRODUCT, .type = type, .size = {n, m, k, count, layout(o), aligned(size, o)}});
	return 0;
}
EXPORT int cublasSetMathMode(handle h, int mode) { return math = mode, 0; }
#define PLAIN(NAME, T, DATA) \
	EXPORT int NAME(handle h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) { \
		return product(DATA, 0, m, n, k, 1, (struct operands){ta, tb, lda, ldb, ldc}); \
	}
PLAIN(cublasSgemm_v2, float, R_32F)
PLAIN(cublasDgemm_v2, double, R_64F)
PLAIN(cublasHgemm, uint16_t, R_16F)
EXPORT int cublasGemmEx(handle h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute, int algo) {
	return product(a_type, compute, m, n, k, 1, (struct operands){ta, tb, lda, ldb, ldc});
}
EXPORT int cublasSgemmEx(handle h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const float *beta, void *c, int c_type, int ldc) {
	return product(a_type, 0, m, n, k, 1, (struct operands){ta, tb, lda, ldb, ldc});
}
#define BATCHED_PLAIN(NAME, T, DATA) \
	EXPORT int NAME(handle h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, long long sa, const T *b, int ldb, long long sb, const T *beta, T *c, int ldc, long long sc, int count) { \
		return product(DATA, 0, m, n, k, count, (struct operands){ta, tb, lda, ldb, ldc}); \
	}
BATCHED_PLAIN(cublasSgemmStridedBatched, float, R_32F)
BATCHED_PLAIN(cublasDgemmStridedBatched, double, R_64F)
EXPORT int cublasGemmStridedBatchedEx(handle h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long long sa, const void *b, int b_type, int ldb, long long sb, const void *beta, void *c, int c_type, int ldc, long long sc, int count, int compute, int algo) {
	return product(a_type, compute, m, n, k, count, (struct operands){ta, tb, lda, ldb, ldc});
}

// --- cuBLASLt, whose sizes are in its descriptors
enum { LAYOUT_BATCH_COUNT = 5, DESC_TRANSPOSE_A = 3, DESC_TRANSPOSE_B = 4 }; // cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t
struct layout { int type, count; uint64_t rows, columns; int64_t leading; };
struct description { int compute, transpose, transpose_b; };

EXPORT int cublasLtMatrixLayoutCreate(struct layout **l, int type, uint64_t rows, uint64_t columns, int64_t leading) {
	if (!(*l = calloc(1, sizeof **l))) return 3; // CUBLAS_STATUS_ALLOC_FAILED
	**l = (struct layout){type, 1, rows, columns, leading};
	return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(struct layout *l) { return free(l), 0; }
EXPORT int cublasLtMatrixLayoutSetAttribute(struct layout *l, int which, const void *value, size_t n) {
	if (which == LAYOUT_BATCH_COUNT && n >= sizeof l->count) memcpy(&l->count, value, sizeof l->count);
	return 0;
}
EXPORT int cublasLtMatmulDescCreate(struct description **d, int compute, int scale) {
	if (!(*d = calloc(1, sizeof **d))) return 3;
	(*d)->compute = compute;
	return 0;
}
EXPORT int cublasLtMatmulDescDestroy(struct description *d) { return free(d), 0; }
EXPORT int cublasLtMatmulDescSetAttribute(struct description *d, int which, const void *value, size_t n) {
	if (which == DESC_TRANSPOSE_A && n >= sizeof d->transpose) memcpy(&d->transpose, value, sizeof d->transpose);
	if (which == DESC_TRANSPOSE_B && n >= sizeof d->transpose_b) memcpy(&d->transpose_b, value, sizeof d->transpose_b);
	return 0;
}
EXPORT int cublasLtMatmul(handle h, struct description *op, const void *alpha, const void *a, struct layout *a_layout, const void *b, struct layout *b_layout, const void *beta, const void *c, struct layout *c_layout, void *d, struct layout *d_layout) {
	return product(a_layout->type, op->compute, d_layout->rows, d_layout->columns, op->transpose ? a_layout->rows : a_layout->columns, d_layout->count,
		(struct operands){op->transpose, op->transpose_b, a_layout->leading, b_layout->leading, d_layout->leading});
}

// --- factorizations of batches, whose info on the host says that all arguments are good
#define BATCHED(T) \
	EXPORT int cublas##T##geqrfBatched(handle h, int m, int n, void *a, int lda, void *tau, int *info, int count) { return *info = 0, 0; } \
	EXPORT int cublas##T##getrsBatched(handle h, int flip, int n, int columns, void *a, int lda, const int *pivots, void *b, int ldb, int *info, int count) { return *info = 0, 0; } \
	EXPORT int cublas##T##gelsBatched(handle h, int flip, int m, int n, int columns, void *a, int lda, void *c, int ldc, int *info, int *each, int count) { return *info = 0, 0; }
BATCHED(S)
BATCHED(D)
BATCHED(C)
BATCHED(Z)

// --- handles
// Making a handle loads kernels, which takes a real card some tenths of a second.
// Where there are collectives, PyTorch's watchdog uses that time to release
// the tensors of those that are done (ProcessGroupNCCL.cpp looks every 100 ms).
EXPORT int cublasCreate_v2(handle *h) {
	if (emulate_communicators()) usleep(150000);
	new_blas_handle();
	return *h = fresh(), 0;
}
EXPORT int cublasGetMathMode(handle h, int *mode) { return *mode = 0, 0; }
EXPORT int cublasGetPointerMode_v2(handle h, int *mode) { return *mode = 0, 0; }
EXPORT int cublasGetStream_v2(handle h, handle *s) { return *s = 0, 0; }
EXPORT int cublasGetVersion_v2(handle h, int *v) { return *v = cuda_major() * 10000 + 100, 0; }
EXPORT const char *cublasGetStatusString(int status) { return status ? "CUBLAS_STATUS of an emulated GPU" : "CUBLAS_STATUS_SUCCESS"; }

EXPORT int cublasLtCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cublasLtMatmulPreferenceCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cublasLtMatrixTransformDescCreate(handle *h, int scale) { return *h = fresh(), 0; }
// One algorithm, which needs no workspace: cublasLtMatmulHeuristicResult_t has 96 bytes.
EXPORT int cublasLtMatmulAlgoGetHeuristic(handle h, handle op, handle a, handle b, handle c, handle d, handle preference, int wanted, void *result, int *found) {
	memset(result, 0, 96);
	*found = 1;
	return 0;
}
