"""The information of observations about the index of the smallest value."""

import math

import pytest
import torch

from botorch_costly.numerics import information
from botorch_costly.numerics.ep import minimum


def naive(c, least, nodes):
    """Bayes' rule and the sums of the module's notes, one number after the other."""
    t, log_weight = information.hermite(nodes, c)
    actual = torch.zeros(c.shape[:-1], dtype=c.dtype)
    for b in range(c.shape[0]):
        for k in range(c.shape[1]):
            x, joint = c[b, k], []
            for node, weight in zip(t.tolist(), log_weight.exp().tolist(), strict=True):
                likely = []
                for log_p, pull, loss in zip(
                    least.log_prob[k], least.pull[k], least.loss[k], strict=True
                ):
                    left = max(float(1 - x @ loss @ x), 1e-3)
                    error = (node - float(x @ pull)) ** 2 / left
                    likely.append(math.exp(float(log_p) - 0.5 * error) / math.sqrt(left))
                joint.append([weight, [share / sum(likely) for share in likely]])
            p = [sum(weight * q[j] for weight, q in joint) for j in range(c.shape[-1])]
            for weight, q in joint:
                actual[b, k] += weight * sum(
                    share * math.log(share / of)
                    for share, of in zip(q, p, strict=True)
                    if share > 0
                )
    return actual


@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_the_closed_form_is_bayes_rule_at_each_node(at_once, monkeypatch):
    monkeypatch.setattr(information, "_AT_ONCE", at_once)
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    cov = root @ root.mT / 5 + 0.05 * torch.eye(5, dtype=torch.float64)
    mean = torch.randn(2, 5, generator=generator, dtype=torch.float64)
    least = minimum(mean, cov)
    c = 0.6 * torch.randn(7, 2, 5, generator=generator, dtype=torch.float64)
    expected = naive(c, least, 8)
    torch.testing.assert_close(information.by_moments(c, least, 8), expected)
    assert expected.min() < 0.1 < expected.max()
