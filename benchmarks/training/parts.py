"""Pictures for training, validation and test, drawn anew for each seed."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Generator

from benchmarks.suite.data import Part, split
from botorch_costly.errors import check

CLASSES = 10


class Sizes(Protocol):
    """Where pictures come from, and how many of them a run has."""

    @property
    def data(self) -> Callable[[], Part]:
        """Pictures for training and validation."""

    @property
    def test(self) -> Callable[[], Part] | None:
        """Pictures for the test; what is left of the others if there are none."""

    @property
    def train(self) -> int:
        """Pictures of a class to train on."""

    @property
    def validation(self) -> int:
        """Pictures of a class to query at."""

    @property
    def most_test(self) -> int:
        """Pictures of the test, at most."""


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


def parts_of(recipe: Sizes, generator: Generator) -> dict[str, Part]:
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
