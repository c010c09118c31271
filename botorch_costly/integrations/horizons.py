"""The rounds of a tuner and those of a run: where they do not fit, the user hears of it at the start."""

import logging
import math

from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.integrations.rounds import RoundClock

_logger = logging.getLogger(__name__)


def check_left(played: int, horizon: int | None) -> None:
    """Check that a tuner has rounds left for a fit that continues no other one.

    Args:
        played: Rounds of the tuner so far.
        horizon: Rounds of the tuner in all; None if it has no end.

    Raises:
        HorizonExceededError: If there are none.
    """
    expected = (
        "rounds that are left for this fit: build a tuner and a callback for each network, or resume "
        "the run from its checkpoint to continue it (with changed=['horizon'] for more rounds)"
    )
    left = horizon is None or played < horizon
    check(left, "horizon", expected, f"all {horizon} rounds played", HorizonExceededError)


def warn_of_earlier(played: int) -> None:
    """Warn if a tuner that goes on has rounds of another fit behind it, which may be a mistake."""
    if played:
        _logger.warning(
            "The tuner has played %d of its rounds before this fit. It goes on with what it has learnt, "
            "and the first query has no reward, for the network may be another one. Build another tuner "
            "and callback for a run of its own.",
            played,
        )


def warn_of_tail(steps: int) -> None:
    """Warn if a run has ended within a round, whose steps no query has seen."""
    if steps:
        _logger.warning(
            "The run ended within a round, and its last steps (%d) are not measured: a network that "
            "diverged in them has not gone back. Where the length= divides the run there are none.",
            steps,
        )


def warn_of_rounds(
    rounds: float | None,
    played: int,
    horizon: int | None,
    clock: RoundClock,
    *,
    believes: bool = True,
) -> bool:
    """Warn if a run has no round, or another number of rounds than the tuner has left.

    Args:
        rounds: Rounds that the run has yet to begin; None if that is not known.
        played: Rounds that the tuner has begun.
        horizon: Rounds of the tuner in all; None if it has no end.
        clock: The clock that counts the rounds of the run.
        believes: Whether the tuner says which configuration it believes best.

    Returns:
        Whether the run ends before a round does, and the warning has said so.
    """
    left = math.inf if horizon is None else horizon - played
    if rounds is None or left <= 0:
        return False
    is_short = rounds < 1 and not clock.is_running
    if is_short:
        _logger.warning(
            "The run ends before a round does, and nothing is measured. A round is %s: give a shorter "
            "length=.",
            clock.length,
        )
    elif left < math.floor(rounds):
        _logger.warning(
            "The tuner has %d rounds left, and the run has %d. After them it is trained with %s: give a "
            "horizon that covers the run.",
            left,
            math.floor(rounds),
            "the configuration that the tuner believes best" if believes else "the last one played",
        )
    elif math.ceil(rounds) < left < math.inf:
        _logger.warning(
            "The run ends after %d rounds, and the tuner has %d left: it still explores when the run "
            "ends. Give it the rounds of the run as its horizon.",
            math.ceil(rounds),
            left,
        )
    return is_short
