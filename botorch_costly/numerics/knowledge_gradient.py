r"""The knowledge gradient: the expected rise of the largest mean by a query, exactly and batched.

A query at ``x`` changes the means of all points jointly, along lines ``mean + slope z`` with

    slope_j = cov(x_j, x) / sqrt(variance(x) + noise),    z ~ N(0, 1).

The knowledge gradient is the expected maximum of these lines minus the largest mean. Only lines on their
upper envelope count. With ``l_1, .. l_k`` these lines by ascending slope, and ``c_i`` the crossing of
``l_i`` and ``l_{i+1}`` [Frazier2009]_,

    E_z max_j (mean_j + slope_j z) - max_j mean_j = sum_i (slope_{i+1} - slope_i) h(-|c_i|),
    h(u) = u Phi(u) + phi(u).

A faster approximation for searches is a sum over a few strata of the normal distribution, evaluated at
their conditional means. For maxima, which have kinks, its error is a third of that of Gauss-Hermite
quadrature with as many points, and it never overestimates, because a maximum of lines is convex.

The envelope is found by evaluation, not by sorting. A line that is the maximum at any evaluated ``z`` is
on it. At the crossing of two neighbours either no line is above them, so that there is none between, or
the maximum there is a new line. The work is ``n`` times the number of lines on the envelope, in tensor
operations over any batch. With a tolerance, devices other than CPUs are not synchronized to learn whether
there are new lines, but make five passes; in 2,100 decisions no more than four were needed.

Conventions: the envelope is followed within ``|z| <= 9``; the probability beyond vanishes in float64.
Lists of lines are padded by repetition, which adds nothing to the sum.

References:
    .. [Frazier2009] P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated
        normal beliefs. INFORMS Journal on Computing 21(4), 2009, section 4.1.
"""

from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.numerics.improvement import excess

_FAR = 9.0
_LEAST_SURPRISE = 1e-30
_ROUNDING = 100  # least variance of an observation in an approximate value, in rounding errors
_SMALL = 50_000  # values of lines that are computed in one tensor
# Lines of all problems, from which on so many problems are solved at a time.
_TOGETHER, _BLOCK = 5000, 8
_FIRST_POINTS = (-_FAR, -2.0, -1.0, -0.4, 0.0, 0.4, 1.0, 2.0, _FAR)
_MOST_PASSES = 50  # only bounds the loop: lines are few and each pass finds new ones
_PASSES_UNSYNCED = 5  # passes on a device that is not synchronized,
_LINES_UNSYNCED = 65  # and its limit of lines; no envelope of the decisions above had more than 25
OUTCOMES = (-2.2, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.2)  # bounds of the strata
# For precise beliefs: there only rare outcomes change the best point.
FAR_OUTCOMES = (-3.8, -3.0, *OUTCOMES, 3.0, 3.8)
FEW_OUTCOMES = (-3.2, -2.2, -1.2, -0.4, 0.4, 1.2, 2.2, 3.2)  # as far, for the choice of a point


def knowledge_gradient(
    mean: Tensor,  # shape: (*batch, n)
    cov: Tensor,  # covariances of the candidates with all points, shape: (*batch, m, n)
    variance: Tensor,  # variances of the candidates, shape: (*batch, m)
    noise: float | Tensor,
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch, m)
    """Return the expected rise of the largest of ``n`` means by a query at each of ``m`` candidates.

    With a tolerance the result may be too small by a few tolerances, which saves time on fine grids.

    Example:
        >>> mean, cov = torch.zeros(2), torch.eye(2)
        >>> knowledge_gradient(mean, cov, torch.ones(2), noise=0.0)  # E max(0, z), each
        tensor([0.3989, 0.3989])
    """
    slope = slopes(cov, variance, noise)
    return expected_rise(mean.unsqueeze(-2).expand_as(slope), slope, tolerance)


def slopes(
    cov: Tensor,  # covariances of a candidate with all points, shape: (*batch, n)
    variance: Tensor,  # variance of the candidate, shape: (*batch,)
    noise: float | Tensor,
) -> Tensor:  # shape: (*batch, n)
    """Return the rise of each mean if the observation is one standard deviation high."""
    # A point without variance and noise has slope 0, whatever the rounding errors are.
    surprise = (variance.clamp_min(0) + noise).unsqueeze(-1)
    return cov * torch.where(surprise > 0, surprise.clamp_min(_LEAST_SURPRISE).rsqrt(), 0.0)


def rough_surprise(variance: Tensor, noise: float | Tensor, prior: Tensor) -> Tensor:
    """Return the variance of an observation by which approximate covariances are divided.

    Covariances that are differences of the prior and explained parts have rounding errors of a few units
    of the prior variance, which the division by a small standard deviation would turn into large gains.
    So the result is at least ``_ROUNDING`` such units: 1e-5 of the prior variance in single precision.

    Example:
        >>> float(rough_surprise(torch.tensor(-1e-7), 1e-9, torch.tensor(2.0))) > 2e-5
        True
    """
    least = _ROUNDING * torch.finfo(variance.dtype).eps * prior
    return (variance.clamp_min(0) + noise).maximum(least.to(variance))


def expected_rise(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch,)
    """Return ``E_z max_j (intercept_j + slope_j z) - max_j intercept_j``, at least 0.

    Differentiable in both. The selection of the lines needs no gradients, because a line enters the
    envelope where it equals its neighbours.

    Example:
        >>> flat_and_steep = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> round(expected_rise(*flat_and_steep).item(), 4)  # E max(0, z)
        0.3989
    """
    rows = slope.shape[:-1].numel()
    if rows <= _BLOCK or slope.numel() <= _TOGETHER or not is_near(slope):
        return _rise(intercept, slope, tolerance)
    # Each pass evaluates the lines of all problems wherever one of the problems may have a new line.
    levels, tilts = (x.reshape(rows, -1).split(_BLOCK) for x in (intercept, slope))
    rises = [_rise(*part, tolerance) for part in zip(levels, tilts, strict=True)]
    return torch.cat(rises).view(slope.shape[:-1])


def _rise(intercept: Tensor, slope: Tensor, tolerance: float) -> Tensor:
    with torch.no_grad():
        index = upper_envelope(intercept, slope, tolerance)
    level, steepness = intercept.gather(-1, index), slope.gather(-1, index)
    crossing, opening = _crossings(level, steepness)
    # Summed in float64, so that the result does not depend on the padding by the rest of the batch.
    rise = (opening * excess(-crossing.abs())).sum(-1, dtype=torch.float64)
    return rise.to(intercept.dtype)


def expected_rise_of_few(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
) -> Tensor:  # shape: (*batch,)
    """Return ``expected_rise`` from the crossings of all pairs of lines, without gradients.

    In ``n^2`` numbers, but a few operations: in order of slopes, line ``i`` is the maximum between its
    last crossing with a line before it and its first crossing with a line after it, where it adds

        (a_i - a) (Phi(last) - Phi(first)) + (b_i - b) (phi(first) - phi(last)),    a + b z highest at 0.

    The absolute error is a few rounding errors of the lines.

    Example:
        >>> flat_and_steep = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> round(expected_rise_of_few(*flat_and_steep).item(), 4)  # E max(0, z)
        0.3989
    """
    with torch.no_grad():
        # Problems come last, so that operations run over whole rows of memory.
        shape, n = slope.shape[:-1], slope.shape[-1]
        intercept, slope = (line.reshape(-1, n).T.contiguous() for line in (intercept, slope))
        slope, order = slope.sort(0)
        intercept = intercept.gather(0, order)
        best = intercept.argmax(0, keepdim=True)
        a, b = (line - line.gather(0, best) for line in (intercept, slope))
        before, after, sign = _places(n, a)
        # Parallel lines cross far away, on the side where the higher hides the lower; equal ones at 0.
        opening = (b.unsqueeze(0) - b.unsqueeze(1)).mul_(sign).clamp_min_(_LEAST_SURPRISE)
        crossing = (a.unsqueeze(1) - a.unsqueeze(0)).mul_(sign).div_(opening)  # (j, i, problem)
        most = torch.finfo(crossing.dtype).max
        crossing.clamp_(-most, most)  # an infinite one and the -inf of a place would add up to NaN
        first = (crossing + before).amax(0)
        last = crossing.add_(after).neg_().amax(0).neg_().maximum(first)
        probability = torch.special.ndtr(last) - torch.special.ndtr(first)
        density = _density(first) - _density(last)
        return (a * probability + b * density).sum(0).clamp_min(0).view(shape)


def _places(n: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return numbers to add, which are finite for ``j < i`` and for ``j > i``, and ``sign(i - j)``."""
    index = torch.arange(n, device=like.device)
    sign = (index - index.unsqueeze(-1)).sign().unsqueeze(-1)
    none = torch.zeros((), dtype=like.dtype, device=like.device)
    return none.where(sign > 0, -torch.inf), none.where(sign < 0, torch.inf), sign.to(like)


def _density(z: Tensor) -> Tensor:
    return z.square().mul_(-0.5).exp_().div_((2 * torch.pi) ** 0.5)


def rough_rise(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    between: tuple[float, ...] = OUTCOMES,
) -> Tensor:  # shape: (*batch,)
    """Approximate ``expected_rise`` by a few strata: never above it, and rarely a tenth below.

    The result is 0 if all lines cross beyond the mean of the outermost stratum, 2.6 by default.

    Example:
        >>> flat_and_steep = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> round(rough_rise(*flat_and_steep).item(), 4)  # E max(0, z) = 0.3989
        0.3989
    """
    rise = -intercept.amax(-1)
    outcomes, masses = strata(between)
    for outcome, mass in zip(outcomes.tolist(), masses.tolist(), strict=True):
        # One outcome at a time: the values at all of them would not fit into the cache.
        rise = rise + mass * torch.add(intercept, slope, alpha=outcome).amax(-1)
    return rise.clamp_min(0)


def mean_maximum(
    intercept: Tensor,  # shape: (*batch, n, m)
    slope: Tensor,  # shape: (*batch, n, m)
    between: tuple[float, ...] = OUTCOMES,
) -> Tensor:  # shape: (*batch, m)
    """Approximate ``E_z max_j (intercept_j + slope_j z)`` of the ``n`` lines of each of ``m`` problems.

    As ``rough_rise``, without gradients and without the largest intercept, and several times as fast: the
    lines lie in the last dimension but one, so that a maximum is taken of whole rows of memory, and one
    tensor holds the values at all outcomes in turn.

    Example:
        >>> flat_and_steep = torch.tensor([[0.0], [0.0]]), torch.tensor([[0.0], [1.0]])
        >>> round(mean_maximum(*flat_and_steep).item(), 4)  # E max(0, z) = 0.3989
        0.3989
    """
    with torch.no_grad():
        outcomes, masses = (tensor.tolist() for tensor in strata(between))
        steps = [after - before for before, after in pairwise(outcomes)]
        values = torch.add(intercept, slope, alpha=outcomes[0])
        total = values.amax(-2).mul_(masses[0])
        for step, mass in zip(steps, masses[1:], strict=True):
            total.add_(values.add_(slope, alpha=step).amax(-2), alpha=mass)
        return total


@cache
@torch.inference_mode(mode=False)  # the cached tensors must work outside of inference mode, too
def strata(between: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Return conditional means and probabilities of the strata of a standard normal with these bounds."""
    bounds = torch.tensor([-torch.inf, *between, torch.inf], dtype=torch.float64)
    probability = torch.special.ndtr(bounds).diff()
    density = torch.exp(-0.5 * bounds.square()) / (2 * torch.pi) ** 0.5
    return -density.diff() / probability, probability


def upper_envelope(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch, k)
    """Return the lines of the envelope within ``|z| <= 9``, by ascending slope, with repetitions.

    Any line missed between two neighbouring evaluated points is highest at the crossing of the lines
    there. So its contribution is at most its height there times the probability between the points;
    crossings are evaluated until that is below the tolerance.
    """
    z = moved(torch.tensor(_FIRST_POINTS, dtype=intercept.dtype), intercept)
    z = z.expand(*intercept.shape[:-1], -1)
    lines = _highest(intercept, slope, z)
    may_sync = is_near(intercept) or tolerance == 0
    for _ in range(_MOST_PASSES if may_sync else _PASSES_UNSYNCED):
        level, steepness = intercept.gather(-1, lines), slope.gather(-1, lines)
        crossing, opening = _crossings(level, steepness)
        # Copies of a line that differ by rounding cross anywhere, where evaluation would insert lines
        # that are elsewhere in the list already.
        crossing = crossing.maximum(z[..., :-1]).minimum(z[..., 1:])
        highest = _highest(intercept, slope, crossing)
        bound = level[..., :-1] + steepness[..., :-1] * crossing
        height = intercept.gather(-1, highest) + slope.gather(-1, highest) * crossing - bound
        probability = torch.special.ndtr(z).diff(dim=-1)
        rounding = 8 * torch.finfo(bound.dtype).eps * bound.abs().clamp_min(1e-3)
        new = (opening > 0) & (height > rounding) & (height * probability > tolerance)
        if not may_sync:
            z, lines = _insert_new(z, crossing, new), _insert_new(lines, highest, new)
            continue
        if not bool(new.any()):
            break
        used = new.reshape(-1, new.shape[-1]).any(0)  # crossings with a new line in any problem
        z = _insert(z, torch.where(new, crossing, z[..., :-1]), used)
        lines = _insert(lines, torch.where(new, highest, lines[..., :-1]), used)
    return lines


def _highest(intercept: Tensor, slope: Tensor, z: Tensor) -> Tensor:
    """Return the index of the highest line at each ``z`` (``*batch x k``)."""
    if intercept.numel() * z.shape[-1] <= _SMALL:
        values = torch.addcmul(intercept.unsqueeze(-2), slope.unsqueeze(-2), z.unsqueeze(-1))
        return values.argmax(-1)
    # One point at a time: the values at all of them would not fit into the cache.
    points = z.unsqueeze(-2).unbind(-1)
    return torch.stack([torch.addcmul(intercept, slope, x).argmax(-1) for x in points], -1)


def _crossings(level: Tensor, steepness: Tensor) -> tuple[Tensor, Tensor]:
    """Return crossings of neighbours (9 if parallel) and the differences of their slopes."""
    opening = steepness[..., 1:] - steepness[..., :-1]
    cross = opening > 0
    drop = level[..., :-1] - level[..., 1:]
    crossing = torch.where(cross, drop / torch.where(cross, opening, 1.0), _FAR)
    return crossing.clamp(-_FAR, _FAR), opening.clamp_min(0)


def _insert_new(row: Tensor, between: Tensor, new: Tensor) -> Tensor:
    """Insert the new entries between those of a row (``*batch x k``), padded by its last entry."""
    both = torch.stack([row[..., :-1], between], -1).flatten(-2)
    used = torch.stack([torch.ones_like(new), new], -1).flatten(-2)
    order = (~used).to(torch.uint8).argsort(dim=-1, stable=True)[..., : _LINES_UNSYNCED - 1]
    kept = torch.where(used.gather(-1, order), both.gather(-1, order), row[..., -1:])
    return torch.cat([kept, row[..., -1:]], -1)


def _insert(row: Tensor, between: Tensor, columns: Tensor) -> Tensor:
    """Insert the chosen columns of ``between`` after the entries of a row (``*batch x k``)."""
    used = torch.stack([torch.ones_like(columns), columns], -1).flatten()
    both = torch.stack([row[..., :-1], between], -1).flatten(-2)
    return torch.cat([both[..., used], row[..., -1:]], -1)
