"""Methods on recorded evaluations: what they pay for, and what they are told."""

import math
from functools import partial

import numpy as np
import pytest
import torch

import botorch_costly as bc
from benchmarks.harness.record import rows_of
from benchmarks.subsets import accuracy, cold, fabolas, svm_grid, timing
from benchmarks.subsets.base import play
from benchmarks.subsets.live import benchmark, networks
from benchmarks.subsets.live.program import Outcome
from benchmarks.subsets.methods import METHODS
from benchmarks.subsets.tables import Table, language_models, support_vectors
from benchmarks.suite.data import MissingDataError, Part
from botorch_costly.problems import SubsetProblem
from botorch_costly.tuners.subsets.belief import Sampling
from tests.cases import quick

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "batch": bc.Real(8, 128, log=True)})
SIZES = bc.SearchSpace(
    {"parameters": bc.Real(1e6, 1e8, log=True), "tokens": bc.Real(1e8, 1e10, log=True)}
)


@pytest.fixture(scope="module")
def problem():
    pairs, values, costs = [], [], []
    for lr in (1e-4, 1e-3, 1e-2, 1e-1):
        for batch in (8, 32, 128):
            for size, tokens in ((1e6, 1e8), (1e7, 1e9), (1e8, 1e9), (1e8, 1e10)):
                small = math.log10(1e8 / size)
                wrong = (math.log10(lr) + 3 - 0.5 * small) ** 2 + 0.1 * math.log2(batch / 32) ** 2
                pairs.append(({"lr": lr, "batch": batch}, {"parameters": size, "tokens": tokens}))
                values.append(-wrong - 0.3 * small - 0.2 * math.log10(1e10 / tokens))
                costs.append(size * tokens)
    return SubsetProblem(SPACE, SIZES, pairs, values, costs)


AT_SIZES = [name for name in METHODS if not name.startswith("MTBO")]


@pytest.mark.parametrize(
    "method", quick(AT_SIZES, *(name for name in AT_SIZES if name != "Fabolas as published"))
)
def test_a_method_pays_for_what_it_asks_and_chooses_at_the_target(problem, method):
    made = METHODS[method](problem, 0)
    assert made.choice() in problem.targets
    asked = []
    for _ in range(9):
        candidate = made.ask()
        if candidate is None:
            break
        asked.append(candidate)
        made.tell(candidate, float(problem.values[candidate]), float(problem.costs[candidate]))
    assert made.choice() in problem.targets
    assert len(set(asked)) == len(asked)
    assert (asked == []) == (method == "Step Law")


def test_a_budget_counts_what_ended_within_it(problem):
    regrets, asked = play(problem, METHODS["random at the target"], 0, (0.5, 1, 2, 12))
    order = METHODS["random at the target"](problem, 0).order
    values = [float(problem.values[c]) for c in order]
    assert regrets[0] == problem.regret(order[0])  # a guess: nothing was evaluated
    assert regrets[1] == problem.best - values[0]
    assert regrets[2] == problem.best - max(values[:2])
    assert regrets[3] == 0
    assert asked == 12


def test_all_of_a_list_is_found_by_every_search(problem):
    for method in ("random at the target", "LogEI at the target"):
        regrets, _ = play(problem, METHODS[method], 1, (12,))
        assert regrets == [0]


def test_halving_evaluates_many_cheaply_and_few_at_the_target(problem):
    made = METHODS["halving"](problem, 0)
    costs = []
    while (candidate := made.ask()) is not None:
        made.tell(candidate, float(problem.values[candidate]), 1.0)
        costs.append(float(problem.costs[candidate]))
    assert sum(cost < 0.2 for cost in costs) >= 12
    assert sum(cost > 0.9 for cost in costs) < 6


def test_the_table_says_what_was_measured(problem, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(
        fabolas.TABLES, "small", Table(lambda seed: problem, (0.5, 3, 12), goal=0.1)
    )
    options = ["--tables", "small", "--methods", "halving", "--seeds", "2", "--processes", "1"]
    fabolas.main([*options, "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "halving" in printed
    fabolas.main([*options, "--results", str(tmp_path)])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(("name", "best"), [("1.07b-20b", 2.22550), ("429m-100b", 2.21229)])
def test_language_models_are_read_as_they_were_measured(name, best):
    try:
        problem = language_models(name)
    except MissingDataError:
        pytest.skip("the folder of the data is not there")
    assert -problem.best == pytest.approx(best, abs=1e-5)
    assert float(problem.costs.min()) < 0.01
    assert float(problem.costs.max()) == pytest.approx(1, abs=0.02)
    step_law = METHODS["Step Law"](problem, 0)
    assert problem.regret(step_law.choice()) < 0.01


def test_probabilities_are_measured_beside_draws(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(accuracy, "_DRAWS", 200_000)
    options = ["--points", "5", "--seeds", "1", "--processes", "1", "--results", str(tmp_path)]
    accuracy.main(options)
    assert "posterior" in capsys.readouterr().out
    rows = rows_of("prob-min", tmp_path)
    assert len(rows) == 4
    assert all(row["corrected"] < 0.02 for row in rows)
    assert all(row["MVNXPB"] < 0.1 for row in rows)


@pytest.mark.slow
def test_beliefs_are_measured_beside_long_walks(monkeypatch, tmp_path, capsys):
    short = [Sampling(draws=500, first_steps=steps) for steps in (40, 60)]
    monkeypatch.setattr(cold, "_LONG", short)
    options = ["--tables", "svm", "--evaluations", "8", "--precisions", "float64"]
    cold.main([*options, "--seeds", "1", "--processes", "1", "--results", str(tmp_path)])
    assert "reference" in capsys.readouterr().out
    (row,) = rows_of("cold-belief", tmp_path)
    assert row["reference: mean"] > 0
    assert 0 < row["new: mean"] < row["new: mean at 90 %"] < 5
    assert row["cost"] >= 1


def test_a_grid_is_computed_once_each_cell_under_its_own_key(monkeypatch, tmp_path, capsys):
    trained = []

    def evaluate(c, gamma, pictures, seed, size):
        trained.append((c, gamma))
        return Outcome(0.5, 1.0)

    monkeypatch.setattr(svm_grid, "evaluate", evaluate)
    options = ["--processes", "1", "--results", str(tmp_path)]
    svm_grid.main(["--cells", "2", *options])
    assert len(set(trained)) == 4
    trained.clear()
    svm_grid.main(["--cells", "3", *options])  # the corners are stored
    assert len(set(trained)) == 9 - 4
    assert len(rows_of("svm-grid", tmp_path)) == 9
    assert "9 configurations on 8192 pictures" in capsys.readouterr().out


def test_support_vectors_are_those_of_the_grid():
    first, second = support_vectors(0), support_vectors(1)
    assert len(first) == 2_400
    assert -first.best == pytest.approx(0.0285, abs=1e-4)
    assert len(first.targets) == 400
    assert first.values[first.targets].equal(second.values[second.targets])  # trained once
    assert not first.values.equal(second.values)  # other subsets are drawn
    number = first.targets[0]
    assert float(first.told[number]) == pytest.approx(-math.log(-float(first.values[number])))


@pytest.mark.slow
def test_live_trainings_are_judged_on_all_of_the_data(monkeypatch):
    errors = {1.0: 0.1, 0.5: 0.2}

    def trained(config, fraction, seed):
        return Outcome(errors.get(fraction, 0.3), 1 + 9 * fraction)

    program = benchmark.PROGRAMS["svm"]._replace(trained=trained, budgets=(5, 20))
    monkeypatch.setitem(benchmark.PROGRAMS, "svm", program)
    for method in ("random on all", "SubsetOptimizer"):
        row = benchmark.measure(benchmark.Task("svm", method, 0))
        assert row["at 5"] == row["at 20"] == 0.1
        assert row["evaluations"] >= 3
        assert method in benchmark.text([row])


@pytest.fixture
def pictures(monkeypatch):
    """Two classes of pictures, dark and bright, in place of CIFAR-10."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(700) % 2
    inputs = 0.3 + 0.4 * targets[:, None, None, None] + torch.zeros(700, 3, 32, 32)
    inputs = inputs + 0.1 * torch.randn(inputs.shape, generator=generator)
    monkeypatch.setattr(networks, "cifar10", lambda: Part(inputs, targets))
    networks._parts.cache_clear()
    yield
    networks._parts.cache_clear()


LEARNING = {
    "cnn, small": {"lr": 0.01, "batch_size": 32, "units_1": 64, "units_2": 64, "units_3": 64},
    "residual, small": {"lr": 0.1, "weight_decay": 1e-5, "lr_factor": 0.1, "momentum": 0.9},
}


def training(name):
    """Return what trains with a few of the pictures."""
    whole = benchmark.PROGRAMS[name].trained
    size = networks.Size(500, 200, epochs=6, shrink=8)
    return partial(whole.func, **{**whole.keywords, "size": size})


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("name", LEARNING)
def test_a_network_learns_from_a_part_and_repeats_itself(name):
    program, train = benchmark.PROGRAMS[name], training(name)
    outcome = train(LEARNING[name], 0.5, 1)
    assert outcome.error < 0.2
    assert outcome.seconds > 0
    assert train(LEARNING[name], 0.5, 1).error == outcome.error
    assert train({**LEARNING[name], "lr": 1e-6}, 0.2, 1).error > 0.3
    assert set(program.space.names) == set(LEARNING[name])


@pytest.mark.usefixtures("pictures")
def test_a_network_that_diverges_has_learnt_nothing(monkeypatch):
    monkeypatch.setattr(networks, "cross_entropy", lambda logits, _: logits.sum() * math.inf)
    assert training("cnn, small")(LEARNING["cnn, small"], 0.1, 0).error == 1.0


def test_schedules_are_those_that_are_stated():
    assert [round(networks._cosine({}, s), 3) for s in (0.0, 0.5, 1.0)] == [1.0, 0.5, 0.0]
    falls = [networks._drops({"lr_factor": 0.1}, s) for s in (0.0, 0.49, 0.5, 0.75)]
    assert falls == pytest.approx([1.0, 1.0, 0.1, 0.01])


@pytest.fixture
def separable(monkeypatch):
    """Two classes far apart in place of the pictures; the first 500 are all of one."""
    classes = np.concatenate(
        [np.zeros(500, int), np.random.default_rng(0).integers(2, size=11_500)]
    )
    inputs = classes[:, None] + 0.1 * np.random.default_rng(1).standard_normal((12_000, 4))
    monkeypatch.setattr(svm_grid, "_mnist", lambda side: (inputs, classes))


@pytest.mark.usefixtures("separable")
def test_a_machine_is_trained_on_a_drawn_part(monkeypatch):
    config, size = {"c": 1.0, "gamma": 1.0}, svm_grid.Size(pictures=1_000, checked=50)
    outcome = svm_grid.trained(config, 0.1, 0, size)
    assert outcome.error == 0
    assert outcome.seconds >= 0
    one_class = svm_grid.trained(config, 0.1, 0, svm_grid.Size(pictures=500, checked=50))
    assert 0.2 < one_class.error < 0.8  # nothing to tell apart
    monkeypatch.setattr(svm_grid, "REPEATS", {0.1: 2, 0.2: 1})
    row = svm_grid.measure(svm_grid.Cell(0.0, 0.0), size)
    assert [len(errors) for errors in row["errors"]] == [2, 1]
    assert "1000 pictures" in svm_grid.text([row])


@pytest.mark.slow
def test_an_iteration_is_timed():
    row = timing.measure(timing.Task(5, 0))
    assert row["later"] > 0
    assert row["first"] > 0
    rows = [{**row, "later": later, "first": 3.0} for later in (1.0, 2.0, 4.0)]
    expected = "5 3 3.00 (3.00) 2.00 (4.00)"
    assert " ".join(timing.text(rows).splitlines()[1].split()) == expected
