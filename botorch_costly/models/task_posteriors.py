"""Joint posteriors of earlier tasks, which an ensemble or a prior of the target is made of."""

from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics import padded
from botorch_costly.numerics.padded import Factored


def task_posteriors(tasks: TaskEnsemble, X: Tensor) -> tuple[Tensor, Tensor]:
    """Return the joint posterior of each task, in its standardized units.

    Args:
        tasks: Fitted.
        X: Points, ``batch_shape x q x d``.

    Returns:
        Means ``tasks x batch_shape x q`` and covariances ``tasks x batch_shape x q x q``.
    """
    known = Factored(tasks.inverse_root, tasks.weights)
    return padded.joint(tasks.kernel, tasks.rows, tasks.theta, known, X)
