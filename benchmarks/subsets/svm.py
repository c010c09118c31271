"""A support vector machine on MNIST, trained on more or less of the pictures."""

import math
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.subsets.live.program import Outcome
from benchmarks.suite.data import arrays_of
from botorch_costly import Real, SearchSpace
from botorch_costly.plain import as_number

SPACE = SearchSpace(
    {
        "c": Real(math.exp(-10), math.exp(10), log=True),
        "gamma": Real(math.exp(-10), math.exp(10), log=True),
    }
)
"""The supplement's: penalty and width of the kernel, both from e^-10 to e^10."""
FRACTION = SearchSpace({"fraction": Real(1 / 512, 1.0, log=True)})


class Size(NamedTuple):
    """How much of MNIST is used."""

    pictures: int = 8_192  # to train on, at most 50,000
    checked: int = 2_000  # to validate on, of the last 10,000 of the training pictures
    side: int = 14  # to which pictures of 28 x 28 are averaged; 7, 14 or 28


def evaluate(c: float, gamma: float, pictures: int, seed: int, size: Size) -> Outcome:
    """Train on so many pictures drawn at random, and validate."""
    from sklearn.svm import SVC  # an extra of the package, needed here alone

    inputs, classes = _mnist(size.side)
    drawn = np.random.default_rng(seed).choice(size.pictures, pictures, replace=False)
    held_out = slice(len(inputs) - 10_000, len(inputs) - 10_000 + size.checked)
    began = time.process_time()
    if len(np.unique(classes[drawn])) == 1:  # nothing to tell apart
        predicted = np.full(size.checked, classes[drawn][0])
    else:
        machine = SVC(C=c, gamma=gamma, cache_size=1_000).fit(inputs[drawn], classes[drawn])
        predicted = machine.predict(inputs[held_out])
    seconds = time.process_time() - began
    return Outcome(float((predicted != classes[held_out]).mean()), seconds)


def trained(config: Any, fraction: float, seed: int, size: Size) -> Outcome:
    """Evaluate a configuration of ``SPACE`` on a fraction of the pictures."""
    c, gamma = (as_number(name, config[name]) for name in ("c", "gamma"))
    return evaluate(c, gamma, max(2, round(fraction * size.pictures)), seed, size)


@cache
def _mnist(side: int) -> tuple[Any, Any]:
    """Return all training pictures, averaged to ``side x side`` in [0, 1], and their classes."""
    pool = arrays_of("mnist.npz", ("x_train", "y_train"))
    pictures = torch.from_numpy(pool["x_train"]).double()[:, None] / 255
    small = torch.nn.functional.avg_pool2d(pictures, 28 // side)
    return small.flatten(1).numpy(), pool["y_train"]
