"""Pictures of a batch altered at random, each as strongly as its own hyperparameters say.

torchvision draws one strength for a batch; here each picture has its own, on any device, without a loop.
Everything that is linear in the colours is one 3 x 3 matrix a picture: with ``b, c, s`` drawn evenly from
``[1 - strength, 1 + strength]``, an angle ``a`` from ``2 pi [-hue, hue]``, ``g`` the grey of a colour and
``m`` the mean grey of the picture,

    brightness   x <- b x
    contrast     x <- c x + (1 - c) m
    saturation   x <- s x + (1 - s) g(x)
    hue          the plane of the chroma turns by ``a`` about the axis of the greys (in YIQ),

in this order, cut to [0, 1] once at the end. torchvision cuts after each, draws the order, and turns
the hue of HSV; the YIQ turn keeps the grey of a picture.
"""

from collections.abc import Mapping
from functools import cache

import torch
from torch import Generator, Tensor

from benchmarks.training.stn.hyperparameters import Bounds
from benchmarks.training.stn.layers import drop
from botorch_costly.errors import check

HOLES = 4  # at most
COLOURS = ("brightness", "contrast", "saturation", "hue")  # in the order in which they are changed

# As MacKay et al. started them, with their bounds; lengths are in pixels of 32.
AUGMENTATIONS: dict[str, Bounds] = {
    "hue": Bounds(0.0, 0.5, start=0.05),  # turns, either way
    "contrast": Bounds(0.0, 1.0, start=0.05),
    "saturation": Bounds(0.0, 1.0, start=0.05),
    "brightness": Bounds(0.0, 1.0, start=0.05),
    "input_dropout": Bounds(0.0, 0.9, start=0.05),
    "input_scale": Bounds(0.0, 0.3, start=0.05),
    "cutout_length": Bounds(0.0, 25.0, start=4.0, whole=True),
    "cutout_holes": Bounds(0.0, HOLES + 1.0, start=1.5, whole=True),
}
GREY = (0.299, 0.587, 0.114)  # luma, ITU-R BT.601
Axes = tuple[Tensor, Tensor, Tensor]
_CHROMA = ((0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))  # I and Q


def augment(
    pictures: Tensor,  # shape: (n, 3, side, side)
    strengths: Mapping[str, Tensor],  # shape: (n,) each
    generator: Generator,
) -> Tensor:  # shape: (n, 3, side, side)
    """Alter each picture at random: colours, holes, input dropout, input scale, in this order.

    Args:
        pictures: Pixels in [0, 1].
        strengths: Of each picture, for each of ``AUGMENTATIONS``.
        generator: Source of all draws, on the device of the pictures.

    Raises:
        InvalidArgumentError: If the pictures have no three channels.

    Example:
        >>> none = {name: torch.zeros(2) for name in AUGMENTATIONS}
        >>> pictures = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        >>> bool((augment(pictures, none, torch.Generator()) - pictures).abs().max() < 1e-5)
        True
    """
    shape = tuple(pictures.shape)
    check(len(shape) == 4 and shape[1] == 3, "pictures", "shape n x 3 x height x width", shape)
    draws = torch.rand(shape[0], 5 + 2 * HOLES, generator=generator, device=pictures.device)
    colours = (2 * draws[:, :4] - 1).unbind(-1)
    moves = [draw * strengths[name] for draw, name in zip(colours, COLOURS, strict=True)]
    pictures = jitter(pictures, 1 + moves[0], 1 + moves[1], 1 + moves[2], moves[3])
    centres = draws[:, 5:].unflatten(-1, (HOLES, 2))
    hole = holes(centres, strengths["cutout_length"], strengths["cutout_holes"], shape[-2:])
    pictures = pictures.masked_fill(hole, 0.0)
    pictures = drop(pictures, strengths["input_dropout"], generator)
    most = 1 + strengths["input_scale"]  # factors are drawn evenly between 1 / most and most
    factor = 1 / most + draws[:, 4] * (most - 1 / most)
    return pictures * factor[:, None, None, None]


def jitter(
    pictures: Tensor,  # shape: (n, 3, height, width)
    brightness: Tensor,  # shape: (n,)
    contrast: Tensor,  # shape: (n,)
    saturation: Tensor,  # shape: (n,)
    turn: Tensor,  # shape: (n,), of the hue, in turns
    axes: Axes | None = None,
) -> Tensor:  # shape: (n, 3, height, width)
    """Change the colours of each picture by its own factors, in one affine map a picture.

    What is compiled is given its ``axes``, as from ``axes_of``: a cache is nothing to compile.
    """
    grey, chroma, back = axes_of(pictures.device, pictures.dtype) if axes is None else axes
    pixels = pictures.flatten(2)
    mean = brightness * (pixels.mean(-1) @ grey)  # m, of the brightened picture
    cos, sin = (2 * torch.pi * turn).cos(), (2 * torch.pi * turn).sin()
    turned = torch.stack([cos, -sin, sin, cos], -1).view(-1, 2, 2)
    # A colour is its grey and its chroma; saturation scales the chroma, and hue turns it.
    colours = saturation[:, None, None] * (back @ turned @ chroma)
    colours = colours + grey  # every row is grey^T: the grey goes to all three channels
    linear = (brightness * contrast)[:, None, None] * colours
    offset = (1 - contrast) * mean  # a grey, which saturation and hue keep
    changed = torch.baddbmm(offset[:, None, None], linear, pixels)
    return changed.clamp(0, 1).view_as(pictures)


def holes(
    centres: Tensor,  # shape: (n, holes, 2), in [0, 1]
    lengths: Tensor,  # shape: (n,), in pixels
    counts: Tensor,  # shape: (n,)
    size: torch.Size | tuple[int, ...],
) -> Tensor:  # shape: (n, 1, height, width)
    """Mark the pixels of squares: of each picture its first ``counts`` holes, ``lengths`` wide.

    References:
        T. DeVries, G. Taylor. Improved regularization of convolutional neural networks with cutout. 2017.
    """
    inside = []
    for axis, pixels in enumerate(size):
        centre = (centres[..., axis] * pixels).floor()[..., None]  # the pixel in the middle
        first = centre - (lengths / 2).floor()[:, None, None]
        place = torch.arange(pixels, device=centres.device)
        inside.append((place >= first) & (place < first + lengths[:, None, None]))
    wanted = torch.arange(centres.shape[1], device=centres.device) < counts[:, None]
    rows = inside[0] & wanted[..., None]  # (n, holes, height)
    return (rows[..., :, None] & inside[1][..., None, :]).any(1, keepdim=True)


@cache
def axes_of(device: torch.device, dtype: torch.dtype) -> Axes:
    """Return the grey, ``(3,)``, the chroma, ``(2, 3)``, and the way back from the chroma, ``(3, 2)``."""
    grey = torch.tensor(GREY, dtype=torch.float64)
    chroma = torch.tensor(_CHROMA, dtype=torch.float64)
    chroma = chroma - chroma.mean(-1, keepdim=True)  # exactly none in a grey
    back = torch.linalg.inv(torch.cat([grey[None], chroma]))[:, 1:]
    grey, chroma, back = (part.to(device=device, dtype=dtype) for part in (grey, chroma, back))
    return grey, chroma, back
