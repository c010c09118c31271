"""The first intervals of a run: the user's start, then a design, as far as the limits leave room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import design
from botorch_costly.errors import InvalidBudgetError, check
from botorch_costly.parameters import Plain
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.options import Design

_START_ROUNDS = 5


class Limit(NamedTuple):
    """Rounds or queries that a run has, and the part of them that a design takes unasked."""

    name: str
    amount: int
    parts: int = 1


def limits_of(
    horizon: int | None, intervals: int | None, max_queries: int | None, budget: int | None
) -> list[Limit]:
    """Return what the opening of a run must leave room in, of what is known.

    Args:
        horizon: Rounds of the run.
        intervals: Of these rounds.
        max_queries: The most queries.
        budget: Of the query rule.
    """
    limits = [
        ("horizon", horizon, 10),
        ("intervals in the horizon", intervals, 3),
        ("max_queries", max_queries, 1),
        ("budget", budget, 5),
    ]
    return [Limit(name, amount, parts) for name, amount, parts in limits if amount is not None]


@dataclass(frozen=True)
class Opening:
    """Intervals that are queried whatever the rule says: first the start, then a design.

    Args:
        space: Of the configurations.
        start: The first of them; none if None.
        start_rounds: How many intervals play it.
        rounds: How many intervals there are in all.
        others: Encoded configurations that follow the start, or None where they are drawn one by one.
    """

    space: SearchSpace
    start: FrozenConfig | None
    start_rounds: int
    rounds: int
    others: Tensor | None = None

    def decide(self, number: int, generator: torch.Generator) -> Decision:
        """Return the decision of an interval of the opening, numbered from 0."""
        config: Mapping[str, Plain]
        if self.start is not None and number < self.start_rounds:
            config = self.start
        elif self.others is not None:
            config = self.space.decode(self.others[number - self.start_rounds])
        else:
            config = self.space.decode(self.space.sample(1, generator)[0])
        said = f"initial design (interval {number + 1} of {self.rounds})"
        return Decision(number, config, True, said)


def opening_of(
    space: SearchSpace,
    limits: Sequence[Limit],
    wanted: Design,
    start: FrozenConfig | None,
    seed: int,
) -> Opening:
    """Return the opening that a run has room for.

    Args:
        space: Of the configurations.
        limits: Of the run.
        wanted: Kind and rounds of the design, and rounds of the start; what is omitted is taken within a
            part of each limit.
        start: The first configuration, if any; it is played however few rounds are wanted.
        seed: Of the design.

    Raises:
        InvalidArgumentError: If several rounds are to play no start.
        InvalidBudgetError: If the opening is longer than a limit.
    """
    start_rounds = wanted.start_rounds
    if start_rounds is None:
        start_rounds = _usual_start_rounds(start, limits)
    check(start_rounds == 1 or start is not None, "start_rounds", "1 without a start", start_rounds)
    more = start_rounds - 1
    if more:
        _check_room("start_rounds", start_rounds, limits)
    if wanted.rounds is None:
        usual = 0 if space.is_arms else 2 * space.dim
        room = [max(limit.amount - more, 0) // limit.parts for limit in limits]
        rounds = min([usual, *room])
    else:
        rounds = wanted.rounds
        _check_room("design rounds", rounds, limits)
        _check_room("design rounds and start_rounds together", rounds + more, limits)
    if start is None:
        start_rounds, total = 0, rounds
    else:
        total = max(rounds, 1) + more
    others = design(space, total - start_rounds, wanted.kind, seed)
    return Opening(space, start, start_rounds, total, others)


def _usual_start_rounds(start: FrozenConfig | None, limits: Sequence[Limit]) -> int:
    """Return how many rounds play the start unasked: five, but at most half of what a design takes."""
    if start is None:
        return 1
    room = [limit.amount // (2 * limit.parts) for limit in limits]
    return max(1, min([_START_ROUNDS, *room]))


def _check_room(name: str, rounds: int, limits: Sequence[Limit]) -> None:
    for what, amount, _ in limits:
        check(rounds <= amount, name, f"at most the {what}, {amount}", rounds, InvalidBudgetError)
