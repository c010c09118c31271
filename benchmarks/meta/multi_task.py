"""Multi-task Bayesian optimization: BoTorch's ``MultiTaskGP`` over the earlier tasks and the target.

The covariance of two tasks' values is ``B[i, j] k(x, x')``. All that BoTorch 0.18.1 does against negative
transfer is in it: the values of each task are standardized; its mean, scale and noise are learnt; and
correlations are positive, with the prior Beta(2.5, 1.5). BoTorch fixes the scale of the first
task; the target is the last, so that its scale is learnt, too.

An exact process of all rows would take minutes at each evaluation, and so:

- Of the earlier tasks at most 480 rows are kept, as many of each, evenly spread over those it has (20 of
  each of 24 tasks).
- Hyperparameters are learnt anew when there are half as many observations again: after 1, 2, 3, 5, 8, 12,
  18, .. of them, from the present ones on, in at most 150 steps the first time and 40 later. In between
  the process learns from the observations alone.
"""

import math
from functools import partial

import torch
from botorch.models import MultiTaskGP
from botorch.models.transforms.outcome import StratifiedStandardize
from torch import Tensor

from benchmarks.harness.gaussian import fitted
from benchmarks.meta.rivals import Setting, best_before, log_improvement
from botorch_costly.tuners.transfer.belief import TargetData

MOST_ROWS = 480  # of all earlier tasks
STEPS = 150, 40  # of the first search for hyperparameters, and of each later one
GROWTH = 1.5  # of the number of observations, from one search to the next
# GPyTorch's sparse tensors are right; torch warns unless told whether to check.
_NO_CHECK = partial(torch.sparse.check_sparse_tensor_invariants, enable=False)


class MultiTask:
    """Choose by expected improvement under a process of all tasks.

    References:
        K. Swersky, J. Snoek, R. P. Adams. Multi-task Bayesian optimization. NeurIPS 2013.
        E. Bonilla, K. M. Chai, C. Williams. Multi-task Gaussian process prediction. NeurIPS 2007.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.target = setting.tasks.count  # the number of the task
        self.rows = _kept(setting)
        self._seed = int(torch.randint(2**31, (), generator=setting.generator))
        self._learnt: dict[str, Tensor] = {}
        self._learn_at = 1

    def __call__(self, told: TargetData) -> Tensor:
        if not len(told.values):
            return best_before(self._setting)
        mean, std = self.moments(self.model(told))
        return log_improvement(mean, std, told)

    def moments(self, model: MultiTaskGP) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of the target at the points, ``(m,)`` each."""
        # Units are those of the task that the last column names, so that it must be there.
        points = _numbered(self._setting.points, self.target)
        with _NO_CHECK():
            posterior = model.posterior(points)
            return posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).sqrt()

    def model(self, told: TargetData) -> MultiTaskGP:
        """Return the process after what was told; evaluations are told in their order."""
        # BoTorch draws where a search begins.
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), _NO_CHECK():
            torch.manual_seed(self._seed)
            model = self._unfitted(told)
            for name, tensor in model.named_parameters():
                if name in self._learnt:
                    tensor.data.copy_(self._learnt[name])
            if len(told.values) >= self._learn_at:
                self._learn_at = math.ceil(GROWTH * len(told.values))
                fitted(model, steps=STEPS[bool(self._learnt)])
                self._learnt = {n: p.detach().clone() for n, p in model.named_parameters()}
        return model.eval()

    def _unfitted(self, told: TargetData) -> MultiTaskGP:
        X = torch.cat([self.rows[0], _numbered(told.points, self.target)])
        Y = torch.cat([self.rows[1], told.values])
        numbers = torch.arange(self.target + 1)
        return MultiTaskGP(
            X,
            Y.unsqueeze(-1),
            task_feature=-1,
            output_tasks=[self.target],
            outcome_transform=StratifiedStandardize(X.shape[-1] - 1, numbers, dtype=X.dtype),
        )


def _kept(setting: Setting) -> tuple[Tensor, Tensor]:
    """Return inputs with the numbers of the tasks, and values in any unit, evenly thinned."""
    most = max(1, MOST_ROWS // setting.tasks.count)
    inputs, values = [], []
    for number, (x, y, seen) in enumerate(zip(*setting.tasks.rows, strict=True)):
        count = int(seen.sum())
        some = torch.linspace(0, count - 1, min(most, count)).round().long()
        inputs.append(_numbered(x[seen][some], number))
        values.append(y[seen][some])
    return torch.cat(inputs), torch.cat(values)


def _numbered(points: Tensor, task: int) -> Tensor:
    return torch.cat([points, points.new_full((len(points), 1), float(task))], -1)
