"""Batches without end from some pictures: each pass in an order of its own, whole batches alone."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.suite.data import Part
from botorch_costly.errors import check, check_count


class Batches:
    """Draws batches; its state says where it stands.

    Args:
        part: Pictures and classes, on any device.
        size: Of a batch.
        generator: Of the orders, on the CPU.

    Raises:
        InvalidArgumentError: If there are fewer pictures than a batch needs.

    Example:
        >>> part = Part(torch.arange(4.0), torch.arange(4))
        >>> batches = Batches(part, 2, torch.Generator().manual_seed(0))
        >>> sorted([*batches.next().targets.tolist(), *batches.next().targets.tolist()])
        [0, 1, 2, 3]
    """

    def __init__(self, part: Part, size: int, generator: Generator) -> None:
        self.part, self._generator = part, generator
        self.size = check_count("batch", size, minimum=1)
        enough = len(part.targets) >= size
        check(enough, "batch", f"at most the {len(part.targets)} pictures there are", size)
        self._order, self._place = torch.empty(0, dtype=torch.int64), 0

    def next(self) -> Part:
        """Return the next batch."""
        if self._place + self.size > len(self._order):
            count = len(self.part.targets)
            self._order, self._place = torch.randperm(count, generator=self._generator), 0
        rows = self._order[self._place : self._place + self.size].to(self.part.targets.device)
        self._place += self.size
        return Part(self.part.inputs[rows], self.part.targets[rows])

    def state_dict(self) -> dict[str, Tensor | int]:
        """Return the order of this pass and the place in it."""
        return {"order": self._order, "place": self._place}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._order, self._place = state["order"], state["place"]
