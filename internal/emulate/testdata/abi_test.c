// Holds abi.h to NVIDIA's headers: every field at its place.
#include <driver_types.h>
#include <stddef.h>
#include "abi.h"

#ifndef CUDA_MAJOR
#error CUDA_MAJOR is not set
#endif
#if CUDA_MAJOR >= 13
#define OURS struct cuda13_properties
_Static_assert(sizeof(struct cudaPointerAttributes) == sizeof(struct pointer_attributes) + CUDA13_POINTER_WORDS * sizeof(long), "cudaPointerAttributes");
#else
#define OURS struct cuda12_properties
_Static_assert(sizeof(struct cudaPointerAttributes) == sizeof(struct pointer_attributes), "cudaPointerAttributes");
#endif

#define SAME(field) _Static_assert(offsetof(OURS, field) == offsetof(struct cudaDeviceProp, field), #field)
_Static_assert(sizeof(OURS) == sizeof(struct cudaDeviceProp), "cudaDeviceProp");
SAME(uuid); SAME(totalGlobalMem); SAME(sharedMemPerBlock); SAME(regsPerBlock); SAME(warpSize); SAME(maxThreadsPerBlock); SAME(maxGridSize);
SAME(major); SAME(minor); SAME(multiProcessorCount); SAME(ECCEnabled); SAME(memoryBusWidth); SAME(l2CacheSize); SAME(maxThreadsPerMultiProcessor);
SAME(sharedMemPerMultiprocessor); SAME(regsPerMultiprocessor); SAME(cooperativeLaunch); SAME(sharedMemPerBlockOptin);
SAME(maxBlocksPerMultiProcessor); SAME(reservedSharedMemPerBlock); SAME(memoryPoolsSupported); SAME(clusterLaunch); SAME(unifiedFunctionPointers);
_Static_assert(sizeof(struct cudaFuncAttributes) == sizeof(struct function_attributes), "cudaFuncAttributes");
_Static_assert(offsetof(struct cudaFuncAttributes, preferredShmemCarveout) == offsetof(struct function_attributes, preferred_carveout), "preferredShmemCarveout");
_Static_assert(cudaErrorMemoryAllocation == CUDA_OUT_OF_MEMORY && cudaErrorInvalidDevice == CUDA_INVALID_DEVICE && cudaErrorNotSupported == CUDA_NOT_SUPPORTED, "errors");
