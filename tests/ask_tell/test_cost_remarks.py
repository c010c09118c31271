"""What a diagnosis says of costs: shares as counted by hand, and expensive evaluations in vain."""

import math
import random

import pytest

import botorch_costly as bc
from botorch_costly.ask_tell import Domain, Optimizer, Proposal, Strategy

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1e-1, log=True),
        "width": bc.Integer(1, 64),
        "kind": bc.Choice(["a", "b", "c"]),
    }
)


class Listed(Strategy):
    """Evaluates configurations of a list in turn."""

    def __init__(self, configs):
        self.configs = configs

    def suggest(self, seen):
        return Proposal(self.configs[len(seen)], "the next one")


def told(value, cost, *, seed=0, count=40, **options):
    """Random configurations, whose values and costs are functions of them and of a random number."""
    draw = random.Random(seed)
    configs = [
        {
            "lr": 10 ** draw.uniform(-4, -1),
            "width": draw.randint(1, 64),
            "kind": draw.choice("abc"),
        }
        for _ in range(count)
    ]
    optimizer = Optimizer(Domain(SPACE), Listed(configs), **options)
    for config in configs:
        noise = draw.gauss(0, 1)
        optimizer.tell(optimizer.ask(), value(config, noise), cost=cost(config))
    return optimizer


def by_lr(config, noise):
    return -((math.log10(config["lr"]) + 2) ** 2) + 0.1 * noise


def cubed_width(config):
    return config["width"] ** 3 / 1e3


def expense_line(optimizer):
    lines = str(optimizer.diagnose()).splitlines()
    return next((line for line in lines if "most expensive fifth" in line), "")


def best_of(optimizer, sign=1):
    costs = [o.cost for o in optimizer.observations]
    found = max(range(len(costs)), key=lambda i: sign * optimizer.observations[i].reward)
    return found, sum(costs[: found + 1]) / sum(costs)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_share_up_to_the_best_is_that_counted_by_hand(maximize, seed):
    optimizer = told(by_lr, cubed_width, seed=seed, maximize=maximize)
    found, share = best_of(optimizer, 1 if maximize else -1)
    diagnosis = optimizer.diagnose()
    assert math.isclose(diagnosis.paid, share, rel_tol=1e-9)
    line = f"came at evaluation {found + 1} of 40, after {share:.0%} of the cost."
    assert line in str(diagnosis)


def test_failures_are_said_with_what_they_took():
    def value(config, noise):
        return math.nan if config["width"] > 50 else noise

    optimizer = told(value, cubed_width)
    lost = sum(o.cost for o in optimizer.observations if o.failed) / optimizer.total_cost
    failed = optimizer.failed_queries
    expected = f"{failed} evaluations have failed, for {lost:.0%} of the cost."
    assert failed > 1
    assert lost > 0.3
    assert expected in str(optimizer.diagnose())


def test_nothing_is_said_of_costs_that_are_not_known():
    for cost in (lambda config: None, lambda config: None if config["width"] < 9 else 1.0):
        diagnosis = told(by_lr, cost).diagnose()
        assert (diagnosis.paid, diagnosis.paid_for_failures) == (None, None)
        assert "cost" not in str(diagnosis)


def test_expensive_evaluations_that_are_no_better_are_named_with_their_cause():
    """A trend in the other direction, so that no draw puts an expensive one among the best."""

    def by_width(config, noise):
        return -config["width"] + noise

    def by_kind(config, noise):
        return noise - 9.0 * (config["kind"] == "b")

    causes = {
        "cost rises with width, whose upper bound may be lower": (by_width, cubed_width),
        "cost falls with lr, whose lower bound may be higher": (
            lambda config, noise: config["lr"],
            lambda config: config["lr"] ** -1.0,
        ),
        "all of them have kind='b', which may be left out": (
            by_kind,
            lambda config: 30.0 if config["kind"] == "b" else 1.0,
        ),
    }
    for cause, (value, cost) in causes.items():
        optimizer = told(value, cost)
        costs = sorted((o.cost for o in optimizer.observations), reverse=True)
        share = sum(costs[:8]) / sum(costs)
        line = expense_line(optimizer)
        assert line.startswith(
            f"The most expensive fifth of the evaluations took {share:.0%} of the cost"
        )
        assert line.endswith(f"among the best fifth: {cause}.")


def test_a_cause_that_no_parameter_explains_is_not_invented():
    draw = random.Random(4)
    costs = [draw.lognormvariate(0, 2.5) for _ in range(40)]
    paid, values = iter(costs), iter([-cost for cost in costs])
    optimizer = told(lambda config, noise: next(values), lambda config: next(paid))
    assert expense_line(optimizer).endswith("such evaluations may be stopped early.")


def test_there_is_no_alarm_where_expensive_ones_are_better_or_costs_alike():
    costs = {
        "alike": lambda config: 2.0,
        "twofold": lambda config: 1.0 + config["width"] / 64,
    }
    for cost in costs.values():
        assert expense_line(told(lambda config, noise: -config["width"], cost)) == ""

    def better(config, noise):
        return config["width"] / 18.5 + noise

    assert expense_line(told(lambda config, noise: 0.0, cubed_width)) == ""  # all values are equal
    alarms = sum(expense_line(told(better, cubed_width, seed=seed)) != "" for seed in range(40))
    assert alarms == 0


def test_there_is_no_alarm_where_one_of_the_expensive_ones_is_the_best():
    def falling(config, noise):
        return -config["width"]

    widest = max(o.config["width"] for o in told(falling, cubed_width).observations)

    def but_for_one(config, noise):
        return 9.0 if config["width"] == widest else -config["width"]

    assert expense_line(told(falling, cubed_width)) != ""
    assert expense_line(told(but_for_one, cubed_width)) == ""


def test_few_evaluations_are_no_fifth():
    def cheap_is_better(config, noise):
        return -config["width"]

    assert expense_line(told(cheap_is_better, cubed_width, count=14)) == ""
    assert expense_line(told(cheap_is_better, cubed_width, count=15)) != ""
