"""Loops that ask or tell otherwise than is meant earn one warning each."""

import logging

_LEAST = 3  # unanswered readings in a row: one may be left out on purpose
_TWICE = 2  # steps with two values: one may have been read again
_BEYOND = 1.1  # of the last step that was named, and a step, up to which the count may be off
_APART = 2.0  # ratio of two last steps that are named, from which on they are no estimates of one
_OTHER_STEPS = (
    "%s, and Validation was told steps=%d: to that step the share of the clock is planned and "
    "false_stop looks ahead. Name the last step as due counts it, in batches or in epochs."
)
_logger = logging.getLogger(__name__)


class Misuse:
    """Warns once of each: unanswered readings, odd steps, two values a step, an end that never comes."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self.restart()

    def restart(self) -> None:
        """Begin with a run, or with a state from which it goes on."""
        self._first = 0  # step that was asked first
        self._unanswered = {False: 0, True: 0}  # readings in a row, and those of averages
        self._stops = 0  # readings of whether to stop
        self._tells = self._repeats = 0  # readings told since a step was asked; steps with several

    def asked(self, step: int, latest: int, end: int | None, expected: int | None) -> None:
        """Note a step, and warn if it is the first one again, or the last one is not as it was named.

        Args:
            step: The step.
            latest: The step before it; -1 if it is the first.
            end: Last step by the option ``steps``; None without one.
            expected: Last step as it is estimated, None if it is unknown.
        """
        if end is not None and step > _BEYOND * end + 1:
            self._warn(_OTHER_STEPS, f"Step {step} is beyond the end", end)
        elif end and expected and not 1 / _APART < expected / end < _APART:
            self._warn(_OTHER_STEPS, f"The run is to end with step {expected}", end)
        self._tells = 0
        if latest < 0:
            self._first = step
        elif step < latest and step <= self._first:
            self._warn(
                "step=%d follows step %d, as if the run began again: best.step may be of either pass. "
                "Let steps rise over all epochs, as epoch * batches + batch does, and give another run "
                "a Validation of its own.",
                step,
                latest,
            )

    def asked_whether_to_stop(self, *, is_named: bool) -> None:
        """Warn if a run is to stop early that cannot.

        Args:
            is_named: Whether a rate of false stops is named.
        """
        self._stops += not is_named
        if self._stops == _LEAST:
            self._warn(
                "should_stop stays False without false_stop=: Validation(.., steps=.., false_stop=0.02) "
                "stops early, steps being the last one of the run."
            )

    def unanswered(self, step: int, *, average: bool) -> None:
        """Note that a reading was due of which no value was told.

        Args:
            step: Step of the reading.
            average: Whether it was one of an average of weights.
        """
        self._unanswered[average] += 1
        if self._unanswered[average] == _LEAST:
            self._warn(
                "%s was True %d times in a row, at last at step %d, and no value was told. Call "
                "tell(value) after each validation: without it there is no reading, and no best one.",
                "due_average" if average else "due",
                _LEAST,
                step,
            )

    def answered(self, *, average: bool) -> None:
        """Note that a value was told, or that a reading is still to come."""
        self._unanswered[average] = 0

    def told(self, step: int) -> None:
        """Note a whole reading of the network, and warn if steps have two of them."""
        self._tells += 1
        self._repeats += self._tells == 2
        if self._repeats == _TWICE:
            self._warn(
                "tell(value) was called twice at step %d, and at one before: each value is taken for a "
                "reading of the metric, and the best of them for the best checkpoint. Tell one metric "
                "alone, and that of an average of weights after due_average().",
                step,
            )

    def _warn(self, message: str, *values: object) -> None:
        """Warn, once for each message."""
        if message not in self._said:
            self._said.add(message)
            _logger.warning(message, *values)
