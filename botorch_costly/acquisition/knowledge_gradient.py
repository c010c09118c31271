r"""Knowledge gradient of a drifting function: the expected rise of the best posterior mean by a query.

The maximum is taken over a finite *discretization*, such as the local optima of mean and UCB, and the
configuration itself. With all points of a finite domain it is exact; otherwise it is a differentiable
lower bound of the knowledge gradient over the continuum.
"""

from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_costly.acquisition.fixed_round import as_numbers, as_round, at_round
from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_nonnegative
from botorch_costly.models.covariance import ProjectedRows, covariances_of
from botorch_costly.numerics.knowledge_gradient import (
    FAR_OUTCOMES,
    expected_rise,
    rough_rise,
    slopes,
)


class TimeVaryingKG(AcquisitionFunction):
    """``mean(x, now) + H KG(x, now)``: reward of a query plus its gain over an effective horizon ``H``.

    References:
        - P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated normal
          beliefs. INFORMS Journal on Computing 21(4), 2009, eq. (7).
        - W. Scott, P. Frazier, W. Powell. The correlated knowledge gradient for simulation
          optimization of continuous parameters. SIAM Journal on Optimization 21(3), 2011.

    Args:
        model: A single-outcome model over ``[configuration, round]``, maximized.
        discretization: Configurations for the maximum, ``m x d``; the candidate is added.
        now: The round of the decision.
        effective_horizon: Number of rounds for which the gain of a query counts.
        noise: Noise variance of a query; by default the model's at the first configuration of the
            discretization.
        rough: Whether to compute a lower bound of the gain, which is much faster, as in a search.
        tolerance: Unit of error of an exact gain, in rewards: it may be a few units too small, which
            saves time, too.

    Raises:
        InvalidArgumentError: If ``effective_horizon`` or ``noise`` is negative or not finite, or
            ``now`` is not a finite number.
        InvalidShapeError: If the discretization is empty.

    Example:
        >>> from botorch_costly.models import StreamingGP
        >>> from botorch_costly.numerics.stationary import Stationary
        >>> kernel = Stationary("matern52", torch.tensor([0.3]), torch.tensor(1.0))
        >>> belief = StreamingGP(kernel, forgetting=0.1, noise=0.01)
        >>> belief.observe(torch.tensor([0.2, 0.0]), 1.0)
        >>> grid = torch.tensor([[0.2], [0.8]])
        >>> where = TimeVaryingKG(belief, discretization=grid, now=1.0, effective_horizon=10.0)
        >>> [round(v, 2) for v in where(torch.tensor([[[0.2]], [[0.8]]])).tolist()]
        [0.94, 1.23]
    """

    def __init__(
        self,
        model: Model,
        discretization: Tensor,
        now: float | Tensor,
        effective_horizon: float | Tensor,
        noise: float | Tensor | None = None,
        *,
        rough: bool = False,
        tolerance: float = 0.0,
    ) -> None:
        super().__init__(model)
        self._rough = rough
        self._tolerance = check_nonnegative("tolerance", tolerance)
        fits = discretization.dim() == 2 and len(discretization) > 0
        expected, shape = "at least one configuration, m x d", tuple(discretization.shape)
        check(fits, "discretization", expected, shape, InvalidShapeError)
        self.register_buffer("now", as_round(now))
        self.register_buffer("discretization", at_round(discretization, self.now))
        prepared = covariances_of(model).project(self.discretization)
        self.register_buffer("_projected", prepared.projected)
        self.register_buffer(
            "effective_horizon", _nonnegative("effective_horizon", effective_horizon)
        )
        with torch.no_grad():
            mean, _, _ = self._covariance_with(self.discretization)
            if noise is None:
                first = self.discretization[:1]
                noisy = model.posterior(first, observation_noise=True).variance
                noise = (noisy - model.posterior(first).variance).clamp_min(0).squeeze()
        self.register_buffer("discretization_mean", mean)
        self.register_buffer("noise", _nonnegative("noise", noise))

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return ``mean + effective horizon KG`` of ``batch x 1 x d`` configurations, shape ``batch``."""
        mean, gain = self.mean_and_gain(X.squeeze(-2))
        return mean + moved(self.effective_horizon, mean) * gain

    def mean_and_gain(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and knowledge gradient of configurations ``(*batch, d)``, each ``(*batch,)``."""
        mean, _, gain = self.terms(at_round(x, self.now))
        return mean, gain

    def terms(self, rows: Tensor | ProjectedRows) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, variance and knowledge gradient of ``[x, now]`` rows.

        Rows may be prepared by the ``project`` method of a model that ``HasCovariances``.
        """
        mean, variance, cov = self._covariance_with(rows)
        heights = self.discretization_mean.to(mean).expand(*mean.shape, -1)
        level = torch.cat([mean.unsqueeze(-1), heights], -1)
        cov = torch.cat([variance.unsqueeze(-1), cov], -1)
        slope = slopes(cov, variance, moved(self.noise, mean))
        if self._rough:
            return mean, variance, rough_rise(level, slope, FAR_OUTCOMES)
        return mean, variance, expected_rise(level, slope, self._tolerance)

    def _covariance_with(self, rows: Tensor | ProjectedRows) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance of rows and their covariances with the discretization, (*batch, m)."""
        discretization = ProjectedRows(self.discretization, self._projected)
        return covariances_of(self.model).covariance_with(rows, discretization)


def _nonnegative(name: str, value: float | Tensor) -> Tensor:
    number = as_numbers(name, value)
    valid = bool(((number >= 0) & number.isfinite()).all()) and number.numel() == 1
    check(valid, name, "one finite number >= 0", value, InvalidArgumentError)
    return number.detach().reshape(())


@acqf_input_constructor(TimeVaryingKG)
def construct_inputs_time_varying_kg(
    model: Model,
    discretization: Tensor,
    now: float,
    effective_horizon: float | Tensor,
    noise: float | Tensor | None = None,
    *,
    rough: bool = False,
    tolerance: float = 0.0,
) -> dict[str, Any]:
    """Return the keyword arguments of ``TimeVaryingKG``."""
    return {
        "model": model,
        "discretization": discretization,
        "now": now,
        "effective_horizon": effective_horizon,
        "noise": noise,
        "rough": rough,
        "tolerance": tolerance,
    }
