"""Arms at fractions of the data, chosen by what an evaluation is worth for its cost."""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from benchmarks.learners.arm_model import Belief, Hyperparameters, Points, believed, drawn
from benchmarks.learners.problems import LearnerProblem

_DRAWS, _KEPT = 48, 12  # of hyperparameters, and of these by the evidence
_FIRST = 2  # evaluations of random arms on the fewest rows
_NODES = 21  # of an expectation over the outcome of an evaluation
_OVERHEAD = 0.02  # seconds of an evaluation beside its training, about those of a decision
_GROWTH = 0.6  # power of the size that costs are expected to grow with
_SPREAD = {"level": 4.0, "arm": 2.0, "growth": 1.0, "growth of arm": 0.3}  # of log costs
_COST_NOISE = 0.15  # variance of a log cost


class KnowledgeGradientOfArms:
    """The evaluation by which the best mean on all of the data is expected to grow most for its cost.

    What ``SubsetOptimizer`` might do where configurations are arms: the model of ``arm_model``, the
    knowledge gradient by cost in place of entropy search, and a power of the costs for each arm.

    Args:
        problem: What is played on.
        seed: Of the first evaluations.
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
        """Return the evaluation that is worth most for its cost."""
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
        """Remember value and cost."""
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
