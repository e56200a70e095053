"""Values of small tensors, kept on the CPU beside the phantom's.

A kernel that does not run computes nothing, but much of what a program reads
from the device follows from the host: integers and masks that were copied
there, and what is made of them (`mask.all()`, lengths, packed positions). A
mode for torch functions repeats every call on small tensors with the CPU's
copies of its inputs, its shadows, and tells the library what a read brings.

Where a value is a choice (the experts that `topk` routes to), a fair stand-in
is made up; a float that nobody knows is 0; and each place where such a value was
read is named in the report. The order of allocations is not disturbed: shadows
live on the CPU.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, Optional

from . import hook, library, report

_mode: Any = None
_assumed: dict[tuple[str, str, str], int] = {}
_calls = 0  # of PyTorch's functions, since they were last asked for

# Larger tensors have no shadow: computing them would take time and tell
# little. Masks are as large as what they select from.
MAX_INTEGERS = 1 << 18
MAX_MASK = 1 << 22
MAX_FLOATS = 1 << 12


def assumptions() -> list[dict[str, Any]]:
    """What was made up: the function that needed it, where, and what it got."""
    return [{"function": f, "where": w, "assumed": a, "times": n} for (f, w, a), n in sorted(_assumed.items(), key=lambda i: -i[1])]


def assume(function: Any, what: str, frame: Any) -> None:
    key = (getattr(function, "__name__", str(function)), report.user_frame(frame), what)
    _assumed[key] = _assumed.get(key, 0) + 1


def calls_since() -> int:
    """How often Python called PyTorch since this was last asked."""
    global _calls
    n, _calls = _calls, 0
    return n


def start_again() -> None:
    """In a forked child, which reports for itself."""
    _assumed.clear()


def exchanged(outputs: list[Any], source: Any) -> None:
    """A collective gave tensors what the source has, once or several times."""
    if _mode is None:
        return
    import torch

    known = _mode.shadows.get(source) if source.is_cuda else source
    with torch._C.DisableTorchFunction():
        for t in outputs:
            if not t.is_cuda:
                continue
            times, rest = divmod(t.numel(), known.numel()) if known is not None and known.numel() else (0, 1)
            if rest == 0 and t.dtype == known.dtype:
                _mode.shadows[t] = known.reshape(-1).repeat(times).reshape(t.shape)
            else:
                _mode.shadows.pop(t, None)


def begin(torch: Any) -> None:
    global _mode
    _mode = _make_mode(torch)
    _mode.__enter__()
    # Dynamo would trace into the mode. What it compiles runs without.
    hook.after_import("torch._dynamo.eval_frame", _spare_compiled)


@contextlib.contextmanager
def paused():
    """Without shadows, whatever other modes there are."""
    from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

    stack = _get_current_function_mode_stack()
    if _mode not in stack:
        yield
        return
    for _ in stack:
        _pop_mode()
    for mode in stack:
        if mode is not _mode:
            _push_mode(mode)
    try:
        yield
    finally:
        for _ in _get_current_function_mode_stack():
            _pop_mode()
        for mode in stack:
            _push_mode(mode)


def _spare_compiled(module: Any) -> None:
    def spared(call):
        def without_shadows(self, *args, **kwargs):
            with paused():
                return call(self, *args, **kwargs)

        return without_shadows

    module.OptimizedModule.__call__ = spared(module.OptimizedModule.__call__)
    compile_function = module._TorchDynamoContext.__call__

    def compiled(self, fn):
        import functools

        result = compile_function(self, fn)
        if isinstance(fn, type) or not callable(result) or hasattr(result, "_modules"):
            return result

        @functools.wraps(result)
        def call(*args, **kwargs):
            with paused():
                return result(*args, **kwargs)

        return call

    module._TorchDynamoContext.__call__ = compiled


def _make_mode(torch: Any) -> Any:
    from torch.overrides import TorchFunctionMode
    from torch.utils.weak import WeakIdKeyDictionary

    Tensor = torch.Tensor
    functions = _Functions(torch)

    def small(t: Any) -> bool:
        if t.dtype == torch.bool:
            return t.numel() <= MAX_MASK
        return t.numel() <= (MAX_FLOATS if t.dtype.is_floating_point or t.dtype.is_complex else MAX_INTEGERS)

    class Shadows(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.shadows = WeakIdKeyDictionary()
            self.finite = WeakIdKeyDictionary()  # masks of isfinite, too large for a shadow

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            global _calls
            _calls += 1
            kwargs = kwargs or {}
            if function in functions.harmless:
                return function(*args, **kwargs)
            inputs: list[Any] = []
            _collect(Tensor, args, inputs)
            _collect(Tensor, kwargs, inputs)
            inputs = [t for t in inputs if t.is_cuda]
            if function in functions.overwriting and inputs:
                needed = inputs[1:]
            else:
                needed = inputs
            known = all(t in self.shadows for t in needed)
            if inputs:
                self.prepare(function, args, kwargs, inputs, known)
            before = library.unanswered()
            try:
                result = function(*args, **kwargs)
            finally:
                if inputs:
                    library.forget()
            if library.unanswered() != before:
                assume(function, "0", sys._getframe(1))
            if isinstance(result, (bool, int, float)):
                return self.answered(function, args, kwargs, inputs, known, result)
            if function is Tensor.__getitem__:
                self.answer_backward(result, args[1])
            elif function is Tensor.__setitem__:
                self.answer_backward(args[0], args[1])
            self.follow(function, args, kwargs, inputs, known, result)
            return result

        # --- before a call: lay out what it will read
        def prepare(self, function: Any, args: Any, kwargs: Any, inputs: list[Any], known: bool) -> None:
            if known:
                self.expose(inputs)
                if function in functions.reads or function is Tensor.to and _to_cpu(torch, args, kwargs):
                    self.answer(self.shadows[inputs[0]])
                elif function in functions.counting:
                    for count in functions.counting[function](*_swap(torch, self.shadows, args)):
                        library.answer(count.to_bytes(8, "little", signed=True))
            if function in (Tensor.__getitem__, Tensor.__setitem__):
                for count in self.masked(args[1]):
                    library.answer(count)
            elif function in functions.selecting and inputs[-1] in self.shadows:  # by a mask that may be smaller
                mask, shape = self.shadows[inputs[-1]], torch.broadcast_shapes(*(t.shape for t in inputs))
                library.answer((int(mask.count_nonzero()) * (math.prod(shape) // max(mask.numel(), 1))).to_bytes(8, "little"))

        def masked(self, index: Any) -> list[bytes]:
            """How many elements the masks of an index select, as nonzero reads it."""
            masks = [m for m in (index if isinstance(index, tuple) else (index,)) if isinstance(m, Tensor) and m.is_cuda and m.dtype in (torch.bool, torch.uint8)]
            return [int(self.shadows[m].count_nonzero()).to_bytes(8, "little") for m in masks if m in self.shadows]

        def answer_backward(self, result: Any, index: Any) -> None:
            """The gradient goes where the masks were, or comes from there (IndexBackward0 calls index_put with them,
            IndexPutBackward0 index and index_put), which counts them again, on autograd's thread."""
            counts = 2 * self.masked(index)
            node = result.grad_fn if isinstance(result, Tensor) and result.requires_grad else None
            if not counts or node is None or not node.name().startswith(("IndexBackward", "IndexPutBackward", "CopySlices")):
                return

            def before(_: Any) -> None:
                for count in counts:
                    library.answer(count)

            node.register_prehook(before)
            node.register_hook(lambda *_: library.forget())

        def expose(self, inputs: list[Any]) -> None:
            """Whatever the call reads of its inputs themselves is known."""
            if len(inputs) > 16:
                return
            with torch._C.DisableTorchFunction():
                for t in inputs:
                    s = self.shadows.get(t)
                    if s is not None and t.is_contiguous() and s.is_contiguous() and s.numel() == t.numel() and s.dtype == t.dtype and s.numel():
                        library.known(t.data_ptr(), s.data_ptr(), s.numel() * s.element_size())

        def answer(self, shadow: Any) -> None:
            with torch._C.DisableTorchFunction():
                data = shadow.detach().contiguous().reshape(-1)
                if data.numel():
                    library.answer(bytes(data.view(torch.uint8).tolist()) if data.numel() < 4096 else data.view(torch.uint8).numpy().tobytes())

        # --- after a call: what its results are
        def answered(self, function: Any, args: Any, kwargs: Any, inputs: list[Any], known: bool, result: Any) -> Any:
            """A Python value: the CPU's, if it can tell."""
            if not inputs or not known or function in functions.reads:
                return result
            got = self.repeat(function, args, kwargs)
            return got if type(got) is type(result) else result

        def follow(self, function: Any, args: Any, kwargs: Any, inputs: list[Any], known: bool, result: Any) -> None:
            results: list[Any] = []
            if function is Tensor.__setitem__:
                results = [args[0]]
            else:
                _collect(Tensor, result, results)
            results = [t for t in results if t.is_cuda]
            if not results:
                return
            if function in functions.finite:  # a check that nothing went wrong: nothing did
                for t in results:
                    if small(t):
                        self.keep(t, self.ones(t))
                    else:
                        self.finite[t] = True
                return
            if function in functions.all and inputs and inputs[0] in self.finite:
                for t in results:
                    self.keep(t, self.ones(t))
                return
            if function in functions.shaping and args[0] in self.shadows and small(results[0]):
                with torch._C.DisableTorchFunction():
                    self.keep(results[0], functions.shaping[function](self.shadows[args[0]], args[1]))
                return
            if not known or not all(small(t) for t in results):
                self.lose(function, results)
                if function in functions.choosing and isinstance(args[0] if args else None, Tensor):
                    self.choose(function, args[0], results)
                return
            if function in functions.unset or not inputs and all(t.dtype.is_floating_point for t in results) and (function in functions.random or _is_parameter(torch, args)):
                return
            got = self.repeat(function, args, kwargs)
            if function is Tensor.__setitem__ or got is None:
                return
            shadows: list[Any] = []
            _collect(Tensor, got, shadows)
            for t, s in zip(results, shadows):
                if t.shape == s.shape and t.dtype == s.dtype and s.device.type == "cpu":
                    self.keep(t, s)

        def repeat(self, function: Any, args: Any, kwargs: Any) -> Any:
            """The same call with shadows, which must not be noticed."""
            random = function in functions.random
            state = torch.random.default_generator.get_state() if random else None
            try:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    own, options = _swap(torch, self.shadows, (args, kwargs))
                    if function is Tensor.cuda:
                        return own[0].clone()
                    if function is Tensor.to and len(own) > 1 and isinstance(own[1], int):
                        own = (own[0], "cpu", *own[2:])
                    if isinstance(options.get("device"), int):
                        options["device"] = "cpu"
                    got = function(*own, **options)
                    if isinstance(got, Tensor) and any(got is a for a in args):
                        got = got.clone()  # a copy to the device of what the program may change
                    return got
            except Exception:
                return None
            finally:
                if state is not None:
                    torch.random.default_generator.set_state(state)

        def keep(self, t: Any, shadow: Any) -> None:
            self.shadows[t] = shadow

        def ones(self, t: Any) -> Any:
            with torch._C.DisableTorchFunction():
                return torch.ones(t.shape, dtype=t.dtype, device="cpu")

        def lose(self, function: Any, results: list[Any]) -> None:
            name = getattr(function, "__name__", "")
            if name.endswith("_") and not name.endswith("__") or function is Tensor.__setitem__:
                for t in results:
                    self.shadows.pop(t, None)

        def choose(self, function: Any, source: Any, results: list[Any]) -> None:
            """Indices that depend on values which nobody computed: in turn, so
            that every expert gets the same share."""
            if not source.dim():
                return
            n = source.shape[-1]
            for t in results:
                if t.dtype == torch.int64 and small(t) and n:
                    with torch._C.DisableTorchFunction():
                        self.shadows[t] = (torch.arange(t.numel(), device="cpu") % n).reshape(t.shape)
                    assume(function, f"indices in turn over {n}", sys._getframe(3))

    return Shadows()


class _Functions:
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

        properties = ("device", "dtype", "shape", "requires_grad", "is_cuda", "grad_fn", "grad", "layout", "ndim", "data", "is_leaf", "is_sparse", "is_quantized", "is_meta", "itemsize", "nbytes", "names")
        self.harmless = {getattr(Tensor, p).__get__ for p in properties if hasattr(getattr(Tensor, p, None), "__get__")}
        self.harmless |= both(
            "size", "dim", "stride", "numel", "backward", "is_floating_point", "is_complex", "is_contiguous", "element_size", "data_ptr",
            "storage_offset", "untyped_storage", "requires_grad_", "register_hook", "retain_grad", "get_device", "is_pinned", "is_shared", "__hash__", "__len__",
        )
        self.reads = both("item", "tolist", "cpu", "numpy") | {Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__}
        self.overwriting = {Tensor.copy_, Tensor.zero_, Tensor.fill_, torch.zero_, torch.fill_}
        self.unset = both("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
        self.random = both("rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "bernoulli_", "multinomial", "normal", "normal_", "uniform_", "random_")
        self.finite = both("isfinite")
        self.all = both("all")
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

        self.selecting = both("masked_select")
        counts(("nonzero", "argwhere"), lambda *a: [int(a[-1].count_nonzero())])
        counts(("unique", "unique_consecutive"), lambda *a: [a[0].unique().numel()])
        counts(("bincount",), lambda *a: [int(a[0].min()), int(a[0].max())] if a[0].numel() else [])
        # How long the result is, and that nothing is negative (repeat_interleave_common).
        counts(("repeat_interleave",), lambda *a: [int(a[-1].sum()), 1] if isinstance(a[-1], Tensor) else [])
        self.counting[torch.where] = lambda *a: [int(a[0].count_nonzero())] if len(a) == 1 else []


def _collect(Tensor: Any, value: Any, into: list[Any]) -> None:
    if isinstance(value, Tensor):
        into.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _collect(Tensor, v, into)
    elif isinstance(value, dict):
        for v in value.values():
            _collect(Tensor, v, into)


def _swap(torch: Any, shadows: Any, value: Any) -> Any:
    """The same arguments on the CPU."""
    if isinstance(value, torch.Tensor):
        return shadows[value] if value.is_cuda else value
    if type(value) in (list, tuple):
        return type(value)(_swap(torch, shadows, v) for v in value)
    if isinstance(value, dict):
        return {k: _swap(torch, shadows, v) for k, v in value.items()}
    if isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    return value


def _is_parameter(torch: Any, args: Any) -> bool:
    """Weights on their way to the device: nobody decides by them."""
    return bool(args) and isinstance(args[0], torch.nn.Parameter)


def _to_cpu(torch: Any, args: Any, kwargs: Any) -> bool:
    places = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, (str, torch.device))]
    return any(torch.device(p).type == "cpu" for p in places)
