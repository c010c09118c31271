"""Three similar tasks, and a similarity for tests."""

import torch

from botorch_costly.models import Similarity, TaskEnsemble


def points(n, seed, tkwargs):
    draws = torch.Generator().manual_seed(seed)
    return torch.rand(n, 2, generator=draws, dtype=torch.float64).to(**tkwargs)


def truth(X, sign=1.0):
    return 3 + sign * ((4 * X[:, 0]).sin() - (X[:, 1] - 0.6) ** 2)


def alike_tasks(tkwargs):
    inputs = [points(n, seed, tkwargs) for seed, n in enumerate((20, 15, 18))]
    values = [truth(x) + 0.1 * k * x[:, 1] for k, x in enumerate(inputs)]
    return TaskEnsemble(inputs, values).fit()


def believed_similarity(tkwargs):
    numbers = (torch.tensor(value, **tkwargs) for value in (0.9, 0.4, 0.3, 0.05))
    return Similarity(*numbers, torch.tensor([0.5, 0.8], **tkwargs))
