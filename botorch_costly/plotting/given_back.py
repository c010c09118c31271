"""Rounds of twins that are no part of the run: an earlier state was restored after them."""

from collections.abc import Sequence
from itertools import pairwise

from botorch_costly.plotting.bands import HALF
from botorch_costly.records import Decision, TwinDecision

Segment = tuple[float, float]
"""Ends of consecutive rounds on an axis of rounds, half a round beyond them."""


def segments_given_back(decisions: Sequence[Decision]) -> list[Segment]:
    """Return the segments of rounds whose training was undone.

    A round goes on from the one before it, or from the one after which the restored state was kept. What
    leads to the last round, or to a state that is still kept, is not given back: a trial that is under
    way may be either. Decisions do not tell what ``finish`` or ``restore_best`` undid after them.

    Args:
        decisions: Decisions in the order of their rounds, of any tuner. If the first ones are missing,
            what they kept is unknown, and so are the rounds before such a state is restored.

    Example:
        >>> told = {"query": True, "reason": "a trial"}  # two rounds are tried, and given back
        >>> names = [{"keep": 0}, {}, {"restore": 0, "drop": (0,)}]
        >>> rounds = [TwinDecision(n, {}, **told, **named) for n, named in enumerate(names)]
        >>> segments_given_back(rounds)
        [(-0.5, 1.5)]
    """
    before: dict[int, int | None] = {}
    kept: dict[int, int | None] = {}
    last: int | None = None
    first = 0  # round from which on all is known
    for decision in decisions:
        if isinstance(decision, TwinDecision):
            if decision.keep is not None:
                kept[decision.keep] = last
            if decision.restore is not None:
                first = first if decision.restore in kept else decision.round
                last = kept.get(decision.restore)
            for number in decision.drop:
                kept.pop(number, None)
        before[decision.round], last = last, decision.round
    run: set[int] = set()
    for end in (last, *kept.values()):
        while end is not None and end not in run:
            run.add(end)
            end = before[end]
    return _segments([d.round for d in decisions if d.round >= first and d.round not in run])


def _segments(rounds: Sequence[int]) -> list[Segment]:
    if not rounds:
        return []
    breaks = [(a, b) for a, b in pairwise(rounds) if b > a + 1]
    starts, ends = [rounds[0], *(b for _, b in breaks)], [*(a for a, _ in breaks), rounds[-1]]
    return [(start - HALF, end + HALF) for start, end in zip(starts, ends, strict=True)]
