"""Diagnosis of a search: how many configurations may be the best one, within the noise."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.cost_remarks import remark_on_expenses, shares_of_cost
from botorch_costly.ask_tell.evaluations import sign_of
from botorch_costly.ask_tell.serial import Serial
from botorch_costly.ask_tell.surroundings import shield
from botorch_costly.parameters import Integer, Plain, Real
from botorch_costly.plain import listed
from botorch_costly.space import SearchSpace

FEWEST = 10  # finite values; with fewer there is no verdict
_DEVIATIONS = 2.0  # of a difference, below which two configurations are not told apart
_AT_BOUND = 0.02  # share of a range within which a value lies at its bound
_FEW = 3  # values of a number, most of which are bounds
_MOST = 300  # configurations that are compared, the latest ones
_NO_MODEL = (
    "Nothing is compared: gains change as the training goes on, and this tuner has no model of them. "
    "OnlineTuner has one."
)
_LEVELS = (
    "Nothing is compared: the metrics of the members are levels of a training that goes on. "
    "best_member() says which member leads."
)
_ALONE = (
    "Configurations are not compared: a model of them needs more than the saved state, such as the "
    "earlier tasks. Load the state into its optimizer, and call diagnose()."
)


@dataclass(frozen=True)
class SearchDiagnosis:
    """Diagnosis of a search; ``str`` puts it into words.

    Args:
        values: Number of finite values so far.
        failed: Number of evaluations without one.
        configurations: Number of different configurations among them; the best and the latest 300 are
            compared.
        rivals: Number of configurations within two standard deviations of the best one, itself included;
            None if the noise is not known.
        by: How the noise is known: ``"model"``, by the posterior, or ``"repeats"``, from configurations
            that were evaluated several times; ``""`` if it is not known.
        found: Number of the evaluation with the best value, from 1; None where values of several lengths
            or fidelities, or gains, are not compared.
        bounds: Parameters of the best configuration, and of half of its rivals or more, at a bound of
            their range, and which bound.
        because: Why nothing is compared; ``""`` if something is.
        paid: Share of the cost of all evaluations up to the one with the best value; None where that one
            or a cost is not known.
        paid_for_failures: Share of the cost of the failed evaluations; None where a cost is not known.
        remarks: What costs show, and what the kind of optimizer has to add.
    """

    values: int
    failed: int
    configurations: int
    rivals: int | None = None
    by: str = ""
    found: int | None = None
    bounds: tuple[tuple[str, str], ...] = ()
    because: str = ""
    paid: float | None = None
    paid_for_failures: float | None = None
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self._is_early or self.configurations < 2:
            return self._verdict()
        return "\n".join([self._verdict(), *self._lines(), *self.remarks])

    @property
    def _is_early(self) -> bool:
        return self.values < FEWEST

    def _verdict(self) -> str:
        if self.because:
            return self.because
        if self._is_early:
            values = "1 value" if self.values == 1 else f"{self.values} values"
            return f"Too early to say: {values}, and {FEWEST} are the fewest."
        if self.configurations < 2:
            return "Nothing can be compared: only one configuration has been evaluated."
        if self.rivals is None:
            return (
                "The noise is not known, so that others may be as good as the best configuration: "
                "evaluate some of them again."
            )
        source = {"model": "by the model", "repeats": "by repeated evaluations"}[self.by]
        if self.rivals > 1:
            return (
                f"{self.rivals} of {self.configurations} configurations may be the best one: {source} "
                "they are not told apart."
            )
        return f"One of {self.configurations} configurations is the best one, {source}."

    def _lines(self) -> list[str]:
        lines = []
        if self.found is not None:
            total = self.values + self.failed
            after = "" if self.paid is None else f", after {self.paid:.0%} of the cost"
            lines.append(f"The best value came at evaluation {self.found} of {total}{after}.")
        if self.failed:
            several = "1 evaluation has" if self.failed == 1 else f"{self.failed} evaluations have"
            cost = self.paid_for_failures
            lines.append(
                f"{several} failed{'' if cost is None else f', for {cost:.0%} of the cost'}."
            )
        for name, which in self.bounds:
            lines.append(
                f"{name} of the best configuration lies at its {which} bound: better ones may lie beyond."
            )
        return lines


class Diagnosed(Serial):
    """An optimizer that says what its evaluations show."""

    def diagnose(self: Any) -> Any:
        """Return whether noise hides which configuration is best, and what else the values show.

        It changes nothing. ``OnlineTuner`` and ``TwinTuner`` have diagnoses of their own.
        """
        if self.tells == "metric":
            return _untold(self, _LEVELS)
        if self.tells == "gain" and not self.predicts:
            return _untold(self, _NO_MODEL)
        return _diagnosis_of(self)

    def _remarks(self) -> list[str]:
        """Return sentences that the kind of optimizer adds to a diagnosis."""
        return []


shield(Diagnosed)


def diagnosis_of_records(
    records: Any, space: SearchSpace, maximize: bool, *, is_plain: bool
) -> SearchDiagnosis:
    """Return the diagnosis of an offline search by its records, without a model.

    Args:
        records: Ledger of the search.
        space: Search space of the configurations.
        maximize: Whether larger values are better.
        is_plain: Whether values are comparable, those of whole evaluations at no other fidelity.
    """
    outcomes, sign = records.outcomes, sign_of(maximize)
    told = [outcome for outcome in outcomes if outcome.reward is not None]
    counts = len(told), records.failed_queries, len(_grouped(told))
    if not is_plain or len(told) < FEWEST:
        return SearchDiagnosis(*counts, because=_ALONE, paid_for_failures=_paid(outcomes)[1])
    leading = max(told, key=lambda outcome: sign * outcome.reward)
    found = outcomes.index(leading) + 1
    paid, lost = _paid(outcomes, found)
    return SearchDiagnosis(
        *counts,
        found=found,
        because=_ALONE,
        paid=paid,
        paid_for_failures=lost,
        remarks=tuple(remark_on_expenses(space, outcomes, sign)),
    )


def _paid(outcomes: Sequence[Any], found: int | None = None) -> tuple[float | None, float | None]:
    """Return the shares of the cost up to the best value and of failures, None where not known."""
    shares = shares_of_cost(outcomes)
    if shares is None:
        return None, None
    failed = sum(share for share, o in zip(shares, outcomes, strict=True) if o.reward is None)
    return None if found is None else sum(shares[:found]), failed


def _untold(optimizer: Any, because: str) -> SearchDiagnosis:
    told = [outcome for outcome in optimizer.observations if outcome.reward is not None]
    return SearchDiagnosis(
        len(told), optimizer.failed_queries, len(_grouped(told)), because=because
    )


def _diagnosis_of(optimizer: Any) -> SearchDiagnosis:
    outcomes = optimizer.observations
    told = [outcome for outcome in outcomes if outcome.reward is not None]
    every, sign = _grouped(told), sign_of(optimizer.maximize)
    counts = len(told), optimizer.failed_queries, len(every)
    if len(told) < FEWEST or len(every) < 2:
        return SearchDiagnosis(*counts)
    best, leading = optimizer.best(), max(told, key=lambda outcome: sign * outcome.reward)
    groups = _compared(every, [leading.config] if best is None else [leading.config, best])
    is_plain = optimizer.tells == "value" and optimizer.fidelities is None
    rivals, by = _rivals_by_model(optimizer, groups, sign), "model"
    if rivals is None:
        rivals, by = (_rivals_by_repeats(groups, sign) if is_plain else None), "repeats"
    configs = [config for config, _ in groups.values()]
    found = outcomes.index(leading) + 1 if is_plain else None
    expenses = remark_on_expenses(optimizer.space, outcomes, sign) if is_plain else []
    paid, lost = _paid(outcomes, found)
    return SearchDiagnosis(
        *counts,
        rivals=None if rivals is None else len(rivals),
        by="" if rivals is None else by,
        found=found,
        bounds=_shared_bounds(optimizer.space, best, configs, rivals or []),
        paid=paid,
        paid_for_failures=lost,
        remarks=(*expenses, *optimizer._remarks()),
    )


def _grouped(told: Sequence[Any]) -> dict[str, tuple[Mapping[str, Plain], list[float]]]:
    """Return the values of each configuration, by its text, in the order of their latest values."""
    groups: dict[str, tuple[Mapping[str, Plain], list[float]]] = {}
    for outcome in told:
        config, key = dict(outcome.config), _text(outcome.config)
        groups[key] = groups.pop(key, (config, []))
        groups[key][1].append(float(outcome.reward))
    return groups


def _text(config: Mapping[str, Plain]) -> str:
    return json.dumps({name: listed(value) for name, value in config.items()}, sort_keys=True)


def _compared(
    groups: Mapping[str, tuple[Mapping[str, Plain], list[float]]],
    also: Sequence[Mapping[str, Plain]],
) -> dict[str, tuple[Mapping[str, Plain], list[float]]]:
    """Return the groups of the latest configurations, and of some that are never left out."""
    kept = {*list(groups)[-_MOST:], *map(_text, also)}
    return {key: group for key, group in groups.items() if key in kept}


def _rivals_by_model(optimizer: Any, groups: Mapping[str, Any], sign: float) -> list[int] | None:
    posterior = optimizer.predict([config for config, _ in groups.values()])
    if posterior is None:
        return None
    mean, std = posterior
    return _rivals(sign * mean, std.square())


def _rivals_by_repeats(groups: Mapping[str, Any], sign: float) -> list[int] | None:
    """Return the rivals by the pooled variance of repeated values; None without any."""
    several = [torch.tensor(values, dtype=torch.float64) for _, values in groups.values()]
    freedom = sum(len(values) - 1 for values in several)
    if freedom == 0:
        return None
    squares = sum(float((values - values.mean()).square().sum()) for values in several)
    means = sign * torch.stack([values.mean() for values in several])
    counts = torch.tensor([float(len(values)) for values in several], dtype=torch.float64)
    return _rivals(means, squares / freedom / counts)


def _rivals(means: Tensor, variances: Tensor) -> list[int]:
    """Return the numbers of the values that are not told apart from the best one, itself included.

    Errors of two values count as independent: those of a model rise and fall together, so that fewer
    may be told apart than could be.
    """
    best = means.argmax()
    behind = means[best] - means
    near = behind <= _DEVIATIONS * (variances + variances[best]).sqrt()
    near[best] = True
    return near.nonzero().flatten().tolist()


def _shared_bounds(
    space: SearchSpace,
    best: Mapping[str, Plain] | None,
    configs: Sequence[Mapping[str, Plain]],
    rivals: Sequence[int],
) -> tuple[tuple[str, str], ...]:
    """Return the bounds at which the best configuration and most of its rivals lie."""
    others = [bounds_of(space, configs[number]) for number in rivals]
    mine = () if best is None else bounds_of(space, best)
    return tuple(b for b in mine if 2 * sum(b in other for other in others) >= len(others))


def bounds_of(space: SearchSpace, config: Mapping[str, Plain]) -> tuple[tuple[str, str], ...]:
    """Return the numbers of a configuration that lie at a bound of their range, and which.

    Example:
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-1, log=True), "depth": Integer(1, 9)})
        >>> bounds_of(space, {"lr": 0.0999, "depth": 2})
        (('lr', 'upper'),)
    """
    found, here = [], space.encode(config)
    for name, parameter in space.parameters:
        few = parameter.values is not None and len(parameter.values) <= _FEW
        if isinstance(parameter, Real | Integer) and not few:
            ends = (("lower", parameter.low), ("upper", parameter.high))
            for which, end in ends:
                away = (space.encode({**config, name: end}) - here).abs().sum()
                if float(away) <= _AT_BOUND:
                    found.append((name, which))
    return tuple(found)
