"""What a search can say for certain: rivals of the best within the noise, and bounds that hold it."""

import math
import statistics

import pytest

import botorch_costly as bc
from botorch_costly.ask_tell import Domain, Optimizer, Proposal, Strategy
from botorch_costly.ask_tell.diagnosis import bounds_of

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "kind": bc.Choice(["a", "b"])})


class Listed(Strategy):
    """Evaluates points of a list in turn."""

    def __init__(self, points):
        self.points = points

    def suggest(self, seen):
        return Proposal({"x": self.points[len(seen)], "kind": "a"}, "the next one")


def told(points, values, **options):
    optimizer = Optimizer(Domain(SPACE), Listed(points), **options)
    for value in values:
        optimizer.tell(optimizer.ask(), value)
    return optimizer


def rivals_of(points, values, sign):
    """Count by hand the points within two standard deviations of the best one."""
    groups = {x: [v for p, v in zip(points, values, strict=True) if p == x] for x in points}
    squares = [(v - statistics.fmean(g)) ** 2 for g in groups.values() for v in g]
    variance = sum(squares) / (len(values) - len(groups))
    means = {x: sign * statistics.fmean(g) for x, g in groups.items()}
    best = max(means, key=means.get)
    limits = {
        x: 2 * math.sqrt(variance * (1 / len(groups[x]) + 1 / len(groups[best]))) for x in groups
    }
    return sum(means[best] - means[x] <= limits[x] for x in groups)


POINTS = [0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4, 0.5, 0.5, 0.6, 0.7]


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.3])
def test_rivals_by_repeats_are_those_counted_by_hand(maximize, noise):
    values = [x + noise * math.sin(37 * i) for i, x in enumerate(POINTS)]
    diagnosis = told(POINTS, values, maximize=maximize).diagnose()
    assert diagnosis.by == "repeats"
    assert diagnosis.rivals == rivals_of(POINTS, values, 1 if maximize else -1)
    assert diagnosis.configurations == 7
    best = (max if maximize else min)(range(12), key=values.__getitem__)
    assert diagnosis.found == best + 1
    assert f"evaluation {best + 1} of 12" in str(diagnosis)


def test_without_a_repeat_the_noise_is_not_known():
    points = [0.05 * i for i in range(12)]
    diagnosis = told(points, points).diagnose()
    assert diagnosis.rivals is None
    assert "evaluate some of them again" in str(diagnosis)


def test_failures_are_counted_and_are_never_the_best():
    points = [0.05 * i for i in range(14)]
    values = [math.nan if i in (0, 13) else x for i, x in enumerate(points)]
    diagnosis = told(points, values).diagnose()
    assert (diagnosis.values, diagnosis.failed, diagnosis.found) == (12, 2, 13)
    assert "2 evaluations have failed" in str(diagnosis)


def test_few_values_and_a_single_configuration_are_no_comparison():
    assert "Too early to say: 1 value" in str(told([0.5], [1.0]).diagnose())
    alone = told([0.5] * 12, [1.0] * 12).diagnose()
    assert "only one configuration" in str(alone)


@pytest.mark.parametrize(
    ("config", "bounds"),
    [
        ({"lr": 1e-1, "depth": 4, "kind": "a"}, (("lr", "upper"),)),
        ({"lr": 1.05e-4, "depth": 9, "kind": "b"}, (("lr", "lower"), ("depth", "upper"))),
        ({"lr": 1e-3, "depth": 8, "kind": "a"}, ()),
    ],
)
def test_numbers_at_a_bound_are_named_on_their_own_scale(config, bounds):
    space = bc.SearchSpace(
        {
            "lr": bc.Real(1e-4, 1e-1, log=True),
            "depth": bc.Integer(1, 9),
            "kind": bc.Choice(["a", "b"]),
        }
    )
    assert bounds_of(space, config) == bounds


def test_a_bound_is_not_named_where_noise_alone_has_led_there():
    points = [1.0, 0.2, 0.4, 0.4, 0.6, 0.6, 0.5, 0.5, 0.3, 0.3, 0.7, 0.7]
    values = [1.0, 0.9, 0.9, 0.1, 0.0, 0.9, 0.2, 0.8, 0.7, 0.1, 0.3, 0.9]
    diagnosis = told(points, values).diagnose()
    assert diagnosis.rivals == 7
    assert diagnosis.bounds == ()
    clear = [10.0, *values[1:]]
    assert told(points, clear).diagnose().bounds == (("x", "upper"),)


def test_an_optimum_beyond_the_range_is_seen_at_the_bound_and_by_the_model():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    grid = [{"x": i / 10} for i in range(11)]
    tasks = [bc.Task(grid, [-((config["x"] - 1.4) ** 2) for config in grid])]
    optimizer = bc.TransferOptimizer(space, tasks, horizon=12, seed=0)
    for _ in range(12):
        decision = optimizer.ask()
        optimizer.tell(decision, -((decision.config["x"] - 1.4) ** 2))
    diagnosis = optimizer.diagnose()
    assert diagnosis.by == "model"
    assert diagnosis.bounds == (("x", "upper"),)
    assert "x of the best configuration lies at its upper bound" in str(diagnosis)
    assert "share of the earlier tasks" in str(diagnosis)


def test_the_best_is_compared_however_long_ago_and_a_repeat_counts_as_late():
    count = 400
    points = [i / count for i in range(count)] + [0.0]
    values = [9.0 if i in (4, 401) else 0.001 * (i % 7) for i in range(count)] + [0.001]
    diagnosis = told(points, values).diagnose()
    assert diagnosis.configurations == count
    assert diagnosis.rivals == 1
    assert diagnosis.found == 5
    assert "One of 400 configurations is the best one" in str(diagnosis)


def test_numbers_most_values_of_which_are_bounds_are_not_said_to_lie_there():
    space = bc.SearchSpace({"n": bc.Integer(0, 1), "m": bc.Integer(0, 9)})
    assert bounds_of(space, {"n": 1, "m": 9}) == (("m", "upper"),)


def test_a_diagnosis_says_that_the_best_was_not_evaluated_at_the_target():
    """Two fidelities: the one that is nearest to the target is named, and none once it is reached."""
    fidelities = bc.SearchSpace(
        {"fraction": bc.Real(1 / 64, 1.0, log=True), "epochs": bc.Real(1.0, 9.0)}
    )
    search = bc.SubsetOptimizer(bc.SearchSpace({"x": bc.Real(0.0, 1.0)}), fidelities)
    assert "target" not in str(search.diagnose())
    levels = [(1 / 64, 1), (0.25, 3), (0.25, 9), (0.5, 1)]
    for fraction, epochs in levels:
        asked = search.enqueue({"x": 0.5}, {"fraction": fraction, "epochs": epochs})
        search.tell(asked, 1.0, cost=1.0)
    for number in range(8):  # a diagnosis needs ten values
        asked = search.enqueue({"x": number / 20}, {"fraction": 1 / 64, "epochs": 1})
        search.tell(asked, -1.0, cost=1.0)
    assert "best() was evaluated up to fraction=0.25, epochs=9," in str(search.diagnose())
    asked = search.enqueue({"x": 0.5}, {"fraction": 1.0, "epochs": 9})
    search.tell(asked, 1.0, cost=1.0)
    assert "was evaluated up to" not in str(search.diagnose())
