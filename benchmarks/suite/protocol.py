"""What every problem of the online suite looks like to a tuner.

A *problem* is a recipe: what may be changed within which bounds, the setting a user would start
from, how many rounds there are. ``setup(seed)`` starts a *training run* of it. One round of a run
trains under one configuration; ``validate`` is the costly query, ``test`` is for the final report
alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from botorch_costly import SearchSpace
from botorch_costly.errors import StateMismatchError, check, check_nonnegative, check_rate


def tuned(**parameters: tuple[Any, Any]) -> dict[str, Any]:
    """Return space and default of a problem, from parameters and the values a user would start from."""
    space = SearchSpace({name: parameter for name, (parameter, _) in parameters.items()})
    return {"space": space, "default": {name: start for name, (_, start) in parameters.items()}}


def check_state(state: Mapping[str, Any], own: Mapping[str, Any], same: Sequence[str]) -> None:
    """Raise unless a state has the parts of a run's own, and is equal in some of them, ``same``.

    Raises:
        StateMismatchError: With the first part that differs.

    Example:
        >>> check_state({"seed": 3, "round": 7}, {"seed": 3, "round": 0}, ["seed"])
    """
    keys = f"the keys {list(own)}"
    check(set(state) == set(own), "state", keys, list(state), StateMismatchError)
    for name in same:
        check(state[name] == own[name], name, str(own[name]), state[name], StateMismatchError)


@dataclass(frozen=True)
class Metrics:
    """What one pass over a data set says about the network.

    Raises:
        InvalidArgumentError: If the loss is negative or nan, or the accuracy no share.

    Example:
        >>> Metrics(loss=0.25, accuracy=0.9).accuracy
        0.9
    """

    # Mean cross-entropy in nats per picture; smaller is better. Infinite for a diverged network
    loss: float
    accuracy: float  # share of pictures classified correctly, in [0, 1]

    def __post_init__(self) -> None:
        if self.loss != math.inf:
            check_nonnegative("loss", self.loss)
        check_rate("accuracy", self.accuracy)


@dataclass(frozen=True)
class Outcome:
    """How a method ended: test accuracy of what it would hand over, and what it paid."""

    test_accuracy: float
    queries: int
    rounds: int
    seconds: float


@runtime_checkable
class TrainingRun(Protocol):
    """One network in training, stopped between two rounds."""

    @property
    def round(self) -> int:
        """Rounds trained so far."""

    def train_round(self, config: Mapping[str, Any]) -> object:
        """Train one round under ``config``, which names every parameter of the problem.

        What it returns, if anything, is between a run and the methods that know its kind.
        """

    def validate(self) -> Metrics:
        """Measure the network on the validation pictures: the query that costs."""

    def test(self) -> Metrics:
        """Measure the network on the test pictures: for reports, never for tuning."""

    def save(self) -> dict[str, Any]:
        """Return what training changes but the round and its random numbers, alive, not a copy."""

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go back to what ``save`` returned, of this run or of another one of the problem."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs, as tensors and plain values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``, bit for bit, as if the run had never stopped."""


@runtime_checkable
class OnlineProblem(Protocol):
    """A training recipe whose settings may change from round to round."""

    @property
    def name(self) -> str:
        """What reports call the problem."""

    @property
    def horizon(self) -> int:
        """Rounds of one run."""

    @property
    def space(self) -> SearchSpace:
        """What may be changed from round to round."""

    @property
    def default(self) -> Mapping[str, Any]:
        """The setting a user would start from."""

    def setup(self, seed: int) -> TrainingRun:
        """Start a run: split the data, initialize the network, all from ``seed``."""
