"""vLLM: whether it starts, and how much of the card is left for its KV cache.

`vllm serve` ends once its engine has started: what it would answer means nothing. Weights are dummies, since nothing computes
with them, so a folder with a config.json is enough. vLLM runs each of its parts in a process of its own, and each reports what it knows.
"""

import functools
import os
import re
import shutil
import sys
from typing import Any, Callable, Optional

from . import hook, report, shadows

known: dict[str, Any] = {}  # for MemoryMark (Serving, summary.go)

_ENDS = "MEMORYMARK_EMULATE_ENDS_WHEN_SERVING"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "tekken.json", "vocab.json")


def begin() -> None:
    hook.after_import("vllm.engine.arg_utils", _prepare)
    hook.after_import("flashinfer.sampling", _spare_compiling)
    hook.after_import("vllm.v1.worker.gpu_worker", _follow_worker)
    hook.after_import("vllm.v1.core.kv_cache_utils", _follow_capacity)
    hook.after_import("vllm.v1.engine.core", _follow_engine)
    hook.after_import("vllm.v1.engine.async_llm", _end_when_started)


def _prepare(module: Any) -> None:
    create = module.EngineArgs.create_engine_config
    if _serves():
        os.environ[_ENDS] = "1"
    @functools.wraps(create)
    def create_engine_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        if os.path.basename(self.model) == "config.json":
            self.model = os.path.dirname(self.model) or "."
        if self.load_format == "auto":
            self.load_format = "dummy"
        if os.path.isdir(self.model) and not any(os.path.exists(os.path.join(self.model, name)) for name in _TOKENIZERS):
            self.skip_tokenizer_init = True
        return create(self, *args, **kwargs)

    module.EngineArgs.create_engine_config = create_engine_config


def _serves() -> bool:
    return "serve" in sys.argv[1:2] or "vllm.entrypoints.openai.api_server" in getattr(sys, "orig_argv", ())


def _has_nvcc() -> bool:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return bool(shutil.which("nvcc")) or os.path.exists(os.path.join(home, "bin", "nvcc"))


class _Kernels:
    """FlashInfer's functions allocate what its kernels write, and call them by name."""

    def build_and_load(self) -> "_Kernels":
        return self

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def _spare_compiling(module: Any) -> None:
    """Its sampler is compiled by nvcc when it is first used. The kernels do not run here, so they need not exist."""
    if not _has_nvcc():
        module.gen_sampling_module = _Kernels


def _wrap(owner: Any, name: str, then: Callable) -> None:
    """Calls then(result, *args) after each call."""
    call = getattr(owner, name, None)
    if call is None:
        return

    @functools.wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        try:
            then(result, *args, **kwargs)
        except Exception as error:  # another version's: never break the program that is measured
            report.note(f"vLLM's {name} is not as expected: {error}")
        return result

    setattr(owner, name, wrapped)


def _follow_worker(module: Any) -> None:
    _wrap(module.Worker, "determine_available_memory", _profiled)
    _wrap(module.Worker, "compile_or_warm_up_model", _ready)


def _profiled(available: int, worker: Any, *_: Any) -> None:
    known.update(
        kv_bytes=int(available),
        weights_bytes=int(worker.model_runner.model_memory_usage),
        activation_bytes=int(getattr(worker, "peak_activation_memory", 0)),
    )


def _ready(*_: Any) -> None:
    """The last that a worker does before it serves. The engine, which may be the same process, knows more later."""
    if os.environ.get(_ENDS) and "engine" not in known:
        report.write()


def _follow_capacity(module: Any) -> None:
    _wrap(module, "get_kv_cache_configs", functools.partial(_cached, module))


def _cached(module: Any, configs: Any, vllm_config: Any, specs: Any, available: Any, *_: Any) -> None:
    at_once = module.get_max_concurrency_for_kv_cache_config(vllm_config, configs[0])
    length = vllm_config.model_config.max_model_len
    known.update(max_model_len=length, concurrency=at_once, tokens=int(at_once * length), largest_max_model_len=_largest(module, vllm_config, configs, available))


def _largest(module: Any, vllm_config: Any, configs: Any, available: Any) -> int:
    """vLLM's own search, up to what the model is made for."""
    model = vllm_config.model_config
    before, limit = model.max_model_len, _made_for(model)
    model.max_model_len = max(before, limit)
    try:
        return min(module._estimate_max_model_len_from_groups(vllm_config, c.kv_cache_groups, memory) for c, memory in zip(configs, available))
    finally:
        model.max_model_len = before


def _made_for(model: Any) -> int:
    derived: Optional[float] = getattr(getattr(model, "model_arch_config", None), "derived_max_model_len_and_key", (None,))[0]
    return int(derived) if derived and derived != float("inf") else getattr(model.hf_text_config, "max_position_embeddings", 0)


def _follow_engine(module: Any) -> None:
    init = module.EngineCore.__init__

    @functools.wraps(init)
    def __init__(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        import vllm

        known.update(engine="vLLM", version=vllm.__version__, model=vllm_config.model_config.model, max_model_len=vllm_config.model_config.max_model_len)
        known.update(model_limit=_made_for(vllm_config.model_config), gpus=vllm_config.parallel_config.world_size, dummy_weights=vllm_config.load_config.load_format == "dummy")
        try:
            with shadows.paused():  # of a program that imported torch before vLLM
                init(self, vllm_config, *args, **kwargs)
            known["starts"] = True
        except Exception as error:
            known.update(starts=False, error=str(error).split("\n")[0], **_estimate(str(error)))
            raise
        finally:
            if os.environ.get(_ENDS):
                report.write()

    module.EngineCore.__init__ = __init__


def _estimate(error: str) -> dict[str, int]:
    """vLLM says in its error what would have fitted."""
    found = re.search(r"estimated maximum model length is (\d+)", error)
    return {"largest_max_model_len": int(found[1])} if found else {}


def _end_when_started(module: Any) -> None:
    start = module.AsyncLLM.from_vllm_config.__func__

    @functools.wraps(start)
    def from_vllm_config(cls: Any, *args: Any, **kwargs: Any) -> Any:
        engine = start(cls, *args, **kwargs)
        if os.environ.get(_ENDS):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        return engine

    module.AsyncLLM.from_vllm_config = classmethod(from_vllm_config)
