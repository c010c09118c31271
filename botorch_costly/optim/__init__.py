"""Optimization of functions: minimization in a box, local optima, and merging of close optima."""

from botorch_costly.numerics.mean_shift import Modes, mean_shift
from botorch_costly.optim.far_rival import Rival, far_rival
from botorch_costly.optim.grid import (
    chain_local_maxima,
    far_rival_on_grid,
    grid_local_maxima,
    highest,
    lattice_neighbours,
)
from botorch_costly.optim.lbfgs import Minimum, minimize_batch
from botorch_costly.optim.local_optima import Ascent, ascend, distinct, local_optima
from botorch_costly.optim.maximize import Maximum, maximize
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
    "Maximum",
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
    "maximize",
    "mean_shift",
    "minimize_batch",
    "suppress",
]
