"""The trainings that are really run: they repeat themselves, learn, and are recorded as they went."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch

from benchmarks.curves.live import benchmark, best
from benchmarks.curves.live.actor_critic import Step, returns
from benchmarks.curves.live.benchmark import PROGRAMS, MissingPoolError, PoolTask, record, recorded
from benchmarks.curves.live.best import best_of, best_text
from benchmarks.curves.live.cartpole import CartPole, Memory, double_values
from benchmarks.curves.live.decayed import Decayed, _teacher
from benchmarks.curves.live.pictures import _network
from benchmarks.curves.live.pools import over_pools, pooled, program_of, training_numbers
from benchmarks.curves.live.program import Length, advance
from benchmarks.harness.record import rows_of, write_results
from tests.cases import quick, slow

GOOD = {
    "cartpole": {"gamma": 0.98, "lr": 1e-3},
    "pendulum": {"gamma": 0.9, "actor_lr": 5e-3, "critic_lr": 5e-3},
    "reacher": {"gamma": 0.9, "actor_lr": 5e-3, "critic_lr": 5e-3},
}
ROUNDS = {"cartpole": 12, "pendulum": 60, "reacher": 12}


def curve_of(program: str, seed: int, config: dict | None = None) -> list[float]:
    training = PROGRAMS[program].begin(config or GOOD[program], seed)
    return advance(training, ROUNDS[program]).curve


@pytest.mark.parametrize("program", quick(GOOD, "cartpole"))
def test_a_training_repeats_itself_and_another_seed_does_not(program: str) -> None:
    torch.manual_seed(0)
    once = curve_of(program, seed=3)
    torch.manual_seed(1)  # the global generator has no say
    assert curve_of(program, seed=3) == once
    assert curve_of(program, seed=4) != once


@pytest.mark.parametrize(
    ("program", "network"),
    [("cartpole", "_network"), ("pendulum", "_actor"), slow(("reacher", "_actor"))],
)
def test_the_learning_rate_says_how_far_weights_go(program: str, network: str) -> None:
    def moved(factor: float) -> float:
        config = {k: v * factor if "lr" in k else v for k, v in GOOD[program].items()}
        training = PROGRAMS[program].begin(config, 3)
        before = torch.nn.utils.parameters_to_vector(getattr(training, network).parameters())
        advance(training, 12)
        after = torch.nn.utils.parameters_to_vector(getattr(training, network).parameters())
        return float((after - before).detach().norm())

    assert moved(1e-9) < 1e-6 < 1e-3 < moved(1.0)


@pytest.mark.slow
def test_the_pendulum_learns() -> None:
    program = PROGRAMS["pendulum"]
    curve = advance(program.begin(GOOD["pendulum"], 0), 25, rounds=6).curve
    assert max(curve) > 2 * curve[0]


def test_the_pendulum_says_that_it_diverged() -> None:
    training = PROGRAMS["pendulum"].begin(GOOD["pendulum"], 0)
    with torch.no_grad():
        training._actor[0].weight.fill_(math.nan)
    shown = advance(training, 3)
    assert shown.broken
    assert shown.curve == []


def test_an_update_is_the_gradient_of_the_loss_step_by_step() -> None:
    """Of two joints: densities multiply, and the future counts after the last step alone."""
    training = PROGRAMS["reacher"].begin({**GOOD["reacher"], "actor_lr": 1e-3}, 0)
    generator = torch.Generator().manual_seed(1)
    draws = np.random.default_rng(1)
    states = torch.randn(4, 10, generator=generator)
    steps = [Step(states[k], draws.normal(size=2), -float(k)) for k in range(3)]
    actor, critic = copy.deepcopy(training._actor), copy.deepcopy(training._critic)
    log_sd = torch.zeros(2, requires_grad=True)
    future, loss = critic(states[3]).item(), torch.zeros(())
    for step in reversed(steps):
        future = step.reward + 0.9 * future
        short = future - critic(step.state).squeeze()
        mean, sd = actor(step.state), log_sd.exp()
        z = (torch.tensor(step.action).float() - mean) / sd
        log_density = (-z.square() / 2 - log_sd - math.log(2 * math.pi) / 2).sum()
        loss = loss + (short.square() - log_density * short.detach()) / 3
    (loss - 0.01 * log_sd.sum()).backward()
    training._learn(steps, states[3])
    own = [*training._actor.parameters(), training._log_sd, *training._critic.parameters()]
    naive = [*actor.parameters(), log_sd, *critic.parameters()]
    for parameter, twin in zip(own, naive, strict=True):
        assert torch.allclose(parameter.grad, twin.grad, rtol=1e-3, atol=1e-4)


def test_the_length_of_the_paper_has_a_name_only_where_it_is_another_one(tmp_path) -> None:
    names = [benchmark._named(program, True) for program in ("pendulum", "reacher")]
    assert names == ["pendulum, published", "reacher"]
    assert benchmark._named("pendulum", False) == "pendulum"


def test_the_best_configuration_is_shown_beside_the_papers(monkeypatch) -> None:
    monkeypatch.setattr(best, "_LEAST", 3)
    rows = [
        {"program": "cartpole", "iterations": 2, "curve": curve, "seconds": [1.0], "config": config}
        for curve, config in [
            ([9.0, 3.0], {"gamma": 0.8, "lr": 1e-3}),
            ([1.0, 5.0], {"gamma": 0.9, "lr": 2e-3}),
            ([99.0], {"gamma": 0.95, "lr": 3e-3}),  # which diverged
        ]
    ]
    assert best_of(rows)["config"]["gamma"] == 0.9
    lines = best_text(rows).splitlines()
    assert [line.split()[-3:] for line in lines[1:]] == [
        ["gamma", "0.9", "0.956"],
        ["lr", "0.002", "0.00589"],
    ]
    assert best_text([{**row, "program": "decayed digits"} for row in rows]) == ""
    assert best_text(rows[:2]) == ""


def test_a_memory_draws_by_priority_and_weighs_what_it_draws() -> None:
    memory = Memory(np.random.default_rng(0))
    for number in range(4):
        memory.add(torch.full((4,), float(number)), number % 2, torch.zeros(4), fell=number == 3)
    memory.learnt(np.arange(4), torch.tensor([0.0, 1.0, 2.0, 5.0]))
    draws = [memory.draw(exponent=1.0) for _ in range(300)]
    counts = np.bincount(np.concatenate([draw.rows for draw in draws]), minlength=4)
    expected = (np.array([0, 1, 2, 5]) + 1e-3) / (8 + 4e-3)
    assert np.allclose(counts / counts.sum(), expected, atol=0.02)
    batch = draws[0]
    inverse = 1 / expected[batch.rows]
    assert torch.allclose(batch.weight, torch.tensor(inverse / inverse.max()).float(), rtol=1e-4)
    assert torch.equal(batch.before[:, 0].long(), torch.tensor(batch.rows))
    assert torch.equal(batch.action, torch.tensor(batch.rows % 2))
    assert torch.equal(batch.goes_on, torch.tensor(batch.rows != 3).float())
    undone = memory.draw(exponent=0.0)
    assert torch.equal(undone.weight, torch.ones(64))


def test_a_memory_forgets_the_oldest() -> None:
    memory = Memory(np.random.default_rng(0))
    for number in range(10_001):
        memory.add(torch.full((4,), float(number)), 0, torch.zeros(4), fell=False)
    assert len(memory) == 10_000
    assert memory._rows[0, 0] == 10_000
    assert memory._rows[1, 0] == 1


def test_the_network_chooses_the_action_and_the_target_says_its_value() -> None:
    network, target = torch.tensor([[1.0, 2.0], [5.0, 4.0]]), torch.tensor([[7.0, 3.0], [8.0, 9.0]])
    assert double_values(network, target).tolist() == [3.0, 8.0]


@pytest.mark.slow
def test_a_fallen_pole_has_no_future() -> None:
    """With one transition in the memory its value is learnt: 1 if the pole fell, more if it did not."""

    def value(fell: bool) -> float:
        training = CartPole({"gamma": 0.9, "lr": 1e-2}, 0)
        training._memory.add(torch.ones(4), 0, torch.ones(4), fell)
        for step in range(1, 801):
            training._steps = step * 10  # so that the target follows
            training._learn()
        return float(training._network(torch.ones(4)).detach()[0])

    assert value(fell=True) == pytest.approx(1.0, abs=0.05)
    assert value(fell=False) > 3


def test_returns_are_discounted_sums() -> None:
    rewards, gamma, future = [1.0, 2.0, 4.0], 0.5, 8.0
    for since, found in enumerate(returns(rewards, gamma, future)):
        rest = [*rewards[since:], future]
        assert found == sum(reward * gamma**k for k, reward in enumerate(rest))


@pytest.mark.parametrize(("size", "pool_size"), [*itertools.product([1, 2, 5, 8], [1, 3, 5])])
def test_any_filter_and_any_pooling_make_a_network(size: int, pool_size: int) -> None:
    network = _network(size, pool_size, torch.Generator().manual_seed(0))
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    padded = network[:2](torch.zeros(1, 3, 32, 32))
    assert padded.shape[-2:] == (32, 32)  # any filter leaves the side as it is


DECAYED = {
    "epochs": 8,
    "warm_up": 0.25,
    "lr": 0.05,
    "friction": 0.5,
    "weight_decay": 1e-5,
    "batch_size": 100,
    "dropout": 0.0,
}


def test_the_rate_rises_in_a_line_and_falls_to_zero_as_a_cosine() -> None:
    training = Decayed(_teacher, DECAYED, 0)
    shares = []
    for training._step in range(80):  # 10 batches in each of 8 epochs
        shares.append(training._share())
    assert shares[:20] == pytest.approx([(step + 1) / 21 for step in range(20)])
    falling = [(1 + math.cos(math.pi * step / 60)) / 2 for step in range(60)]
    assert shares[20:] == pytest.approx(falling)


def test_a_decayed_training_learns_repeats_itself_and_says_that_it_diverged() -> None:
    program = PROGRAMS["decayed regression"]
    curve = advance(program.begin(DECAYED, 0), 8).curve
    assert curve[-1] > curve[0] + 0.2
    assert advance(program.begin(DECAYED, 0), 8).curve == curve
    assert advance(program.begin(DECAYED, 1), 8).curve != curve
    assert advance(program.begin({**DECAYED, "lr": 3.0, "friction": 0.01}, 0), 8).broken


@pytest.mark.slow
def test_a_whole_training_is_as_long_as_its_hyperparameter_says(tmp_path) -> None:
    rows = [record(PoolTask("decayed regression", number)) for number in range(4)]
    epochs = [row["config"]["epochs"] for row in rows]
    assert [row["iterations"] for row in rows] == epochs
    assert len(set(epochs)) > 1
    write_results("some-curves", rows, [0], directory=tmp_path)
    problem = recorded("decayed regression", "some-curves", tmp_path)
    assert problem.lengths.tolist() == epochs


def test_what_is_recorded_is_what_was_trained(tmp_path, monkeypatch) -> None:
    program = PROGRAMS["cartpole"]._replace(length=Length(4, 2))
    monkeypatch.setitem(benchmark.PROGRAMS, "cartpole", program)
    rows = [record(PoolTask("cartpole", number)) for number in range(3)]
    assert [len(row["curve"]) for row in rows] == [4, 4, 4]
    training = program.begin(rows[1]["config"], 1)
    by_episode = [training.play() for _ in range(8)]
    assert rows[1]["curve"] == [round(reward, 4) for reward in by_episode[1::2]]

    broken = {**rows[2], "curve": rows[2]["curve"][:2], "seconds": [1.0, 2.0]}
    write_results("some-curves", [*rows[:2], broken], [0], directory=tmp_path)
    problem = recorded("cartpole", "some-curves", tmp_path)
    assert problem.advance(1, 0, 4).curve.tolist() == rows[1]["curve"]
    segment = problem.advance(2, 1, 3)
    assert segment.broken
    assert segment.cost == 2.0
    with pytest.raises(MissingPoolError, match="pendulum"):
        recorded("pendulum", "some-curves", tmp_path)


def test_the_benchmark_records_once_and_plays(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(
        benchmark.PROGRAMS, "cartpole", PROGRAMS["cartpole"]._replace(length=Length(4, 2))
    )
    small = ["--programs", "cartpole", "--pool", "4", "--processes", "1", "--seeds", "1"]
    options = [*small, "--results", str(tmp_path), "--policies", "random"]
    benchmark.run("boil-rl", ["cartpole"], options)
    recorded_before = rows_of("boil-rl-curves", tmp_path)
    assert len(recorded_before) == 4
    benchmark.run("boil-rl", ["cartpole"], [*options, "curve optimizer", "--again"])
    assert rows_of("boil-rl-curves", tmp_path) == recorded_before
    assert {row["policy"] for row in rows_of("boil-rl", tmp_path)} == {"random", "curve optimizer"}
    assert "cartpole" in capsys.readouterr().out
    assert "cartpole" in benchmark.curves_text(recorded_before)


def test_pools_share_no_training_and_are_played_on_one_by_one(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setitem(
        benchmark.PROGRAMS, "cartpole", PROGRAMS["cartpole"]._replace(length=Length(4, 2))
    )
    options = ["--programs", "cartpole", "--pool", "4", "--pools", "2", "--processes", "1"]
    rest = ["--seeds", "2", "--results", str(tmp_path), "--policies", "random"]
    benchmark.run("boil-rl", ["cartpole"], [*options, *rest])
    configs = [tuple(row["config"].values()) for row in rows_of("boil-rl-curves", tmp_path)]
    assert len(set(configs)) == 8
    assert "cartpole, 2 pools" in capsys.readouterr().out
    for number, table in enumerate(["cartpole", "cartpole, pool 2"]):
        assert recorded(table, "boil-rl-curves", tmp_path).inputs.shape == (4, 2)
        assert pooled("cartpole", number) == table
        assert program_of(table) == "cartpole"
    assert not {*training_numbers("a", 1000)} & {*training_numbers("a, pool 2", 1000)}


def test_over_all_pools_the_same_seeds_of_each_count() -> None:
    played = [("a", 0), ("a", 1), ("a, pool 2", 1), ("a, pool 2", 2), ("b", 0)]
    rows = [{"table": table, "policy": "random", "seed": seed} for table, seed in played]
    rows.append({"table": "a", "policy": "on one pool", "seed": 1})
    together = over_pools(rows)
    assert [row["table"] for row in together] == ["a, 2 pools"] * 2
    assert [row["seed"] for row in together] == [("a", 1), ("a, pool 2", 1)]
    assert over_pools(rows[-2:]) == []
