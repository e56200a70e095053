"""What is imported before anything is measured. It touches no device."""

from __future__ import annotations

import contextlib
from typing import Any

from .failure import UserError


def load(prepare: dict[str, Any]) -> dict[str, str]:
    """Imports what a "prepare" message asks for; the versions that were found."""
    import torch

    versions: dict[str, str] = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
    if prepare.get("transformers"):
        import transformers

        versions["transformers"] = transformers.__version__
    if prepare.get("auto"):
        from . import auto

        with contextlib.suppress(UserError):  # a class that is not known is for the probe to report
            auto.class_of(prepare["model_type"], prepare.get("architecture", ""))
    elif prepare.get("module"):
        from . import catalog

        catalog.class_of(prepare["module"], prepare["architecture"])
    import torch._dynamo  # noqa: F401  an optimizer's first step imports it (torch/_compile.py): once is enough for all children

    from . import probe  # noqa: F401

    return versions
