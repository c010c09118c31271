"""Problems to decide on: queries at a drifting function, believed by both models alike.

One configuration a round is drawn at random and queried. The belief knows the hyperparameters of the
function. No query is dropped from it, however old, because BoTorch's model drops none either.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import StreamingGP, TimeVaryingGP
from botorch_costly.numerics.cholesky import factorize
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.problems import DriftingSample

FAMILY, FORGETTING, NOISE = "matern52", 0.01, 0.1  # the noise is a variance; that of the prior is 1
RATIOS = (0.2, 0.5, 1.0)  # of the lengthscale to the diagonal of the cube
_NEVER = 1e-100  # weight below which a query is dropped


class Problem(NamedTuple):
    """Queries at a function, the last of them not learnt yet."""

    inputs: Tensor  # [configuration, round], shape: (n + 1, d + 1)
    rewards: Tensor  # shape: (n + 1,)
    lengthscale: float

    @property
    def dim(self) -> int:
        """Columns of a configuration."""
        return self.inputs.shape[-1] - 1

    @property
    def bounds(self) -> Tensor:
        """The unit cube, ``2 x d``."""
        zeros = self.inputs.new_zeros(self.dim)
        return torch.stack([zeros, zeros + 1])


def draw(
    n: int, dim: int, seed: int, device: torch.device | str = "cpu", ratio: float | None = None
) -> Problem:
    """Draw ``n`` queries that are learnt already, and one more, all from a seed.

    ``ratio`` is that of the lengthscale to the root of the dimension; drawn from ``RATIOS`` if omitted.
    """
    generator = torch.Generator().manual_seed(seed)
    pick = int(torch.randint(len(RATIOS), (), generator=generator))
    lengthscale = (RATIOS[pick] if ratio is None else ratio) * math.sqrt(dim)
    path = DriftingSample(dim, lengthscale, FORGETTING, FAMILY).path(n + 1, generator)
    inputs = torch.rand(n + 1, dim + 1, generator=generator, dtype=torch.float64)
    inputs[:, -1] = torch.arange(n + 1)
    values = [path.value(t, x[None, :-1]) for t, x in enumerate(inputs)]
    noise = NOISE**0.5 * torch.randn(n + 1, generator=generator, dtype=torch.float64)
    return Problem(inputs.to(device), (torch.cat(values) + noise).to(device), lengthscale)


def kernel_of(problem: Problem) -> Stationary:
    """Return the covariance over configurations."""
    like = problem.inputs
    lengthscale = torch.full_like(like[0, :-1], problem.lengthscale)
    return Stationary(FAMILY, lengthscale, like.new_ones(()))


def noisy_covariance(problem: Problem) -> Tensor:  # shape: (n, n)
    """Return the covariance of the rewards that are learnt already."""
    X, rounds = problem.inputs[:-1, :-1], problem.inputs[:-1, -1]
    keep = retention(X.new_tensor(FORGETTING), (rounds[:, None] - rounds).abs())
    noisy = covariance(kernel_of(problem), X, X) * keep
    noisy.diagonal().add_(NOISE)
    return noisy


def streaming(problem: Problem) -> StreamingGP:
    """Return our belief after all queries but the last."""
    rows = len(problem.inputs)
    belief = StreamingGP(kernel_of(problem), FORGETTING, NOISE, _NEVER, maximum_rows=rows)
    learnt = problem.rewards[:-1]
    known = {
        "factor": list(factorize(noisy_covariance(problem), learnt.unsqueeze(-1))),
        "inputs": problem.inputs[:-1],
        "rewards": learnt,
        "targets": learnt,
    }
    belief.set_extra_state({**belief.get_extra_state(), **known})
    return belief


def botorch_model(problem: Problem) -> TimeVaryingGP:
    """Return the same belief as a BoTorch model, its caches warm."""
    X, Y = problem.inputs[:-1], problem.rewards[:-1].unsqueeze(-1)
    noise = torch.full_like(Y, NOISE)
    model = TimeVaryingGP(X, Y, noise, forgetting=FORGETTING, outcome_transform=None)
    model.space_kernel.base_kernel.lengthscale = torch.full_like(X[0, :-1], problem.lengthscale)
    model.space_kernel.outputscale = X.new_ones(())
    model.eval()
    with torch.no_grad():
        model.posterior(X[:1])  # BoTorch conditions only a model that has predicted
    return model
