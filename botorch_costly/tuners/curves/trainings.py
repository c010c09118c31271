"""The trainings of a run: what each has shown, what it cost, and where it may go on."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import check
from botorch_costly.parameters import Plain

_FALLING = 5  # curves, most of which fall, that look like losses
_VAIN = 2  # stretches in a row that come to nothing, after which a training is left


@dataclass(frozen=True)
class Training:
    """One training of a configuration, as far as it has come.

    Args:
        number: Of its first stretch.
        config: Trained with.
        point: The configuration, encoded, shape ``(d,)``.
        length: Iterations of the whole training.
        curve: A reward, larger is better, for each iteration so far; NaN where there is none.
        paid: What it has cost.
        iterations: Trained for that; more than in the curve, if it was begun anew.
        broken: Whether it has diverged.
        until: Where a stretch ends that has been asked for and not been told; None if there is none.
        vain: Stretches in a row, up to the latest, that have not brought it farther.
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
    vain: int = 0

    @property
    def done(self) -> int:
        """Iterations that it has come to; those of the longest, if it was begun anew."""
        return len(self.curve)

    @property
    def is_whole(self) -> bool:
        """Whether it has come to its end."""
        return self.done == self.length and not self.broken

    @property
    def may_go_on(self) -> bool:
        """Whether a further stretch can be asked for."""
        return self.until is None and not self.broken and self.done < self.length

    @property
    def is_left(self) -> bool:
        """Whether no stretch of it is chosen any more, for one after the other came to nothing."""
        return self.vain >= _VAIN

    @property
    def known(self) -> list[int]:
        """Iterations with a reward, counted from 1."""
        return [at for at, reward in enumerate(self.curve, 1) if not math.isnan(reward)]

    @property
    def latest(self) -> float:
        """The last reward; NaN without any."""
        known = self.known
        return self.curve[known[-1] - 1] if known else math.nan

    @property
    def cost_of_whole(self) -> float:
        """What all of its iterations would cost, by what it has cost so far; NaN before that."""
        return self.paid * self.length / self.iterations if self.iterations else math.nan


@dataclass
class Trainings:
    """The trainings by number, kept up to date by decisions and observations.

    Args:
        encode: Of configurations.
        length_of: Iterations of the whole training of a configuration.
        sign: Multiplies what is told; -1 if smaller values are better.
    """

    encode: Callable[[Mapping[str, Plain]], Tensor]
    length_of: Callable[[Mapping[str, Plain]], int]
    sign: float = 1.0
    _by_number: dict[int, Training] = field(default_factory=dict)
    _told: int = 0

    def __iter__(self) -> Iterator[Training]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)

    def asked(self, decision: CurveDecision) -> None:
        """Enter a stretch that has been asked for."""
        number, config = decision.training, decision.config
        if number not in self._by_number:
            begun = Training(number, config, self.encode(config), self.length_of(config))
            self._by_number[number] = begun
        self._by_number[number] = replace(self._by_number[number], until=decision.until)

    def withdrawn(self, decision: CurveDecision) -> None:
        """Take out a stretch that has been asked for, and its training if that has no other."""
        training = self._by_number[decision.training]
        if training.number == decision.round:
            del self._by_number[training.number]
        else:
            self._by_number[training.number] = replace(training, until=None)

    def told(self, decision: CurveDecision, observation: CurveObservation) -> None:
        """Enter what a stretch has shown."""
        self._by_number[decision.training] = self.after(decision, observation)
        self._told += 1

    def after(self, decision: CurveDecision, observation: CurveObservation) -> Training:
        """Return the training of a stretch as it is after it."""
        before = self._by_number[decision.training]
        shown = [math.nan if v is None else self.sign * v for v in observation.curve]
        curve = _overlaid(before.curve, decision.since, shown)
        return replace(
            before,
            curve=curve,
            paid=before.paid + observation.cost,
            iterations=before.iterations + len(shown),
            broken=observation.broken,
            until=None,
            vain=0 if len(curve) > before.done else before.vain + 1,
        )

    def with_one(self, training: Training) -> "Trainings":
        """Return a copy in which a training is another."""
        changed = {**self._by_number, training.number: training}
        return replace(self, _by_number=changed, _told=self._told + 1)

    def replay(
        self, decisions: Sequence[CurveDecision], observations: Sequence[CurveObservation]
    ) -> None:
        """Begin anew, from all that has been asked for and told."""
        self._by_number, self._told = {}, 0
        told = {one.round: one for one in observations}
        for decision in decisions:
            self.asked(decision)
            if decision.round in told:
                self.told(decision, told[decision.round])

    @property
    def going_on(self) -> list[Training]:
        """The trainings that may go on, without those that are left."""
        return [training for training in self if training.may_go_on and not training.is_left]

    def going_on_with(self, number: int, config: Mapping[str, Plain]) -> Training:
        """Return the training of some number; raise unless it has that configuration and may go on."""
        alike = (t for t in self if t.may_go_on and dict(t.config) == dict(config))
        going_on = {t.number: t for t in alike}
        expected = f"the number of a training of {dict(config)} that may go on"
        check(number in going_on, "training", expected, number)
        return going_on[number]

    @property
    def fall(self) -> bool:
        """Whether most of several curves fall."""
        curves = [[r for r in t.curve if not math.isnan(r)] for t in self]
        rises = [curve[-1] - curve[0] for curve in curves if len(curve) > 1]
        return len(rises) >= _FALLING and statistics.median(rises) < 0

    @property
    def best(self) -> Training | None:
        """The training whose latest value is best, of those that did not diverge; None without one."""
        known = [training for training in self if training.known and not training.broken]
        return max(known, key=lambda training: training.latest, default=None)

    @property
    def broken(self) -> int:
        """How many trainings diverged."""
        return sum(training.broken for training in self)

    def summary(self, pending: int, unit: str, signal: float | None) -> str:
        """Return a few lines on what was trained, paid and found.

        Args:
            pending: Stretches that are under way.
            unit: Unit of the costs, after a space.
            signal: How well ranks after a quarter of a training foretell those at its end, if known.
        """
        lines = [f"{self._tally}, {pending} under way", f"paid {self.paid:.6g}{unit}"]
        if signal is not None:
            lines.append(
                f"a quarter of a training is believed to correlate {signal:.2f} with its end"
            )
        if (best := self.best) is not None:
            value, done = self.sign * best.latest, f"{best.done} of {best.length} iterations"
            lines.append(f"best {value:.6g} after {done}: {dict(best.config)}")
        return "\n".join(lines)

    @property
    def _tally(self) -> str:
        """How many stretches and trainings there are, and how these ended, in words."""
        whole = sum(training.is_whole for training in self)
        left = sum(training.is_left and training.may_go_on for training in self)
        words = (
            f"{self._told} stretches of {len(self)} trainings, {whole} of them whole, "
            f"{self.broken} diverged"
        )
        return f"{words}, {left} of them left" if left else words

    @property
    def paid(self) -> float:
        """What all stretches told have cost."""
        return sum((training.paid for training in self), 0.0)

    @property
    def stretches(self) -> int:
        """How many stretches have been told."""
        return self._told

    @property
    def rewards(self) -> Tensor:
        """All rewards of all trainings, float64 of shape ``(n,)``."""
        known = [reward for training in self for reward in training.curve]
        rewards = torch.tensor(known, dtype=torch.float64)
        return rewards[~rewards.isnan()]

    @property
    def points(self) -> Tensor:
        """The encoded configurations, shape ``(n, d)``."""
        return torch.stack([training.point for training in self])


def _overlaid(curve: tuple[float, ...], since: int, shown: Sequence[float]) -> tuple[float, ...]:
    """Return a curve with what was shown after some iteration; NaN there leaves what is known.

    A training that was begun anew and stopped early has said nothing of the iterations after.
    """
    end = since + len(shown)
    earlier = [*curve[since:end], *[math.nan] * (end - max(since, len(curve)))]
    pairs = zip(earlier, shown, strict=True)
    new = (old if math.isnan(value) else value for old, value in pairs)
    return (*curve[:since], *new, *curve[end:])
