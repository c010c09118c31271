"""Scheduled learning rates: a peak is encoded, and what is played is the peak times a factor."""

import json
import math
import pickle

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, InvalidSpaceError
from botorch_costly.parameters import BASES, Choice, Integer, Real, Scheduled
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.baselines import FixedTuner, RandomTuner

FACTORS = {
    "wsd": {0: 1.0, 0.5: 1.0, 0.8: 1.0, 0.9: 0.5, 1: 0.0},
    "cosine": {
        0: 1.0,
        0.5: 0.5,
        0.8: (1 + math.cos(0.8 * math.pi)) / 2,
        0.9: (1 + math.cos(0.9 * math.pi)) / 2,
        1: 0.0,
    },
    "constant": {0: 1.0, 0.5: 1.0, 0.8: 1.0, 0.9: 1.0, 1: 1.0},
}


@pytest.fixture
def space():
    return SearchSpace(
        {
            "lr": Scheduled(1e-4, 1e-1),
            "head": Scheduled(0.1, 2, base="cosine", log=False),
            "layers": Integer(1, 4),
            "policy": Choice(["a", "b"]),
        }
    )


CONFIG = {"lr": 1e-2, "head": 1.0, "layers": 2, "policy": "b"}


@pytest.mark.parametrize("base", BASES)
def test_factors_by_share_of_the_run(base):
    rate = Scheduled(1e-4, 1e-1, base=base)
    for share, factor in FACTORS[base].items():
        assert rate.factor(share) == pytest.approx(factor, abs=1e-12)
    factors = [rate.factor(share / 100) for share in range(101)]
    assert factors == sorted(factors, reverse=True)
    for impossible in (-0.01, 1.01, math.nan):
        with pytest.raises(InvalidArgumentError, match="share"):
            rate.factor(impossible)


def test_a_peak_is_encoded_as_a_logarithmic_real():
    ours, theirs = Scheduled(1e-4, 1e-1), Real(1e-4, 1e-1, log=True)
    for value in (1e-4, 3e-4, 1e-2, 1e-1):
        assert torch.equal(ours.encode(value), theirs.encode(value))
    for unit in (-0.1, 0.0, 0.25, 0.9, 1.0, 1.2):
        columns = torch.tensor([unit], dtype=torch.float64)
        assert ours.decode(columns) == theirs.decode(columns)
    assert ours.decode(torch.zeros(1)) == 1e-4
    linear = Scheduled(1, 3, log=False)
    assert linear.encode(2.0).item() == pytest.approx(0.5)
    with pytest.raises(InvalidConfigError, match="lr"):
        ours.canonical("lr", 0.2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scheduled(0, 1),
        lambda: Scheduled(0, 1, log=False),
        lambda: Scheduled(-1, 1, log=False),
        lambda: Scheduled(1, 1),
        lambda: Scheduled(1e-3, math.inf),
        lambda: Scheduled(1e-3, 1, base="linear"),
        lambda: Scheduled(1e-3, 1, base=None),
        lambda: Scheduled(1e-3, 1, base=["wsd"]),
        lambda: Scheduled(1e-3, 1, log=1),
    ],
)
def test_bad_bounds_and_bases_are_named(make):
    with pytest.raises(InvalidSpaceError, match=r"Expected .*; Received "):
        make()


def test_definitions_survive_json_pickle_and_show_themselves(space):
    read = SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    assert read == space == pickle.loads(pickle.dumps(space))
    assert read.fingerprint() == space.fingerprint()
    assert repr(dict(read.parameters)["lr"]) == (
        "Scheduled(low=0.0001, high=0.1, log=True, base='wsd')"
    )
    rates = [Real(1e-4, 0.1, log=True), *(Scheduled(1e-4, 0.1, base=base) for base in BASES)]
    assert len({SearchSpace({"lr": rate}).fingerprint() for rate in rates}) == len(rates)


def test_a_config_is_played_as_its_schedules_say(space):
    assert space.is_scheduled
    assert space.scheduled(CONFIG, 0.0) == CONFIG
    played = space.scheduled(CONFIG, 0.9)
    assert list(played) == list(CONFIG)
    assert played["lr"] == pytest.approx(5e-3)  # may be below the bounds by the end
    assert played["head"] == pytest.approx(FACTORS["cosine"][0.9])
    assert (played["layers"], played["policy"]) == (2, "b")
    assert space.scheduled(CONFIG, 1.0)["lr"] == 0.0
    assert CONFIG["lr"] == 1e-2
    for bad in ({**CONFIG, "lr": 0.5}, {**CONFIG, "lr": "much"}):
        with pytest.raises(InvalidConfigError, match="lr"):
            space.scheduled(bad, 0.5)


def test_a_space_without_schedules_plays_configs_as_they_are():
    space = SearchSpace({"lr": Real(1e-4, 1, log=True)})
    assert not space.is_scheduled
    assert space.scheduled({"lr": 0.5}, 0.99) == {"lr": 0.5}


def test_tuners_that_compare_play_schedules_over_their_horizon(space):
    """The kind: a tuner takes a schedule and never lets it fall."""
    fixed = FixedTuner(space, CONFIG, horizon=10)
    played = [fixed.ask().config for _ in range(10)]
    assert played == [space.scheduled(CONFIG, now / 10) for now in range(10)]
    drawn = RandomTuner(space, 1000)
    last = [drawn.ask().config["lr"] for _ in range(1000)][-1]
    assert 0 < last < 0.1 * 0.01
    for made in (lambda: FixedTuner(space, CONFIG), lambda: RandomTuner(space)):
        with pytest.raises(InvalidArgumentError, match="horizon: Expected the rounds of the run"):
            made()
