"""Runs without spare compute resume and go back bit for bit, and no rival takes more than it may."""

import copy
import io
import math
from dataclasses import asdict, replace
from functools import cache

import pytest
import torch

from benchmarks.suite.compute_bound.account import Account, Accounted
from benchmarks.suite.compute_bound.bandit import BanditExplorer
from benchmarks.suite.compute_bound.networks import Transformer
from benchmarks.suite.compute_bound.optimizers import OPTIMIZERS, MissingPackageError
from benchmarks.suite.compute_bound.problems import PROBLEMS
from benchmarks.suite.compute_bound.races import Trials, race, search_at_round_0
from benchmarks.suite.compute_bound.rivals import METHODS, NEEDS, SEVERAL, methods_of
from benchmarks.suite.compute_bound.schedules import STARTS, constant, cosine, finish, wsd
from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.compute_bound.works import Classes, Denoising, NextCharacter
from benchmarks.suite.data import Part
from benchmarks.suite.networks import picture_network
from benchmarks.suite.population import SuccessiveHalving
from botorch_costly import Real, SearchSpace
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidArgumentError,
    InvalidConfigError,
    StateMismatchError,
)
from tests.cases import quick

RATE = Real(1e-5, 1e-1, log=True)


@cache
def letters():
    """A text of 60,000 characters in which each depends on the one before."""
    steps = torch.randint(1, 4, (60_000,), generator=torch.Generator().manual_seed(7))
    return steps.cumsum(0) % 90


def small_transformer(generator, characters, length, width=8):
    return Transformer(generator, characters, length, width, layers=1)


@cache
def pictures():
    generator = torch.Generator().manual_seed(3)
    targets = torch.randint(10, (600,), generator=generator)
    inputs = torch.rand(600, 1, 8, 8, generator=generator) / 2
    inputs[torch.arange(600), 0, targets % 8, targets % 5] = 1.0
    return Part(inputs, targets)


def network(generator, width=2):
    return picture_network(generator, channels=1, side=8, width=width, blocks=1)


TEXT = LongProblem(
    name="letters",
    space=SearchSpace({"learning_rate": RATE, "dropout": Real(0.0, 0.5)}),
    default={"learning_rate": 3e-3, "dropout": 0.1},
    strong={"dropout": 0.5},
    work=NextCharacter(letters, small_transformer),
    horizon=10,
    steps=1,
    batch=4,
)
PICTURES = LongProblem(
    name="pictures",
    space=SearchSpace(
        {"learning_rate": RATE, "momentum": Real(0.0, 0.98), "shift": Real(0.0, 4.0)}
    ),
    default={"learning_rate": 1e-2, "momentum": 0.9, "shift": 1.0},
    strong={"shift": 4.0},
    work=Classes(pictures, network, held_out=60),
    optimizer="sgd",
    horizon=32,
    steps=1,
    batch=8,
)


def same_state(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_state, a, b))
    return a == b


def with_optimizer(name):
    if name.startswith(("prodigy", "schedule_free")):
        pytest.importorskip("prodigyopt" if name == "prodigy" else "schedulefree")
    return replace(TEXT, optimizer=name)


class TestLongRun:
    @pytest.mark.parametrize("name", OPTIMIZERS)
    @pytest.mark.parametrize("measured", [False, True])
    def test_a_resumed_run_continues_bit_for_bit(self, name, measured):
        problem = with_optimizer(name)
        straight = problem.setup(5)
        for _ in range(3):
            straight.train_round(problem.default)
        if measured:  # an optimizer may then stand at another point
            straight.validate()
        file = io.BytesIO()
        torch.save(straight.state_dict(), file)
        file.seek(0)
        resumed = problem.setup(5)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        for run in (straight, resumed):
            run.train_round(problem.default, rate_factor=0.5)
            run.train_round(problem.default)
        assert same_state(straight.state_dict(), resumed.state_dict())
        assert straight.test() == resumed.test()

    @pytest.mark.parametrize("name", OPTIMIZERS)
    def test_every_optimizer_learns(self, name):
        problem = replace(with_optimizer(name), steps=8)
        run = problem.setup(0)
        before = run.validate().loss
        for _ in range(10):
            run.train_round(problem.default)
        assert run.validate().loss < before - 0.01

    def test_schedule_free_is_measured_where_it_has_averaged(self):
        problem = with_optimizer("schedule_free")
        run = problem.setup(0)
        for _ in range(3):
            run.train_round(problem.default)
        training = copy.deepcopy(run.save()["network"])
        run.validate()
        assert not same_state(run.save()["network"], training)
        assert [g["train_mode"] for g in run.save()["optimizer"]["param_groups"]] == [False] * 2

    def test_an_optimizer_as_it_comes_does_not_hear_the_rate(self):
        for name, heard in (("prodigy", 1.0), ("schedule_free_own", 0.0025)):
            run = with_optimizer(name).setup(0)
            run.train_round({"learning_rate": 1e-4, "dropout": 0.0})
            assert [g["lr"] for g in run.save()["optimizer"]["param_groups"]] == [heard] * 2

    def test_going_back_brings_the_same_batches_and_the_same_random_numbers(self):
        run = TEXT.setup(1)
        run.train_round(TEXT.default)
        state = copy.deepcopy(run.state_dict())
        ends = []
        for other in (TEXT.default, {**TEXT.default, "dropout": 0.4}, TEXT.default):
            run.load_state_dict(state)
            rows = run._rows()
            run.train_round(other)
            ends.append((rows, copy.deepcopy(run.state_dict())))
        assert torch.equal(ends[0][0], ends[1][0])
        assert same_state(ends[0][1], ends[2][1])
        assert not same_state(ends[0][1]["network"], ends[1][1]["network"])

    def test_a_schedule_may_leave_the_space_and_a_config_may_not(self):
        run = TEXT.setup(0)
        before = copy.deepcopy(run.save()["network"])
        run.train_round(TEXT.default, rate_factor=0.0)
        assert same_state(run.save()["network"], before)
        with pytest.raises(InvalidConfigError):
            run.train_round({**TEXT.default, "learning_rate": 1e-6})

    def test_runs_of_a_seed_share_their_rows_and_nothing_else(self):
        a, b, other = TEXT.setup(0), TEXT.setup(0), TEXT.setup(1)
        b.train_round(TEXT.default)
        a.train_round(TEXT.default)
        assert same_state(a.state_dict(), b.state_dict())
        assert a._parts is b._parts
        assert not torch.equal(a._parts["test"].inputs, other._parts["test"].inputs)

    def test_a_state_of_another_seed_is_refused(self):
        with pytest.raises(StateMismatchError, match="seed"):
            TEXT.setup(0).load_state_dict(TEXT.setup(1).state_dict())

    def test_an_unknown_optimizer_is_refused(self):
        with pytest.raises(InvalidArgumentError, match="optimizer"):
            replace(TEXT, optimizer="lion")

    def test_a_missing_package_is_named(self, monkeypatch):
        monkeypatch.setattr("benchmarks.suite.compute_bound.optimizers.find_spec", lambda _: None)
        with pytest.raises(MissingPackageError, match="prodigyopt"):
            replace(TEXT, optimizer="prodigy").setup(0)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("start", STARTS)
def test_starts_lie_in_the_space_and_are_what_they_are_called(name, start):
    problem = PROBLEMS[name]()
    config = STARTS[start](problem)
    problem.space.check(config)
    multiple = config[problem.rate_name] / problem.default[problem.rate_name]
    changed = {key for key, value in config.items() if value != problem.default[key]}
    if start in ("slow", "fast"):
        assert multiple == pytest.approx({"slow": 1 / 30, "fast": 10.0}[start])
        assert changed == {problem.rate_name}
    else:
        assert changed == (set(problem.strong) if start == "strong" else set())


def test_a_start_stays_within_bounds():
    problem = replace(TEXT, default={"learning_rate": 2e-5, "dropout": 0.1})
    assert STARTS["slow"](problem)["learning_rate"] == 1e-5
    problem = replace(TEXT, default={"learning_rate": 5e-2, "dropout": 0.1})
    assert STARTS["fast"](problem)["learning_rate"] == 1e-1


class TestSchedules:
    def test_shapes(self):
        assert {constant(r, 50) for r in range(50)} == {1.0}
        assert [cosine(r, 40) for r in (0, 20, 40)] == pytest.approx([1.0, 0.5, 0.0])
        shares = [wsd(r, 50) for r in range(51)]
        assert shares[:41] == [1.0] * 41
        assert shares[45] == pytest.approx(0.5)
        assert shares[50] == 0.0

    def test_a_schedule_that_begins_later_is_a_whole_one(self):
        heard = []

        class Heard:
            round = 4

            def train_round(self, config, *, rate_factor):
                heard.append(rate_factor)
                self.round += 1

        finish(Heard(), {}, 10, cosine, origin=4)
        assert heard == [cosine(r, 6) for r in range(6)]


class TestAccount:
    def test_everything_is_counted_and_parts_add_up(self):
        account = Account(limit=5)
        run = Accounted(TEXT, TEXT.default, account).setup(0)
        state = run.copy()
        run.train_round(TEXT.default)
        run.train_round(TEXT.default)
        run.load_state_dict(state)
        run.train_round(TEXT.default)
        run.validate()
        result = account.result(run)
        assert (result.rounds, result.handed_over, result.given_back) == (3, 1, 2)
        assert result.queries == 1
        assert result.loss == run.test().loss
        parts = (result.training, result.querying, result.copying)
        assert min(parts) > 0
        assert result.deciding >= 0

    def test_a_round_too_many_is_refused_and_not_trained(self):
        run = Accounted(TEXT, TEXT.default, Account(limit=1)).setup(0)
        run.train_round(TEXT.default)
        with pytest.raises(HorizonExceededError, match="at most 1"):
            run.train_round(TEXT.default)
        assert run.round == 1

    def test_a_diverged_network_has_no_loss(self):
        account = Account(limit=1)
        run = Accounted(TEXT, TEXT.default, account).setup(0)
        with torch.no_grad():
            next(run._network.parameters()).fill_(math.nan)
        assert account.result(run).loss is None

    def test_a_start_outside_the_space_is_refused(self):
        with pytest.raises(InvalidConfigError):
            Accounted(TEXT, {"learning_rate": 1.0, "dropout": 0.0}, Account(limit=1))


class TestMethods:
    @pytest.mark.parametrize("name", quick(METHODS, *(n for n in METHODS if ", wsd" not in n)))
    def test_each_ends_within_its_compute(self, name):
        if name in NEEDS:
            pytest.importorskip(NEEDS[name])
        result = METHODS[name](PICTURES, STARTS["slow"](PICTURES), 2)
        several = "full length" in name or "best of four" in name
        horizon = PICTURES.horizon
        assert result.rounds <= horizon * (SEVERAL if several else 1)
        assert result.rounds >= 0.75 * horizon
        assert result.rounds == result.handed_over + result.given_back
        if several:
            assert result.handed_over == horizon
            assert result.rounds > horizon
        assert result.loss is None or 0 < result.loss < math.inf
        assert 0 <= result.accuracy <= 1
        assert all(isinstance(v, int | float | None) for v in asdict(result).values())

    @pytest.mark.parametrize(
        "name",
        quick(
            ["race", "bandit population", "halving", "best of four, wsd"],
            "race",
            "bandit population",
        ),
    )
    def test_the_same_seed_gives_the_same_end(self, name):
        a, b, c = (METHODS[name](PICTURES, PICTURES.default, seed) for seed in (3, 3, 4))
        assert (a.loss, a.accuracy, a.rounds) == (b.loss, b.accuracy, b.rounds)
        assert a.loss != c.loss

    def test_constant_is_a_plain_run(self):
        run = PICTURES.setup(0)
        for _ in range(PICTURES.horizon):
            run.train_round(PICTURES.default)
        result = METHODS["constant"](PICTURES, PICTURES.default, 0)
        assert (result.loss, result.accuracy) == (run.test().loss, run.test().accuracy)
        assert (result.queries, result.rounds, result.given_back) == (0, 32, 0)

    def test_methods_on_augmentation_are_for_pictures_with_doses(self):
        augmented = {"trivial augment", "trivial augment, wsd"}
        assert set(METHODS) - set(methods_of(TEXT)) == augmented
        assert set(methods_of(PICTURES)) == set(METHODS)
        others = {name for name in PROBLEMS if augmented <= set(methods_of(PROBLEMS[name]()))}
        assert others == {"cifar_one_pass", "mnist_one_pass", "fine_tuning_pictures"}
        with pytest.raises(InvalidArgumentError, match="pictures"):
            METHODS["trivial augment"](TEXT, TEXT.default, 0)

    def test_the_best_of_four_is_no_worse_than_its_start_by_validation(self):
        problem = replace(PICTURES, strong={})
        bad = {"learning_rate": 1e-5, "momentum": 0.0, "shift": 4.0}
        assert (
            METHODS["best of four"](problem, bad, 0).loss
            < METHODS["constant"](problem, bad, 0).loss
        )


class TestRaces:
    def test_trials_begin_alike_and_the_best_is_gone_on_from(self):
        account = Account(limit=20)
        run = Accounted(TEXT, TEXT.default, account).setup(0)
        run.train_round(TEXT.default)
        trials = Trials(TEXT, run, rounds=2, cooldown=1)
        rates = (1e-5, 1e-2, 1e-5)
        played = [trials.play({**TEXT.default, "learning_rate": rate}) for rate in rates]
        assert played[0].loss == played[2].loss > played[1].loss
        assert (run.round, account.rounds, account.queries) == (1, 10, 3)
        assert trials.settle(played) is played[1]
        assert run.round == 3
        assert same_state(run.state_dict(), played[1].state)

    def test_the_race_gives_back_all_rounds_but_the_winners(self):
        problem = replace(TEXT, horizon=60)
        result = race(problem, STARTS["slow"](problem), 0)
        assert (result.rounds, result.given_back, result.queries) == (60, 15, 7)

    @pytest.mark.slow
    @pytest.mark.parametrize("start", ["sensible", "slow", "fast"])
    def test_the_search_beats_a_constant_default_from_anywhere(self, start):
        problem = replace(TEXT, horizon=120, steps=3)
        default = METHODS["constant"](problem, problem.default, 0).loss
        result = search_at_round_0(problem, STARTS[start](problem), 0)
        assert result.rounds == 120
        assert 10 <= result.given_back <= 45
        assert result.queries * 5 - 3 == result.given_back
        assert result.loss < default - 0.3


class TestPopulations:
    def test_halving_to_the_full_length_ends_there(self):
        halving = SuccessiveHalving(8, full_length=True)
        for horizon in (15, 31, 40):
            lengths = halving._lengths(horizon)
            assert sum(lengths) == horizon
            cost = sum(many * length for many, length in zip((8, 4, 2, 1), lengths, strict=True))
            assert cost <= 4 * horizon
        with pytest.raises(InvalidArgumentError, match="horizon"):
            halving._lengths(14)

    def test_the_bandit_goes_where_gains_were_made(self):
        space = SearchSpace({"x": Real(0.0, 1.0)})
        explorer = BanditExplorer(space, torch.Generator().manual_seed(0))
        settings = [torch.tensor([x], dtype=torch.float64) for x in (0.1, 0.4, 0.7, 0.95)]
        losses = [1.0] * 4
        for round in range(1, 13):
            explorer.hear(round, settings, losses)
            losses = [
                v * math.exp(-0.3 + (float(s) - 0.7) ** 2)
                for v, s in zip(losses, settings, strict=True)
            ]
        explorer.hear(13, settings, losses)
        assert abs(float(explorer.explored(settings, 2, 0)) - 0.7) < 0.2

    def test_a_diverged_member_does_not_stop_the_bandit(self):
        explorer = BanditExplorer(TEXT.space, torch.Generator().manual_seed(0))
        settings = list(TEXT.space.sample(4, torch.Generator().manual_seed(1)))
        for losses in ([2.0] * 4, [math.inf, 1.0, 1.5, 1.2], [math.inf, 0.9, math.inf, 1.0]):
            explorer.hear(5, settings, losses)
            chosen = explorer.explored(settings, 1, 0)
        assert chosen.isfinite().all()
        TEXT.space.check(TEXT.space.decode(chosen))


def test_losses_that_are_no_cross_entropies_are_compared_by_their_logarithms():
    others = {"denoising", "diffusion", "ratings", "super_resolution", "vae"}
    assert {name for name in PROBLEMS if not PROBLEMS[name]().work.in_nats} == others
    assert not Denoising(pictures).in_nats
