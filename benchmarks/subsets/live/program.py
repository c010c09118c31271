"""What is trained live: a space, fractions of the data, and what a training comes to."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from botorch_costly import SearchSpace

Config = Mapping[str, Any]


class Outcome(NamedTuple):
    """What a training came to."""

    error: float  # share of the validation examples
    seconds: float  # training and validation together


class Program(NamedTuple):
    """A training program.

    Args:
        space: Of the configurations.
        fraction: Of the data, as the one fidelity ``fraction``.
        trained: From a configuration, a fraction and a seed to what came of the training.
        budgets: Seconds after which a method is asked what it would choose, ascending.
        checked: Validation examples: what the least error is told apart by.
        deciding: Seconds of a decision, as a method may reckon with.
    """

    space: SearchSpace
    fraction: SearchSpace
    trained: Callable[[Config, float, int], Outcome]
    budgets: tuple[int, ...]
    checked: int
    deciding: float = 0.5
