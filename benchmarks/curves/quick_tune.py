"""Quick-Tune's choice rule: DyHPO's, per predicted cost, with what earlier studies' curves have taught.

The paper meta-learns a deep kernel and a network of costs on the curves of earlier data sets, and then
trains one step further what has the largest expected improvement per predicted cost of that step. Here a
Gaussian process around the mean of the earlier studies stands in place of both networks
(``benchmarks.curves.earlier_curves``). So curves of the search enter as data and not as features, and
there are no descriptors of data sets, which the benchmark's tables lack. Predicted costs are shifted to
those that were seen. The first configuration is the one that the studies predict to end best: there is
nothing to improve on yet.

References:
    S. Pineda Arango, F. Ferreira, A. Kadra, F. Hutter, J. Grabocka. Quick-Tune: quickly learning which
    pretrained model to finetune and how. ICLR 2024: expected improvement per predicted cost.
"""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from benchmarks.curves.dyhpo import thresholds
from benchmarks.curves.earlier_curves import Learnt, Study
from benchmarks.curves.play import LEAST_COST, Ask, Policy, Steps
from benchmarks.curves.stepwise import Stepwise
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.problems import CurveProblem


def quick_tune(studies: Sequence[Study]) -> Policy:
    """Return the policy that trains, a step further, what improves most per predicted cost."""

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        run, learnt = Stepwise(problem, Generator().manual_seed(seed)), Learnt(studies)
        mean, log_costs = learnt.predict(problem.inputs)
        while choice := run.choice():
            table, steps = run.table(), [run.done.get(c, 0) for c in choice]
            if run.best == -math.inf:
                promise = mean[choice, -1]
            else:
                believed = learnt.moments(problem.inputs, mean, table, choice, steps)
                gain = log_expected_improvement(*believed, thresholds(table)[steps])
                promise = gain - log_step_costs(run, log_costs)[choice]
            config = choice[int(promise.argmax())]
            segment = yield Ask(config, run.next_stop(config))
            run.told(config, segment)

    return policy


def log_step_costs(run: Stepwise, log_costs: Tensor) -> Tensor:
    """Return logarithms of the cost of a step: what was seen, or the prediction shifted to that."""
    begun = list(run.costs)
    paid = [max(run.costs[c], LEAST_COST) / run.done[c] for c in begun]
    seen = torch.tensor(paid, dtype=torch.float64).log()
    steps = log_costs + (seen - log_costs[begun]).mean()
    steps[begun] = seen
    return steps
