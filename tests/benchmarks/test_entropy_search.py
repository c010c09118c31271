"""Entropy search beside BoTorch's acquisition functions: problems, methods, regrets and tables."""

import math
from dataclasses import replace

import pytest
import torch

from benchmarks.harness.record import rows_of
from benchmarks.information import benchmark, methods
from benchmarks.information.beliefs import PROBLEMS, Problem
from benchmarks.information.benchmark import needed, text
from benchmarks.information.choices import Information
from benchmarks.information.methods import METHODS, TIMED, WAYS, Method, Player, maximizer, mean_of
from tests.cases import quick

WAYS_KNOWN = [(name, True) for name in WAYS]
PEAK = torch.tensor([0.3, 0.6], dtype=torch.float64)


def hill(*, known: bool) -> Problem:
    return Problem(2, lambda X: 1 - (X - PEAK).square().sum(-1), 1.0, 0.0, known)


def grid(count: int) -> torch.Tensor:
    side = torch.linspace(0, 1, count, dtype=torch.float64)
    return torch.cartesian_prod(side, side)


def small(method: Method) -> Method:
    """Return the same with fewer points, if it is ours."""
    if isinstance(method.choose, Information):
        return method._replace(choose=replace(method.choose, points=6, candidates=12))
    return method


EACH = [*((n, False) for n in METHODS), *WAYS_KNOWN]


@pytest.mark.parametrize(("name", "known"), quick(EACH, *EACH[::3]))
def test_every_method_chooses_a_point_of_the_cube(name, known):
    method = small({**METHODS, **WAYS}[name])
    run = methods.play(hill(known=known), method, seed=0, evaluations=4)
    assert [len(part) for part in run] == [2, 2, 1, 1]
    assert all(0 <= regret <= 1 for regret in run.simple + run.inference)
    assert run.simple == sorted(run.simple, reverse=True)
    assert all(seconds > 0 for seconds in run.fit)


@pytest.mark.parametrize(
    "name", quick([name for name in METHODS if name != "random"], "ES", "LogEI")
)
def test_a_method_goes_where_the_optimum_may_be(name):
    X = grid(5)
    problem = hill(known=True)
    player = Player(METHODS[name], problem, 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = player.choose(player.believe(X, 9 * problem.value(X)), X)
    assert float((x - PEAK).norm()) < 0.3


def test_regrets_are_those_of_a_run_whose_points_are_given(monkeypatch):
    to_play = iter(torch.tensor([[0.3, 0.5], [0.9, 0.9]], dtype=torch.float64))
    believed = iter(torch.tensor([[0.3, 0.6], [0.3, 0.4], [0.5, 0.6]], dtype=torch.float64))
    monkeypatch.setattr(methods, "maximizer", lambda model, X: next(believed))
    problem = hill(known=True)._replace(noise=0.5)  # which regrets do not see
    run = methods.play(problem, Method(lambda now: next(to_play)), 0, evaluations=5)
    assert run.inference == pytest.approx([0, 0.04, 0.04])
    assert run.simple[1:] == pytest.approx([0.01, 0.01])
    assert run.simple[0] > 0.01


def test_methods_of_a_seed_share_first_points_and_noise(monkeypatch):
    told = []

    class Told(Player):
        def believe(self, X, y):
            told.append((X, y))
            return super().believe(X, y)

    monkeypatch.setattr(methods, "Player", Told)
    problem = hill(known=True)._replace(noise=0.5)
    for name in ("random", "LogEI"):
        methods.play(problem, METHODS[name], seed=3, evaluations=4)
    (X, y), after, (other_X, other_y), other_after = told
    torch.testing.assert_close((X, y), (other_X, other_y))
    noise = [values - problem.value(points) for points, values in (after, other_after)]
    torch.testing.assert_close(*noise)
    assert float(noise[0].abs().min()) > 1e-6


def test_the_maximizer_of_a_mean_is_found_closely(monkeypatch):
    problem = hill(known=True)
    monkeypatch.setattr(methods, "mean_of", lambda model, X: problem.value(X))
    assert float((maximizer(None, grid(2)) - PEAK).norm()) < 0.001


def test_means_of_an_ensemble_are_averages_of_its_members():
    X, points = grid(4), grid(3)
    y = hill(known=False).value(X)
    for method in (METHODS["ES"], TIMED["JES, drawn"]):
        model = Player(method, hill(known=False), 0).believe(X, y)
        members = model.posterior(points.unsqueeze(-2)).mean.reshape(len(points), -1)
        assert members.shape == (9, 10)
        torch.testing.assert_close(mean_of(model, points), members.mean(-1))


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_point_is_better_than_the_maximum_and_one_is_nearly_as_good(name):
    problem = PROBLEMS[name](0)
    X = torch.rand(20_000, problem.dim, generator=torch.Generator().manual_seed(0)).double()
    values = problem.value(X)
    assert float(values.max()) <= problem.best + 1e-9
    assert float(values.max()) > problem.best - 0.1
    assert 0.4 < float(values.std()) < 1.6


@pytest.mark.parametrize(
    ("regrets", "count"),
    [([1, 0.2, 0.01], 5), ([0.01, 0.2, 0.01], 5), ([0.01, 0.02, 0.01], 3), ([0.01, 0.01, 0.2], 6)],
)
def test_evaluations_are_counted_until_the_regret_is_small_for_good(regrets, count):
    assert needed(regrets, 0.05) == count


def rows(method: str, regrets: list[list[float]]) -> list[dict[str, object]]:
    common = {"problem": "GP sample", "method": method, "fit": [0.001], "acquisition": [0.02, 0.04]}
    return [
        {**common, "seed": seed, "simple": [0.7, 0.125], "inference": inference}
        for seed, inference in enumerate(regrets)
    ]


def test_the_table_says_what_was_measured():
    ours = rows("ES", [[0.5, 0.01, 0.001], [0.4, 0.3, 0.001], [0.01, 0.01, 0.01]])
    theirs = rows("LogEI", [[0.5, 0.2, 0.01], [0.4, 0.3, 0.1], [0.2, 0.01, 0.1]])
    lines = {line.split()[0]: line for line in text(ours + theirs).splitlines() if line.strip()}
    told = text(ours + theirs)
    (regrets,) = (line for line in told.splitlines() if line.startswith("  ES  "))
    expected = "ES 3 0.004 0.0010 0.125 0.1250 4 (0 never) 1 + 30"
    assert " ".join(regrets.split()) == expected
    expected = "LogEI 3 0 -1.67 (-3.00 to -1.00) better -1.33 (-2.00 to -1.00) better"
    assert " ".join(lines["LogEI"].split()) == expected


@pytest.mark.slow
def test_rows_are_stored_and_not_measured_twice(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(benchmark.PROBLEMS, "branin", lambda seed: hill(known=True))
    monkeypatch.setitem(benchmark.EVALUATIONS, "branin", 5)
    options = ["--problems", "branin", "--methods", "random", "ES", "--seeds", "2"]
    options += ["--processes", "1", "--results", str(tmp_path)]
    benchmark.main(options)
    printed = capsys.readouterr().out
    assert "against" in printed
    assert len(rows_of(benchmark.NAME, tmp_path)) == 4
    benchmark.main(options)
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_an_iteration_is_timed_on_the_same_evaluations(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "TIMED_AT", (5,))
    joint = TIMED["JES, drawn, fewer restarts"]
    quick = joint._replace(choose=replace(joint.choose, optima=2, raw=16, restarts=1))
    monkeypatch.setitem(TIMED, "JES, drawn, fewer restarts", quick)
    options = ["--methods", "ES", "random", "JES, drawn, fewer restarts", "--seeds", "1"]
    benchmark.timing([*options, "--processes", "1", "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    found = rows_of(benchmark.TIMING, tmp_path)
    assert len(found) == 3
    assert all(row["belief, ms"] > 0 and math.isfinite(row["choice, ms"]) for row in found)
    (ours,) = (line for line in printed.splitlines() if line.startswith("ES "))
    assert "(1.0)" in ours
