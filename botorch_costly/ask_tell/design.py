"""The first rounds of a run, before there is a belief to decide by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidBudgetError, check, check_count
from botorch_costly.numerics.screening import two_level
from botorch_costly.parameters import Choice
from botorch_costly.records import Decision, FrozenConfig, Plain
from botorch_costly.space import SearchSpace

DesignName = Literal["screening", "random"]
_START_ROUNDS = 5
_LOW, _HIGH = 0.1, 0.9  # in the unit cube: what lies on its faces may be ruinous


class Limit(NamedTuple):
    """Rounds or queries that a run has, and the part of them that a design takes unasked."""

    name: str
    amount: int
    parts: int = 1


def limits_of(
    horizon: int | None, intervals: int | None, max_queries: int | None, budget: int | None
) -> list[Limit]:
    """Return what the design of a run must leave room in, of what is known.

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
class InitialDesign:
    """Intervals that are queried at whatever the rule says: first the start, then a design.

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

    def decide(self, now: int, generator: torch.Generator) -> Decision:
        """Return the decision of an interval of the design, from 0."""
        config: Mapping[str, Plain]
        if self.start is not None and now < self.start_rounds:
            config = self.start
        elif self.others is not None:
            config = self.space.decode(self.others[now - self.start_rounds])
        else:
            config = self.space.decode(self.space.sample(1, generator)[0])
        reason = f"initial design (round {now + 1} of {self.rounds})"
        return Decision(now, config, query=True, reason=reason)

    def screened(self, seed: int) -> "InitialDesign":
        """Return the design whose random configurations are replaced by a two-level one."""
        generator = torch.Generator().manual_seed(seed)
        others = screening(self.space, self.rounds - self.start_rounds, generator)
        return replace(self, others=others)


def screening(space: SearchSpace, runs: int, generator: torch.Generator) -> Tensor:
    """Return configurations near the corners: of each number what is low, or high; choices random.

    Returns:
        Their encodings, float64 of shape ``(runs, dim)``.
    """
    points = space.sample(runs, generator)
    columns = [space.columns[n].start for n, p in space.parameters if not isinstance(p, Choice)]
    points[:, columns] = _LOW + (_HIGH - _LOW) * two_level(runs, len(columns), generator)
    return space.round(points)


def _usual_start_rounds(start: Mapping[str, Plain] | None, limits: Sequence[Limit]) -> int:
    """Return how many rounds play the start unasked: five, but at most half of what a design takes."""
    if start is None:
        return 1
    room = [limit.amount // (2 * limit.parts) for limit in limits]
    return max(1, min([_START_ROUNDS, *room]))


def design_of(
    space: SearchSpace,
    limits: Sequence[Limit],
    wanted: int | None,
    start: Mapping[str, Plain] | None,
    start_rounds: int | None,
) -> InitialDesign:
    """Return the design that a run has room for.

    Args:
        space: Of the configurations.
        limits: Of the run.
        wanted: Rounds of the design if the start is played once; if None, twice the dimension within a
            part of each limit, and none for a space of choices.
        start: The first configuration, if any; it is played however few rounds are wanted.
        start_rounds: How many rounds play it; if None, five within half of what a design takes.

    Raises:
        InvalidArgumentError: If a number is no count, or several rounds are to play no start.
        InvalidBudgetError: If the design is longer than a limit.
        InvalidConfigError: If ``start`` does not belong to the space.
    """
    if start_rounds is None:
        start_rounds = _usual_start_rounds(start, limits)
    check_count("start_rounds", start_rounds, minimum=1)
    check(start_rounds == 1 or start is not None, "start_rounds", "1 without a start", start_rounds)
    frozen = None
    if start is not None:
        frozen = FrozenConfig(space.canonical(start))
    more = start_rounds - 1
    if more:
        _check_room("start_rounds", start_rounds, limits)
    if wanted is None:
        usual = 0 if space.is_arms else 2 * space.dim
        room = [max(limit.amount - more, 0) // limit.parts for limit in limits]
        rounds = min([usual, *room])
    else:
        rounds = check_count("initial_rounds", wanted)
        _check_room("initial_rounds", rounds, limits)
        _check_room("initial_rounds and start_rounds together", rounds + more, limits)
    if frozen is None:
        return InitialDesign(space, None, 0, rounds)
    return InitialDesign(space, frozen, start_rounds, max(rounds, 1) + more)


def _check_room(name: str, rounds: int, limits: Sequence[Limit]) -> None:
    for what, amount, _ in limits:
        check(rounds <= amount, name, f"at most the {what}, {amount}", rounds, InvalidBudgetError)
