"""Values that kernels would compute, computed on the CPU next to them.

The library has host memory behind device addresses (`run --values computed`),
so a device tensor and a CPU tensor at the same address are the same numbers:
views, in-place writes, copies from the host and what a program reads need
nothing more. What is missing is the kernels. Each operator below autograd
therefore runs twice: on the device, for the allocations that it makes, and on
the CPU, into the memory of the device's result.

Operators are intercepted at a dispatch key that PyTorch has and does not use
(DispatchKey.h, Fake: below autograd and the conjugate views, above the
backends). A TorchDispatchMode would be seen by the operators themselves:
at::isTensorSubclassLike (TensorSubclassLikeUtils.h) is true under one, and
formulas of autograd then allocate otherwise.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Callable, Optional

from . import hook, library, progress, report, shadows
from .mirror import Mirror
from .draws import Draws
from .stand_ins import StandIns

# Operators that run others and read what those computed, to know how large
# something is: they run with these computed too.
_READING = {
    "index", "_unsafe_index", "index_put", "index_put_", "_unsafe_index_put", "_index_put_impl_", "masked_select", "masked_scatter",
    "repeat_interleave", "bincount", "histc", "normal", "_linalg_check_errors", "_ctc_loss", "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned",
}  # fmt: skip

# Operators that read from their own kernels how large their result is.
_SIZED = {"nonzero", "unique_consecutive", "_unique2", "_unique", "unique_dim", "nms", "_coalesce"}

# Operators that change what a tensor is, not its numbers, or that act by themselves.
_PLAIN = {
    "resize_", "resize_as_", "_resize_output_", "set_", "detach_", "record_stream", "rename_", "_coalesced_", "set_data", "pin_memory", "_pin_memory", "is_pinned",
    "_assert_async", "_functional_assert_async", "_assert_tensor_metadata", "resize_storage_bytes_", "_cudnn_init_dropout_state",
    "_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_compressed_tensor_with_dims", "_sparse_compressed_tensor_unsafe",
    "_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets",
}  # fmt: skip

# Products and convolutions of 16-bit numbers are computed in 32 bits and
# rounded, as tensor cores do; a CPU without such instructions is quicker at it.
_WIDENED = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "linear", "convolution", "convolution_backward", "_addmm_activation"}

# Operators whose results on the host are put right afterwards, whatever they read.
_CORRECTED = {"_to_copy", "copy_", "clone", "equal", "_local_scalar_dense"}

_here = threading.local()
_interception: Any = None


def begin(torch: Any) -> None:
    """From here on the operators of this process are computed."""
    global _interception
    if not hasattr(torch.library.Library, "fallback"):
        sys.exit(f"memorymark: PyTorch {torch.__version__} does not let its operators be intercepted; use a newer one, or run with --values assumed")
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as f:
        f.write("1000")  # a host without memory ends this process first
    _interception = Interception(torch)
    _interception.begin()
    report.values = "computed"


class Interception:
    def __init__(self, torch: Any) -> None:
        C = torch._C
        self.torch = torch
        self.key = C._parse_dispatch_key("Fake")
        self.without = C.DispatchKeySet(self.key)
        self.after = C._dispatch_keyset_full_after(self.key)
        self.python = C.DispatchKey.Python
        self.rules: dict[Any, Callable] = {}
        self.missing: dict[Any, int] = {}
        self.mirror = Mirror(torch)
        self.stand_ins = StandIns(torch)
        self.draws = Draws(torch)
        self.libraries = [torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")]  # which undo their registrations when they go

    def begin(self) -> None:
        torch = self.torch
        for schema in torch._C._jit_get_all_schemas():
            if schema.name.startswith("aten::") and _only_looks(schema):
                name = schema.name[6:] + ("." + schema.overload_name if schema.overload_name else "")
                self.libraries[1].impl(name, torch.library.fallthrough_kernel, "Fake")
        self.libraries[0].fallback(self.intercept, "Fake", with_keyset=True)
        self.include(True)
        bootstrap = threading.Thread._bootstrap

        def begin_thread(thread: Any) -> None:
            self.include(True)
            bootstrap(thread)

        threading.Thread._bootstrap = begin_thread
        # Dynamo would trace into this. What it compiles runs without.
        hook.after_import("torch._dynamo.eval_frame", lambda module: shadows.spare_compiled(module, self.paused))

    def include(self, on: bool) -> None:
        self.torch._C._dispatch_tls_set_dispatch_key_included(self.key, on)

    def paused(self) -> Any:
        report.note("code compiled by torch.compile was not computed: what it returns is made up")
        return self.torch._C._ExcludeDispatchKeyGuard(self.without)

    def intercept(self, keyset: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        shadows.called()
        keyset = keyset & self.after
        if keyset.has(self.python):  # a tensor subclass or a mode of the program's, which calls operators itself
            return op.redispatch(keyset, *args, **kwargs)
        rule = self.rules.get(op)
        if rule is None:
            rule = self.rules[op] = self.rule_of(op)
        return rule(keyset, op, args, kwargs)

    # --- what is done with an operator
    def rule_of(self, op: Any) -> Callable:
        torch = self.torch
        namespace, _, name = op._schema.name.partition("::")
        if name in _PLAIN or namespace in ("c10d", "_c10d_functional", "c10d_functional", "prim", "inductor", "fsdp"):
            return self.plain
        if torch.Tag.inplace_view in op.tags:
            return self.plain
        if name in self.stand_ins.whole:
            return self.whole
        if name in ("equal", "_local_scalar_dense"):
            return self.scalar
        if name in self.draws.philox.composed:
            return self.drawn
        full = op.name()
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            return self.composed
        if not any("Tensor" in str(r.type) for r in op._schema.returns) and not any(_written(a) for a in op._schema.arguments):
            return self.composed  # an answer about tensors
        if name in ("_to_copy", "clone"):
            return self.copy
        if name not in self.stand_ins.kernels and not any(torch._C._dispatch_has_computed_kernel_for_dispatch_key(full, key) for key in ("CPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU")):
            return self.unknown
        if name in _READING:
            return self.read
        if any(_written(a) for a in op._schema.arguments):
            return self.write
        return self.compute

    def plain(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            return op(*args, **kwargs)

    def composed(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """Made of other operators, which are computed."""
        for i, argument in enumerate(op._schema.arguments[: len(args)]):
            if isinstance(args[i], (bool, int, float)) and str(argument.type) == "Tensor":  # a number in the place of a tensor, on its way here
                args = (*args[:i], self.torch.tensor(args[i]), *args[i + 1 :])
        return op.redispatch(keyset, *args, **kwargs)

    def unknown(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """Without a kernel for the CPU. It may be made of operators that have one."""
        before = _here.__dict__.get("computed", 0)
        out = self.inside(keyset, op, args, kwargs)
        if _here.__dict__.get("computed", 0) == before and self.on_device((args, kwargs, out)):
            self.miss(op, "it has no kernel for the CPU")
        return out

    def whole(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            run = lambda: self.run(op, args, kwargs)  # noqa: E731
            if not self.on_device((args, kwargs)):
                return op(*args, **kwargs)
            return self.stand_ins.whole[_name(op)](self, run, args, kwargs)

    def copy(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            out = self.run(op, args, kwargs)
            try:
                if args[0].is_cuda or out.is_cuda:
                    self.mirror.put(out, self.mirror.of(args[0]))
                    _count()
            except Exception as e:
                self.miss(op, e)
            return out

    def scalar(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """A number of the host, made of the device's."""
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            out = self.run(op, args, kwargs)
            return op(*self.mirror.swap(args), **self.mirror.swap(kwargs)) if self.on_device(args) else out

    def compute(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """A new result."""
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            if not self.on_device((args, kwargs)):
                return op(*args, **kwargs)
            got = self.repeat(op, args, kwargs, self.draws.next(op, args, kwargs))
            out = self.run(op, args, kwargs, got)
            self.keep(op, out, got)
            return out

    def write(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """Into tensors that are there."""
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            if not self.on_device((args, kwargs)):
                return op(*args, **kwargs)
            seed = self.draws.next(op, args, kwargs)
            out = self.run(op, args, kwargs)  # which makes the result as large as it has to be
            got = self.repeat(op, args, kwargs, seed)
            if any(r.alias_info is None for r in op._schema.returns):
                self.keep(op, out, got)
            return out

    def read(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """With what it computes inside computed too, before its own result is put in place."""
        if not self.on_device((args, kwargs)):
            return self.plain(keyset, op, args, kwargs)
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            written = {i for i, a in enumerate(op._schema.arguments) if _written(a)}
            host = [self.mirror.of(a).clone() if i in written else a for i, a in enumerate(args)]
            got = self.repeat(op, host, kwargs, self.draws.next(op, args, kwargs))
        out = self.inside(keyset, op, args, kwargs)
        with self.torch._C._ExcludeDispatchKeyGuard(self.without):
            for i in written & set(range(len(args))):
                self.mirror.put(args[i], host[i])
            if any(r.alias_info is None for r in op._schema.returns):
                self.keep(op, out, got)
        return out

    def drawn(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """Random numbers that are made of others, which are drawn as on a card."""
        replaced = _name(op) == "multinomial" and args[1] > 1 and (args[2:3] == (True,) or kwargs.get("replacement"))  # by a kernel of its own
        return self.compute(keyset, op, args, kwargs) if replaced else self.inside(keyset, op, args, kwargs)

    # --- the device's side
    def run(self, op: Any, args: Any, kwargs: Any, got: Any = None) -> Any:
        """The operator itself, for what it allocates."""
        before = library.unanswered()
        library.enter()
        try:
            self.announce(op, args, got)
            for t in _tensors(self.torch.Tensor, (args, kwargs)):
                if t.is_cuda and not t.dtype.is_floating_point and t.layout is self.torch.strided and t.numel():
                    library.known(t.data_ptr(), t.data_ptr(), (1 + sum((n - 1) * step for n, step in zip(t.size(), t.stride()))) * t.element_size())
            return op(*args, **kwargs)
        except BaseException:
            del args, kwargs  # which the traceback would keep alive, and with them memory that a program frees to try again
            raise
        finally:
            library.leave()
            if library.unanswered() != before and _name(op) not in _CORRECTED and "linalg" not in _name(op):  # which read that nothing went wrong
                shadows.assume(_name(op), "0", sys._getframe(2))

    def inside(self, keyset: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """The operator itself, with those that it calls intercepted too."""
        library.enter()
        try:
            return op.redispatch(keyset, *args, **kwargs)
        finally:
            library.leave()

    def announce(self, op: Any, args: Any, got: Any) -> None:
        """How large the result is, which the operator reads from its own kernels."""
        name = _name(op)
        if got is None or name not in _SIZED:
            return
        first = got[0] if isinstance(got, (tuple, list)) else got
        length = first._nnz() if first.layout is self.torch.sparse_coo else first.shape[args[1] if name == "unique_dim" else 0]
        library.answer(length.to_bytes(8, "little"))

    # --- the host's side
    def repeat(self, op: Any, args: Any, kwargs: Any, seed: Optional[tuple[int, int]]) -> Any:
        name = _name(op)
        kernel = self.stand_ins.kernels.get(name, op) if seed is None else self.draws.philox.kernels.get(name) or self.stand_ins.kernels.get(name, op)
        try:
            args, kwargs = self.mirror.swap(args), self.mirror.swap(kwargs)
            with self.draws.seeded(seed):
                if name in _WIDENED:
                    args = self.widen(args)
                    got = kernel(*(self.tf32(args) if self.in_tf32(name) else args), **kwargs)
                else:
                    got = self.attempt(kernel, op, args, kwargs)
            _count()
            return got
        except Exception as e:
            self.miss(op, e)
            return None

    def attempt(self, kernel: Any, op: Any, args: Any, kwargs: Any) -> Any:
        """Some kernels of the CPU do without 16 bits."""
        try:
            return kernel(*args, **kwargs)
        except (RuntimeError, NotImplementedError):
            halves = [t for t in _tensors(self.torch.Tensor, (args, kwargs)) if t.dtype in (self.torch.float16, self.torch.bfloat16)]
            if not halves:
                raise
        wide_args, wide_kwargs = self.widen(args), {k: v for k, v in zip(kwargs, self.widen(list(kwargs.values())))}
        got = kernel(*wide_args, **wide_kwargs)
        for i, a in enumerate(op._schema.arguments[: len(args)]):
            if _written(a):
                for old, new in zip(_tensors(self.torch.Tensor, args[i]), _tensors(self.torch.Tensor, wide_args[i])):
                    old.copy_(new)
        return got

    def widen(self, value: Any) -> Any:
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
        if isinstance(value, (list, tuple)):
            return [self.widen(v) for v in value]
        return value

    def in_tf32(self, name: str) -> bool:
        """Whether tensor cores multiply numbers of 32 bits as TF32: PyTorch lets convolutions, and products if asked to."""
        backends = self.torch.backends
        return backends.cudnn.allow_tf32 if name.startswith("convolution") else backends.cuda.matmul.allow_tf32

    def tf32(self, value: Any) -> Any:
        """Rounded to 10 bits of mantissa, halves away from 0 (PTX, cvt.rna.tf32.f32). What is added, a bias, is not."""
        torch = self.torch
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.dim() > 1:
            return (value.contiguous().view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32)
        return [self.tf32(v) for v in value] if isinstance(value, (list, tuple)) else value

    def keep(self, op: Any, out: Any, got: Any) -> None:
        """Puts what was computed where the device's results are."""
        outs = out if isinstance(out, (tuple, list)) else (out,)
        gots = got if isinstance(got, (tuple, list)) else (got,) * len(outs)
        for o, g in zip(outs, gots):
            if isinstance(o, (tuple, list)):
                self.keep(op, o, g)
            elif isinstance(o, self.torch.Tensor):
                try:
                    if g is None and got is None and o.is_cuda:
                        self.mirror.of(o).zero_()
                    elif g is not None:
                        self.mirror.put(o, g)
                except Exception as e:
                    self.miss(op, e)

    def on_device(self, value: Any) -> bool:
        if isinstance(value, self.torch.Tensor):
            return value.is_cuda
        if isinstance(value, (list, tuple)):
            return any(self.on_device(v) for v in value)
        if isinstance(value, dict):
            return any(self.on_device(v) for v in value.values())
        return isinstance(value, self.torch.device) and value.type == "cuda"

    def miss(self, op: Any, why: Any) -> None:
        shadows.assume(_name(op), f"0, because it was not computed: {str(why).splitlines()[0][:120]}", sys._getframe(2))


def _name(op: Any) -> str:
    return op._schema.name.partition("::")[2]


def _count() -> None:
    progress.computed()
    _here.computed = _here.__dict__.get("computed", 0) + 1


def _written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _only_looks(schema: Any) -> bool:
    """Views, and memory without values: nothing is computed."""
    if any(_written(a) for a in schema.arguments):
        return False
    name = schema.name[6:]
    return any(r.alias_info is not None for r in schema.returns) or name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_efficientzerotensor")


def _tensors(Tensor: Any, value: Any) -> list[Any]:
    found: list[Any] = []
    shadows._collect(Tensor, value, found)
    return found
