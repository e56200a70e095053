"""The pytest plugin, on an emulated GPU, with the PyTorch and pytest that the tests have."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from memorymark import pytest_plugin

ROOT = pathlib.Path(__file__).parents[2]

TESTS = """
import pytest
import torch

def step(n):
    model = torch.nn.Linear(n, n, device="cuda")
    model(torch.zeros(8, n, device="cuda")).sum().backward()
    return model

@pytest.mark.gpu_memory("64 MiB", gpu="rtx-4090")
@pytest.mark.parametrize("n", [64, 8192])
def test_step(n, emulated_gpu):
    assert emulated_gpu.name == "NVIDIA GeForce RTX 4090" and emulated_gpu.peak_reserved == 0
    step(n)
    assert emulated_gpu.peak_reserved > 0

@pytest.mark.gpu_memory(gpu="t4")
def test_out_of_memory():
    kept = step(8192)
    torch.empty(5 << 30, device="cuda")

@pytest.mark.gpu_memory("lots")
def test_wrong_limit():
    pass

def test_here():
    assert not torch.cuda.is_available()
"""


class Plugin(unittest.TestCase):
    def test_tests(self):
        done = run({"test_memory.py": TESTS})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("2 failed, 2 passed, 1 error", done.stdout)
        self.assertRegex(done.stdout, r"peak 5\d\d\.\d\d MiB reserved on NVIDIA GeForce RTX 4090, which is \S+ MiB more than the 64\.00 MiB")
        self.assertRegex(done.stdout, r"256\.00 MiB  parameter +test_memory\.py:6 step")
        self.assertIn("out of memory at test_memory.py:20 in test_out_of_memory, which requested 20.00 GiB", done.stdout)
        self.assertIn("'lots' is not an amount of memory", done.stdout)

    def test_limit_without_a_gpu(self):
        """A limit that says nothing fails: the test would pass whatever happens."""
        done = run({"test_cpu.py": "import pytest\n\n@pytest.mark.gpu_memory('1 GiB')\ndef test_cpu():\n    pass\n"})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("the test used no GPU memory", done.stdout)

    def test_no_limit_without_memory(self):
        done = run({"test_card.py": "def test_card(emulated_gpu):\n    assert emulated_gpu.peak_reserved == 0\n"})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_parse(self):
        for text, want in {"22 GiB": 22 << 30, "512MiB": 512 << 20, "1.5 gb": 1_500_000_000, 4096: 4096}.items():
            self.assertEqual(pytest_plugin.parse(text), want)
        for text in ("lots", "22 GiG", "-1 GiB", ""):
            self.assertRaises(ValueError, pytest_plugin.parse, text)


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (pathlib.Path(folder) / name).write_text(textwrap.dedent(text), encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "memorymark.pytest_plugin"], cwd=folder, env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
