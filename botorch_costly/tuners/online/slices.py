"""The belief along one hyperparameter, the others held: in one round, and over the rounds of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.ask_tell.evaluations import sign_of
from botorch_costly.errors import check, check_count
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.stationary import covariance
from botorch_costly.parameters import Choice, Parameter, Plain
from botorch_costly.records import Decision, FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.tuner import OnlineTuner


class Told(NamedTuple):
    """A reward in the belief, and its nearness to a slice."""

    value: Plain  # value of the hyperparameter that varies
    reward: float  # value in the belief: clipped or ranked, if the tuner does so
    nearness: float  # prior correlation with the point of the slice at this value, in [0, 1]


@dataclass(frozen=True)
class Slice:
    """The posterior along one hyperparameter in a round, the others held.

    Attributes:
        name: Name of the hyperparameter that varies.
        round: Round of the run, from 0.
        held: Configuration whose other values are held; its value of ``name`` is the original one.
        values: Values of the hyperparameter; numbers ascending, else options in their order.
        mean: Mean of the reward at each value, in units of the reward.
        std: Standard deviation at each value, without the noise of a query.
        told: Rewards in the belief, in the order in which they were told.
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
        name: Name of the hyperparameter.
        rounds: Rounds, ascending.
        values: Values of the hyperparameter; numbers ascending, else options in their order.
        behind: Expected difference between the best value of the round and each value, in standard
            deviations of the difference, one row per round; 0 at the best, and everywhere without data.
        log: Whether the values lie on a logarithmic scale.
    """

    name: str
    rounds: tuple[int, ...]
    values: tuple[Plain, ...]
    behind: tuple[tuple[float, ...], ...]
    log: bool

    @property
    def best(self) -> tuple[Plain, ...]:
        """Value of highest posterior mean in each round."""
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
    """Return the posterior along one hyperparameter in a round, as in ``OnlineTuner.predict``.

    Args:
        tuner: Tuner of the run.
        name: Name of the hyperparameter that varies.
        round: Past or future round of the run, from 0; the next one if omitted. All rewards count, also
            those told after the round.
        config: Configuration whose other values are held. If omitted, the incumbent, or the last
            configuration played if there is no reward yet.
        points: Largest number of values of a number, evenly spaced on its scale.

    Raises:
        InvalidArgumentError: If the tuner is not an ``OnlineTuner``, the name is unknown, ``round`` is
            not an integer of at least 0, or ``points`` not one of at least 2; or if ``config`` is omitted
            before the first ``ask``.
        InvalidConfigError: If the configuration does not belong to ``tuner.space``.

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
    space, parameter = tuner.space, _parameter_of(tuner.space, name)
    decisions, number = tuner.decisions, 0 if round is None else check_count("round", round)
    now = decisions[-1].round + 1 if round is None and decisions else number
    held = FrozenConfig(space.canonical(_incumbent(tuner) if config is None else config))
    values = _values_of(parameter, points)
    mean, std = tuner.predict([{**held, name: value} for value in values], now)
    moments = (tuple(mean.tolist()), tuple(std.tolist()))
    rewards = _rewards(tuner, name, held, now)
    return Slice(name, now, held, values, *moments, rewards, parameter.log)


@torch.inference_mode(mode=False)
def best_values(
    tuner: OnlineTuner, name: str, rounds: Sequence[int] | None = None, *, points: int = 64
) -> BestValues:
    """Return which values of one hyperparameter might be best, in some rounds of a run.

    In each round the other hyperparameters are held at the incumbent of that round: the observed
    configuration of highest posterior mean in the round. A value is compared with the best one by the
    posterior standard deviation of the difference of their rewards. The present belief is used for all
    rounds, so that later queries count for earlier rounds, too. The result says nothing about other
    values of the other hyperparameters.

    Args:
        tuner: Tuner of the run.
        name: Name of the hyperparameter.
        rounds: Rounds that were decided on and are kept; about 60 evenly spaced ones if omitted.
        points: Largest number of values of a number, evenly spaced on its scale.

    Raises:
        InvalidArgumentError: If the tuner is not an ``OnlineTuner``, the name is unknown, there is no
            round, a round was not decided on or is not kept any more, or ``points`` is not an integer of
            at least 2.
    """
    check_believing(tuner)
    points = check_count("points", points, minimum=2)
    space, parameter = tuner.space, _parameter_of(tuner.space, name)
    values, belief = _values_of(parameter, points), tuner.belief
    inputs = belief.inputs[:, :-1]
    intervals = intervals_of(tuner.decisions, rounds, about=60)
    played = {decision.interval: decision.config for decision in tuner.decisions}
    behind: dict[int, tuple[float, ...]] = {}
    for interval in set(intervals.values()):
        held: Mapping[str, Plain] = played[interval]
        if len(inputs):
            held = space.decode(inputs[int(belief.in_round(inputs, float(interval))[0].argmax())])
        line = torch.stack([space.encode({**held, name: value}) for value in values])
        behind[interval] = _behind(belief, line.to(inputs), interval)
    rows = tuple(behind[interval] for interval in intervals.values())
    return BestValues(name, tuple(intervals), values, rows, parameter.log)


def check_believing(tuner: object) -> None:
    """Raise unless a tuner has a belief over rounds, as an ``OnlineTuner`` has, also with loggers.

    Raises:
        InvalidArgumentError: If it has none.
    """
    has_belief = all(hasattr(tuner, name) for name in ("trust_region", "belief", "interval_of"))
    expected = "an OnlineTuner, whose belief is read"
    check(has_belief and not isinstance(tuner, type), "tuner", expected, type(tuner).__name__)


def intervals_of(
    decisions: Sequence[Decision], rounds: Sequence[int] | None, about: int = 30
) -> dict[int, int]:
    """Return the intervals of kept rounds, ascending.

    Args:
        decisions: Kept decisions.
        rounds: Rounds of some of them; evenly spaced ones if omitted.
        about: Number of these, up to a factor of two.

    Raises:
        InvalidArgumentError: If there is no round, or one was not decided on or is not kept any more.
    """
    intervals = {d.round: d.round if d.interval is None else d.interval for d in decisions}
    every = max(len(intervals) // about, 1)
    chosen = sorted(intervals)[::every] if rounds is None else sorted(set(rounds))
    is_kept = len(chosen) > 0 and set(chosen) <= set(intervals)
    check(is_kept, "rounds", "rounds that were decided on and are kept", chosen)
    return {round: intervals[round] for round in chosen}


def _parameter_of(space: SearchSpace, name: str) -> Parameter:
    """Return the parameter with a name; raise InvalidArgumentError if there is none."""
    parameters = dict(space.parameters)
    check(name in parameters, "name", f"a name among {list(parameters)}", name)
    return parameters[name]


def _values_of(parameter: Parameter, points: int) -> tuple[Plain, ...]:
    """Return the values of a parameter; numbers in ascending order.

    Args:
        parameter: Parameter; all options of a choice are values.
        points: Largest number of values of a number; more are replaced by evenly spaced ones on its
            scale.
    """
    if isinstance(parameter, Choice):
        options = parameter.options
        numbers = [x for x in options if isinstance(x, int | float) and not isinstance(x, bool)]
        return tuple(sorted(numbers)) if len(numbers) == len(options) else options
    if parameter.values is not None and len(parameter.values) <= points:
        return tuple(parameter.values)
    units = torch.linspace(0, 1, points, dtype=torch.float64)
    return tuple(dict.fromkeys(parameter.decode(unit.reshape(1)) for unit in units))


def _incumbent(tuner: OnlineTuner) -> Mapping[str, Plain]:
    """Return the incumbent, or the last configuration played if there is no reward yet."""
    best, decisions = tuner.best(), tuner.decisions
    has_played = best is not None or len(decisions) > 0
    check(has_played, "config", "a configuration, since nothing has been asked for", None)
    return decisions[-1].config if best is None else best


def _behind(belief: StreamingGP, line: Tensor, interval: int) -> tuple[float, ...]:
    """Return how far points are behind the best one, in standard deviations of the difference."""
    rows = torch.cat([line, torch.full_like(line[:, :1], float(interval))], -1)
    mean, covariance_of = belief.mean_and_covariance(rows)
    variance, best = covariance_of.diagonal(), int(mean.argmax())
    difference = variance + variance[best] - 2 * covariance_of[best]
    # The difference of two equal points is 0 up to rounding.
    floor = torch.finfo(variance.dtype).eps * belief.scale**2 * belief.kernel.outputscale
    behind = (mean[best] - mean) / difference.clamp_min(floor).sqrt()
    return tuple(behind.detach().tolist())


def _rewards(
    tuner: OnlineTuner, name: str, held: Mapping[str, Plain], round: int
) -> tuple[Told, ...]:
    """Return the rewards in the belief, with the nearness of each to its value's point on the slice."""
    belief, space = tuner.belief, tuner.space
    inputs = belief.inputs
    if not len(inputs):
        return ()
    seen = inputs[:, :-1]
    columns = space.columns[name]
    on_slice = space.encode(held).to(seen).expand_as(seen).clone()
    on_slice[:, columns] = seen[:, columns]
    nearness = covariance(belief.kernel, seen.unsqueeze(1), on_slice.unsqueeze(1)).flatten()
    lag = (inputs[:, -1] - tuner.interval_of(round)).abs()
    nearness = nearness / belief.kernel.outputscale
    nearness = nearness * retention(lag.new_tensor(belief.forgetting), lag)
    rewards = belief.center + belief.scale * belief.targets
    sign = sign_of(tuner.maximize)
    return tuple(
        Told(space.decode(row)[name], sign * reward, near)
        for row, reward, near in zip(seen, rewards.tolist(), nearness.tolist(), strict=True)
    )
