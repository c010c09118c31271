"""What failed, low and wild values do to an offline optimizer: they say "bad here", and set no scale."""

import itertools
import math
from functools import cache

import pytest
import torch

from tests.cases import quick
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS

_OFFLINE = [name for name in OPTIMIZERS if name.startswith(("Transfer", "Curve", "Subset"))]
_LOW = {"low": -1e6, "lower": -1e30, "failed": math.nan}
_WILD = {**_LOW, "high": 1e6, "higher": 1e30}
_AFTER = 7  # evaluations after the first
_RANGE = 3.0  # of the true values


def true_value(suggestion):
    """Return a value between -3 and 0; at fidelities below the largest it is the same."""
    config = suggestion.config
    return -((math.log10(config["lr"]) + 2.5) ** 2) / 2 - 0.1 * abs(config["depth"] - 3)


@cache
def played(name, first, number=0):
    """Return an optimizer and its suggestions, told the truth but for one value."""
    case = OPTIMIZERS[name]
    optimizer, asked = case.make(0), []
    sign = 1.0 if optimizer.maximize else -1.0
    for k in range(1 + _AFTER):
        suggestion = optimizer.ask()
        asked.append(suggestion)
        is_bad = k == number and first is not None
        case.tell(
            optimizer, suggestion, sign * (_WILD[first] if is_bad else true_value(suggestion))
        )
    return optimizer, asked


@pytest.fixture(params=quick(_OFFLINE, *(name for name in _OFFLINE if name in BY_DEFAULT)))
def name(request):
    return request.param


def where(suggestion):
    return tuple(suggestion.config.values()), getattr(suggestion, "fidelities", None)


@pytest.mark.parametrize("first", _LOW)
def test_the_search_goes_on_elsewhere(name, first):
    optimizer, asked = played(name, first)
    if not name.startswith("Curve"):  # a training that was low, and did not fail, may go on
        assert where(asked[0]) not in map(where, asked[1:])
    assert len({where(one)[0] for one in asked}) >= 3
    mean = optimizer.predict([one.config for one in asked])
    assert mean is None or bool(torch.cat(mean).isfinite().all())


@pytest.mark.parametrize("pair", [("low", "lower"), ("high", "higher")])
@pytest.mark.parametrize("number", quick([0, 5], 0))
def test_the_size_of_a_wild_value_does_not_matter(name, pair, number):
    small, large = (played(name, size, number)[1] for size in pair)
    assert [where(one) for one in small[:8]] == [where(one) for one in large[:8]]


def test_a_failure_counts_as_a_low_value(name):
    if name.startswith("Curve"):
        pytest.skip("a training that failed cannot go on, one that was low can")
    low, failed = (played(name, first)[1] for first in ("low", "failed"))
    assert [where(one) for one in low[:4]] == [where(one) for one in failed[:4]]


@pytest.mark.parametrize(
    ("first", "number"),
    quick(itertools.product(_LOW, [0, 5]), *((first, 0) for first in _LOW), ("failed", 5)),
)
def test_what_failed_is_not_recommended(name, first, number):
    optimizer, asked = played(name, first, number)
    others = [dict(one.config) for k, one in enumerate(asked) if k != number]
    best = optimizer.best()
    assert dict(best) in others or dict(best) != dict(asked[number].config)


@pytest.mark.parametrize("first", quick(_WILD, "low", "failed", "high"))
def test_predictions_elsewhere_are_moved_by_a_bounded_amount(name, first):
    optimizer, asked = played(name, first)
    clean, _ = played(name, None)
    at = [one.config for one in asked[1:] if one.config != asked[0].config]
    ours, theirs = optimizer.predict(at), clean.predict(at)
    if ours is None:
        return
    assert float((ours[0] - theirs[0]).abs().max()) < 2 * _RANGE
    assert float(ours[1].max()) < 3 * _RANGE
