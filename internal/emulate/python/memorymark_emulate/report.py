"""What a process took, written for MemoryMark while it runs and when it ends.

What is written last is exact. A process that a signal kills cannot write any
more: what it had written by then is all there is (`running` in the file).
"""

import functools
import inspect
import json
import os
import sys
import threading
import time
import traceback
from typing import Optional

from . import library

_folder = os.environ.get("MEMORYMARK_EMULATE_FOLDER")
_started_in = os.path.join(os.getcwd(), "")  # files in it are named from there, as compilers do
_record = bool(os.environ.get("MEMORYMARK_EMULATE_RECORD"))

_torch = None
_peaks = {}  # device: the highest of peaks that the program has reset
_steps = []  # peaks of each step
_ooms = []
_notes = []
values = "assumed"  # or computed: how the values that the program reads came about
late = 0  # bytes of buckets that DDP has rebuilt
_recording = False
_written = None
_lock = threading.RLock()  # the peaks and the file, of the program's threads and the one that looks after them

EVERY = 0.25  # seconds between two looks at a process that takes no steps


def note(text: str) -> None:
    if text not in _notes:
        _notes.append(text)


def unable(why: str) -> None:
    """Says why this process cannot use the device."""
    if _folder is not None:
        with open(os.path.join(_folder, "unable"), "w") as f:
            f.write(why)


def begin(torch) -> None:
    global _torch
    _torch = torch
    os.register_at_fork(after_in_child=_start_again)
    reset = torch.cuda.reset_peak_memory_stats

    def reset_peak_memory_stats(*args, **kwargs):
        _remember()
        return reset(*args, **kwargs)

    torch.cuda.memory.reset_peak_memory_stats = torch.cuda.reset_peak_memory_stats = reset_peak_memory_stats
    torch.cuda._lazy_call(_initialized)


def _start_again() -> None:
    global _recording, _written, _lock, late
    _peaks.clear(), _steps.clear(), _ooms.clear(), _notes.clear()
    _recording, _written, late = False, None, 0
    _lock = threading.RLock()  # a thread that is not in this process may have held the other
    from . import phases, shadows

    shadows.start_again()
    phases.start_again()


def _initialized() -> None:
    """The device is there: record from its first allocation on."""
    torch = _torch
    if torch.cuda.get_allocator_backend() == "native":
        torch._C._cuda_attach_out_of_memory_observer(_out_of_memory)
        if _record:
            _start_recording()
    else:
        note("cudaMallocAsync: how the driver's pool places allocations is not documented; what it reserves was off by up to 4 % in three programs compared with an H200")
    if _folder:
        threading.Thread(target=_keep_written, name="memorymark", daemon=True).start()


def _keep_written() -> None:
    pid = os.getpid()
    while _written is None and os.getpid() == pid:
        _write_progress()
        time.sleep(EVERY)


def _write_progress() -> None:
    """What is known of a process that still runs, should it be killed."""
    try:
        with _lock:
            if _folder and _written is None and _torch.cuda.is_initialized():
                _remember()
                _put({**_taken(), "running": True})
    except Exception:  # the next time, or at the end
        pass


def _start_recording() -> None:
    global _recording
    torch = _torch
    torch.cuda.memory._record_memory_history(max_entries=sys.maxsize, stacks="python")
    _recording = True
    from . import hook

    # PyTorch 2.11 fails when it records Python stacks while a checkpointed
    # model is recomputed, so from the first checkpoint on it goes without.
    hook.after_import("torch.utils.checkpoint", _record_checkpoints_without_stacks)


def _record_checkpoints_without_stacks(module) -> None:
    checkpoint = module.checkpoint
    done = []

    def without_stacks(*args, **kwargs):
        if not done:
            done.append(True)
            _torch.cuda.memory._record_memory_history(max_entries=sys.maxsize, context=None, **_keep_history())
        return checkpoint(*args, **kwargs)

    module.checkpoint = without_stacks
    for name, user in list(sys.modules.items()):
        # Not getattr: modules of transformers import others when they are asked.
        if name.startswith("transformers.") and vars(user).get("checkpoint") is checkpoint:
            user.checkpoint = without_stacks


def _keep_history() -> dict:
    """Later versions can forget what was recorded so far, and have to be told not to; the others never do."""
    can_forget = "clear_history" in inspect.signature(_torch.cuda.memory._record_memory_history_impl).parameters
    return {"clear_history": False} if can_forget else {}


def _remember() -> None:
    torch = _torch
    if torch is None or not torch.cuda.is_initialized():
        return
    with _lock:
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats(device)
            seen = _peaks.setdefault(device, {"allocated": 0, "reserved": 0, "requested": 0})
            for kind in seen:
                seen[kind] = max(seen[kind], stats.get(f"{kind}_bytes.all.peak", 0))


def stepped(torch, number: int) -> None:
    if torch.cuda.is_initialized() and len(_steps) < 1000:
        device = torch.cuda.current_device()
        stats = torch.cuda.memory_stats(device)
        _steps.append({"step": number, "peak_allocated": stats["allocated_bytes.all.peak"], "peak_reserved": stats["reserved_bytes.all.peak"]})
    _write_progress()


def _out_of_memory(device, requested, total, free) -> None:
    """Called by the allocator before it raises: the user's line is still on the
    stack, in backward that of the main thread."""
    from . import steps

    try:
        frame = sys._current_frames().get(threading.main_thread().ident)
        _ooms.append({"device": device, "requested": requested, "total": total, "free": free, "step": steps.count + 1, "where": user_frame(frame)})
        _dump()
    except Exception:  # never break the program that is measured
        traceback.print_exc()


def user_frame(frame) -> str:
    """The innermost line of a running function that is not a library's."""
    return _user_line(traceback.walk_stack(frame))


def is_library(frame) -> bool:
    """Whether a function is not the program's own."""
    name = frame.f_code.co_filename
    return _is_ours(name) or _is_library(name)


def _user_line(lines) -> str:
    """The first of frames with their lines, innermost first, that is not a library's."""
    first = None
    for frame, number in lines:
        name = frame.f_code.co_filename
        if _is_ours(name):
            continue
        if not _is_library(name):
            return _shown(frame, number)
        first = first or _shown(frame, number)
    return first or ""


def _shown(frame, number) -> str:
    name = frame.f_code.co_filename
    name = name[len(_started_in) :] if name.startswith(_started_in) else name
    return f"{name}:{number} in {frame.f_code.co_name}"


@functools.lru_cache(None)
def _is_library(filename: str) -> bool:
    generated = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or "torchinductor_"
    return any(part in filename for part in ("site-packages", "dist-packages", f"{os.sep}lib{os.sep}python", generated)) or filename.startswith("<")


@functools.lru_cache(None)
def _is_ours(filename: str) -> bool:
    """Also what runs the steps of a model that MemoryMark was given."""
    return filename.startswith(os.path.dirname(__file__)) or f"{os.sep}memorymark_prober{os.sep}" in filename


def _dump() -> None:
    if _recording and _folder:
        _torch.cuda.memory._dump_snapshot(os.path.join(_folder, f"{os.getpid()}.pickle"))


def write(status: int = 0, where: str = "") -> None:
    """Once a process that used the device or failed, whatever ends it."""
    global _written
    torch = _torch
    if _folder is None or torch is None or _written == os.getpid():
        return
    from . import serving

    failure = _failure(status) if not where else {"exit_code": status, "where": where}
    if not torch.cuda.is_initialized() and not _notes and not failure and not serving.known:
        return
    try:
        with _lock:
            _written = os.getpid()
            _remember()
            if _recording and not _ooms:
                _dump()
            _put({**_taken(), "step_peaks": _steps, "step_work": library.work(), "failure": failure})
    except Exception:  # never break the program that is measured
        traceback.print_exc()


def _failure(status: int) -> Optional[dict]:
    """The error that the interpreter ends by, which it keeps for a debugger, or the status that a child leaves with."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return {"exit_code": status} if status else None
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    message = str(error).strip().split("\n")[0][:200]
    lines = list(traceback.walk_tb(error.__traceback__))
    return {"exception": f"{name}: {message}" if message else name, "where": _user_line(reversed(lines))}


def _taken() -> dict:
    from . import made, phases, serving, shadows, steps

    torch = _torch
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "command": sys.argv,
        "rank": os.environ.get("RANK", ""),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "steps": steps.count,
        "devices": [{"device": d, **p, "driver": library.peak(d)} for d, p in sorted(_peaks.items()) if p["reserved"] or library.peak(d)],
        "phases": phases.peaks(torch.cuda.device_count()),
        "host": {"peak": _host_peak(), "pinned": library.pinned_peak()},
        "communicators": library.communicators(),
        "serving": serving.known or None,
        "out_of_memory": _ooms,
        "late_bytes": late,
        "launches": library.launches(),
        "values": values,
        "assumed": shadows.assumptions(),
        "branches": list(made.decisions),
        "notes": _notes,
    }


def _host_peak() -> int:
    """The most host memory that was resident (proc_pid_status(5), VmHWM)."""
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")), 0)


def _put(answer: dict) -> None:
    path = os.path.join(_folder, f"{os.getpid()}.json")
    with open(path + ".part", "w") as f:
        json.dump(answer, f)
    os.replace(path + ".part", path)
