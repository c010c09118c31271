"""Eight ways to alter pictures, each of which hits a picture with a probability of its own.

All that is random comes in as uniform numbers, ``DRAWS`` for each picture. So a batch of views is one
function of tensors: probabilities may change from step to step, and nothing is rebuilt or compiled again.

Crop, flips and rotation are one affine map of the pixel grid, so that each picture is sampled once. A
picture is cropped and resized, flipped, turned by 90, 180 or 270 degrees, its colours are distorted, it
loses them, it is blurred, and a square of it is cut out, in this order. What does not hit a picture
leaves it exactly as it was.

References:
    T. Chen, S. Kornblith, M. Norouzi, G. Hinton. A simple framework for contrastive learning of visual
    representations. ICML 2020, section 3 and appendix A.
    T. DeVries, G. Taylor. Improved regularization of convolutional neural networks with cutout. 2017.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.training.stn.augmentation import GREY, Axes, holes, jitter
from botorch_costly.errors import InvalidShapeError, check, check_count, check_rate

AUGMENTATIONS = (
    "crop",
    "colour",
    "cutout",
    "flip_horizontal",
    "flip_vertical",
    "rotation",
    "blur",
    "grey",
)
_MANY = len(AUGMENTATIONS)
_PLACED = (4, 4, 2, 1, 1)  # numbers for crop, colours, cutout, rotation, blur
DRAWS = _MANY + sum(_PLACED)
_NARROWEST, _WIDEST = 3 / 4, 4 / 3  # a crop, width by height, before it is resized
_SMALLEST = 0.08  # share of the picture
_SIGMAS = (0.1, 2.0)  # of the blur, in pixels
_CUT = 0.5  # what a hole is filled with: the middle of the range of pixels


@dataclass(frozen=True)
class Strengths:
    """How strong the augmentations are where they hit.

    Args:
        colour: Strength of the distortion of colours, 0.5 on CIFAR-10: brightness, contrast and
            saturation change by 0.8 of it, the hue by 0.2 of it in turns.
        hole: Side of the square that is cut out, as a share of that of the picture.
        kernel: Width of the blur's kernel, as a share of the side.

    Raises:
        InvalidArgumentError: If one is no number in [0, 1].
    """

    colour: float = 0.5
    hole: float = 0.5
    kernel: float = 0.1

    def __post_init__(self) -> None:
        for part in fields(self):
            check_rate(part.name, getattr(self, part.name))


STRENGTHS = Strengths()


def draw(count: int, generator: Generator) -> Tensor:  # shape: (count, DRAWS)
    """Draw what alters so many pictures, on the device of the generator."""
    size = (check_count("count", count, minimum=1), DRAWS)
    return torch.rand(size, generator=generator, device=generator.device)


def one_operation(draws: Tensor) -> Tensor:  # shape: (n, 8)
    """Return probabilities under which each picture is altered in one way, or in none, drawn evenly.

    They are 0 or 1, so that the number that would say whether a crop hits may say which way it is.

    References:
        S. G. Müller, F. Hutter. TrivialAugment: tuning-free yet state-of-the-art data augmentation.
        ICCV 2021, Algorithm 1.
    """
    chosen = (draws[:, 0] * (_MANY + 1)).long()
    return F.one_hot(chosen, _MANY + 1)[:, :_MANY].to(draws.dtype)


def augment(
    pictures: Tensor,  # shape: (n, 3, side, side)
    probabilities: Tensor,  # shape: (8,) or (n, 8)
    draws: Tensor,  # shape: (n, DRAWS)
    strengths: Strengths = STRENGTHS,
    axes: Axes | None = None,
) -> Tensor:  # shape: (n, 3, side, side)
    """Alter each picture in those of the eight ways that hit it.

    Args:
        pictures: Pixels in [0, 1].
        probabilities: Of hitting a picture, in the order of ``AUGMENTATIONS``; of a picture's own in
            two dimensions. At 0 nothing is changed, at 1 every picture is.
        draws: Uniform numbers in [0, 1), as from ``draw``.
        strengths: Where they hit.
        axes: Of the colours, as ``axes_of`` returns them; what is compiled needs to be given them.

    Raises:
        InvalidShapeError: If the shapes do not fit together.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> pictures = torch.rand(2, 3, 8, 8, generator=generator)
        >>> altered = augment(pictures, torch.zeros(8), draw(2, generator))
        >>> torch.equal(altered, pictures)
        True
    """
    _check_shapes(pictures, probabilities, draws)
    hit = (draws[:, :_MANY] < probabilities).unbind(-1)
    crop, colour, cutout, mirrored, upturned, turned, blurred, greyed = hit
    places, colours, centre, angle, sigma = draws[:, _MANY:].split(_PLACED, -1)

    window = _window(places, crop)
    linear = window[:, 2:, None] * _turns(mirrored, upturned, angle[:, 0], turned)
    affine = torch.cat([linear, window[:, :2, None]], -1)
    grid = F.affine_grid(affine, list(pictures.shape), align_corners=False)
    warped = F.grid_sample(pictures, grid, padding_mode="border", align_corners=False)
    pictures = torch.where(_wide(crop | mirrored | upturned | turned), warped, pictures)

    pictures = torch.where(_wide(colour), _distorted(pictures, colours, strengths, axes), pictures)
    red, green, blue = pictures.split(1, 1)
    grey = GREY[0] * red + GREY[1] * green + GREY[2] * blue
    pictures = torch.where(_wide(greyed), grey, pictures)
    pictures = torch.where(_wide(blurred), _blurred(pictures, sigma, strengths), pictures)
    side = pictures.shape[-1]
    lengths = torch.full_like(sigma[:, 0], round(strengths.hole * side))
    hole = holes(centre[:, None], lengths, cutout.to(lengths.dtype), pictures.shape[-2:])
    return torch.where(hole, _CUT, pictures)


def _check_shapes(pictures: Tensor, probabilities: Tensor, draws: Tensor) -> None:
    shape = tuple(pictures.shape)
    coloured = len(shape) == 4 and shape[1] == 3 and shape[2] == shape[3]
    check(coloured, "pictures", "shape n x 3 x side x side", shape, InvalidShapeError)
    allowed = ((_MANY,), (shape[0], _MANY))
    given = tuple(probabilities.shape)
    expected = f"shape {_MANY} or n x {_MANY}"
    check(given in allowed, "probabilities", expected, given, InvalidShapeError)
    drawn = tuple(draws.shape)
    check(drawn == (shape[0], DRAWS), "draws", f"shape n x {DRAWS}", drawn, InvalidShapeError)


def _wide(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _window(
    places: Tensor,  # shape: (n, 4)
    hit: Tensor,  # shape: (n,), bool
) -> Tensor:  # shape: (n, 4): centre in [-1, 1]^2, and half of width and height
    """Return what is cropped of each picture: all of it where the crop does not hit."""
    area = _SMALLEST + (1 - _SMALLEST) * places[:, 0]
    ratio = (math.log(_NARROWEST) + math.log(_WIDEST / _NARROWEST) * places[:, 1]).exp()
    # A window that would be wider than the picture is as wide as the picture.
    half = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()], -1).clamp(max=1)
    centre = (1 - half) * (2 * places[:, 2:] - 1)
    whole = torch.cat([torch.zeros_like(half), torch.ones_like(half)], -1)
    return torch.where(hit[:, None], torch.cat([centre, half], -1), whole)


def _turns(
    mirrored: Tensor,  # shape: (n,), bool
    upturned: Tensor,  # shape: (n,), bool
    angle: Tensor,  # shape: (n,), in [0, 1)
    turned: Tensor,  # shape: (n,), bool
) -> Tensor:  # shape: (n, 2, 2)
    """Return a flip of the axes after one, two or three quarter turns."""
    quarters = torch.where(turned, 1 + (3 * angle).long(), 0)
    cos = (quarters == 0).to(angle.dtype) - (quarters == 2).to(angle.dtype)
    sin = (quarters == 1).to(angle.dtype) - (quarters == 3).to(angle.dtype)
    turn = torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2))
    flips = 1 - 2 * torch.stack([mirrored, upturned], -1).to(angle.dtype)
    return flips[..., None] * turn


def _distorted(
    pictures: Tensor,
    colours: Tensor,  # shape: (n, 4), in [0, 1)
    strengths: Strengths,
    axes: Axes | None,
) -> Tensor:
    """Change brightness, contrast, saturation and hue, each by its own factor of each picture."""
    moves = strengths.colour * (2 * colours - 1)
    brightness, contrast, saturation = (1 + 0.8 * moves[:, :3]).unbind(-1)
    return jitter(pictures, brightness, contrast, saturation, 0.2 * moves[:, 3], axes)


def _blurred(
    pictures: Tensor,
    sigma: Tensor,  # shape: (n, 1), in [0, 1)
    strengths: Strengths,
) -> Tensor:
    """Blur each picture by a Gaussian of its own width, which ends where the kernel does."""
    radius = max(round(strengths.kernel * pictures.shape[-1]) // 2, 1)
    width = _SIGMAS[0] + (_SIGMAS[1] - _SIGMAS[0]) * sigma
    offsets = torch.arange(-radius, radius + 1, device=sigma.device, dtype=sigma.dtype)
    weights = (-0.5 * (offsets / width).square()).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    for axis in (-2, -1):
        side = pictures.shape[axis]
        padding = (0, 0, radius, radius) if axis == -2 else (radius, radius, 0, 0)
        padded = F.pad(pictures, padding, mode="replicate")
        moved = [padded.narrow(axis, start, side) for start in range(2 * radius + 1)]
        # As many terms as the kernel is wide: three or so.
        pictures = sum(
            (_wide(weight) * term for weight, term in zip(weights.unbind(-1), moved, strict=True)),
            torch.zeros_like(pictures),
        )
    return pictures
