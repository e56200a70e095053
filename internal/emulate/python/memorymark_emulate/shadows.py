"""Values of small tensors, kept on the CPU for tensors of the emulated card.

A kernel that does not run computes nothing, but much of what a program reads
from the device follows from the host: integers and masks that were copied
there, and what is made of them (`mask.all()`, lengths, packed positions). A
mode for torch functions repeats every call on small tensors with the CPU's
copies of its inputs, its shadows, and tells the library what a read brings.

Where a value is a choice (the experts that `topk` routes to), a fair stand-in
is made up; an unknown float is 0; and each place where such a value was
read is named in the report. The order of allocations is not disturbed: shadows
live on the CPU.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, Optional

from . import endless, hook, library, made, report
from .constants import Constants, Elements, Kept
from .descent import Descent
from .functions import Functions
from .signs import Signs

_mode: Any = None
_assumed: dict[tuple[str, str, str], int] = {}
_followed: set[tuple[str, str, str]] = set()  # of these, numbers whose further way is known (made.py)
_calls = 0  # of PyTorch's functions, since they were last asked for

# Of larger tensors it is only known whether they hold one value throughout
# (constants.py): computing them would take time and tell little. Masks are as
# large as what they select from.
MAX_INTEGERS = 1 << 18
MAX_MASK = 1 << 22
MAX_FLOATS = 1 << 12


# What a function that reads a value does with it. Of a number that is merely
# read, as losses are, is unknown.
_SIZES = {
    "__getitem__", "__setitem__", "argwhere", "bincount", "coalesce", "masked_select", "nms", "nonzero", "repeat_interleave", "unique", "unique_consecutive", "where",
    "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned",
}  # fmt: skip
_ALL_APART = "no two elements at the same place"
_HALF, _IN_TURN = "half of ", made.IN_TURN  # with a number
_DRAWN = "numbers drawn on the CPU"
_DESCENT = "a descent that goes well"  # which says what L-BFGS keeps
_CHECKED = "all numbers are right"  # of a check for NaN, whose answer selects
_DECIDES = {"__bool__": "a branch", "__index__": "an index", **dict.fromkeys(_SIZES, "a size")}


def assumptions() -> list[dict[str, Any]]:
    """What was made up: the function that needed it, where, what it got, and what that decided."""
    return [
        {
            "function": f, "where": w, "assumed": a, "times": n, "followed": (f, w, a) in _followed,
            "decided": "a branch" if a == _DESCENT else _DECIDES.get(f, "") if a in ("0", _ALL_APART, _CHECKED) or a.startswith((_HALF, _IN_TURN, _DRAWN)) else "",
        }
        for (f, w, a), n in sorted(_assumed.items(), key=lambda i: -i[1])
    ]  # fmt: skip


def assume(function: Any, what: str, frame: Any, followed: bool = False) -> None:
    key = (getattr(function, "__name__", str(function)), report.user_frame(frame), what)
    _assumed[key] = _assumed.get(key, 0) + 1
    if _DECIDES.get(key[0]) == "a branch":
        endless.decided(key[1], endless.TENSORS)
    if followed:
        _followed.add(key)


def calls_since() -> int:
    """How often Python called PyTorch since this was last asked."""
    global _calls
    n, _calls = _calls, 0
    return n


def called() -> None:
    global _calls
    _calls += 1


def start_again() -> None:
    """In a forked child, which reports for itself."""
    _assumed.clear()
    made.decisions.clear()
    endless.forget()


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
            _mode.constants.lose(t)
            times, rest = divmod(t.numel(), known.numel()) if known is not None and known.numel() else (0, 1)
            if rest == 0 and t.dtype == known.dtype:
                _mode.shadows[t] = known.reshape(-1).repeat(times).reshape(t.shape)
            else:
                _mode.shadows.pop(t, None)


def begin(torch: Any) -> None:
    global _mode
    _mode = _make_mode(torch)
    made.begin(torch)
    _mode.__enter__()
    torch.overrides.has_torch_function = _without_mode(torch, torch.overrides.has_torch_function)
    hook.after_import("torch.optim.lbfgs", _mode.descent.watch)
    # Dynamo would trace into the mode. What it compiles runs without.
    hook.after_import("torch._dynamo.eval_frame", lambda module: spare_compiled(module, paused))


def _without_mode(torch: Any, plain: Any) -> Any:
    """Modules ask by this whether a tensor is of a subclass, and take a fused path if none is (nn/modules/transformer.py,
    TransformerEncoderLayer.forward). Our mode must not count."""
    from torch.overrides import _get_current_function_mode_stack

    neither = (None, torch._C._disabled_torch_function_impl)

    def has_torch_function(args: Any) -> bool:
        if _get_current_function_mode_stack() != [_mode]:
            return plain(args)
        return any(type(a) is not torch.Tensor and getattr(type(a), "__torch_function__", None) not in neither for a in args)

    return has_torch_function


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


def spare_compiled(module: Any, paused: Any) -> None:
    """Runs compiled code in a context in which Dynamo does not meet us."""

    def spared(call):
        def alone(self, *args, **kwargs):
            with paused():
                return call(self, *args, **kwargs)

        return alone

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
    functions = Functions(torch)

    def small(t: Any) -> bool:
        if t.dtype == torch.bool:
            return t.numel() <= MAX_MASK
        return t.numel() <= (MAX_FLOATS if t.dtype.is_floating_point or t.dtype.is_complex else MAX_INTEGERS)

    class Shadows(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.constants = Constants(torch)
            self.shadows = Kept(self.constants, small)
            self.descent = Descent(torch, functions)
            self.signs = Signs(torch)
            self.exposed: list[Any] = []
            self.guessed = ""  # something that the call may read
            self.guesses = WeakIdKeyDictionary()  # tensors whose shadow was made up, and how
            self.checks = WeakIdKeyDictionary()  # comparisons of unknown numbers

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            global _calls
            _calls += 1
            kwargs = kwargs or {}
            if function in functions.sizing and made.is_size((*args, *kwargs.values())):
                made.read(sys._getframe(1))
            if torch._C._functorch.maybe_current_level() is not None:
                return function(*args, **kwargs)  # under vmap, tensors stand for others and have no memory
            if function in functions.harmless:
                if function in self.constants.escapes:
                    self.constants.lose(args[0])
                return function(*args, **kwargs)
            if function is Tensor.__deepcopy__:
                return self.copied(args[0], function(*args, **kwargs))
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
            read_guess: Any = False
            try:
                result = function(*args, **kwargs)
            finally:
                if inputs:
                    read_guess, self.guessed = library.pending() == 0 and self.guessed, ""
                    library.forget()
                    self.exposed = []
            made_up = bool(read_guess) or library.unanswered() != before
            if isinstance(result, (bool, int, float)) and inputs and known and function not in functions.reads:
                got = self.repeat(function, args, kwargs)
                if type(got) is type(result):
                    return got
            guessed = made_up or bool(inputs) and self.chosen(inputs[0]) != ""
            followed = guessed and function is Tensor.item and not report.is_library(sys._getframe(1))
            if guessed and self.reads_on(function, args, kwargs) and not report.is_library(sys._getframe(1)):
                made.read(sys._getframe(1))
            if made_up:
                assume(function, read_guess or "0", sys._getframe(1), followed)
            if isinstance(result, (bool, int, float)):
                return made.number(result) if followed else result
            if function is Tensor.__getitem__:
                self.answer_backward(result, args[1])
            elif function is Tensor.__setitem__:
                self.answer_backward(args[0], args[1])
            self.follow(function, args, kwargs, inputs, known, result)
            return result

        def reads_on(self, function: Any, args: Any, kwargs: Any) -> bool:
            """Whether a program may do anything with what a function brings: with an integer, and with many numbers unless they are weights to keep."""
            copies = function in functions.copying or function is Tensor.to and _to_cpu(torch, args, kwargs)
            return function is Tensor.__int__ or copies and 1 < args[0].numel() <= MAX_MASK

        def copied(self, t: Any, copy: Any) -> Any:
            """A deep copy, which has its tensor's values whatever else was copied with it: that is in the memo among the arguments."""
            with torch._C.DisableTorchFunction():
                if t.is_cuda and t in self.shadows:
                    self.keep(copy, self.shadows[t].clone())
                elif t.is_cuda and (value := self.constants.get(t)) is not None:
                    self.constants.keep(copy, value)
            return copy

        # --- before a call: lay out what it will read
        def prepare(self, function: Any, args: Any, kwargs: Any, inputs: list[Any], known: bool) -> None:
            reads = function in functions.reads or function is Tensor.to and _to_cpu(torch, args, kwargs)
            guess = self.chosen(inputs[0]) if known and reads else ""
            if not guess:
                # Lengths, for example, are read together with unknown numbers (ctc_loss).
                self.expose(inputs if known else [t for t in inputs if not t.dtype.is_floating_point and t in self.shadows])
            if known:
                if reads:
                    self.answer(inputs[0], made.brought(self.shadows[inputs[0]], guess))
                    self.guessed = guess if guess.startswith(_HALF) else ""  # a choice decides by sizes alone
                elif function in functions.counting:
                    for count in functions.counting[function](*_swap(torch, self.shadows, args)):
                        library.answer(count.to_bytes(8, "little", signed=True))
                        self.guessed = self.guess(inputs)
            elif reads:
                whole = self.constants.whole(inputs[0])
                if whole is None and (whole := self.descent.read(inputs[0])) is not None:
                    assume(function, _DESCENT, sys._getframe(2))
                whole = made.unknown(torch, inputs[0]) if whole is None else whole
                if whole is not None:
                    self.answer(inputs[0], whole)
            elif function in functions.nonzero and len(inputs) == 1:
                self.count(*self.nonzeros(inputs[0]))
            if function in functions.validating:
                for _ in range(2):  # normal asks, and normal_out within it
                    library.answer(b"\1")
            elif function in functions.coalescing:
                library.answer(self.elements(function, args[0], known).to_bytes(8, "little"))
            elif function in (Tensor.__getitem__, Tensor.__setitem__):
                for count, sure in self.masked(args[1]):
                    self.count(count, sure)
            elif function in functions.selecting:  # by a mask that may be smaller
                mask, shape = inputs[-1], torch.broadcast_shapes(*(t.shape for t in inputs))
                count, guess = self.nonzeros(mask)
                self.count(count * (math.prod(shape) // max(mask.numel(), 1)), guess)

        def elements(self, function: Any, t: Any, known: bool) -> int:
            """How many elements a sparse tensor has once those at the same place are one (aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu, newNnz):
            as many as it had, the most there can be, if their places are unknown."""
            if known:
                return self.shadows[t].coalesce()._nnz()
            if not t.is_coalesced():
                assume(function, _ALL_APART, sys._getframe(3))
            return t._nnz()

        def count(self, n: int, guess: str) -> None:
            """What a function reads of how many elements a mask selects."""
            library.answer(n.to_bytes(8, "little"))
            self.guessed = self.guessed or guess

        def chosen(self, t: Any) -> str:
            """What was made up of a tensor that might as well be another. A check that is not passed ends a program."""
            guess = self.guesses.get(t, "")
            return "" if guess == _CHECKED else guess

        def guess(self, inputs: list[Any]) -> str:
            """What was made up of tensors, if anything was."""
            return next((self.guesses[t] for t in inputs if t in self.guesses), "")

        def masked(self, index: Any) -> list[tuple[int, str]]:
            """How many elements the masks of an index select, and what was made up for that."""
            masks = [m for m in (index if isinstance(index, tuple) else (index,)) if isinstance(m, Tensor) and m.is_cuda and m.dtype in (torch.bool, torch.uint8)]
            return [self.nonzeros(m) for m in masks]

        def nonzeros(self, mask: Any) -> tuple[int, str]:
            """Half of them if that is unknown: never silently nothing."""
            if mask in self.shadows:
                return int(self.shadows[mask].count_nonzero()), self.guesses.get(mask, "")
            value = self.constants.get(mask)
            if value is not None:
                return mask.numel() * bool(value), self.guesses.get(mask, "")
            return mask.numel() // 2, f"{_HALF}{mask.numel()}"

        def answer_backward(self, result: Any, index: Any) -> None:
            """The gradient goes where the masks were, or comes from there (IndexBackward0 calls index_put with them,
            IndexPutBackward0 index and index_put), which counts them again, on autograd's thread."""
            counts = 2 * self.masked(index)
            node = result.grad_fn if isinstance(result, Tensor) and result.requires_grad else None
            if not counts or node is None or not node.name().startswith(("IndexBackward", "IndexPutBackward", "CopySlices")):
                return

            def before(_: Any) -> None:
                for count, _ in counts:
                    library.answer(count.to_bytes(8, "little"))

            node.register_prehook(before)
            node.register_hook(lambda *_: library.forget())

        def expose(self, inputs: list[Any]) -> None:
            """Whatever the call reads of its inputs themselves is known."""
            if len(inputs) > 16:
                return
            with torch._C.DisableTorchFunction():
                known = [(t, s) for t in inputs if (s := self.shadows.get(t)) is not None and s.layout == t.layout]
                self.exposed = [pair for t, s in known for pair in zip(_parts(torch, t), _parts(torch, s))]  # alive during the call
                for t, s in self.exposed:
                    if t.is_contiguous() and s.is_contiguous() and s.numel() == t.numel() and s.dtype == t.dtype and s.numel():
                        library.known(t.data_ptr(), s.data_ptr(), s.numel() * s.element_size())

        def answer(self, read: Any, shadow: Any) -> None:
            with torch._C.DisableTorchFunction():
                for t, s in zip(_parts(torch, read), _parts(torch, shadow)):
                    data = _as_stored(t, s.detach()).clone(memory_format=torch.contiguous_format).reshape(-1)  # contiguous() leaves one element its stride
                    if data.numel():
                        library.answer(bytes(data.view(torch.uint8).tolist()) if data.numel() < 4096 else data.view(torch.uint8).numpy().tobytes())

        # --- after a call: what its results are
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
                self.pass_check(results, True)
                return
            if function in functions.shaping and args[0] in self.shadows and small(results[0]):
                with torch._C.DisableTorchFunction():
                    self.keep(results[0], functions.shaping[function](self.shadows[args[0]], args[1]))
                return
            if not known or not all(small(t) for t in results):
                self.lose(function, results)
                self.descent.compare(function, args, results)
                self.signs.follow(function, args, inputs, results, Elements(self.shadows, self.constants).value)
                if self.follow_constant(function, args, kwargs, inputs, results) or self.follow_check(function, args, inputs, results):
                    return
                if function in functions.adding and inputs and inputs[0].dtype == torch.bool and results[0].numel() == 1 and len(inputs) == 1:
                    self.keep(results[0], torch.full(results[0].shape, self.nonzeros(inputs[0])[0], dtype=results[0].dtype, device="cpu"))
                    self.guesses[results[0]] = f"{_HALF}{inputs[0].numel()}"
                    return
                if function in functions.choosing and isinstance(args[0] if args else None, Tensor):
                    self.choose(function, args[0], results)
                return
            if function in functions.unset or not inputs and all(t.dtype.is_floating_point for t in results) and (function in functions.random or _is_parameter(torch, args)):
                return
            if function in functions.overwriting and results[0] not in self.shadows:
                with torch._C.DisableTorchFunction():
                    self.keep(results[0], torch.empty(results[0].shape, dtype=results[0].dtype, device="cpu"))
            got = self.repeat(function, args, kwargs)
            if function is Tensor.__setitem__ or got is None:
                return
            shadows: list[Any] = []
            _collect(Tensor, got, shadows)
            guess = _DRAWN if function in functions.random else self.guess(inputs)
            for t, s in zip(results, shadows):
                if t.shape == s.shape and t.dtype == s.dtype and s.device.type == "cpu":
                    self.keep(t, s)
                    if guess:
                        self.guesses[t] = guess

        def follow_constant(self, function: Any, args: Any, kwargs: Any, inputs: list[Any], results: list[Any]) -> bool:
            """Results that hold one value throughout, because what they are made of does."""
            rule = self.constants.rules.get(function)
            if rule is None or _is_parameter(torch, args):
                return False
            elements = Elements(self.shadows, self.constants)
            if function not in self.constants.whatever and any(elements.value(t) is None for t in inputs):
                return False
            with torch._C.DisableTorchFunction(), torch.no_grad():
                value = rule(args, kwargs, elements.value, lambda: self.repeat(function, args, kwargs, elements), results[0])
                if value is not None:
                    self.keep_constant(results, value)
                    if guess := self.guess(inputs):
                        self.guesses.update(dict.fromkeys(results, guess))
            return value is not None

        def follow_check(self, function: Any, args: Any, inputs: list[Any], results: list[Any]) -> bool:
            """Whether numbers are none, or all of them in order as corners of boxes are, is asked to find mistakes. There is none."""
            if function in functions.none:
                self.pass_check(results, False)
                return True
            if function in functions.equal and len(inputs) == 2 and inputs[0] is inputs[1]:  # how torch.distributions looks for NaN (constraints.py, _Real)
                self.pass_check(results, True)
                return True
            if (sign := self.signs.compare(function, args)) is not None and inputs[0] is args[0]:
                self.keep_constant(results, torch.full((), sign, dtype=torch.bool, device="cpu"))
                return True
            if function in functions.ordering or function in functions.both and all(self.passes(t) for t in inputs):
                for t in results:
                    self.checks[t] = True
            elif function in functions.asserted or function in functions.all and inputs and inputs[0] in self.checks and results[0].dim() == 0:
                self.keep_constant(results, torch.ones((), dtype=results[0].dtype, device="cpu"))
                assume(function, "true", sys._getframe(3))
                return True
            return False

        def pass_check(self, results: list[Any], value: bool) -> None:
            """Not known where an answer is asked for, and a guess where it selects: labels that are missing may be NaN."""
            self.keep_constant(results, torch.full((), value, dtype=torch.bool, device="cpu"))
            for t in results:
                self.guesses[t] = _CHECKED

        def passes(self, t: Any) -> bool:
            """Whether a mask is a check, or known to be true throughout."""
            if t in self.checks:
                return True
            value = self.constants.get(t) if t not in self.shadows else self.shadows[t].all()
            return value is not None and bool(value)

        def repeat(self, function: Any, args: Any, kwargs: Any, shadows: Any = None) -> Any:
            """The same call with shadows, which must not be noticed."""
            random = function in functions.random
            state = torch.random.default_generator.get_state() if random else None
            try:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    own, options = _swap(torch, shadows or self.shadows, (args, kwargs))
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

        def keep_constant(self, results: list[Any], value: Any) -> None:
            with torch._C.DisableTorchFunction():
                for t in results:
                    if t.numel() <= MAX_FLOATS and t._base is None:
                        self.keep(t, value.expand(t.shape).clone())
                    else:
                        self.constants.keep(t, value)

        def lose(self, function: Any, results: list[Any]) -> None:
            name = getattr(function, "__name__", "")
            if name.endswith("_") and not name.endswith("__") or function is Tensor.__setitem__:
                for t in results:
                    self.shadows.pop(t, None)

        def choose(self, function: Any, source: Any, results: list[Any]) -> None:
            """Indices that depend on values which were not computed: in turn, so
            that every expert gets the same share."""
            if not source.dim():
                return
            n = source.shape[-1]
            for t in results:
                if t.dtype == torch.int64 and small(t) and n:
                    with torch._C.DisableTorchFunction():
                        self.shadows[t] = (torch.arange(t.numel(), device="cpu") % n).reshape(t.shape)
                    self.guesses[t] = f"{_IN_TURN}{n}"
                    assume(function, self.guesses[t], sys._getframe(3))

    return Shadows()


def _collect(Tensor: Any, value: Any, into: list[Any]) -> None:
    if isinstance(value, Tensor):
        into.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _collect(Tensor, v, into)
    elif isinstance(value, dict):
        for v in value.values():
            _collect(Tensor, v, into)


def _parts(torch: Any, t: Any) -> list[Any]:
    """The tensors with memory that a tensor is made of: of a sparse one its indices and values, in the order in which it is copied.
    A function under vmap gets tensors that have none."""
    if t.layout is torch.strided:
        return [t] if torch._C._has_storage(t) else []
    if t.layout is torch.sparse_coo:
        return [t._indices(), t._values()]
    if t.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [t.crow_indices(), t.col_indices(), t.values()]
    return [t.ccol_indices(), t.row_indices(), t.values()]


def _as_stored(t: Any, s: Any) -> Any:
    """The elements of s in the order in which they leave the card: as t has them in memory if nothing is between them
    (nonzero's are column by column), else by their indices, of which a copy is made first (aten/src/ATen/native/cuda/Copy.cu)."""
    order, step = sorted(range(t.dim()), key=t.stride, reverse=True), 1
    for dim in reversed(order):
        if t.size(dim) != 1 and t.stride(dim) != step:
            return s
        step *= t.size(dim)
    return s.permute(order)


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
    if isinstance(value, str) and value.startswith("torch.cuda.") or isinstance(value, type(torch.FloatTensor)) and value.is_cuda:  # types that say where
        return getattr(torch, str(getattr(value, "__name__", value)).rpartition(".")[2])
    return value


def _is_parameter(torch: Any, args: Any) -> bool:
    """Weights on their way to the device: no decision depends on them."""
    return bool(args) and isinstance(args[0], torch.nn.Parameter)


def _to_cpu(torch: Any, args: Any, kwargs: Any) -> bool:
    places = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, (str, torch.device))]
    return any(torch.device(p).type == "cpu" for p in places)
