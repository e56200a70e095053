"""Random numbers of the device: as the card draws them (philox.py), or else fairly, by the CPU's generator."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional

from . import report
from .philox import Philox


class Draws:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.philox = Philox(torch)
        self.drawn = 0

    def next(self, op: Any, args: Any, kwargs: Any) -> Optional[tuple[int, int]]:
        """The seed and the offset that an operator's random numbers follow from, before the operator moves the generator on."""
        torch = self.torch
        if torch.Tag.nondeterministic_seeded not in op.tags:
            return None
        name = op._schema.name.partition("::")[2]
        if name not in self.philox.kernels:
            report.note(f"random numbers of the GPU were drawn fairly, but not as a card draws them, for {name}")
        self.drawn += 1
        generator = next((g for g in (*args, *kwargs.values()) if isinstance(g, torch.Generator)), None)
        if generator is None and torch.cuda.is_initialized():
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
        try:
            return generator.initial_seed(), generator.get_offset()
        except (AttributeError, RuntimeError):  # while a graph is captured, asking is an error
            return self.drawn, 0

    @contextlib.contextmanager
    def seeded(self, state: Optional[tuple[int, int]]) -> Iterator[None]:
        """The CPU's generator, which is the program's, is left as it is."""
        if state is None:
            yield
            return
        self.philox.seed, self.philox.offset = state
        generator = self.torch.default_generator
        before = generator.get_state()
        generator.manual_seed((state[0] * 1_000_003 + state[1]) % (1 << 63))
        try:
            yield
        finally:
            generator.set_state(before)
