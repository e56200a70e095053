// cuFFT: plans and the work areas they need, which PyTorch allocates (its
// CuFFTPlanCache.h turns cuFFT's own allocation off). The rules are those of 1,809
// plans on an H200 (cuFFT 12.0): exact for powers of two up to 16384 and for most
// sizes up to 480. For sizes beyond, cuFFT has kernels of its own for some and not for
// others, and for some batches of a thousand; there the rule may be off by one copy
// of the data.
#include "emulate.h"
#include "work.h"

enum { R_32F, R_64F, R_16F, C_32F = 4, C_64F, C_16F }; // cudaDataType_t

static int complex_bytes(int type) {
	switch (type) {
	case R_64F: case C_64F: return 16;
	case R_16F: case C_16F: return 4;
	}
	return 8;
}
static int is_real(int type) { return type < C_32F; }

static long largest_prime(long n) {
	long largest = 1;
	for (long p = 2; p * p <= n; p++)
		for (; n % p == 0; n /= p) largest = p;
	return n > 1 ? n : largest;
}

// most_at_once is the longest transform that stays in a multiprocessor's shared
// memory from its first pass to its last.
static long most_at_once(int bytes, int real) {
	if (bytes == 4) return 8192;
	if (bytes == 16 && real) return 4096;
	return 16384;
}

// has_real_kernel: transforms of real numbers whose passes are in one kernel. The
// others are complex ones of half the length, and a pass that takes them apart.
static int has_real_kernel(long n, int bytes) {
	static const int others[] = {600, 768, 800, 960, 1000, 1920};
	if (n <= 480 && n % 2 == 0) return 1;
	if ((n & (n - 1)) == 0) return n <= most_at_once(bytes, 1);
	for (int i = 0; i < 6; i++)
		if (n == others[i]) return 1;
	return n == 3072 && bytes == 8;
}

// is_general: cuFFT's kernels are for lengths of factors up to 7. A complex transform of several dimensions
// in which one has another factor needs a copy of the data (85 x 85 on an H200; one of 11 or 13 was not tried).
static int is_general(int rank, const long long *n) {
	for (int i = 0; i < rank; i++)
		if (largest_prime(n[i]) > 7) return 1;
	return 0;
}

// work_area is what a plan needs in addition to its input and output, in bytes.
static size_t work_area(int rank, const long long *n, long batch, int type, int real) {
	int bytes = complex_bytes(type);
	long last = n[rank - 1], all = batch;
	for (int i = 0; i < rank; i++) all *= n[i];
	size_t data = (size_t)all * bytes;
	if (real && last % 2 && (rank > 1 || last > 256)) { // as complex numbers, which one transform alone copies
		if (rank == 1 && last > 4096 && largest_prime(last) > 127) return data * (batch == 1 ? 5 : 5 / 2.0);
		return batch == 1 ? 2 * data : data;
	}
	if (rank > 1) return real || !is_general(rank, n) ? 0 : data;
	if (last > 4096 && largest_prime(last) > 127) return 4 * data; // Bluestein's way
	if (real) return has_real_kernel(last, bytes) || last <= 256 ? 0 : data / 2;
	return last > most_at_once(bytes, 0) ? data : 0;
}

EXPORT int cufftCreate(int *plan) {
	static int plans;
	return *plan = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED), 0;
}
EXPORT int cufftDestroy(int plan) { return 0; }
EXPORT int cufftSetAutoAllocation(int plan, int automatic) { return 0; }
EXPORT int cufftSetStream(int plan, handle stream) { return 0; }
EXPORT int cufftSetWorkArea(int plan, void *area) { return 0; }
EXPORT int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance, int in_type, long long *out_embed, long long out_stride, long long out_distance, int out_type, long long batch, size_t *area, int type) {
	return *area = work_area(rank, n, batch, type, is_real(in_type) || is_real(out_type)), 0;
}
EXPORT int cufftXtExec(int plan, void *from, void *to, int direction) {
	emulate_launched();
	first_launch();
	return 0;
}
