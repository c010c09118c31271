"""Log posterior density of the raw hyperparameters of a batch of GPs: marginal likelihood times priors.

As it is evaluated many times, parameters, constraints and priors are looked up once. Normal and
log-normal priors are evaluated together, and common constraints have analytic Jacobians.
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
from botorch_costly.numerics.cholesky import squared_norm_and_log_det

_JITTER = 1e-8  # relative to the mean variance
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def free_parameters(model: Module) -> list[Tensor]:
    """Return the raw parameters that are learnt."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def assign(parameters: list[Tensor], raw: Tensor) -> None:
    """Copy each row of ``raw``, ``k x p``, into the raw parameters of one of ``k`` models."""
    first = 0
    for parameter in parameters:
        count = parameter[0].numel()
        parameter.data.copy_(raw[:, first : first + count].reshape(parameter.shape))
        first += count


def factored(model: SingleTaskGP) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Cholesky factor of the data's covariance, whether it failed, and targets minus mean."""
    X = model.train_inputs[0]
    cov = covariance(model.covar_module, X, X)
    noise = model.likelihood.noise_covar(X, shape=X.shape[:-1])
    residual = model.train_targets - model.mean_module(X)
    jitter = _JITTER * cov.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True)
    added = noise.diagonal(dim1=-2, dim2=-1) + jitter
    root, failed = torch.linalg.cholesky_ex(cov + torch.diag_embed(added))
    return root, failed > 0, residual


class LogPosterior:
    """The log posterior density of raw parameters given a model's data, up to a constant.

    It is minus infinity where a covariance has no Cholesky factor.

    Args:
        model: A model of batch shape ``(k,)``. Each call overwrites its parameters.
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
        """Set the raw parameters of the models, one row each, and return the log densities."""
        assign(self._free, raw)
        root, failed, residual = factored(self._model)
        squares, log_det = squared_norm_and_log_det(root, residual)
        evidence = torch.where(failed, -torch.inf, -0.5 * squares - log_det)
        return evidence + self._priors.log_density() + self._log_jacobian()

    def with_gradient(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log densities as a call does, and their gradients by ``raw``, ``(k, p)``."""
        with torch.enable_grad():
            value = self(raw)
            # Each density depends on its own row alone, so the gradient of the sum holds all gradients.
            total = torch.where(value.isfinite(), value, 0.0).sum()
            slopes = torch.autograd.grad(total, self._free, materialize_grads=True)
        return value.detach(), torch.cat([slope.reshape(len(raw), -1) for slope in slopes], -1)

    def _log_jacobian(self) -> Tensor:  # shape: (k,)
        slopes = [_log_slope(raw, constraint) for raw, constraint in self._constrained]
        if not slopes:
            return self._model.train_targets.new_zeros(self._model.batch_shape)
        return torch.cat([slope.reshape(len(slope), -1) for slope in slopes], -1).sum(-1)


def _log_slope(raw: Tensor, constraint: Any) -> Tensor:
    """Return the logarithm of the derivative of a constraint's transform, differentiable if asked for."""
    if isinstance(constraint, GreaterThan) and constraint.enforced:
        if constraint._transform is torch.exp:
            return raw
        if isinstance(constraint._transform, nn.Softplus):
            return F.logsigmoid(constraint._transform.beta * raw)
    wanted = torch.is_grad_enabled() and raw.requires_grad
    with torch.enable_grad():
        leaf = raw if wanted else raw.detach().requires_grad_(True)
        transformed = constraint.transform(leaf).sum()
        (slope,) = torch.autograd.grad(transformed, leaf, create_graph=wanted)
    return slope.log()


class _Priors:
    """All priors of a model: normal and log-normal priors evaluated together, others one by one."""

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
            z = (torch.where(self._logarithmic, log_x, x) - self._mean) / self._scale
            total = total + self._constant - (0.5 * z.square() + log_x).sum(-1)
        for prior, value in self._others:
            total = total + prior.log_prob(value()).sum(-1)
        return total


def _reader(closure: Callable[[Any], Tensor], module: Module) -> Callable[[], Tensor]:
    """Return a function that reads the parameter of a prior, ``(k, p)``."""

    def read() -> Tensor:
        value = closure(module)
        return value.reshape(len(value), -1)

    return read
