"""Random inputs that several tests share."""

import torch

from botorch_costly.query import Comparison, Prospect


def comparisons(
    shape, rivals, generator, absent=0.3, joint=True, dtype=torch.float64, device=None, spread=1.0
):
    """Draw comparisons from joint Gaussian beliefs; a rival is absent with probability ``absent``.

    Their prospects have means at most as high as the candidate's, and are worth a query about as often
    as not; their lookaheads are as often positive as negative.
    """

    def draw(*size):
        numbers = torch.randn(size, generator=generator, dtype=torch.float64, device=device)
        return numbers.to(dtype)

    size = 1 + rivals
    root = draw(*shape, size, size) / size**0.5
    cov = root @ root.mT
    mean = spread * draw(*shape, size)
    exists = draw(*shape, rivals) > torch.special.ndtri(torch.tensor(absent)).item()
    beta = draw(*shape).square()
    prospect = Prospect(mean[..., 0] - draw(*shape).abs(), 0.1 * draw(*shape).abs(), draw(*shape))
    return Comparison(
        mean=mean[..., 0],
        variance=cov[..., 0, 0],
        rival_mean=mean[..., 1:],
        rival_variance=cov.diagonal(dim1=-2, dim2=-1)[..., 1:],
        rival_covariance=cov[..., 0, 1:] if joint else None,
        exists=exists,
        beta=beta,
        prospect=prospect,
    )


def each(comparison, change):
    """Return a comparison, or another tuple, with every tensor in it changed, those inside too."""
    parts = (each(x, change) if isinstance(x, tuple) else x for x in comparison)
    changed = [change(x) if torch.is_tensor(x) else x for x in parts]
    return tuple(changed) if type(comparison) is tuple else type(comparison)(*changed)


def tensors(comparison):
    """List every tensor of a comparison or verdict, those inside too."""
    inside = (x for x in comparison if isinstance(x, torch.Tensor | tuple))
    parts = ([x] if torch.is_tensor(x) else tensors(x) for x in inside)
    return [x for part in parts for x in part]


def duel(mean, variance, rival_mean, rival_variance, covariance=None, beta=1.0):
    """Return the comparison of one candidate against one rival, without a batch."""
    number = torch.tensor([mean, variance, beta], dtype=torch.float64)
    rival = torch.tensor([[rival_mean], [rival_variance]], dtype=torch.float64)
    shared = None if covariance is None else torch.tensor([covariance], dtype=torch.float64)
    there = torch.ones(1, dtype=torch.bool)
    return Comparison(number[0], number[1], rival[0], rival[1], shared, there, number[2])
