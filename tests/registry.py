"""Everything the laws in ``tests/laws`` hold for: a new method is one line here.

A kernel is made by ``make(batch_shape)`` in the default dtype; ``inputs(n, generator)`` are rows it
is meant for, in float64. A model is made by ``make(tkwargs, seen)``: with its data (and settings
worth saving) if ``seen``, and otherwise as a program would make it before loading a state. An
acquisition function is made by ``make(model)`` for a model over ``[x_1, x_2, round]``. A query rule
``tosses`` if it reads the generator. An optimizer is made by ``make(seed)`` and told a number by
``tell(optimizer, suggestion, number)``.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel

import botorch_costly as bc
from botorch_costly import bandits
from botorch_costly.acquisition import (
    PBGI,
    RMGPTS,
    RMGPUCB,
    TAF,
    Blend,
    EntropySearch,
    EntropySearchPerCost,
    LogEIPerCost,
    TaskUCB,
    TimeVaryingEI,
    TimeVaryingKG,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
)
from botorch_costly.kernels import (
    ArmKernel,
    ForgettingKernel,
    FreezeThawKernel,
    ShiftKernel,
    SubsetKernel,
)
from botorch_costly.models import (
    DriftingGrid,
    EmpiricalPriorGP,
    LinearCost,
    ScaMLGP,
    StreamingGP,
    SubsetGP,
    TaskEnsemble,
    TaskPaths,
    TimeVaryingGP,
)
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
    QueryRule,
)


class OptimizerCase(NamedTuple):
    make: Callable  # from a seed
    tell: Callable  # of an optimizer, a suggestion and a number
    horizon: int


class QueryCase(NamedTuple):
    rule: QueryRule
    tosses: bool


class KernelCase(NamedTuple):
    make: Callable[[torch.Size], Kernel]
    inputs: Callable[[int, torch.Generator], torch.Tensor]


class ModelCase(NamedTuple):
    make: Callable
    questions: Callable[[int, torch.Generator], torch.Tensor]


def _unit(n, generator):
    return torch.rand(n, 2, generator=generator, dtype=torch.float64, device=generator.device)


def _rounds(n, generator):
    return torch.randint(30, (n, 1), generator=generator, device=generator.device).double()


def _times(n, generator):
    return 3 * torch.rand(n, 1, generator=generator, dtype=torch.float64, device=generator.device)


def _shares(n, generator):
    return torch.rand(n, 1, generator=generator, dtype=torch.float64, device=generator.device)


def _unit_and_share(n, generator):
    return torch.cat([_unit(n, generator), _shares(n, generator)], -1)


def _units_and_shares(n, generator):
    return torch.stack([_shares(n, generator).squeeze(-1) for _ in range(4)], -1)


def _arms(n, generator):
    return torch.randint(3, (n, 1), generator=generator, device=generator.device).double()


def _unit_and_round(n, generator):
    return torch.cat([_unit(n, generator), _rounds(n, generator)], -1)


def _arm_and_round(n, generator):
    return torch.cat([_arms(n, generator), _rounds(n, generator)], -1)


def _matern(batch, **kwargs):
    return ScaleKernel(MaternKernel(1.5, batch_shape=batch, **kwargs), batch_shape=batch)


def _forgetting(batch, column=None):
    dims = None if column is None else (column,)
    return ForgettingKernel(0.2, batch_shape=batch, active_dims=dims)


def _subset(basis, batch):
    kernel = SubsetKernel(basis, batch_shape=batch)
    kernel.end, kernel.change = 1.3, 0.4
    kernel.link = 0.6
    return kernel


def _shift(batch):
    base = MaternKernel(2.5, ard_num_dims=2, batch_shape=batch)
    kernel = ShiftKernel(base, configs=(0, 2), fidelities=(1, 3), moving=(2,))
    kernel.shift = torch.tensor([[0.3], [-0.2]])
    return kernel


def _arm(batch, column=None):
    return ArmKernel(1.7, batch_shape=batch, active_dims=None if column is None else (column,))


KERNELS = {
    "forgetting": KernelCase(_forgetting, _rounds),
    "arms": KernelCase(_arm, _arms),
    "freeze-thaw": KernelCase(
        lambda batch: FreezeThawKernel(alpha=1.3, beta=0.7, batch_shape=batch), _times
    ),
    "subset loss": KernelCase(lambda batch: _subset("loss", batch), _shares),
    "subset cost": KernelCase(lambda batch: _subset("cost", batch), _shares),
    "shift": KernelCase(_shift, _units_and_shares),
    "matern * forgetting": KernelCase(
        lambda batch: _matern(batch, active_dims=(0, 1)) * _forgetting(batch, 2), _unit_and_round
    ),
    "arms * forgetting": KernelCase(
        lambda batch: _arm(batch, 0) * _forgetting(batch, 1), _arm_and_round
    ),
}
SPECTRAL = ("forgetting", "matern * forgetting")  # whose features pathwise sampling draws


def _story(questions, n=12):
    generator = torch.Generator().manual_seed(11)
    X = questions(n, generator)
    return X, torch.randn(n, generator=generator, dtype=torch.float64)


def _time_varying(tkwargs, seen):
    X, y = _story(_unit_and_round)
    model = TimeVaryingGP(X.to(**tkwargs), y[:, None].to(**tkwargs))
    if seen:
        model.time_kernel.forgetting = 0.2
        model.likelihood.noise = torch.tensor([0.1], **tkwargs)
    return model


def _streaming(tkwargs, seen, family="matern52", questions=_unit_and_round):
    scale = torch.tensor(1.3, **tkwargs)
    kernel = Stationary(family, torch.tensor([0.4], **tkwargs), scale)
    model = StreamingGP(kernel, forgetting=0.2, noise=0.1)
    for x, y in zip(*_story(questions), strict=True) if seen else ():
        model.observe(x.to(**tkwargs), float(y))
    return model


def _streaming_case(family):
    questions = _arm_and_round if family == "arms" else _unit_and_round
    return ModelCase(lambda tkwargs, seen: _streaming(tkwargs, seen, family, questions), questions)


def _subset_gp(tkwargs, seen):
    X, y = _story(_unit_and_share)
    model = SubsetGP(X.to(**tkwargs), y[:, None].to(**tkwargs))
    if seen:
        model.likelihood.noise_covar.alpha = 0.3
        model.covar_module.kernels[1].change = 2.0
    return model.eval()


def _scaled(tkwargs, seen):
    """Two tasks over configuration and round, and a target that resembles them."""
    X = torch.rand(3, 8, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    X = X.to(**tkwargs)
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    model = ScaMLGP(tasks, X[2], X[2].sum(-1, keepdim=True).cos())
    return model.fit(max_iter=20) if seen else model


def _empirical(tkwargs, seen):
    """Over three arms, on which 20 earlier tasks have values."""
    values = torch.randn(20, 3, generator=torch.Generator().manual_seed(18), dtype=torch.float64)
    X, y = (part.to(**tkwargs) for part in _story(_arms))
    return EmpiricalPriorGP(values.to(**tkwargs), X, float(seen) * y[:, None], noise=0.1)


def _grid(tkwargs, seen):
    x = torch.arange(3.0, **tkwargs)[:, None]
    model = DriftingGrid((-(x - x.mT).abs()).exp(), forgetting=0.2, noise=0.1)
    for x, y in zip(*_story(_arms), strict=True) if seen else ():
        model.observe(x[0].long(), y)
        model.wait()
    return model


MODELS = {
    "TimeVaryingGP": ModelCase(_time_varying, _unit_and_round),
    "SubsetGP": ModelCase(_subset_gp, _unit_and_share),
    "ScaMLGP": ModelCase(_scaled, _unit_and_round),
    "EmpiricalPriorGP": ModelCase(_empirical, _arms),
    "DriftingGrid": ModelCase(_grid, _arms),
    **{f"StreamingGP {family}": _streaming_case(family) for family in FAMILIES},
}


def _inputs_of(model):
    return model.inputs if isinstance(model, StreamingGP) else model.train_inputs[0]


def _knowledge_gradient(model):
    """Over five discretization in the dtype and on the device of the model."""
    generator = torch.Generator().manual_seed(12)
    points = _unit(5, generator).to(_inputs_of(model))
    return TimeVaryingKG(model, points, now=31.0, effective_horizon=20.0)


def _candidates(model):
    """Points of which one is the optimum, in round 31."""
    x = torch.rand(6, 2, generator=torch.Generator().manual_seed(17), dtype=torch.float64)
    return torch.cat([x, torch.full((6, 1), 31.0, dtype=torch.float64)], -1).to(_inputs_of(model))


def _in_a_round(make):
    """Of an acquisition function over all columns: in round 31, at a cost linear in the first."""

    def made(model):
        X = torch.rand(6, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
        X = X.to(_inputs_of(model))
        cost = LinearCost(X, 1 + X[:, :1])
        return FixedFeatureAcquisitionFunction(make(model, cost), 3, [2], [31.0])

    return made


def _taf(model):
    """Of two tasks over configuration and round, and five observations."""
    generator = torch.Generator().manual_seed(14)
    X = torch.rand(3, 8, 3, generator=generator, dtype=torch.float64).to(_inputs_of(model))
    tasks = TaskEnsemble(list(X[:2]), [X[0].sum(-1).sin(), X[1, :, 0]])
    return TAF(model, tasks, X[2, :5], X[2, :5].sum(-1, keepdim=True).cos(), bandwidth=2.0)


def _earlier(model):
    """Two earlier tasks in the dtype and on the device of the model, and their weights."""
    draws = torch.Generator().manual_seed(15)
    X = torch.rand(2, 8, 3, generator=draws, dtype=torch.float64).to(_inputs_of(model))
    tasks = TaskEnsemble(list(X), [X[0].sum(-1).sin(), X[1, :, 0]])
    return tasks, X.new_tensor([0.7, 0.3])


def _own(X):
    return -X.square().sum(-1)


def _thompson(model):
    tasks, weights = _earlier(model)
    draws = torch.Generator().manual_seed(16)
    return RMGPTS(_own, TaskPaths(tasks, 2, draws), weights, 0.9, draws)


def _blend(model):
    first, second = TaskUCB(*_earlier(model)), UpperConfidenceBound(model, 2.0)
    return Blend(first, second, 0.4)


ACQUISITIONS = {
    "TaskUCB": _in_a_round(lambda model, _: TaskUCB(*_earlier(model))),
    "Blend": _in_a_round(lambda model, _: _blend(model)),
    "RMGPUCB": _in_a_round(lambda model, _: RMGPUCB(model, *_earlier(model), 0.4)),
    "RMGPTS": _in_a_round(lambda model, _: _thompson(model)),
    "LogEIPerCost": _in_a_round(lambda model, cost: LogEIPerCost(model, cost, 0.3)),
    "TAF": _in_a_round(lambda model, _: _taf(model)),
    "PBGI": _in_a_round(lambda model, cost: PBGI(model, cost, price=0.1)),
    "EntropySearch": _in_a_round(lambda model, _: EntropySearch(model, _candidates(model))),
    "EntropySearchPerCost": _in_a_round(
        lambda model, cost: EntropySearchPerCost(model, _candidates(model), cost)
    ),
    "TimeVaryingUCB": lambda model: TimeVaryingUCB(model, 1.5, now=31.0),
    "TimeVaryingEI": lambda model: TimeVaryingEI(model, 0.3, now=31.0),
    "TimeVaryingLogEI": lambda model: TimeVaryingLogEI(model, 0.3, now=31.0),
    "TimeVaryingPI": lambda model: TimeVaryingPI(model, 0.3, now=31.0),
    "TimeVaryingKG": _knowledge_gradient,
}

QUERY_RULES = {
    "AlwaysQuery": QueryCase(AlwaysQuery(), False),
    "BernoulliQuery": QueryCase(BernoulliQuery(0.4), True),
    "ConfidenceQuery": QueryCase(ConfidenceQuery(0.6), False),
    "ConfidenceQuery joint": QueryCase(ConfidenceQuery(0.6, joint=True), False),
    "ConfidenceBoundQuery": QueryCase(ConfidenceBoundQuery(), False),
    "MixedQuery": QueryCase(MixedQuery(2, 7, 10), True),
    "MixedQuery hard": QueryCase(MixedQuery(2, 7, 10, hard=True), True),
    "PricedQuery": QueryCase(PricedQuery(price=0.5), False),
    "PricedQuery in seconds": QueryCase(PricedQuery(price_seconds=90.0, round_seconds=20.0), False),
    "PricedQuery of a budget": QueryCase(PricedQuery(budget=20), False),
    "MixedQuery of a price": QueryCase(MixedQuery(2, 7, 10, PricedQuery(price=0.5)), True),
}


def _tell(optimizer, decision, reward):
    return optimizer.tell(decision, reward)


def _tell_loss(optimizer, decision, number):
    """Tell a positive loss in place of a finite number, and NaN in place of none."""
    finite = isinstance(number, float) and math.isfinite(number)
    told = math.exp(number) if finite else math.nan if number is None else number
    return optimizer.tell(decision, told)


def _tell_curve(optimizer, decision, number):
    """Tell a number at the end of a stretch, and a training that diverged in place of none."""
    gaps = [math.nan] * (getattr(decision, "iterations", 1) - 1)
    return optimizer.tell(decision, [*gaps, math.nan if number is None else number], cost=2.0)


def _tell_plain(optimizer, decision, number):
    """Tell a number, and a failure in place of none."""
    return optimizer.tell(decision, math.nan if number is None else number)


def _tell_value(optimizer, decision, number):
    """Tell a value, and a failure in place of none."""
    return optimizer.tell(decision, math.nan if number is None else number, cost=2.0)


_SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "depth": bc.Integer(1, 4)})
_CHOICES = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})
_ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)
_FAST = {"search": bc.Search(num_restarts=4)}

_STUDY = bc.Task(
    [{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3, 4) for d in (1, 2, 4)],
    [math.sin(3 * k) + 0.1 * d for k in (1, 2, 3, 4) for d in (1, 2, 4)],
)
_OTHER = bc.Task([{"lr": 10.0**-k, "depth": 2} for k in (1, 2, 3)], [0.1, 0.4, 0.2])


def _transfer(robust, seed):
    return bc.TransferOptimizer(_SPACE, [_STUDY, _OTHER], horizon=20, robust=robust, seed=seed)


BANDITS = {
    "GPUCB": (bandits.GPUCB(fit=bandits.FitSchedule(first=3, every=2)), ConfidenceQuery(0.95)),
    "GPUCB priced": (bandits.GPUCB(), PricedQuery(price=0.1)),
    "EXP3S": (bandits.EXP3S(0.3), BernoulliQuery(0.5)),
    "EXP3R": (bandits.EXP3R(0.5, interval=10.0), PricedQuery(price=0.1)),
    "EpsilonGreedy": (bandits.EpsilonGreedy(0.3), ConfidenceQuery(0.9)),
    "Softmax": (bandits.Softmax(0.2), AlwaysQuery()),
    "UCB1": (bandits.UCB1(forgetting=0.05), PricedQuery(budget=9)),
}


def _bandit(strategy, rule, seed):
    return bc.BanditTuner(_CHOICES, 20, strategy=strategy, query=rule, seed=seed)


OPTIMIZERS = {
    "TransferOptimizer": OptimizerCase(
        lambda seed: _transfer(bc.ByEvidence(), seed), _tell_plain, 20
    ),
    "TransferOptimizer by gaps": OptimizerCase(
        lambda seed: _transfer(bc.ByGaps(own_units=True), seed), _tell_plain, 20
    ),
    "TransferOptimizer by draws": OptimizerCase(
        lambda seed: _transfer(bc.ByGaps(thompson=True, paths=4), seed), _tell_plain, 20
    ),
    "OnlineTuner": OptimizerCase(
        lambda seed: bc.OnlineTuner(_SPACE, 20, seed=seed, start={"lr": 0.01, "depth": 2}, **_FAST),
        _tell,
        20,
    ),
    "OnlineTuner as published": OptimizerCase(
        lambda seed: bc.OnlineTuner.as_published(_SPACE, 20, seed=seed, **_FAST), _tell, 20
    ),
    "OnlineTuner with a price": OptimizerCase(
        lambda seed: bc.OnlineTuner(_SPACE, 20, seed=seed, query=PricedQuery(price=0.1), **_FAST),
        _tell,
        20,
    ),
    "OnlineTuner of arms": OptimizerCase(
        lambda seed: bc.OnlineTuner(_CHOICES, 20, seed=seed, acquisition=bc.LogEI()), _tell, 20
    ),
    **{
        f"BanditTuner {name}": OptimizerCase(partial(_bandit, strategy, rule), _tell, 20)
        for name, (strategy, rule) in BANDITS.items()
    },
    "FixedTuner": OptimizerCase(
        lambda seed: bc.FixedTuner(_CHOICES, {"arm": "left"}, horizon=20), _tell, 20
    ),
    "TwinTuner": OptimizerCase(lambda seed: bc.TwinTuner(_SPACE, 40, seed=seed), _tell_loss, 40),
    "CurveOptimizer": OptimizerCase(
        lambda seed: bc.CurveOptimizer(_SPACE, 27, horizon=20, seed=seed, **_FAST), _tell_curve, 20
    ),
    "CurveOptimizer of candidates": OptimizerCase(
        lambda seed: bc.CurveOptimizer(
            _SPACE,
            "depth",
            horizon=20,
            candidates=[{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3) for d in (1, 3, 4)],
            resumes=False,
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "CurveOptimizer of scores": OptimizerCase(
        lambda seed: bc.CurveOptimizer(
            _SPACE,
            27,
            horizon=20,
            compression=bc.Compression(augments=False),
            search=bc.Search(num_restarts=1),
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "CurveOptimizer as published": OptimizerCase(
        lambda seed: bc.CurveOptimizer.as_published(
            _SPACE,
            27,
            horizon=20,
            candidates=[{"lr": 10.0**-k, "depth": d} for k in (1, 2, 3, 4) for d in (1, 2, 3, 4)],
            seed=seed,
        ),
        _tell_curve,
        20,
    ),
    "SubsetOptimizer": OptimizerCase(
        lambda seed: bc.SubsetOptimizer(_SPACE, horizon=15, sampling=_ROUGH, seed=seed),
        _tell_value,
        15,
    ),
    "SubsetOptimizer of candidates": OptimizerCase(
        lambda seed: bc.SubsetOptimizer(
            _SPACE,
            bc.SearchSpace({"data": bc.Real(0.1, 1.0), "width": bc.Real(8, 64, log=True)}),
            candidates=[
                ({"lr": 10.0**-k, "depth": d}, {"data": s, "width": w})
                for k in (1, 2, 3)
                for d in (1, 4)
                for s, w in ((0.2, 8), (0.5, 16), (1.0, 64))
            ],
            maximize=False,
            overhead=0.1,
            horizon=16,
            sampling=_ROUGH,
            seed=seed,
        ),
        _tell_value,
        16,
    ),
    "RandomTuner": OptimizerCase(lambda seed: bc.RandomTuner(_SPACE, 20, seed=seed), _tell, 20),
}
