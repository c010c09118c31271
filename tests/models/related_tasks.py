"""Earlier tasks of which one is the target, one resembles it, and one is its negative."""

import torch
from botorch.models import SingleTaskGP

from botorch_costly.models import TaskEnsemble
from tests.oracles import transfer as oracle

SIZES = (14, 11, 17)


def target_function(X):
    return (5 * X[:, 0]).sin() + (X[:, 1] - 0.4).square()


def other_function(X):
    return target_function(X) + 0.7 * (9 * X[:, 1]).cos()


FUNCTIONS = (target_function, other_function, lambda X: -target_function(X))


def points(n, seed=0, **tkwargs):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, 2, generator=generator, dtype=torch.float64).to(**tkwargs)


def ensemble(order=(0, 1, 2), **tkwargs):
    """The target itself, a relative and the negative, each with observations of its own."""
    inputs = [points(SIZES[i], 10 + i, **tkwargs) for i in order]
    values = [3 + 2 * FUNCTIONS[i](X) for i, X in zip(order, inputs, strict=True)]
    return TaskEnsemble(inputs, values).fit()


def observed(n, **tkwargs):
    """Some observations of the target."""
    X = points(n, 3, **tkwargs)
    return X, (1 + 4 * target_function(X)).unsqueeze(-1)


def process(n=9, **tkwargs):
    """The target's own process, with hyperparameters set by hand."""
    model = SingleTaskGP(*observed(n, **tkwargs))
    model.covar_module.lengthscale = 0.5
    model.likelihood.noise = 1e-3
    return model.eval()


def naive_posteriors(tasks, X):
    """Posteriors of all tasks by dense solves."""
    for i in range(tasks.count):
        seen = tasks.seen[i]
        cov = oracle.matern52(tasks.lengthscale[i].tolist(), float(tasks.variance[i]))
        x, y = tasks.inputs[i, seen].tolist(), tasks.targets[i, seen].numpy()
        yield oracle.task_posterior(cov, x, y, float(tasks.noise[i]), X.tolist())
