// A CUDA device that is not there.
//
// Preloaded into a program with a CUDA build of PyTorch, this library answers
// the public entry points of the CUDA runtime and driver, cuBLAS, cuDNN's
// device side, NCCL and NVML. Memory is address space that nothing is behind,
// unless values are computed (values.c), kernels do not run, and copies from the device bring what is known of its
// contents, or zeros. Everything above is the program's own: PyTorch's
// dispatcher, autograd, caching allocator and choice of kernels, CUB's sizes,
// cuDNN's heuristics.
//
// No NVIDIA header is used: the few structures of the ABI that matter are in
// abi.h, for CUDA 12 and 13, so that one library serves every version.
//
//   card.c    the card: its properties, as the environment describes it
//   memory.c  address space, as the driver gives it out; limits
//   pool.c    the driver's pools, for cudaMallocAsync
//   share.c   what other processes hold of it
//   peaks.c   the peaks of PyTorch's allocator, by phase
//   values.c  what copies from the device bring
//   runtime.c the CUDA runtime
//   driver.c  the CUDA driver, for Triton and for expandable segments
//   blas.c    cuBLAS and cuBLASLt
//   dnn.c     cuDNN: plans by its deviceless API
//   layers.c  cuDNN: batch normalisation and recurrent layers, by rule (bn.c, rnn.c)
//   nccl.c    NCCL: one rank that talks to no other
//   nvml.c    NVML: as many cards as there are, and the processes of this run
//   loader.c  what is looked up by name
//   entries.c everything else, so that nothing reaches a real library unseen
#ifndef EMULATE_H
#define EMULATE_H

// A library that was built on a young system is to load on an old one. Of what
// is used here only these have younger versions, since glibc 2.34 took libdl and
// libpthread in; the older versions of them are still there.
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif
#ifdef OLDEST
__asm__(".symver dlopen,dlopen@" OLDEST);
__asm__(".symver dlvsym,dlvsym@" OLDEST);
__asm__(".symver pthread_once,pthread_once@" OLDEST);
#endif

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define MIB (1L << 20)
#define MAX_DEVICES 64

typedef struct opaque *handle; // of whatever library: given out, never looked into

// card.c
struct card {
	char name[128];
	long memory, context; // bytes; the context's are never given out
	int major, minor, multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
	long shared_per_block, shared_per_multiprocessor, shared_optin;
	int l2, clock_khz, memory_clock_khz, bus_bits, driver;
};
const struct card *card(void);
int device_count(void);
int attribute(int which); // of cudaDeviceAttr, which are the driver's numbers too
int cuda_major(void);     // of the runtime that the program has
int occupancy(int threads, size_t shared); // resident blocks on a multiprocessor

// memory.c
int current_device(void);
void *device_malloc(int device, size_t bytes); // 0: out of memory
void device_free(void *address);
int device_of(const void *address); // -1: not the device's
#define EXIT_HOST_MEMORY 77 // of a process that needs more of it than there is (auto.go)
int backed(void);                   // whether host memory is behind device addresses,
void empty_pages(void *at, size_t bytes); // of which this much is not needed any more
#define POOL_SPAN (384L << 30)
void *pool_span(int device); // address space for a pool
void *reserve_room(size_t bytes);   // address space for an expandable segment
int take(int device, long bytes);   // physical memory; 0 if there is not so much
long free_bytes(int device);
void first_launch(void);       // the driver allocates for itself with the first kernel,
void new_blas_handle(void);    // with each handle of cuBLAS,
void first_tensor_cores(void); // with the first product of 16-bit numbers or in TF32
void halves_launched(void);    // (a kernel of such numbers has run)
void first_communicator(void); // and of NCCL

// peaks.c
void peaks_note(int device, long allocated, long reserved); // what an allocator of PyTorch's holds from now on

// share.c
void share_lock(void); // of what all processes hold
void share_unlock(void);
long share_others(int device); // bytes that other processes hold, while locked
void share_hold(int device, long bytes); // what this one holds from now on, while locked
int share_processes(int device, int64_t *pids, int64_t *bytes, int most); // that hold any

// values.c
void emulate_launched(void); // a kernel, which may have written anywhere
int written(void); // whether what the host writes to the device is kept as on a card
void copy_bytes(void *to, const void *from, size_t n);
void duplicate_bytes(void *to, const void *from, size_t n, int times); // a collective's result

// runtime.c
handle fresh(void); // a handle that is not in use
int nothing(void);  // succeeds at it

// Anything that is not emulated says so once, by name, and fails.
int not_emulated(const char *name, int status);

// graph.c: which streams a capture is on
void capture_records(handle event, handle stream);
void capture_waits(handle stream, handle event);

// nccl.c
int emulate_communicators(void); // how many there are

// loader.c
void *next_symbol(const char *name);  // the real one behind one of ours
void *cudnn_symbol(const char *name); // cuDNN's own, or 0
void *cusparse_symbol(const char *name); // cuSPARSE's own, or 0

#endif
