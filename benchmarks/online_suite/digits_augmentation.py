"""Which augmentations help? Eight probabilities, tuned while a network learns digits.

A small convolutional network learns scikit-learn's 8 x 8 digits from 200 pictures. Each of
eight augmentations hits each training picture with its own probability, 0.5 at the start. Some
help (rotation, shift, noise), others destroy what a digit is (flips, transpose, inversion). 400
pictures are for validation, the others for the final test. Mean final test accuracy in per cent,
five seeds (100 to 104): all at 0.5 61, uniformly random every round 57, all off 95, rotation, shift
and noise at 0.5 with the others off 97.

A round is one pass in ``STEPS`` minibatches. All pictures of a round are augmented in one batch:
geometry is a single affine map of the pixel grid per picture, so a round costs one ``grid_sample``.
Pictures stay in [0, 1] while they are augmented; they are normalized when the network reads them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812  (PyTorch's own name for it)

from benchmarks.online_suite.protocol import Metrics, check_config
from botorch_costly.errors import (
    StateMismatchError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
)

AUGMENTATIONS = (
    "rotation",
    "shift",
    "horizontal_flip",
    "vertical_flip",
    "transpose",
    "inversion",
    "noise",
    "cutout",
)
STEPS, BATCH = 6, 32  # a round: 192 of the 200 training pictures
PER_CLASS = {"train": 20, "validation": 40}  # of 174 to 183 pictures of each digit
SIDE, CLASSES = 8, 10


@dataclass(frozen=True)
class Strengths:
    """How strong each augmentation is where it hits.

    Args:
        rotation: Largest angle either way, in degrees.
        shift: Largest displacement along each axis, in pixels.
        noise: Standard deviation of the noise, in units of the pixel range.
        cutout: Side of the square set to background, in pixels.
    """

    rotation: float = 30.0
    shift: float = 1.5
    noise: float = 0.3
    cutout: float = 3.0

    def __post_init__(self) -> None:
        for name in ("rotation", "shift", "noise", "cutout"):
            check_nonnegative(name, getattr(self, name))


def augment(
    pictures: Tensor,  # shape: (n, 1, side, side)
    probabilities: Tensor,  # shape: (8,)
    strengths: Strengths,
    generator: Generator,
) -> Tensor:  # shape: (n, 1, side, side)
    """Augment each picture at random, in the order warp, noise, inversion, cutout.

    Args:
        pictures: Pixels in [0, 1], shape ``n x 1 x side x side``; 0 is background.
        probabilities: Of hitting a picture, one for each of ``AUGMENTATIONS``.
        strengths: How strong each is.
        generator: Source of all randomness.
    """
    n, side = len(pictures), pictures.shape[-1]
    hit = torch.rand(n, len(AUGMENTATIONS), generator=generator) < probabilities
    hits = dict(zip(AUGMENTATIONS, hit.unbind(-1), strict=True))
    angle, *place = (2 * torch.rand(n, 5, generator=generator) - 1).unbind(-1)
    grain = torch.randn(pictures.shape, generator=generator)

    affine = _affine(hits, angle, torch.stack(place[:2], -1), strengths, side)
    grid = F.affine_grid(affine, list(pictures.shape), align_corners=False)
    pictures = F.grid_sample(pictures, grid, align_corners=False)
    pictures = pictures + strengths.noise * _per_picture(hits["noise"]) * grain
    pictures = torch.where(_per_picture(hits["inversion"]), 1 - pictures, pictures)
    hole = _hole(torch.stack(place[2:], -1), strengths.cutout, side)
    return pictures.masked_fill(hole & _per_picture(hits["cutout"]), 0.0)


def _per_picture(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _affine(
    hits: dict[str, Tensor],  # shape: (n,) each
    angle: Tensor,  # shape: (n,), in [-1, 1]
    shift: Tensor,  # shape: (n, 2), in [-1, 1]
    strengths: Strengths,
    side: int,
) -> Tensor:  # shape: (n, 2, 3)
    """Map the pixel grid of the output to the places in the input it is read from."""
    radians = hits["rotation"] * angle * (strengths.rotation * torch.pi / 180)
    cos, sin = radians.cos(), radians.sin()
    rotation = torch.stack([cos, -sin, sin, cos], -1).view(-1, 2, 2)
    flips = torch.stack([hits["horizontal_flip"], hits["vertical_flip"]], -1)
    linear = (1.0 - 2.0 * flips)[..., None] * rotation
    linear = torch.where(hits["transpose"][:, None, None], linear.flip(-2), linear)
    pixel = 2 / side  # the grid spans [-1, 1]
    offset = hits["shift"][:, None] * shift * (strengths.shift * pixel)
    return torch.cat([linear, offset[..., None]], -1)


def _hole(centre: Tensor, width: float, side: int) -> Tensor:  # shape: (n, 1, side, side)
    """Mark the pixels of a square with its centre at ``centre`` in [-1, 1]^2."""
    pixels = (torch.arange(side) + 0.5) * (2 / side) - 1
    near = (pixels - centre[..., None]).abs() < width / side  # (n, 2, side)
    return (near[:, 0, None, :] & near[:, 1, :, None])[:, None]


@cache
def _digits() -> tuple[Tensor, Tensor]:
    """Return all 1,797 pictures in [0, 1] and their digits."""
    from sklearn.datasets import load_digits  # an extra of the package, needed here alone

    data = load_digits()
    pictures = torch.from_numpy(data.images).to(torch.float32) / 16
    return pictures[:, None], torch.from_numpy(data.target).long()


def split(labels: Tensor, generator: Generator) -> dict[str, Tensor]:
    """Draw the indices of training, validation and test pictures, every class in proportion.

    Args:
        labels: Class of each picture, shape ``n``.
        generator: Source of the draw.
    """
    parts: dict[str, list[Tensor]] = {"train": [], "validation": [], "test": []}
    for label in range(CLASSES):
        (members,) = torch.where(labels == label)
        members = members[torch.randperm(len(members), generator=generator)]
        sizes = [*PER_CLASS.values(), len(members) - sum(PER_CLASS.values())]
        for part, chosen in zip(parts.values(), members.split(sizes), strict=True):
            part.append(chosen)
    return {name: torch.cat(part) for name, part in parts.items()}


def _network(width: int, generator: Generator) -> nn.Sequential:
    """Build two convolutions and a linear layer, initialized from ``generator`` alone."""
    convolution = {"kernel_size": 3, "padding": 1}
    network = nn.Sequential(
        nn.utils.skip_init(nn.Conv2d, 1, width, **convolution),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.utils.skip_init(nn.Conv2d, width, 2 * width, **convolution),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.utils.skip_init(nn.Linear, 2 * width * (SIDE // 4) ** 2, CLASSES),
    )
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu", generator=generator)
    return network


class DigitsAugmentationRun:
    """One network learning digits under augmentation: see `DigitsAugmentation.setup`."""

    def __init__(self, problem: "DigitsAugmentation", seed: int) -> None:
        self.problem, self.seed, self._round = problem, seed, 0
        self._generator = Generator().manual_seed(seed)
        pictures, labels = _digits()
        parts = split(labels, self._generator)
        self._parts = {name: (pictures[chosen], labels[chosen]) for name, chosen in parts.items()}
        train = self._parts["train"][0]
        self._mean, self._std = train.mean(), train.std()
        self._network = _network(problem.width, self._generator)
        # Adam: under heavy settings SGD with momentum left some networks at chance.
        parameters = self._network.parameters()
        self._optimizer = torch.optim.Adam(parameters, lr=problem.learning_rate, fused=True)

    @property
    def round(self) -> int:
        """Rounds trained so far."""
        return self._round

    def train_round(self, config: Mapping[str, float]) -> None:
        """Train ``STEPS`` minibatches with the eight probabilities of ``config``.

        Raises:
            InvalidConfigError: If ``config`` is not one probability for each of
                ``AUGMENTATIONS``.
        """
        ordered = check_config(config, self.problem.ranges)
        probabilities = torch.tensor(list(ordered.values()), dtype=torch.float32)
        pictures, labels = self._parts["train"]
        order = torch.randperm(len(labels), generator=self._generator)[: STEPS * BATCH]
        augmented = augment(pictures[order], probabilities, self.problem.strengths, self._generator)
        for batch, target in zip(augmented.split(BATCH), labels[order].split(BATCH), strict=True):
            self._optimizer.zero_grad()
            F.cross_entropy(self._logits(batch), target).backward()
            self._optimizer.step()
        self._round += 1

    def _logits(self, pictures: Tensor) -> Tensor:
        return self._network((pictures - self._mean) / self._std)

    def validate(self) -> Metrics:
        """Measure the network on the 400 validation pictures."""
        return self._measure("validation")

    def test(self) -> Metrics:
        """Measure the network on the 1,197 test pictures."""
        return self._measure("test")

    def _measure(self, part: str) -> Metrics:
        pictures, labels = self._parts[part]
        with torch.no_grad():
            logits = self._logits(pictures)
            loss = F.cross_entropy(logits, labels).nan_to_num(torch.inf)
            accuracy = (logits.argmax(-1) == labels).double().mean()
        return Metrics(loss.item(), accuracy.item())

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimizer, generator and round; loads with ``weights_only=True``.

        Like any ``state_dict``, it shares its tensors with the run: save or copy it before
        training on.
        """
        return {
            "problem": asdict(self.problem),
            "seed": self.seed,
            "round": self._round,
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``, bit for bit.

        Raises:
            StateMismatchError: If ``state`` comes from another problem or another seed (whose
                pictures are split otherwise), or lacks a part.
        """
        own = self.state_dict()
        keys = f"the keys {list(own)}"
        check(set(state) == set(own), "state", keys, list(state), StateMismatchError)
        for name in ("problem", "seed"):
            check(state[name] == own[name], name, str(own[name]), state[name], StateMismatchError)
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._generator.set_state(state["generator"])
        self._round = state["round"]


@dataclass(frozen=True)
class DigitsAugmentation:
    """Eight augmentation probabilities, tuned in one run of 200 rounds.

    Args:
        strengths: How strong each augmentation is.
        width: Channels of the first convolution; the second has twice as many.
        learning_rate: Of Adam.

    Example:
        >>> run = DigitsAugmentation().setup(seed=0)
        >>> run.train_round(DigitsAugmentation().default)
        >>> run.round
        1
    """

    strengths: Strengths = Strengths()
    width: int = 16
    learning_rate: float = 3e-3

    name = "digits_augmentation"
    horizon = 200

    def __post_init__(self) -> None:
        check_count("width", self.width, minimum=1)
        check_positive("learning_rate", self.learning_rate)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Every parameter is a probability."""
        return dict.fromkeys(AUGMENTATIONS, (0.0, 1.0))

    @property
    def default(self) -> dict[str, float]:
        """Every augmentation hits half of the pictures."""
        return dict.fromkeys(AUGMENTATIONS, 0.5)

    def setup(self, seed: int) -> DigitsAugmentationRun:
        """Split the pictures and initialize the network, all from ``seed``."""
        return DigitsAugmentationRun(self, check_count("seed", seed))
