"""What a plan asks for: some rounds with one configuration, from the present state or from a kept one."""

from collections.abc import Generator
from typing import NamedTuple, TypeVar

from torch import Tensor

Result = TypeVar("Result")


class Step(NamedTuple):
    """Rounds that are played with one configuration, and what comes before them.

    First the present state is kept, then an earlier one is gone back to, then others are dropped.
    """

    point: Tensor  # encoded configuration, shape: (d,)
    rounds: int
    query: bool  # after the last of them
    reason: str
    began: int  # rounds of compute at which the schedule stands
    trained: int  # rounds that the state has been trained for
    keep: int | None = None  # number under which the present state is kept
    restore: int | None = None  # number of the state to go back to
    drop: tuple[int, ...] = ()  # numbers of states that are not gone back to any more


# Yields steps, and hears the level after each: -inf of a failed query, NaN of one without a query.
Steps = Generator[Step, float, Result]
