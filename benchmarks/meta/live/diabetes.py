"""Logistic regression on a table of patients that grows.

Of the 768 rows of the Pima table 77 are for validation, the same in each task; the tasks train on 138,
276, 414, 552 and all 691 others, each set within the next, as of a hospital that gains patients. The
target is the largest. Mini-batch gradient descent from weights of zero; columns are standardized by the
rows of the task.

The paper does not say for how many epochs. The family ``diabetes`` is the accuracy after 10 of them. On
77 rows it takes few values, so it is averaged over five orders of the rows: multiples of 1/385. After 60
epochs it takes half a dozen values in the target, and what separates them is the noise of the split.

The family ``diabetes likelihood`` is finer: the geometric mean of the probabilities of what came true,
which is the exponential of minus the log loss, after 60 epochs. After 10 the best learning rate was the
largest in each task, and all tasks ranked configurations alike.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.meta.live.family import Config, Family, one_by_one
from benchmarks.suite.data import pima
from botorch_costly import Integer, Real, SearchSpace

_PARAMETERS: dict[str, Real | Integer] = {
    "batch_size": Integer(20, 60),
    "l2": Real(1e-6, 1e-2, log=True),
    "lr": Real(1e-2, 1e-1, log=True),
}
SPACE = SearchSpace(_PARAMETERS)

ROWS = {f"{rows} rows": rows for rows in (138, 276, 414, 552, 691)}
_VALIDATION, _REPEATS = 77, 5


class Patients(NamedTuple):
    """Standardized columns with a column of ones, ``n x 9``, and whether a patient is ill, ``n``."""

    inputs: Tensor
    ill: Tensor


@cache
def patients(task: str) -> tuple[Patients, Patients]:
    """Return the rows of training and of validation."""
    table = pima()
    order = torch.randperm(len(table.targets), generator=torch.Generator().manual_seed(0))
    inputs, ill = table.inputs[order].double(), table.targets[order].double()
    mine = slice(_VALIDATION, _VALIDATION + ROWS[task])
    center, scale = inputs[mine].mean(0), inputs[mine].std(0)
    ones = torch.ones(len(order), 1, dtype=torch.float64)
    columns = torch.cat([(inputs - center) / scale, ones], dim=-1)
    held = slice(_VALIDATION)
    return Patients(columns[mine], ill[mine]), Patients(columns[held], ill[held])


def _logits(task: str, config: Config, seed: int, epochs: int) -> Tensor:
    """Return the logits of validation after training in several orders, ``repeats x rows``."""
    training, validation = patients(task)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.zeros(_REPEATS, training.inputs.shape[-1], dtype=torch.float64)
    shrunk = torch.ones_like(weights[0])
    shrunk[-1] = 0  # the bias is not
    for _ in range(epochs):
        drawn = torch.rand(_REPEATS, len(training.ill), generator=generator)
        for rows in drawn.argsort(-1).split(int(config["batch_size"]), dim=-1):
            inputs = training.inputs[rows]
            wrong = _times(inputs, weights).sigmoid() - training.ill[rows]
            slope = (inputs * wrong.unsqueeze(-1)).mean(-2) + config["l2"] * shrunk * weights
            weights = weights - config["lr"] * slope
    return _times(validation.inputs.expand(_REPEATS, -1, -1), weights)


def _times(
    inputs: Tensor,  # shape: (repeats, n, 9)
    weights: Tensor,  # shape: (repeats, 9)
) -> Tensor:  # shape: (repeats, n)
    return (inputs @ weights.unsqueeze(-1)).squeeze(-1)


def _accuracy(logits: Tensor, ill: Tensor) -> float:
    return float(((logits > 0) == (ill > 0)).double().mean())


def _likelihood(logits: Tensor, ill: Tensor) -> float:
    signed = logits * (2 * ill - 1)
    return float(torch.nn.functional.logsigmoid(signed).mean().exp())


class _Measure(NamedTuple):
    """What is measured, and after how many epochs."""

    metric: Callable[[Tensor, Tensor], float]
    epochs: int


def _evaluate(task: str, config: Config, seed: int, *, measure: _Measure) -> float:
    logits = _logits(task, config, seed, measure.epochs)
    return measure.metric(logits, patients(task)[1].ill)


def _family(name: str, measure: _Measure) -> Family:
    evaluate = one_by_one(partial(_evaluate, measure=measure))
    return Family(name, SPACE, tuple(ROWS), tuple(ROWS)[-1:], evaluate, block=64, recorded=256)


DIABETES = _family("diabetes", _Measure(_accuracy, epochs=10))
DIABETES_LIKELIHOOD = _family("diabetes likelihood", _Measure(_likelihood, epochs=60))
