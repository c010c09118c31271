"""Trainings that begin anew in each segment, because no checkpoint is loaded: said once."""

import math
import random

import pytest

import botorch_costly as bc
from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.tuners.curves.restarts import seem_restarted
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def loss(config, iteration):
    distance = abs(math.log10(config["lr"]) + 2)
    return 2 * math.exp(-0.08 * (iteration + 1) / (1 + distance)) + 0.1 * distance


def level(config, iteration):
    return 1 + abs(math.log10(config["lr"]) + 2)


def late(config, iteration):
    return 0.9 if iteration < 6 else loss(config, iteration)


def tell(search, anew, generator, *, of=loss, noise=0.0, jump=0.0, every=1, most=99):
    """Tell the curve of a segment: the training's own, or that of a training that began with it."""
    segment = search.ask()
    since, length = 0 if anew else segment.since, min(most, segment.iterations)
    values = [of(segment.config, since + n) + generator.gauss(0, noise) for n in range(length)]
    if segment.since:
        values = [value + jump * 0.3**n for n, value in enumerate(values)]
    told = [v if n % every == 0 else None for n, v in enumerate(values, segment.since + 1)]
    search.tell(segment, [*told[:-1], values[-1]])


def messages(caplog):
    return [r.message for r in caplog.records if "begin near the first values" in r.message]


def run(anew, count, *, resumes=True, shortest=1, **curve):
    search, generator = optimizer(resumes, shortest), random.Random(3)
    for _ in range(count):
        tell(search, anew, generator, **curve)
    return search


def optimizer(resumes=True, shortest=1):
    return bc.CurveOptimizer(SPACE, 32, maximize=False, resumes=resumes, shortest=shortest)


COUNTS = quick([16, 25], 16)  # segments


def name_of(curve):
    return " ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in curve.items())


@pytest.mark.parametrize(
    "curve",
    [{}, {"noise": 0.02}, {"every": 2}, {"shortest": 4}, {"of": lambda *at: -loss(*at)}],
    ids=name_of,
)
@pytest.mark.parametrize("count", COUNTS)
def test_trainings_that_begin_anew_are_named_once(curve, count, caplog):
    run(True, count, **curve)
    (message,) = messages(caplog)
    assert "resumes=False" in message


@pytest.mark.parametrize(
    "curve",
    [
        {},
        {"noise": 0.02},
        {"noise": 0.5},
        {"jump": 0.1},
        {"of": level},
        {"of": level, "noise": 0.1},
        {"of": late},
        {"most": 3},
    ],
    ids=name_of,
)
@pytest.mark.parametrize("count", COUNTS)
def test_trainings_that_go_on_are_not(curve, count, caplog):
    run(False, count, **curve)
    assert not messages(caplog)


def test_trainings_that_are_known_to_restart_are_not(caplog):
    search, generator = optimizer(resumes=False), random.Random(3)
    for _ in range(16):
        tell(search, True, generator)
    assert not messages(caplog)


def test_a_loaded_run_does_not_say_it_again(caplog):
    search, again, generator = run(True, 16), optimizer(), random.Random(3)
    assert len(messages(caplog)) == 1
    again.load_state_dict(search.state_dict())
    for _ in range(8):
        tell(again, True, generator)
    assert len(messages(caplog)) == 1


def test_segments_side_by_side_are_recognized(caplog):
    search = optimizer()
    for _ in range(9):
        pending = [search.ask() for _ in range(4)]
        for segment in reversed(pending):
            search.tell(segment, [loss(segment.config, n) for n in range(segment.iterations)])
    assert len(messages(caplog)) == 1


def segment(number, training, since, *curve):
    place = {"training": training, "since": since, "until": since + len(curve)}
    decision = CurveDecision(number, {"lr": 0.01}, query=True, reason="", **place)
    told = {"failed": False, "curve": curve, "cost": 1.0, "broken": False}
    return decision, CurveObservation(number, {"lr": 0.01}, curve[-1], **told)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_progress_that_noise_explains_tells_nothing(noise):
    first = (2.0, 1.9 + noise, 1.8 - noise, 1.7)
    begun = [segment(n, n, 0, *first) for n in range(3)]
    anew = [segment(n + 3, n, 4, 2.0) for n in range(3)]
    assert seem_restarted(begun + anew) == (noise == 0.0)
    assert not seem_restarted(begun + anew[:2])


COSTS = {
    "of the segment": lambda segment, noise: segment.iterations * noise,
    "with a start": lambda segment, noise: 5 + segment.iterations * noise,
    "each alike": lambda segment, noise: 7.0,
    "by the configuration": lambda segment, noise: segment.iterations * segment.config["lr"],
}


def priced(cost_of, count=20):
    """Tell segments with costs; return the warnings of costs of whole trainings."""
    search, generator = optimizer(), random.Random(2)
    for _ in range(count):
        segment = search.ask()
        curve = [loss(segment.config, n) for n in range(segment.since, segment.until)]
        search.tell(segment, curve, cost=cost_of(segment, 1 + 0.2 * generator.random()))


def totals(caplog):
    return sum("all iterations of their trainings" in text for text in caplog.messages)


def test_costs_of_all_that_was_trained_so_far_are_named_once(caplog):
    priced(lambda segment, noise: 60 * segment.until * noise)
    assert totals(caplog) == 1


@pytest.mark.parametrize("name", COSTS)
def test_costs_of_segments_are_not(name, caplog):
    priced(COSTS[name])
    assert not totals(caplog)
