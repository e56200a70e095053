"""Optimizer steps: counted, and where asked for the last one, or one that runs out of memory."""

import os
import sys
import time

from . import endless, library, report, shadows

count = 0
_stop = int(os.environ.get("MEMORYMARK_EMULATE_STEPS") or 0)
_oom = int(os.environ.get("MEMORYMARK_EMULATE_OOM_AT_STEP") or 0)


def begin(torch) -> None:
    from torch.optim import optimizer

    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda *_: stepped(torch))
    if _oom == 1:
        original = optimizer.Optimizer.__init__

        def made(self, *args, **kwargs):
            original(self, *args, **kwargs)
            run_out(torch)

        optimizer.Optimizer.__init__ = made
    os.register_at_fork(after_in_child=start_again)


def settle() -> None:
    """Collectives hold their tensors until PyTorch's watchdog, which looks every
    100 ms (ProcessGroupNCCL.cpp, kWatchdogThreadSleepMillis), has seen that they
    are done. On a real card steps mostly leave it the time: of six recorded jobs
    that rebuild DDP's buckets after the first step, five had freed those of the first."""
    if not library.communicators():
        return
    try:
        for group in list(sys.modules["torch.distributed.distributed_c10d"]._world.pg_map):
            group._wait_for_pending_works()
    except (AttributeError, KeyError, RuntimeError):  # an older PyTorch, or a group that is not NCCL's alone
        time.sleep(0.15)


def start_again() -> None:
    global count
    count = 0
    library.forget_work()


def stepped(torch) -> None:
    global count
    count += 1
    endless.forget()
    library.stepped(shadows.calls_since())
    report.stepped(torch, count)
    settle()
    if _oom and count == _oom - 1:
        run_out(torch)
    if _stop and count >= _stop:
        report.write()
        sys.exit(0)


def run_out(torch) -> None:
    """From here on the device has nothing left: the next request that the
    allocator cannot serve from what it holds fails, as on a full card."""
    torch.cuda.empty_cache()
    library.limit(max(library.taken(torch.cuda.current_device()), 1))
