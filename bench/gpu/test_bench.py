"""Tests of what decides who is right. They need PyTorch, transformers and build/memorymark; no GPU, no other finder:

python -m unittest discover -s bench/gpu
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import memorymark
import scan
import table
import truth
import workload
from finding import find
from process import Fresh, Result

PATIENCE = 600  # seconds after which a test that waits has failed


class Probes:
    """Counts what is probed of a made-up card."""

    def __init__(self, survives: Callable[[int], bool]) -> None:
        self.survives = survives
        self.known: dict[int, bool] = {}

    def __call__(self, sizes: list[int]) -> dict[int, bool]:
        self.known |= {size: self.survives(size) for size in sizes}
        return self.known


class LargestTest(unittest.TestCase):
    def test_near_and_far_answers(self) -> None:
        for answers in ([92], [90, 87, 64], [93, 97, 128], [1000], [1], []):
            self.assertEqual(truth.largest(answers, Probes(lambda n: n <= 92)), 92, answers)

    def test_right_answer_needs_few_probes(self) -> None:
        probes = Probes(lambda n: n <= 92)
        truth.largest([92], probes)
        self.assertEqual(sorted(probes.known), [92, 93, 94, 95, 96])

    def test_fitting_is_not_monotonic(self) -> None:
        self.assertEqual(truth.largest([90], Probes(lambda n: n <= 90 or n == 93)), 93)
        self.assertEqual(truth.largest([90, 120], Probes(lambda n: n <= 90 or n == 120)), 120)

    def test_nothing_fits(self) -> None:
        self.assertEqual(truth.largest([8], Probes(lambda n: False)), 0)


class FreshTest(unittest.TestCase):
    def test_outcomes(self) -> None:
        def fail() -> Result:
            raise ValueError("no")

        def die() -> Result:
            os.kill(os.getpid(), signal.SIGSEGV)
            return {}

        def hang() -> Result:
            time.sleep(PATIENCE)
            return {}

        self.assertEqual(Fresh(lambda: {"a": 1}, PATIENCE).result(), {"a": 1})
        self.assertIn("ValueError: no", Fresh(fail, PATIENCE).result()["error"])
        self.assertEqual(Fresh(die, PATIENCE).result(), {"error": "died with exit code -11"})
        self.assertEqual(Fresh(hang, 0.2).result(), {"error": "took too long"})


class TrainTest(unittest.TestCase):
    """Real steps of tiny models that really run out of memory, on the CPU."""

    def test_every_model(self) -> None:
        for case in workload.load(["bert", "gpt2", "resnet"], [0.0625], "cpu"):
            results = truth.train_all(case, [2, 20_000], parallel=2, timeout=PATIENCE)
            self.assertEqual([r.get("survived") for r in results], [True, False], results)
            self.assertEqual(results[0]["steps"], truth.STEPS)

    def test_scan(self) -> None:
        [case] = workload.load(["gpt2"], [0.03], "cpu")
        found = Fresh(lambda: find(case, scan.scan), PATIENCE).result()
        self.assertGreater(found.get("answer", 0), 0, found)
        self.assertEqual(found["tried"], list(range(8, found["answer"] + 9, 8)))


class MemoryMarkTest(unittest.TestCase):
    def run_program(self, script: str) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "memorymark")
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            [case] = workload.load(["bert"], [22.1], "cuda")
            return memorymark.find(str(program), case, timeout=PATIENCE)

    def test_answer(self) -> None:
        confirm = {"purpose": "confirm", "wall_seconds": 2.5}
        guide = {"purpose": "guide", "wall_seconds": 1.5}
        probes = [{**guide, "batch_size": 16}, {**guide, "batch_size": 32}, {**confirm, "batch_size": 270}]
        output = {"optimal_batch_size": 270, "seconds": {"search": 3.5}, "probes": [*probes, {"purpose": "time"}]}
        found = self.run_program(
            f"[ \"$1 $2 $3 $4\" = 'analyze bert --engine measured' ] || exit 9\necho '{json.dumps(output)}'"
        )
        found.pop("wall_seconds")
        want = {"answer": 270, "seconds": 3.5, "probes_added_up_seconds": 4.0, "tried": [16, 32, 270], "output": output}
        self.assertEqual(found, want)

    def test_the_program_itself(self) -> None:
        program = Path(__file__).parents[2] / "build" / "memorymark"
        self.assertTrue(program.is_file(), "make build makes it")
        [case] = workload.load(["gpt2"], [0.01], "cpu")
        found = memorymark.find(str(program), case, timeout=PATIENCE)
        self.assertNotIn("error", found)
        self.assertIn(found["answer"], found["tried"])
        self.assertGreater(found["seconds"], 0)

    def test_failure(self) -> None:
        self.assertIn("no card", self.run_program("echo no card >&2; exit 3")["error"])


class TableTest(unittest.TestCase):
    def test_rows(self) -> None:
        finders = ["memorymark", "lightning-binsearch", "scan", "accelerate"]
        plan = {"models": ["gpt2"], "caps": [22.1], "finders": finders}
        where = {"model": "gpt2", "cap_gib": 22.1}
        records = [
            {"kind": "run", "device": "H200", "total_bytes": 1, "PyTorch": "2.11.0", **plan},
            {
                "kind": "finding",
                **where,
                "finder": "memorymark",
                "answer": 92,
                "seconds": 3.0,
                "probes_added_up_seconds": 5.0,
                "tried": [92, 93],
            },
            {"kind": "finding", **where, "finder": "lightning-binsearch", "error": "took too long"},
            {"kind": "finding", **where, "finder": "scan", "answer": 128, "seconds": 12.0, "tried": [8, 16]},
            {"kind": "check", **where, "batch": 92, "survived": True},
            {"kind": "check", **where, "batch": 128, "survived": False},
            {"kind": "truth", **where, "largest": 92},
        ]
        text = table.markdown(records)
        for line in (
            "On H200: PyTorch 2.11.0.",
            "| gpt2 | 22.1 | 92 | 92 | 2 | 3.0 | 5.0 | failed |  | 12.0 | 0.25 |",
            "| gpt2 | 22.1 | 92 | memorymark | 92 | yes | 100% | 2 | 3.0 | 1.00 |",
            "| gpt2 | 22.1 | 92 | lightning-binsearch |  |  |  |  | failed |  |",
            "| gpt2 | 22.1 | 92 | scan | 128 | **no** | 139% | 2 | 12.0 | 0.25 |",
            "| gpt2 | 22.1 | 92 | accelerate |  |  |  |  |  |  |",
        ):
            self.assertIn(line, text.splitlines())


if __name__ == "__main__":
    unittest.main()
