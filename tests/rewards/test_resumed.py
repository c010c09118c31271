"""A reward that is loaded without the network that it measures is noticed at its first metric."""

import math

import pytest

from botorch_costly.rewards import GainReward, GuardedReward

METRICS = {"loss": (0.1, 0.5), "accuracy": (0.9, 0.5)}  # of a trained network, and of a fresh one


def resumed(kind, metrics, *, guarded=False):
    """Load a run whose last metric was good, and tell others."""
    rewards = [GainReward(kind), GainReward(kind)]
    weights = {"w": 1.0}
    if guarded:
        rewards = [GuardedReward(one, weights.copy, weights.update) for one in rewards]
    first, again = rewards
    for number in range(3):
        first(METRICS[kind][0], number)
    again.load_state_dict(first.state_dict())
    for number, metric in enumerate(metrics, 3):
        again(metric, number)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("kind", METRICS)
def test_a_run_that_is_loaded_without_its_network_earns_one_warning(kind, guarded, caplog):
    good, fresh = METRICS[kind]
    resumed(kind, [math.nan, fresh, fresh, good, fresh], guarded=guarded)
    (message,) = [text for text in caplog.messages if "network" in text and "loaded, too" in text]
    assert message.startswith(f"The first metric after the state was loaded is {fresh:.3g}")


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("kind", METRICS)
def test_a_run_that_goes_on_and_diverges_later_earns_none(kind, guarded, caplog):
    good, fresh = METRICS[kind]
    resumed(kind, [good, fresh, good], guarded=guarded)
    resumed(kind, [good * 0.8 if kind == "accuracy" else good * 2, fresh], guarded=guarded)
    again = GainReward(kind)
    for metric in (good, fresh):  # a state of the run itself, as after an error
        before = again.state_dict()
        number = 0 if again.state_dict()["last"]["round"] is None else 1
        again(metric, number)
        again.load_state_dict(before)
        again(metric, number)
    assert "loaded, too" not in caplog.text
