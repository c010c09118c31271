"""By how much a run is ahead of its start, which was trained for few rounds: two ends of a range.

What a change of the configuration gained when it was made says little about the end: a lead after three
rounds may be gone when the start has learnt as much. So the start is compared by time. If it reached in
``n`` rounds what the run reached in ``m``, and goes on to learn as the run did, it would now be where the
run was after ``m / n`` of its rounds, and the run is ahead by what it has learnt since then: much while
compute binds, nothing once it has converged. That is the least. Settings that end at another level, and
a start that is more than ten times as slow, fall behind further. If the start learns no more, the run is
ahead by the whole distance to its last level, which is the most.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from botorch_costly.records import TwinDecision

_MOST = 10.0  # largest factor of the speed that a few rounds can tell
_SHORTEST = math.log(2)  # log-time over which it is measured how fast the run learns
Levels = Sequence[tuple[int, float]]
"""Rounds trained, ascending, and the level after them."""


class Lineages(NamedTuple):
    """Levels by rounds trained, each a list of pairs with ascending rounds."""

    # Of the state that was trained with the start alone, the longest
    start: list[tuple[int, float]]
    # Of the state of the incumbent and those that it comes from
    run: list[tuple[int, float]]
    # Rounds of these states
    path: frozenset[int] = frozenset()
    # Rounds of the run that were trained with the start alone
    shared: int = 0


class Lead(NamedTuple):
    """Log loss by which a run is ahead of its start after as many rounds of compute."""

    # If the start goes on to learn as the run did; NaN if the run has learnt nothing since it was there
    least: float
    # If the start learns no more; as the least where the run is the start itself
    most: float
    # Rounds that the start was trained for
    rounds: int


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
        decisions: All decisions so far.
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
    shared = max((states[i].trained for i in path if states[i].is_start), default=0)
    known = [(i, level) for i, level in levels.items() if i < len(states) and level == level]
    start = {states[i].trained: level for i, level in known if states[i].is_start}
    run = {states[i].trained: level for i, level in known if i in path and level > -math.inf}
    return Lineages(sorted(start.items()), sorted(run.items()), frozenset(path), shared)


def lead_of(found: Lineages, rounds: int, given_back: int) -> Lead:
    """Return by how much a run is ahead of its start after as many rounds of compute.

    Args:
        found: Levels of the start and of the run.
        rounds: Rounds of compute so far.
        given_back: Rounds that are not part of the run.

    Returns:
        Differences of levels; 0 if there are too few to tell.
    """
    if len(found.run) < 2 or not found.start:
        return Lead(0.0, 0.0, 0)
    (last, level), (trained, of_start) = found.run[-1], found.start[-1]
    ahead = _times_faster(found) - math.log(rounds / max(rounds - given_back, 1))
    # What was learnt within a short time is the noise of two levels, rather than learning.
    window = max(abs(ahead), _SHORTEST)
    learnt = level - _level_at(found.run, last * math.exp(-window))
    learnt *= abs(ahead) / window
    least = -max(learnt, 0.0) if ahead <= 0 else learnt if learnt > 0 else math.nan
    if last <= found.shared:
        return Lead(least, least, trained)
    most = level - of_start
    return Lead(most if least > most or most <= 0 else least, most, trained)


def _level_at(run: Levels, rounds: float) -> float:
    """Return the level after so many rounds, between those known: learning is even in log-time.

    Before the first one it is even by rounds.
    """
    after = next((i for i, (trained, _) in enumerate(run) if trained >= rounds), len(run) - 1)
    (early, low), (late, high) = run[max(after - 1, 0)], run[max(after, 1)]
    if after == 0:
        return low - max(high - low, 0.0) * (early - rounds) / (late - early)
    return low + (high - low) * math.log(rounds / early) / math.log(late / early)


def _times_faster(found: Lineages) -> float:
    """Return the log of how many times as fast the run reached the last level of the start, at least 0.

    Before its first level, the run is assumed to have learnt evenly by rounds. That tells little of a
    start that has hardly learnt, so the factor is bounded. What the run has trained with the start itself
    it has trained as fast.
    """
    (rounds, level), run, most = found.start[-1], found.run, math.log(_MOST)
    reached = (i for i, (trained, at) in enumerate(run) if trained > found.shared and at >= level)
    after = next(reached, None)
    if after is None:
        return 0.0
    (early, low), (late, high) = run[max(after - 1, 0)], run[max(after, 1)]
    if after == 0:
        steep = (high - low) / (late - early)
        needed = early - (low - level) / steep if steep > 0 else early
    elif low >= level:
        needed = early
    else:
        needed = early * (late / early) ** ((level - low) / (high - low))
    needed = max(needed, found.shared)
    return most if needed <= 0 else min(max(math.log(rounds / needed), 0.0), most)
