"""Says, as one line of JSON, what this interpreter has to measure training with."""

import json
import platform
from types import ModuleType
from typing import Any


def inspect() -> dict[str, Any]:
    found: dict[str, Any] = {"python": platform.python_version()}
    try:
        import torch
    except Exception as e:  # a broken install raises anything
        found["torch_error"] = f"{type(e).__name__}: {e}"
    else:
        found["torch"] = torch.__version__
        look_at_devices(torch, found)
    try:
        import transformers

        found["transformers"] = transformers.__version__
    except Exception as e:
        found["transformers_error"] = f"{type(e).__name__}: {e}"
    return found


def look_at_devices(torch: ModuleType, found: dict[str, Any]) -> None:
    found["cuda"] = torch.version.cuda or ""
    found["mps"] = bool(getattr(torch.backends, "mps", None) and torch.backends.mps.is_available())
    try:
        found["cudnn"] = torch.backends.cudnn.version() or 0
        if not torch.cuda.is_available():
            torch.cuda.init()  # says why
        found["cards"] = []
        for i in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(i)
            found["cards"].append({"name": torch.cuda.get_device_name(i), "memory_bytes": total, "free_bytes": free})
    except Exception as e:
        found["cuda_error"] = str(e).splitlines()[0] if str(e) else type(e).__name__


print()
print(json.dumps(inspect()))
