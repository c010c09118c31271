r"""A metric on a part of the validation set, and its variance.

The values of ``n`` of ``N`` examples, drawn at random without replacement, have the mean
:math:`\bar x` with

.. math:: \operatorname{var} \bar x = S_x^2 \left(\frac1n - \frac1N\right), \qquad
          \operatorname{cov}(\bar x, \bar y) = S_{xy} \left(\frac{c}{n k} - \frac1N\right)

where :math:`S_x^2` is the variance over examples, and :math:`\bar y` is the mean of another metric over
``k`` examples, ``c`` of which are the same. Of all ``N`` examples the variance is 0: differences between
checkpoints on the same set are no noise.

References:
    W. G. Cochran. Sampling techniques. 3rd edition 1977, sections 2.6 and 2.9. The covariance for samples
    that overlap in part follows from the same indicator variables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count


class Reading(NamedTuple):
    """A reward from a part of the validation set: ``tell(decision, reward, variance=variance)``.

    Args:
        reward: The reward; None without a reference, NaN for a metric that is not finite.
        variance: Variance of the reward, in its units squared, beyond that of a reading of the whole set;
            0 without a finite reward.
    """

    reward: float | None
    variance: float


@dataclass(frozen=True)
class Sample:
    """The mean of a metric over some of the examples, with the numbers that its variance needs.

    Args:
        mean: Mean of the values.
        spread: Variance of the values over the examples, with ``number - 1`` in the denominator.
        number: Number of examples.
        population: Number of examples of the whole set.
        examples: Numbers of the examples, ascending, if they are known.
        values: Value of each of these examples.
    """

    mean: float
    spread: float
    number: int
    population: int
    examples: tuple[int, ...] | None = None
    values: tuple[float, ...] | None = None

    @classmethod
    def from_values(
        cls,
        values: Tensor | Sequence[float],
        population: int,
        examples: Tensor | Sequence[int] | None = None,
    ) -> "Sample":
        """Return the sample of values of single examples.

        Args:
            values: Loss of each example, or its accuracy in [0, 1], shape ``(n,)``.
            population: Number of examples of the whole set, at least ``n``.
            examples: Number of each example in the set, from 0, ``n`` different ones, if known.

        Raises:
            InvalidShapeError: If there is not one value for each example, or no value.
            InvalidArgumentError: If the values are no numbers, the population is smaller than their
                number, a single value stands for several examples, or the examples are not different
                numbers below the population.
        """
        numbers = _numbers_of(values)
        n, population = len(numbers), check_count("population", population, minimum=1)
        check(n <= population, "population", f"at least the {n} values", population)
        enough, expected = (
            n > 1 or population == 1,
            "at least two, from which a variance is estimated",
        )
        check(enough, "values", expected, n)
        spread = float(numbers.var()) if n > 1 else 0.0
        mean = float(numbers.mean())
        if examples is None or n == population or not math.isfinite(mean):
            return cls(mean, spread, n, population)
        places = _examples_of(examples, n, population)
        order = places.argsort()
        listed = tuple(places[order].tolist()), tuple(numbers[order].tolist())
        return cls(mean, spread, n, population, *listed)

    @property
    def variance(self) -> float:
        """Variance of the mean as an estimate of that over the whole set; 0 if it is not finite."""
        variance = self.spread * (1 / self.number - 1 / self.population)
        return variance if math.isfinite(variance) else 0.0

    def covariance(self, other: "Sample") -> float:
        """Return the covariance of two means, of samples of one set.

        Samples without numbers of their examples count as drawn independently of each other. Of too few
        common examples the correlation is unknown; it is the one of 0 and 1 with the smaller covariance.

        Raises:
            InvalidArgumentError: If the samples have numbers of examples, of sets of other sizes.
        """
        if self.examples is None or other.examples is None:
            return 0.0
        same, expected = self.population == other.population, f"{other.population}, as before"
        check(same, "population", expected, self.population)
        x, y = self._common(other)
        factor = len(x) / (self.number * other.number) - 1 / self.population
        correlation = _correlation(x, y)
        if math.isnan(correlation):
            correlation = 1.0 if factor < 0 else 0.0
        return correlation * math.sqrt(self.spread * other.spread) * factor

    def _common(self, other: "Sample") -> tuple[Tensor, Tensor]:
        """Return the values of the examples that both samples have."""
        ours, theirs = (torch.tensor(sample.examples) for sample in (self, other))
        x, y = (torch.tensor(s.values, dtype=torch.float64) for s in (self, other))
        return x[torch.isin(ours, theirs)], y[torch.isin(theirs, ours)]

    def state_dict(self) -> dict[str, Any]:
        """Return the fields in values that JSON preserves."""
        lists = (None if t is None else list(t) for t in (self.examples, self.values))
        names = ("mean", "spread", "number", "population")
        fields = {name: getattr(self, name) for name in names}
        return {**fields, **dict(zip(("examples", "values"), lists, strict=True))}

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> "Sample | None":
        """Return the sample of a ``state_dict``; None of None.

        Raises:
            TypeError, InvalidArgumentError: If it is damaged.
        """
        if state is None:
            return None
        listed = {**state}
        for name in ("examples", "values"):
            listed[name] = None if listed.get(name) is None else tuple(listed[name])
        sample = cls(**listed)
        number, population = (
            check_count(name, getattr(sample, name), minimum=1) for name in ("number", "population")
        )
        check(number <= population, "number", f"at most {population}", number)
        fits = math.isfinite(sample.mean) and 0 <= sample.spread < math.inf
        check(fits, "sample", "a finite mean and variance", (sample.mean, sample.spread))
        lengths = {len(t) for t in (sample.examples, sample.values) if t is not None}
        whole = lengths in (set(), {number}) and (sample.examples is None) == (
            sample.values is None
        )
        check(whole, "sample", f"{number} values and examples, or none", lengths)
        return sample


def _numbers_of(values: Any) -> Tensor:
    """Return the values as float64 on the CPU, shape ``(n,)``."""
    try:
        numbers = torch.as_tensor(values, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidArgumentError("values", "numbers, one for each example", values) from error
    shape, fits = tuple(numbers.shape), numbers.dim() == 1 and len(numbers) > 0
    check(fits, "values", "one number for each example, shape (n,)", shape, InvalidShapeError)
    return numbers


def _examples_of(examples: Any, number: int, population: int) -> Tensor:
    """Return numbers of examples on the CPU, shape ``(number,)``."""
    try:
        places = torch.as_tensor(examples).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError("examples", "numbers of examples", examples) from error
    shape, expected = tuple(places.shape), f"{number} numbers, one for each value"
    check(shape == (number,), "examples", expected, shape, InvalidShapeError)
    is_integer = not (
        places.is_floating_point() or places.is_complex() or places.dtype is torch.bool
    )
    inside = is_integer and bool(((places >= 0) & (places < population)).all())
    distinct = inside and len(places.unique()) == number
    check(distinct, "examples", f"different numbers from 0 to {population - 1}", examples)
    return places.long()


def _correlation(x: Tensor, y: Tensor) -> float:
    """Return the correlation of pairs; NaN where it is not defined."""
    if len(x) < 2:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    size = (x.square().sum() * y.square().sum()).sqrt()
    return float((x @ y) / size) if float(size) > 0 else math.nan
