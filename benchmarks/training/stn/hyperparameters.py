"""Hyperparameters that a gradient may move: unconstrained numbers, their bounds, their perturbation.

A hyperparameter between ``low`` and ``high`` is ``low + (high - low) sigmoid(h)``, and ``h`` may be any
number. A batch sees each of its examples under hyperparameters of its own,

    h + softplus(s) * N(0, 1),

so that the weights learn how to respond to hyperparameters near ``h``. The entropy of these draws counts
for something, since the validation loss alone would have none of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import check, check_count, check_positive

_LARGEST_START = 1 - 1e-6  # share of the range: at its ends h would be infinite


@dataclass(frozen=True)
class Bounds:
    """Between which numbers a hyperparameter lies, and where it starts.

    Raises:
        InvalidArgumentError: If the bounds are not finite, or the start does not lie between them.

    Example:
        >>> Bounds(0.0, 0.9, start=0.05).high
        0.9
    """

    low: float  # the lower bound, in the units of the hyperparameter
    high: float  # the upper bound
    start: float  # what it is at first, strictly between the two
    whole: bool = False  # whether it is rounded down to an integer where it is used

    def __post_init__(self) -> None:
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        check(
            finite and self.low < self.high,
            "bounds",
            "finite numbers, low < high",
            (self.low, self.high),
        )
        between = self.low < self.start < self.high
        check(between, "start", f"a number between {self.low} and {self.high}", self.start)


class Hyperparameters(nn.Module):
    """What is tuned: the centre and the scale of the perturbation of each hyperparameter.

    References:
        M. MacKay, P. Vicol, J. Lorraine, D. Duvenaud, R. Grosse. Self-tuning networks. ICLR 2019.

    Args:
        bounds: Of each of the ``k`` hyperparameters, by name.
        scale: Standard deviation of the perturbation at first, in units of the unconstrained numbers.

    Raises:
        InvalidArgumentError: If there is no hyperparameter, or the scale is not positive.

    Example:
        >>> found = Hyperparameters({"dropout": Bounds(0.0, 0.8, start=0.4)})
        >>> {name: round(value, 6) for name, value in found.current().items()}
        {'dropout': 0.4}
    """

    start: Tensor  # shape: (k,), unconstrained
    low: Tensor  # shape: (k,)
    span: Tensor  # shape: (k,)
    whole: Tensor  # shape: (k,)

    def __init__(self, bounds: Mapping[str, Bounds], scale: float = 0.5) -> None:
        super().__init__()
        check(len(bounds) > 0, "bounds", "at least one hyperparameter", dict(bounds))
        check_positive("scale", scale)
        self.names = tuple(bounds)
        each = bounds.values()
        starts = [(b.start - b.low) / (b.high - b.low) for b in each]
        share = torch.tensor(starts).clamp(1 - _LARGEST_START, _LARGEST_START)
        self.centre = nn.Parameter(share.logit())
        self.register_buffer("start", share.logit())
        self.raw_scale = nn.Parameter(torch.full_like(share, math.log(math.expm1(scale))))
        self.register_buffer("low", torch.tensor([b.low for b in each]))
        self.register_buffer("span", torch.tensor([b.high - b.low for b in each]))
        self.register_buffer("whole", torch.tensor([b.whole for b in each]))

    @property
    def scale(self) -> Tensor:  # shape: (k,)
        """Standard deviation of the perturbation."""
        return F.softplus(self.raw_scale)

    def perturbed(self, count: int, generator: Generator) -> Tensor:  # shape: (count, k)
        """Draw unconstrained hyperparameters for so many examples, differentiable in centre and scale."""
        shape, like = (check_count("count", count), len(self.names)), self.centre
        noise = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
        return self.centre + self.scale * noise

    def since_start(self, unconstrained: Tensor) -> Tensor:  # shape: (..., k)
        """Return unconstrained hyperparameters counted from their start, as layers respond to them.

        It moves ``W``, not what weights there can be: ``W + (H h) o W'`` is ``(W + (H h_0) o W') + (H
        (h - h_0)) o W'``. Near an end of its range an ``h`` is far from 0, and descent would be unstable.
        """
        return unconstrained - self.start

    def constrained(self, unconstrained: Tensor) -> Tensor:  # shape: (..., k)
        """Return what unconstrained numbers stand for, within the bounds."""
        values = self.low + self.span * unconstrained.sigmoid()
        return torch.where(self.whole, values.floor(), values)

    def entropy(self) -> Tensor:  # shape: ()
        """Return the entropy of the perturbation of all hyperparameters, in nats."""
        return (self.scale.log() + 0.5 * math.log(2 * math.pi * math.e)).sum()

    def current(self) -> dict[str, float]:
        """Return the hyperparameters as they are without perturbation, integers not rounded."""
        with torch.no_grad():
            values = self.low + self.span * self.centre.sigmoid()
        return dict(zip(self.names, values.tolist(), strict=True))
