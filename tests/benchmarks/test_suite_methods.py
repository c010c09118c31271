"""Methods of the online suite, on a run whose loss is known: it falls by what is played."""

import math
from dataclasses import dataclass, field

import pytest
import torch

from benchmarks.suite import benchmark, data
from benchmarks.suite.benchmark import (
    CEILING,
    best_fixed,
    closed_gap,
    last_loss,
    tasks,
)
from benchmarks.suite.methods import METHODS, methods_of, middle, one_run, published, tuned
from benchmarks.suite.policies import AnnealedPolicy, cosine, one_cycle
from benchmarks.suite.population import PopulationTraining, SuccessiveHalving
from benchmarks.suite.problems import POLICIES, PROBLEMS
from benchmarks.suite.protocol import Metrics, OnlineProblem, TrainingRun
from botorch_costly import BernoulliQuery, Design, Hold, Real, SearchSpace
from botorch_costly.tuners.online.intervals import Intervals


@dataclass
class Slope:
    """A run whose log loss falls by ``x`` a round, and jumps up beyond 0.9."""

    level: float = 0.0
    round: int = 0

    def train_round(self, config):
        x = config["x"]
        self.level += x / 100 if x <= 0.9 else -3.0
        self.round += 1

    def validate(self):
        return Metrics(math.exp(-self.level), 0.5)

    def test(self):
        return Metrics(math.exp(-self.level), 1 / (1 + math.exp(-self.level)))

    def save(self):
        return {"level": self.level}

    def restore(self, saved):
        self.level = saved["level"]

    def state_dict(self):
        return {**self.save(), "round": self.round}

    def load_state_dict(self, state):
        self.restore(state)
        self.round = state["round"]


@dataclass
class Slopes:
    name: str = "slopes"
    horizon: int = 40
    space: SearchSpace = field(default_factory=lambda: SearchSpace({"x": Real(0.0, 1.0)}))
    default: dict = field(default_factory=lambda: {"x": 0.1})
    made: list = field(default_factory=list)

    def setup(self, seed):
        self.made.append(Slope())
        return self.made[-1]


@pytest.fixture
def slopes():
    return Slopes()


def test_the_toy_is_a_problem(slopes):
    assert isinstance(slopes, OnlineProblem)
    assert isinstance(slopes.setup(0), TrainingRun)


@pytest.mark.parametrize("method", [PopulationTraining(), SuccessiveHalving()])
def test_rivals_pay_no_more_rounds_than_one_run(slopes, method):
    outcome = method(slopes, seed=0)
    assert outcome.rounds == sum(run.round for run in slopes.made) <= slopes.horizon
    assert outcome.rounds > 0.8 * slopes.horizon
    assert outcome.queries > 0


def test_in_a_population_the_worst_copies_the_best(slopes):
    population = PopulationTraining(members=4, ready=1, step=0.0, anew=0.0)
    population(slopes, seed=0)
    # Settings are copied as they are: after three exchanges all play the best one's, and the last
    # rounds of all gain as much.
    before = [run.level for run in slopes.made]
    longer = Slopes(horizon=44)
    population(longer, seed=0)
    gains = [after.level - level for after, level in zip(longer.made, before, strict=True)]
    assert gains == pytest.approx([gains[0]] * 4)
    assert gains[0] > 0


def test_halving_keeps_the_best_configuration(slopes):
    SuccessiveHalving(configurations=8)(slopes, seed=1)
    ends = sorted((run.round, run.level) for run in slopes.made)
    finished = ends[-1]
    assert [rounds for rounds, _ in ends] == [1] * 4 + [3] * 2 + [8] + [18]
    assert finished[1] / finished[0] == max(level / rounds for rounds, level in ends)


def test_the_ceiling_is_the_best_of_fifty(slopes):
    best = best_fixed(slopes, lambda pairs: [last_loss(slopes, *pair) for pair in pairs])["x"]
    assert 0.8 < best <= 0.9
    assert len(slopes.made) == 50 + 10 * 2 + 3 * 4


def test_a_guarded_tuner_undoes_ruinous_rounds(slopes):
    free = published(design=Design(kind="random", rounds=20, start_rounds=1))(slopes, 0)
    guarded = published(guarded=True, design=Design(kind="random", rounds=20, start_rounds=1))(
        Slopes(), 0
    )
    assert free.test_accuracy < 0.5 < guarded.test_accuracy
    assert guarded.queries == guarded.rounds == 40


def test_queries_are_those_of_the_query_rule(slopes):
    assert (
        tuned(rule=lambda horizon: BernoulliQuery(0.3), design=Design(rounds=3))(slopes, 0).queries
        < 30
    )
    assert METHODS["tuned"](slopes, 0).queries == Intervals(
        Hold().share, 40, Hold().shortest
    ).within(40)
    assert METHODS["tuned, priced"](slopes, 0).queries == 10
    assert METHODS["random schedule"](slopes, 0).queries == 0


def test_learning_rates_follow_their_schedules():
    problem = PROBLEMS["digits_optimization"]()
    assert (cosine(0.0), cosine(1.0)) == (1.0, pytest.approx(0.01))
    assert one_cycle(0.0) == pytest.approx(0.04)
    assert one_cycle(0.3) == pytest.approx(1.0)
    policy = AnnealedPolicy(problem, cosine)
    rates = [policy.decide().config["learning_rate"] for _ in range(problem.horizon)]
    assert rates[0] == problem.default["learning_rate"]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 1e-3  # where the space ends
    assert rates[100] == pytest.approx(0.01 * cosine(0.5))


def test_annealing_needs_a_learning_rate():
    with_rate, without = PROBLEMS["digits_optimization"](), PROBLEMS["digits_augmentation"]()
    assert set(methods_of(with_rate)) - set(methods_of(without)) == {"cosine", "one cycle"}


def test_the_middle_is_that_of_the_space():
    assert middle(PROBLEMS["digits_optimization"]())["momentum"] == pytest.approx(0.49)
    assert "middle" not in methods_of(PROBLEMS["digits_arms"]())


def test_a_space_of_few_choices_is_tried_out_for_its_ceiling():
    policies = [best["policy"] for best in benchmark._candidates(PROBLEMS["digits_arms"]())]
    assert sorted(policies) == sorted(POLICIES)


def test_an_outcome_is_that_of_the_last_round(slopes):
    class Rising:
        def __init__(self):
            self.round = 0

        def start(self, run):
            pass

        def decide(self):
            from botorch_costly import Decision

            self.round += 1
            config = {"x": self.round / 100}
            return Decision(self.round - 1, config, query=False, reason="rising")

    outcome = one_run(lambda problem, seed: Rising())(slopes, 0)
    level = sum(i / 100 for i in range(1, 41)) / 100
    assert outcome.test_accuracy == pytest.approx(1 / (1 + math.exp(-level)))
    assert (outcome.queries, outcome.rounds) == (0, 40)


def test_the_gap_is_counted_from_the_default_to_the_best_fixed():
    ends = {"default": {0: 60.0, 1: 62.0}, CEILING: {0: 90.0, 1: 92.0}, "tuned": {0: 84.0, 1: 82.0}}
    assert closed_gap(ends, "tuned") == "73%"
    assert closed_gap({**ends, CEILING: {0: 62.0, 1: 62.0}}, "tuned") == "(<2)"
    assert closed_gap({"tuned": {0: 1.0}}, "tuned") == ""
    assert closed_gap({**ends, "tuned": {7: 1.0}}, "tuned") == ""
    unlike = {**ends, "default": {**ends["default"], 2: -1000.0}}
    assert closed_gap(unlike, "tuned") == "73%"  # of the seeds that all three have


def rows_of(problem, **ends):
    return [
        {"problem": problem, "method": method.replace("_", " "), "seed": seed, "test_accuracy": end}
        | {"queries": 3, "rounds": 9, "seconds": 1.0}
        for method, accuracies in ends.items()
        for seed, end in enumerate(accuracies)
    ]


def test_the_table_has_the_worst_seed_and_paired_comparisons():
    text = benchmark.text(rows_of("pima", default=[0.7, 0.2, 0.9], tuned=[0.8, 0.3, 0.99]))
    assert "pima (confirmation)" in text
    assert "    3   60.0   70.0   20.0" in text
    assert "tuned less default: +9.7 (95 % +9.0 to +10.0, better)" in text
    assert "WORSE" in benchmark.text(rows_of("pima", default=[0.7, 0.2], tuned=[0.6, 0.101]))
    assert "even" in benchmark.text(rows_of("pima", default=[0.7, 0.2], tuned=[0.6, 0.4]))


def test_tasks_leave_out_what_makes_no_sense():
    work = tasks("digits_arms", ["default", "cosine", "middle", CEILING], range(2), {"policy": "x"})
    assert [(task.method, task.seed) for task in work] == [
        ("default", 0),
        ("default", 1),
        (CEILING, 0),
        (CEILING, 1),
    ]
    assert [task.fixed for task in work] == [None, None, {"policy": "x"}, {"policy": "x"}]


def test_problems_without_data_are_left_out_and_named(monkeypatch, capsys):
    monkeypatch.delenv("BOTORCH_COSTLY_DATA", raising=False)
    data.pima.cache_clear()
    assert data.available(PROBLEMS, ["digits_arms", "pima"]) == ["digits_arms"]
    assert "pima is left out" in capsys.readouterr().out


def test_the_global_generator_is_left_alone(slopes):
    before = torch.get_rng_state()
    PopulationTraining()(slopes, 0)
    SuccessiveHalving()(slopes, 0)
    assert torch.equal(torch.get_rng_state(), before)
