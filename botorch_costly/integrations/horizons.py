"""Comparison of the rounds of a tuner and of a run, with warnings at the start if they do not fit."""

import logging
import math

from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.integrations.rounds import RoundClock

_logger = logging.getLogger(__name__)


def check_left(played: int, horizon: int | None, *, is_over: bool = False) -> None:
    """Check that a tuner has rounds and time left for a new fit.

    Args:
        played: Rounds of the tuner so far.
        horizon: Horizon of the tuner; None if unknown.
        is_over: Whether its seconds have passed.

    Raises:
        HorizonExceededError: If no round or no time is left.
    """
    expected = (
        "rounds that are left for this fit: build a tuner and a callback for each network, or resume "
        "the run from its checkpoint to continue it (with changed=['horizon'] for more rounds)"
    )
    is_open = horizon is None or played < horizon
    check(is_open, "horizon", expected, f"all {horizon} rounds played", HorizonExceededError)
    expected = "time that is left for this fit: build a tuner and a callback for each network"
    check(not is_over, "seconds", expected, "none", HorizonExceededError)


def warn_of_earlier(played: int) -> None:
    """Warn if a tuner has played rounds in an earlier fit, which may be a mistake."""
    if played:
        _logger.warning(
            "The tuner has played %d of its rounds before this fit. It keeps its observations, and the "
            "first query has no reward, because the network may be another one. Build a new tuner and "
            "callback for an independent run.",
            played,
        )


def warn_of_tail(steps: int) -> None:
    """Warn if a run has ended within a round, whose steps no query has measured."""
    if steps:
        _logger.warning(
            "The run ended within a round, and its last steps (%d) are not measured: a network that "
            "diverged in them is not restored. Choose a length= that divides the run.",
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
        rounds: Number of rounds that are to begin in the run; None if unknown.
        played: Rounds that the tuner has begun.
        horizon: Horizon of the tuner; None if unknown.
        clock: The clock that counts the rounds of the run.
        believes: Whether the tuner predicts, so that its incumbent is played after the horizon.

    Returns:
        Whether the run ends before its first round, with a warning.
    """
    left = math.inf if horizon is None else horizon - played
    if rounds is None or left <= 0:
        return False
    is_short = rounds < 1 and not clock.is_running
    if is_short:
        _logger.warning(
            "The run ends before its first round, and nothing is measured. A round is %s: choose a "
            "shorter length=.",
            clock.length,
        )
    elif left < math.floor(rounds):
        _logger.warning(
            "The tuner has %d rounds left, and the run has %d. After them the run is trained with %s: "
            "choose a horizon that covers the run.",
            left,
            math.floor(rounds),
            "the tuner's incumbent" if believes else "the last configuration",
        )
    elif math.ceil(rounds) < left < math.inf:
        _logger.warning(
            "The run ends after %d rounds, and the tuner has %d left: it still explores when the run "
            "ends. Set its horizon to the rounds of the run.",
            math.ceil(rounds),
            left,
        )
    return is_short
