"""The normalized temperature-scaled cross entropy of two views."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.training.simclr.ranks import gathered, many, rank
from botorch_costly.errors import InvalidShapeError, check, check_positive


def nt_xent(
    first: Tensor,  # shape: (n, d)
    second: Tensor,  # shape: (n, d)
    temperature: float = 0.5,
) -> Tensor:  # shape: ()
    r"""Return how hard each view is to tell as that of its own picture, among all views.

    .. math::

        \ell_{ij} = -\log \frac{\exp(s_{ij} / \tau)}{\sum_{k \ne i} \exp(s_{ik} / \tau)},

    with :math:`s` the cosine and :math:`j` the other view of picture :math:`i`, averaged over both
    views of this process's pictures. The views of other processes count among the :math:`k`.

    References:
        T. Chen, S. Kornblith, M. Norouzi, G. Hinton. A simple framework for contrastive learning of
        visual representations. ICML 2020, eq. (1).

    Args:
        first: Projections of one view of each picture.
        second: Projections of the other, in the same order.
        temperature: More than 0.

    Raises:
        InvalidShapeError: If the two differ in shape, or have not two dimensions.
        InvalidArgumentError: If there is a single picture, or the temperature is not positive.

    Example:
        >>> apart = torch.eye(2)
        >>> round(nt_xent(apart, apart, temperature=1.0).item(), 4)  # log(1 + 2 / e)
        0.5514
    """
    shapes = tuple(first.shape), tuple(second.shape)
    alike = shapes[0] == shapes[1] and first.dim() == 2
    check(alike, "views", "two of shape n x d", shapes, InvalidShapeError)
    check_positive("temperature", temperature)
    n, everywhere = len(first), len(first) * many()
    check(everywhere >= 2, "batch", "at least two pictures: one has nothing to differ from", n)
    first, second = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
    everything = torch.cat([gathered(first), gathered(second)])  # (2 * everywhere, d)
    similar = torch.cat([first, second]) @ everything.mT / temperature
    place = rank() * n + torch.arange(n, device=first.device)
    own = torch.cat([place, place + everywhere])
    partner = torch.cat([place + everywhere, place])
    itself = torch.arange(2 * everywhere, device=first.device) == own[:, None]
    return F.cross_entropy(similar.masked_fill(itself, -torch.inf), partner)
