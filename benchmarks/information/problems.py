"""Functions on the unit cube whose maximum is known, in units of their standard deviation."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

import torch
from botorch.test_functions import Branin, Hartmann
from botorch.test_functions.synthetic import SyntheticTestFunction
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.problems import DriftingSample

LENGTHSCALE = 0.2  # of samples of a Gaussian process, in each coordinate
_FEATURES = 2000
_STANDARD = 4096  # points over which a function is standardized


class Problem(NamedTuple):
    """A function, and how it is played."""

    dim: int
    value: Callable[[Tensor], Tensor]  # of rows, (n, d) -> (n,)
    best: float  # its maximum
    noise: float  # standard deviation of an observation
    known: bool  # whether methods are told the hyperparameters


@lru_cache(maxsize=4)  # the search for its maximum takes seconds
def sample(noise: float, seed: int) -> Problem:
    """Return a draw of a Gaussian process with a Matérn-5/2 kernel and prior variance 1, in 2-D."""
    truth = DriftingSample(2, LENGTHSCALE, forgetting=0.0, num_features=_FEATURES)
    path = truth.path(horizon=1, generator=torch.Generator().manual_seed(seed))
    return Problem(2, lambda X: path.value(0, X), path.maximum(0), noise, known=True)


@cache
def standardized(name: str) -> Problem:
    """Return Branin's function or Hartmann's in 3-D, upside down, with mean 0 and variance 1."""
    function: SyntheticTestFunction = Branin() if name == "branin" else Hartmann(dim=3)
    low, high = function.bounds.double()

    def raw(X: Tensor) -> Tensor:
        return -function.evaluate_true(low + (high - low) * X.double())

    engine = SobolEngine(function.dim, scramble=True, seed=0)
    values = raw(engine.draw(_STANDARD, dtype=torch.float64))
    level, spread = values.mean(), values.std()
    best = (-function.optimal_value - float(level)) / float(spread)
    return Problem(function.dim, lambda X: (raw(X) - level) / spread, best, 0.0, known=False)


PROBLEMS: Mapping[str, Callable[[int], Problem]] = {
    "GP sample": lambda seed: sample(0.01, seed),
    "branin": lambda seed: standardized("branin"),
    "hartmann3": lambda seed: standardized("hartmann3"),
}
"""Name of a problem to what makes it of a seed."""
