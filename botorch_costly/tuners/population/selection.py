"""Truncation selection: the worst members take over the weights of the best."""

import math
from collections.abc import Mapping

_QUARTER = 0.25  # as in population based training


def ranked(scores: Mapping[int, float]) -> list[int]:
    """Return the members with a finite score, best first; ties are ordered by number."""
    alive = [member for member, score in scores.items() if math.isfinite(score)]
    return sorted(alive, key=lambda member: (-scores[member], member))


def replacements(scores: Mapping[int, float]) -> dict[int, int]:
    """Return the members that take over weights, and their origins.

    The worst quarter goes on from the best quarter, the worst from the best; members that failed go on
    from the best quarter in turn.

    Args:
        scores: Score of each member with a metric, larger is better; NaN if it failed.

    Example:
        >>> replacements({0: 1.0, 1: 3.0, 2: 2.0, 3: math.nan})
        {3: 1, 0: 1}
    """
    alive = ranked(scores)
    if not alive:
        return {}
    few = min(math.ceil(_QUARTER * len(alive)), len(alive) // 2)
    best = alive[: max(few, 1)]
    failed = [member for member in scores if member not in alive]
    moved = {member: best[i % len(best)] for i, member in enumerate(failed)}
    return moved | {alive[-1 - i]: best[i] for i in range(few)}
