"""Pictures for training, validation and test, drawn anew for each seed, and batches of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.suite.data import Part, split
from botorch_costly.errors import check, check_count, check_nonnegative

CLASSES = 10
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True, kw_only=True)
class PictureRecipe:
    """How a network is trained on pictures, round by round: what all recipes have in common.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
    """

    name: str  # in reports
    data: Callable[[], Part]  # pictures for training and validation, ``n x 3 x 32 x 32`` in [0, 1]
    test: Callable[[], Part] | None = None  # test pictures; the rest of ``data`` if omitted
    train: int  # pictures of a class to train on
    validation: int  # pictures of a class to query at
    most_test: int = 10_000  # pictures of the test, at most
    epochs: int  # passes through the training pictures
    steps: int  # training batches of a round; a decision is made for each round
    batch: int  # pictures of a batch
    momentum: float = 0.9  # momentum of the weights
    weight_decay: float = 0.0  # decay of the weights
    device: str = "cpu"  # where it is trained
    precision: str = "fp32"  # or "bf16" for convolutions and products in half the bits

    def __post_init__(self) -> None:
        for name in ("train", "validation", "epochs", "steps", "batch", "most_test"):
            check_count(name, getattr(self, name), minimum=1)
        check_nonnegative("momentum", self.momentum)
        check_nonnegative("weight_decay", self.weight_decay)
        known = f"one of {PRECISIONS}"
        check(self.precision in PRECISIONS, "precision", known, self.precision)

    @property
    def horizon(self) -> int:
        """Rounds of a run: whole batches alone, and the last round is a whole one."""
        return math.ceil(self.epochs * (CLASSES * self.train // self.batch) / self.steps)


def pictures_of(read: Callable[[], Part], side: int = 32) -> Part:
    """Return pictures, once their shapes are as the networks need them.

    Raises:
        MissingDataError: If the folder of the data is not named, or the file is not there.
        InvalidArgumentError: If they are no finite pictures of three channels, or not one class each.
    """
    part, wanted = read(), (3, side, side)
    shape = tuple(part.inputs.shape)
    check(shape[1:] == wanted, "pictures", f"shape n x 3 x {side} x {side}", shape)
    labels = tuple(part.targets.shape)
    check(labels == shape[:1], "classes", f"one for each of {shape[0]} pictures", labels)
    check(shape[0] > 0, "pictures", "at least one", shape[0])
    ends = part.targets.min().item(), part.targets.max().item()
    whole = part.targets.dtype == torch.int64 and ends[0] >= 0 and ends[1] < CLASSES
    check(whole, "classes", f"integers from 0 to {CLASSES - 1}", (part.targets.dtype, *ends))
    check(bool(part.inputs.isfinite().all()), "pictures", "finite pixels", "one that is none")
    return part


def parts_of(recipe: PictureRecipe, generator: Generator) -> dict[str, Part]:
    """Draw the parts of a run, as many pictures of each class as the recipe says.

    Raises:
        MissingDataError: If the data are not here.
        InvalidArgumentError: If they have another shape, or are too few.
    """
    data, needed = pictures_of(recipe.data), recipe.train + recipe.validation
    smallest = int(data.targets.bincount(minlength=CLASSES).min())
    check(smallest >= needed, "pictures", f"at least {needed} of each class", smallest)
    amounts = {"train": recipe.train, "validation": recipe.validation}
    rows = split(data.targets, amounts, generator)
    parts = {name: Part(data.inputs[at], data.targets[at]) for name, at in rows.items()}
    test = parts["test"] if recipe.test is None else pictures_of(recipe.test)
    some = torch.randperm(len(test.targets), generator=generator)[: recipe.most_test]
    return {**parts, "test": Part(test.inputs[some], test.targets[some])}


class Batches:
    """Draws batches; its state says where it stands.

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
