"""Populations in training: who copies whom, what is paid, and what PB2 is told."""

import math

import pytest
import torch

import botorch_costly as bc
from benchmarks.populations import benchmark
from benchmarks.populations.benchmark import METHODS, Chance, Ours, Plan, Size, Unchanged, play
from benchmarks.suite.protocol import Metrics

SIZE = Size(members=4, decisions=6, rounds=2)


class Run:
    """A number that grows by what is played, and a generator that nothing draws from."""

    def __init__(self):
        self.weight, self.round, self.generator = 0.0, 0, torch.Generator().get_state()

    def train_round(self, config):
        self.weight += 1 - (config["x"] - 0.3) ** 2
        self.round += 1

    def validate(self):
        return Metrics(math.exp(-self.weight), min(self.weight / 20, 1.0))

    test = validate

    def save(self):
        return {"weight": self.weight}

    def restore(self, saved):
        self.weight = saved["weight"]

    def state_dict(self):
        return {"generator": self.generator}

    def load_state_dict(self, state):
        self.generator = state["generator"]


class Problem:
    name, horizon = "line", 12
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})

    def __init__(self):
        self.runs, self.default = [], {"x": 0.9}

    def setup(self, seed):
        self.runs.append(Run())
        return self.runs[-1]


def test_members_copy_weights_at_once_and_see_examples_in_their_own_order():
    problem, heard = Problem(), []

    class Swap:
        def plan(self):
            origins = [1, 0, 2, 2] if len(heard) == 1 else [0, 1, 2, 3]
            return Plan([{"x": 0.1 * i} for i in range(4)], origins, [True, True, False, False])

        def hear(self, losses):
            heard.append(losses)

    ended = play(problem, Swap(), 0, Size(4, 2, 1))
    gains = [1 - (0.1 * i - 0.3) ** 2 for i in range(4)]
    expected = [gains[o] + gains[i] for i, o in enumerate([1, 0, 2, 2])]
    assert [run.weight for run in problem.runs] == pytest.approx(expected)
    assert heard[0][2:] == [None, None]
    assert None not in heard[1]
    assert ended.queries == 2 + 4
    assert ended.test_accuracy == pytest.approx(max(expected) / 20)
    assert len({tuple(run.generator.tolist()) for run in problem.runs}) == 4


def test_tuned_and_random_populations_leave_a_bad_default():
    size = Size(members=4, decisions=12, rounds=1)
    ends = {
        make: play(Problem(), make(Problem(), 0, size), 0, size).test_accuracy
        for make in (Unchanged, Chance, Ours)
    }
    assert ends[Unchanged] == pytest.approx(12 * 0.64 / 20)
    assert ends[Ours] > ends[Unchanged] + 0.1
    assert ends[Chance] > ends[Unchanged]


@pytest.mark.filterwarnings("ignore")  # scikit-learn's, of the fits of PB2
def test_pb2_decides_on_the_population():
    pytest.importorskip("ray.tune", reason="needs the extra botorch_costly[ray]")
    pytest.importorskip("sklearn")
    decider = METHODS["PB2"](Problem(), 0, SIZE)
    first = decider.plan()
    assert dict(first.configs[0]) == {"x": 0.9}
    decider.hear([0.9, 0.5, 0.7, 0.6])
    assert decider.plan().origins == [1, 1, 2, 3]
    decider.hear([0.1, 0.5, math.inf, 0.6])
    after = decider.plan()
    assert after.origins == [0, 1, 0, 3]  # member 0 is copied, too
    decider.hear([0.1, 0.4, 0.2, 0.5])
    last = decider.plan()
    assert last.origins == [0, 1, 2, 0]
    assert all(0 <= config["x"] <= 1 for config in last.configs)


def test_the_table_compares_by_seed():
    row = benchmark.Task("line", "ours", 0, 4, 6, 2)._asdict()
    paid = {"queries": 24, "seconds": 1.0, "deciding": 0.1, "test_loss": 0.3}
    rows = [
        {**row, **paid, "method": method, "seed": seed, "test_accuracy": accuracy}
        for method, ends in {"PB2": [0.80, 0.86], "ours": [0.84, 0.92]}.items()
        for seed, accuracy in enumerate(ends)
    ]
    table = benchmark.text(rows)
    assert "4 members, 6 decisions of 2 rounds" in table
    assert "+5.0 (1.0)" in table
