"""What all trainings on pictures have in common: the data on a device, clocks, precision, a state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Generator, Tensor

from benchmarks.harness.clock import clock_of
from benchmarks.suite.data import Part
from benchmarks.suite.states import check_state
from benchmarks.training.parts import Sizes, parts_of
from botorch_costly.device import check_device

PRECISIONS = ("fp32", "bf16")


class PictureRecipe(Sizes, Protocol):
    """On which pictures a network is trained, and where."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def device(self) -> str:
        """Where it is trained."""

    @property
    def precision(self) -> str:
        """One of ``PRECISIONS``."""


R = TypeVar("R", bound=PictureRecipe)


class PictureRun(ABC, Generic[R]):
    """A training on pictures that lie on its device, stopped between two rounds.

    Args:
        recipe: What is trained, on what.
        seed: Of the split, and of all that is drawn.
    """

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
