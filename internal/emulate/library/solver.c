// cuSOLVER: factorizations of matrices and the work areas they need, which PyTorch
// allocates (aten/src/ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp). Areas are
// those of an H200 with cuSOLVER 12.0; the formulas meet what torch.linalg allocated
// there for matrices of 3 to 1024 rows, most to the byte. Off are the areas of Q
// (orgqr by 9 %, of a complete Q and ormqr by up to 37 %) and some of eigen- and
// singular values (up to 14 %). Every
// factorization succeeds, and its info on the device reads as 0.
#include "emulate.h"

static long least(long a, long b) { return a < b ? a : b; }
static long most(long a, long b) { return a > b ? a : b; }

static int type_bytes(int type) { // cudaDataType_t
	switch (type) {
	case 1: case 4: return 8; // R_64F, C_32F
	case 5: return 16;        // C_64F
	}
	return 4;
}

// --- elements of work areas
static long round32(long n) { return (n + 31) / 32 * 32; }

static long bytes_of_cholesky(long n) {
	long blocks = (n + 63) / 64;
	return round32(16 * blocks * blocks + 128);
}
static long bytes_of_lu(long n) { return n <= 256 ? 256 + 512 * ((n + 31) / 32) : 4352 + 512 * ((n + 63) / 64); }
static long area_of_qr(long n) { return 524288 + 1024 * most(n, 256) + 32; }
static long area_of_q(long m, long k) { return 32768 + 256 + (k <= 64 ? round32(m * k) : m * least(k, 192) + k * least(most(k - 192, 0), 176)); }
static long area_of_applied_q(long m, long n, long k) { return 77000 + 256 * m + (k > 64 ? 985 * k : 0) + m * n / 2; }
static long area_of_eigenvalues(long n) { return n <= 512 ? 3 * n * n + 768 * n + 65619 : 4 * n * n + 127 * n + 33000; }
static long area_of_jacobi_eigenvalues(long n) { return n * n + 33 * n + 2050; }
static long area_of_singular_values(long m, long n) {
	long k = least(m, n), blocks = (k + 63) / 64;
	if (m != n) return area_of_qr(k) + round32(k) + (m < n ? m * n : 0); // a triangular matrix first
	return 2 * k * k + 16 * blocks * blocks + 65 * 64 * blocks + 1048;
}
static long area_of_ldl(long n, int bytes) { return most(64 * n + 64, bytes == 4 ? 24608 : 13328); }

// --- handles
EXPORT int cusolverDnCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cusolverDnCreateParams(handle *h) { return *h = fresh(), 0; }
EXPORT int cusolverDnCreateSyevjInfo(handle *h) { return *h = fresh(), 0; }
EXPORT int cusolverDnCreateGesvdjInfo(handle *h) { return *h = fresh(), 0; }

// --- areas by type: S and D are real, C and Z complex and have names of their own for some
#define AREAS(T, bytes, orgqr, ormqr, syevd, syevj) \
	EXPORT int cusolverDn##T##potrf_bufferSize(handle h, int part, int n, void *a, int lda, int *area) { return *area = bytes_of_cholesky(n) / bytes, 0; } \
	EXPORT int cusolverDn##T##getrf_bufferSize(handle h, int m, int n, void *a, int lda, int *area) { return *area = bytes_of_lu(most(m, n)) / bytes, 0; } \
	EXPORT int cusolverDn##T##geqrf_bufferSize(handle h, int m, int n, void *a, int lda, int *area) { return *area = area_of_qr(least(m, n)), 0; } \
	EXPORT int cusolverDn##T##orgqr##_bufferSize(handle h, int m, int n, int k, void *a, int lda, void *tau, int *area) { return *area = area_of_q(m, k), 0; } \
	EXPORT int cusolverDn##T##ormqr##_bufferSize(handle h, int side, int flip, int m, int n, int k, void *a, int lda, void *tau, void *c, int ldc, int *area) { return *area = area_of_applied_q(m, n, k), 0; } \
	EXPORT int cusolverDn##T##syevd##_bufferSize(handle h, int vectors, int part, int n, void *a, int lda, void *w, int *area) { return *area = area_of_eigenvalues(n), 0; } \
	EXPORT int cusolverDn##T##syevj##_bufferSize(handle h, int vectors, int part, int n, void *a, int lda, void *w, int *area, handle info) { return *area = area_of_jacobi_eigenvalues(n), 0; } \
	EXPORT int cusolverDn##T##syevj##Batched_bufferSize(handle h, int vectors, int part, int n, void *a, int lda, void *w, int *area, handle info, int count) { return *area = count * area_of_jacobi_eigenvalues(n), 0; } \
	EXPORT int cusolverDn##T##gesvd_bufferSize(handle h, int m, int n, int *area) { return *area = area_of_singular_values(m, n), 0; } \
	EXPORT int cusolverDn##T##gesvdj_bufferSize(handle h, int vectors, int thin, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v, int ldv, int *area, handle info) { return *area = area_of_singular_values(m, n), 0; } \
	EXPORT int cusolverDn##T##gesvdjBatched_bufferSize(handle h, int vectors, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v, int ldv, int *area, handle info, int count) { return *area = 992, 0; } \
	EXPORT int cusolverDn##T##gesvdaStridedBatched_bufferSize(handle h, int vectors, int rank, int m, int n, void *a, int lda, long long da, void *s, long long ds, void *u, int ldu, long long du, void *v, int ldv, long long dv, int *area, int count) { return *area = count * area_of_singular_values(n, n), 0; } \
	EXPORT int cusolverDn##T##sytrf_bufferSize(handle h, int n, void *a, int lda, int *area) { return *area = area_of_ldl(n, bytes), 0; }

AREAS(S, 4, orgqr, ormqr, syevd, syevj)
AREAS(D, 8, orgqr, ormqr, syevd, syevj)
AREAS(C, 8, ungqr, unmqr, heevd, heevj)
AREAS(Z, 16, ungqr, unmqr, heevd, heevj)

// --- areas in bytes, on the card and on the host
static int bytes_of(long elements, int type, size_t *card, size_t *host) { return *card = elements * type_bytes(type), *host = 0, 0; }

EXPORT int cusolverDnXpotrf_bufferSize(handle h, handle p, int part, int64_t n, int type, const void *a, int64_t lda, int compute, size_t *card, size_t *host) { return *card = bytes_of_cholesky(n), *host = 0, 0; }
EXPORT int cusolverDnXgeqrf_bufferSize(handle h, handle p, int64_t m, int64_t n, int type, const void *a, int64_t lda, int tau_type, const void *tau, int compute, size_t *card, size_t *host) { return bytes_of(area_of_qr(least(m, n)), type, card, host); }
EXPORT int cusolverDnXsyevd_bufferSize(handle h, handle p, int vectors, int part, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w, int compute, size_t *card, size_t *host) { return bytes_of(area_of_eigenvalues(n), type, card, host); }
EXPORT int cusolverDnXsyevBatched_bufferSize(handle h, handle p, int vectors, int part, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w, int compute, size_t *card, size_t *host, int64_t count) { return bytes_of(count * (65480 + 800 * n), type, card, host); }
EXPORT int cusolverDnXsytrs_bufferSize(handle h, int part, int64_t n, int64_t columns, int type, const void *a, int64_t lda, const int64_t *pivots, int b_type, const void *b, int64_t ldb, size_t *card, size_t *host) { return bytes_of(n * columns, type, card, host); }
EXPORT int cusolverDnXgeev_bufferSize(handle h, handle p, int left, int right, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w, int l_type, const void *l, int64_t ldl, int r_type, const void *r, int64_t ldr, int compute, size_t *card, size_t *host) { return bytes_of(area_of_eigenvalues(n), type, card, host); }
