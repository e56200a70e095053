"""How much GPU memory a training run needs, before it runs, and where it goes.

    import memorymark

    memorymark.predict("bert", batch=8, gpu="a10")
    memorymark.largest_batch("train.py:make", gpu="rtx-4090")
    memorymark.plan("llama-3.1-8b", sequence=2048, tokens="1B").cheapest
    with memorymark.record("oom.pickle"):
        train()
    memorymark.explain("oom.pickle")

The package contains the memorymark program. PyTorch is imported only when it is
needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from ._program import MemoryMarkError
from .answers import Analysis, Breakdown, Explanation, Fit, Option, OutOfMemory, Plan, Prediction, Result, Step
from .questions import explain, fit, largest_batch, plan, predict
from .recording import record

if TYPE_CHECKING:
    from .lightning import LightningCallback
    from .trainer import TrainerCallback

__all__ = [
    "Analysis",
    "Breakdown",
    "Explanation",
    "Fit",
    "LightningCallback",
    "MemoryMarkError",
    "Option",
    "OutOfMemory",
    "Plan",
    "Prediction",
    "Result",
    "Step",
    "TrainerCallback",
    "explain",
    "fit",
    "largest_batch",
    "plan",
    "predict",
    "record",
]


def __dir__() -> List[str]:
    # What is for users, callbacks that are not imported yet among it.
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # The callbacks' base classes are Transformers' and Lightning's, which take
    # seconds to import.
    if name == "TrainerCallback":
        from .trainer import TrainerCallback

        return TrainerCallback
    if name == "LightningCallback":
        from .lightning import LightningCallback

        return LightningCallback
    raise AttributeError(f"module 'memorymark' has no attribute {name!r}")
