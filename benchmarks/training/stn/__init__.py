"""Self-tuning networks: one training that finds its own regularization.

The weights of such a network are a function of its hyperparameters, linear near where these are, so that
the gradient of the validation loss with respect to the hyperparameters goes through the weights.

References:
    M. MacKay, P. Vicol, J. Lorraine, D. Duvenaud, R. Grosse. Self-tuning networks: bilevel optimization
    of hyperparameters using structured best-response functions. ICLR 2019.
    J. Lorraine, D. Duvenaud. Stochastic hyperparameter optimization through hypernetworks. 2018.
"""

from benchmarks.training.stn.augmentation import AUGMENTATIONS, augment
from benchmarks.training.stn.hyperparameters import Bounds, Hyperparameters
from benchmarks.training.stn.layers import STNBatchNorm2d, STNConv2d, STNLinear, drop
from benchmarks.training.stn.networks import (
    SMALL,
    VGG16,
    WIDER,
    Convolution,
    SelfTuningNetwork,
)
from benchmarks.training.stn.steps import (
    SelfTuning,
    hypergradient,
    training_loss,
    tuning_loss,
    tuning_objective,
    unperturbed_logits,
)

__all__ = [
    "AUGMENTATIONS",
    "SMALL",
    "VGG16",
    "WIDER",
    "Bounds",
    "Convolution",
    "Hyperparameters",
    "STNBatchNorm2d",
    "STNConv2d",
    "STNLinear",
    "SelfTuning",
    "SelfTuningNetwork",
    "augment",
    "drop",
    "hypergradient",
    "training_loss",
    "tuning_loss",
    "tuning_objective",
    "unperturbed_logits",
]
