"""What every model must be."""

import copy
import io
import pickle

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_costly.baselines import EmpiricalPriorGP
from botorch_costly.errors import (
    CostlyError,
    InvalidArgumentError,
    InvalidShapeError,
    StateMismatchError,
)
from botorch_costly.models import DriftingGrid
from botorch_costly.models.asked_anew import AskedAnewGP
from tests.registry.models import MODELS

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


@pytest.fixture(params=MODELS)
def case(request):
    return MODELS[request.param]


def double(case, seen=True):
    return case.make({"dtype": torch.float64}, seen)


def parts(posterior):
    return posterior.mean, posterior.mvn.covariance_matrix


def assert_same_belief(one, other, X):
    for a, b in zip(parts(one.posterior(X)), parts(other.posterior(X)), strict=True):
        assert torch.equal(a, b)


def test_covariances_are_symmetric_and_positive_semidefinite(case, generator, tkwargs):
    X = case.questions(20, generator).to(**tkwargs)
    mean, covariance = parts(case.make(tkwargs, True).posterior(X))
    assert mean.shape == (20, 1)
    tolerance = 200 * torch.finfo(tkwargs["dtype"]).eps
    torch.testing.assert_close(covariance, covariance.mT, rtol=tolerance, atol=tolerance)
    assert torch.linalg.eigvalsh(covariance).min() > -tolerance


def test_dtype_and_device_are_kept(case, generator, tkwargs):
    X = case.questions(4, generator).to(**tkwargs)
    posterior = case.make(tkwargs, True).posterior(X, observation_noise=True)
    for part in (*parts(posterior), posterior.rsample()):
        assert part.dtype == tkwargs["dtype"]
        assert part.device.type == tkwargs["device"].type


def test_inputs_of_another_shape_are_refused_by_name(case, generator):
    """The kind: a matrix of the wrong width, a row without a matrix, or no tensor at all."""
    model, X = double(case), case.questions(3, generator)
    more, less = torch.cat([X, X[:, :1]], -1), X[:, :-1]
    for wrong in (more, less, X[0], X[:, :0], torch.tensor(1.0), X.tolist(), "x", None):
        with pytest.raises(InvalidShapeError, match=r"^X: Expected"):
            model.posterior(wrong)
    assert model.posterior(X.round().long()).mean.shape == (3, 1)


@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_a_batch_of_questions_is_a_loop(case, batch, generator):
    number = torch.Size(batch).numel()
    X = torch.stack([case.questions(4, generator) for _ in range(number)])
    model = double(case)
    many = model.posterior(X.view(*batch, *X.shape[1:]))
    mean, covariance = parts(many)
    assert mean.shape == (*batch, 4, 1)
    noisy = model.posterior(X.view(*batch, *X.shape[1:]), observation_noise=True)
    assert noisy.rsample(torch.Size([2])).shape == (2, *batch, 4, 1)
    for i, x in enumerate(X):
        alone_mean, alone_covariance = parts(model.posterior(x))
        torch.testing.assert_close(mean.view(number, 4, 1)[i], alone_mean)
        torch.testing.assert_close(covariance.view(number, 4, 4)[i], alone_covariance)


def test_single_questions_are_the_margins_of_a_joint_one(case, generator):
    X = case.questions(6, generator)
    model = double(case)
    joint, single = model.posterior(X), model.posterior(X.unsqueeze(-2))
    torch.testing.assert_close(single.mean.view(6, 1), joint.mean)
    torch.testing.assert_close(single.variance.view(6, 1), joint.variance)


def test_noise_adds_to_the_diagonal_alone(case, generator):
    X = case.questions(4, generator)
    model = double(case)
    _, covariance = parts(model.posterior(X))
    _, noisy = parts(model.posterior(X, observation_noise=True))
    added = noisy - covariance
    assert (added.diagonal() > 0).all()
    torch.testing.assert_close(added, added.diagonal().diag(), rtol=0, atol=1e-12)


def test_what_was_seen_matters(case, generator):
    X = case.questions(4, generator)
    before, after = (double(case, seen).posterior(X) for seen in (False, True))
    assert not torch.equal(before.mean, after.mean)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_the_same_belief(case, duplicate, generator):
    X = case.questions(4, generator)
    model = double(case)
    assert_same_belief(duplicate(model), model, X)
    model.posterior(X)  # whatever it caches must not stand in the way
    assert_same_belief(duplicate(model), model, X)


def test_a_state_goes_through_a_file(case, generator):
    X = case.questions(4, generator)
    model, file = double(case), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = double(case, seen=False)
    other.posterior(X)  # whatever it caches is of another belief
    other.load_state_dict(torch.load(file, weights_only=True))
    assert_same_belief(other, model, X)


def test_the_global_generator_and_dtype_are_left_alone(case, generator):
    state = torch.get_rng_state()
    double(case).posterior(case.questions(4, generator))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("name", MODELS)
def test_models_are_converted_with_all_that_they_hold(name, generator):
    """The kind of fault: a promise of BoTorch's ``Model`` that a model of ours breaks."""
    case = MODELS[name]
    X, single = case.questions(4, generator), {"dtype": torch.float32}
    model = double(case)
    expected = model.posterior(X).mean
    model.float()
    found = model.posterior(X.to(**single))  # a grid's points are numbers in any dtype
    assert found.mean.dtype == torch.float32
    torch.testing.assert_close(found.mean.double(), expected, rtol=1e-2, atol=1e-2)
    assert model.double().posterior(X).mean.dtype == torch.float64


def test_known_noise_is_added_as_it_is(case, generator):
    X = case.questions(3, generator)
    model, noise = double(case), torch.tensor([[0.1], [0.5], [2.0]], dtype=torch.float64)
    added = model.posterior(X, observation_noise=noise).variance - model.posterior(X).variance
    # BoTorch adds it in the units of a model's own targets.
    torch.testing.assert_close(added / added[0], noise / noise[0])


def test_a_transform_is_applied_to_the_posterior(case, generator):
    X, model = case.questions(3, generator), double(case)
    twice = ScalarizedPosteriorTransform(torch.tensor([2.0], dtype=torch.float64), offset=1.0)
    plain, other = model.posterior(X), model.posterior(X, posterior_transform=twice)
    torch.testing.assert_close(other.mean, 1 + 2 * plain.mean)
    torch.testing.assert_close(other.variance, 4 * plain.variance)


@pytest.mark.parametrize(
    "noise", [torch.ones(7, 1), -torch.ones(3, 1), torch.tensor([[1.0], [torch.nan], [1.0]])]
)
def test_noise_that_is_no_variance_of_each_value_is_refused(case, noise, generator):
    X, model = case.questions(3, generator), double(case)
    with pytest.raises(CostlyError, match="observation_noise: Expected"):
        model.posterior(X, observation_noise=noise.double())


def test_the_one_outcome_can_be_picked_and_no_other(case, generator):
    X, model = case.questions(3, generator), double(case)
    assert_same_belief(model.subset_output([0]), model, X)
    with pytest.raises(InvalidArgumentError, match="idcs: Expected"):
        model.subset_output([1])


def test_further_observations_are_learnt_from_or_refused_by_name(case, generator):
    X, model = case.questions(2, generator), double(case)
    model.posterior(X)  # GPyTorch conditions its caches
    before = model.posterior(X)
    Y = before.mean.detach() + 3.0
    if isinstance(model, DriftingGrid):
        with pytest.raises(InvalidArgumentError, match="condition_on_observations"):
            model.condition_on_observations(X, Y)
        return
    after = model.condition_on_observations(X, Y).posterior(X)
    assert (after.mean > before.mean).all()
    if not isinstance(model, EmpiricalPriorGP):  # which allows for few tasks by the observations
        assert (after.variance < before.variance + 1e-9).all()
    for x, y in [(X[:, :0], Y), (X, Y[:1]), (X, Y * torch.nan)]:
        with pytest.raises(CostlyError, match="Expected"):
            model.condition_on_observations(x, y)
    with pytest.raises(InvalidArgumentError, match="one noise"):
        model.condition_on_observations(X, Y, noise=torch.ones_like(Y))


def test_fantasies_are_of_each_draw_or_refused_by_name(case, generator):
    X, model = case.questions(2, generator), double(case)
    model.posterior(X)
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=1)
    if isinstance(model, AskedAnewGP):
        assert model.fantasize(X, sampler).posterior(X).mean.shape == (3, 2, 1)
        return
    with pytest.raises(InvalidArgumentError, match="fantasize: Expected"):
        model.fantasize(X, sampler)


def longer(part):
    """Return a state whose tensors have a row too many."""
    if isinstance(part, dict):
        return {name: longer(one) for name, one in part.items()}
    some = isinstance(part, torch.Tensor) and part.dim() > 0 and len(part) > 0
    return torch.cat([part, part[:1]]) if some else part


# A StreamingGP takes over a belief of any size, hyperparameters and all.
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("StreamingGP")])
@pytest.mark.parametrize("damaged", [longer, lambda state: {}])
def test_a_state_of_other_sizes_is_refused_by_name_and_changes_nothing(name, damaged, generator):
    case = MODELS[name]
    X, model = case.questions(3, generator), double(case)
    before = copy.deepcopy(model)
    state = damaged(dict(double(case, seen=False).state_dict()))
    with pytest.raises(StateMismatchError, match=r"state of \w+.*: Expected"):
        model.load_state_dict(state)
    assert_same_belief(model, before, X)
