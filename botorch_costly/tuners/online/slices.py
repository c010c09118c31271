"""What is believed of one hyperparameter, the others held: in one round, and over the rounds of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import check, check_count
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.stationary import covariance
from botorch_costly.parameters import Choice, Parameter, Plain
from botorch_costly.records import FrozenConfig
from botorch_costly.tuners.online.lines import (
    best_in,
    check_believing,
    intervals_of,
    line_of,
    parameter_of,
    values_of,
)
from botorch_costly.tuners.online.tuner import OnlineTuner


class Told(NamedTuple):
    """A reward that the belief rests on, as it is seen from a slice."""

    value: Plain  # of the hyperparameter that varies
    reward: float  # as the belief has it: clipped, or ranked, if the tuner does so
    nearness: float  # prior correlation with the point of the slice at this value, in [0, 1]


@dataclass(frozen=True)
class Slice:
    """What is believed of one hyperparameter in a round, the others held.

    Attributes:
        name: Of the hyperparameter that varies.
        round: Of the run, from 0.
        held: The whole configuration; its value of ``name`` is where the others come from.
        values: Ascending if they are numbers; else the options as they are given.
        mean: Of the reward at each value, in its units.
        std: Standard deviation likewise, without the noise of a query.
        told: The rewards that the belief rests on, in the order in which they were told.
        log: Whether the values lie on a logarithmic scale.
    """

    name: str
    round: int
    held: Mapping[str, Plain]
    values: tuple[Plain, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    told: tuple[Told, ...]
    log: bool


@dataclass(frozen=True)
class BestValues:
    """Which values of one hyperparameter might be best, by round.

    Attributes:
        name: Of the hyperparameter.
        rounds: Ascending.
        values: Ascending if they are numbers; else the options as they are given.
        behind: By how many standard deviations of their difference each value is believed behind the
            best one of the round, a row a round; 0 at the best, and everywhere if nothing is known.
        log: Whether the values lie on a logarithmic scale.
    """

    name: str
    rounds: tuple[int, ...]
    values: tuple[Plain, ...]
    behind: tuple[tuple[float, ...], ...]
    log: bool

    @property
    def best(self) -> tuple[Plain, ...]:
        """The value believed best in each round."""
        return tuple(self.values[row.index(min(row))] for row in self.behind)


@torch.inference_mode(mode=False)
def slice_of(
    tuner: OnlineTuner,
    name: str,
    round: int | None = None,
    config: Mapping[str, Plain] | None = None,
    *,
    points: int = 100,
) -> Slice:
    """Return what is believed of one hyperparameter in a round, as ``OnlineTuner.believed`` says it.

    Args:
        tuner: Of the run.
        name: Of the hyperparameter that varies.
        round: Of the run, from 0, earlier or later; the next one if omitted. What was told later than
            a round counts for it, too.
        config: What the others are held at; the incumbent if omitted, or what was played last as long
            as nothing was told.
        points: Values of a number at the most, at even distances on its scale.

    Raises:
        InvalidArgumentError: If the tuner is no ``OnlineTuner``, the name is unknown, the round no
            integer of at least 0, or ``points`` none of at least 2; or if nothing has been asked for, and
            no configuration is given.
        InvalidConfigError: If the configuration is not one of ``tuner.reachable``.

    Example:
        >>> import botorch_costly as bc
        >>> tuner = bc.OnlineTuner(bc.SearchSpace({"x": bc.Real(0.0, 1.0)}), start={"x": 0.5})
        >>> _ = tuner.tell(tuner.ask(), 1.0)
        >>> found = slice_of(tuner, "x", points=3)
        >>> found.values, found.std[1] < found.std[0]
        ((0.0, 0.5, 1.0), True)
    """
    check_believing(tuner)
    points = check_count("points", points, minimum=2)
    space, parameter = tuner.reachable, parameter_of(tuner.reachable, name)
    decisions, number = tuner.decisions, 0 if round is None else check_count("round", round)
    now = decisions[-1].round + 1 if round is None and decisions else number
    given = _incumbent(tuner) if config is None else config
    held = FrozenConfig(space.canonical(given))
    values = values_of(parameter, points)
    mean, std = tuner.predict([{**held, name: value} for value in values], now)
    told = _told(tuner, name, held, now)
    numbers = (tuple(mean.tolist()), tuple(std.tolist()))
    return Slice(name, now, held, values, *numbers, told, _is_log(parameter))


@torch.inference_mode(mode=False)
def best_values(
    tuner: OnlineTuner, name: str, rounds: Sequence[int] | None = None, *, points: int = 64
) -> BestValues:
    """Return which values of one hyperparameter might be best, in some rounds of a run.

    In each round the other hyperparameters are held at the incumbent of that round: the configuration
    that is believed best then, of those seen. A value is told from the best one by the standard
    deviation of the difference between the two rewards, which the belief has. It is what is believed now
    about the rounds, so that later queries count for earlier rounds, too; and it says nothing of other
    values of the others.

    Args:
        tuner: Of the run.
        name: Of the hyperparameter.
        rounds: Decided on and kept; about 60 of them at even distances if omitted.
        points: Values of a number at the most, at even distances on its scale.

    Raises:
        InvalidArgumentError: If the tuner is no ``OnlineTuner``, the name is unknown, there is no round,
            one was not decided on or is not kept any more, or ``points`` is no integer of at least 2.
    """
    check_believing(tuner)
    points = check_count("points", points, minimum=2)
    space, parameter = tuner.reachable, parameter_of(tuner.reachable, name)
    values, belief = values_of(parameter, points), tuner.belief
    intervals = intervals_of(tuner.decisions, rounds, about=60)
    played = {one.interval: one.config for one in tuner.decisions}
    found: dict[int, tuple[float, ...]] = {}
    for interval in set(intervals.values()):
        best = best_in(belief, interval)
        held = played[interval] if best is None else space.decode(best)
        line = line_of(space, held, name, values).to(belief.inputs)
        found[interval] = _behind(belief, line, interval)
    rows = tuple(found[interval] for interval in intervals.values())
    return BestValues(name, tuple(intervals), values, rows, _is_log(parameter))


def _incumbent(tuner: OnlineTuner) -> Mapping[str, Plain]:
    """Return the incumbent, or what was played last as long as nothing was told."""
    best, decisions = tuner.best(), tuner.decisions
    known = best is not None or len(decisions) > 0
    check(known, "config", "a configuration, for nothing has been asked for", None)
    return decisions[-1].config if best is None else best


def _behind(belief: StreamingGP, line: Tensor, interval: int) -> tuple[float, ...]:
    """Return by how many standard deviations of the difference points are behind the best of them."""
    rows = torch.cat([line, torch.full_like(line[:, :1], float(interval))], -1)
    mean, covariance_of = belief.mean_and_covariance(rows)
    variance, best = covariance_of.diagonal(), int(mean.argmax())
    difference = variance + variance[best] - 2 * covariance_of[best]
    # Of two points that coincide the difference is 0 up to its last digits, as the means are.
    floor = torch.finfo(variance.dtype).eps * belief.scale**2 * belief.kernel.outputscale
    behind = (mean[best] - mean) / difference.clamp_min(floor).sqrt()
    return tuple(behind.detach().tolist())


def _told(tuner: OnlineTuner, name: str, held: Mapping[str, Plain], round: int) -> tuple[Told, ...]:
    """Return the rewards in the belief, each as near as it is to its value's point of the slice."""
    belief, space = tuner.belief, tuner.reachable
    inputs = belief.inputs
    if not len(inputs):
        return ()
    seen = inputs[:, :-1]
    columns = space.columns[name]
    there = space.encode(held).to(seen).expand_as(seen).clone()
    there[:, columns] = seen[:, columns]
    alike = covariance(belief.kernel, seen.unsqueeze(1), there.unsqueeze(1)).flatten()
    lag = (inputs[:, -1] - tuner.interval_of(round)).abs()
    alike = alike / belief.kernel.outputscale * retention(lag.new_tensor(belief.forgetting), lag)
    rewards = belief.center + belief.scale * belief.targets
    sign = 1 if tuner.maximize else -1
    return tuple(
        Told(space.decode(row)[name], sign * reward, nearness)
        for row, reward, nearness in zip(seen, rewards.tolist(), alike.tolist(), strict=True)
    )


def _is_log(parameter: Parameter) -> bool:
    return not isinstance(parameter, Choice) and parameter.log
