"""Earlier studies whose metric has the other direction are noticed after a few evaluations."""

import logging
import math

import pytest

import botorch_costly as bc
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "x": bc.Real(0.0, 1.0)})


def loss(config, best=-2.0):
    return (math.log10(config["lr"]) - best) ** 2 + 0.3 * config["x"]


def study(sign, best=-2.0):
    configs = [{"lr": 10 ** (-4 + i / 2), "x": j / 3} for i in range(7) for j in range(4)]
    return bc.Task(configs, [sign * loss(config, best) for config in configs])


def messages(tasks, evaluations, value, caplog):
    optimizer = bc.TransferOptimizer(SPACE, tasks, maximize=False, seed=1)
    for _ in range(evaluations):
        asked = optimizer.ask()
        optimizer.tell(asked, value(asked.config))
    return [r for r in caplog.records if r.levelno >= logging.WARNING and "direction" in r.message]


@pytest.mark.parametrize("count", quick([1, 3], 1))
def test_tasks_of_the_other_direction_earn_one_warning(count, caplog):
    tasks = [study(-1.0, -2.0 + 0.2 * number) for number in range(count)]
    assert len(messages(tasks, 12, loss, caplog)) == 1


def test_tasks_of_the_same_direction_and_too_few_values_earn_none(caplog):
    assert not messages([study(1.0)], 12, loss, caplog)
    assert not messages([study(-1.0)], 7, loss, caplog)


def test_one_task_that_agrees_and_values_that_are_all_alike_earn_none(caplog):
    assert not messages([study(-1.0), study(1.0)], 12, loss, caplog)
    assert not messages([study(-1.0)], 10, lambda config: 0.5, caplog)
    advice = bc.Task.advice([{"lr": 1e-4, "x": 1.0}])
    assert not messages([advice], 10, loss, caplog)
