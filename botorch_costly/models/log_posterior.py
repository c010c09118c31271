"""The log density of the hyperparameters of a batch of GPs: evidence times priors, over raw parameters.

It is asked for many times, so what does not change is looked up once: parameters, constraints, priors.
Normal and log-normal priors, and the usual constraints, are computed all at a time.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from gpytorch.module import Module
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from botorch_costly.kernels.dense import covariance

_JITTER = 1e-8  # of the mean variance
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def free_parameters(model: Module) -> list[Tensor]:
    """Return the raw parameters that are learnt."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def assign(parameters: list[Tensor], raw: Tensor) -> None:
    """Give the raw parameters of ``k`` models their values, one row of ``raw``, ``k x p``, each."""
    first = 0
    for parameter in parameters:
        count = parameter[0].numel()
        parameter.data.copy_(raw[:, first : first + count].reshape(parameter.shape))
        first += count


def factored(model: SingleTaskGP) -> tuple[Tensor, Tensor, Tensor]:
    """Return the factor of the data's covariance, whether it failed, and the targets less the mean."""
    X = model.train_inputs[0]
    cov = covariance(model.covar_module, X, X)
    noise = model.likelihood.noise_covar(X, shape=X.shape[:-1])
    residual = model.train_targets - model.mean_module(X)
    jitter = _JITTER * cov.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True)
    added = noise.diagonal(dim1=-2, dim2=-1) + jitter
    root, failed = torch.linalg.cholesky_ex(cov + torch.diag_embed(added))
    return root, failed > 0, residual


class LogPosterior:
    """The log density of raw parameters given the data of a model, up to a constant.

    It is minus infinity where a covariance has no Cholesky factor.

    Args:
        model: Of batch shape ``(k,)``. Its parameters are those of the latest call.
    """

    def __init__(self, model: SingleTaskGP) -> None:
        self._model = model
        self._free = free_parameters(model)
        self._priors = _Priors(model)
        self._constrained = [
            (raw, constraint)
            for _, raw, constraint in model.named_parameters_and_constraints()
            if constraint is not None
        ]

    def __call__(self, raw: Tensor) -> Tensor:  # shapes: (k, p) -> (k,)
        """Give the models their raw parameters, one row each, and return the log densities."""
        assign(self._free, raw)
        root, failed, residual = factored(self._model)
        scaled = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False)
        log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        evidence = -0.5 * scaled.square().sum((-2, -1)) - log_det
        evidence = torch.where(failed, -torch.inf, evidence)
        return evidence + self._priors.log_density() + self._log_jacobian()

    def _log_jacobian(self) -> Tensor:  # shape: (k,)
        """Return the logarithm of the derivatives of the parameters by their raw values."""
        parts = [_log_slope(raw, constraint) for raw, constraint in self._constrained]
        if not parts:
            return self._model.train_targets.new_zeros(self._model.batch_shape)
        return torch.cat([part.reshape(len(part), -1) for part in parts], -1).sum(-1)


def _log_slope(raw: Tensor, constraint: Any) -> Tensor:
    """Return the logarithm of the derivative of a constraint's transform."""
    raw = raw.detach()
    if isinstance(constraint, GreaterThan) and constraint.enforced:
        if constraint._transform is torch.exp:
            return raw
        if isinstance(constraint._transform, nn.Softplus):
            return F.logsigmoid(constraint._transform.beta * raw)
    with torch.enable_grad():
        leaf = raw.requires_grad_(True)
        (slope,) = torch.autograd.grad(constraint.transform(leaf).sum(), leaf)
    return slope.log()


class _Priors:
    """All priors of a model: normal and log-normal ones at a time, others one by one."""

    def __init__(self, model: SingleTaskGP) -> None:
        self._model = model
        self._others: list[tuple[Any, Callable[[], Tensor]]] = []
        self._values: list[Callable[[], Tensor]] = []
        means, scales, logarithmic = [], [], []
        for _, module, prior, closure, _ in model.named_priors():
            value = _reader(closure, module)
            if type(prior) not in (NormalPrior, LogNormalPrior):
                self._others.append((prior, value))
                continue
            like = value()
            self._values.append(value)
            means.append(prior.loc.to(like).expand(like.shape[1:]).flatten())
            scales.append(prior.scale.to(like).expand(like.shape[1:]).flatten())
            logarithmic.append(torch.full_like(means[-1], type(prior) is LogNormalPrior))
        if self._values:
            self._mean, self._scale = torch.cat(means), torch.cat(scales)
            self._logarithmic = torch.cat(logarithmic).bool()
            self._constant = float(-self._scale.log().sum() - _LOG_ROOT * len(self._scale))

    def log_density(self) -> Tensor:  # shape: (k,)
        """Return the sum of all log densities."""
        total = self._model.train_targets.new_zeros(self._model.batch_shape)
        if self._values:
            x = torch.cat([value() for value in self._values], -1)
            log_x = torch.where(self._logarithmic, x, 1.0).log()
            place = (torch.where(self._logarithmic, log_x, x) - self._mean) / self._scale
            total = total + self._constant - (0.5 * place.square() + log_x).sum(-1)
        for prior, value in self._others:
            total = total + prior.log_prob(value()).sum(-1)
        return total


def _reader(closure: Callable[[Any], Tensor], module: Module) -> Callable[[], Tensor]:
    """Return what reads the parameter of a prior, ``(k, p)``."""

    def read() -> Tensor:
        value = closure(module)
        return value.reshape(len(value), -1)

    return read
