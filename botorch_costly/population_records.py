"""Records of a population: one decision and one observation per round for all members."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from botorch_costly.errors import check, check_count, check_nonnegative
from botorch_costly.parameters import Plain
from botorch_costly.plain import listed
from botorch_costly.records import Decision, FrozenConfig, Observation, record_of

FAILED = "failed"  # plain value that stands for a NaN metric


@dataclass(frozen=True)
class PopulationDecision(Decision):
    """Configurations, origins and queries of all members of a population in a round.

    Args:
        round: Round of training, from 0.
        config: Configuration of the leader.
        query: Whether any member validates after the round.
        reason: Reason of the decision, in a short sentence.
        confidence: Smallest probability with which the configuration beats a rival, if computed.
        interval: Number of the interval, from 0; the round if omitted.
        configs: Configuration of each member.
        origins: Member whose weights each member goes on from, as of the end of the previous round.
        queries: Whether each member validates after the round.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range, or the lengths of ``configs``,
            ``origins`` and ``queries`` differ.
        InvalidConfigError: If a configuration holds anything but plain values.

    Example:
        >>> decision = PopulationDecision(
        ...     3, {"lr": 0.1}, query=True, reason="queried", configs=({"lr": 0.1}, {"lr": 0.3}),
        ...     origins=(0, 0), queries=(True, False),
        ... )
        >>> decision.members
        2
    """

    _: KW_ONLY
    configs: tuple[Mapping[str, Plain], ...] = ()
    origins: tuple[int, ...] = ()
    queries: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "configs", tuple(map(FrozenConfig, self.configs)))
        origins = tuple(check_count("origins", member) for member in self.origins)
        object.__setattr__(self, "origins", origins)
        object.__setattr__(self, "queries", tuple(self.queries))
        lengths = len(self.configs), len(origins), len(self.queries)
        equal = len(set(lengths)) == 1
        check(equal, "configs, origins, queries", "one of each for every member", lengths)
        are_members = all(member < self.members for member in origins)
        check(are_members, "origins", f"members below {self.members}", origins)
        are_flags = all(isinstance(query, bool) for query in self.queries)
        check(are_flags, "queries", "a bool for each member", self.queries)

    @property
    def members(self) -> int:
        """Number of members."""
        return len(self.configs)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, with tuples as lists."""
        configs = [{name: listed(v) for name, v in config.items()} for config in self.configs]
        lists = {"origins": list(self.origins), "queries": list(self.queries)}
        return {**super().to_dict(), "configs": configs, **lists}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of a decision.
        """
        return record_of(cls, values, configs=_configs)


@dataclass(frozen=True)
class PopulationObservation(Observation):
    """Metrics of all members of a population after a round.

    Args:
        round: Round of training, from 0.
        config: Configuration of the member with the best metric; of the leader if there is no metric.
        reward: Best finite metric among the members; None if there is none.
        failed: Whether members were queried and none had a finite metric.
        seconds: Duration of the query in seconds, if measured.
        metrics: Metric of each member; None if it was not queried, NaN if its query failed.
        variances: Variance of each metric beyond that of the whole validation set, in its units squared;
            empty if all are 0.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range, or there is not one variance for
            each metric.
    """

    _: KW_ONLY
    metrics: tuple[float | None, ...] = ()
    variances: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = all(metric is None or isinstance(metric, float) for metric in self.metrics)
        check(is_valid, "metrics", "a float or None for each member", self.metrics)
        object.__setattr__(self, "metrics", tuple(self.metrics))
        variances = tuple(check_nonnegative("variances", v) for v in self.variances)
        fits = len(variances) in (0, len(self.metrics))
        check(fits, "variances", f"{len(self.metrics)} numbers, or none", self.variances)
        object.__setattr__(self, "variances", variances)

    def variance_of(self, member: int) -> float:
        """Return the variance of a member's metric."""
        return self.variances[member] if self.variances else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON; a NaN metric is the text ``"failed"``."""
        metrics = [FAILED if m is not None and math.isnan(m) else m for m in self.metrics]
        return {**super().to_dict(), "metrics": metrics, "variances": list(self.variances)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild an observation from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of an observation.
        """
        return record_of(cls, values, metrics=_metrics)


def _configs(configs: Any) -> tuple[FrozenConfig, ...]:
    return tuple(map(FrozenConfig.from_json, configs))


def _metrics(metrics: Any) -> tuple[Any, ...]:
    return tuple(math.nan if metric == FAILED else metric for metric in metrics)
