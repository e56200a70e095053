"""What to do about CUDA code that a program compiles while it runs, where it cannot."""

from typing import Any

from . import hook, report

# DeepSpeed's builders call their optimizers by these names (op_builder/).
_OPTIMIZERS = ("fused_adam", "fused_lamb", "fused_lion", "cpu_adam", "cpu_adagrad", "cpu_lion")


def begin() -> None:
    hook.after_import("torch.utils.cpp_extension", _explain_failures)


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
