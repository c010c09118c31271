"""The log density of hyperparameters by GPyTorch's own kernels, priors and constraints, one by one."""

import torch
from gpytorch.distributions import MultivariateNormal


def log_posterior(model):  # shape: (k,)
    """Evidence times priors over raw parameters, without the constant of the evidence."""
    X, jitter = model.train_inputs[0], 1e-8
    prior = model.covar_module(X).to_dense()
    noise = model.likelihood.noise_covar(X, shape=X.shape[:-1]).to_dense()
    extra = (
        jitter * prior.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None] * torch.eye(X.shape[-2])
    )
    evidence = MultivariateNormal(model.mean_module(X), prior + noise + extra.to(prior))
    value = evidence.log_prob(model.train_targets)
    value = value + 0.5 * X.shape[-2] * torch.log(torch.tensor(2 * torch.pi, dtype=X.dtype))
    for _, module, prior, closure, _ in model.named_priors():
        value = value + prior.log_prob(closure(module)).reshape(len(value), -1).sum(-1)
    for _, raw, constraint in model.named_parameters_and_constraints():
        if constraint is not None:
            leaf = raw.detach().requires_grad_(True)
            (slope,) = torch.autograd.grad(constraint.transform(leaf).sum(), leaf)
            value = value + slope.log().reshape(len(value), -1).sum(-1)
    return value
