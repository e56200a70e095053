"""What a program is doing, and the line at which each of these phases took the most memory.

build is what comes before the first optimizer is made; train what follows; load and save are calls that read or write
checkpoints; eval is code that asked for no gradients after it put a model into eval mode. The library counts the memory (peaks.c).
"""

import functools
import os
import sys
import threading
from typing import Any, Callable

from . import hook, library, report, steps

BUILD, LOAD, TRAIN, EVAL, SAVE = range(5)
_NAMES = ("build", "load", "train", "eval", "save")
_places: dict[int, tuple[int, str]] = {}  # phase: the step and the line of its peak

_base = BUILD  # what the program does when it neither loads, saves nor evaluates
_inner: list[int] = []  # of what it does inside of that; the first counts
_eval_mode = False  # of a model since the last backward
_DECORATORS = os.path.join("torch", "utils", "_contextlib.py")


def begin(torch: Any) -> None:
    _follow_training(torch)
    _follow_grad_mode(torch.no_grad)
    _follow_grad_mode(torch.inference_mode)
    _within(torch, "load", LOAD)
    _within(torch, "save", SAVE)
    _within(torch.nn.Module, "load_state_dict", LOAD)
    _within(torch.optim.Optimizer, "load_state_dict", LOAD)
    hook.after_import("safetensors.torch", _follow_safetensors)
    hook.after_import("torch.distributed.checkpoint.state_dict_loader", lambda module: _within(module, "load", LOAD))
    hook.after_import("torch.distributed.checkpoint.state_dict_saver", lambda module: _within(module, "save", SAVE))
    hook.after_import("transformers.modeling_utils", _follow_transformers)
    hook.after_import("torch._dynamo.eval_frame", _leave_alone)
    library.observe_peaks(_peak_reached)


def _follow_safetensors(module: Any) -> None:
    _within(module, "load_file", LOAD)
    _within(module, "save_file", SAVE)


def _follow_transformers(module: Any) -> None:
    model = module.PreTrainedModel
    _within(model, "save_pretrained", SAVE)
    load = model.from_pretrained.__func__
    model.from_pretrained = classmethod(_in_phase(load, LOAD))


def _within(owner: Any, name: str, phase: int) -> None:
    call = getattr(owner, name, None)
    if call is not None:
        setattr(owner, name, _in_phase(call, phase))


def _in_phase(call: Callable, phase: int) -> Callable:
    @functools.wraps(call)
    def within(*args: Any, **kwargs: Any) -> Any:
        enter(phase)
        try:
            return call(*args, **kwargs)
        finally:
            leave()

    return within


def enter(phase: int) -> None:
    if threading.current_thread() is threading.main_thread():
        _inner.append(phase)
        _tell()


def leave() -> None:
    if threading.current_thread() is threading.main_thread() and _inner:
        _inner.pop()
        _tell()


def _tell() -> None:
    library.phase(_inner[0] if _inner else _base)


def _follow_training(torch: Any) -> None:
    def then_trains(call: Callable) -> Callable:
        @functools.wraps(call)
        def followed(*args: Any, **kwargs: Any) -> Any:
            _trains()
            return call(*args, **kwargs)

        return followed

    torch.optim.Optimizer.__init__ = then_trains(torch.optim.Optimizer.__init__)
    torch.autograd.backward = then_trains(torch.autograd.backward)
    train = torch.nn.Module.train

    @functools.wraps(train)
    def set_mode(self: Any, mode: bool = True) -> Any:
        global _eval_mode
        _eval_mode = not mode
        return train(self, mode)

    torch.nn.Module.train = set_mode


def _trains() -> None:
    global _base, _eval_mode
    _eval_mode = False
    if _base != TRAIN:
        _base = TRAIN
        _tell()


def _follow_grad_mode(mode: Any) -> None:
    entered, left = mode.__enter__, mode.__exit__

    @functools.wraps(entered)
    def __enter__(self: Any) -> Any:
        result = entered(self)
        if _eval_mode and not _inner and _asked_outside_torch(sys._getframe(1)):
            self._memorymark_evaluates = True
            enter(EVAL)
        return result

    @functools.wraps(left)
    def __exit__(self: Any, *args: Any) -> Any:
        if self.__dict__.pop("_memorymark_evaluates", False):
            leave()
        return left(self, *args)

    mode.__enter__, mode.__exit__ = __enter__, __exit__


def _asked_outside_torch(frame: Any) -> bool:
    """Optimizers and initializations need no gradients either."""
    while frame and frame.f_code.co_filename.endswith(_DECORATORS):
        frame = frame.f_back
    return frame is not None and not frame.f_globals.get("__name__", "").startswith("torch.")


def _peak_reached(_: Any) -> int:
    """Called by the interpreter on the main thread, between two instructions, also between those of a compiled function."""
    before = _set_eval_frame(None)
    try:
        phase, thread = library.reached()
        # A frame that refers to itself would keep its callers' tensors alive, so this one has no reference to itself.
        other = None if thread == threading.get_ident() else sys._current_frames().get(thread)
        _places[phase] = (steps.count + 1, report.user_frame(other or sys._getframe(1)))
    finally:
        _set_eval_frame(before)
    return 0


def _set_eval_frame(callback: Any) -> Any:
    return None


def _leave_alone(eval_frame: Any) -> None:
    """TorchDynamo must not compile what looks for the line."""
    global _set_eval_frame
    try:
        eval_frame.skip_code(_peak_reached.__code__)
        _set_eval_frame = eval_frame.set_eval_frame
    except AttributeError:  # another version: no lines from now on
        library.observe_peaks(None)


def start_again() -> None:
    """In a forked child, which reports for itself."""
    global _base
    _places.clear(), _inner.clear()
    _base = BUILD
    library.forget_peaks()
    _tell()


def peaks(devices: int) -> list[dict[str, Any]]:
    """Of each phase that used the device: that of the device where it took the most."""
    out = []
    for phase, name in enumerate(_NAMES):
        allocated, reserved = max(library.phase_peak(phase, device) for device in range(devices))
        if allocated:
            step, where = _places.get(phase, (0, ""))
            out.append({"phase": name, "allocated": allocated, "reserved": reserved, "where": where, "step": step if phase == TRAIN and steps.count else 0})
    return out
