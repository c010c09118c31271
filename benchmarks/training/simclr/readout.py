"""What frozen features say of classes: nearest neighbours, a brief linear probe, a linear readout.

The first two are queries, made on a validation split alone: no label of another picture is needed to
tune. Neighbours are looked for among the other pictures of the split; the probe learns from one half of
it and is measured on the other, then the other way round. The linear readout is the end of a run: it
learns from the training pictures and is measured on the test.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.data import Part
from benchmarks.suite.protocol import Metrics
from botorch_costly.errors import NumericalError, check, check_count

NEIGHBOURS = 20
_DECAY = 1e-3  # of the weights of a linear readout, whose features have variance 1
_BRIEF, _LONG = 15, 200  # iterations
_CHUNK = 2_000  # pictures whose neighbours are looked for at once


def neighbours(validation: Part, classes: int, k: int = NEIGHBOURS) -> Metrics:
    """Let the ``k`` nearest other pictures vote on the class of each, by the cosine of their features.

    Accuracy is the share of pictures whose class has most votes; a loss is taken of the shares of the
    votes, with one more vote for all classes together.

    Args:
        validation: Features, ``n x d``, and classes.
        classes: How many there are.
        k: Of the neighbours, fewer than ``n``.

    Raises:
        InvalidArgumentError: If there are not more pictures than neighbours.
        NumericalError: If features are not finite.
    """
    features, targets = _checked(validation)
    k = check_count("k", k, minimum=1)
    check(len(targets) > k, "validation", f"more than k = {k} pictures", len(targets))
    unit = F.normalize(features, dim=-1)
    votes = []
    for start in range(0, len(unit), _CHUNK):
        similar = unit[start : start + _CHUNK] @ unit.mT
        rows = torch.arange(len(similar), device=similar.device)
        similar[rows, rows + start] = -torch.inf  # a picture is no neighbour of its own
        nearest = targets[similar.topk(k).indices]
        votes.append(F.one_hot(nearest, classes).sum(1))
    shares = (torch.cat(votes) + 1 / classes) / (k + 1)
    return _metrics(shares.log(), targets)


def brief_probe(validation: Part, classes: int) -> Metrics:
    """Fit a linear classifier to each half of the pictures for a few iterations, and measure the other.

    Raises:
        InvalidArgumentError: If there are fewer than two pictures.
        NumericalError: If features are not finite.
    """
    features, targets = _checked(validation)
    check(len(targets) >= 2, "validation", "at least two pictures", len(targets))
    logits = features.new_zeros(len(targets), classes)
    halves = targets.argsort(stable=True)  # every second picture of each class
    for held in (0, 1):
        there, here = halves[held::2], halves[1 - held :: 2]
        part = Part(features[here], targets[here])
        logits[there] = _fitted(part, classes, _BRIEF)(features[there])
    return _metrics(logits.log_softmax(-1), targets)


def linear_readout(training: Part, test: Part, classes: int) -> Metrics:
    """Fit a linear classifier to the training features until it converges, and measure the test.

    Raises:
        NumericalError: If features are not finite.
    """
    _checked(training)
    features, targets = _checked(test)
    return _metrics(_fitted(training, classes, _LONG)(features).log_softmax(-1), targets)


READOUTS: dict[str, Callable[[Part, int], Metrics]] = {
    "neighbours": neighbours,
    "probe": brief_probe,
}


def _fitted(part: Part, classes: int, iterations: int) -> Callable[[Tensor], Tensor]:
    """Return the logits of multinomial regression with decay, by L-BFGS on standardized features."""
    features, targets = part
    mean, std = features.mean(0), features.std(0).clamp_min(1e-6)
    inputs = (features - mean) / std
    weights = inputs.new_zeros(inputs.shape[-1], classes).requires_grad_()
    bias = inputs.new_zeros(classes).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weights, bias], max_iter=iterations, line_search_fn="strong_wolfe"
    )

    @torch.enable_grad()
    def objective() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(inputs @ weights + bias, targets)
        loss = loss + 0.5 * _DECAY * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(objective)
    return lambda others: (((others - mean) / std) @ weights + bias).detach()


def _checked(part: Part) -> Part:
    finite = bool(part.inputs.isfinite().all())
    check(finite, "features", "finite numbers", "NaN or an infinity", NumericalError)
    return part


def _metrics(log_shares: Tensor, targets: Tensor) -> Metrics:
    loss = F.nll_loss(log_shares, targets)
    accuracy = (log_shares.argmax(-1) == targets).double().mean()
    return Metrics(max(loss.item(), 0.0), accuracy.item())
