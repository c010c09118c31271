"""What an imitated processor changes, and what it leaves because all processors agree on it."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from tests.processors import Processor

def numbers():
    x = (0.6180339887 * torch.arange(1, 36, dtype=DTYPE)).frac().reshape(7, 5)
    lot = torch.linspace(-40, 40, 999, dtype=DTYPE)
    exact = {
        "arithmetic": x * x + x / 3 - x.sqrt(), "order": x.sort(0)[0], "largest": x.max(1)[0],
        "count": (x > 0.5).sum(), "one term": x[None].sum(0), "first": x.cumsum(1)[:, 0],
        "outer": x[:, :1] @ x[:1], "root": torch.linalg.cholesky(x[:, :1, None]),
        "ends": torch.linspace(0.1, 0.7, 5, dtype=DTYPE)[[0, -1]], "powers": x**2 + x**0.5 + x**-1,
        "points": torch.quasirandom.SobolEngine(3, seed=1, scramble=True).draw(4, dtype=DTYPE),
        "zero and one": torch.stack([x[0].sub(x[0]).exp(), x[0].softmax(-1)[None].log_softmax(0)[0]]),
        "probabilities": (lot.sigmoid() <= 1) & (lot.erf() <= 1) & (lot.abs().neg().exp() <= 1),
        "rises": lot.sigmoid().diff() >= 0, "huge": lot.new_tensor([HUGE]).exp().isfinite(),
        "infinite": lot.new_tensor([torch.inf, -torch.inf]).exp(),
    }
    open_ = {
        "exponential": x.exp(), "sum": x.sum(0), "product": x.T @ x, "normal": torch.randn(
            9, generator=torch.Generator().manual_seed(1), dtype=DTYPE),
        "solved": torch.linalg.solve(x[:5] + torch.eye(5, dtype=DTYPE), x[:5]),
    }
    return exact, open_

DTYPE, SIZE, HUGE = ARGUMENTS
exact, before = numbers()
processor = Processor({DTYPE: SIZE}, draw=1)
(still, there), (_, again) = numbers(), numbers()
for name, value in exact.items():
    assert torch.equal(value, still[name]), name
for name, value in before.items():
    assert torch.equal(there[name], again[name]), name
    assert not torch.equal(value, there[name]), name
for name in set(before) - {"solved"}:
    torch.testing.assert_close(there[name], before[name], rtol=1.2 * SIZE, atol=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    ["torch.float64, 1e-14, 709.0", "torch.float64, 1e-12, 709.0", "torch.float32, 1e-6, 88.0"],
)
def test_it_changes_what_processors_compute_in_their_own_way_and_nothing_else(arguments):
    """In a process of its own: torch computes otherwise from then on."""
    program = PROGRAM.replace("ARGUMENTS", arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
