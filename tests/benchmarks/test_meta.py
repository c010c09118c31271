"""Policies that choose with earlier tasks, and which targets they are said to harm."""

import pytest
import torch

from benchmarks.meta import benchmark, families, multi_task
from benchmarks.meta.benchmark import signed_rank, surely_worse, worse_by
from benchmarks.meta.families import UNRELATED, Family, Study, twisted
from benchmarks.meta.methods import METHODS
from benchmarks.meta.rivals import Setting, on_list, pem_bo, scaml_gp
from benchmarks.suite.data import MissingDataError
from botorch_costly.baselines import ScaMLGP
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData
from tests.cases import quick
from tests.oracles import transfer as oracle


def small_family():
    draws = torch.Generator().manual_seed(0)
    points = torch.rand(24, 2, generator=draws, dtype=torch.float64)
    whole = tuple(
        Study(points, -(points[:, 0] - at).square() - (points[:, 1] - 0.5).square())
        for at in (0.3, 0.35, 0.4)
    )
    return Family(("a", "b", "c"), whole, (0, 2), lambda seed: list(whole))


@pytest.fixture
def family(monkeypatch):
    monkeypatch.setitem(families.FAMILIES, "small", small_family)
    monkeypatch.setattr(benchmark, "AT", (1, 3, 5, 10))
    monkeypatch.setattr(multi_task, "STEPS", (5, 2))  # enough to see that it plays
    benchmark.fitted_tasks.cache_clear()
    return "small"


@pytest.mark.parametrize("method", quick(METHODS, "RM-GP-UCB"))
def test_each_method_chooses_each_configuration_at_most_once(method, family):
    row = benchmark.measure(benchmark.Run(family, "", method, 0))
    assert all(len(row[f"at {k}"]) == 2 for k in (1, 3, 5, 10))
    for target in range(2):
        least = [row[f"at {k}"][target] for k in (1, 3, 5, 10)]
        assert least == sorted(least, reverse=True)
        assert 0 <= least[-1] <= least[0] <= 1
    assert row == {
        **benchmark.measure(benchmark.Run(family, "", method, 0)),
        "seconds": row["seconds"],
    }


@pytest.mark.parametrize(
    "method",
    quick(
        ["portfolio", "RGPE", "TAF", "ScaML-GP", "TransferOptimizer", "RM-GP-UCB"],
        "portfolio",
        "TransferOptimizer",
        "RM-GP-UCB",
    ),
)
def test_alike_tasks_help_at_once(method, family):
    row = benchmark.measure(benchmark.Run(family, "", method, 0))
    assert sum(row["at 3"]) < 0.15  # of two targets; three random ones are at .22


def setting_of(studies, points):
    tasks = TaskEnsemble([one.points for one in studies], [one.values for one in studies]).fit()
    order = torch.arange(len(points))
    return Setting(tasks, points, order, torch.Generator().manual_seed(0))


def shifted(count, every=1):
    """Tasks of which every other one knows half of the list."""
    (study, *_) = small_family().whole
    numbers = [slice(None, None, 1 + k % every) for k in range(count)]
    values = [(3 + k) * (study.points[:, k % 2] - 0.1 * k).square() for k in range(count)]
    return [Study(study.points[n], v[n]) for n, v in zip(numbers, values, strict=True)]


def test_tasks_that_observed_the_list_are_taken_at_their_word():
    studies = shifted(4, every=2)
    points = studies[0].points
    setting = setting_of(studies, points)
    values, believed = on_list(setting.tasks, points), setting.tasks.means(points)
    for number, study in enumerate(studies):
        if number % 2:
            mean, std = study.values.mean(), study.values.std(correction=0)
            torch.testing.assert_close(values[number], mean + std * believed[number])
        else:
            torch.testing.assert_close(values[number], study.values)


@pytest.mark.parametrize("count", [0, 2, 5])
def test_the_empirical_prior_plays_the_papers_estimates_after_the_latest_observations(count):
    studies = shifted(6)
    points, truth = studies[0].points, studies[0].values.cos()
    rows = [3, 17, 8, 0, 21][:count]
    played = pem_bo(setting_of(studies, points))(TargetData(points[rows], truth[rows]))
    latest = rows[-4:]  # six tasks are enough for four
    values = [study.values.tolist() for study in studies]
    mean, cov = oracle.empirical_posterior(values, latest, truth[latest].tolist())
    mean, cov = torch.as_tensor(mean), torch.as_tensor(cov)
    unknown = [k for k in range(len(points)) if k not in rows]
    expected = mean + 2 * cov.diagonal().clamp_min(0).sqrt()
    torch.testing.assert_close(played[unknown], expected[unknown], atol=1e-4, rtol=1e-4)


def test_the_scaled_prior_plays_the_bound_of_weights_that_are_learnt():
    studies = shifted(2)
    opposite = [Study(one.points, -one.values) for one in studies]
    points, truth = studies[0].points, studies[0].values
    rows = list(range(0, 24, 3))
    setting = setting_of([studies[0], *opposite], points)
    played = scaml_gp(setting)(TargetData(points[rows], truth[rows]))
    model = ScaMLGP(setting.tasks, points[rows], truth[rows].unsqueeze(-1)).fit()
    assert model.weights[0] > 0.5
    assert model.weights[1] < 0.01  # the task that says the opposite
    mean, cov, _ = model.joint(points)
    expected = mean + 2 * cov.diagonal().sqrt()
    torch.testing.assert_close(played, expected, atol=1e-4, rtol=1e-3)
    assert played.argmax() == truth.argmax()


def test_tasks_are_twisted_as_they_are_called():
    (study, *_) = small_family().whole
    (negated,) = twisted([study], "negated", 0)
    torch.testing.assert_close(
        negated.values - study.values.mean(), study.values.mean() - study.values
    )
    (shuffled,) = twisted([study], "shuffled", 0)
    assert not torch.equal(shuffled.values, study.values)
    assert torch.equal(shuffled.values.sort().values, study.values.sort().values)
    (random,) = twisted([study], "random", 0)
    assert abs(float(torch.corrcoef(torch.stack([random.values, study.values]))[0, 1])) < 0.7
    one, other = twisted([study, study], "rescaled", 0)
    assert abs(float(one.values.mean() - other.values.mean())) > float(study.values.std())
    ratio = (one.values - one.values.mean()) / (other.values - other.values.mean())
    torch.testing.assert_close(ratio, ratio[0].expand_as(ratio))
    assert twisted([study], "", 0) == [study]


def rows(method, values, total):
    at = {f"at {k}": values for k in benchmark.AT}
    key = {"family": "f", "twist": "", "method": method}
    return [{**key, "seed": s, **at, "sum": total, "seconds": 0.01} for s in range(2)]


def test_the_table_counts_harmed_targets_and_says_how_much():
    stored = [*rows("GP-UCB", [0.1, 0.2], [2.0, 4.0]), *rows("TAF", [0.05, 0.5], [1.0, 6.0])]
    text = benchmark.text(stored)
    line = next(line for line in text.splitlines() if line.startswith("  TAF"))
    cells = line.split()
    assert cells[1] == "2"
    assert cells[-6:-3] == ["1", "1", "0.300"]  # one of two targets, by .3 on each seed
    assert cells[-3:] == ["1.00", "1.50", "10"]
    ranks = benchmark._ranks({"GP-UCB": stored[:2], "TAF": stored[2:]})
    assert ranks == {"GP-UCB": 1.5, "TAF": 1.5}


def test_a_comparison_counts_targets_and_ranks_their_differences():
    # Ranks of .1 .2 .3 .4 .5: better by .1 and .3 to .5, worse by .2; the smaller sum of ranks is 2.
    # Of the 32 choices of signs three have a sum of 0, 1 or 2, and as many are at the other end.
    found = signed_rank([-0.1, 0.2, -0.3, -0.4, -0.5, 0.0])
    assert (found.won, found.tied, found.lost, found.differing) == (4, 1, 1, 5)
    assert found.p == pytest.approx(6 / 32)
    assert signed_rank([-0.1, -0.2, -0.3]).p == pytest.approx(2 / 8)
    swapped = signed_rank([0.1, -0.2, 0.3, 0.4, 0.5, 0.0])
    assert (swapped.won, swapped.lost, swapped.p) == (1, 4, found.p)


def test_differences_that_only_rounding_tells_apart_have_one_rank():
    assert 0.3 - 0.2 < 0.1
    assert signed_rank([0.3 - 0.2, -0.1, -0.5]) == signed_rank([0.1, -0.1, -0.5])


def test_where_all_targets_tie_there_is_no_test():
    found = signed_rank([0.0, 1e-12, -1e-12])
    assert (found.won, found.tied, found.lost) == (0, 3, 0)
    assert found.p != found.p


def test_regrets_are_compared_on_average_over_common_seeds():
    ours = rows("TransferOptimizer", [0.1, 0.4], [1.0, 1.0])
    theirs = rows("TAF", [0.2, 0.2], [1.0, 1.0])
    theirs[0]["at 10"] = [0.4, 0.3]
    other = {**theirs[0], "seed": 7, "at 10": [9.0, 9.0]}  # a seed that ours has not
    assert worse_by(ours, [*theirs, other]) == pytest.approx([-0.2, 0.15])
    assert worse_by(ours, [other]) == []


def test_a_target_counts_as_surely_harmed_only_if_its_interval_is_above_zero():
    plain = [dict(row) for row in rows("GP-UCB", [0.1, 0.1, 0.1], [1.0] * 3) * 3]
    ours = [dict(row) for row in rows("TAF", [0.1, 0.1, 0.1], [1.0] * 3) * 3]
    for seed, (one, other) in enumerate(zip(ours, plain, strict=True)):
        # Worse by .02 on each seed, by .1 on two of six, and by .003 on each.
        worse = [0.12, 0.2 if seed < 2 else 0.1, 0.103]
        one.update({"seed": seed, "at 10": worse})
        other["seed"] = seed
    assert worse_by(ours, plain) == pytest.approx([0.02, 0.2 / 6, 0.003])
    assert surely_worse(ours, plain) == 1
    assert surely_worse(ours[:1], plain) is None
    assert surely_worse(ours, []) is None
    assert line_of(benchmark.text([*plain, *ours]), "f, as", "TAF")[-6:-4] == ["2", "1"]


def line_of(text, title, name):
    """The cells of a method in the block that has a title."""
    block = text[text.index(title) :]
    return next(line for line in block.splitlines() if line.startswith(f"  {name} ")).split()


def test_the_table_sets_ours_against_each_other_method():
    ours = rows("TransferOptimizer", [0.1, 0.1, 0.1, 0.3], [1.0] * 4)
    rival = rows("TAF", [0.2, 0.3, 0.4, 0.3], [1.0] * 4)
    text = benchmark.text([*rows("GP-UCB", [0.1, 0.2, 0.05, 0.1], [1.0] * 4), *ours, *rival])
    title = "TransferOptimizer against"
    assert "4 targets" in text
    assert line_of(text, title, "TAF")[1:] == ["2", "3", "1", "0", "3", "0.2500"]
    assert line_of(text, title, "GP-UCB")[1:-1] == ["2", "1", "1", "2", "3"]
    assert title not in benchmark.text(rows("GP-UCB", [0.1], [1.0])).split("Regret:")[0]


def test_targets_that_correlate_with_nothing_come_again_apart():
    few = list(UNRELATED.values())
    values = {"TransferOptimizer": [0.2 if k in few else 0.01 * k for k in range(25)]}
    values["GP-UCB"] = [0.1 if k in few else 0.01 * k + 0.001 * (1 + k) for k in range(25)]
    stored = [
        {**row, "family": "svm"} for name, some in values.items() for row in rows(name, some, some)
    ]
    text = benchmark.text(stored)
    assert line_of(text, "svm, as recorded\n", "TransferOptimizer")[-6] == "3"  # harmed of all
    assert line_of(text, "alone, which correlate", "TransferOptimizer")[-6:-3] == [
        "3",
        "3",
        "0.100",
    ]
    assert line_of(text, "alone, which correlate", "TransferOptimizer")[2] == "0.2000"
    cells = line_of(text, "TransferOptimizer against", "GP-UCB")
    won, exact = ["22", "0", "0", "22", "0.0000"], ["0", "0", "3", "3"]
    assert cells[1:5] == ["2", "22", "0", "3"]
    assert cells[7:12] == won
    assert cells[12:16] == exact


def test_the_numbers_of_unrelated_targets_are_theirs():
    try:
        names = families.svm().names
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert {name: names.index(name) for name in UNRELATED} == UNRELATED


def test_what_was_done_to_play_a_method_is_said_where_it_is_played():
    assert "480 rows" in benchmark.text(rows("MTBO", [0.1], [1.0]))
    assert "480 rows" not in benchmark.text(rows("TAF", [0.1], [1.0]))
    assert multi_task.MOST_ROWS == 480


@pytest.mark.slow
def test_the_figure_has_a_panel_for_each_family_and_twist(family):
    rows = [
        {**benchmark.measure(benchmark.Run(family, twist, method, 0)), "at 20": [0.0, 0.0]}
        for twist in ("", "negated")
        for method in ("random", "GP-UCB")
    ]
    axes = [ax for ax in benchmark.figure_of(rows).axes if ax.get_visible()]
    assert [ax.get_title() for ax in axes] == ["small", "small, negated"]
    means = [sum(rows[1][f"at {k}"]) / 2 for k in benchmark.AT]
    assert list(axes[0].lines[1].get_ydata()) == pytest.approx(means)
