"""What all trainings on pictures have in common: the data on a device, clocks, precision, a state."""

import argparse
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Generator, Tensor

from benchmarks.harness.clock import clock_of
from benchmarks.suite.data import Part, split
from benchmarks.suite.protocol import OnlineProblem, check_state
from botorch_costly.device import check_device
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
        self._order, self._place = state["order"], state["place"]


R = TypeVar("R", bound=PictureRecipe)


class PictureRun(ABC, Generic[R]):
    """A training on pictures that lie on its device, stopped between two rounds."""

    def __init__(self, recipe: R, seed: int) -> None:
        self.recipe, self.seed, self._round = recipe, seed, 0
        self.training_seconds, self.query_seconds = 0.0, 0.0
        self.device = check_device(recipe.device)
        self.clock = clock_of(self.device)
        self._generator = Generator().manual_seed(seed)
        self._draws = Generator(device=self.device).manual_seed(seed)
        self._parts = {
            name: Part(self._sized(part.inputs).to(self.device), part.targets.to(self.device))
            for name, part in parts_of(recipe, self._generator).items()
        }
        pictures = self._parts["train"].inputs
        self._mean, self._std = (
            moment(pictures, (0, 2, 3))[:, None, None] for moment in (torch.mean, torch.std)
        )

    @property
    def round(self) -> int:
        return self._round

    def _sized(self, pictures: Tensor) -> Tensor:
        """Return the pictures in the size that is trained on: here as they are."""
        return pictures

    def _normalized(self, pictures: Tensor) -> Tensor:
        return (pictures - self._mean) / self._std

    def _in_precision(self) -> torch.autocast:
        half = self.recipe.precision == "bf16"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=half)

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Return what training changes but the round and the generators, alive, not a copy."""

    @abstractmethod
    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go back to what ``save`` returned, of this run or of another one of the recipe."""

    def state_dict(self) -> dict[str, Any]:
        """Return what ``save`` does, generators and seconds; loads with ``weights_only=True``.

        It shares its tensors with the run, like any ``state_dict``: save or copy it before training on.
        """
        return {
            "recipe": self.recipe.name,
            "seed": self.seed,
            **self.save(),
            "generators": [self._generator.get_state(), self._draws.get_state()],
            "seconds": [self.training_seconds, self.query_seconds],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``, bit for bit on the CPU.

        Raises:
            StateMismatchError: If ``state`` comes from another recipe or another seed, or lacks a part.
        """
        check_state(state, self.state_dict(), ("recipe", "seed"))
        self.restore(state)
        for generator, found in zip(
            (self._generator, self._draws), state["generators"], strict=True
        ):
            generator.set_state(found)
        self.training_seconds, self.query_seconds = state["seconds"]


@dataclass(frozen=True)
class PictureProblem(Generic[R]):
    """A recipe as a problem of the online suite, without its space."""

    recipe: R

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def horizon(self) -> int:
        return self.recipe.horizon


class Kept:
    """The problem itself, whose latest run is at hand as ``run``."""

    def __init__(self, problem: OnlineProblem) -> None:
        self._problem = problem
        self.name, self.space, self.default = problem.name, problem.space, problem.default
        self.horizon = problem.horizon

    def setup(self, seed: int) -> Any:
        self.run: Any = self._problem.setup(seed)
        return self.run


T = TypeVar("T")


def add_training(parser: argparse.ArgumentParser, **settings: str) -> None:
    """Add the options of the setting, of which one at most is asked for by name; each has its help."""
    others = parser.add_mutually_exclusive_group()
    for name, about in settings.items():
        others.add_argument(f"--{name}", action="store_true", help=about)
    parser.add_argument(
        "--smoke", action="store_true", help="the same code on tiny sizes, on the CPU"
    )
    parser.add_argument("--device", help="where to train; that of the setting if omitted")
    parser.add_argument("--precision", choices=PRECISIONS, help="that of the setting if omitted")


def changed(recipe: T, **changes: Any) -> T:
    """Return a recipe with what was asked for in place of its own; ``None`` was not."""
    asked: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    made: Any = recipe
    return replace(made, **asked)
