// The random numbers of CUDA's generator, Philox 4x32 with ten rounds (Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011), in the order in which
// PyTorch's kernels put them into a tensor.
#include "emulate.h"

static void philox(const uint32_t counter[4], uint64_t seed, uint32_t out[4]) {
	uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
	uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
	for (int round = 0; round < 10; round++, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
		uint64_t x = (uint64_t)0xD2511F53 * a, y = (uint64_t)0xCD9E8D57 * c;
		a = (uint32_t)(y >> 32) ^ b ^ key0, b = (uint32_t)y;
		c = (uint32_t)(x >> 32) ^ d ^ key1, d = (uint32_t)x;
	}
	out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

// emulate_philox draws for n elements. Each of the threads has its own
// subsequence, of which it takes four words at a time, from an offset on. They are
// for `each` elements (4, or 2 of two words), which are neighbours, or as many
// threads apart (DistributionTemplates.h, distribution_elementwise_grid_stride_kernel).
// For pairs, an element gets the two words that its normal number is made of.
EXPORT void emulate_philox(uint64_t seed, uint64_t offset, long threads, int each, int neighbours, int pairs, long n, uint32_t *out) {
	long calls = (n + threads * each - 1) / (threads * each);
	for (long call = 0; call < calls; call++) {
		uint64_t at = offset / 4 + (uint64_t)call;
		for (long thread = 0; thread < threads; thread++) {
			long first = call * threads * each + (neighbours ? thread * each : thread);
			if (first >= n) break;
			uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)thread, (uint32_t)((uint64_t)thread >> 32)}, words[4];
			philox(counter, seed, words);
			for (int i = 0; i < each; i++) {
				long element = first + (neighbours ? i : i * threads);
				if (element >= n) break;
				int half = 2 * i / each;
				if (each == 2 || pairs)
					out[2 * element] = words[2 * half], out[2 * element + 1] = words[2 * half + 1];
				else
					out[element] = words[i];
			}
		}
	}
}
