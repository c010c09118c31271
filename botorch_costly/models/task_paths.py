"""Functions sampled once from the posteriors of all tasks, evaluated at the cost of their features."""

import torch
from torch import Generator, Tensor, nn

from botorch_costly.errors import check_count
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.fourier import fourier_features, frequencies, posterior_weights
from botorch_costly.randomness import check_generator


class TaskPaths(nn.Module):
    """Sample functions of each task's posterior, in the units of its values.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022, appendix D.5.

    Args:
        tasks: The tasks, fitted, with a kernel that has a spectral density.
        count: Number of functions of each task.
        generator: Random generator of the draws.
        num_frequencies: Number of cosines, and of sines, that approximate the kernel; the error of a
            covariance is about ``1 / sqrt(2 num_frequencies)`` of the variance.

    Raises:
        InvalidArgumentError: If a number is not positive.

    Example:
        >>> X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
        >>> tasks = TaskEnsemble([X], [X.squeeze(-1)])
        >>> TaskPaths(tasks, 5, torch.Generator().manual_seed(0))(X, task=0, path=3).shape
        torch.Size([9])
    """

    draws: Tensor
    weights: Tensor
    lengthscale: Tensor
    variance: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(
        self, tasks: TaskEnsemble, count: int, generator: Generator, *, num_frequencies: int = 256
    ) -> None:
        super().__init__()
        self.count = check_count("count", count, minimum=1)
        num_frequencies = check_count("num_frequencies", num_frequencies, minimum=1)
        check_generator(generator)
        draws = frequencies(tasks.kernel, num_frequencies, tasks.inputs.shape[-1], generator)
        self.register_buffer("draws", draws.to(tasks.inputs))
        self.register_buffer("lengthscale", tasks.lengthscale)
        self.register_buffer("variance", tasks.variance)
        self.register_buffer("offset", tasks.offset)
        self.register_buffer("scale", tasks.scale)
        weights = [self._drawn(tasks, task, generator) for task in range(tasks.count)]
        self.register_buffer("weights", torch.stack(weights))

    def _drawn(self, tasks: TaskEnsemble, task: int, generator: Generator) -> Tensor:
        """Return the weights of one task's functions; tasks are not batched as features are large."""
        seen = tasks.seen[task]
        features = self._features(tasks.inputs[task, seen], task)
        return posterior_weights(
            features,
            tasks.targets[task, seen],
            tasks.noise[task : task + 1],
            self.count,
            generator,
        )

    def _features(self, X: Tensor, task: int) -> Tensor:
        return fourier_features(X, self.draws, self.lengthscale[task], self.variance[task])

    def forward(self, X: Tensor, *, task: int, path: int) -> Tensor:
        """Return the values of one function at points ``batch_shape x d``, shape ``batch_shape``."""
        value = self._features(X, task) @ self.weights[task, path]
        return self.offset[task] + self.scale[task] * value

    def with_gradient(self, X: Tensor, *, task: int, path: int) -> tuple[Tensor, Tensor]:
        """Return the values ``(m,)`` of one function at ``m x d`` points, and its gradients ``m x d``."""
        features, weights = self._features(X, task), self.weights[task, path]
        cosine, sine = features.chunk(2, -1)
        first, second = weights.chunk(2)  # of the cosines and of the sines
        by_angle = cosine * second - sine * first
        slope = (by_angle @ self.draws) / self.lengthscale[task]
        value = self.offset[task] + self.scale[task] * (features @ weights)
        return value, self.scale[task] * slope
