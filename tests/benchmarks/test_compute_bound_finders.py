"""Rates that follow the training loss or are found before the run: rules, and what they pay."""

import copy
import math
from dataclasses import replace
from itertools import groupby, pairwise

import pytest
import torch
from scipy.stats import linregress

from benchmarks.suite.compute_bound.account import Account, Accounted, begin
from benchmarks.suite.compute_bound.finders import (
    exponential_rates,
    range_test,
    smoothed,
    suggestion,
)
from benchmarks.suite.compute_bound.followers import GreedyRate, SlopeRate, line_of
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.rivals import METHODS, SEVERAL, methods_of
from benchmarks.suite.compute_bound.schedules import STARTS
from benchmarks.suite.compute_bound.works import narrower
from botorch_costly.errors import HorizonExceededError, InvalidArgumentError
from tests.benchmarks.test_compute_bound import TEXT, same_state
from tests.benchmarks.test_compute_bound_programs import small
from tests.cases import quick

FOUND = ("greedy", "greedy, impatient", "adalrs", "finder, cosine", "narrow, then wide")
SLOWLY = replace(TEXT, horizon=40, steps=2)


def draws(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class TestTrainingLosses:
    def test_a_round_returns_the_loss_of_each_minibatch(self):
        problem = replace(TEXT, steps=3, default={"learning_rate": 3e-3, "dropout": 0.0})
        run = problem.setup(0)
        inputs, targets = run._parts["train"]
        rows = run._rows().split(problem.batch)
        with torch.no_grad():
            expected = [
                problem.work.losses(run._network(inputs[row]), targets[row]).mean().item()
                for row in rows
            ]
        assert run.train_round(problem.default, rate_factor=0.0) == pytest.approx(expected)

    def test_each_minibatch_may_have_a_rate_of_its_own(self):
        problem = replace(TEXT, steps=2)
        one, other = problem.setup(0), problem.setup(0)
        one.train_round(problem.default, rate_factor=0.5)
        other.train_round(problem.default, rate_factor=[0.5, 0.5])
        assert same_state(one.state_dict(), other.state_dict())
        other.train_round(problem.default, rate_factor=[0.5, 2.0])
        heard = [group["lr"] for group in other.save()["optimizer"]["param_groups"]]
        assert heard == pytest.approx([6e-3, 6e-3])
        with pytest.raises(ValueError, match="zip"):
            other.train_round(problem.default, rate_factor=[1.0])


class TestGreedy:
    @pytest.mark.parametrize("patience", [0, 2, 5])
    def test_it_moves_as_often_as_losses_in_a_row_improve_or_do_not(self, patience):
        falling = torch.linspace(2.0, 1.0, 400, dtype=torch.float64)
        losses = (falling + 0.03 * draws(400).round(decimals=1)).tolist()
        greedy = GreedyRate(0.01, factor=0.8, patience=patience, low=0.0, high=1e99, least=0.0)
        for loss in losses:
            greedy.hear(loss)
        best = [math.inf]
        for loss in losses:
            best.append(loss if loss < best[-1] - 1e-6 else best[-1])
        improved = [after < before for before, after in pairwise(best)]
        power = 0
        for better, several in groupby(improved):
            moves = len(list(several)) // (patience + 1)
            power += -moves if better else moves
        assert greedy.rate == pytest.approx(0.01 * 0.8**power, rel=1e-10)

    def test_limits_hold_moves_and_do_not_cause_any(self):
        falls, rises = GreedyRate(1.1e-3, patience=0), GreedyRate(0.98, patience=0)
        slow, fast = GreedyRate(1e-4, patience=0), GreedyRate(20.0, patience=0)
        for place in range(5):
            for greedy in (falls, slow):
                greedy.hear(1.0 + place)
            for greedy in (rises, fast):
                greedy.hear(1.0 - 0.1 * place)
        rates = [greedy.rate for greedy in (falls, rises, slow, fast)]
        # The first loss of a run is better than none. Rates outside the limits stay where they are.
        assert rates == pytest.approx([1e-3, 1.0, 1e-4 / 0.95, 20.0])

    def test_a_window_averages(self):
        losses = draws(60).tolist()
        smooth, plain = (
            GreedyRate(1.0, patience=1, window=4, low=0.0),
            GreedyRate(1.0, patience=1, low=0.0),
        )
        for place, loss in enumerate(losses, 1):
            smooth.hear(loss)
            last = losses[max(0, place - 4) : place]
            plain.hear(sum(last) / len(last))
            assert smooth.rate == pytest.approx(plain.rate)

    def test_it_hears_the_mean_of_each_round(self, monkeypatch):
        heard = []
        monkeypatch.setattr(GreedyRate, "hear", lambda self, loss: heard.append(loss))
        METHODS["greedy"](SLOWLY, SLOWLY.default, 0)
        run = SLOWLY.setup(0)
        means = [sum(run.train_round(SLOWLY.default)) / 2 for _ in range(SLOWLY.horizon)]
        assert heard == pytest.approx(means)


def falling(speed, level=1.0, many=10, noise=0.0):
    """Losses of a window; noise that changes its sign leaves the speed nearly alone."""
    return [level + speed * (many / 2 - place) + noise * (-1) ** place for place in range(many)]


def naive(windows):
    """What AdaLRS does, window by window: the next multiple, and whether it went back."""
    kept, trial, lines, found = 1.0, None, [], []
    for count, losses in enumerate(windows, 1):
        fit = linregress(range(len(losses)), losses)
        speed, error, level = -fit.slope, fit.stderr, sum(losses) / len(losses)
        up, down = max(1, 3 * 0.99**count), max(1, 2 * 0.99**count)
        back = False
        if trial:
            gained = speed - lines[-1][0]
            if gained > error + lines[-1][1]:
                kept = trial
                lines.append((speed, error, level))
            else:
                back = True
                if gained < -(error + lines[-1][1]):
                    kept = kept / down
            trial = None
        else:
            if len(lines) > 1 and lines[-2][2] < lines[-1][2] < level:
                kept = kept / down
            elif lines and speed < lines[-1][0] and level <= max(line[2] for line in lines):
                trial = kept * up
            lines.append((speed, error, level))
        found.append((trial or kept, back))
    return found


class TestAdaLRS:
    def test_a_line_is_that_of_least_squares(self):
        losses = draws(17).tolist()
        fit, line = linregress(range(17), losses), line_of(losses)
        assert line == pytest.approx((-fit.slope, fit.stderr, sum(losses) / 17), rel=1e-10)

    @pytest.mark.parametrize("seed", range(6))
    def test_it_does_what_a_plain_loop_does(self, seed):
        slopes = 0.05 * draws(40, seed=seed) - 0.01
        levels = 1 - slopes.cumsum(0) / 2
        windows = [
            falling(slope, level, noise=noise)
            for slope, level, noise in zip(
                slopes.tolist(),
                levels.tolist(),
                (0.05 * draws(40, seed=seed + 9)).tolist(),
                strict=True,
            )
        ]
        rate = SlopeRate()
        heard = []
        for losses in windows:
            back = rate.hear(losses)
            heard.append((rate.multiple, back))
        assert len({back for _, back in heard}) == 2
        assert [back for _, back in heard] == [back for _, back in naive(windows)]
        assert [m for m, _ in heard] == pytest.approx([m for m, _ in naive(windows)], rel=1e-10)

    @pytest.mark.parametrize(
        ("losses", "kept", "back"),
        [
            (falling(0.06), 3 * 0.99**2, False),  # faster: the rate is kept
            (falling(0.02), 1 / (2 * 0.99**3), True),  # slower: back, and down
            (falling(0.041, noise=0.1), 1.0, True),  # as fast as the errors tell: back
            ([math.nan] * 10, 1 / (2 * 0.99**3), True),
        ],
    )
    def test_how_a_trial_ends(self, losses, kept, back):
        rate = SlopeRate()
        assert [rate.hear(falling(0.05, 2.0)), rate.multiple] == [False, 1.0]
        assert not rate.hear(falling(0.04))
        assert rate.multiple == pytest.approx(3 * 0.99**2)
        assert rate.kept == 1.0
        assert rate.hear(losses) == back
        assert rate.multiple == rate.kept == pytest.approx(kept)

    def test_what_rises_twice_is_slowed_and_nothing_is_tried_above_the_highest_level(self):
        rate = SlopeRate()
        for level in (1.0, 1.1):
            rate.hear(falling(0.01 / level, level))
            assert rate.multiple == 1.0
        rate.hear(falling(0.005, 1.2))
        assert rate.multiple == pytest.approx(1 / (2 * 0.99**3))

    def test_trials_that_fail_are_given_back(self, monkeypatch):
        monkeypatch.setattr(SlopeRate, "hear", lambda self, losses: True)
        result = METHODS["adalrs"](SLOWLY, SLOWLY.default, 0)
        # Windows of 3 rounds from round 4 to 16, none of which is left.
        assert (result.rounds, result.given_back) == (40, 12)


class TestFinder:
    def test_rates_are_those_of_lightning(self):
        rates = exponential_rates(100)
        assert rates[:3] == pytest.approx([1e-8, 1e-8 * 1e8**0.02, 1e-8 * 1e8**0.03])
        assert (len(rates), rates[-1]) == (100, pytest.approx(1.0))

    def test_means_forget_and_end_where_they_diverge(self):
        losses = (1 + draws(30)).tolist()
        weights = [0.98**age for age in range(30)]
        plain = sum(w * loss for w, loss in zip(weights, reversed(losses), strict=True))
        assert smoothed(losses)[-1] == pytest.approx(plain / sum([*weights, 0.98**30]))
        assert len(smoothed([*losses, 1e3, 1.0, 1.0])) == 31
        assert len(smoothed([*losses, math.nan, 1.0])) == 32

    def test_the_suggestion_is_where_a_recorded_curve_falls_the_most(self):
        rates = exponential_rates(100)
        curve = [2 - 1 / (1 + (3e-3 / rate) ** 2) for rate in rates]
        assert suggestion(rates, curve) == pytest.approx(3e-3, rel=0.2)
        early, late = [9.0, 1.0, *curve[2:]], [*curve[:-1], -9.0]
        assert suggestion(rates, early) == suggestion(rates, curve)
        assert suggestion(rates, late) == suggestion(rates, curve)
        broken = [*curve[:90], *[math.nan] * 10]
        assert suggestion(rates, broken) == suggestion(rates, curve)
        assert suggestion(rates, curve[:12]) is None

    @pytest.mark.parametrize("name", ["character_mlp", "small_gpt"])
    def test_a_test_leaves_the_run_as_it_was_and_counts(self, name):
        problem = replace(small(name), steps=8)
        run = begin(problem, problem.default, 0)
        run.train_round(problem.default)
        state, heard = copy.deepcopy(run.state_dict()), []
        step = run._optimizer.step

        def watched(*args, **kwargs):
            heard.append(run._optimizer.param_groups[1]["lr"])
            return step(*args, **kwargs)

        run._optimizer.step = watched
        rate = range_test(run, problem.default, rounds=10)
        run._optimizer.step = step
        assert same_state(run.state_dict(), state)
        assert (run.round, run.account.rounds) == (1, 1 + len(heard) // 8)
        # The program's warm-up does not bend the rates of the test.
        assert heard == pytest.approx(exponential_rates(80)[: len(heard)])
        assert rate in exponential_rates(80)

    def test_a_test_that_diverges_ends_early(self, monkeypatch):
        problem = replace(small("character_mlp"), steps=8)
        run, played = begin(problem, problem.default, 0), []

        def train_round(config, rate_factor):
            played.append(config)
            return [1e3 if len(played) == 3 else 1.0 - 0.1 * len(played)] * 8

        monkeypatch.setattr(run, "train_round", train_round)
        rate = range_test(run, problem.default, rounds=15)
        assert len(played) == 3
        assert rate in exponential_rates(120)[10:16]  # not where the loss rose


class TestNarrow:
    def test_widths_are_a_quarter_where_there_is_one(self):
        times = {name: narrower(PROBLEMS[name]().work, 4) for name in PROBLEMS}
        assert {name for name, found in times.items() if found is None} == {
            "fine_tuning_text",
            "fine_tuning_pictures",
        }
        del times["fine_tuning_text"], times["fine_tuning_pictures"]
        # Ten channels have no whole quarter.
        assert {name for name, found in times.items() if found.times != 4} == {"cifar_one_pass"}

    def test_a_narrower_network_has_fewer_weights_and_operations(self):
        problem = small("recurrent_text")
        narrow = narrower(problem.work, 4)
        wide, thin = problem.setup(0), replace(problem, work=narrow.work).setup(0)
        assert narrow.times == 4
        assert thin._network.recurrence.hidden_size == 4
        assert wide._network.recurrence.hidden_size == 16
        assert thin.operations() < 0.4 * wide.operations()

    def test_operations_are_those_of_the_matrices(self):
        run = small("character_mlp").setup(0)
        state = copy.deepcopy(run.state_dict())
        # Two rows, a product and a sum each: 30 x 200 and 200 x 27, and twice as many on the way back.
        assert run.operations() == 3 * 2 * 2 * (30 * 200 + 200 * 27)
        assert same_state(run.state_dict(), state)
        assert run.train_round(run.problem.default) == small("character_mlp").setup(0).train_round(
            run.problem.default
        )

    def test_an_account_pays_for_another_by_its_share(self):
        account, other = Account(limit=10, rounds=2), Account(limit=50, rounds=33, queries=5)
        other.seconds["training"] = 1.5
        account.charge(other, share=0.1)
        assert (account.rounds, account.queries, account.seconds) == (6, 5, {"training": 1.5})
        with pytest.raises(HorizonExceededError, match="at most 10"):
            account.charge(other, share=0.5)

    @pytest.mark.parametrize(("name", "scaled"), [("small_gpt", 1 / 4), ("character_mlp", 1.0)])
    def test_the_best_rate_goes_to_the_wide_network_by_the_rule_of_its_optimizer(
        self, name, scaled
    ):
        problem = replace(small(name), horizon=40)
        played = []

        def watched(self, config, **kwargs):
            played.append((self.problem.work, config[problem.rate_name]))
            return train(self, config, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            kind = type(Accounted(problem, problem.default, Account(1)).setup(0))
            train = kind.train_round
            patch.setattr(kind, "train_round", watched)
            result = METHODS["narrow, then wide"](problem, problem.default, 0)
        narrow = list(dict.fromkeys(rate for work, rate in played if work != problem.work))
        (wide,) = dict.fromkeys(rate for work, rate in played if work == problem.work)
        default = problem.default[problem.rate_name]
        assert narrow == pytest.approx([default * m for m in (0.1, 0.3, 1.0, 3.0, 10.0)])
        assert any(wide == pytest.approx(rate * scaled) for rate in narrow)
        assert (result.rounds, result.queries) == (40, 5)
        assert 1 <= result.given_back <= 0.2 * 40

    def test_a_network_of_one_size_is_refused(self):
        problem = PROBLEMS["fine_tuning_text"]()
        assert "narrow, then wide" not in methods_of(problem)
        with pytest.raises(InvalidArgumentError, match="width"):
            METHODS["narrow, then wide"](problem, problem.default, 0)


def run_on(problem, kinds):
    """Run methods from a bad start, and hold them to their compute."""
    for kind in kinds:
        result = METHODS[kind](problem, STARTS["slow"](problem), 1)
        runs = SEVERAL if "full length" in kind else 1
        assert result.rounds == runs * problem.horizon == result.handed_over + result.given_back
        assert result.loss is None or 0 <= result.loss < math.inf


# Texts, pictures, rows and a network that begins trained: a method knows no more of a program.
OF_EACH_KIND = ("character_mlp", "mnist_one_pass", "ratings", "fine_tuning_pictures", "vae")


@pytest.mark.parametrize("name", quick(PROBLEMS, *OF_EACH_KIND))
def test_they_run_on_every_program_within_their_compute(name):
    run_on(replace(small(name), horizon=12), FOUND)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_populations_run_on_every_program_within_their_compute(name):
    several = [kind for kind in METHODS if "population" in kind]
    assert len(several) == 4
    run_on(small(name), several)
