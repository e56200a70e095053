"""Random numbers of the device, drawn on the CPU.

They are drawn fairly and follow the device generator's seed and offset, so a
run repeats. They are not the numbers of a card: its kernels draw with Philox,
each thread from its own subsequence.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional

from . import report


class Draws:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.drawn = 0

    def next(self, op: Any, args: Any, kwargs: Any) -> Optional[int]:
        """What an operator's random numbers follow from, before the operator moves the generator on."""
        torch = self.torch
        if torch.Tag.nondeterministic_seeded not in op.tags:
            return None
        report.note("random numbers of the GPU were drawn on the CPU: fairly, but others than a card's")
        self.drawn += 1
        generator = next((g for g in (*args, *kwargs.values()) if isinstance(g, torch.Generator)), None)
        if generator is None and torch.cuda.is_initialized():
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
        try:
            return generator.initial_seed() * 1_000_003 + generator.get_offset()
        except (AttributeError, RuntimeError):  # while a graph is captured, nobody may ask
            return self.drawn

    @contextlib.contextmanager
    def seeded(self, seed: Optional[int]) -> Iterator[None]:
        """The CPU's generator, which is the program's, is left as it is."""
        if seed is None:
            yield
            return
        generator = self.torch.default_generator
        state = generator.get_state()
        generator.manual_seed(seed % (1 << 63))
        try:
            yield
        finally:
            generator.set_state(state)
