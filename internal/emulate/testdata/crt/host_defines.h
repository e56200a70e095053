// In the place of the header of nvcc's own that PyTorch's packages lack.
#define __device_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define CUDARTAPI
#define __host__
