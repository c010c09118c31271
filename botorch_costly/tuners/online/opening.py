"""The first intervals of a run: the user's start, then a design, within the limits of the run."""

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

_START_ROUNDS = 5  # default number of intervals that play the start
_DESIGN = "initial design"


def is_of_design(decision: Decision) -> bool:
    """Return whether the initial design has decided."""
    return decision.reason.startswith(_DESIGN)


class Limit(NamedTuple):
    """A limit of a run; a design of default size takes one part of it."""

    name: str
    amount: int
    parts: int = 1


def limits_of(
    horizon: int | None, intervals: int | None, max_queries: int | None, budget: int | None
) -> list[Limit]:
    """Return the known limits within which the opening of a run has to stay.

    Args:
        horizon: Rounds of the run.
        intervals: Intervals of the run.
        max_queries: Largest number of queries.
        budget: Budget of the query rule.
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
    """Intervals that are queried regardless of the rule: first the start, then a design.

    Args:
        space: Space of the configurations.
        start: First configuration, if any.
        start_rounds: Number of intervals that play it.
        rounds: Number of all intervals.
        others: Encoded configurations after the start; None if each is drawn at random in its interval.
    """

    space: SearchSpace
    start: FrozenConfig | None
    start_rounds: int
    rounds: int
    others: Tensor | None = None

    def decide(
        self, number: int, generator: torch.Generator, box: Tensor | None = None
    ) -> Decision:
        """Return the decision of an interval of the opening.

        Args:
            number: Number of the interval, from 0.
            generator: Source of random configurations.
            box: Encoded bounds that the design is scaled to, shape ``(2, dim)``; the cube if omitted.
        """
        config: Mapping[str, Plain]
        if self.start is not None and number < self.start_rounds:
            config = self.start
        else:
            if self.others is None:
                x = self.space.sample(1, generator)[0]
            else:
                x = self.others[number - self.start_rounds]
            config = self.space.decode(x if box is None else box[0] + (box[1] - box[0]) * x)
        reason = f"{_DESIGN} (interval {number + 1} of {self.rounds})"
        return Decision(number, config, query=True, reason=reason)


def opening_of(
    space: SearchSpace,
    limits: Sequence[Limit],
    wanted: Design,
    start: FrozenConfig | None,
    seed: int,
) -> Opening:
    """Return the opening that a run has room for.

    Args:
        space: Space of the configurations.
        limits: Limits of the run.
        wanted: Kind and rounds of the design, and rounds of the start; omitted numbers are chosen to stay
            within a part of each limit.
        start: First configuration, if any; it is played for at least one round.
        seed: Seed of the design.

    Raises:
        InvalidArgumentError: If ``start_rounds`` exceeds 1 without a start.
        InvalidBudgetError: If the opening is longer than a limit.
    """
    start_rounds = wanted.start_rounds
    if start_rounds is None:
        start_rounds = _default_start_rounds(start, limits)
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


def _default_start_rounds(start: FrozenConfig | None, limits: Sequence[Limit]) -> int:
    """Return the default number of start rounds: five, but at most half of a default design."""
    if start is None:
        return 1
    room = [limit.amount // (2 * limit.parts) for limit in limits]
    return max(1, min([_START_ROUNDS, *room]))


def _check_room(name: str, rounds: int, limits: Sequence[Limit]) -> None:
    for limit, amount, _ in limits:
        check(rounds <= amount, name, f"at most the {limit}, {amount}", rounds, InvalidBudgetError)
