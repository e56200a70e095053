"""MemoryMark itself: the command, and what is read of its answer."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from process import Result
from workload import Workload


def find(binary: str, workload: Workload, timeout: float) -> Result:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "analyze", model(workload, Path(folder)), "--engine", "measured", "--no-timing", "--json"]
        command += ["--device", workload.device, "--python", sys.executable, "--limit", f"{workload.cap_gib}GiB"]
        command += (
            ["--sequence", str(workload.sequence)]
            if "vocab_size" in workload.config
            else ["--image", str(workload.image)]
        )
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"error": "took too long"}
    if ran.returncode != 0:
        return {"error": f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stderr}"}
    return read(json.loads(ran.stdout)) | {"wall_seconds": time.perf_counter() - begin}


def read(output: dict[str, Any]) -> Result:
    """What is compared of its answer. The clock of its search starts after the imports, as the others' does, and stops
    when the answer is confirmed; what only looks at the present batch, or times steps, comes after."""
    probes = [probe for probe in output["probes"] if probe["purpose"] in ("confirm", "guide")]
    return {
        "answer": output["optimal_batch_size"],
        "seconds": output["seconds"]["search"],
        "probes_added_up_seconds": probes_added_up(probes),
        "tried": [probe["batch_size"] for probe in probes],
        "output": output,
    }


def probes_added_up(probes: list[dict[str, Any]]) -> float:
    """The sum of the probes' own times, of which two ran at once where both fit on the card. Batches that were tried
    in the same process carry the same time."""
    return sum({probe["wall_seconds"] for probe in probes})


def model(workload: Workload, folder: Path) -> str:
    """The model's id; a tiny one is none of the catalog's, so its configuration is written down."""
    if workload.device == "cuda":
        return workload.model
    path = folder / "config.json"
    path.write_text(json.dumps(workload.config))
    return str(path)


def version(binary: str) -> str:
    return subprocess.run([binary, "version"], capture_output=True, text=True, check=True).stdout.strip()
