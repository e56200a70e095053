"""Why a step failed: by the type of its error, never by guessing.

Where PyTorch raises a plain RuntimeError for what a library or the driver
returned, the status that it quotes decides, and the allocator's count where a
status has more than one cause.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from typing import Any, Optional

OUT_OF_MEMORY = "out_of_memory"  # of the device
LAUNCH_LIMIT = "launch_limit"  # a kernel cannot take that many elements
HOST_MEMORY = "host_memory"
CRASH = "crash"  # the process died
TIMEOUT = "timeout"
MISSING = "missing"  # a package is not there, or too old
OTHER = "other"

MESSAGE = 4000  # characters of a message: a job keeps it


class LiveLimit(RuntimeError):
    """Live tensors would take more than the limit that was set."""


# The library could not get memory of its own: the allocator had taken all.
_OUT_OF_MEMORY_STATUS = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory", "MPS backend out of memory")
_LAUNCH_STATUS = (
    "CUDA error: invalid configuration argument",
    "CUDA error: too many resources requested for launch",
    "canUse32BitIndexMath",
    "integer out of range",
)
_HOST_STATUS = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")

# No plan of a convolution ran. That each wanted more memory than there is was
# caught (try_plans, aten/src/ATen/native/cudnn/Conv_v8.cpp); only the allocator
# has counted it. Without that count the card or cuDNN cannot do it at all.
_NO_PLAN_STATUS = "unable to find an engine to execute this computation"


def classify(error: BaseException) -> str:
    import torch

    if isinstance(error, (torch.cuda.OutOfMemoryError, LiveLimit)):
        return OUT_OF_MEMORY
    if isinstance(error, MemoryError):
        return HOST_MEMORY
    if isinstance(error, ImportError):
        return MISSING
    if isinstance(error, RuntimeError):
        text = str(error)
        if _NO_PLAN_STATUS in text.lower() and torch.cuda.is_initialized() and torch.cuda.memory_stats()["num_ooms"] > 0:
            return OUT_OF_MEMORY
        for kind, statuses in ((OUT_OF_MEMORY, _OUT_OF_MEMORY_STATUS), (LAUNCH_LIMIT, _LAUNCH_STATUS), (HOST_MEMORY, _HOST_STATUS)):
            if any(status in text for status in statuses):
                return kind
    return OTHER


class UserError(Exception):
    """What the user's function returned cannot be trained."""


def describe(error: BaseException) -> dict[str, Any]:
    """What a probe reports of an error."""
    text = str(error).strip()
    return {
        "class": classify(error),
        "error": type(error).__name__,
        "message": text.splitlines()[0][:MESSAGE] if text else type(error).__name__,
        "traceback": _traceback(error)[-20000:],
    }


def _traceback(error: BaseException) -> str:
    """Where it happened. Of an error in a user's code that is their frames:
    those above are ours, and those below are of libraries that did as they were
    told. Where no frame is theirs, it is those of libraries."""
    if isinstance(error, UserError):
        return ""  # the message has it all
    shown = traceback.TracebackException.from_exception(error)
    if isinstance(error, SyntaxError) and _is_users(error.filename or ""):
        shown.stack = traceback.StackSummary()  # the error itself says where
    chained: Optional[traceback.TracebackException] = shown
    while chained:
        theirs = [frame for frame in chained.stack if _is_users(frame.filename)]
        shown_frames = theirs or [frame for frame in chained.stack if not _is_ours(frame.filename)]
        if shown_frames:
            chained.stack = traceback.StackSummary.from_list(shown_frames)
        chained = chained.__cause__ or chained.__context__
    return "".join(shown.format())


_OURS = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = (_OURS, os.path.abspath(sysconfig.get_path("stdlib")), "<")


def _is_users(file: str) -> bool:
    """Whether a file is a user's: not ours, and of no library."""
    return not file.startswith(_LIBRARIES) and not any(name in file for name in ("site-packages", "dist-packages", "memorymark_emulate"))


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS) or "memorymark_emulate" in file
