"""The first rounds of a run, before there is a belief to decide by."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from botorch_costly.errors import InvalidBudgetError, check, check_count
from botorch_costly.records import Decision, FrozenConfig, Plain
from botorch_costly.space import SearchSpace

_SHARES = {"horizon": 10, "max_looks": 1, "looks of the rule": 5}  # of each, at most one part


@dataclass(frozen=True)
class InitialDesign:
    """Rounds that are looked at whatever that costs: first the start, then random configurations.

    Args:
        space: Of the configurations.
        start: The first of them; random if None.
        start_rounds: How many rounds play it.
        rounds: How many rounds there are in all.
    """

    space: SearchSpace
    start: FrozenConfig | None
    start_rounds: int
    rounds: int

    def decide(self, now: int, generator: torch.Generator) -> Decision:
        """Return the decision of a round of the design, from 0."""
        config: Mapping[str, Plain]
        if self.start is not None and now < self.start_rounds:
            config = self.start
        else:
            config = self.space.decode(self.space.sample(1, generator)[0])
        return Decision(now, config, True, f"initial design (round {now + 1} of {self.rounds})")


def design_of(
    space: SearchSpace,
    limits: Mapping[str, int | None],
    wanted: int | None,
    start: Mapping[str, Plain] | None,
    start_rounds: int,
) -> InitialDesign:
    """Return the design that a run has room for.

    Args:
        space: Of the configurations.
        limits: Rounds and looks that the run has, by name, None if there is no limit.
        wanted: Rounds of the design if the start is played once; twice the dimension within a part of
            each limit if None, and none for a space of choices.
        start: The first configuration, if any; it is played however few rounds are wanted.
        start_rounds: How many rounds play it.

    Raises:
        InvalidArgumentError: If a number is no count, or several rounds are to play no start.
        InvalidBudgetError: If the design is longer than a limit.
        InvalidConfigError: If ``start`` does not belong to the space.
    """
    check_count("start_rounds", start_rounds, minimum=1)
    check(start_rounds == 1 or start is not None, "start_rounds", "1 without a start", start_rounds)
    frozen = None
    if start is not None:
        space.check(start)
        frozen = FrozenConfig(start)
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if wanted is None:
        usual = 0 if space.is_arms else 2 * space.dim
        rounds = min([usual, *(limit // _SHARES[name] for name, limit in known.items())])
    else:
        rounds = check_count("initial_rounds", wanted)
        _check_room("initial_rounds", rounds, known)
    if frozen is None:
        return InitialDesign(space, None, 0, rounds)
    rounds = max(rounds, 1) + start_rounds - 1
    if start_rounds > 1:
        _check_room("start_rounds", rounds, known)
    return InitialDesign(space, frozen, start_rounds, rounds)


def _check_room(name: str, rounds: int, limits: Mapping[str, int]) -> None:
    for what, limit in limits.items():
        check(rounds <= limit, name, f"at most the {what}, {limit}", rounds, InvalidBudgetError)
