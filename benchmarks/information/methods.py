"""Methods by name: what each believes and how it chooses; and a run of one on a problem."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.harness.gaussian import standardized
from benchmarks.information import beliefs, choices
from benchmarks.information.beliefs import Problem
from benchmarks.information.choices import Choice, Information, Joint, Situation
from botorch_costly.models import HyperparameterEnsemble

OURS = "ES"
BY_DRAWS = "ES, optima of draws"
EXACT = "ES, told exact"
_QUICK = Joint(raw=256, restarts=4)


class Method(NamedTuple):
    """What is believed where hyperparameters are not known, and how the next point is chosen."""

    choose: Choice
    belief: str = "highest density"  # or "drawn", "drawn, BoTorch"
    exact: bool = False  # whether it is told that observations have no noise
    noise: tuple[float, float] = beliefs.USUAL  # prior of the logarithm of its variance, if drawn


METHODS: Mapping[str, Method] = {
    "random": Method(choices.at_random),
    "LogEI": Method(choices.improvement),
    "UCB": Method(choices.bound),
    "KG": Method(choices.gradient),
    "MES": Method(choices.max_value),
    "JES": Method(_QUICK),
    OURS: Method(Information(), "drawn"),
}
"""Played by default."""

WAYS: Mapping[str, Method] = {
    "ES, 50 points": Method(Information(points=50), "drawn"),
    "ES, uniform points": Method(Information(measure="uniform"), "drawn"),
    BY_DRAWS: Method(Information(measure="draws"), "drawn"),
    "ES, 8 outcomes": Method(Information(outcomes=8, candidates=100, library=False), "drawn"),
    "ES, pool": Method(Information(library=False), "drawn"),
    "ES, highest density": Method(Information()),
    "LogEI, drawn": Method(choices.improvement, "drawn"),
    "ES, wide noise": Method(Information(), "drawn", noise=beliefs.WIDE),
    "LogEI, drawn, wide noise": Method(choices.improvement, "drawn", noise=beliefs.WIDE),
    EXACT: Method(Information(), "drawn", exact=True),
    "LogEI, told exact": Method(choices.improvement, exact=True),
    "JES, told exact": Method(_QUICK, exact=True),
}
"""Other ways to the same, played on request."""

TIMED: Mapping[str, Method] = {
    "JES, drawn": Method(Joint(), "drawn, BoTorch"),
    "JES, drawn, fewer restarts": Method(_QUICK, "drawn, BoTorch"),
}
"""Only timed."""


class Player:
    """A method that plays one problem."""

    def __init__(self, method: Method, problem: Problem, seed: int) -> None:
        self._method, self._problem = method, problem
        self._generator = torch.Generator().manual_seed(seed)
        self._sampler = beliefs.Sampler(self._generator, exact=method.exact, noise=method.noise)

    def believe(self, X: Tensor, y: Tensor) -> Any:
        """Return the model of what was observed."""
        ours = self._method.belief == "drawn"
        if self._problem.known:
            batch = torch.Size([1] if ours else [])
            model = beliefs.told(X, y, self._problem.noise, batch)
            return HyperparameterEnsemble(model) if ours else model
        if ours:
            return self._sampler.ensemble(X, standardized(y))
        if self._method.belief == "highest density":
            return beliefs.fitted(X, standardized(y), exact=self._method.exact)
        return self._sampler.botorch_ensemble(X, standardized(y))

    def choose(self, model: Any, X: Tensor) -> Tensor:
        """Return the point that is evaluated next."""
        best = mean_of(model, X).max()
        return self._method.choose(Situation(model, X, best, self._generator))


@torch.no_grad()
def mean_of(model: Any, X: Tensor) -> Tensor:
    """Return the posterior mean of rows, ``(n, d) -> (n,)``, averaged over an ensemble."""
    if isinstance(model, HyperparameterEnsemble):
        return model.posterior(X.unsqueeze(-2)).mean.reshape(len(X), -1).mean(-1)
    mean = model.posterior(X).mean.squeeze(-1)
    return mean if mean.ndim == 1 else mean.mean(0)


INITIAL = 3  # random evaluations that all methods share
_LOOKED_AT, _AROUND = 2000, 200  # points among which the maximizer of a mean is looked for
_RADII = (0.05, 0.01, 0.002)


class Run(NamedTuple):
    """What came of a run; regrets after each evaluation from the last of the first ones on."""

    simple: list[float]  # maximum less the best value of an evaluated point
    inference: list[float]  # maximum less the value where the posterior mean is largest
    fit: list[float]  # seconds of the processor, by decision
    acquisition: list[float]


def play(problem: Problem, method: Method, seed: int, evaluations: int) -> Run:
    """Return the regrets and seconds of a method. First points and noise are the seed's, not its own."""
    generator = torch.Generator().manual_seed(1000 + seed)
    X = torch.rand(INITIAL, problem.dim, generator=generator, dtype=torch.float64)
    noise = problem.noise * torch.randn(evaluations, generator=generator, dtype=torch.float64)
    run, player = Run([], [], [], []), Player(method, problem, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        while True:
            values = problem.value(X)
            y = values + noise[: len(X)]
            fit, model = seconds_of(player.believe, X, y)
            found = problem.value(maximizer(model, X).unsqueeze(0))
            run.simple.append(problem.best - float(values.max()))
            run.inference.append(problem.best - float(found))
            if len(X) == evaluations:
                return run
            taken, x = seconds_of(player.choose, model, X)
            run.fit.append(fit)
            run.acquisition.append(taken)
            X = torch.cat([X, x.unsqueeze(0)])


def seconds_of(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the seconds of the processor that a call takes, and what it returns."""
    began = time.process_time()
    result = call(*arguments)
    return time.process_time() - began, result


def maximizer(model: Any, X: Tensor) -> Tensor:
    """Return where the posterior mean is largest, ``(d,)``: of many points, and closer and closer."""
    engine = SobolEngine(X.shape[-1], scramble=True, seed=0)
    points = torch.cat([engine.draw(_LOOKED_AT, dtype=X.dtype), X])
    best = points[mean_of(model, points).argmax()]
    unit = SobolEngine(X.shape[-1], scramble=True, seed=1).draw(_AROUND, dtype=X.dtype)
    for radius in _RADII:
        near = (best + radius * (2 * unit - 1)).clamp(0, 1)
        points = torch.cat([best.unsqueeze(0), near])
        best = points[mean_of(model, points).argmax()]
    return best
