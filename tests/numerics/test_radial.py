"""The profiles against GPyTorch's kernels, and their derivatives against autograd and differences."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_costly.numerics.radial import (
    ARMS,
    FAMILIES,
    NUGGET,
    PROFILES,
    SCALED,
    SMOOTHNESS,
)

ALL = [*SCALED, ARMS]


def distances(**kwargs):
    return torch.linspace(0.05, 6, 40, dtype=torch.float64, **kwargs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_profile_is_that_of_gpytorch(family, tkwargs):
    kernel = MaternKernel(SMOOTHNESS[family]) if family in SMOOTHNESS else RBFKernel()
    kernel = kernel.to(**tkwargs)
    kernel.lengthscale = 1.0
    r = torch.linspace(0, 4, 30, **tkwargs)
    expected = kernel(r.unsqueeze(-1), r.new_zeros(1, 1)).to_dense().squeeze(-1).detach()
    profile = PROFILES[family]
    assert profile.constant == pytest.approx(math.sqrt(2 * SMOOTHNESS.get(family, 0.5)))
    phi = profile.phi(profile.constant * r)
    assert phi.dtype == tkwargs["dtype"]
    tolerance = 1e-12 if tkwargs["dtype"] == torch.float64 else 1e-5
    torch.testing.assert_close(phi, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", SCALED)
def test_psi_and_chi_are_the_derivatives(family):
    s, profile = distances(requires_grad=True), PROFILES[family]
    (slope,) = torch.autograd.grad(profile.phi(s).sum(), s)
    s = s.detach()
    phi, psi = profile.slope(s)
    torch.testing.assert_close(phi, profile.phi(s), rtol=0, atol=0)
    torch.testing.assert_close(psi, -slope / s, rtol=1e-12, atol=1e-14)
    step = 1e-6
    change = (profile.slope(s + step)[1] - profile.slope(s - step)[1]) / (2 * step)
    torch.testing.assert_close(profile.chi(s, phi, psi), -change / s, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", SCALED)
def test_autograd_differentiates_a_profile(family):
    assert torch.autograd.gradcheck(PROFILES[family].phi, (distances(requires_grad=True),))


@pytest.mark.parametrize("family", ALL)
def test_everything_is_finite_where_points_coincide(family, tkwargs):
    profile = PROFILES[family]
    s = torch.tensor([0.0, 1e-300, 1e-12, 1e-7], **tkwargs)
    phi, psi = profile.slope(s)
    assert phi[0] == 1
    for part in (phi, psi, profile.chi(s, phi, psi)):
        assert part.dtype == tkwargs["dtype"]
        assert part.isfinite().all()
    if family in ("matern12", ARMS):
        assert (psi[:3] == 0).all()


def test_a_nugget_is_a_share_that_a_configuration_has_for_itself():
    s = torch.tensor([0.0, 1e-6, 0.5, 3.0], dtype=torch.float64)
    phi, smooth = PROFILES[NUGGET].phi(s), PROFILES["matern52"].phi(s)
    torch.testing.assert_close(phi[1:], 0.9 * smooth[1:], rtol=1e-14, atol=0)
    assert phi[0] == pytest.approx(1.0, abs=1e-15)


def test_arms_are_correlated_with_themselves_alone():
    phi, psi = PROFILES[ARMS].slope(torch.arange(4.0))
    assert phi.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert not psi.any()


@pytest.mark.parametrize("family", ALL)
def test_distances_are_left_as_they_are(family):
    s = distances()
    profile = PROFILES[family]
    profile.chi(s, *profile.slope(s))
    assert torch.equal(s, distances())


def test_every_family_has_a_profile():
    assert set(PROFILES) == set(ALL)
