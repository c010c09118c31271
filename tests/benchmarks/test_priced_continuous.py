"""The priced query in continuous domains and with wrong models: who meets what, and what is counted."""

import math
from argparse import Namespace

import pytest
import torch

from benchmarks.harness.record import read
from benchmarks.harness.sweep import in_processes
from benchmarks.priced import continuous, misspecified
from benchmarks.priced.comparison import Outcome, compare
from benchmarks.priced.continuous import Task
from benchmarks.priced.misspecified import SCENARIOS, Line, Setting, Size
from botorch_costly import (
    BernoulliQuery,
    ConfidenceQuery,
    Design,
    OnlineTuner,
    Real,
    SearchSpace,
    simulation,
)
from botorch_costly.problems import DriftingFunction
from botorch_costly.simulation import Draws, GridPolicy

SMALL = Size(trials=3, horizon=12, points=41, seed=7)


def task(function="sample", dim=2, horizon=5, seed=3000, unqueried_play="acquisition"):
    return Task(function, dim, horizon, seed, unqueried_play)


def outcome(regret, queries):
    return Outcome.of(regret, queries, horizon=1)


class Ramp:
    """``f_t(x) = x - t``, so that what is played can be told from the regret."""

    def value(self, t, X):
        return X[:, 0] - t

    def maximum(self, t):
        return 1.0 - t


def coin_tuner(horizon):
    space = SearchSpace({"x": Real(0.0, 10.0)})
    return OnlineTuner(space, horizon, query=BernoulliQuery(0.5), seed=1, design=Design(rounds=0))


def test_regret_and_queries_are_those_of_what_was_played():
    tuner, noise = coin_tuner(8), torch.linspace(5, 6, 8)
    paid = continuous.play(Ramp(), noise, tuner)
    lost = [1 - decision.config["x"] / 10 for decision in tuner.decisions]
    assert paid["regret"] == pytest.approx(sum(lost) / 8)
    assert paid["least_regret"] == pytest.approx(min(lost))
    assert paid["queries"] == sum(decision.query for decision in tuner.decisions)
    assert 0 < paid["queries"] < 8
    assert paid["ms"] > 0


def test_a_query_sees_the_value_and_the_noise_of_its_round():
    tuner, noise = coin_tuner(8), torch.linspace(5, 6, 8)
    continuous.play(Ramp(), noise, tuner)
    assert tuner.observations
    for seen in tuner.observations:
        expected = seen.config["x"] / 10 - seen.round + float(noise[seen.round])
        assert seen.reward == pytest.approx(expected)


@pytest.mark.parametrize("function", continuous.LENGTHSCALES)
def test_every_policy_meets_the_same_truth_and_noise(function):
    x = torch.rand(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (one, noise), (two, again) = (
        continuous.draw(task(function, unqueried_play=b)) for b in ("acquisition", "mean")
    )
    other, _ = continuous.draw(task(function, seed=3001))
    assert torch.equal(one.value(4, x), two.value(4, x))
    assert torch.equal(noise, again)
    assert not torch.equal(one.value(4, x), other.value(4, x))


def test_the_noise_has_the_variance_that_the_tuner_believes():
    _, noise = continuous.draw(task(horizon=2000))
    tuner = continuous.tuner_for(task(), ConfidenceQuery(0.8))
    assert noise.var().item() == pytest.approx(0.01, rel=0.15)
    assert tuner.belief.noise == 0.01


@pytest.mark.parametrize("dim", [1, 4])
def test_the_tuner_believes_what_is_true_of_a_sample(dim):
    tuner = continuous.tuner_for(task(dim=dim), ConfidenceQuery(0.8))
    decision = tuner.ask()
    assert "initial" not in decision.reason
    tuner.tell(decision, 5.0)  # beyond what rewards are clipped to by default
    belief = tuner.belief
    assert (belief.center, belief.scale, belief.forgetting) == (0.0, 1.0, 0.01)
    assert belief.targets.tolist() == [5.0]
    assert belief.kernel.family == "matern52"
    assert belief.kernel.lengthscale.item() == pytest.approx(0.35 * dim**0.5)


def test_the_sample_is_as_long_as_is_believed():
    """Correlation 0.5 apart: that of Matérn-5/2 with the lengthscale of the tuner."""
    x = torch.tensor([[0.2, 0.2], [0.7, 0.2]], dtype=torch.float64)
    values = torch.stack(
        [continuous.draw(task(horizon=1, seed=s))[0].value(0, x) for s in range(600)]
    )
    r = math.sqrt(5) * 0.5 / (0.35 * math.sqrt(2))
    expected = (1 + r + r * r / 3) * math.exp(-r)
    assert values.prod(-1).mean().item() == pytest.approx(expected, abs=0.15)


def test_the_best_rival_is_that_at_the_price():
    rivals = {"eager": outcome([1.0, 1.0], [10, 10]), "lazy": outcome([6.0, 6.0], [2, 2])}
    ours = outcome([2.0, 2.0], [4, 4])
    cheap, dear = compare(ours, rivals, 0.1), compare(ours, rivals, 2.0)
    assert (cheap.best, cheap.ratio) == ("eager", pytest.approx(2.4 / 2.0))
    assert (dear.best, dear.ratio) == ("lazy", pytest.approx(10 / 10))


def test_the_interval_is_that_of_paired_trials():
    regret = torch.linspace(1, 50, 20)  # trials differ far more than policies do
    rival = outcome(regret.tolist(), [0] * 20)
    always = compare(outcome((0.8 * regret).tolist(), [0] * 20), {"rival": rival}, 1.0)
    assert (always.low, always.high) == (pytest.approx(0.8), pytest.approx(0.8))
    assert "wins" in str(always)
    assert "LOSES" in str(compare(outcome((1.2 * regret).tolist(), [0] * 20), {"": rival}, 1.0))
    mixed = torch.where(torch.arange(20) % 2 == 0, 0.7, 1.3) * regret
    even = compare(outcome(mixed.tolist(), [0] * 20), {"rival": rival}, 1.0)
    assert even.low < 1 < even.high
    assert "even" in str(even)


def test_of_a_single_trial_nothing_is_concluded():
    assert "even" in str(compare(outcome([1.0], [1]), {"rival": outcome([9.0], [9])}, 1.0))


@pytest.mark.slow
def test_work_keeps_its_order_in_processes():
    assert list(in_processes(abs, [-3, 1, -2], 2)) == [3, 1, 2]
    assert list(in_processes(abs, [-3, 1, -2], 1)) == [3, 1, 2]


def test_continuous_stores_every_policy_of_every_trial(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(continuous, "KAPPAS", (0.9,))
    monkeypatch.setattr(continuous, "PRICES", (1.0,))
    size = ["--trials", "2", "--horizon", "3", "--dims", "1", "--processes", "1"]
    continuous.main([*size, "--results", str(tmp_path)])
    lines = read("priced-continuous", tmp_path)
    rows = [line["row"] for line in lines]
    assert lines[0]["seeds"] == [3000, 3001]
    names = ["confidence @0.90", "priced 1"]
    expected = [(f, 3000 + i, n) for f in ("sample", "hartmann") for i in range(2) for n in names]
    assert [(r["function"], r["seed"], r["policy"]) for r in rows] == expected
    assert all(1 <= r["queries"] <= 3 for r in rows)
    assert min(r["least_regret"] for r in rows) > -1e-6
    shown = capsys.readouterr().out
    assert "hartmann, d = 1: 2 trials of 3 rounds" in shown
    cost = sum(3 * r["regret"] + r["queries"] for r in rows[:4:2]) / 2
    line = next(x for x in shown.splitlines() if x.startswith("  confidence @0.90"))
    assert line.split()[-1] == f"{cost:.1f}"


# -- wrong models -------------------------------------------------------------------------------------


def test_a_scenario_differs_in_one_thing_from_what_is_believed():
    def count(scenario):
        differ = sum(a != b for a, b in zip(scenario.truth, scenario.belief, strict=True))
        return differ + (scenario.change != "forgets")

    assert {name: count(s) for name, s in SCENARIOS.items()} == {
        name: int(name != "matched") for name in SCENARIOS
    }
    assert Setting().on(5).noise == 0.01


def test_where_the_same_is_true_the_functions_are_the_same():
    paths, noise = misspecified.draw("matched", SMALL)
    truth = DriftingFunction.on_unit_interval(41)
    for name, scenario in SCENARIOS.items():
        other, same_noise = misspecified.draw(name, SMALL)
        assert torch.equal(noise, same_noise)
        same = scenario.truth == Setting() and scenario.change == "forgets"
        assert torch.equal(paths, other) == same
    many, noise = misspecified.draw("matched", SMALL._replace(trials=2000, horizon=2))
    assert (many[:, 0].mT @ many[:, 0] / 2000 - truth.prior_cov).abs().max() < 0.12
    assert noise.var().item() == pytest.approx(0.01, rel=0.1)


def test_functions_turn_and_jump():
    size = SMALL._replace(trials=400, horizon=260)
    turning, _ = misspecified.draw("truth turns", size)
    torch.testing.assert_close(turning[:, 100], -turning[:, 0])
    torch.testing.assert_close(turning[:, 200], turning[:, 0])
    for t in (0, 25, 50):
        assert turning[:, t].var().item() == pytest.approx(1, abs=0.15)
    jumping, _ = misspecified.draw("truth jumps", size)
    moved = (jumping.diff(dim=1) != 0).any(-1).any(0).nonzero().squeeze(-1)
    assert moved.tolist() == [124, 249]
    assert (jumping[:, 0] * jumping[:, 125]).mean().abs() < 0.15


def test_a_line_is_straight_between_the_points_of_its_grid():
    line = Line(torch.tensor([[0.0, 2.0, 1.0], [5.0, 0.0, 0.0]], dtype=torch.float64))
    x = torch.tensor([[0.0], [0.25], [0.5], [0.75], [1.0]], dtype=torch.float64)
    assert line.value(0, x).tolist() == [0.0, 1.0, 2.0, 1.5, 1.0]
    assert (line.maximum(0), line.maximum(1)) == (2.0, 5.0)


def test_the_grid_plays_with_the_belief_and_pays_in_truth():
    name = "lengthscale believed half"
    rows = {row["policy"]: row for row in misspecified.on_grid(name, SMALL)}
    paths, noise = misspecified.draw(name, SMALL)
    truth = DriftingFunction.on_unit_interval(41, lengthscale=0.1)
    opening = torch.randint(41, (3,), generator=torch.Generator().manual_seed(SMALL.seed + 1))
    draws = Draws(paths, noise, torch.zeros_like(noise), opening)  # nobody tosses coins
    run = simulation.play(truth, [GridPolicy("", ConfidenceQuery(0.8))], draws).of(0)
    assert rows["confidence @0.80"]["queries"] == run.query.sum(-1).tolist()
    assert rows["confidence @0.80"]["regret"] == run.regret.mean(-1).tolist()
    matched = {row["policy"]: row for row in misspecified.on_grid("matched", SMALL)}
    assert matched["confidence @0.80"]["regret"] != rows["confidence @0.80"]["regret"]
    assert list(matched) == [*misspecified.rules("grid")]


def test_the_tuner_starts_from_the_belief_and_learns_where_it_is_to():
    def play(part):
        one = misspecified.Task(part, "forgetting believed triple", 1, SMALL._replace(horizon=40))
        tuner = misspecified.tuner_for(one, ConfidenceQuery(0.999))
        assert (tuner.belief.forgetting, tuner.belief.noise) == (0.03, 0.01)
        assert (tuner.belief.kernel.family, tuner.belief.kernel.lengthscale.item()) == (
            "matern32",
            0.2,
        )
        paths, noise = misspecified.draw(one.scenario, one.size)
        continuous.play(Line(paths[1]), noise[1], tuner)
        assert tuner.queries > 15
        return (
            tuner.belief.forgetting,
            tuner.belief.noise,
            *tuner.belief.kernel.lengthscale.tolist(),
        )

    before = (0.03, 0.01, 0.2)
    assert play("fixed") == before
    assert all(a != b for a, b in zip(play("learned"), before, strict=True))


def test_a_trial_of_the_tuner_meets_its_own_function_and_noise(monkeypatch):
    monkeypatch.setattr(misspecified, "play", lambda *met: met)
    met = misspecified.trial(misspecified.Task("fixed", "truth turns", 2, SMALL))
    paths, noise = misspecified.draw("truth turns", SMALL)
    assert list(met) == [*misspecified.rules("fixed")]
    for truth, disturbance, _ in met.values():
        assert torch.equal(truth.path, paths[2])
        assert torch.equal(disturbance, noise[2])


def test_rows_gather_the_trials_of_a_scenario(monkeypatch):
    def paid(one):
        mark = 100 * (one.part == "learned") + 10 * (one.scenario != "matched") + one.trial
        cost = {"regret": mark / 1000, "queries": mark, "ms": one.trial}
        return dict.fromkeys(misspecified.rules(one.part), cost)

    monkeypatch.setattr(misspecified, "trial", paid)
    options = Namespace(
        parts=["fixed", "learned"], scenarios=["matched", "truth turns"], tuner_trials=3,
        tuner_horizon=9, points=5, seed=0, processes=1,
    )  # fmt: skip
    rows = list(misspecified.rows(options))
    assert [row["queries"] for row in rows[::4]] == [
        [0, 1, 2], [10, 11, 12], [100, 101, 102], [110, 111, 112],
    ]  # fmt: skip
    assert rows[-1]["regret"] == [0.11, 0.111, 0.112]
    assert {(row["ms"], row["trials"], row["horizon"]) for row in rows} == {(1.0, 3, 9)}
    text = misspecified.text(rows)
    assert "learned / fixed" in text
    assert "priced above the best:" in text


def test_where_the_priced_query_is_above_the_best_it_is_said():
    def row(policy, queries):
        what = {"part": "grid", "scenario": "matched", "policy": policy, "horizon": 100}
        return {**what, "regret": [0.1, 0.2], "queries": [queries, queries]}

    rivals = [row(name, 50) for name in continuous.confident(misspecified.KAPPAS["grid"])]
    text = misspecified.text([*rivals, row("priced 0.3", 40), row("priced 1", 60)])
    lost = text.partition("priced above the best:")[2]
    assert "price 1:" in lost
    assert "price 0.3" not in lost
    assert "0.150 / 60 / 75.0" in text


def test_misspecified_runs_through(tmp_path, capsys):
    size = ["--trials", "2", "--horizon", "4", "--points", "21", "--processes", "1"]
    few = ["--tuner-trials", "1", "--tuner-horizon", "2", "--scenarios", "truth jumps"]
    misspecified.main([*size, *few, "--results", str(tmp_path)])
    rows = [line["row"] for line in read("priced-misspecified", tmp_path)]
    assert [row["part"] for row in rows] == ["grid"] * 7 + ["fixed"] * 4 + ["learned"] * 4
    assert all(len(row["regret"]) == len(row["queries"]) == row["trials"] for row in rows)
    assert "learned / fixed" in capsys.readouterr().out
