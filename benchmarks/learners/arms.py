"""Arms at fractions of the data, chosen by what an evaluation is worth for its cost.

The model is a Gaussian process over arms and fractions, for arms that say nothing about one another.

``k((i, u), (j, u')) = 1 + level(u, u') + [i = j] (phi(u)' Sigma phi(u') + deviation(u, u'))``

with ``phi(u) = (1, 1 - u)``, ``u`` the fraction on a logarithmic scale in [0, 1], and squared
exponentials for what all arms gain (``level``) and for how one departs from its line (``deviation``).
Noise is ``noise + alpha (1 - u)^beta``. Beside ``SubsetGP``: no kernel over the columns of the
encoding, a line in place of ``(1 - u)^2``, and the deviation. Hyperparameters are drawn from a prior once
and weighed by the evidence.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.learners.problems import LearnerProblem

_JITTER = 1e-8
_LEAST = 1e-9  # of a variance
_PRIOR = {
    # Mean and standard deviation of the logarithm: fits to the data sets that choose.
    "end": (-0.06, 0.4),
    "change": (-1.07, 0.6),
    "deviation": (-0.5, 0.5),
    "deviation_scale": (-1.0, 0.4),
    "level": (0.2, 0.4),
    "level_scale": (-0.3, 0.5),
    "noise": (-5.5, 1.0),
    "alpha": (-3.4, 1.0),
    "beta": (1.0, 0.7),
}
_LINK = (-0.55, 0.5)  # not a logarithm


class Hyperparameters(NamedTuple):
    """One of each for each draw, all of shape ``(k, 1)``."""

    end: Tensor  # standard deviation of arms on all of the data
    change: Tensor  # of the slope by itself
    deviation: Tensor  # of the departure from the line
    deviation_scale: Tensor
    level: Tensor  # of what all arms gain
    level_scale: Tensor
    noise: Tensor  # variance on all of the data
    alpha: Tensor  # variance that is added on the least part
    beta: Tensor
    link: Tensor  # by how much the slope goes with the end

    def at(self, places: Tensor) -> "Hyperparameters":
        """Return some of the draws."""
        return Hyperparameters(*(part[places] for part in self))


class Points(NamedTuple):
    """Evaluations: the number of the arm, and the fraction on a logarithmic scale, ``(n,)`` each."""

    arm: Tensor
    fraction: Tensor


class Belief(NamedTuple):
    """What is believed after some evaluations, by each of the draws that are left."""

    weight: Tensor  # shape: (k,)
    mean: Tensor  # of the targets, shape: (k, t)
    covariance: Tensor  # of the targets, shape: (k, t, t)
    across: Tensor  # covariance of candidates with the targets, shape: (k, c, t)
    variance: Tensor  # of observations of the candidates, shape: (k, c)


def drawn(count: int, generator: torch.Generator) -> Hyperparameters:
    """Return draws of the prior."""

    def normal(mean: float, sd: float) -> Tensor:
        return mean + sd * torch.randn(count, 1, generator=generator, dtype=torch.float64)

    logs = {name: normal(*moments).exp() for name, moments in _PRIOR.items()}
    return Hyperparameters(**logs, link=normal(*_LINK))


def believed(
    draws: Hyperparameters,
    kept: int,
    known: Points,
    values: Tensor,  # in units of the prior, shape: (n,)
    targets: Points,
    candidates: Points,
) -> Belief:
    """Return what the most probable draws believe of the targets and of candidates."""
    root, scaled = _factored(draws, known, values)
    evidence = -0.5 * scaled.square().sum((-2, -1)) - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    weight = evidence.softmax(0)
    likely = weight.topk(min(kept, len(weight))).indices
    weight, draws = weight[likely] / weight[likely].sum(), draws.at(likely)
    root, scaled = root[likely], scaled[likely]
    of_targets = torch.linalg.solve_triangular(
        root, _covariance(draws, known, targets), upper=False
    )
    of_rest = torch.linalg.solve_triangular(
        root, _covariance(draws, known, candidates), upper=False
    )
    prior = _variance(draws, candidates.fraction) + _noise(draws, candidates.fraction)
    return Belief(
        weight,
        (of_targets.mT @ scaled).squeeze(-1),
        _covariance(draws, targets, targets) - of_targets.mT @ of_targets,
        _covariance(draws, candidates, targets) - of_rest.mT @ of_targets,
        (prior - of_rest.square().sum(-2)).clamp_min(_LEAST),
    )


def _factored(draws: Hyperparameters, known: Points, values: Tensor) -> tuple[Tensor, Tensor]:
    noise = _noise(draws, known.fraction) + _JITTER
    root = torch.linalg.cholesky(_covariance(draws, known, known) + torch.diag_embed(noise))
    right = values.expand(len(root), -1).unsqueeze(-1)
    return root, torch.linalg.solve_triangular(root, right, upper=False)


def _covariance(draws: Hyperparameters, a: Points, b: Points) -> Tensor:  # shape: (k, n, m)
    line = _line(draws, a.fraction) @ _line(draws, b.fraction).mT
    apart = (a.fraction.unsqueeze(-1) - b.fraction).square()
    one = line + _smooth(draws.deviation, draws.deviation_scale, apart)
    same = a.arm.unsqueeze(-1) == b.arm
    return 1 + _smooth(draws.level, draws.level_scale, apart) + one * same


def _variance(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n)
    line = _line(draws, fraction).square().sum(-1)
    return 1 + draws.level.square() + draws.deviation.square() + line


def _line(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n, 2)
    rest = 1 - fraction
    return torch.stack([draws.end + rest * draws.link, rest * draws.change], -1)


def _smooth(amplitude: Tensor, scale: Tensor, squares: Tensor) -> Tensor:
    """Return squared exponentials of squared distances (``n x m``), ``k x n x m``."""
    return amplitude.unsqueeze(-1).square() * (-0.5 * squares / scale.unsqueeze(-1).square()).exp()


def _noise(draws: Hyperparameters, fraction: Tensor) -> Tensor:  # shape: (k, n)
    return draws.noise + draws.alpha * (1 - fraction).clamp_min(0).pow(draws.beta)


_DRAWS, _KEPT = 48, 12  # of hyperparameters, and of these by the evidence
_FIRST = 2  # evaluations of random arms on the fewest rows
_NODES = 21  # of an expectation over the outcome of an evaluation
_OVERHEAD = 0.02  # seconds of an evaluation beside its training, about those of a decision
_GROWTH = 0.6  # power of the size that costs are expected to grow with
_SPREAD = {"level": 4.0, "arm": 2.0, "growth": 1.0, "growth of arm": 0.3}  # of log costs
_COST_NOISE = 0.15  # variance of a log cost


class KnowledgeGradientOfArms:
    """The evaluation by which the best mean on all of the data is expected to grow most for its cost.

    What ``SubsetOptimizer`` might do where configurations are arms: the model of this module, the
    knowledge gradient by cost in place of entropy search, and a power of the costs for each arm.
    """

    def __init__(self, problem: LearnerProblem, seed: int) -> None:
        self.problem = problem
        self._generator = torch.Generator().manual_seed(seed)
        names = list(problem.places)
        arms = [names.index(str(config["learner"])) for config, _ in problem.candidates]
        at = [problem.fidelities.encode(where) for _, where in problem.candidates]
        self._all = Points(torch.tensor(arms), torch.cat(at))
        self._least = math.log(min(where["fraction"] for _, where in problem.candidates))
        self._left = torch.ones(len(arms), dtype=torch.bool)
        self._asked: list[int] = []
        self._values: list[float] = []
        self._costs: list[float] = []

    def ask(self) -> int | None:
        left = self._left.nonzero().squeeze(-1)
        if not len(left):
            return None
        if len(self._asked) < _FIRST:
            fewest = left[self._all.fraction[left] == self._all.fraction[left].min()]
            return int(fewest[torch.randint(len(fewest), (1,), generator=self._generator)])
        worth = knowledge_gradient(self._believed(left)).clamp_min(torch.finfo(torch.float64).tiny)
        cost = self._cost(left) + _OVERHEAD / self.problem.seconds
        return int(left[(worth.log() - cost.log()).argmax()])

    def tell(self, candidate: int, value: float, cost: float) -> None:
        self._asked.append(candidate)
        self._values.append(value)
        self._costs.append(cost)
        self._left[candidate] = False

    def choice(self) -> int:
        """Return the arm that is believed best on all of the data; before any value, any."""
        targets = self.problem.targets
        if not self._asked:
            return targets[int(torch.randint(len(targets), (1,), generator=self._generator))]
        belief = self._believed(torch.tensor(targets[:1]))
        return targets[int((belief.weight.unsqueeze(-1) * belief.mean).sum(0).argmax())]

    def _at(self, numbers: Tensor) -> Points:
        return Points(self._all.arm[numbers], self._all.fraction[numbers])

    def _believed(self, candidates: Tensor) -> Belief:
        values = torch.tensor(self._values, dtype=torch.float64)
        spread = values.std(correction=0)
        values = (values - values.mean()) / torch.where(spread > 1e-9, spread, 1.0)
        known, targets = self._at(torch.tensor(self._asked)), torch.tensor(self.problem.targets)
        return believed(_draws(), _KEPT, known, values, self._at(targets), self._at(candidates))

    def _cost(self, candidates: Tensor) -> Tensor:
        """Return the costs of candidates: logarithms linear in that of the size, arm by arm."""
        logs = torch.tensor(self._costs, dtype=torch.float64).log()
        known, wanted = self._features(torch.tensor(self._asked)), self._features(candidates)
        rest = logs - self._growth(torch.tensor(self._asked))
        gram = known @ known.mT + _COST_NOISE * torch.eye(len(known), dtype=torch.float64)
        weights = known.mT @ torch.linalg.solve(gram, rest - rest.mean())
        return (rest.mean() + wanted @ weights + self._growth(candidates)).exp()

    def _growth(self, numbers: Tensor) -> Tensor:
        return _GROWTH * self._log_share(numbers)

    def _log_share(self, numbers: Tensor) -> Tensor:
        return (1 - self._all.fraction[numbers]) * self._least

    def _features(self, numbers: Tensor) -> Tensor:
        share = self._log_share(numbers).unsqueeze(-1)
        count = len(self.problem.places)
        arm = torch.nn.functional.one_hot(self._all.arm[numbers], count).to(share)
        parts = {
            "level": torch.ones_like(share),
            "arm": arm,
            "growth": share,
            "growth of arm": arm * share,
        }
        return torch.cat([_SPREAD[name] * part for name, part in parts.items()], -1)


def knowledge_gradient(belief: Belief) -> Tensor:  # shape: (c,)
    """Return by how much the largest mean of the targets is expected to grow with each candidate."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    z, w = torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
    step = belief.across / belief.variance.sqrt().unsqueeze(-1)
    largest = (belief.mean[:, None, :, None] + step.unsqueeze(-1) * z).amax(-2) @ w
    gain = largest - belief.mean.amax(-1, keepdim=True)
    return (belief.weight.unsqueeze(-1) * gain).sum(0)


@cache
def _draws() -> Hyperparameters:
    return drawn(_DRAWS, torch.Generator().manual_seed(0))
