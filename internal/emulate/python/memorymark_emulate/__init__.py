"""The Python side of a CUDA device that is not there.

The library below PyTorch (libcuda.so.1, preloaded) gives out address space and
drops kernels. This package, imported into the program by sitecustomize, adds
what only Python can see:

  hook         what happens when torch is imported, and when the process ends
  descent      what L-BFGS reads of unknown numbers
  computed     operators that are computed on the CPU (--values computed)
  mirror       CPU tensors at device addresses
  stand_ins    what only CUDA has, on the CPU (attention, recurrent)
  progress     how far such a run is
  draws        random numbers of the device
  endless      loops that made-up values keep going
  shadows      small tensors whose values follow from the host, kept on the CPU too
  distributed  one rank of many, alone
  phases       build, load, train, eval, save: the peak of each, and its line
  steps        optimizer steps: where to stop, where to run out of memory
  serving      vLLM: whether it starts, its KV cache
  report       what the process took, for MemoryMark
  library      the entry points of the library
"""
