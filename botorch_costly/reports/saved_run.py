"""A run, read from its saved state: options, decisions, observations, counts."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.saving import read
from botorch_costly.ask_tell.state import (
    DESCRIPTION,
    NEEDED_DESCRIPTION,
    STATE_VERSION,
    refuse_damage,
)
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import StateMismatchError, check
from botorch_costly.plain import Plain
from botorch_costly.population_records import PopulationDecision, PopulationObservation
from botorch_costly.records import (
    Decision,
    Observation,
    TwinDecision,
    ValueObservation,
    queried_of,
    unit_of,
)
from botorch_costly.reports.verdict import Saved, diagnosis_in, fidelities_in
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
_OBSERVATIONS = (
    Observation,
    ValueObservation,
    CurveObservation,
    SubsetObservation,
    PopulationObservation,
)
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class SavedRun:
    """The run of a tuner, read from its saved state.

    Args:
        name: Name under which the tuner was saved.
        header: Header of the state: options, kind and metric of the tuner, as text.
        space: Search space of the tuner.
        decisions: Decisions that the state keeps, in the order of their rounds.
        observations: Observations that the state keeps, in the order of their rounds.
        rounds: Number of decisions of the whole run, including those that are not kept.
        queries: Number of queries of the whole run.
        failed_queries: Number of queries whose reward was not finite.
        limits: First round and limits of each trust region of the run; empty without one.
        saved: The state and what was read from it; None without a diagnosis.

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
    limits: tuple[tuple[int, Mapping[str, tuple[float, float]]], ...] = ()
    saved: Saved | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], name: str = "tuner") -> "SavedRun":
        """Return the run of a tuner's ``state_dict``.

        Args:
            state: State of any tuner or optimizer of the package, or of a derived class.
            name: Name of the run.

        Raises:
            StateMismatchError: If ``state`` is not the state of a tuner, has another version, or is
                damaged.
        """

        def check_state(valid: bool, expected: str, received: object) -> None:
            check(valid, name, expected, received, StateMismatchError)

        check_state(_is_state(state), "the state of a tuner", type(state).__name__)
        header = {str(option): str(value) for option, value in state["header"].items()}
        version = header.get("version")
        check_state(version == str(STATE_VERSION), f"a state of version {STATE_VERSION}", version)
        expected = (
            "a state that describes its tuner (load an older one into its tuner, and save it again)"
        )
        check_state(set(NEEDED_DESCRIPTION) <= set(header), expected, sorted(header))
        try:
            decision, observation = header["records"].split()
            records = _named(decision, _DECISIONS), _named(observation, _OBSERVATIONS)
            ledger: Ledger[Any, Any] = Ledger(*records)
            ledger.load_state_dict(state["ledger"])
            space = SearchSpace.from_dict(json.loads(header["definition"]))
            limits = tuple((state.get("region") or {}).get("trace", ()))
        except Exception as error:
            refuse_damage(header["kind"], error)
            raise
        counts = (len(ledger), ledger.queries, ledger.failed_queries)
        kept = ledger.suggestions, ledger.outcomes
        return cls(name, header, space, *kept, *counts, limits, Saved(state, header, space, ledger))

    @cached_property
    def setting_space(self) -> SearchSpace:
        """Space of the hyperparameters and fidelities."""
        fidelities = fidelities_in(self.header)
        if fidelities is None:
            return self.space
        return SearchSpace(dict([*self.space.parameters, *fidelities.parameters]))

    @cached_property
    def diagnosis(self) -> str:
        """Text of the tuner's diagnosis, its verdict in the first line; "" without one.

        It is computed when it is first read: a model that is fitted anew may take seconds.
        """
        return "" if self.saved is None else diagnosis_in(self.saved)

    @property
    def verdict(self) -> str:
        """Whether tuning has paid, and what to do, in one line; "" for a tuner that cannot tell."""
        return self.diagnosis.partition("\n")[0]

    @property
    def kind(self) -> str:
        """Name of the tuner's class."""
        return self.header.get("kind", "a tuner")

    @property
    def unit(self) -> str:
        """Noun of a decision: ``"round"``, or ``"evaluation"`` or ``"segment"`` of a search."""
        decision = _named(self.header["records"].split()[0], _DECISIONS)
        return unit_of(decision, self.header["tells"])

    @property
    def is_search(self) -> bool:
        """Whether each decision is an evaluation of its own, in place of a round of one training."""
        return self.unit != "round"

    @property
    def queried(self) -> str:
        """Name of what is paid for: ``"queries"``, or ``"evaluations"`` or ``"segments"`` of a search."""
        return queried_of(self.unit)

    @property
    def horizon(self) -> int | None:
        """Planned rounds of the run, if known."""
        return self._count("horizon")

    @property
    def budget(self) -> int | None:
        """Largest number of queries of the run, if there is a limit."""
        limits = [self._count("limits.max_queries"), self._count("query.budget")]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def maximize(self) -> bool:
        """Whether larger rewards are better; for twins and populations, whether larger metrics are."""
        if self.metric is not None:
            return self.metric != "loss"
        return self.header.get("maximize", "True") == "True"

    @property
    def metric(self) -> str | None:
        """Metric that twins and populations are told, such as ``"loss"``; None for other tuners."""
        measured = self.header["tells"] == "metric"
        return self.header.get("metric", "loss").strip("'\"") if measured else None

    @property
    def told_as(self) -> str:
        """Name of what ``tell`` takes: that of the metric, ``"value"``, or else ``"reward"``."""
        return self.metric or ("value" if self.is_search else "reward")

    @property
    def measured(self) -> list[tuple[int, float]]:
        """Rounds and metrics that were told beside rewards, for logs; empty if rewards are metrics."""
        if self.metric is not None:
            return []
        return [(o.round, o.metric) for o in self.observations if o.metric is not None]

    @property
    def options(self) -> dict[str, str]:
        """Options of the tuner, as text."""
        return {name: text for name, text in self.header.items() if name not in DESCRIPTION}

    def options_of(self, group: str) -> dict[str, str]:
        """Return the options of a group, such as ``"query"``, by their names within it."""
        start = f"{group}."
        items = self.header.items()
        return {name.removeprefix(start): text for name, text in items if name.startswith(start)}

    @cached_property
    def told(self) -> Mapping[int, Observation]:
        """Observations by round."""
        return {observation.round: observation for observation in self.observations}

    @property
    def pending(self) -> tuple[Decision, ...]:
        """Kept decisions with a query that have no observation."""
        return tuple(d for d in self.decisions if d.query and d.round not in self.told)

    @property
    def best(self) -> Observation | None:
        """Observation with the best reward or metric; None if there is no reward."""
        finite = [o for o in self.observations if o.reward is not None]
        sign = 1 if self.maximize else -1
        return max(finite, key=lambda o: sign * (o.reward or 0.0), default=None)

    @property
    def best_setting(self) -> Mapping[str, Plain]:
        """Configuration and fidelities of the best observation; empty without one."""
        if self.best is None:
            return {}
        decision = next((d for d in self.decisions if d.round == self.best.round), None)
        return self.best.config if decision is None else {**decision.setting, **self.best.config}

    @property
    def cost(self) -> float | None:
        """Sum of the observed costs, in their units; None for a tuner without costs."""
        costs = [cost for o in self.observations if (cost := self.cost_of(o)) is not None]
        return sum(costs) if costs else None

    @staticmethod
    def cost_of(observation: Observation | None) -> float | None:
        """Return the cost that was observed; None without one."""
        return getattr(observation, "cost", None)

    @property
    def seconds(self) -> float | None:
        """Sum of the reported durations of queries, in seconds; None if none was reported."""
        durations = [o.seconds for o in self.observations if o.seconds is not None]
        return sum(durations) if durations else None

    @property
    def reasons(self) -> list[tuple[bool, str, int]]:
        """Whether to query, the reason, and its count; queries first, then by frequency.

        Reasons that differ only in parentheses count as the same.
        """
        counts = Counter((d.query, d.reason.partition(" (")[0]) for d in self.decisions)
        ordered = sorted(counts.items(), key=lambda item: (not item[0][0], -item[1], item[0][1]))
        return [(query, reason, count) for (query, reason), count in ordered]

    def schedule(self) -> Schedule:
        """Return the schedule of the kept rounds.

        Raises:
            StateMismatchError: If the tuner may return to earlier rounds, or runs separate trainings.
            InvalidArgumentError: If no round was played.
        """
        plain = all(type(decision) is Decision for decision in self.decisions)
        expected = "a tuner that plays each round once, such as OnlineTuner"
        check(plain, "schedule", expected, self.kind, StateMismatchError)
        return Schedule.from_decisions(self.decisions, self.space)

    def _count(self, option: str) -> int | None:
        text = self.header.get(option, "None")
        return int(text) if text.isdecimal() else None


def saved_runs(path: str | os.PathLike[str]) -> list[SavedRun]:
    """Return the runs of all tuners whose states are in a file.

    Args:
        path: Path of a file written by ``botorch_costly.save``, ``tuner.save`` or
            ``torch.save(tuner.state_dict())``, or of a checkpoint that contains such a state.

    Raises:
        OSError: If the file cannot be read.
        StateMismatchError: If the file has no state of a tuner, or one of another version or damaged.
    """
    states = list(_states_in(read(path, ())))
    check(len(states) > 0, str(path), "the state of a tuner within", "none", StateMismatchError)
    return [SavedRun.from_state(state, name or "tuner") for name, state in states]


def check_saved(runs: object, *kinds: type, name: str = "run") -> None:
    """Raise InvalidArgumentError unless these are saved runs, in a list.

    Args:
        runs: The runs.
        kinds: Other classes that a run may have, such as ``Schedule``.
        name: Name of the argument, for the message.
    """
    listed = runs if isinstance(runs, Sequence) else [None]
    are_saved = all(isinstance(run, (SavedRun, *kinds)) for run in listed)
    expected = "saved runs: saved_runs(path), or SavedRun.from_state(tuner.state_dict()) of a tuner"
    check(are_saved, name, expected, runs)


def _states_in(value: object, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, Mapping):
        return
    if _is_state(value):
        yield name, value
        return
    for key, inner in value.items():
        yield from _states_in(inner, f"{name}.{key}" if name else str(key))


def _is_state(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(value.get(key), Mapping) for key in ("header", "ledger"))


def _named(name: str, kinds: Iterable[type[_Kind]]) -> type[_Kind]:
    return {kind.__name__: kind for kind in kinds}[name]
