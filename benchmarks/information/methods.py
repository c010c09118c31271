"""Methods by name: what each believes, and how it chooses."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.gaussian import standardized
from benchmarks.information import beliefs, choices
from benchmarks.information.choices import Choice, Information, Joint, Situation
from benchmarks.information.problems import Problem
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
    """A method that plays one problem.

    Args:
        method: What it does.
        problem: What it plays; it reads the noise, and whether hyperparameters are known.
        seed: Of its draws.
    """

    def __init__(self, method: Method, problem: Problem, seed: int) -> None:
        self._method, self._problem = method, problem
        self._generator = torch.Generator().manual_seed(seed)
        self._sampler = beliefs.Sampler(self._generator, exact=method.exact)

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
