"""Entropy search as rivals: where they evaluate, and what they choose."""

import pytest
import torch

import botorch_costly as bc
from benchmarks.subsets.base import play
from benchmarks.subsets.entropy import EntropyAtTarget, MultiTask
from botorch_costly.problems import SubsetProblem

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
FRACTION = bc.SearchSpace({"fraction": bc.Real(1 / 64, 1.0, log=True)})
SHARES = (1 / 64, 1 / 8, 1.0)


@pytest.fixture(scope="module")
def problem():
    pairs = [({"x": i / 20}, {"fraction": s}) for i in range(21) for s in SHARES]
    values = [-((x["x"] - 0.3 - 0.1 * (1 - s["fraction"])) ** 2) for x, s in pairs]
    return SubsetProblem(SPACE, FRACTION, pairs, values, [s["fraction"] for _, s in pairs])


def asked_by(method, problem, count):
    numbers = []
    for _ in range(count):
        numbers.append(method.ask())
        cost = float(problem.costs[numbers[-1]])
        method.tell(numbers[-1], float(problem.values[numbers[-1]]), cost)
    return [problem.candidates[number][1]["fraction"] for number in numbers]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of GPyTorch: values without noise, and a sparse matrix
def test_several_tasks_are_one_small_part_and_all_data(problem):
    method = MultiTask(problem, 0, share=1 / 8)
    shares = asked_by(method, problem, 16)
    assert shares[:10] == [1 / 8] * 10
    assert set(shares) <= {1 / 8, 1.0}
    assert problem.regret(method.choice()) < 0.05


def test_a_list_of_two_tasks_ends(problem):
    method = MultiTask(problem, 1, share=1 / 64)
    method.known = {number: float(problem.values[number]) for number in method.order}
    assert method.ask() is None


def test_the_cost_of_a_task_is_that_of_its_fidelity(problem):
    method = MultiTask(problem, 0, share=1 / 8)
    asked_by(method, problem, 10)
    rows = torch.tensor([[0.5, 0.0], [0.5, 1.0]], dtype=torch.float64)
    small, whole = method._cost()(rows).flatten().tolist()
    assert small == pytest.approx(1 / 8, rel=0.05)
    assert whole > small  # a priori
    method.tell(problem.targets[0], 0.0, 1.0)
    assert method._cost()(rows)[1].item() == pytest.approx(1, rel=0.2)


def test_at_the_target_it_finds_the_best_with_few_evaluations(problem):
    regrets, _ = play(problem, EntropyAtTarget, 0, (12,))
    assert regrets[0] < 0.01
