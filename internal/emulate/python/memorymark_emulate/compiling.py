"""What to do about CUDA code that a program compiles while it runs, where it cannot, and about compilers that do not end."""

import functools
import subprocess
from typing import Any, Optional

from . import hook, report

# DeepSpeed's builders call their optimizers by these names (op_builder/).
_OPTIMIZERS = ("fused_adam", "fused_lamb", "fused_lion", "cpu_adam", "cpu_adagrad", "cpu_lion")


def begin() -> None:
    hook.after_import("torch.utils.cpp_extension", _explain_failures)
    hook.after_import("torch._inductor.compile_worker.subproc_pool", _end_workers)
    hook.after_import("torch._inductor.select_algorithm", _choose_between_two)
    hook.after_import("torch._inductor.runtime.triton_heuristics", _tune_between_two)


# Autotuning compiles every candidate and takes its time. Here all of them take the same: they compute the same, and the time
# model knows no kernels. Two are kept, so that what a benchmark allocates is allocated, and the first of them is chosen: cuBLAS's
# or cuDNN's where they have one.
_CANDIDATES = 2


def _choose_between_two(module: Any) -> None:
    select = module.AlgorithmSelectorCache.__call__

    @functools.wraps(select)
    def __call__(self: Any, name: str, choices: Any, *args: Any, **kwargs: Any) -> Any:
        libraries = [c for c in choices if isinstance(c, module.ExternKernelCaller)]
        others = [c for c in choices if not isinstance(c, module.ExternKernelCaller)]
        return select(self, name, (libraries[:1] + others + libraries[1:])[:_CANDIDATES], *args, **kwargs)

    module.AlgorithmSelectorCache.__call__ = __call__


def _tune_between_two(module: Any) -> None:
    init = module.CachingAutotuner.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.configs = self.configs[:_CANDIDATES]

    module.CachingAutotuner.__init__ = __init__


# How long TorchInductor's workers may take to end after the program: what they still compile is of no use then.
_END_WITHIN = 5.0


def _end_workers(module: Any) -> None:
    """At exit PyTorch waits five minutes for the process that compiles (SubprocPool.shutdown), which may import PyTorch
    by then, or wait for locks that its own workers had when they were forked."""
    shutdown = module.SubprocPool.shutdown

    @functools.wraps(shutdown)
    def end(self: Any) -> None:
        wait = self.process.wait

        def wait_briefly(timeout: Optional[float] = None) -> int:
            try:
                return wait(min(timeout or _END_WITHIN, _END_WITHIN))
            except subprocess.TimeoutExpired:
                self.process.kill()
                return wait()

        self.process.wait = wait_briefly
        shutdown(self)

    module.SubprocPool.shutdown = end


def _explain_failures(module: Any) -> None:
    load = module.load

    def explained(name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load(name, *args, **kwargs)
        except Exception:
            report.note(_advice(name))
            raise

    module.load = explained


def _advice(name: str) -> str:
    advice = f"{name} could not be compiled: CUDA code that is compiled while the program runs needs nvcc, ninja and CUDA_HOME, also on an emulated GPU"
    if name in _OPTIMIZERS:
        advice += '; to do without it, use PyTorch\'s optimizer: put "torch_adam": true into the params of the optimizer in DeepSpeed\'s config, or pass torch.optim.AdamW to deepspeed.initialize'
    return advice
