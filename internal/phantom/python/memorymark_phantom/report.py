"""What a process took, written for MemoryMark when the process ends."""

import inspect
import json
import os
import sys
import threading
import traceback

from . import library

_folder = os.environ.get("MEMORYMARK_PHANTOM_FOLDER")
_started_in = os.path.join(os.getcwd(), "")  # files in it are named from there, as compilers do
_record = bool(os.environ.get("MEMORYMARK_PHANTOM_RECORD"))

_torch = None
_peaks = {}  # device: the highest of peaks that the program has reset
_steps = []  # peaks of each step
_ooms = []
_notes = []
late = 0  # bytes of buckets that DDP has rebuilt
_recording = False
_written = None


def note(text: str) -> None:
    if text not in _notes:
        _notes.append(text)


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
    global _recording, _written, late
    _peaks.clear(), _steps.clear(), _ooms.clear(), _notes.clear()
    _recording, _written, late = False, None, 0
    from . import shadows

    shadows.start_again()


def _initialized() -> None:
    """The device is there: record from its first allocation on."""
    torch = _torch
    torch._C._cuda_attach_out_of_memory_observer(_out_of_memory)
    if _record:
        _start_recording()


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
    """The innermost line that is not a library's."""
    first = None
    while frame is not None:
        name = frame.f_code.co_filename
        shown = name[len(_started_in) :] if name.startswith(_started_in) else name
        where = f"{shown}:{frame.f_lineno} in {frame.f_code.co_name}"
        if not _is_ours(name):
            first = first or where
            if "site-packages" not in name and "dist-packages" not in name and not name.startswith("<") and os.sep + "lib" + os.sep + "python" not in name:
                return where
        frame = frame.f_back
    return first or ""


def _is_ours(filename: str) -> bool:
    """Also what runs the steps of a model that MemoryMark was given."""
    return filename.startswith(os.path.dirname(__file__)) or f"{os.sep}memorymark_prober{os.sep}" in filename


def _dump() -> None:
    if _recording and _folder:
        _torch.cuda.memory._dump_snapshot(os.path.join(_folder, f"{os.getpid()}.pickle"))


def write() -> None:
    """Once a process that used the device, whatever ends it."""
    global _written
    torch = _torch
    if _folder is None or torch is None or _written == os.getpid():
        return
    if not torch.cuda.is_initialized() and not _notes:
        return
    _written = os.getpid()
    try:
        _write()
    except Exception:  # never break the program that is measured
        traceback.print_exc()


def _write() -> None:
    from . import shadows, steps

    torch = _torch
    _remember()
    if _recording and not _ooms:
        _dump()
    answer = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "command": sys.argv,
        "rank": os.environ.get("RANK", ""),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "steps": steps.count,
        "step_peaks": _steps,
        "devices": [{"device": d, **p, "driver": library.peak(d)} for d, p in sorted(_peaks.items()) if p["reserved"] or library.peak(d)],
        "out_of_memory": _ooms,
        "late_bytes": late,
        "launches": library.launches(),
        "step_work": library.work(),
        "assumed": shadows.assumptions(),
        "notes": _notes,
    }
    path = os.path.join(_folder, f"{os.getpid()}.json")
    with open(path + ".part", "w") as f:
        json.dump(answer, f)
    os.replace(path + ".part", path)
