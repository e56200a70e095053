"""Numbers that were not computed but cannot be negative.

Norms of gradients are checked: one below 0 stands for an overflow (DeepSpeed's
is_invalid_grad_norm, runtime/utils.py). To compute a whole step for such a check
would take long, and what it says is known.
"""

from __future__ import annotations

from typing import Any, Callable, Optional


class Signs:
    def __init__(self, torch: Any) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self.torch = torch
        self.not_negative = WeakIdKeyDictionary()

        def both(*names: str) -> set[Any]:
            return {f for name in names for owner in (torch, torch.Tensor, torch.linalg) if (f := getattr(owner, name, None)) is not None}

        self.makes = both("norm", "vector_norm", "matrix_norm", "_foreach_norm", "abs", "square", "sqrt", "exp", "var", "std", "softmax", "sigmoid")
        self.keeps = both(
            "stack", "cat", "sum", "max", "amax", "mean", "clone", "detach", "to", "float", "double", "half", "bfloat16", "cuda", "reshape", "view", "flatten", "squeeze", "unsqueeze",
            "pow", "mul", "add", "div", "__mul__", "__rmul__", "__add__", "__radd__", "__truediv__", "__pow__", "__getitem__", "where", "masked_fill", "masked_fill_",
        )  # fmt: skip
        self.fills = both("masked_fill", "masked_fill_")
        self.less, self.not_less = both("lt", "__lt__"), both("ge", "__ge__")

    def follow(self, function: Any, args: Any, inputs: list[Any], results: list[Any], value: Callable[[Any], Any]) -> None:
        """Notes of what a function returned whether it can be negative. The last argument tells the one value that a tensor holds, if it is known."""
        if function in self.fills and len(inputs) > 1 and (mask := value(inputs[1])) is not None and not mask:
            inputs = inputs[:1]
        numbers = (a for a in args if isinstance(a, (int, float)))
        kept = function in self.makes or function in self.keeps and all(n >= 0 for n in numbers) and all(self._is(t, value) for t in inputs)
        for t in results:
            if kept:
                self.not_negative[t] = True
            else:
                self.not_negative.pop(t, None)

    def _is(self, t: Any, value: Callable[[Any], Any]) -> bool:
        if t in self.not_negative or t.dtype == self.torch.bool:
            return True
        known = value(t)
        return known is not None and bool(known >= 0)

    def compare(self, function: Any, args: Any) -> Optional[bool]:
        """What a comparison with 0 says, None if that is not known."""
        if function not in self.less and function not in self.not_less:
            return None
        if isinstance(args[1], self.torch.Tensor) or args[1] > 0 or args[0] not in self.not_negative:
            return None
        return function in self.not_less
