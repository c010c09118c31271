"""Learners on parts of the data: what was distilled, what methods are told, and how they are judged."""

import csv
import math

import numpy as np
import pytest
import torch

from benchmarks.harness.record import rows_of
from benchmarks.learners import arms, curves, earlier, learners, noise
from benchmarks.learners.problems import TOLD_EXACTLY, LearnerProblem, data_sets, problem_of
from benchmarks.learners.rivals import Halving, MostlyBest, ranking
from benchmarks.subsets.base import play
from benchmarks.suite.data import MissingDataError

SPLIT = ["size_train", "size_test", "outer_seed", "inner_seed"]
HEAD = ["openmlid", "learner", *SPLIT, "traintime", "score_train"]
SIZES = (16, 64, 256, 1024)
FAST = [name for name in learners.METHODS if not name.startswith("SubsetOptimizer")]


def accuracy(learner, size):
    """Tree ends best, naive Bayes begins best."""
    rest = math.log2(1024 / size)
    return {"tree": 0.9 - 0.05 * rest, "bayes": 0.8 - 0.01 * rest, "line": 0.5}[learner]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("lcdb") / "database-accuracy.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*HEAD, "score_valid", "score_test"])
        for data_set in (3, 7):
            for learner in ("tree", "bayes", "line", "late"):
                for size in SIZES if learner != "late" else SIZES[:2]:
                    for split in range(6):
                        score = accuracy("tree" if learner == "late" else learner, size)
                        off = (split - 2.5) / size**0.5 / 10
                        seconds = 1e-3 * size**0.6 * (10 if learner == "tree" else 1)
                        row = [data_set, learner, size, 99, split, 0, seconds, 1.0]
                        writer.writerow([*row, score + off, score - 0.01])
    return path


@pytest.fixture(scope="module")
def distilled(table):
    return curves.distilled(table)


@pytest.fixture(scope="module")
def problem(distilled):
    return LearnerProblem(distilled, 3, distilled.validation)


def test_a_table_is_distilled_to_means_and_spreads(distilled):
    assert len(distilled.size) == 2 * (3 * 4 + 2)
    assert set(distilled.splits.tolist()) == {6}
    tree = (distilled.learner == 0) & (distilled.data_set == 3)
    assert distilled.validation[tree] == pytest.approx([accuracy("tree", s) for s in SIZES])
    assert distilled.test[tree] == pytest.approx(distilled.validation[tree] - 0.01)
    offs = [np.std((np.arange(6) - 2.5) / s**0.5 / 10, ddof=1) for s in SIZES]
    assert distilled.validation_spread[tree] == pytest.approx(offs)
    assert distilled.test_spread[tree] == pytest.approx(0, abs=1e-9)
    first = [accuracy("tree", s) - 0.25 / s**0.5 for s in SIZES]
    assert distilled.first_split[tree] == pytest.approx(first)


def test_what_is_stored_is_read_again(table, distilled, tmp_path, capsys):
    curves.main(["--table", str(table), "--results", str(tmp_path)])
    assert "168 trainings, 28 means, 2 data sets" in capsys.readouterr().out
    again = curves.learning_curves(tmp_path / "lcdb.npz")
    for name, column in distilled._asdict().items():
        if name == "learners":
            assert again.learners == column
        else:
            assert getattr(again, name) == pytest.approx(column, rel=5e-3, abs=2e-5), name
    with pytest.raises(MissingDataError, match="lcdb"):
        curves.learning_curves(tmp_path / "nothing.npz")


def test_the_table_is_looked_for_where_data_are(table, monkeypatch, tmp_path):
    monkeypatch.setattr(curves, "find_spec", lambda name: None)
    monkeypatch.delenv("BOTORCH_COSTLY_DATA", raising=False)
    with pytest.raises(MissingDataError, match="pip install"):
        curves.table_of_package()
    (tmp_path / "lcdb").symlink_to(table.parent)
    monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
    assert curves.table_of_package() == tmp_path / "lcdb" / table.name


def test_arms_are_the_learners_that_were_measured_on_all(problem):
    assert problem.learners == ["tree", "bayes", "line"]  # "late" never ended
    assert len(problem) == 12
    assert problem.whole == 1024
    regrets = {problem.candidates[t][0]["learner"]: problem.regret(t) for t in problem.targets}
    assert regrets == pytest.approx({"tree": 0, "bayes": 0.1, "line": 0.4})
    # Told in validation, judged in test.
    assert float(problem.values.max()) == pytest.approx(0.9)
    assert problem.best == pytest.approx(0.89)


@pytest.mark.parametrize("method", FAST)
def test_a_method_asks_for_nothing_twice_and_finds_the_best_of_all(
    problem, method, distilled, monkeypatch
):
    monkeypatch.setattr("benchmarks.learners.rivals.ranking", lambda: ["bayes", "tree", "line"])
    made, asked = learners.METHODS[method](problem, 0), []
    assert made.choice() in problem.targets
    while (candidate := made.ask()) is not None:
        asked.append(candidate)
        made.tell(candidate, float(problem.values[candidate]), float(problem.costs[candidate]))
    assert len(set(asked)) == len(asked)
    evaluates = method != "mostly best"
    assert set(problem.targets) <= set(asked) or not evaluates
    assert problem.regret(made.choice()) == pytest.approx(0 if evaluates else 0.1)


def test_halving_goes_on_with_the_better_half(problem):
    made, asked = Halving(problem, 0), []
    for _ in range(6):
        candidate = made.ask()
        made.tell(candidate, float(problem.values[candidate]), 1.0)
        config, at = problem.candidates[candidate]
        asked.append((config["learner"], at["fraction"]))
    assert {learner for learner, _ in asked[:3]} == {"tree", "bayes", "line"}
    assert {at for _, at in asked[:3]} == {1 / 64}
    # At a 64th naive Bayes leads, and goes on alone.
    assert asked[3:] == [("bayes", 1 / 16), ("bayes", 1 / 4), ("bayes", 1)]


def test_the_budget_is_in_seconds_of_all_on_all(problem):
    order = learners.METHODS["random on all"](problem, 0).order
    first = float(problem.costs[order[0]])
    regrets, asked = play(problem, learners.METHODS["random on all"], 0, (0.99 * first, first, 3))
    assert regrets[1] == problem.regret(order[0])
    assert regrets[2] == 0
    assert asked == 3


def points(*pairs):
    arm, fraction = zip(*pairs, strict=True)
    return arms.Points(torch.tensor(arm), torch.tensor(fraction, dtype=torch.float64))


def naive_covariance(h, k, a, b):
    (i, u), (j, v) = a, b
    pick = {name: float(getattr(h, name)[k]) for name in h._fields}
    level = pick["level"] ** 2 * math.exp(-0.5 * (u - v) ** 2 / pick["level_scale"] ** 2)
    root = np.array([[pick["end"], 0], [pick["link"], pick["change"]]])
    line = np.array([1, 1 - u]) @ root @ root.T @ np.array([1, 1 - v])
    off = pick["deviation"] ** 2 * math.exp(-0.5 * (u - v) ** 2 / pick["deviation_scale"] ** 2)
    return 1 + level + (line + off if i == j else 0)


def test_beliefs_are_those_of_the_formula():
    draws = arms.drawn(3, torch.Generator().manual_seed(1))
    known = [(0, 0.0), (1, 0.0), (0, 0.5)]
    targets, rest = [(0, 1.0), (1, 1.0), (2, 1.0)], [(1, 0.5), (2, 0.0)]
    values = torch.tensor([0.3, -1.0, 0.9], dtype=torch.float64)
    belief = arms.believed(draws, 3, points(*known), values, points(*targets), points(*rest))
    evidence = []
    for k in range(3):

        def noise(u, k=k):
            return float(draws.noise[k] + draws.alpha[k] * (1 - u) ** draws.beta[k])

        def matrix(a, b, k=k):
            return np.array([[naive_covariance(draws, k, x, y) for y in b] for x in a])

        K = matrix(known, known) + np.diag([noise(u) for _, u in known])
        solved = np.linalg.solve(K, values.numpy())
        evidence.append(-0.5 * values.numpy() @ solved - 0.5 * np.linalg.slogdet(K)[1])
        place = int((belief.mean[:, 0] - matrix(targets, known)[0] @ solved).abs().argmin())
        assert belief.mean[place].numpy() == pytest.approx(
            matrix(targets, known) @ solved, abs=1e-6
        )
        gain = np.linalg.solve(K, matrix(known, targets))
        across = matrix(rest, targets) - matrix(rest, known) @ gain
        assert belief.across[place].numpy() == pytest.approx(across, abs=1e-6)
        cov = matrix(targets, targets) - matrix(targets, known) @ gain
        assert belief.covariance[place].numpy() == pytest.approx(cov, abs=1e-6)
        own = matrix(rest, rest) - matrix(rest, known) @ np.linalg.solve(K, matrix(known, rest))
        wanted = np.diag(own) + [noise(u) for _, u in rest]
        assert belief.variance[place].numpy() == pytest.approx(wanted, abs=1e-6)
        assert float(belief.weight[place].log() - belief.weight.max().log()) <= 1e-9
    weight = np.exp(np.array(evidence) - max(evidence))
    assert sorted(belief.weight.tolist()) == pytest.approx(sorted(weight / weight.sum()), abs=1e-5)


def test_the_knowledge_gradient_is_the_mean_growth_of_the_best():
    draws = arms.drawn(2, torch.Generator().manual_seed(0))
    known = points((0, 0.0), (1, 0.0), (2, 0.3))
    values = torch.tensor([0.3, -1.0, 0.9], dtype=torch.float64)
    ends = points((0, 1.0), (1, 1.0), (2, 1.0))
    belief = arms.believed(draws, 2, known, values, ends, points((0, 0.5), (2, 0.9)))
    z = torch.randn(200_000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    step = belief.across / belief.variance.sqrt().unsqueeze(-1)
    moved = belief.mean[:, None, :, None] + step.unsqueeze(-1) * z
    gains = moved.amax(-2).mean(-1) - belief.mean.amax(-1, keepdim=True)
    wanted = (belief.weight.unsqueeze(-1) * gains).sum(0)
    assert arms.knowledge_gradient(belief).tolist() == pytest.approx(wanted.tolist(), abs=0.01)


def test_costs_are_learnt_arm_by_arm(problem):
    made = arms.KnowledgeGradientOfArms(problem, 0)
    for learner in ("tree", "bayes"):
        for fraction in (1 / 64, 1 / 16):
            number = problem.places[learner][fraction]
            made.tell(number, float(problem.values[number]), float(problem.costs[number]))
    ends = torch.tensor([problem.places[name][1.0] for name in ("tree", "bayes")])
    assert made._cost(ends).tolist() == pytest.approx(problem.costs[ends].tolist(), rel=0.25)


def test_rows_say_what_was_measured(problem, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(learners, "problem_of", lambda data_set, told: problem)
    monkeypatch.setattr(learners, "data_sets", lambda half: [3, 7])
    options = ["--methods", "random on all", "--processes", "1", "--results", str(tmp_path)]
    learners.main([*options, "--told", TOLD_EXACTLY])
    printed = capsys.readouterr().out
    assert "confirm, mean of 25 splits" in printed
    (row,) = rows_of("learners", tmp_path)
    assert row["data_sets"] == [3, 7]
    assert row["at 1"] == [0, 0]
    learners.main([*options, "--told", TOLD_EXACTLY])
    assert capsys.readouterr().out == printed


def test_slow_methods_are_played_on_every_eighth_data_set(monkeypatch):
    monkeypatch.setattr(learners, "data_sets", lambda half: list(range(20)))
    assert learners.sets_of("SubsetOptimizer", "confirm") == [0, 8, 16]
    assert learners.sets_of("halving", "confirm") == list(range(20))
    assert list(learners.budgets_of("SubsetOptimizer")) == ["1/50", "1/20", "1/10"]


def test_a_slope_counts_sizes_with_spread_and_splits(distilled, tmp_path, capsys):
    sizes = [10, 100, 1000, 10_000, 100_000, 7]
    spreads = [s**-0.25 for s in sizes[:-1]] + [0.0]
    assert noise.slope_of(sizes, spreads, [25] * 6) == pytest.approx(-0.25)
    assert noise.slope_of(sizes, spreads, [25] * 4 + [4, 25]) is None
    slopes = {"validation": [-0.2, -0.1, 0.1, -0.3], "test": [0.1] * 4}
    rows = [{"learner": "a.Tree", "data_sets": [1, 2, 3, 4], **slopes}]
    (line,) = [line for line in noise.text(rows).splitlines() if line.startswith("all")]
    assert line.split()[1:4] == ["4", "75.0%", "-0.150"]


def test_slopes_of_curves_that_count_are_stored(distilled):
    longer = distilled._replace(size=distilled.size.astype(float))
    assert all(row["data_sets"] == [] for row in noise.rows_of_curves(longer))  # four sizes
    many = [np.concatenate([column, column]) for column in distilled[1:]]
    twice = curves.Curves(distilled.learners, *many)
    twice.size[len(distilled.size) :] *= 10_000
    twice.test_spread[:] = twice.size**0.5
    rows = {row["learner"]: row for row in noise.rows_of_curves(twice)}
    assert rows["tree"]["data_sets"] == [3, 7]
    assert rows["tree"]["test"] == pytest.approx([0.5, 0.5])
    assert rows["late"]["data_sets"] == []


def test_the_halves_share_no_data_set():
    choose, confirm = data_sets("choose"), data_sets("confirm")
    assert len(choose) == len(confirm) == 124
    assert not set(choose) & set(confirm)


@pytest.mark.slow
def test_what_is_stored_is_what_the_package_holds():
    found = curves.learning_curves()
    assert len(found.learners) == 20
    assert int(found.splits.sum()) == 1_953_371
    spambase = problem_of(44, TOLD_EXACTLY)
    assert spambase.whole == 3726
    assert spambase.best == pytest.approx(0.953, abs=0.005)
    assert ranking()[0] == "sklearn.ensemble.GradientBoostingClassifier"
    assert MostlyBest(spambase, 0).choice() in spambase.targets


def test_other_data_sets_are_earlier_studies(problem, monkeypatch):
    monkeypatch.setattr(earlier, "data_sets", lambda half: [3, problem.data_set, 5])
    monkeypatch.setattr(earlier, "_EVERY", 1)
    monkeypatch.setattr(earlier, "problem_of", lambda data_set, told: problem)
    earlier._study.cache_clear()
    try:
        made = earlier.AfterOthers(problem, 0)
    finally:
        earlier._study.cache_clear()
    assert made._optimizer.ask().config["learner"] == "tree"  # the best of those studies
