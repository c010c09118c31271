"""Policies on recorded learning curves."""

import pytest
import torch

from benchmarks.curves import condition, earlier, picture, signal, tables
from benchmarks.curves.play import Ask, play, regret_at
from benchmarks.curves.rivals import SIMPLE
from benchmarks.curves.tabular import BUDGETS, POLICIES, Task, measure, text, verdicts
from benchmarks.suite.data import MissingDataError
from botorch_costly.problems import CurveProblem
from tests.cases import quick


def rising(n=40, longest=27, seed=0):
    """Trainings whose ranks never change, so that an early look finds the best."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.rand(n, generator=generator, dtype=torch.float64)
    at = torch.arange(1.0, longest + 1, dtype=torch.float64)
    rewards = ends.unsqueeze(-1) * (1 - torch.exp(-at / longest))
    elapsed = at.expand(n, longest).clone()
    return CurveProblem(ends.unsqueeze(-1), rewards, elapsed, [longest] * n)


def logged(policy, problem, budget=20.0):
    """What a policy asked for."""
    asked = []

    def watching(problem, seed, budget):
        steps = policy(problem, seed, budget)
        ask = next(steps)
        while True:
            asked.append(ask)
            told = yield ask
            try:
                ask = steps.send(told)
            except StopIteration:
                return

    points = play(problem, watching, 0, budget)
    return asked, points


QUICK = [*SIMPLE, "curve optimizer", "begun anew", "neither"]


@pytest.mark.parametrize("name", quick(QUICK, *SIMPLE, "curve optimizer"))
def test_a_policy_pays_for_what_it_asks_and_never_goes_back(name):
    problem = rising()
    asked, points = logged(POLICIES[name], problem, budget=4.0)
    before: dict[int, int] = {}
    for ask in asked:
        assert before.get(ask.config, 0) < ask.until <= 27
        before[ask.config] = ask.until
    paid = [point.paid for point in points]
    assert paid == sorted(paid)
    assert paid[-1] <= 4.0
    regrets = [point.regret for point in points]
    assert regrets == sorted(regrets, reverse=True)


@pytest.mark.slow
def test_where_ranks_never_change_early_looks_beat_whole_trainings():
    regrets = {name: [] for name in (*SIMPLE, "curve optimizer")}
    for seed in range(4):
        for name, found in regrets.items():
            problem = rising(seed=seed)
            found.append(regret_at(play(problem, POLICIES[name], seed, 6.0), 6.0))
    means = {name: sum(values) / len(values) for name, values in regrets.items()}
    assert all(means[name] < means["random"] for name in means if name != "random")


@pytest.mark.slow
def test_what_begins_anew_is_paid_for_anew():
    problem, paid = rising(), {}
    for name in ("curve optimizer", "begun anew"):
        asked, points = logged(POLICIES[name], problem, budget=6.0)
        paid[name] = sum(ask.until for ask in asked) / 27
        again = len(asked) > len({ask.config for ask in asked})
        assert again
        assert paid[name] >= points[-1].paid
    assert paid["begun anew"] < paid["curve optimizer"]


def test_a_bracket_of_halving_goes_on_with_the_best_third():
    asked, _ = logged(POLICIES["halving"], rising())
    rungs = [
        [a.config for a in asked[:27]],
        *([a.config for a in asked if a.until == u] for u in (3, 9)),
    ]
    assert [a.until for a in asked[:27]] == [1] * 27
    assert len(set(rungs[0])) == 27
    ends = rising().ends
    first_nine = asked[27:36]
    assert [a.until for a in first_nine] == [3] * 9
    wanted = sorted(rungs[0], key=lambda one: -float(ends[one]))[:9]
    assert {a.config for a in first_nine} == set(wanted)


def test_a_segment_beyond_the_budget_counts_for_nothing():
    problem = rising()

    def policy(problem, seed, budget):
        yield Ask(0, 27)
        yield Ask(1, 27)

    points = play(problem, policy, 0, 1.5)
    assert [point.paid for point in points] == [0.0, 1.0]
    assert regret_at(points, 0.5) == problem.best - problem.worst
    assert regret_at(points, 1.5) == pytest.approx(problem.best - float(problem.ends[0]))


@pytest.fixture(params=tables.TABLES)
def table(request):
    try:
        return tables.TABLES[request.param](1)
    except MissingDataError as missing:
        pytest.skip(str(missing))


def test_the_tables_are_what_they_are_said_to_be(table):
    assert table.inputs.min() >= 0
    assert table.inputs.max() <= 1
    assert table.whole.double().mean() > 0.6
    assert table.costs.mean() > 0
    assert table.best > table.worst


def test_a_row_and_its_table():
    try:
        row = measure(Task("pong", "random", 0))
    except MissingDataError as missing:
        pytest.skip(str(missing))
    regrets = [row[f"at {budget}"] for budget in BUDGETS]
    assert all(0 <= regret <= 1 for regret in regrets)
    assert "random" in text([row])


def test_the_pictures_show_what_is_stored() -> None:
    budgets = {f"at {budget}": 1 / budget for budget in BUDGETS}
    rows = [
        {"table": table, "policy": policy, "seed": seed, **budgets}
        for table in ("alexnet", "pong")
        for policy in picture.SHOWN
        for seed in range(3)
        if (policy, seed) != ("random", 2)
    ]
    figure = picture.regrets(rows)
    first = figure.axes[0]
    assert first.get_title() == "alexnet\n(2 seeds)"  # those that every method has
    assert [line.get_label() for line in first.lines] == list(picture.SHOWN)
    assert first.lines[0].get_ydata().tolist() == list(budgets.values())
    learnt = [{"table": "alexnet", "midpoint": m, "growth": 1.0} for m in (-5.0, 5.0, 6.0)]
    (ax,) = picture.weights(learnt).axes
    assert ax.lines[0].get_ydata()[0] < 1e-4  # that of the median midpoint


def test_augmentation_leads_where_the_best_curves_are() -> None:
    axes = picture.decision().axes
    stars = [
        float(line.get_xdata()[0]) for ax in axes for line in ax.lines if line.get_marker() == "*"
    ]
    without, with_it = stars
    assert abs(with_it - 0.65) < 0.15 < abs(without - 0.65)


def test_whole_curves_are_worse_conditioned_than_the_points_that_join(monkeypatch) -> None:
    monkeypatch.setattr(condition, "_PAID", 6)
    row = condition.measure(condition.Task("cartpole", 0))
    assert len({len(row[name]) for name in ("added", "rows", "ours", "whole")}) == 1
    assert row["added"][0] <= 45
    assert max(row["added"][1:]) == 15
    assert row["rows"] == sorted(row["rows"])
    assert all(ours <= whole + 0.01 for ours, whole in zip(row["ours"], row["whole"], strict=True))
    assert "cartpole, ln cond, whole curves" in condition.text([row])
    left, right = condition.picture([{**row, "table": "cartpole, published"}]).axes
    assert right.lines[-1].get_ydata().tolist() == row["added"]
    assert left.lines[1].get_ydata().tolist() == row["whole"]


def late(n=40, longest=27, seed=0):
    """Trainings whose rewards are noise until the last third."""
    problem = rising(n, longest, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    early = torch.arange(longest) < 2 * longest // 3
    noise = torch.rand(n, longest, generator=generator, dtype=torch.float64)
    rewards = torch.where(early, noise, problem.rewards)
    return CurveProblem(problem.inputs, rewards, problem.elapsed, problem.lengths)


@pytest.mark.slow
def test_what_early_iterations_say_is_noticed(monkeypatch) -> None:
    monkeypatch.setitem(tables.TABLES, "rising", lambda seed: rising(seed=seed))
    monkeypatch.setitem(tables.TABLES, "late", lambda seed: late(seed=seed))
    soon, not_soon = (signal.measure(signal.Task(name, 1)) for name in ("rising", "late"))
    assert soon["ranks at 0.25"] == pytest.approx(1.0)
    assert abs(not_soon["ranks at 0.25"]) < 0.4
    assert not_soon["midpoint"] > soon["midpoint"] + 1
    assert 0 < soon["believed at 0.0625"] < soon["believed at 0.25"] < 1
    assert "late" in signal.text([soon, not_soon])


def test_verdicts_compare_ours_with_each_policy_on_the_seeds_of_both() -> None:
    def row(policy: str, seed: int, regret: float) -> dict:
        at = {f"at {budget}": regret for budget in BUDGETS}
        return {"table": "alexnet", "policy": policy, "seed": seed, **at}

    rows = [row("curve optimizer", seed, 0.1 + 0.01 * seed) for seed in range(8)]
    rows += [row("random", seed, 0.3 + 0.02 * seed) for seed in range(5)]  # ours is better
    rows += [row("halving", seed, 0.05) for seed in range(8)]  # ours is worse
    rows += [row("a quarter", seed, 0.1 + 0.01 * (7 - seed)) for seed in range(8)]  # even
    lines = {line.split()[0]: line.split()[-2:] for line in verdicts(rows).splitlines()[1:4]}
    assert lines == {"random": ["+++++", "5:0"], "halving": ["-----", "0:8"], "a": ["=====", "4:4"]}


@pytest.mark.slow
def test_a_search_after_earlier_studies_is_played(monkeypatch):
    case = earlier.Case(rising(), [rising(seed=1), rising(seed=2)])
    monkeypatch.setattr(earlier, "CASES", {"rising": lambda seed: case})
    quick = [policy for policy in earlier.POLICIES if policy != "kronecker"]
    rows = [earlier.measure(Task("rising", policy, 0)) for policy in quick]
    of = {row["policy"]: row for row in rows}
    assert of["with studies"]["at 2"] < 0.05
    assert of["portfolio"]["at 2"] < 0.05
    assert of["alone"]["at 1"] > 0  # an early stop is not the end
    said = earlier.text(rows)
    assert "with studies against" in said
    assert "alone against" in said


def test_a_few_policies_are_enough_for_a_table(monkeypatch, tmp_path, capsys):
    case = earlier.Case(rising(n=4, longest=5), [rising(n=4, longest=5, seed=1)])
    monkeypatch.setattr(earlier, "CASES", {"enduro after pong": lambda seed: case})
    earlier.main(["--smoke", "--processes", "1", "--results", str(tmp_path)])
    text = capsys.readouterr().out
    assert all(policy in text for policy in ("with studies", "dyhpo", "quick-tune"))


def test_misleading_studies_hold_other_values():
    case = earlier.Case(rising(), [rising(seed=1)])
    (true,), (negated,), (shuffled,) = (
        earlier.studies_of(case, 0, **options)
        for options in ({}, {"sign": -1.0}, {"shuffled": True})
    )
    assert true.configs == negated.configs == shuffled.configs
    assert [-value for value in true.values] == list(negated.values)
    assert sorted(true.values) == sorted(shuffled.values)
    assert true.values != shuffled.values
