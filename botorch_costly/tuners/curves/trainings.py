"""The trainings of a run: their curves, their costs, and which of them may go on."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import check
from botorch_costly.numerics.robust import tempered
from botorch_costly.parameters import Plain
from botorch_costly.plain import config_text

_FALLING = 5  # number of curves from which on a majority of falling ones looks like losses
_SURE = 3.0  # standard deviations of the balance of signs that are drawn by chance
_FAR = 0.2  # of the largest value of a curve: a loss falls by more, an overfitted accuracy by less
_LONG = 10  # iterations; shorter curves count as going on so far
_STALLED = 2  # segments in a row without progress, after which a training is abandoned


@dataclass(frozen=True)
class Training:
    """A training of a configuration, so far.

    Args:
        number: Number of its first segment.
        config: Configuration of the training.
        point: Encoded configuration, shape ``(d,)``.
        length: Iterations of the whole training.
        curve: A reward for each iteration so far, larger is better; NaN without a measurement.
        paid: Cost so far.
        iterations: Iterations that were paid for; more than in the curve if it restarted from scratch.
        broken: Whether it has diverged.
        until: Last iteration of the pending segment; None without one.
        stalled: Number of latest segments in a row without progress.
        sign: Factor from rewards to the values that were told: -1 if smaller values are better.
    """

    number: int
    config: Mapping[str, Plain]
    point: Tensor = field(compare=False, repr=False)
    length: int
    curve: tuple[float, ...] = ()
    paid: float = 0.0
    iterations: int = 0
    broken: bool = False
    until: int | None = None
    stalled: int = 0
    sign: float = 1.0

    @property
    def values(self) -> tuple[float, ...]:
        """Value of each iteration so far as it was told, such as a loss; NaN without a measurement."""
        return tuple(self.sign * reward for reward in self.curve)

    @property
    def done(self) -> int:
        """Last iteration reached; if it restarted from scratch, in the longest attempt."""
        return len(self.curve)

    @property
    def is_whole(self) -> bool:
        """Whether it has reached its full length."""
        return self.done == self.length and not self.broken

    @property
    def may_go_on(self) -> bool:
        """Whether a further segment can be asked for."""
        return self.until is None and not self.broken and self.done < self.length

    @property
    def is_left(self) -> bool:
        """Whether it is abandoned because several segments in a row made no progress."""
        return self.stalled >= _STALLED

    @cached_property
    def known(self) -> list[int]:
        """Iterations with a reward, counted from 1."""
        return [number for number, reward in enumerate(self.curve, 1) if not math.isnan(reward)]

    @property
    def latest(self) -> float:
        """The last reward; NaN without any."""
        measured = self.known
        return self.curve[measured[-1] - 1] if measured else math.nan

    @property
    def cost_of_whole(self) -> float:
        """Cost of all of its iterations, extrapolated from its cost so far; NaN without an iteration."""
        return self.paid * self.length / self.iterations if self.iterations else math.nan


@dataclass
class Trainings:
    """The trainings by number, updated by decisions and observations.

    Args:
        encode: Encoding of configurations.
        length_of: Iterations of the whole training of a configuration.
        sign: Factor of all values; -1 if smaller values are better.
    """

    encode: Callable[[Mapping[str, Plain]], Tensor]
    length_of: Callable[[Mapping[str, Plain]], int]
    sign: float = 1.0
    _by_number: dict[int, Training] = field(default_factory=dict)
    _finished: int = 0  # number of segments with an outcome

    def __iter__(self) -> Iterator[Training]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)

    def start(self, decision: CurveDecision) -> None:
        """Add a pending segment."""
        number, config = decision.training, decision.config
        if number not in self._by_number:
            point, length = self.encode(config), self.length_of(config)
            self._by_number[number] = Training(number, config, point, length, sign=self.sign)
        self._by_number[number] = replace(self._by_number[number], until=decision.until)

    def cancel(self, decision: CurveDecision) -> None:
        """Remove a pending segment, and its training if the segment was its first."""
        training = self._by_number[decision.training]
        if training.number == decision.round:
            del self._by_number[training.number]
        else:
            self._by_number[training.number] = replace(training, until=None)

    def finish(self, decision: CurveDecision, observation: CurveObservation) -> None:
        """Enter the outcome of a segment."""
        self._by_number[decision.training] = self.after(decision, observation)
        self._finished += 1

    def after(self, decision: CurveDecision, observation: CurveObservation) -> Training:
        """Return the training of a segment, updated with the segment's outcome."""
        before = self._by_number[decision.training]
        values = [math.nan if v is None else self.sign * v for v in observation.curve]
        curve = _overlaid(before.curve, decision.since, values)
        return replace(
            before,
            curve=curve,
            paid=before.paid + observation.cost,
            iterations=before.iterations + len(values),
            broken=observation.broken,
            until=None,
            stalled=0 if len(curve) > before.done else before.stalled + 1,
        )

    def with_one(self, training: Training) -> "Trainings":
        """Return a copy with an updated training, whose latest segment is finished."""
        changed = {**self._by_number, training.number: training}
        return replace(self, _by_number=changed, _finished=self._finished + 1)

    def replay(
        self, decisions: Sequence[CurveDecision], observations: Sequence[CurveObservation]
    ) -> None:
        """Rebuild the trainings from all decisions and observations of a run."""
        self._by_number, self._finished = {}, 0
        outcomes = {observation.round: observation for observation in observations}
        for decision in decisions:
            self.start(decision)
            if decision.round in outcomes:
                self.finish(decision, outcomes[decision.round])

    @property
    def going_on(self) -> list[Training]:
        """The trainings that may go on and are not abandoned."""
        return [training for training in self if training.may_go_on and not training.is_left]

    def going_on_with(self, number: int, config: Mapping[str, Plain]) -> Training:
        """Return the training of some number; raise unless it has that configuration and may go on."""
        expected = f"the number of a training of {dict(config)} that may go on"
        training = self._by_number.get(number)
        valid = (
            training is not None and training.may_go_on and dict(training.config) == dict(config)
        )
        check(valid, "training", expected, number)
        assert training is not None
        return training

    @property
    def fall(self) -> bool:
        """Whether most of several curves fall by far more than overfitting or noise makes them.

        Curves that have learnt nothing yet fall as often as they rise, and so do their steps.
        """
        curves = [[r for r in t.curve if not math.isnan(r)] for t in self]
        longer = [curve for curve in curves if len(curve) > 1]
        sizes = [max(map(abs, curve)) or 1.0 for curve in longer]
        rises = [
            (curve[-1] - curve[0]) / size * max(1.0, _LONG / (len(curve) - 1))
            for curve, size in zip(longer, sizes, strict=True)
        ]
        steps = [later - before for curve in longer for before, later in pairwise(curve)]
        is_far = len(rises) >= _FALLING and statistics.median(rises) < -_FAR
        return is_far and (_mostly_negative(rises) or _mostly_negative(steps))

    @property
    def best(self) -> Training | None:
        """The training whose latest value is best, of those that did not diverge; None without one."""
        measured = [training for training in self if training.known and not training.broken]
        return max(measured, key=lambda training: training.latest, default=None)

    @property
    def best_latest(self) -> float:
        """The best latest reward of a training; there must be one. It is at most ``highest``."""
        latest = max(training.latest for training in self if training.known)
        return min(latest, self.highest)

    @property
    def highest(self) -> float:
        """The highest reward of a training, without trainings far above all others; there must be one.

        A reward above it counts as it, until several trainings confirm such rewards.
        """
        highs = [max(t.curve[k - 1] for k in t.known) for t in self if t.known]
        return float(tempered(torch.tensor(highs, dtype=torch.float64)).max())

    @property
    def broken(self) -> int:
        """Number of trainings that diverged."""
        return sum(training.broken for training in self)

    def summary(self, pending: int, unit: str, signal: float | None) -> str:
        """Return a few lines on the trainings, their cost and the best configuration.

        Args:
            pending: Number of pending segments.
            unit: Unit of the costs, with a leading space.
            signal: Correlation of a value after a quarter of a training with the final one, if known.
        """
        lines = [f"{self._tally}, {pending} under way", f"paid {self.paid:.6g}{unit}"]
        if signal is not None:
            lines.append(
                f"a quarter of a training is believed to correlate {signal:.2f} with its end"
            )
        if (best := self.best) is not None:
            value, done = self.sign * best.latest, f"{best.done} of {best.length} iterations"
            lines.append(f"best {value:.6g} after {done}: {config_text(best.config)}")
        return "\n".join(lines)

    @property
    def _tally(self) -> str:
        """Numbers of segments and trainings, and of trainings by their end, in words."""
        whole = sum(training.is_whole for training in self)
        left = sum(training.is_left and training.may_go_on for training in self)
        words = (
            f"{self._finished} segments of {len(self)} trainings, {whole} of them whole, "
            f"{self.broken} diverged"
        )
        return f"{words}, {left} of them left" if left else words

    @property
    def paid(self) -> float:
        """Cost of all finished segments."""
        return sum((training.paid for training in self), 0.0)

    @property
    def segments(self) -> int:
        """Number of finished segments."""
        return self._finished

    @property
    def rewards(self) -> Tensor:
        """All rewards of all trainings, at most ``highest``, float64, shape ``(n,)``."""
        values = [reward for training in self for reward in training.curve]
        rewards = torch.tensor(values, dtype=torch.float64)
        rewards = rewards[~rewards.isnan()]
        return rewards.clamp_max(self.highest) if len(rewards) else rewards

    @property
    def points(self) -> Tensor:
        """The encoded configurations, shape ``(n, d)``."""
        return torch.stack([training.point for training in self])


def _overlaid(curve: tuple[float, ...], since: int, values: Sequence[float]) -> tuple[float, ...]:
    """Return a curve with new values after iteration ``since``; NaN keeps the earlier value.

    A training that restarted from scratch and stopped early keeps its later values.
    """
    end = since + len(values)
    earlier = [*curve[since:end], *[math.nan] * (end - max(since, len(curve)))]
    pairs = zip(earlier, values, strict=True)
    new = (old if math.isnan(value) else value for old, value in pairs)
    return (*curve[:since], *new, *curve[end:])


def _mostly_negative(changes: list[float]) -> bool:
    """Return whether more changes are negative than chance makes them."""
    balance = sum((change < 0) - (change > 0) for change in changes)
    return balance >= _SURE * math.sqrt(len(changes))
