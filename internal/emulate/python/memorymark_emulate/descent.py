"""L-BFGS, which decides by numbers that were not computed.

It ends a step where the loss stays the same, and keeps no history where the
curvature is not positive (torch/optim/lbfgs.py, LBFGS.step). With zeros it would
do both, and take less memory than on a card: its history is up to 200 times as
large as the gradients. So the descent goes well here: the loss falls, the
curvature is positive, no tolerance is reached and the first step of a line search
will do.
"""

from __future__ import annotations

import functools
from typing import Any, Optional


class Descent:
    def __init__(self, torch: Any, functions: Any) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self.torch, self.functions = torch, functions
        self.depth = self.losses = 0  # of steps that are under way; that were read
        self.verdicts = WeakIdKeyDictionary()  # comparison: what it says

    def watch(self, module: Any) -> None:
        step = module.LBFGS.step

        @functools.wraps(step)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            try:
                return step(*args, **kwargs)
            finally:
                self.depth -= 1

        module.LBFGS.step = watched

    def compare(self, function: Any, args: Any, results: list[Any]) -> None:
        """Notes what a comparison of unknown numbers says."""
        if not self.depth or function not in self.functions.ordering or len(args) != 2:
            return
        bound = args[1]
        if isinstance(bound, self.torch.Tensor):
            verdict = function in self.functions.at_most  # the slope after a step, which is to be less steep
        else:
            verdict = function in self.functions.greater and bound > 0  # curvature; a slope is below its negative bound
        for t in results:
            self.verdicts[t] = verdict

    def read(self, t: Any) -> Optional[Any]:
        """What a program reads of an unknown number, None outside of a step."""
        if not self.depth or t.numel() != 1:
            return None
        if t.dtype == self.torch.bool:
            verdict = self.verdicts.get(t)
            return None if verdict is None else self.torch.full(t.shape, verdict, dtype=t.dtype, device="cpu")
        if not t.dtype.is_floating_point:
            return None
        self.losses += 1
        return self.torch.full(t.shape, 1 / self.losses, dtype=t.dtype, device="cpu")
