"""Costs told as sums or times, and curves told as single values: said once, for no error follows.

The kind: what is told has the right type and range, and another meaning. A search then believes that
later evaluations are expensive, or that trainings were stopped after their first iteration.
"""

import itertools
import logging
import math
import random
import time

import pytest

import botorch_costly as bc
from botorch_costly.ask_tell.sums import warn_of_rising
from tests.cases import quick

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
STUDY = bc.Task([{"x": k / 8} for k in range(8)], [k / 8 for k in range(8)])


SEARCHES = {
    "subsets": lambda: bc.SubsetOptimizer(SPACE, sampling=bc.Sampling(first=40)),
    "transfer": lambda: bc.TransferOptimizer(SPACE, [STUDY]),
    "curves": lambda: bc.CurveOptimizer(SPACE, 9, seed=0),
}


def tell(search, decision, cost):
    known = {} if cost is None else {"cost": cost}
    if isinstance(search, bc.CurveOptimizer):
        curve = [0.1 * n for n in range(decision.since, decision.until)]
        return search.tell(decision, curve, **known)
    return search.tell(decision, decision.config["x"], **known)


def warnings_of(caplog):
    return [r.message for r in caplog.records if "rise with each evaluation" in r.message]


@pytest.mark.parametrize("name", SEARCHES)
def test_sums_of_costs_are_named_once(name, caplog):
    search, sums = SEARCHES[name](), itertools.accumulate(itertools.cycle([3.0, 1.0, 2.0]))
    for cost in itertools.islice(sums, 14):
        tell(search, search.ask(), cost)
    (message,) = warnings_of(caplog)
    assert "If they are sums" in message


def by_default(kinds, *everywhere):
    """Return kinds of costs with each search: by default all with a cheap one, some with the others."""
    cheap = [(kind, "subsets") for kind in kinds]
    others = itertools.product(everywhere, SEARCHES)
    return quick(itertools.product(kinds, SEARCHES), *cheap, *others)


CLOCKS = {  # what each shows, and what passes between two readings
    "time.time": (1.79e9, 60.0),
    "milliseconds": (1.79e12, 60e3),
    "evaluations of a day": (1.79e9, 86400.0),
    "days": (739_000.0, 1.0),
    "a machine that has run for weeks": (2e6, 60.0),
}


@pytest.mark.parametrize(("clock", "name"), by_default(CLOCKS, "time.time"))
def test_readings_of_a_clock_are_named_once(name, clock, caplog):
    search, (began, each) = SEARCHES[name](), CLOCKS[clock]
    for number in range(14):
        tell(search, search.ask(), began + number * each)
    (message,) = warnings_of(caplog)
    assert "readings of a clock" in message


@pytest.mark.parametrize("began", [20.0, 1000.0])
def test_a_clock_that_began_shortly_ago_is_recognized(began, caplog, monkeypatch):
    readings = [began + 60.0 * n for n in range(14)]
    for number, reading in enumerate(readings, 1):
        monkeypatch.setattr(time, "perf_counter", lambda now=reading: now + 0.05)
        warn_of_rising(readings[:number])
    (message,) = warnings_of(caplog)
    assert "readings of a clock" in message


OTHERS = [
    "of evaluations",
    "that drift",
    "that drift slowly",
    "all equal",
    "nearly equal",
    "that double",
    "that fall",
    "omitted",
    "of a row of one's own",
]


@pytest.mark.parametrize(("kind", "name"), by_default(OTHERS, "that drift", *OTHERS[-2:]))
def test_other_costs_are_not(name, kind, caplog):
    search, generator = SEARCHES[name](), random.Random(1)
    for number in range(14):
        cost = {
            "of evaluations": generator.expovariate(1.0) + 1e-3,
            "that drift": 1 + 0.01 * number,
            "that drift slowly": 1e6 + 200.0 * number,
            "all equal": 1.79e9,
            "nearly equal": 1e6 + generator.random(),
            "that double": 3.0 + (number > 4) * 3.0,
            "that fall": 1.79e9 - number,
        }
        own = kind == "of a row of one's own"
        decision = search.enqueue(*place(search, number)) if own else search.ask()
        tell(search, decision, 2.0**number if own else cost.get(kind))
    assert not warnings_of(caplog)


def place(search, number):
    config = {"x": number / 14}
    if isinstance(search, bc.SubsetOptimizer):
        return config, {"fraction": 1.0}
    return (config,)


@pytest.mark.parametrize("began", [0.0, 1.79e9])
def test_a_loaded_run_does_not_say_it_again(began, caplog):
    search, sums = SEARCHES["transfer"](), itertools.accumulate(range(1, 20))
    for cost in itertools.islice((began + total for total in sums), 10):
        tell(search, search.ask(), cost)
    assert len(warnings_of(caplog)) == 1
    again = SEARCHES["transfer"]()
    again.load_state_dict(search.state_dict())
    tell(again, again.ask(), began + 100.0)
    assert len(warnings_of(caplog)) == 1


def test_evaluations_of_ones_own_do_not_repeat_it(caplog):
    search, sums = SEARCHES["transfer"](), itertools.accumulate(range(1, 20))
    for cost in itertools.islice(sums, 10):
        tell(search, search.ask(), cost)
    for number in range(3):
        tell(search, search.enqueue({"x": number / 14}), 1.0)
    assert len(warnings_of(caplog)) == 1


def told_curves(curve_of, count=6):
    search = bc.CurveOptimizer(SPACE, 30, seed=0)
    for _ in range(count):
        segment = search.ask()
        search.tell(segment, curve_of(segment))
    return search


@pytest.mark.parametrize("failed", [None, 0, 2])
def test_single_values_for_long_segments_are_named_once(failed, caplog):
    with caplog.at_level(logging.WARNING):
        told_curves(lambda segment: None if segment.round == failed else [0.5], count=8)
    named = [
        record for record in caplog.records if "fewer values than their segments" in record.message
    ]
    assert len(named) == 1


@pytest.mark.parametrize("every", [2, 3, 10])
def test_values_of_some_iterations_alone_are_named_once(every, caplog):
    def curve_of(segment):
        curve = [0.1 * n for n in range(segment.since, segment.until)]
        return curve[every - 1 :: every] or curve[-1:]

    search = bc.CurveOptimizer(SPACE, 1000, seed=0)
    for _ in range(8):
        segment = search.ask()
        search.tell(segment, curve_of(segment))
    assert sum("fewer values than their segments" in text for text in caplog.messages) == 1


@pytest.mark.parametrize(
    "curve_of",
    [
        lambda segment: [None] * (segment.iterations - 1) + [0.5],
        lambda segment: [0.1 * n for n in range(segment.since, segment.until)],
        lambda segment: (
            [0.5] * max(segment.iterations - segment.round % 3, 1)
        ),  # ended by another rule
        lambda segment: [0.5] if segment.round else [0.5] * segment.iterations,
        lambda segment: None,
        lambda segment: [math.nan],
        lambda segment: [None],
    ],
)
def test_other_curves_are_not(curve_of, caplog):
    told_curves(curve_of)
    assert not any(
        "fewer values than their segments" in record.message for record in caplog.records
    )


def test_segments_of_one_iteration_are_not(caplog):
    search = bc.CurveOptimizer(SPACE, 1, seed=0)
    for _ in range(6):
        search.tell(search.ask(), [0.5])
    assert not any(
        "fewer values than their segments" in record.message for record in caplog.records
    )


def test_segments_that_are_ended_by_its_own_advice_are_not(caplog):
    search = bc.CurveOptimizer(SPACE, 1000, seed=0)
    for number in range(6):
        segment, value = search.ask(), [0.5 - 0.1 * number]
        stops = search.should_stop(segment, value)
        search.tell(segment, value if stops or number == 1 else value * segment.iterations)
    lengths = [len(outcome.curve) for outcome in search.observations]
    assert lengths[:4] == [1] * 4
    assert not any(
        "fewer values than their segments" in record.message for record in caplog.records
    )
