"""The first session that is left in a trial earns a warning when it ends, or its program does.

Not before: after a loop that was left by ``break`` its user may finish it, go on, or save it.
"""

import logging
import sys
import weakref
from typing import Any

from botorch_costly.errors import RestoreError, check
from botorch_costly.tuners.twins.tuner import TwinTuner

_said: list[bool] = []  # in this process once: a search may give up many sessions in a trial
_logger = logging.getLogger(__name__)


class Latest:
    """Where the tuner of a session was after the session's latest ``ask``.

    Args:
        session: The session, which is not kept from ending.
        tuner: Its tuner.

    Attributes:
        position: Position of the tuner; None before the first ``ask``, and after the session was loaded.
        saved: Position that was saved, from which the run may go on elsewhere.
        is_ended_elsewhere: Whether a trainer ends the run, which has no loop to leave.
    """

    def __init__(self, session: Any, tuner: TwinTuner) -> None:
        self.position: tuple[int, int] | None = None
        self.saved: tuple[int, int] | None = None
        self.is_ended_elsewhere = False
        self._tuner = tuner
        weakref.finalize(session, self._warn_if_left)

    def check_alone(self) -> None:
        """Raise a RestoreError if the tuner was asked elsewhere since the latest ``ask``."""
        now, by_all = self._tuner.position
        loads, asked = self.position or self._tuner.position
        expected = "a tuner that this session alone asks, for it knows where the parts are"
        elsewhere = f"{by_all - asked} decisions asked for elsewhere"
        check(loads != now or asked == by_all, "session", expected, elsewhere, RestoreError)

    def _warn_if_left(self) -> None:
        """Warn of a trial that is not over, unless an error has ended the program."""
        tuner = self._tuner
        is_latest = self.position == tuner.position and self.position != self.saved
        is_silent = bool(_said) or self.is_ended_elsewhere or hasattr(sys, "last_value")
        if is_latest and tuner.state_of_incumbent is not None and not is_silent:
            _said.append(True)
            _logger.warning(
                "A session was left after round %d, in the middle of a trial: its network is not in the "
                "state of the incumbent, the result of the run. After a loop that ends early call "
                "session.finish(), unless the network is given up.",
                len(tuner.decisions) - 1,
            )

    def __getstate__(self) -> dict[str, Any]:
        self.saved = self._tuner.position  # a copy, such as a pickled one, may go on elsewhere
        return vars(self)


def end_elsewhere(session: Any) -> None:
    """Let a session end without a warning, for a trainer that ends its run."""
    session._latest.is_ended_elsewhere = True
