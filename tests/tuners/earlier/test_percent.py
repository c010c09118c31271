"""Percent told beside studies in fractions, and the other way round: said once."""

import pytest

import botorch_costly as bc
from botorch_costly.tuners.earlier.percent import units_of

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})


def accuracy(x):
    return 0.95 - 0.3 * (x - 0.4) ** 2


ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)
SEARCHES = {
    "transfer": bc.TransferOptimizer,
    "subset": lambda space, tasks: bc.SubsetOptimizer(space, tasks=tasks, sampling=ROUGH),
    "curve": lambda space, tasks: bc.CurveOptimizer(space, 4, tasks=tasks),
}


def search(unit, kind="transfer", *, advice=False):
    xs = [k / 8 for k in range(9)]
    task = bc.Task([{"x": x} for x in xs], [unit * accuracy(x) for x in xs])
    tasks = [bc.Task.advice([{"x": 0.3}, {"x": 0.5}])] if advice else [task, task]
    return SEARCHES[kind](SPACE, tasks)


def tell(optimizer, value_of, count=5):
    for _ in range(count):
        suggestion = optimizer.ask()
        value = value_of(suggestion.config["x"])
        curve = [value] * getattr(suggestion, "iterations", 0)
        optimizer.tell(suggestion, curve or value)


def messages(caplog):
    return [r.message for r in caplog.records if "percent against fractions" in r.message]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(("earlier", "now"), [(100.0, 1.0), (1.0, 100.0)])
def test_the_two_are_named_once(earlier, now, kind, caplog):
    tell(search(earlier, kind), lambda x: now * accuracy(x))
    (message,) = messages(caplog)
    assert ("seem fractions" in message) == (now == 1.0)


@pytest.mark.parametrize(("earlier", "now"), [(-100.0, -1.0), (-1.0, -100.0)])
def test_negatives_are_too(earlier, now, caplog):
    tell(search(earlier), lambda x: now * accuracy(x))
    assert len(messages(caplog)) == 1


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    ("earlier", "value_of"),
    [
        (100.0, lambda x: 100 * accuracy(x)),
        (1.0, accuracy),
        (100.0, lambda x: 0.0 if x < 0.5 else 90.0),
        (100.0, lambda x: -accuracy(x)),
        (1.0, lambda x: 1000 * accuracy(x)),
        (3.0, accuracy),
    ],
)
def test_others_are_not(earlier, value_of, kind, caplog):
    tell(search(earlier, kind), value_of)
    assert not messages(caplog)


@pytest.mark.parametrize("kind", SEARCHES)
def test_advice_has_no_units(kind, caplog):
    tell(search(1.0, kind, advice=True), lambda x: 100 * accuracy(x))
    assert not messages(caplog)


def test_a_loaded_run_does_not_say_it_again(caplog):
    optimizer = search(100.0)
    tell(optimizer, accuracy, 3)
    again = search(100.0)
    again.load_state_dict(optimizer.state_dict())
    again.tell(again.ask(), float("nan"))
    tell(again, accuracy, 2)
    assert len(messages(caplog)) == 1


def test_values_that_are_no_fractions_of_each_other_are_not():
    assert units_of([], [90.0]) is None
    assert units_of([0.5, 1.2], [90.0]) is None
    assert units_of([0.5], [90.0, 101.0]) is None
    assert units_of([0.5], [90.0, 1.0]) is None
