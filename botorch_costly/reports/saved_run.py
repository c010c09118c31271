"""A run as its saved state tells it: options, decisions, observations, counts."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.state import DESCRIPTION, STATE_VERSION, read, taking_over
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import StateMismatchError, check
from botorch_costly.population_records import PopulationDecision, PopulationObservation
from botorch_costly.records import Decision, Observation, TwinDecision
from botorch_costly.schedule import Schedule
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import SubsetDecision, SubsetObservation
from botorch_costly.transfer_records import TransferDecision

_DECISIONS = (
    Decision,
    TwinDecision,
    CurveDecision,
    SubsetDecision,
    TransferDecision,
    PopulationDecision,
)
_OBSERVATIONS = (Observation, CurveObservation, SubsetObservation, PopulationObservation)
_RECORDS = {kind.__name__: kind for kind in (*_DECISIONS, *_OBSERVATIONS)}


@dataclass(frozen=True)
class SavedRun:
    """What the saved state of a tuner tells of its run.

    Args:
        name: The name that the tuner was saved under.
        header: What the state says of the tuner, as text: its options, its kind, what it is told.
        space: The search space.
        decisions: By round, as far as they are kept.
        observations: What was told of them, by round.
        rounds: Decisions of the whole run, those that are not kept among them.
        queries: Queries paid for.
        failed_queries: Queries whose reward was not finite.

    Example:
        >>> from botorch_costly.parameters import Real
        >>> from botorch_costly.tuners import FixedTuner
        >>> tuner = FixedTuner(SearchSpace({"lr": Real(0.0, 1.0)}), {"lr": 0.1}, horizon=3)
        >>> decision = tuner.ask()
        >>> run = SavedRun.from_state(tuner.state_dict())
        >>> run.kind, run.rounds, run.decisions[0].config["lr"]
        ('FixedTuner', 1, 0.1)
    """

    name: str
    header: Mapping[str, str]
    space: SearchSpace
    decisions: tuple[Decision, ...]
    observations: tuple[Observation, ...]
    rounds: int
    queries: int
    failed_queries: int

    @classmethod
    def from_state(cls, state: Mapping[str, Any], name: str = "tuner") -> "SavedRun":
        """Return the run of a tuner's ``state_dict``.

        Args:
            state: Of any tuner or optimizer of the package, or of a class derived from one.
            name: The name of the run.

        Raises:
            StateMismatchError: If it is no such state, one of another version, or damaged.
        """
        check(
            _is_state(state), name, "the state of a tuner", type(state).__name__, StateMismatchError
        )
        header = {str(option): str(value) for option, value in state["header"].items()}
        version = header.get("version")
        expected = f"a state of version {STATE_VERSION}"
        check(version == str(STATE_VERSION), name, expected, version, StateMismatchError)
        described = set(DESCRIPTION) <= set(header)
        expected = (
            "a state that describes its tuner (load an older one into its tuner, and save it anew)"
        )
        check(described, name, expected, sorted(header), StateMismatchError)
        with taking_over(header["kind"]):
            decision, observation = (_RECORDS[record] for record in header["records"].split())
            ledger: Ledger[Any, Any] = Ledger(decision, observation)
            ledger.load_state_dict(state["ledger"])
            space = SearchSpace.from_dict(json.loads(header["definition"]))
        counts = (len(ledger), ledger.queries, ledger.failed_queries)
        return cls(name, header, space, ledger.suggestions, ledger.outcomes, *counts)

    @property
    def kind(self) -> str:
        """The class of the tuner."""
        return self.header.get("kind", "a tuner")

    @property
    def horizon(self) -> int | None:
        """Rounds that the run was to have, if known."""
        return self._count("horizon")

    @property
    def budget(self) -> int | None:
        """The most queries that the run may pay for, if there is a limit."""
        limits = [self._count("limits.max_queries"), self._count("query.budget")]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def maximize(self) -> bool:
        """Whether larger rewards are better; a tuner that is told metrics says of which kind they are."""
        if self.metric is not None:
            return self.metric != "loss"
        return self.header.get("maximize", "True") == "True"

    @property
    def metric(self) -> str | None:
        """The kind of metric that was told as it was measured, by twins and populations."""
        measured = self.header["tells"] == "metric"
        return self.header.get("metric", "loss").strip("'\"") if measured else None

    @property
    def told_as(self) -> str:
        """What was told, in a word: the metric of twins and populations, rewards of others."""
        return self.metric or "reward"

    @property
    def options(self) -> dict[str, str]:
        """The options of the tuner, as text."""
        return {name: said for name, said in self.header.items() if name not in DESCRIPTION}

    def options_of(self, group: str) -> dict[str, str]:
        """Return the options of a group, such as ``"query"``, by their names within it."""
        start = f"{group}."
        named = self.header.items()
        return {name.removeprefix(start): told for name, told in named if name.startswith(start)}

    @cached_property
    def told(self) -> Mapping[int, Observation]:
        """The observations by their round."""
        return {one.round: one for one in self.observations}

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions with a query that have not been told, as far as they are kept."""
        return tuple(one for one in self.decisions if one.query and one.round not in self.told)

    @property
    def best(self) -> Observation | None:
        """The observation of the best reward, or metric, told, if there is one."""
        told = [one for one in self.observations if one.reward is not None]
        sign = 1 if self.maximize else -1
        return max(told, key=lambda one: sign * (one.reward or 0.0), default=None)

    @property
    def cost(self) -> float | None:
        """What was told as costs, in their own units; None of a tuner without costs."""
        costs = [
            one.cost
            for one in self.observations
            if isinstance(one, CurveObservation | SubsetObservation)
        ]
        return sum(costs) if costs else None

    @property
    def seconds(self) -> float | None:
        """What the queries took, in seconds, as far as it was told; None if it never was."""
        told = [one.seconds for one in self.observations if one.seconds is not None]
        return sum(told) if told else None

    @property
    def reasons(self) -> list[tuple[bool, str, int]]:
        """Whether to query, why, and how often; queries first, then by frequency.

        Reasons that differ only in what stands in parentheses are one.
        """
        counts = Counter((one.query, one.reason.partition(" (")[0]) for one in self.decisions)
        ordered = sorted(counts.items(), key=lambda item: (not item[0][0], -item[1], item[0][1]))
        return [(query, reason, count) for (query, reason), count in ordered]

    def schedule(self) -> Schedule:
        """Return what was played, as far as it is kept.

        Raises:
            StateMismatchError: If the tuner goes back, or makes trainings of their own.
            InvalidArgumentError: If nothing was played.
        """
        plain = all(type(one) is Decision for one in self.decisions)
        expected = "a tuner that plays each round once, such as OnlineTuner"
        check(plain, "schedule", expected, self.kind, StateMismatchError)
        return Schedule.from_decisions(self.decisions, self.space)

    def _count(self, option: str) -> int | None:
        text = self.header.get(option, "None")
        return int(text) if text.isdecimal() else None


def saved_runs(path: str | os.PathLike[str]) -> list[SavedRun]:
    """Return the runs of all tuners whose states are in a file.

    Args:
        path: Of a file that ``botorch_costly.save``, ``tuner.save`` or ``torch.save(tuner.state_dict())``
            wrote, or of a checkpoint that holds such a state.

    Raises:
        OSError: If the file cannot be read.
        StateMismatchError: If there is no state of a tuner in it, or one of another version or damaged.
    """
    found = list(_states_in(read(path, ())))
    check(len(found) > 0, str(path), "the state of a tuner within", "none", StateMismatchError)
    return [SavedRun.from_state(state, name or "tuner") for name, state in found]


def _states_in(value: object, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, Mapping):
        return
    if _is_state(value):
        yield name, value
        return
    for key, inner in value.items():
        yield from _states_in(inner, f"{name}.{key}" if name else str(key))


def _is_state(value: object) -> bool:
    complete = isinstance(value, Mapping) and {"header", "ledger"} <= set(value)
    return complete and all(isinstance(value[key], Mapping) for key in ("header", "ledger"))  # type: ignore[index]
