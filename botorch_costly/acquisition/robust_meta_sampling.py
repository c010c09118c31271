"""RM-GP-TS: Thompson sampling that samples earlier tasks, too."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
from botorch_costly.numerics.online_weights import without_small
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient, by_autograd
from botorch_costly.randomness import check_generator


class _Term(NamedTuple):
    """One of the functions that are summed."""

    task: int
    path: int
    weight: float


class RMGPTS(AcquisitionFunction):
    """A function sampled from the posterior of the target, or of the tasks.

    The constructor chooses at random: the target with probability ``1 - share``, task ``i`` with
    probability ``share * weights[i]``. The authors' program takes, with probability ``share``, the
    weighted sum of one function of every task; neither reading of equation (3) is always the better one.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, equation (3).

    Args:
        target: Function drawn from the target's posterior, of points ``batch_shape x d``; or an ensemble
            of the target alone, from which one is drawn if none is from a task; None only with share 1.
        tasks: Functions drawn from the tasks' posteriors.
        weights: Weights of the tasks, on the simplex, shape ``(tasks,)``.
        share: ``nu_t``, in [0, 1].
        generator: Random generator for the draws.
        summed: Whether functions of all tasks are summed by their weights; those whose weight is below a
            thousandth of the largest are left out.

    Attributes:
        origin: Weights of the tasks whose functions are summed, of one task as a rule, shape
            ``(tasks,)``; None if the function is from the target.

    Raises:
        InvalidShapeError: If there is not one weight for each task.
        InvalidArgumentError: If a number is out of range.
    """

    second_order: SecondOrder | None = None

    def __init__(
        self,
        target: Callable[[Tensor], Tensor] | TaskEnsemble | None,
        tasks: TaskPaths,
        weights: Tensor,
        share: float,
        generator: Generator,
        *,
        summed: bool = False,
    ) -> None:
        super().__init__(model=None)
        shape, expected = tuple(weights.shape), (len(tasks.weights),)
        check(shape == expected, "weights", f"shape {expected}", shape, InvalidShapeError)
        is_mixture = bool((weights >= 0).all()) and bool(weights.sum() > 0)
        check(is_mixture, "weights", "numbers >= 0, not all 0", weights)
        check_generator(generator)
        has_function = target is not None or check_rate("share", share) == 1.0
        check(has_function, "share", "1 without a function of the target", share)
        self.origin: Tensor | None = None
        self._function: Callable[[Tensor], Tensor] | None = None
        self._paths, self._terms = tasks, list[_Term]()
        coin, path = _uniform(generator), _uniform(generator)
        if coin < check_rate("share", share):
            shares = weights.to(generator.device, torch.float64)
            self.origin = without_small(shares) if summed else _one_of(shares, generator)
            chosen = self.origin.nonzero().flatten().tolist()
            others = [_uniform(generator) for _ in chosen[1:]]
            self._terms = [
                _Term(task, int(luck * tasks.count), float(self.origin[task]))
                for task, luck in zip(chosen, [path, *others], strict=True)
            ]
        elif isinstance(target, TaskEnsemble):
            self._paths, self._terms = TaskPaths(target, 1, generator), [_Term(0, 0, 1.0)]
        else:
            self._function = target

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at points ``batch_shape x 1 x d``, shape ``batch_shape``."""
        points = X.squeeze(-2)
        if self._function is not None:
            return self._function(points)
        paths, terms = self._paths, self._terms
        values = [t.weight * paths(points, task=t.task, path=t.path) for t in terms]
        return torch.stack(values).sum(0)

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the values and gradients at points ``m x d``; see ``SmoothFunction``.

        They are in closed form but for a function that was given, which is differentiated by autograd.
        """
        if self._function is not None:
            return by_autograd(lambda X: sign * self(X.unsqueeze(-2)))

        def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
            paths, terms = self._paths, self._terms
            pairs = [paths.with_gradient(X, task=t.task, path=t.path) for t in terms]
            factors = [sign * term.weight for term in terms]
            value, gradient = (
                torch.stack([factor * part for factor, part in zip(factors, parts, strict=True)])
                for parts in zip(*pairs, strict=True)
            )
            return value.sum(0), gradient.sum(0)

        return value_and_gradient


def _one_of(shares: Tensor, generator: Generator) -> Tensor:
    """Return 1 for a task that is drawn in proportion to the weights, and 0 for all others."""
    number = torch.multinomial(shares, 1, generator=generator)
    return torch.zeros_like(shares).scatter_(0, number, 1.0)


def _uniform(generator: Generator) -> float:
    return float(torch.rand((), generator=generator, device=generator.device))


@acqf_input_constructor(RMGPTS)
def construct_inputs_rm_gp_ts(
    model: Model,
    tasks: TaskPaths | TaskEnsemble,
    weights: Tensor,
    share: float,
    generator: Generator,
    summed: bool = False,
) -> dict[str, Any]:
    """Return the keyword arguments; the target's function is drawn by BoTorch's pathwise sampling.

    Args:
        model: Exact Gaussian process of the target, with one outcome.
        tasks: Functions of the tasks, or the tasks; in this case one function of each is drawn.
        weights: Weights of the tasks, on the simplex, shape ``(tasks,)``.
        share: ``nu_t``, in [0, 1].
        generator: Random generator for all draws; the global generator stays unchanged.
        summed: Whether functions of all tasks are summed by their weights.
    """
    check_generator(generator)
    if isinstance(tasks, TaskEnsemble):
        tasks = TaskPaths(tasks, 1, generator)
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        target = draw_matheron_paths(model, torch.Size())
    arguments = {"target": target, "tasks": tasks, "weights": weights}
    return {**arguments, "share": share, "generator": generator, "summed": summed}
