"""The transfer acquisition function."""

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim import optimize_acqf
from botorch.utils.datasets import SupervisedDataset

from botorch_costly.baselines import TAF
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.models.related_tasks import ensemble, observed, points, process
from tests.oracles import acquisition as plain, transfer as oracle


@pytest.fixture(scope="module")
def tasks():
    return ensemble()


@pytest.mark.parametrize("bandwidth", [0.1, 0.6, 2.0])
def test_it_is_the_formula_of_the_paper(tasks, bandwidth):
    (X, Y), model, asked = observed(6), process(6), points(12, 5)
    values = TAF(model, tasks, X, Y, bandwidth=bandwidth)(asked.unsqueeze(-2)).tolist()
    seen, y, scale = tasks.means(X).tolist(), Y.squeeze(-1).tolist(), Y.std(correction=0).item()
    for value, x in zip(values, asked, strict=True):
        own = model.posterior(x.unsqueeze(0))
        ei = plain.ei(own.mean.item(), own.variance.item(), max(y)) / scale
        means = tasks.means(x.unsqueeze(0)).squeeze(-1).tolist()
        assert value == pytest.approx(
            oracle.taf(ei, means, seen, y, bandwidth), rel=1e-6, abs=1e-12
        )


def test_the_target_itself_counts_fully_and_its_negative_not_at_all(tasks):
    weights = TAF(process(9), tasks, *observed(9)).task_weights
    assert weights[0] > 0.6
    assert weights[2] == 0


def test_one_observation_ranks_nothing(tasks):
    assert TAF(process(5), tasks, *observed(1)).task_weights.tolist() == [0.75] * 3


def test_the_order_of_tasks_and_the_units_of_the_target_do_not_matter(tasks):
    X, Y = observed(6)
    asked = points(5, 6).unsqueeze(-2)
    values = TAF(process(6), tasks, X, Y, bandwidth=1.0)(asked)
    other = TAF(process(6), ensemble((2, 0, 1)), X, Y, bandwidth=1.0)(asked)
    torch.testing.assert_close(other, values, rtol=1e-3, atol=1e-4)


def test_asking_twice_gives_the_same(tasks):
    acquisition, X = TAF(process(6), tasks, *observed(6)), points(5, 6).unsqueeze(-2)
    assert torch.equal(acquisition(X), acquisition(X))


def test_botorch_maximizes_it(tasks):
    acquisition = TAF(process(6), tasks, *observed(6))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    X, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=32)
    assert X.shape == (1, 2)
    assert value >= acquisition(points(20, 4).unsqueeze(-2)).max() - 1e-3


def test_what_does_not_fit_is_refused(tasks):
    X, Y = observed(5)
    for bad in ((X[:0], Y[:0]), (X, Y.squeeze(-1)), (X[:, :1], Y)):
        with pytest.raises(InvalidShapeError, match="X, Y"):
            TAF(process(5), tasks, *bad)
    with pytest.raises(InvalidArgumentError, match="bandwidth"):
        TAF(process(5), tasks, X, Y, bandwidth=0.0)
    with pytest.raises(InvalidArgumentError, match="finite"):
        TAF(process(5), tasks, X, Y * torch.nan)


@pytest.mark.parametrize("by_outcome", [False, True])
def test_botorch_constructs_it_from_the_data_of_the_target(tasks, by_outcome):
    (X, Y), model, asked = observed(6), process(6), points(4, 5).unsqueeze(-2)
    data = SupervisedDataset(X, Y, feature_names=["a", "b"], outcome_names=["y"])
    kwargs = get_acqf_input_constructor(TAF)(
        model=model, training_data={"y": data} if by_outcome else data, tasks=tasks, bandwidth=0.6
    )
    assert torch.equal(TAF(**kwargs)(asked), TAF(model, tasks, X, Y, bandwidth=0.6)(asked))
