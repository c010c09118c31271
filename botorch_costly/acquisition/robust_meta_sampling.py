"""Thompson sampling that earlier tasks have a share in: RM-GP-TS."""

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.sampling.pathwise import draw_matheron_paths
from botorch.utils.transforms import t_batch_mode_transform
from torch import Generator, Tensor

from botorch_costly.errors import InvalidShapeError, check, check_rate
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.randomness import check_generator


class RMGPTS(AcquisitionFunction):
    """A sample function: of the target, or with probability ``share`` of one of the tasks.

    Whose function it is, is drawn at construction: of the target's posterior with probability
    ``1 - share``, of that of task ``i`` with probability ``share * weights[i]``.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, equation (3).

    Args:
        target: A function drawn from the target's posterior, of points ``batch_shape x d``.
        tasks: Functions drawn from the tasks' posteriors.
        weights: Of the tasks, on the simplex, shape ``(tasks,)``.
        share: ``nu_t``, in [0, 1].
        generator: The source of the draws.

    Attributes:
        origin: Number of the task whose function it is; None for the target's own.

    Raises:
        InvalidShapeError: If there is not one weight for each task.
        InvalidArgumentError: If a number is outside its range.
    """

    def __init__(
        self,
        target: Callable[[Tensor], Tensor],
        tasks: TaskPaths,
        weights: Tensor,
        share: float,
        generator: Generator,
    ) -> None:
        super().__init__(model=None)
        many, shape = len(tasks.weights), tuple(weights.shape)
        check(shape == (many,), "weights", f"shape ({many},)", shape, InvalidShapeError)
        check(bool((weights >= 0).all()), "weights", "numbers >= 0", weights)
        self._target, self._tasks = target, tasks
        coin, path = _coin(check_generator(generator)), _coin(generator)
        self.origin: int | None = None
        if coin < check_rate("share", share):
            shares = weights.to(generator.device, torch.float64)
            self.origin = int(torch.multinomial(shares, 1, generator=generator))
        self._path = int(path * tasks.count)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        points = X.squeeze(-2)
        if self.origin is None:
            return self._target(points)
        value: Tensor = self._tasks(points, task=self.origin, path=self._path)
        return value


def _coin(generator: Generator) -> float:
    return float(torch.rand((), generator=generator, device=generator.device))


@acqf_input_constructor(RMGPTS)
def construct_inputs_rm_gp_ts(
    model: Model,
    tasks: TaskPaths | TaskEnsemble,
    weights: Tensor,
    share: float,
    generator: Generator,
) -> dict[str, Any]:
    """Return the keyword arguments; the target's function is drawn by BoTorch's pathwise sampling.

    Args:
        model: Of the target, an exact Gaussian process of one outcome.
        tasks: Functions of the tasks, or the tasks, of each of which one function is drawn.
        weights: As for ``RMGPTS``.
        share: As for ``RMGPTS``.
        generator: The source of all draws; the global generator is left as it was.
    """
    check_generator(generator)
    if isinstance(tasks, TaskEnsemble):
        tasks = TaskPaths(tasks, 1, generator)
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        target = draw_matheron_paths(model, torch.Size())
    return {
        "target": target,
        "tasks": tasks,
        "weights": weights,
        "share": share,
        "generator": generator,
    }
