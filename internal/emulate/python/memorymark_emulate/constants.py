"""Values of large tensors that hold one value throughout.

A mask of ones is as large as its batch. Its elements need not be kept to know
that `(mask == 1).all()`: one of them tells, whatever the size. What is made of
such tensors by functions of single elements, by views and by reductions is
computed on that one element.

A tensor counts the writes to its memory, through whatever view (`_version`,
c10/core/TensorImpl.h); a count that has moved on ends what was known.
"""

from __future__ import annotations

from typing import Any, Callable


# What these give does not follow from all of their tensors.
_WHATEVER = {"ones_like", "new_ones", "zeros_like", "new_zeros", "zero_", "full_like", "new_full", "fill_", "copy_", "expand_as", "view_as", "reshape_as", "__getitem__", "index_select", "gather", "take"}


class Constants:
    def __init__(self, torch: Any) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self.torch = torch
        self.values = WeakIdKeyDictionary()  # tensor: its value, a CPU tensor without dimensions, and its writes by then
        self.rules = _rules(torch)
        self.whatever = {f for f in self.rules if getattr(f, "__name__", "") in _WHATEVER}
        # Whoever gets the address, or a tensor that counts its writes by itself, may write unseen.
        self.escapes = {torch.Tensor.data_ptr, torch.Tensor.data.__get__}

    def get(self, t: Any) -> Any:
        kept = self.values.get(t)
        return kept[0] if kept is not None and kept[1] == t._version else None

    def keep(self, t: Any, value: Any) -> None:
        if not t.is_inference():  # those do not count
            self.values[t] = (value, t._version)

    def lose(self, t: Any) -> None:
        self.values.pop(t, None)

    def whole(self, t: Any) -> Any:
        """All elements of a tensor, which share their memory."""
        value = self.get(t)
        return None if value is None else value.expand(t.shape)


def uniform(torch: Any, t: Any) -> Any:
    """The value of a tensor on the CPU that has only one."""
    if t.numel() == 0 or t.layout != torch.strided:
        return None
    first = t[(0,) * t.dim()]
    corner = t[(slice(0, 2),) * t.dim()]  # most tensors differ there
    if not bool((corner == first).all()) or not bool((t == first).all()):
        return None
    return first.detach().clone()


class Kept:
    """Shadows by their tensors. Small parts of large constants have one while they are asked for."""

    def __init__(self, constants: Constants, small: Any) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self.shadows = WeakIdKeyDictionary()
        self.constants, self.small = constants, small

    def __contains__(self, t: Any) -> bool:
        return t in self.shadows or t in self.constants.values and self.small(t) and self.constants.get(t) is not None

    def __getitem__(self, t: Any) -> Any:
        kept = self.shadows.get(t)
        return self.constants.whole(t).clone() if kept is None else kept

    def get(self, t: Any) -> Any:
        return self[t] if t in self else None

    def __setitem__(self, t: Any, shadow: Any) -> None:
        self.shadows[t] = shadow

    def pop(self, t: Any, default: Any = None) -> Any:
        return self.shadows.pop(t, default)


class Elements:
    """One element each of tensors that hold one value throughout, with their number of dimensions: it decides about types."""

    def __init__(self, shadows: Kept, constants: Constants) -> None:
        self.shadows, self.constants = shadows, constants

    def value(self, t: Any) -> Any:
        if t.numel() != 1:
            return self.constants.get(t) if t.is_cuda else None
        kept = self.shadows.get(t) if t.is_cuda else t
        return None if kept is None else kept.reshape(())

    def __getitem__(self, t: Any) -> Any:
        value = self.value(t)
        if value is None:
            raise KeyError(t)
        return value.clone().reshape((1,) * t.dim())


# A rule says what a function's result holds throughout. It gets the function's arguments, the values of tensors among them (None for
# one that is not known), a way to call the function on single elements, and the result.
Rule = Callable[[tuple, dict, Callable[[Any], Any], Callable[[], Any], Any], Any]


def _rules(torch: Any) -> dict[Any, Rule]:
    Tensor = torch.Tensor
    rules: dict[Any, Rule] = {}

    def add(rule: Rule, names: str, owners: tuple = (torch, Tensor)) -> None:
        for name in names.split():
            for owner in owners:
                f = getattr(owner, name, None)
                if f is not None:
                    rules[f] = rule

    def filled(position: int, keyword: str) -> Rule:
        def rule(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
            v = args[position] if len(args) > position else kwargs.get(keyword)
            v = value(v) if isinstance(v, Tensor) else v
            return None if v is None else torch.full((), v, dtype=result.dtype, device="cpu")

        return rule

    def number(n: int) -> Rule:
        return lambda args, kwargs, value, single, result: torch.full((), n, dtype=result.dtype, device="cpu")

    def same(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
        """The result has elements of its first argument, or of the tensors in it."""
        sources = args[0] if args and isinstance(args[0], (list, tuple)) else args[:1]
        values = [value(t) for t in sources]
        if not values or any(v is None or v.dtype != result.dtype or not torch.equal(v, values[0]) for v in values):
            return None
        return values[0]

    def each(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
        got = single()
        return got.reshape(()) if isinstance(got, Tensor) and got.numel() == 1 and got.dtype == result.dtype else None

    def summed(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
        got = each(args, kwargs, value, single, result)
        return None if got is None else got * (args[0].numel() // max(result.numel(), 1))

    def copied(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
        """What copy_ takes over, from the device or from the host."""
        v = value(args[1])
        if v is None and not args[1].is_cuda:
            v = uniform(torch, args[1])
        return None if v is None else v.to(result.dtype)

    def moved(args: tuple, kwargs: dict, value: Any, single: Any, result: Any) -> Any:
        if args[0].is_cuda:
            return each(args, kwargs, value, single, result)
        v = uniform(torch, args[0])
        return None if v is None else v.to(result.dtype)

    add(number(1), "ones ones_like new_ones")
    add(number(0), "zeros zeros_like new_zeros zero_")
    add(filled(1, "fill_value"), "full full_like")
    add(filled(2, "fill_value"), "new_full")
    add(filled(1, "value"), "fill_")
    add(same, "view reshape expand expand_as view_as reshape_as unsqueeze squeeze flatten unflatten transpose permute t swapaxes movedim contiguous clone detach alias "
        "narrow select repeat tile broadcast_to index_select gather take roll flip chunk split unbind diagonal unfold cat concat stack hstack vstack __getitem__")
    add(same, "interpolate", (torch.nn.functional,))
    for name in ("T", "mT"):
        rules[getattr(Tensor, name).__get__] = same
    add(each, "add sub subtract rsub mul multiply div divide true_divide floor_divide remainder pow neg abs sign sqrt rsqrt exp log reciprocal clamp clamp_min clamp_max minimum maximum "
        "eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not isnan isinf where masked_fill nan_to_num round floor ceil "
        "all any amax amin max min mean "
        "add_ sub_ mul_ div_ neg_ clamp_ masked_fill_ logical_not_ "
        "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __mod__ __neg__ __pow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
        "__and__ __or__ __xor__ __invert__ __iadd__ __isub__ __imul__ __itruediv__ float double half bfloat16 bool int long short byte type_as")
    add(summed, "sum count_nonzero")
    add(copied, "copy_")
    add(moved, "to cuda type")
    return rules
