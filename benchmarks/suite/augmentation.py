"""Eight ways to alter pictures at random; some help a network, others destroy what a picture shows.

All pictures of a round are altered in one batch: geometry is a single affine map of the pixel grid
per picture, so a round costs one ``grid_sample``. Pictures stay near [0, 1]; they are normalized when
a network reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import check_nonnegative

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


@dataclass(frozen=True)
class Strengths:
    """How strong each augmentation is where it hits."""

    rotation: float = 30.0  # largest angle either way, in degrees
    shift: float = 1.5  # largest displacement along each axis, in pixels
    noise: float = 0.3  # standard deviation of the noise, in units of the pixel range
    cutout: float = 3.0  # side of the square set to background, in pixels

    def __post_init__(self) -> None:
        for part in fields(self):
            check_nonnegative(part.name, getattr(self, part.name))


@dataclass(frozen=True)
class Chances:
    """Settings are the probabilities of hitting a picture, 0 for those that are not named."""

    strengths: Strengths = Strengths()

    def __call__(
        self, pictures: Tensor, settings: Mapping[str, Any], generator: Generator
    ) -> Tensor:
        """Alter each picture, ``n x channels x side x side``, at random."""
        chances = torch.tensor([float(settings.get(name, 0.0)) for name in AUGMENTATIONS])
        return augment(pictures, chances, self.strengths, generator)


@dataclass(frozen=True)
class Doses:
    """Settings are the strengths of what hits every picture, 0 for those that are not named."""

    def __call__(
        self, pictures: Tensor, settings: Mapping[str, Any], generator: Generator
    ) -> Tensor:
        doses = {part.name: float(settings.get(part.name, 0.0)) for part in fields(Strengths)}
        chances = torch.tensor([float(name in doses) for name in AUGMENTATIONS])
        return augment(pictures, chances, Strengths(**doses), generator)


@dataclass(frozen=True)
class TrivialAugment:
    """One operation a picture, drawn evenly, of a strength drawn evenly; no setting is read.

    The operations are those here that have a strength, and none at all. Rotations and shifts are as
    wide as in the narrower of the paper's spaces, 30 degrees and 10 of 32 pixels, either way.

    References:
        S. G. Müller, F. Hutter. TrivialAugment: tuning-free yet state-of-the-art data augmentation.
        ICCV 2021, Algorithm 1.
    """

    rotation: float = 30.0  # largest angle either way, in degrees
    shift: float = 10 / 32  # largest displacement along each axis, as a share of the side
    noise: float = 0.3  # largest standard deviation of the noise, in units of the pixel range
    cutout: float = 0.5  # largest side of the square set to background, as a share of the side

    def __call__(
        self, pictures: Tensor, settings: Mapping[str, Any], generator: Generator
    ) -> Tensor:
        """Alter each picture, ``n x channels x side x side``, by one operation or none."""
        n, side = len(pictures), pictures.shape[-1]
        graded = [AUGMENTATIONS.index(part.name) for part in fields(Strengths)]
        chances = torch.zeros(n, len(AUGMENTATIONS) + 1)  # the last column is none at all
        columns = torch.tensor([*graded, len(AUGMENTATIONS)])
        drawn = torch.randint(len(columns), (n,), generator=generator)
        chances[torch.arange(n), columns[drawn]] = 1.0
        strengths = Strengths(self.rotation, self.shift * side, self.noise, self.cutout * side)
        levels = torch.rand(n, generator=generator)
        return augment(pictures, chances[:, :-1], strengths, generator, levels)


def augment(
    pictures: Tensor,  # shape: (n, channels, side, side)
    probabilities: Tensor,  # shape: (8,) or (n, 8)
    strengths: Strengths,
    generator: Generator,
    levels: Tensor | float = 1.0,  # shape: (n,)
) -> Tensor:  # shape: (n, channels, side, side)
    """Augment each picture at random, in the order warp, noise, inversion, cutout.

    Pixels are in [0, 1], and 0 is background. Probabilities are those of hitting a picture, one for each
    of ``AUGMENTATIONS``. Levels multiply the noise and the cutout of each picture; angles and
    displacements are drawn evenly up to their strength as it is.
    """
    n, side = len(pictures), pictures.shape[-1]
    hit = torch.rand(n, len(AUGMENTATIONS), generator=generator) < probabilities
    hits = dict(zip(AUGMENTATIONS, hit.unbind(-1), strict=True))
    angle, *place = (2 * torch.rand(n, 5, generator=generator) - 1).unbind(-1)
    grain = torch.randn(pictures.shape, generator=generator)

    affine = _affine(hits, angle, torch.stack(place[:2], -1), strengths, side)
    grid = F.affine_grid(affine, list(pictures.shape), align_corners=False)
    pictures = F.grid_sample(pictures, grid, align_corners=False)
    levels = torch.as_tensor(levels).expand(n)
    pictures = pictures + strengths.noise * _per_picture(levels * hits["noise"]) * grain
    pictures = torch.where(_per_picture(hits["inversion"]), 1 - pictures, pictures)
    centre = torch.stack(place[2:], -1)
    widths = strengths.cutout * levels
    pixels = (torch.arange(side) + 0.5) * (2 / side) - 1
    near = (pixels - centre[..., None]).abs() < widths[:, None, None] / side  # (n, 2, side)
    hole = (near[:, 0, None, :] & near[:, 1, :, None])[:, None]
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
