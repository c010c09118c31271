"""The part of a subset model that earlier tasks explain."""

import numpy as np
import pytest
import torch

from botorch_costly.errors import InvalidShapeError
from botorch_costly.models import HyperparameterEnsemble, SubsetGP, sample_hyperparameters
from tests.oracles.earlier_means import prior

STUDIES = 3


def studied(x):
    """Return what three earlier tasks say of points, ``n x 3``."""
    return torch.stack([x[:, 0].sin(), x[:, 0].cos(), 2 * x[:, 0]], -1)


def data(n=7, seed=0):
    x = torch.rand(n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    y = (4 * x[:, :1]).sin() + 0.1 * x[:, 1:]
    return x, y


def made(x, y, batch=torch.Size()):
    rows = torch.cat([x, studied(x)], -1)
    return SubsetGP(
        rows.expand(*batch, *rows.shape),
        y.expand(*batch, *y.shape),
        fidelities=(1,),
        level=True,
        moving=(0,),
        earlier=range(2, 2 + STUDIES),
    )


def test_the_prior_is_that_of_the_twin():
    x, y = data()
    model, without = made(x, y), SubsetGP(x, y, fidelities=(1,), level=True, moving=(0,))
    model.mean_module.slope = -0.7
    model.mean_module.constant = torch.tensor(0.3)
    model.covar_module.kernels[-1].variance = 0.4
    rows = model.train_inputs[0]
    mean, cov = prior(studied(x).numpy(), -0.7, 0.3, 0.4)
    others = without.covar_module(x).to_dense().detach().numpy()
    np.testing.assert_allclose(model.mean_module(rows).detach().numpy(), mean, rtol=1e-6)
    found = model.covar_module(rows).to_dense().detach().numpy()
    np.testing.assert_allclose(found - others, cov, atol=1e-6)


def test_an_ensemble_appends_what_earlier_tasks_say():
    x, y = data()
    drawn = sample_hyperparameters(
        lambda batch: made(x, y, batch), torch.Generator().manual_seed(0), steps=8
    )
    model = HyperparameterEnsemble(drawn.models, studied)
    points = data(5, seed=1)[0]
    completed = torch.cat([points, studied(points)], -1)
    single, joint = model.posterior(points.unsqueeze(-2)), model.posterior(points)
    for found in (single.mean[..., 0, 0].mT, joint.mean[..., 0]):
        wanted = drawn.models.posterior(completed).mean[..., 0]
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    variance, cov = model.observed_with(points.unsqueeze(-2), model.project(points[:2]))
    noisy = drawn.models.posterior(completed, observation_noise=True)
    torch.testing.assert_close(variance.mT, noisy.variance[..., 0], rtol=1e-3, atol=1e-4)
    full = drawn.models.posterior(completed).distribution.covariance_matrix
    torch.testing.assert_close(cov.transpose(0, 1), full[..., :2], rtol=1e-3, atol=1e-4)


def test_columns_of_earlier_tasks_leave_one_for_the_configuration():
    x, y = data()
    with pytest.raises(InvalidShapeError, match="fidelities"):
        SubsetGP(x, y, fidelities=(1,), earlier=(0,))
