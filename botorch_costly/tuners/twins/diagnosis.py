"""A diagnosis of a run: whether compute binds, the cost of exploration, and whether it has paid.

What a change of the configuration gained when it was made says little about the end: a lead after three
rounds may be gone when the start has learnt as much. So the start is compared by time. If it reached in
``n`` rounds what the run reached in ``m``, it would now be where the run was after ``m / n`` of its
rounds, and the run is ahead by what it has learnt since then: much while compute binds, nothing once it
has converged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from botorch_costly.records import TwinDecision
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.told import Passed

_FEWEST = 3  # queries with a metric before there is a verdict
_FAILED = 2 / 3  # share of failed or untold queries that suggests a mistake
_HALF = 0.5  # share of the run after which it counts that a hyperparameter was never tried
_LEAST = 0.01  # log loss; less may be chance
_MOST = 10.0  # largest factor of the speed that a few rounds can tell
_WORSENING = 0.5  # log loss by which a metric got worse that should perhaps be maximized
_WORSENED = {
    "loss": "The metric is worse than it was at first. It should be a loss, or an accuracy with "
    "metric='accuracy', and no gain.",
    "accuracy": "The accuracy is lower than it was at first. A loss or an error rate needs "
    "metric='loss'.",
}


@dataclass(frozen=True)
class TwinDiagnosis:
    """A diagnosis of a run of twins; ``str`` puts it into words.

    Args:
        rounds: Rounds of compute so far.
        horizon: Rounds of compute in all.
        queries: Queries decided on so far.
        told: Queries whose metric was told.
        failed: Queries whose metric was not finite.
        slope: Log loss gained per unit of log-time, lately; NaN if it is not known yet.
        given_back: Rounds of compute that are not part of the final run.
        cost: Expected cost of these rounds at the end, in log loss.
        gained: Log loss by which the run is expected to be ahead of the start after as many rounds of
            compute, those given back included; NaN if it cannot be told.
        changes: Number of these changes.
        by_hand: Whether a decision to go back was handed out without a session to carry it out.
        constant: Whether all metrics were equal.
        worsened: Log loss by which the latest level is below the first one; negative where it is better.
        untried: Names of hyperparameters that have had one value throughout.
        metric: Kind of the metric.
        examples: Number of examples of which the losses are shares, as error rates are; None if not.
        passed: The best metric, where the run is clearly worse by now; None if it is not.
    """

    rounds: int
    horizon: int
    queries: int
    told: int
    failed: int
    slope: float
    given_back: int
    cost: float
    gained: float
    changes: int
    by_hand: bool
    constant: bool
    worsened: float
    untried: tuple[str, ...] = ()
    metric: Kind = "loss"
    examples: int | None = None
    passed: Passed | None = None

    @property
    def binds(self) -> bool | None:
        """Whether compute binds, so that more of it would lower the loss; None if not known."""
        return None if math.isnan(self.slope) else self.slope > CONSTANTS.typical_slope / 2

    @property
    def paid(self) -> bool | None:
        """Whether the run is ahead of the start; None if nothing was given back, or it cannot be told."""
        unknown = self.given_back == 0 or math.isnan(self.gained)
        return None if unknown else self.gained > _LEAST

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._numbers(), *self._warnings()])

    def _verdict(self) -> str:
        if self.told < _FEWEST:
            return self._verdict_of_few()
        if self.constant:
            return "Nothing can be compared: all metrics told so far are the same."
        if self.by_hand:
            return (
                "Whether exploring has paid is not known: no Session carried out the decisions to go "
                "back to earlier states. Unless your loop does, the comparisons mean nothing."
            )
        if self.given_back > 0 and self.paid is None:
            return (
                "Whether exploring has paid cannot be told: the run was faster than the start, but has "
                "stopped learning, and the start may have come as far."
            )
        if self.paid is None:
            return "Nothing has been tried so far, and nothing given back."
        if self.paid:
            return (
                "Exploring has paid: the start would be behind, in spite of the rounds given back."
            )
        if self.changes:
            return "Exploring has not paid so far: the start would be as good after as many rounds."
        return "Exploring has not paid so far: it found nothing better for the rounds given back."

    def _verdict_of_few(self) -> str:
        told = "1 query" if self.told == 1 else f"{self.told} queries"
        if self.rounds < self.horizon:
            return f"Too early to say: {told} told, and {_FEWEST} are the fewest."
        if self.queries >= _FEWEST:
            of = f"{told} of {self.queries} told"
            return f"Nothing can be compared: {of}, and {_FEWEST} are the fewest."
        return (
            f"The run was too short to compare settings, and was trained with its start: {told} "
            f"told, and {_FEWEST} are the fewest."
        )

    @property
    def _noun(self) -> str:
        """Name of the quantity that falls as a network learns."""
        return "error" if self.metric == "accuracy" else "loss"

    def _numbers(self) -> list[str]:
        if self.told < _FEWEST:
            return []
        return [
            f"{self.given_back} of {self.rounds} rounds were given back, without which the "
            f"{self._noun} at the end would be {1 - math.exp(-self.cost):.1%} lower; the configuration "
            f"changed {_times(self.changes)}{self._lead()}.",
            *self._untried(),
            *self._compute(),
        ]

    def _lead(self) -> str:
        if math.isnan(self.gained) or self.paid is None:
            return ""
        lower, which = 1 - math.exp(-abs(self.gained)), "lower" if self.gained >= 0 else "higher"
        share = f", and the {self._noun} should be {lower:.1%} {which} than with the start"
        few = ", judged by its few rounds (more if it hardly learnt in them)"
        return share + few if self.gained > 0 else share

    def _untried(self) -> list[str]:
        if not self.untried or not self.given_back or self.rounds < _HALF * self.horizon:
            return []
        names = ", ".join(self.untried)
        return [
            f"Never tried: {names}. While the {self._noun} still falls, numbers other than learning "
            "rates are left alone, unless they lie in the upper part of their range."
        ]

    def _compute(self) -> list[str]:
        if self.binds is None:
            return []
        share = 1 - 0.5 ** max(self.slope, -1.0)  # capped because the loss may grow
        if self.binds:
            return [
                f"Compute binds: twice the rounds would lower the {self._noun} by about {share:.0%}."
            ]
        share = max(share, 0.0)
        return [
            f"Compute hardly binds (twice the rounds: {share:.1%} of the {self._noun}); exploring is "
            "cheap."
        ]

    def _warnings(self) -> list[str]:
        messages, untold = [], self.queries - self.told
        share, fewest = _FAILED, _FEWEST
        if untold > share * self.queries and self.queries >= fewest:
            messages.append(
                f"{untold} of {self.queries} queries were never told: call tell after them."
            )
        if self.failed > share * self.told and self.told >= fewest:
            messages.append(f"Most queries fail ({self.failed} of {self.told}): training diverges.")
        if self.passed is not None:
            messages.append(self._said_of(self.passed))
        if self.worsened > _WORSENING:
            messages.append(_WORSENED[self.metric])
        if self.examples is not None:
            messages.append(
                f"The metrics are shares of {self.examples} examples, and count as error rates, of which "
                "smaller ones are better: accuracies need metric='accuracy'."
            )
        return messages

    def _said_of(self, passed: Passed) -> str:
        best = "lowest" if self.metric == "loss" else "highest"
        return (
            f"The {self.metric} was {best} in round {passed.round} ({passed.best:.4g}) and is "
            f"{passed.now:.4g} now: the network overfits, or the rate is too large. "
            "`Session(.., keep_best=True)` keeps the best state."
        )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


class Lineages(NamedTuple):
    """Levels by rounds trained, each a list of pairs with ascending rounds."""

    # Of the state that was trained with the start alone, the longest
    start: list[tuple[int, float]]
    # Of the state of the incumbent and those that it comes from
    run: list[tuple[int, float]]
    # Rounds of these states
    path: frozenset[int] = frozenset()


class _State(NamedTuple):
    """The state of training after a round."""

    parent: int | None  # round after which it was the state before
    trained: int
    is_start: bool  # whether it was trained with the start alone


def lineages(
    decisions: Sequence[TwinDecision], levels: Mapping[int, float], incumbent: int | None
) -> Lineages:
    """Return the levels of the start and of the run; the decisions tell which state came from which.

    Args:
        decisions: All decisions so far, at least one.
        levels: Levels by round; -inf after a failed query, NaN where nothing can be compared.
        incumbent: Number of the kept state of the incumbent; None for the present state.
    """
    states: list[_State] = []
    kept: dict[int, int | None] = {}
    now: int | None = None
    for decision in decisions:
        if decision.keep is not None:
            kept[decision.keep] = now
        if decision.restore is not None:
            now = kept.get(decision.restore, now)
        before = _State(None, 0, True) if now is None else states[now]
        is_start = before.is_start and decision.peak == decisions[0].peak
        states.append(_State(now, before.trained + 1, is_start))
        now = len(states) - 1
    path, last = set[int](), now if incumbent is None else kept.get(incumbent, now)
    while last is not None:
        path.add(last)
        last = states[last].parent
    known = [(i, level) for i, level in levels.items() if i < len(states) and level == level]
    start = {states[i].trained: level for i, level in known if states[i].is_start}
    run = {states[i].trained: level for i, level in known if i in path and level > -math.inf}
    return Lineages(sorted(start.items()), sorted(run.items()), frozenset(path))


def gained_by(found: Lineages, rounds: int, given_back: int) -> float:
    """Return by how much log loss the run is ahead of the start after as many rounds of compute.

    Args:
        found: Levels of the start and of the run.
        rounds: Rounds of compute so far.
        given_back: Rounds that are not part of the run.

    Returns:
        The difference of levels; 0 if there are too few to tell. NaN if the run was faster but learns
        nothing any more, so that the start may have come as far.
    """
    if len(found.run) < 2 or not found.start:
        return 0.0
    last, ahead = found.run[-1][0], _times_faster(found)
    since = [point for point in found.run if math.log(last / point[0]) <= ahead]
    points = since if len(since) >= _FEWEST else found.run[-_FEWEST:]
    times = torch.tensor([math.log(trained) for trained, _ in points]).double()
    levels = torch.tensor([level for _, level in points]).double()
    centred = times - times.mean()
    slope = float(centred @ levels / centred.square().sum())
    ahead -= math.log(rounds / max(rounds - given_back, 1))
    return math.nan if slope <= 0 < ahead else slope * ahead


def _times_faster(found: Lineages) -> float:
    """Return the log of how many times as fast the run reached the last level of the start, at least 0.

    Before its first level, the run is assumed to have learnt evenly by rounds. That tells little of a
    start that has hardly learnt, so the factor is bounded.
    """
    (rounds, level), run = found.start[-1], found.run
    most = math.log(_MOST)
    after = next((i for i, (_, reached) in enumerate(run) if reached >= level), None)
    if after is None:
        return 0.0
    (early, low), (late, high) = run[max(after - 1, 0)], run[max(after, 1)]
    if after == 0:
        steep = (high - low) / (late - early)
        needed = early - (low - level) / steep if steep > 0 else early
    else:
        needed = early * (late / early) ** ((level - low) / (high - low))
    return most if needed <= 0 else min(max(math.log(rounds / needed), 0.0), most)
