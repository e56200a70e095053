"""Says, as one line of JSON, what this interpreter has to emulate with. Imports nothing large: versions are in files."""

import importlib.metadata
import importlib.util
import json
import os
import platform


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def torch_version() -> dict[str, str]:
    """What torch/version.py says: the version, and the CUDA it was built for."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    path = os.path.join(spec.submodule_search_locations[0], "version.py")
    values: dict[str, str] = {}
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), values)
    return {"torch": str(values.get("__version__") or ""), "cuda": str(values.get("cuda") or "")}


print(json.dumps({"python": platform.python_version(), "transformers": version("transformers"), **torch_version()}))
