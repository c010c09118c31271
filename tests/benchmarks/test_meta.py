"""Policies that choose with earlier tasks, and which targets they are said to harm."""

import pytest
import torch

from benchmarks.meta import benchmark, families
from benchmarks.meta.families import Family, Study, twisted
from benchmarks.meta.methods import METHODS


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
    return "small"


@pytest.mark.parametrize("method", METHODS)
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


@pytest.mark.parametrize("method", ["portfolio", "RGPE", "TAF", "TransferOptimizer", "RM-GP-UCB"])
def test_alike_tasks_help_at_once(method, family):
    row = benchmark.measure(benchmark.Run(family, "", method, 0))
    assert sum(row["at 3"]) < 0.15  # of two targets; three random ones are at .22


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
    assert cells[-5:-3] == ["1", "0.300"]  # one of two targets, by .3
    assert cells[-3:] == ["1.00", "1.50", "10"] or cells[-3] in ("0.50", "1.50")
    ranks = benchmark._ranks({"GP-UCB": stored[:2], "TAF": stored[2:]})
    assert ranks == {"GP-UCB": 1.5, "TAF": 1.5}
