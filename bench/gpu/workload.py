"""What is trained and on what: a model of the catalog, its inputs, its optimizer, a capped device."""

from __future__ import annotations

import ctypes
import json
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # imported by an optimizer's first step, where it would count as its time
import transformers

CATALOG = Path(__file__).parents[2] / "internal" / "workload" / "catalog.json"
TINY = Path(__file__).with_name("tiny.json")
GIB = 1 << 30

transformers.logging.set_verbosity_error()

Batch = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Workload:
    """A model under a cap. Every finder gets its model, inputs and optimizer here."""

    model: str  # an id of the catalog
    config: dict[str, Any]  # its config.json
    cap_gib: float
    device: str  # cuda or cpu
    sequence: int = 128
    image: int = 224

    def limit_memory(self) -> None:
        """Caps what this process may take: a smaller card on a larger one."""
        if self.device == "cuda":
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(self.cap_gib * GIB / total)
        else:
            limit_host_memory(int(self.cap_gib * GIB))

    def model_class(self) -> type[transformers.PreTrainedModel]:
        return getattr(transformers, self.config["architectures"][0])

    def build(self) -> transformers.PreTrainedModel:
        """The model with random weights, made on the device."""
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(**self.config)
        with torch.device(self.device):
            return self.model_class()(config).train()

    def optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-5)

    def batch(self, size: int) -> Batch:
        """Random inputs with labels, made on the device."""
        if self.config["model_type"] == "resnet":
            pixels = torch.rand(size, 3, self.image, self.image, device=self.device)
            return {"pixel_values": pixels, "labels": self._classes(size, self.config["num_labels"])}
        tokens = torch.randint(0, self.config["vocab_size"], (size, self.sequence), device=self.device)
        if self.config["model_type"] == "gpt2":
            return {"input_ids": tokens, "labels": tokens}
        return {"input_ids": tokens, "labels": self._classes(size, self.config.get("num_labels", 2))}

    def _classes(self, size: int, count: int) -> torch.Tensor:
        return torch.randint(0, count, (size,), device=self.device)


def load(models: list[str], caps: list[float], device: str) -> list[Workload]:
    """The workloads of the comparison, cap by cap. On the CPU the models are tiny ones of the same kinds."""
    entries = json.loads((CATALOG if device == "cuda" else TINY).read_text())["models"]
    known = {entry["id"]: entry for entry in entries}
    unknown = [m for m in models if m not in known]
    if unknown:
        raise SystemExit(f"no such model: {', '.join(unknown)}")
    sizes = {} if device == "cuda" else {"sequence": 32, "image": 32}
    cases = [Workload(m, known[m]["config"], cap, device, **sizes) for cap in caps for m in models]
    for case in cases:
        case.model_class()  # imports it now, before processes are forked
    return cases


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """A full training step; the model's output is dropped before backward, as in a usual loop."""
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def synchronize() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def empty_cache() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator: can't allocate memory" in str(error)


def limit_host_memory(more: int) -> None:
    """Makes tensors run out of memory on the CPU, in the way that PyTorch reports as such."""
    torch.set_num_threads(1)  # each thread's stack and heap would count
    torch.backends.mkldnn.set_flags(False)  # these two report it
    torch.backends.nnpack.set_flags(False)  # in other words
    mmap_threshold = -3  # of mallopt: what is larger goes back to the system when it is freed
    ctypes.CDLL(None).mallopt(mmap_threshold, 1 << 16)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_size() + more, hard))


def data_size() -> int:
    """Bytes that count towards this process's RLIMIT_DATA."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmData")
