r"""The knowledge gradient: what a query adds to the largest mean, exactly and batched.

A query at ``x`` will change the means of all points together, along lines ``mean + slope z`` with

    slope_j = cov(x_j, x) / sqrt(variance(x) + noise),    z ~ N(0, 1).

The knowledge gradient is the expected maximum of these lines less the largest mean. Only lines on
their upper envelope count. With ``l_1, .. l_k`` the lines on it, by ascending slope, and ``c_i`` where
``l_i`` meets ``l_{i+1}`` [Frazier2009]_,

    E_z max_j (mean_j + slope_j z) - max_j mean_j = sum_i (slope_{i+1} - slope_i) h(-|c_i|),
    h(u) = u Phi(u) + phi(u).

A search may do with less: the sum over a few strata of the normal distribution, each by its conditional
mean, takes a fraction of the time. Of maxima, which have kinks, such sums err a third as much as
Gauss-Hermite quadrature of as many points does, and always below, as for every convex function.

The envelope is found by evaluation, not by sorting: a line that is the maximum at one of a few ``z`` is
on it, and where two neighbours meet either no line is above them, which proves that none lies between,
or a new line is. The work is ``n`` times the lines found, in tensor operations over any batch. With a
tolerance no device but a CPU is asked whether there are new lines: five passes find all that matter,
where four were the most of 2,100 decisions.

Conventions: the envelope is followed within ``|z| <= 9``, beyond which doubles hold no probability;
lists of lines are padded by repetition, which adds nothing to the sum.

References:
    .. [Frazier2009] P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated
        normal beliefs. INFORMS Journal on Computing 21(4), 2009, section 4.1.
"""

from functools import cache

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.numerics.improvement import excess

_FAR = 9.0
_LEAST_SURPRISE = 1e-30
_SMALL = 50_000  # numbers that are asked for at once
_FIRST_QUESTIONS = (-_FAR, -2.0, -1.0, -0.4, 0.0, 0.4, 1.0, 2.0, _FAR)
_MOST_PASSES = 50  # a bound for the loop alone: lines are few and each pass finds new ones
_PASSES_UNASKED = 5  # on a device that is not asked whether there are new lines,
_LINES_UNASKED = 65  # and the most lines that it holds, of which 25 were on any envelope
OUTCOMES = (-2.2, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.2)  # of a rough query: between the strata
# Where much is known, only what is rare changes the best.
FAR_OUTCOMES = (-3.8, -3.0, *OUTCOMES, 3.0, 3.8)


def knowledge_gradient(
    mean: Tensor,  # shape: (*batch, n)
    cov: Tensor,  # shape: (*batch, m, n): of the candidates with all points
    variance: Tensor,  # shape: (*batch, m): of the candidates
    noise: float | Tensor,
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch, m)
    """Return what a query at each of ``m`` candidates adds to the largest of ``n`` means.

    With a tolerance it may be too small by a few tolerances, which saves time on fine grids.

    Example:
        >>> mean, cov = torch.zeros(2), torch.eye(2)
        >>> knowledge_gradient(mean, cov, torch.ones(2), noise=0.0)  # E max(0, z), each
        tensor([0.3989, 0.3989])
    """
    slope = slopes(cov, variance, noise)
    return expected_rise(mean.unsqueeze(-2).expand_as(slope), slope, tolerance)


def slopes(
    cov: Tensor,  # shape: (*batch, n): of a candidate with all points
    variance: Tensor,  # shape: (*batch,): of the candidate
    noise: float | Tensor,
) -> Tensor:  # shape: (*batch, n)
    """Return how far a query that turns out one deviation high raises each mean."""
    # A point of which nothing is left to learn has no slope; rounding must not give it one.
    surprise = (variance.clamp_min(0) + noise).unsqueeze(-1)
    return torch.where(surprise > 0, cov / surprise.clamp_min(_LEAST_SURPRISE).sqrt(), 0.0)


def expected_rise(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch,)
    """Return ``E_z max_j (intercept_j + slope_j z) - max_j intercept_j``, at least 0.

    Differentiable in both: the lines on the envelope are found without gradients, which they do not
    need, since a line enters the envelope where it equals its neighbours.

    Example:
        >>> flat_and_steep = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> round(expected_rise(*flat_and_steep).item(), 4)  # E max(0, z)
        0.3989
    """
    with torch.no_grad():
        index = upper_envelope(intercept, slope, tolerance)
    level, steepness = intercept.gather(-1, index), slope.gather(-1, index)
    crossing, opening = _crossings(level, steepness)
    # In double precision the order of the sum, and so what else is in the batch, does not matter.
    rise = (opening * excess(-crossing.abs())).sum(-1, dtype=torch.float64)
    return rise.to(intercept.dtype)


def rough_rise(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    between: tuple[float, ...] = OUTCOMES,
) -> Tensor:  # shape: (*batch,)
    """Return ``expected_rise`` by a few strata: never above it, and rarely a tenth below.

    It is zero where lines cross beyond the mean of the outermost stratum, 2.6 by default.

    Example:
        >>> flat_and_steep = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> round(rough_rise(*flat_and_steep).item(), 4)  # E max(0, z) = 0.3989
        0.3989
    """
    rise = -intercept.amax(-1)
    for outcome, mass in zip(*(part.tolist() for part in strata(between)), strict=True):
        # One at a time: the lines at all of them would not fit into the cache.
        rise = rise + mass * torch.add(intercept, slope, alpha=outcome).amax(-1)
    return rise.clamp_min(0)


@cache
@torch.inference_mode(mode=False)  # what is kept serves calls outside of it, too
def strata(between: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Return the conditional mean and the probability of each stratum of a standard normal number."""
    bounds = torch.tensor([-torch.inf, *between, torch.inf], dtype=torch.float64)
    probability = torch.special.ndtr(bounds).diff()
    density = torch.exp(-0.5 * bounds.square()) / (2 * torch.pi) ** 0.5
    return -density.diff() / probability, probability


def upper_envelope(
    intercept: Tensor,  # shape: (*batch, n)
    slope: Tensor,  # shape: (*batch, n)
    tolerance: float = 0.0,
) -> Tensor:  # shape: (*batch, k): lines by ascending slope, perhaps with repetitions
    """Return lines that are the maximum anywhere in ``|z| <= 9``; all that matter, or all.

    What is missed between two questions is highest where the lines found there meet, so its share of
    the expected maximum is at most that height times the probability between the questions. A pair
    is asked about until that is below the tolerance.
    """
    asked = moved(torch.tensor(_FIRST_QUESTIONS, dtype=intercept.dtype), intercept)
    asked = asked.expand(*intercept.shape[:-1], -1)
    found = _highest(intercept, slope, asked)
    is_asked = is_near(intercept) or tolerance == 0
    for _ in range(_MOST_PASSES if is_asked else _PASSES_UNASKED):
        level, steepness = intercept.gather(-1, found), slope.gather(-1, found)
        crossing, opening = _crossings(level, steepness)
        # Copies of one line that differ by rounding meet anywhere; to be asked there would put lines
        # on the list that are on it already, elsewhere.
        crossing = crossing.maximum(asked[..., :-1]).minimum(asked[..., 1:])
        between = _highest(intercept, slope, crossing)
        known = level[..., :-1] + steepness[..., :-1] * crossing
        height = intercept.gather(-1, between) + slope.gather(-1, between) * crossing - known
        probability = torch.special.ndtr(asked).diff(dim=-1)
        new = (opening > 0) & (height > _rounding(known)) & (height * probability > tolerance)
        if not is_asked:
            asked, found = _insert_new(asked, crossing, new), _insert_new(found, between, new)
            continue
        if not bool(new.any()):
            break
        some = new.reshape(-1, new.shape[-1]).any(
            0
        )  # where a problem of the batch found a new line
        asked = _insert(asked, torch.where(new, crossing, asked[..., :-1]), some)
        found = _insert(found, torch.where(new, between, found[..., :-1]), some)
    return found


def _highest(intercept: Tensor, slope: Tensor, z: Tensor) -> Tensor:
    """Return the line that is the maximum at each ``z`` (``*batch x k``)."""
    if intercept.numel() * z.shape[-1] <= _SMALL:
        asked = torch.addcmul(intercept.unsqueeze(-2), slope.unsqueeze(-2), z.unsqueeze(-1))
        return asked.argmax(-1)
    # One question at a time: the lines at all of them would not fit into the cache.
    by_question = z.unsqueeze(-2).unbind(-1)
    return torch.stack([torch.addcmul(intercept, slope, at).argmax(-1) for at in by_question], -1)


def _crossings(level: Tensor, steepness: Tensor) -> tuple[Tensor, Tensor]:
    """Return where neighbours meet and how much steeper the second one is; far off if parallel."""
    opening = steepness[..., 1:] - steepness[..., :-1]
    apart = opening > 0
    drop = level[..., :-1] - level[..., 1:]
    crossing = torch.where(apart, drop / torch.where(apart, opening, 1.0), _FAR)
    return crossing.clamp(-_FAR, _FAR), opening.clamp_min(0)


def _rounding(values: Tensor) -> Tensor:
    return 8 * torch.finfo(values.dtype).eps * values.abs().clamp_min(1e-3)


def _insert_new(row: Tensor, between: Tensor, new: Tensor) -> Tensor:
    """Return a row (``*batch x k``) with what is new between its entries, and its last as filling."""
    both = torch.stack([row[..., :-1], between], -1).flatten(-2)
    used = torch.stack([torch.ones_like(new), new], -1).flatten(-2)
    order = (~used).to(torch.uint8).argsort(dim=-1, stable=True)[..., : _LINES_UNASKED - 1]
    kept = torch.where(used.gather(-1, order), both.gather(-1, order), row[..., -1:])
    return torch.cat([kept, row[..., -1:]], -1)


def _insert(row: Tensor, between: Tensor, some: Tensor) -> Tensor:
    """Return a row (``*batch x k``) with what comes between its entries, where some of it counts."""
    used = torch.stack([torch.ones_like(some), some], -1).flatten()
    both = torch.stack([row[..., :-1], between], -1).flatten(-2)
    return torch.cat([both[..., used], row[..., -1:]], -1)
