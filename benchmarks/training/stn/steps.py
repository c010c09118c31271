"""The two losses of a self-tuning network, and the gradient of the second one.

A training step changes the weights: the loss of a training batch, each example altered and its units
dropped as strongly as its own perturbed hyperparameters say. A tuning step changes centre and scale of
the hyperparameters: the loss of a validation batch, nothing altered or dropped, less ``tau`` times the
entropy of the perturbation. Its gradient reaches the hyperparameters through the weights alone.

References:
    M. MacKay, P. Vicol, J. Lorraine, D. Duvenaud, R. Grosse. Self-tuning networks. ICLR 2019, eq. 14 and
    algorithm 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.training.stn.augmentation import AUGMENTATIONS, augment
from benchmarks.training.stn.hyperparameters import Hyperparameters
from benchmarks.training.stn.networks import SelfTuningNetwork


class SelfTuning(NamedTuple):
    """A network, the hyperparameters that it responds to, and what makes pixels in [0, 1] its inputs."""

    network: SelfTuningNetwork
    hyperparameters: Hyperparameters
    normalize: Callable[[Tensor], Tensor]


def training_loss(
    tuned: SelfTuning,
    pictures: Tensor,  # shape: (n, 3, side, side), in [0, 1]
    targets: Tensor,  # shape: (n,)
    generator: Generator,
) -> tuple[Tensor, Tensor]:  # shape: (), (n, classes)
    """Return the loss of a training batch, in nats, and its logits.

    The hyperparameters are named ``dropout_0``, ``dropout_1``, ... for the layers, and as in
    ``AUGMENTATIONS``. They are drawn, not moved: no gradient reaches them.
    """
    network, hyperparameters, normalize = tuned
    with torch.no_grad():
        h = hyperparameters.perturbed(len(pictures), generator)
        values = dict(zip(hyperparameters.names, hyperparameters.constrained(h).mT, strict=True))
        altered = augment(pictures, {name: values[name] for name in AUGMENTATIONS}, generator)
        rates = [values[f"dropout_{layer}"] for layer in range(len(network.plan))]
    network.train()
    h = hyperparameters.since_start(h)
    logits = network(normalize(altered), h, torch.stack(rates, -1), generator)
    return F.cross_entropy(logits, targets), logits


def tuning_loss(
    tuned: SelfTuning,
    pictures: Tensor,  # shape: (n, 3, side, side), in [0, 1]
    targets: Tensor,  # shape: (n,)
    generator: Generator,
) -> Tensor:  # shape: ()
    """Return the loss of a validation batch, in nats: perturbed hyperparameters, nothing dropped."""
    network, hyperparameters, normalize = tuned
    network.eval()
    h = hyperparameters.since_start(hyperparameters.perturbed(len(pictures), generator))
    return F.cross_entropy(network(normalize(pictures), h), targets)


@torch.no_grad()
def unperturbed_logits(
    tuned: SelfTuning,
    pictures: Tensor,  # shape: (n, 3, side, side), in [0, 1]
) -> Tensor:  # shape: (n, classes)
    """Return the logits under the hyperparameters as they are, nothing altered or dropped."""
    network, hyperparameters, normalize = tuned
    network.eval()
    h = hyperparameters.since_start(hyperparameters.centre)[None]
    return network(normalize(pictures), h)


def tuning_objective(loss: Tensor, hyperparameters: Hyperparameters, tau: float) -> Tensor:
    """Return what a tuning step descends: the validation loss less ``tau`` times the entropy."""
    return loss - tau * hyperparameters.entropy()


def hypergradient(objective: Tensor, hyperparameters: Hyperparameters) -> None:
    """Set the gradients of centre and scale, and of nothing else: no weight gets one.

    One that is not finite counts as 0: of a network that has diverged, hyperparameters learn nothing.
    """
    tuned = [hyperparameters.centre, hyperparameters.raw_scale]
    for parameter, gradient in zip(tuned, torch.autograd.grad(objective, tuned), strict=True):
        parameter.grad = gradient.nan_to_num(0.0, 0.0, 0.0)
