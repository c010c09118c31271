"""Pruners on recorded curves: what a study pays, and that the hub's page has the stored table."""

import pytest
import torch

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")

from benchmarks.curves import pruners  # noqa: E402
from benchmarks.curves.pruners import BUDGETS, CHOSEN, NAME, PRUNERS, Task, measure, table  # noqa: E402
from benchmarks.harness.record import rows_of  # noqa: E402
from botorch_costly.problems import CurveProblem  # noqa: E402
from tests.integrations.launching import ROOT  # noqa: E402


def problem(number=60, length=8):
    """Trainings of cost 1 that grow to what they are, 0 to 1; one of them diverges."""
    ends = torch.linspace(0, 1, number, dtype=torch.float64)
    share = torch.arange(1, length + 1, dtype=torch.float64) / length
    rewards = ends[:, None] * share
    rewards[7, 3:] = torch.nan
    elapsed = share.expand(number, length).clone().masked_fill(rewards.isnan(), torch.nan)
    return CurveProblem(ends[:, None], rewards, elapsed, torch.full((number,), length))


@pytest.mark.parametrize("policy", ["no pruner", "median", "hyperband", CHOSEN])
def test_a_study_spends_its_budget_and_counts_what_is_complete(policy, monkeypatch):
    monkeypatch.setattr(pruners, "problem_of", lambda name, seed: problem())
    row = measure(Task("a table", policy, 3))
    regrets = [row[f"at {budget}"] for budget in BUDGETS]
    assert regrets == sorted(regrets, reverse=True)
    assert 0 <= regrets[-1] < regrets[0] <= 1
    trials = row["complete"] + row["pruned"] + row["fail"]
    if policy == "no pruner":
        assert row["pruned"] == 0
        assert trials in (20, 21, 22)  # one that diverges costs less, and the last goes beyond
        order = torch.randperm(60, generator=torch.Generator().manual_seed(3))[:5]
        assert regrets[0] == pytest.approx(1 - max(order.tolist()) / 59)
    else:
        assert trials > 22


def test_costs_and_configurations_reach_the_trials(monkeypatch):
    study = optuna.create_study(direction="maximize", pruner=PRUNERS["no pruner"](8))
    value, paid = pruners._trial(study, problem(), 30)
    (trial,) = study.trials
    assert (trial.value, trial.params["x0"]) == (value, float(problem().inputs[30, 0]))
    assert trial.user_attrs["paid"] == pytest.approx(paid)
    assert paid == pytest.approx(1.0 / float(problem().costs.mean()))
    assert sorted(trial.intermediate_values) == list(range(8))


def test_the_page_of_the_hub_has_the_table_of_the_stored_rows():
    page = ROOT / "hub" / "package" / "pruners" / "cost_aware_curves" / "README.md"
    shown = table(rows_of(NAME))
    assert len(shown.splitlines()) == 2 + 5
    assert shown in page.read_text(encoding="utf-8"), shown
