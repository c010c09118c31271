"""What all trainings on pictures have in common: the data on a device, clocks, precision, a state."""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Generator, Tensor

from benchmarks.harness.clock import clock_of
from benchmarks.suite.data import Part
from benchmarks.suite.protocol import OnlineProblem, check_state
from benchmarks.training.batches import PRECISIONS, PictureRecipe, parts_of
from botorch_costly.device import check_device

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
        """Rounds trained so far."""
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
        """Name of the recipe."""
        return self.recipe.name

    @property
    def horizon(self) -> int:
        """Rounds of one run."""
        return self.recipe.horizon


class Kept:
    """The problem itself, whose latest run is at hand as ``run``."""

    def __init__(self, problem: OnlineProblem) -> None:
        self._problem = problem
        self.name, self.space, self.default = problem.name, problem.space, problem.default
        self.horizon = problem.horizon

    def setup(self, seed: int) -> Any:
        """Set up the run."""
        self.run: Any = self._problem.setup(seed)
        return self.run


T = TypeVar("T")


def add_training(parser: argparse.ArgumentParser, published: str) -> None:
    """Add the options of the setting, of which the help describes the published one."""
    parser.add_argument("--published", action="store_true", help=published)
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
