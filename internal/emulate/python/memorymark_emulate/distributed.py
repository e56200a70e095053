"""One rank of many, alone.

With `--gpus 8` a program that no launcher started is the first of eight ranks.
Its collectives return at once (nccl.c); here is what else would wait for the
others: the store at which ranks meet, and gloo's groups on the CPU.
"""

import functools
import os
import sys

from . import hook, library, report, shadows

_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch")


def begin(torch) -> None:
    hook.after_import("torch.distributed.distributed_c10d", _follow_collectives)
    hook.after_import("torch.nn.parallel.distributed", _watch_buckets)
    world = int(os.environ.get("MEMORYMARK_EMULATE_GPUS") or 1)
    if world < 2 or "RANK" in os.environ or _launches():
        return
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    hook.after_import("torch.distributed.rendezvous", _meet_alone)
    hook.after_import("torch.distributed.distributed_c10d", _without_gloo)


def _launches() -> bool:
    """A launcher, or a worker of one, sets up its ranks itself."""
    words = [os.path.basename(word) for word in getattr(sys, "orig_argv", sys.argv)[:4]]
    return any(word in _LAUNCHERS for word in words)


def _meet_alone(rendezvous) -> None:
    from torch.distributed import HashStore

    rendezvous._create_c10d_store = lambda *args, **kwargs: HashStore()


def _without_gloo(c10d) -> None:
    from torch._C._distributed_c10d import FakeProcessGroup

    def fake(store, rank, size, *args, **kwargs):
        make = getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)
        return make(rank, size)

    c10d.ProcessGroupGloo = fake
    c10d._store_based_barrier = lambda *args, **kwargs: None


def _watch_buckets(module) -> None:
    """DDP rebuilds its buckets before the second step. Here the watchdog has seen
    by then that the first ones are reduced (steps.settle); on a card it may be
    late, and they are held in addition to the new ones."""
    wrapper = module.DistributedDataParallel
    pre_forward = wrapper._pre_forward

    @functools.wraps(pre_forward)
    def watched(self, *args, **kwargs):
        before = getattr(self, "_has_rebuilt_buckets", True)
        result = pre_forward(self, *args, **kwargs)
        if not before and self._has_rebuilt_buckets and library.communicators():
            report.late += sum(p.numel() * p.element_size() for p in self.parameters() if p.requires_grad)
        return result

    wrapper._pre_forward = watched


def _follow_collectives(c10d) -> None:
    """Every other rank is taken to have what this one has: then what a program
    exchanges to agree on something (sizes, objects) is right."""
    import torch.distributed

    def follow(name, outputs, source):
        collective = getattr(c10d, name)

        def followed(*args, **kwargs):
            result = collective(*args, **kwargs)
            shadows.exchanged(outputs(*args, **kwargs), source(*args, **kwargs))
            return result

        functools.update_wrapper(followed, collective)
        for module in (c10d, torch.distributed):
            if getattr(module, name, None) is collective:
                setattr(module, name, followed)

    follow("all_gather", lambda tensor_list, tensor, *a, **k: tensor_list, lambda tensor_list, tensor, *a, **k: tensor)
    follow("all_gather_into_tensor", lambda output_tensor, input_tensor, *a, **k: [output_tensor], lambda output_tensor, input_tensor, *a, **k: input_tensor)
    follow("broadcast", lambda tensor, *a, **k: [tensor], lambda tensor, *a, **k: tensor)
    follow("all_reduce", lambda tensor, *a, **k: [tensor], lambda tensor, *a, **k: tensor)
