"""Models: ``make(tkwargs, seen)`` makes one with data, and settings worth saving, if ``seen``.

Otherwise it is as a program would make it before it loads a state.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from botorch.models import SingleTaskGP

from botorch_costly.baselines import EmpiricalPriorGP, RankWeightedGP, ScaMLGP
from botorch_costly.models import (
    CurveGP,
    DriftingGrid,
    Similarity,
    StreamingGP,
    SubsetGP,
    TaskEnsemble,
    TimeVaryingGP,
    TransferGP,
)
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.numerics.stationary import Stationary
from tests.registry.inputs import arm_and_round, arms, story, unit_and_round, unit_and_share


class ModelCase(NamedTuple):
    make: Callable
    questions: Callable[[int, torch.Generator], torch.Tensor]


def _time_varying(tkwargs, seen):
    X, y = story(unit_and_round)
    model = TimeVaryingGP(X.to(**tkwargs), y[:, None].to(**tkwargs))
    if seen:
        model.time_kernel.forgetting = 0.2
        model.likelihood.noise = torch.tensor([0.1], **tkwargs)
    return model


def _streaming(tkwargs, seen, family="matern52", questions=unit_and_round):
    scale = torch.tensor(1.3, **tkwargs)
    kernel = Stationary(family, torch.tensor([0.4], **tkwargs), scale)
    model = StreamingGP(kernel, forgetting=0.2, noise=0.1)
    for x, y in zip(*story(questions), strict=True) if seen else ():
        model.observe(x.to(**tkwargs), float(y))
    return model


def _streaming_case(family):
    questions = arm_and_round if family == "arms" else unit_and_round
    return ModelCase(lambda tkwargs, seen: _streaming(tkwargs, seen, family, questions), questions)


def _subset_gp(tkwargs, seen):
    X, y = story(unit_and_share)
    model = SubsetGP(X.to(**tkwargs), y[:, None].to(**tkwargs))
    if seen:
        model.likelihood.noise_covar.alpha = 0.3
        model.covar_module.kernels[1].change = 2.0
    return model.eval()


def _after_tasks(tkwargs, seen):
    """The first column is what one earlier task says."""
    X, y = story(unit_and_share)
    model = SubsetGP(X.to(**tkwargs), y[:, None].to(**tkwargs), earlier=(0,))
    if seen:
        model.mean_module.slope = -2.0
    return model.eval()


def _scaled(tkwargs, seen):
    """Two tasks over configuration and round, and a target that resembles them."""
    X = torch.rand(3, 8, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    X = X.to(**tkwargs)
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    model = ScaMLGP(tasks, X[2], X[2].sum(-1, keepdim=True).cos())
    return model.fit(max_iter=20) if seen else model


def _transfer(tkwargs, seen):
    """Two tasks over configuration and round, and a target with other values if not seen."""
    X = torch.rand(3, 8, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    X = X.to(**tkwargs)
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    level = torch.tensor(0.8 if seen else 1.0, **tkwargs)
    similarity = Similarity(level, level, level / 2, level / 50, torch.full((3,), 0.6, **tkwargs))
    rows = 8 if seen else 5
    return TransferGP(tasks, similarity, X[2, :rows], X[2, :rows].sum(-1, keepdim=True).cos())


def _rank_weighted(tkwargs, seen):
    """Two tasks over configuration and round, and a target that resembles the first."""
    X = torch.rand(3, 8, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    X = X.to(**tkwargs)
    said = X[2].sum(-1, keepdim=True).sin()
    target = SingleTaskGP(X[2], (said - said.mean()) / said.std(), outcome_transform=None)
    if seen:
        target.covar_module.lengthscale = 2.0
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    return RankWeightedGP(tasks, target)


def _curve(tkwargs, seen):
    """Four curves of five iterations."""
    draws = torch.Generator().manual_seed(17)
    configs = torch.rand(4, 2, generator=draws, dtype=torch.float64).to(**tkwargs)
    curves = torch.rand(4, 5, generator=draws, dtype=torch.float64).to(**tkwargs).cumsum(-1)
    model = CurveGP(configs, curves.sqrt() if seen else curves.flip(0))
    if seen:
        model.likelihood.noise = torch.tensor([0.1], **tkwargs)
    return model.eval()


def _empirical(tkwargs, seen):
    """Over three arms, on which 20 earlier tasks have values."""
    values = torch.randn(20, 3, generator=torch.Generator().manual_seed(18), dtype=torch.float64)
    X, y = (part.to(**tkwargs) for part in story(arms))
    return EmpiricalPriorGP(values.to(**tkwargs), X, float(seen) * y[:, None], noise=0.1)


def _grid(tkwargs, seen):
    x = torch.arange(3.0, **tkwargs)[:, None]
    model = DriftingGrid((-(x - x.mT).abs()).exp(), forgetting=0.2, noise=0.1)
    for x, y in zip(*story(arms), strict=True) if seen else ():
        model.observe(x[0].long(), y)
        model.wait()
    return model


MODELS = {
    "TimeVaryingGP": ModelCase(_time_varying, unit_and_round),
    "SubsetGP": ModelCase(_subset_gp, unit_and_share),
    "SubsetGP after tasks": ModelCase(_after_tasks, unit_and_share),
    "ScaMLGP": ModelCase(_scaled, unit_and_round),
    "TransferGP": ModelCase(_transfer, unit_and_round),
    "RankWeightedGP": ModelCase(_rank_weighted, unit_and_round),
    "CurveGP": ModelCase(_curve, unit_and_share),
    "EmpiricalPriorGP": ModelCase(_empirical, arms),
    "DriftingGrid": ModelCase(_grid, arms),
    **{f"StreamingGP {family}": _streaming_case(family) for family in FAMILIES},
}
