"""What is told of a population otherwise than is meant is refused, or earns one warning."""

import math

import pytest

from botorch_costly import errors
from tests.tuners.population.test_population import tuner


def _told(metrics_of, rounds=8, **options):
    """Tell the metrics of each round."""
    one = tuner(**options)
    for number in range(rounds):
        one.tell(one.ask(), metrics_of(number))


@pytest.mark.parametrize("unmeasured", [None, math.nan])
def test_one_metric_for_all_members_earns_one_warning(unmeasured, caplog):
    _told(lambda t: [2.0 * 0.9**t] * 3 + [unmeasured])
    (message,) = [text for text in caplog.messages if "equal metrics" in text]
    assert message.startswith("In each of the first 5 rounds all members had equal metrics")


@pytest.mark.parametrize(
    "metrics_of",
    [
        lambda t: [1.0 / (1 + t)] * 3 + [1.1 / (1 + t)],
        lambda t: [0.5, 0.6, 0.7, 0.8] if t == 3 else [0.25] * 4,  # learns late
        lambda t: [0.5, 0.6, 0.7, 0.8] if t < 2 else [0.0] * 4,  # is learnt
        lambda t: [1.0 / (1 + t), None, None, math.nan],
    ],
)
def test_members_that_differ_in_a_round_earn_none(metrics_of, caplog):
    _told(metrics_of)
    assert "equal metrics" not in caplog.text


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_gains_are_refused_as_metrics(metric):
    one = tuner(metric=metric)
    with pytest.raises(errors.InvalidArgumentError, match=r"metric: Expected .* and no gain.*-0.2"):
        one.tell(one.ask(), [0.3, -0.2, 0.1, 0.2])
