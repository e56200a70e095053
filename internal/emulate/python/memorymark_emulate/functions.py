"""The functions of PyTorch that shadows treat in ways of their own."""

from __future__ import annotations

from typing import Any


class Functions:
    """The functions that need more than to be repeated."""

    def __init__(self, torch: Any) -> None:
        Tensor = torch.Tensor

        def both(*names: str) -> set[Any]:
            found = set()
            for name in names:
                for owner in (torch, Tensor):
                    f = getattr(owner, name, None)
                    if f is not None:
                        found.add(f)
            return found

        # Properties say nothing of values, and of the CPU's copy the wrong thing (is_cpu), but for those that are views.
        views = {"H", "T", "mH", "mT", "real", "imag"}
        properties = (getattr(Tensor, name) for name in set(dir(Tensor)) - views)
        self.harmless = {p.__get__ for p in properties if type(p).__name__ in ("getset_descriptor", "property")}
        self.harmless |= both(
            "size", "dim", "stride", "numel", "backward", "is_floating_point", "is_complex", "is_contiguous", "element_size", "data_ptr",
            "storage_offset", "untyped_storage", "requires_grad_", "register_hook", "retain_grad", "get_device", "is_pinned", "is_shared", "__hash__", "__len__",
        )
        self.reads = both("item", "tolist", "cpu", "numpy") | {Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__}
        # Functions whose result is as large as a number among their arguments says.
        self.sizing = both(
            "arange", "chunk", "empty", "expand", "eye", "full", "linspace", "multinomial", "narrow", "new_empty", "new_full", "new_ones", "new_zeros", "ones", "rand", "randint",
            "randn", "randperm", "repeat", "reshape", "split", "split_with_sizes", "tile", "topk", "unfold", "view", "zeros", "__getitem__", "__setitem__",
        )  # fmt: skip
        self.copying = both("tolist", "cpu", "numpy")
        self.overwriting = {Tensor.copy_, Tensor.zero_, Tensor.fill_, torch.zero_, torch.fill_}
        self.unset = both("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
        self.random = both("rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "bernoulli_", "multinomial", "normal", "normal_", "uniform_", "random_")
        self.finite = both("isfinite")
        self.none = both("isnan", "isinf")
        self.ordering = both("lt", "le", "gt", "ge", "__lt__", "__le__", "__gt__", "__ge__", "isclose")
        self.greater, self.at_most = both("gt", "__gt__"), both("le", "__le__")
        self.equal = both("eq", "__eq__")
        self.both = both("logical_and", "bitwise_and", "__and__")
        self.all = both("all")
        # What torch.distributions asks of arguments and samples (distribution.py, _validate_sample).
        self.asserted = both("_is_all_true")
        # Host code that reads whether an argument is valid: no standard deviation is negative (aten/src/ATen/native/DistributionTemplates.h, CHECK_NORMAL_TENSOR_STD).
        self.validating = {torch.normal}
        self.adding = both("sum", "count_nonzero")
        self.choosing = both("topk", "argmax", "argmin", "sort", "argsort", "multinomial", "max", "min", "kthvalue")
        # Functions that take no more than the shape or the type of their second tensor.
        self.shaping = {
            Tensor.expand_as: lambda t, like: t.expand(like.shape),
            Tensor.view_as: lambda t, like: t.reshape(like.shape),
            Tensor.reshape_as: lambda t, like: t.reshape(like.shape),
            Tensor.type_as: lambda t, like: t.to(like.dtype),
        }
        # Functions that read how large their result is, and what they read.
        self.counting = {}

        def counts(names: tuple[str, ...], count: Any) -> None:
            for f in both(*names):
                self.counting[f] = count

        self.coalescing = {Tensor.coalesce}
        self.selecting = both("masked_select")
        self.nonzero = both("nonzero", "argwhere") | {torch.where}
        counts(("nonzero", "argwhere"), lambda *a: [int(a[-1].count_nonzero())])
        counts(("unique", "unique_consecutive"), lambda *a: [a[0].unique().numel()])
        counts(("bincount",), lambda *a: [int(a[0].min()), int(a[0].max())] if a[0].numel() else [])
        # How long the result is, and that nothing is negative (repeat_interleave_common).
        counts(("repeat_interleave",), lambda *a: [int(a[-1].sum()), 1] if isinstance(a[-1], Tensor) else [])
        self.counting[torch.where] = lambda *a: [int(a[0].count_nonzero())] if len(a) == 1 else []
