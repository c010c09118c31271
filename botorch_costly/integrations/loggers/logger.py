"""What every logger is: a place that entries are sent to."""

from collections.abc import Collection

from botorch_costly.integrations.loggers.entry import LogEntry


class Logger:
    """Receives an entry a round; a subclass overrides ``log``, and the rest if it wants to.

    What a logger raises does not stop the run.

    Example:
        >>> class Printing(Logger):
        ...     def log(self, entry):
        ...         print(entry.round, entry.decision.reason)
    """

    def begin(self, round: int) -> None:
        """Prepare for the entries from a round on, before the first of them.

        It is not 0 where a run is resumed; what was logged of that round and later ones is outdated.
        """

    def reopen(self, rounds: Collection[int]) -> None:
        """Take back what was told of earlier rounds, after ``begin``.

        Where a run is resumed these have no outcome yet: one that was logged came after the state was
        saved, and may come again. A logger that cannot take it back has two entries then.
        """

    def log(self, entry: LogEntry) -> None:
        """Take up an entry.

        A reward that is told late, when later rounds have been logged, makes another entry of its
        round.
        """

    def close(self) -> None:
        """Finish: nothing more is logged."""
