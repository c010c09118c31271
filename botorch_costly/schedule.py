"""A tuned schedule of configurations, written to JSON and replayed without the tuner.

The result of online tuning is not one configuration but the sequence that was played. ``Schedule``
stores that sequence, run-length encoded, so that training can be repeated without paying for queries.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from botorch_costly.calls import advised
from botorch_costly.errors import CostlyError, StateMismatchError, check, check_count
from botorch_costly.files import replacing
from botorch_costly.plain import Plain
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace

_FORMAT = "botorch_costly.Schedule"
_VERSION = 1


@advised
class Schedule:
    """Configurations by round, each held until the next.

    The first configuration also applies before its round, and the last one in all later rounds.

    Args:
        entries: ``(round, config)`` pairs, rounds strictly increasing.
        space: The space of the configurations, to check them and to store it with them.
        last_round: Last round of ``replay``; by default that of the last entry.

    Attributes:
        entries: The ``(round, config)`` pairs at which the configuration changes.
        space: The space, or None.
        rounds: The rounds of ``replay``.

    Raises:
        InvalidArgumentError: If there are no entries or rounds do not increase.
        InvalidConfigError: If a configuration does not belong to the space.

    Example:
        >>> schedule = Schedule([(0, {"lr": 0.1}), (2, {"lr": 0.1}), (3, {"lr": 0.01})])
        >>> [config["lr"] for config in schedule.replay()]
        [0.1, 0.1, 0.1, 0.01]
        >>> len(schedule), schedule[100]["lr"]
        (4, 0.01)
    """

    def __init__(
        self,
        entries: Iterable[tuple[int, Mapping[str, Plain]]],
        space: SearchSpace | None = None,
        last_round: int | None = None,
    ) -> None:
        expected = (
            "(round, config) pairs (Schedule.from_decisions(tuner.decisions) has those of a tuner)"
        )
        check(isinstance(entries, Iterable), "entries", expected, entries)
        changes: list[tuple[int, FrozenConfig]] = []
        first = latest = -1
        for entry in entries:
            is_pair = isinstance(entry, list | tuple) and len(entry) == 2
            check(is_pair, "entries", "(round, config) pairs", entry)
            round, config = check_count("round", entry[0]), entry[1]
            check(round > latest, "round", f"rounds that increase, after {latest}", round)
            frozen = FrozenConfig(config if space is None else space.canonical(config))
            if not changes or frozen != changes[-1][1]:
                changes.append((round, frozen))
            first, latest = changes[0][0], round
        check(len(changes) > 0, "entries", "at least one (round, config) pair", changes)
        if last_round is not None:
            latest = check_count("last_round", last_round, minimum=latest)
        self.entries, self.space = tuple(changes), space
        self.rounds = range(first, latest + 1)

    @classmethod
    def from_decisions(
        cls, decisions: Iterable[Decision], space: SearchSpace | None = None
    ) -> "Schedule":
        """Return the schedule of a tuner's decisions.

        Args:
            decisions: Decisions in the order of their rounds.
            space: The space of the configurations, to check them and to store it with them.

        Raises:
            InvalidArgumentError: If there is no decision, or something else among them.
        """
        expected = "a list of decisions, such as tuner.decisions"
        check(isinstance(decisions, Iterable), "decisions", expected, decisions)
        entries = []
        for decision in decisions:
            check(isinstance(decision, Decision), "decisions", expected, decision)
            entries.append((decision.round, decision.config))
        return cls(entries, space)

    def __getitem__(self, round: int) -> FrozenConfig:
        """Return the configuration of a round, at least 0."""
        round = check_count("round", round)
        index = bisect_right(self.entries, round, key=lambda entry: entry[0]) - 1
        return self.entries[max(index, 0)][1]

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[FrozenConfig]:
        return self.replay()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        ours = (self.entries, self.rounds, self.space)
        return ours == (other.entries, other.rounds, other.space)

    def __hash__(self) -> int:
        return hash((self.entries, self.rounds))

    def __repr__(self) -> str:
        changes = len(self.entries) - 1
        return f"Schedule(rounds {self.rounds[0]} to {self.rounds[-1]}, {changes} changes)"

    def replay(self) -> Iterator[FrozenConfig]:
        """Return an iterator over one configuration for every round of ``rounds``, in order."""
        return (self[round] for round in self.rounds)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text of the schedule, and write it to a file if there is a path.

        Args:
            path: A file to write, or to replace atomically.

        Raises:
            OSError: If the file cannot be written; an old file is unchanged.
        """
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "entries": [[round, dict(config)] for round, config in self.entries],
            "last_round": self.rounds[-1],
            "space": None if self.space is None else self.space.to_dict(),
        }
        text = json.dumps(document, indent=2, allow_nan=False)
        if path is not None:
            with replacing(path) as file:
                file.write(f"{text}\n".encode())
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> "Schedule":
        """Read a schedule from JSON text, or from a file with that text.

        Args:
            source: The text, or the path of the file. A string is a path if it names a file, ends in
                ``.json``, or contains a folder separator but no brace.

        Raises:
            StateMismatchError: If the text is no JSON, or JSON of another object.
            FileNotFoundError: If a path names no file.
            OSError: If a file cannot be read.
        """
        expected = "the JSON text of Schedule.to_json, or the path of a file with it"
        try:
            text = Path(source).read_text("utf-8") if _is_path(source) else str(source)
            document = json.loads(text)
            fits = (document["format"], document["version"]) == (_FORMAT, _VERSION)
            check(fits, "schedule", f"{_FORMAT} version {_VERSION}", source, StateMismatchError)
            space = document["space"]
            space = None if space is None else SearchSpace.from_dict(space)
            entries = [(round, FrozenConfig.from_json(c)) for round, c in document["entries"]]
            return cls(entries, space, document["last_round"])
        except StateMismatchError:
            raise
        except (CostlyError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateMismatchError("schedule", expected, source) from error


def _is_path(source: str | os.PathLike[str]) -> bool:
    if isinstance(source, os.PathLike) or os.path.isfile(source):
        return True
    folders = "/" in source or os.sep in source
    return source.endswith(".json") or (folders and not set("{}") & set(source))
