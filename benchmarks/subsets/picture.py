"""Pictures of what parts of the data say: ``python -m benchmarks fabolas-picture``.

From the stored rows of ``svm-grid``, as Figures 1 to 4 of the supplement of Fabolas:

- errors and seconds of ten configurations against the fraction, and what is believed of both after the
  first evaluations;
- the spread over repeated subsets, the noise of a Gaussian process of each fraction, and draws of the
  noise that the model has for it.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from botorch.models import SingleTaskGP
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.gaussian import fitted, standardized
from benchmarks.harness.record import Row, rows_of
from benchmarks.subsets import svm_grid
from benchmarks.subsets.methods import Ours
from benchmarks.subsets.tables import support_vectors
from botorch_costly import plotting
from botorch_costly.likelihoods import SubsetNoiseLikelihood
from botorch_costly.plain import as_number
from botorch_costly.problems import SubsetProblem
from botorch_costly.tuners.subsets import Sampling
from botorch_costly.tuners.subsets.belief import Beliefs, SubsetBelief, TemperedData

_FRACTIONS = list(svm_grid.REPEATS)
_SHOWN, _BELIEVED, _FIRST, _DRAWS = 10, 3, 30, 8
_NOTHING = 0.6  # error of machines that learn next to nothing
_NOISE_PRIOR = -6.0, 2.0  # log-normal, of the variance of standardized errors, which may be exact
_COLORS = (plotting.BLUE, plotting.ORANGE, plotting.GREEN)


def chosen(rows: Sequence[Row], count: int, fraction: float = 1.0) -> list[Row]:
    """Return rows spread evenly by their errors on all pictures, of those that learn on a fraction."""
    place = _FRACTIONS.index(fraction)
    learning = [row for row in rows if statistics.fmean(row["errors"][place]) < _NOTHING]
    ordered = sorted(learning, key=lambda row: row["errors"][-1][0])
    places = [round(k * (len(ordered) - 1) / (count - 1)) for k in range(count)]
    return [ordered[place] for place in places]


def subsets(rows: Sequence[Row]) -> Any:
    """Return a figure of errors and seconds against the fraction, and of the first beliefs in both."""
    figure = new_figure(10, 7.2)
    (left, middle), (below, right) = figure.subplots(2, 2)
    for row in chosen(rows, _SHOWN):
        for ax, name in ((left, "errors"), (middle, "seconds")):
            means = [statistics.fmean(values) for values in row[name]]
            ax.plot(_FRACTIONS, means, "o-", markersize=3, linewidth=1)
    left.set_ylabel("error on other pictures")
    middle.set_ylabel("seconds of training and validation")
    problem = support_vectors(0)
    told, first = _first_beliefs(problem)
    _errors_believed(below, rows, told, first.model)
    _costs_believed(right, rows, problem.costs, first)
    for ax in (left, middle, below, right):
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xlabel("fraction of the pictures")
    left.set_title("ten configurations", fontsize="medium")
    middle.set_title("what they cost", fontsize="medium")
    below.set_title(f"errors believed after {_FIRST} evaluations", fontsize="medium")
    right.set_title(f"costs believed after {_FIRST} evaluations", fontsize="medium")
    return figure


def _first_beliefs(problem: SubsetProblem) -> tuple[Tensor, Beliefs]:
    """Return the values of the first evaluations, and what is believed after them."""
    first = Ours(problem, 0)
    asked = []
    for _ in range(_FIRST):
        number = first.ask()
        assert number is not None
        asked.append(number)
        first.tell(number, float(problem.told[number]), float(problem.costs[number]))
    points = torch.stack([_encoded(*problem.candidates[number]) for number in asked])
    told = problem.told[asked]
    belief = SubsetBelief(
        svm_grid.SPACE, svm_grid.FRACTION, Sampling(), torch.Generator().manual_seed(0)
    )
    return told, belief.learn(TemperedData(points, told, problem.costs[asked]), points[:0])


def _along_fractions(row: Row) -> tuple[list[float], Tensor]:
    """Return fractions, and a configuration encoded with each of them, ``60 x d``."""
    ends = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    config = {"c": math.exp(row["log_c"]), "gamma": math.exp(row["log_gamma"])}
    fractions = [svm_grid.FRACTION.decode(end)["fraction"] for end in ends]
    encoded = svm_grid.SPACE.encode(config).expand(len(ends), -1)
    return [as_number("fraction", fraction) for fraction in fractions], torch.cat(
        [encoded, ends], -1
    )


def _errors_believed(ax: Any, rows: Sequence[Row], told: Tensor, model: Any) -> None:
    """Draw means and bands of two standard deviations of three configurations, and what is true."""
    for row, color in zip(chosen(rows, _BELIEVED), _COLORS, strict=True):
        fractions, at = _along_fractions(row)
        with torch.no_grad():
            posterior = model.posterior(at.unsqueeze(-2))
        mean, spread = _averaged(posterior.mean, posterior.variance)
        middle = -(told.mean() + told.std(correction=0) * mean)
        half = 2 * told.std(correction=0) * spread
        ax.plot(fractions, middle.exp(), color=color)
        low, high = (middle - half).exp(), (middle + half).exp()
        ax.fill_between(fractions, low, high, color=color, alpha=0.15)
        truth = [statistics.fmean(values) for values in row["errors"]]
        ax.plot(_FRACTIONS, truth, "o", color=color, markersize=4)
    ax.set_ylabel("error; dots: true")
    ax.set_ylim(0.01, 2)


def _costs_believed(ax: Any, rows: Sequence[Row], costs: Tensor, first: Beliefs) -> None:
    """Draw predicted and true costs of three configurations, in means of a whole training."""
    for row, color in zip(chosen(rows, _BELIEVED), _COLORS, strict=True):
        fractions, at = _along_fractions(row)
        ax.plot(fractions, first.unit * first.cost(at).squeeze(-1), color=color, linestyle="--")
        truth = costs.reshape(len(rows), -1)[rows.index(row)]  # candidates are row by row
        ax.plot(_FRACTIONS, truth, "o", color=color, markersize=4)
    ax.set_ylabel("cost in whole trainings; dots: true")


def _encoded(config: Any, fidelities: Any) -> Tensor:
    return torch.cat([svm_grid.SPACE.encode(config), svm_grid.FRACTION.encode(fidelities)])


def _averaged(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over all draws of hyperparameters, each ``(n,)``."""
    middle = mean.mean(-3).flatten()
    total = (variance + mean.square()).mean(-3).flatten() - middle.square()
    return middle, total.sqrt()


def noise(rows: Sequence[Row]) -> Any:
    """Return a figure of the spread over subsets against the fraction, and of noise by models."""
    figure = new_figure(10, 7.2)
    (left, fitted_to_each), (middle, right) = figure.subplots(2, 2)
    repeated = [place for place, many in enumerate(svm_grid.REPEATS.values()) if many > 1]
    for row in chosen(rows, _SHOWN, fraction=1 / 128):
        spreads = [statistics.stdev(row["errors"][place]) for place in repeated]
        left.plot(
            [_FRACTIONS[place] for place in repeated], spreads, "o-", markersize=3, linewidth=1
        )
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_ylabel("standard deviation of the error")
    left.set_title("measured: ten configurations that learn", fontsize="medium")
    _by_fraction(fitted_to_each, rows, repeated)
    _drawn(middle, as_printed=False)
    middle.set_title("drawn: alpha (1 - s)^beta, the default", fontsize="medium")
    _drawn(right, as_printed=True)
    right.set_title("drawn: alpha s^beta, as printed", fontsize="medium")
    for ax in (left, fitted_to_each, middle, right):
        ax.set_xlabel("fraction of the pictures")
    return figure


def _by_fraction(ax: Any, rows: Sequence[Row], repeated: Sequence[int]) -> None:
    """Draw mean variances over subsets, and the noise variance of a Gaussian process of each fraction."""
    observed = [
        statistics.fmean(statistics.pvariance(row["errors"][place]) for row in rows)
        for place in repeated
    ]
    estimated = [noise_of_fraction(rows, place) for place in range(len(_FRACTIONS))]
    ax.plot(
        [_FRACTIONS[place] for place in repeated],
        observed,
        "o",
        color=plotting.VERMILION,
        label="subsets",
    )
    ax.plot(_FRACTIONS, estimated, "s", color=plotting.BLUE, label="a Gaussian process's noise")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_ylabel("variance of the error")
    ax.set_title("all configurations, each fraction alone", fontsize="medium")
    ax.legend(fontsize="small")


def noise_of_fraction(rows: Sequence[Row], place: int) -> float:
    """Return the noise variance of a GP fitted to an error of each configuration at a fraction.

    Which of its subsets counts is drawn: those of one number are the same for all configurations.
    """
    X = (
        torch.tensor([[row["log_c"], row["log_gamma"]] for row in rows], dtype=torch.float64) / 20
        + 0.5
    )
    random = np.random.default_rng(0)
    drawn = [random.choice(row["errors"][place]) for row in rows]
    errors = torch.tensor(drawn, dtype=torch.float64)
    y = standardized(errors).unsqueeze(-1)
    likelihood = GaussianLikelihood(LogNormalPrior(*_NOISE_PRIOR))
    model = fitted(SingleTaskGP(X, y, likelihood=likelihood, outcome_transform=None))
    return float(model.likelihood.noise.detach()) * float(errors.var())


def _drawn(ax: Any, *, as_printed: bool) -> None:
    """Draw standard deviations for hyperparameters from the priors of the supplement."""
    torch.manual_seed(0)
    shares = torch.linspace(0, 1, 200, dtype=torch.float64).unsqueeze(-1)
    for _ in range(_DRAWS):
        model = SubsetNoiseLikelihood(as_printed=as_printed).double().noise_covar
        model.alpha = model.alpha_prior.sample()
        model.beta = model.beta_prior.sample()
        with torch.no_grad():
            ax.plot(shares, model(shares).diagonal().sqrt(), linewidth=1)
    ax.set_ylabel("standard deviation")


def main(arguments: list[str]) -> None:
    """Draw what is stored."""
    options = parser_for("fabolas-picture", "what parts of the data say").parse_args(arguments)
    rows = rows_of(svm_grid.NAME, options.results)
    save(subsets(rows), options.results / "fabolas-subsets.png")
    save(noise(rows), options.results / "fabolas-noise.png")
