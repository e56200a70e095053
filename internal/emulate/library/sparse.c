// cuSPARSE: products of sparse matrices with dense ones, and the handle that MAGMA
// asks for with every queue that PyTorch's linear algebra makes. Descriptions of
// matrices are the real library's: they need no device.
#include "emulate.h"
#include "work.h"

EXPORT int cusparseCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cusparseDestroy(handle h) { return 0; }
EXPORT int cusparseSetStream(handle h, handle stream) { return 0; }
EXPORT int cusparseSetPointerMode(handle h, int mode) { return 0; }

static long elements_of(const void *matrix) {
	int (*sizes)(const void *, int64_t *, int64_t *, int64_t *) = cusparse_symbol("cusparseSpMatGetSize");
	int64_t rows, columns, elements = 0;
	if (sizes) sizes(matrix, &rows, &columns, &elements);
	return elements;
}
static int launched(void) {
	emulate_launched();
	first_launch();
	return 0;
}

// Buffers are those of an H200 with cuSPARSE 12.6, in products of matrices with 490
// to 400,000 elements, within 16 bytes.
enum { CSR_ALG1 = 4 }; // cusparseSpMMAlg_t

EXPORT int cusparseXcoo2csr(handle h, const int *rows, int elements, int m, int *starts, int base) { return launched(); }
EXPORT int cusparseSpMM_bufferSize(handle h, int flip_a, int flip_b, const void *alpha, const void *a, const void *b, const void *beta, void *c, int type, int algorithm, size_t *bytes) {
	long n = elements_of(a);
	return *bytes = algorithm == CSR_ALG1 ? n / 64 + 8 : n / 3 + 12, 0;
}
EXPORT int cusparseSpMM(handle h, int flip_a, int flip_b, const void *alpha, const void *a, const void *b, const void *beta, void *c, int type, int algorithm, void *buffer) { return launched(); }
EXPORT int cusparseSpMV_bufferSize(handle h, int flip, const void *alpha, const void *a, const void *x, const void *beta, void *y, int type, int algorithm, size_t *bytes) { return *bytes = elements_of(a) / 384 + 22, 0; }
EXPORT int cusparseSpMV(handle h, int flip, const void *alpha, const void *a, const void *x, const void *beta, void *y, int type, int algorithm, void *buffer) { return launched(); }
