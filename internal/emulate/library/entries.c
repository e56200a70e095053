// Every other public entry point. Products, factorizations and collectives, of
// which nothing depends on the result, succeed. What would have to answer something is an
// error that says its name: better than a wrong answer, or a crash inside a
// real library that is given a handle of ours. The definitions are weak, so
// that those of the other files go before them.
#include "emulate.h"
#include "abi.h"
#include "entries.h"

#define WEAK EXPORT __attribute__((weak))
#define SUCCEEDS(name) WEAK int name(void) { return 0; }
#define DRIVER_FAILS(name) WEAK int name(void) { return not_emulated(#name, CUDA_NOT_SUPPORTED); }
#define FFT_FAILS(name) WEAK int name(void) { return not_emulated(#name, 16 /* CUFFT_NOT_SUPPORTED */); }
#define SOLVER_FAILS(name) WEAK int name(void) { return not_emulated(#name, 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */); }
#define SPARSE_FAILS(name) WEAK int name(void) { return not_emulated(#name, 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */); }
#define DNN_FAILS(name) WEAK int name(void) { return not_emulated(#name, 3000 /* CUDNN_STATUS_NOT_SUPPORTED */); }

BLAS_ENTRIES(SUCCEEDS)
NCCL_ENTRIES(SUCCEEDS)
SOLVER_ENTRIES(SUCCEEDS)
DRIVER_ENTRIES(DRIVER_FAILS)
RUNTIME_ENTRIES(DRIVER_FAILS)
DNN_ENTRIES(DNN_FAILS)
FFT_ENTRIES(FFT_FAILS)
SOLVER_SIZES(SOLVER_FAILS)
SPARSE_ENTRIES(SPARSE_FAILS)
