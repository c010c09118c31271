"""Mistakes that a newcomer is likely to make are refused, or earn one warning, by a line that helps."""

import logging

import pytest

import botorch_costly as bc
from botorch_costly import space
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, InvalidSpaceError

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("call", [bc.save, bc.load])
def test_an_object_without_a_name_is_refused(call, tmp_path):
    tuner = bc.OnlineTuner(SPACE, 5)
    path = tmp_path / "run.pt"
    for arguments in ((tuner, path), (path, tuner), (tuner,)):
        with pytest.raises(InvalidArgumentError, match="by name, such as tuner=tuner"):
            call(*arguments)
    assert not path.exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: bc.OnlineTuner(SPACE, 60, query=bc.query.AlwaysQuery()),
        lambda: bc.BanditTuner(
            bc.SearchSpace({"tune": bc.Choice([False, True])}), 60, query=bc.query.AlwaysQuery()
        ),
        lambda: bc.TwinTuner(SPACE, 60, queries=1.0),
    ],
    ids=["online", "bandit", "twins"],
)
def test_a_run_that_is_never_told_warns_once(make, caplog):
    tuner = make()
    for _ in range(40):
        tuner.ask()
    assert sum("none was told" in text for text in warnings_of(caplog)) == 1


def test_a_run_that_is_told_and_a_search_in_parallel_earn_no_warning(caplog):
    tuner = bc.OnlineTuner(SPACE, 40, query=bc.query.AlwaysQuery())
    for number in range(20):
        tuner.tell(tuner.ask(), 0.1 * number)
    few = bc.OnlineTuner(SPACE, 60, query=bc.query.AlwaysQuery(), limits=bc.Limits(keep_rounds=2))
    for number in range(30):
        decision = few.ask()
        if number == 1:  # which is not kept until the eighth query
            few.tell(decision, 0.1 * number)
    ahead = bc.OnlineTuner(SPACE, 60)
    entered = [ahead.enqueue({"lr": 0.01}) for _ in range(10)]
    ahead.tell(entered[0], 0.1)
    search = bc.TransferOptimizer(SPACE, [bc.Task([{"lr": 0.01}, {"lr": 0.02}], [0.1, 0.2])])
    for _ in range(10):
        search.ask()
    assert not any("none was told" in text for text in warnings_of(caplog))


@pytest.mark.parametrize(
    ("name", "parameter", "warns"),
    [
        ("lr", bc.Real(1e-6, 1.0), True),
        ("lr", bc.Real(1e-4, 1e-1), True),
        ("lr", bc.Real(1e-4, 1e-1, log=True), False),
        ("lr", bc.Real(0.1, 1.0), False),
        ("rate", bc.Real(1e-3, 0.2, role="learning_rate"), True),
        ("weight_decay", bc.Real(1e-6, 1e-1), True),
        ("x", bc.Real(1e-3, 1.0), False),
        ("dropout", bc.Real(0.0, 0.9), False),
        ("shift", bc.Real(-1.0, 1e6), False),
        ("units", bc.Integer(1, 2**20), False),
    ],
)
def test_orders_of_magnitude_on_a_linear_scale_earn_one_warning(name, parameter, warns, caplog):
    space._warn_of_scale.cache_clear()
    made = bc.SearchSpace({name: parameter, "other": bc.Real(0.0, 1.0)})
    assert bc.SearchSpace.from_dict(made.to_dict()) == made  # as a report does
    assert len(warnings_of(caplog)) == warns
    assert all(text.startswith(name) and "log=True" in text for text in warnings_of(caplog))


def test_a_fidelity_with_the_name_of_a_parameter_is_refused():
    both = bc.SearchSpace({"lr": bc.Real(1e-4, 1.0, log=True), "epochs": bc.Integer(1, 9)})
    fidelities = bc.SearchSpace({"epochs": bc.Real(1.0, 9.0)})
    with pytest.raises(InvalidSpaceError, match="fidelities: Expected names other than"):
        bc.SubsetOptimizer(both, fidelities)


@pytest.mark.parametrize("fidelities", [None, {}, {"part": 0.5}, {"fraction": 0.5, "part": 0.5}])
def test_a_setting_without_its_fidelities_says_which_it_lacks(fidelities):
    optimizer = bc.SubsetOptimizer(SPACE)
    with pytest.raises(InvalidConfigError, match=r"fidelities: Expected a value of each.*fraction"):
        optimizer.enqueue({"lr": 0.01}, fidelities)
    assert len(optimizer.decisions) == 0


def test_a_cost_that_is_told_for_some_evaluations_earns_one_warning(caplog):
    rough = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)
    mixed, never, always = (bc.SubsetOptimizer(SPACE, sampling=rough) for _ in range(3))
    for number in range(5):
        for optimizer in (never, always, mixed):
            decision = optimizer.ask()
            told = optimizer is always or (optimizer is mixed and number < 2)
            optimizer.tell(decision, 0.1 * number, cost=7.0 if told else None)
        assert sum("No cost was told" in text for text in warnings_of(caplog)) == (number >= 2)
    assert mixed.total_cost > 14.0


def test_costs_that_begin_late_earn_the_warning_too(caplog):
    optimizer = bc.SubsetOptimizer(SPACE)
    for cost in (None, 3.0, 3.0):
        optimizer.tell(optimizer.enqueue({"lr": 0.01}, {"fraction": 0.5}), 0.1, cost=cost)
    assert sum("No cost was told" in text for text in warnings_of(caplog)) == 1


def _twins(lag):
    """Play a run in which each metric is told some rounds late."""
    tuner, asked = bc.TwinTuner(SPACE, 40, queries=1.0), []
    for number in range(40):
        asked.append(tuner.ask())
        if number >= lag and (asked[-1 - lag].query or lag):
            tuner.tell(asked[-1 - lag], 1.0 / (1 + number))
    return tuner


@pytest.mark.parametrize("lag", [1, 3])
def test_metrics_that_come_after_the_next_round_was_asked_for_earn_one_warning(lag, caplog):
    _twins(lag)
    (message,) = [text for text in warnings_of(caplog) if "change nothing" in text]
    assert message.startswith("3 metrics were told after the next round had been asked for")


def test_metrics_in_time_and_a_late_one_now_and_then_earn_none(caplog):
    tuner = _twins(0)
    late = [decision for decision in tuner.decisions if not decision.query][:2]
    for decision in late:
        tuner.tell(decision, 0.5)
    assert len(late) == 2
    assert "change nothing" not in caplog.text
