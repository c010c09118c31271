"""Optimization of callables: minimize in a box, find local optima, merge those that are one."""

from botorch_costly.numerics.mean_shift import Modes, mean_shift
from botorch_costly.optim.grid import (
    chain_local_maxima,
    far_rival_on_grid,
    grid_local_maxima,
    highest,
    lattice_neighbours,
)
from botorch_costly.optim.lbfgs import Minimum, minimize_batch
from botorch_costly.optim.local_optima import (
    Ascent,
    Rival,
    ascend,
    distinct,
    far_rival,
    local_optima,
)
from botorch_costly.optim.smooth import (
    AgingFunction,
    SmoothFunction,
    by_autograd,
    from_callable,
)
from botorch_costly.optim.suppression import Optima, suppress

__all__ = [
    "AgingFunction",
    "Ascent",
    "Minimum",
    "Modes",
    "Optima",
    "Rival",
    "SmoothFunction",
    "ascend",
    "by_autograd",
    "chain_local_maxima",
    "distinct",
    "far_rival",
    "far_rival_on_grid",
    "from_callable",
    "grid_local_maxima",
    "highest",
    "lattice_neighbours",
    "local_optima",
    "mean_shift",
    "minimize_batch",
    "suppress",
]
