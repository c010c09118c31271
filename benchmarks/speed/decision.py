"""One decision after a query, from the same state, by this package and by BoTorch's public pieces.

Both learn one reward, climb the same upper confidence bound from the same 50 starts in the same cube,
merge where the climbs ended, and ask the same rule whether to query again. BoTorch's pieces are
``condition_on_observations``, ``optimize_acqf`` and the posterior; the merging is scikit-learn's
``MeanShift``. A lone optimum is compared with its far rival, which both find by one function.

Hyperparameters are not refitted. No search of ours knows where an earlier one ended.
"""

from collections.abc import Callable, Iterator, Sequence
from math import nan
from statistics import mean, median
from typing import Any, NamedTuple

import torch
from botorch.optim import optimize_acqf
from sklearn.cluster import MeanShift
from torch import Tensor

from benchmarks.harness.clock import timed
from benchmarks.harness.decisions import BANDWIDTH, BETA, RESTARTS, decider
from benchmarks.harness.record import Row
from benchmarks.priced.continuous import cube
from benchmarks.speed.problems import FORGETTING, NOISE, Problem, botorch_model, draw, streaming
from botorch_costly.acquisition import TimeVaryingUCB, at_round
from botorch_costly.optim.climb import climb
from botorch_costly.optim.far_rival import far_rival
from botorch_costly.optim.starts import draw_starts
from botorch_costly.optim.suppression import Optima
from botorch_costly.query import Comparison, ConfidenceQuery, Progress

RULE = ConfidenceQuery(0.9)
CANDIDATES = 128  # for the rival of a lone optimum
AS_GOOD = 1e-8  # shortfall of an acquisition value that is rounding
_ALIKE = 1e-4  # two confidences
_STAYS = 1e-3  # what does not move farther than this was an optimum
SIZES, DIMS = (50, 200, 500, 1000, 2000, 5000), (1, 8, 20)
LARGEST_FOR_BOTORCH = 1000
GRID_RATIO = 0.5  # one lengthscale for the grid, so that its cells differ in size only


class Decision(NamedTuple):
    """What one way decided."""

    plays: Tensor  # shape: (d,)
    optima: Tensor  # shape: (m, d)
    query: bool
    confidence: float


class Case:
    """A state in which both ways decide, over and over."""

    def __init__(self, problem: Problem, seed: int, *, against_botorch: bool = True) -> None:
        self.problem, self.seed = problem, seed
        self.belief = streaming(problem)
        self.state = self.belief.get_extra_state()
        self.model = botorch_model(problem) if against_botorch else None
        self.now = len(problem.inputs)
        self.progress = Progress(self.now + 1, self.now, None, FORGETTING)

    @property
    def device(self) -> torch.device:
        """Where all of it is."""
        return self.problem.inputs.device

    def generator(self) -> torch.Generator:
        """Return a source of starts, always the same ones."""
        return torch.Generator(device=self.device).manual_seed(self.seed)

    def starts(self, generator: torch.Generator) -> Tensor:
        """Return the starts that ours would draw, ``50 x d``."""
        return draw_starts(RESTARTS, "sobol", self.problem.bounds, generator)

    def ours(self) -> Callable[[], Decision]:
        """Return our decision, ready to be made from the state before the query."""
        problem, belief, generator = self.problem, self.belief, self.generator()
        belief.set_extra_state(self.state)
        search, strategy = decider(cube(problem.dim), RULE, self.device, problem.inputs.dtype)

        def decide() -> Decision:
            belief.observe(problem.inputs[-1], float(problem.rewards[-1]))
            proposal = strategy.decide(belief, self.progress, True, generator)
            optima, verdict = search.state_dict()["warm_starts"], proposal.verdict
            query, sure = bool(verdict.query), float(verdict.confidence)
            return Decision(proposal.query_at.to(self.device), optima.to(self.device), query, sure)

        return decide

    def botorchs(self) -> Callable[[], Decision]:
        """Return BoTorch's decision, ready to be made from the same state with the same starts."""
        bounds, generator = self.problem.bounds, self.generator()
        starts = self.starts(generator)

        def decide() -> Decision:
            acquisition = self.bound()
            ends, values = optimize_acqf(
                acquisition,
                bounds,
                q=1,
                num_restarts=RESTARTS,
                batch_initial_conditions=starts.unsqueeze(-2),
                return_best_only=False,
            )
            optima = _best_of_each(ends.squeeze(-2), values)
            points = optima.points
            if len(points) == 1:
                rival = _rival(acquisition, optima, bounds, starts, generator)
                points = torch.cat([points, rival])
            with torch.no_grad():
                posterior = acquisition.model.posterior(
                    at_round(points, acquisition.now).unsqueeze(-2)
                )
            mean, variance = posterior.mean.flatten(), posterior.variance.flatten()
            there = torch.ones_like(mean[1:], dtype=torch.bool)
            beta = mean.new_tensor(BETA)
            comparison = Comparison(mean[0], variance[0], mean[1:], variance[1:], None, there, beta)
            verdict = RULE(comparison, self.progress, generator)
            query, sure = bool(verdict.query), float(verdict.confidence)
            return Decision(points[0], optima.points, query, sure)

        return decide

    def bound(self) -> TimeVaryingUCB:
        """Return the bound of BoTorch's model after the query."""
        assert self.model is not None
        x, y = self.problem.inputs[-1:], self.problem.rewards[-1:].unsqueeze(-1)
        with torch.no_grad():
            model = self.model.condition_on_observations(x, y, noise=torch.full_like(y, NOISE))
        return TimeVaryingUCB(model, BETA, self.now)

    def settled(self, points: Tensor) -> int:
        """Return how many of the points a climb that goes on from them does not move."""
        bound = TimeVaryingUCB(self.belief, BETA, self.now)
        ends = climb(bound, points, bandwidth=_STAYS, max_iter=100, warm=len(points))
        return int((torch.linalg.vector_norm(ends.points - points, dim=-1) <= _STAYS).sum())


def _best_of_each(ends: Tensor, values: Tensor) -> Optima:
    """Return the best end of each cluster, best first."""
    labels = MeanShift(bandwidth=BANDWIDTH).fit(ends.cpu().numpy()).labels_
    member = torch.as_tensor(labels, device=ends.device)
    clusters = [(member == label).nonzero().squeeze(-1) for label in range(int(labels.max()) + 1)]
    best = torch.stack([rows[values[rows].argmax()] for rows in clusters if len(rows)])
    best = best[values[best].argsort(descending=True)]
    return Optima(ends[best], values[best])


def _rival(
    acquisition: TimeVaryingUCB,
    optima: Optima,
    bounds: Tensor,
    starts: Tensor,
    generator: torch.Generator,
) -> Tensor:  # shape: (1, d), or (0, d) if there is none
    options: dict[str, Any] = {"num_candidates": CANDIDATES, "generator": generator}
    rival = far_rival(acquisition, optima, bounds, BANDWIDTH, starts, **options)
    return optima.points[:0] if rival is None else rival.point.unsqueeze(0)


class Pair(NamedTuple):
    """Both ways on one case."""

    ours_ms: float
    botorch_ms: float
    ahead: float  # of the acquisition value ours reached over BoTorch's
    settled: int  # optima of BoTorch's way that are some
    ours: Decision
    botorchs: Decision


def turn(case: Case) -> Pair:
    """Decide both ways, one after the other."""
    ours_ms, ours = timed(case.ours(), case.device)
    botorch_ms, botorchs = timed(case.botorchs(), case.device)
    with torch.no_grad():
        values = case.bound()(torch.stack([ours.plays, botorchs.plays]).unsqueeze(-2))
    ahead, settled = float(values[0] - values[1]), case.settled(botorchs.optima)
    return Pair(ours_ms, botorch_ms, ahead, settled, ours, botorchs)


def quality(n: int, dim: int, problems: int, seed: int, device: str) -> Row:
    """Return how both ways compare over many problems, one turn on each."""
    first = turn(Case(draw(n, dim, seed, device), seed))
    seeds = range(seed, seed + problems)
    pairs = [turn(Case(draw(n, dim, number, device), number)) for number in seeds]
    ahead = [pair.ahead for pair in pairs]
    return {
        "part": "decision",
        "device": device,
        "observations": n,
        "dim": dim,
        "problems": problems,
        **_medians(first, pairs),
        "as_good": _share(gain >= -AS_GOOD for gain in ahead),
        "better": _share(gain > AS_GOOD for gain in ahead),
        "least_ahead": min(ahead),
        "behind": {
            str(number): gain for number, gain in zip(seeds, ahead, strict=True) if gain < -AS_GOOD
        },
        "our_optima": mean(len(pair.ours.optima) for pair in pairs),
        "botorch_optima": mean(len(pair.botorchs.optima) for pair in pairs),
        "botorch_settled": mean(pair.settled for pair in pairs),
        "same_optima": _share(len(pair.ours.optima) == pair.settled for pair in pairs),
        "as_many_optima": _share(len(pair.ours.optima) >= pair.settled for pair in pairs),
        "same_verdict": _share(pair.ours.query == pair.botorchs.query for pair in pairs),
        "same_confidence": _share(
            abs(pair.ours.confidence - pair.botorchs.confidence) <= _ALIKE for pair in pairs
        ),
        "queries": _share(pair.ours.query for pair in pairs),
    }


def grid(
    sizes: Sequence[int],
    dims: Sequence[int],
    repeats: int,
    seed: int,
    device: str,
    largest: int = LARGEST_FOR_BOTORCH,
) -> Iterator[Row]:
    """Yield milliseconds by size; BoTorch's up to ``largest`` observations."""
    for dim in dims:
        for n in sizes:
            case = Case(draw(n, dim, seed, device, GRID_RATIO), seed, against_botorch=n <= largest)
            cell = {"part": "grid", "device": device, "observations": n, "dim": dim}
            yield {**cell, "repeats": repeats, **_cell(case, repeats)}


def _cell(case: Case, repeats: int) -> Row:
    if case.model is not None:
        first, *pairs = [turn(case) for _ in range(1 + repeats)]
        return _medians(first, pairs)
    first_ms, *ours = [timed(case.ours(), case.device)[0] for _ in range(1 + repeats)]
    nothing = dict.fromkeys(("botorch_ms", "ratio", "first_botorch_ms"))
    return {"ours_ms": median(ours), "first_ours_ms": first_ms, **nothing}


def _medians(first: Pair, pairs: Sequence[Pair]) -> Row:
    return {
        "ours_ms": median(pair.ours_ms for pair in pairs),
        "botorch_ms": median(pair.botorch_ms for pair in pairs),
        "ratio": median(pair.botorch_ms / pair.ours_ms for pair in pairs),
        "first_ours_ms": first.ours_ms,
        "first_botorch_ms": first.botorch_ms,
    }


def _share(true: Iterator[bool]) -> float:
    counted = list(true)
    return sum(counted) / len(counted)


def describe(row: Row) -> str:
    """Return a row in words."""
    head = f"n = {row['observations']:>4}, d = {row['dim']:>2}: ours {row['ours_ms']:8.2f} ms"
    if row["botorch_ms"] is None:
        return f"{head}, BoTorch not timed"
    head += f", BoTorch {row['botorch_ms']:8.1f} ms, {row['ratio']:.1f} times"
    if row["part"] == "grid":
        return head
    return (
        f"{head} (first calls {row['first_ours_ms']:.0f} and {row['first_botorch_ms']:.0f} ms)\n"
        f"  of {row['problems']} problems: as good {row['as_good']:.1%}, better {row['better']:.1%},"
        f" least ahead {row['least_ahead']:.1e}\n"
        f"  optima: {row['our_optima']:.2f}, BoTorch {row['botorch_optima']:.2f}, of which"
        f" {row['botorch_settled']:.2f} are some; as many as those"
        f" {row.get('same_optima', 0):.1%}, at least as many {row.get('as_many_optima', nan):.1%}\n"
        f"  same verdict {row['same_verdict']:.1%} (a query {row['queries']:.1%}),"
        f" same confidence {row['same_confidence']:.1%}"
    )
