"""The policy of ``TransferOptimizer`` on a finite list, and all that are compared by name."""

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from benchmarks.meta import rivals
from benchmarks.meta.multi_task import MultiTask
from benchmarks.meta.rivals import Method, Setting
from botorch_costly import ByEvidence, ByGaps
from botorch_costly.tuners.transfer.belief import TargetData
from botorch_costly.tuners.transfer.choice import weighting_of


class Robust:
    """The policy of ``TransferOptimizer``; its ``weighting`` decides the share of the tasks."""

    def __init__(self, setting: Setting, options: ByEvidence | ByGaps) -> None:
        self._setting = setting
        self.weighting = weighting_of(setting.tasks, options, setting.points)

    @property
    def weights(self) -> Tensor:
        """Weights of the tasks, shape ``(tasks,)``."""
        return self.weighting.weights

    def __call__(self, told: TargetData) -> Tensor:
        belief = self.weighting.learn(told)
        return self.weighting.acquisition(belief, self._setting.generator).at_pool()


class AfterPortfolio(Robust):
    """The policy of ``TransferOptimizer`` with a warm start of three evaluations."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, ByEvidence())
        self._begin = rivals.portfolio(setting)

    def __call__(self, told: TargetData) -> Tensor:
        """Return the acquisition function of the points, or the order of the portfolio, ``(m,)``."""
        return self._begin(told) if len(told.values) < rivals.FIRST else super().__call__(told)


def robust(options: ByEvidence | ByGaps) -> Method:
    """Return the policy of ``TransferOptimizer`` with some options."""
    return partial(Robust, options=options)


OURS = "TransferOptimizer"
PLAIN = "GP-UCB"  # by which harm is measured

METHODS: Mapping[str, Method] = {
    "random": rivals.random,
    PLAIN: rivals.gp_ucb,
    "GP-TS": rivals.gp_ts,
    "LogEI": rivals.log_ei,
    "portfolio": rivals.portfolio,
    "portfolio, LogEI": rivals.portfolio_then_log_ei,
    "RGPE": rivals.RankWeighted,
    "TAF": rivals.TransferImprovement,
    "ScaML-GP": rivals.scaml_gp,
    "MTBO": MultiTask,
    "PEM-BO": rivals.pem_bo,
    OURS: robust(ByEvidence()),
    "portfolio, ours": AfterPortfolio,
    "RM-GP-UCB": robust(ByGaps()),
    "RM-GP-UCB, own units": robust(ByGaps(own_units=True)),
    "RM-GP-UCB, largest gap": robust(ByGaps(largest=True)),
    "RM-GP-TS": robust(ByGaps(thompson=True)),
}
"""Policies by name."""

NOTES: Mapping[str, str] = {
    "MTBO": "at most 480 rows of the earlier tasks, as many of each, evenly spread; hyperparameters are "
    "learnt anew after 1, 2, 3, 5, 8, 12, 18, .. evaluations, in at most 150 steps first and 40 later.",
    "PEM-BO": "a task that has not observed just the target's list has the means of its own process "
    "there; of N tasks, the latest N - 2 observations count.",
}
"""What was done to play a method, by its name."""
