"""Tuning inside one training run that may go back: ask for a configuration, tell the metric."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.errors import check_count, check_nonnegative, check_rate
from botorch_costly.parameters import Plain
from botorch_costly.randomness import check_seed
from botorch_costly.records import FrozenConfig, Observation, TwinDecision
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.level import check_metric, level_of
from botorch_costly.tuners.twins.strategy import TwinStrategy

_logger = logging.getLogger(__name__)


class TwinTuner(Frame[TwinDecision, Observation]):
    r"""Tune hyperparameters while one network trains, by twins that begin in one state.

    A configuration is judged by what it makes of a state of training that another one continued on the
    same batches: the two differ by what the configurations do, and by little else. The better state is
    kept, the others are given back. So a bad configuration costs the rounds it was tried for, and
    damages nothing. A run that still learns gives back little, one that has converged much: trials go on
    for as long as they promise more than they cost, within an exploration budget.

    Use it through :class:`Session`, which keeps and restores the states of training. The tuner holds the
    states that a session has kept, and so does its ``state_dict``: they are saved, loaded and copied
    with the decisions that count on them.

    References:
        Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic
        meta-optimization. 2018: why learning rates are compared early and over more rounds.
        D. Eriksson et al. Scalable global optimization via local Bayesian optimization. 2019: the box of
        candidates that grows and shrinks.

    Args:
        space: What may be tuned. What is ``Scheduled``, or a logarithmic ``Real`` named ``lr`` or
            ``learning_rate``, is a learning rate: it has a search of its own, and falls in the last fifth
            of the run. If a scheduler of yours multiplies it, say ``Scheduled(.., base="constant")``.
        horizon: Rounds of compute, those that are given back included.
        start: The first configuration, such as your default; the middle of the space if omitted.
        metric: What is told: ``"loss"``, at least 0, or ``"accuracy"``, a fraction.
        exploring: What trials may cost at the end of the run, in log loss (0.01 is about 1 % of the
            loss), beyond what they gain; the search of the learning rate is not counted.
        queries: The largest share of the rounds that is queried.
        seed: The one source of randomness; the global generators are never touched.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example:
        >>> from botorch_costly import Scheduled
        >>> tuner = TwinTuner(SearchSpace({"lr": Scheduled(1e-4, 1e-1)}), 20, start={"lr": 1e-3})
        >>> for _ in range(20):
        ...     decision = tuner.ask()
        ...     if decision.query:
        ...         _ = tuner.tell(decision, 1.0)
        >>> len(tuner.decisions)
        20
    """

    tells: ClassVar[Tells] = "metric"
    records: ClassVar = (TwinDecision, Observation)

    _strategy: TwinStrategy
    _missing: ClassVar = {"reward": None, "failed": False, "seconds": None}

    horizon: int

    def __init__(
        self,
        space: SearchSpace,
        horizon: int,
        *,
        start: Mapping[str, Plain] | None = None,
        metric: str = "loss",
        exploring: float = 0.004,
        queries: float = 0.3,
        seed: int = 0,
    ) -> None:
        domain = Domain(space)
        horizon = check_count("horizon", horizon, minimum=1)
        self._metric = check_metric(metric)
        exploring = check_nonnegative("exploring", exploring)
        queries = check_rate("queries", queries)
        self._start = _encoded(space, start)
        options = {"horizon": horizon, "start": dict(space.decode(self._start))}
        options |= {"metric": metric, "exploring": exploring, "queries": queries}
        options |= {"seed": check_seed(seed)}
        strategy = TwinStrategy(space, self._start, horizon, exploring, queries, seed)
        super().__init__(
            domain, strategy, horizon=horizon, maximize=metric != "loss", options=options
        )

    def ask(self) -> TwinDecision:
        """Decide on the next round of compute.

        A query that was decided on and not told until now is taken for one that was not made. Whatever
        is raised meanwhile, an interrupt included, leaves the tuner as it was.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        with self.asking() as decision:
            if decision.restore is not None and not self._strategy.by_hand:
                self._strategy.by_hand = True
                _logger.warning(
                    "Round %d goes back to an earlier state of training, and no Session carries that "
                    "out. Unless your loop does, what this tuner compares means nothing.",
                    decision.round,
                )
        return decision

    @contextmanager
    def asking(self) -> Iterator[TwinDecision]:
        """Yield the next decision; if the block raises, it has never been asked for.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        with self._asking() as decision:
            yield decision

    def tell(
        self, decision: TwinDecision, metric: float, *, seconds: float | None = None
    ) -> Observation:
        """Hand in the metric after a round.

        Args:
            decision: What ``ask`` returned last. Earlier decisions may be told, too; they are recorded,
                and change nothing.
            metric: As it was measured. NaN or an infinity is a diverged network.
            seconds: What the query cost, if known.

        Returns:
            The record of the query, its ``reward`` the metric.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the metric is no number, or impossible for its kind. In all cases the
                tuner is unchanged.
        """
        self._ledger.check_open(decision)
        level = level_of(self._metric, metric, self._least())
        outcome = observation_of(decision, metric, seconds=seconds)
        with self._strategy.noting():
            self._strategy.hear(decision, level, self._seen)
            self._tell(outcome)
        return outcome

    def _least(self) -> float | None:
        """Return the smallest metric above 0 told so far."""
        told = (one.reward for one in self._ledger.outcomes)
        return min((metric for metric in told if metric), default=None)

    def settle(self) -> None:
        """Play the incumbent from the present state to the end: no state can be gone back to.

        Loaded with a longer horizon, the run tries others again, from the state that it is in then.
        """
        self._strategy.settle()

    @property
    def kept(self) -> dict[int, Any]:
        """The states of training by number, for sessions."""
        return self._strategy.kept

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the run plays the incumbent, and goes back to nothing."""
        return self._strategy.is_settled

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the kept state that the incumbent goes on from; None for the present state."""
        return self._strategy.state_of_incumbent

    @property
    def position(self) -> tuple[int, int]:
        """How often a state was loaded, and how many decisions were asked for: where the parts are."""
        return self._strategy.loads, len(self._ledger)

    @property
    def incumbent(self) -> dict[str, Plain]:
        """The best configuration so far, before schedules."""
        return self.space.decode(self._strategy.plan.incumbent)

    def best(self) -> dict[str, Plain]:
        """Return the incumbent."""
        return self.incumbent

    @property
    def given_back(self) -> int:
        """Rounds of compute that are no part of the run."""
        return self._strategy.plan.course.given_back

    @property
    def exploration_cost(self) -> float:
        """Expected cost at the end of the run of the rounds given back, in log loss."""
        return self._strategy.plan.course.cost

    def summary(self) -> str:
        """Return a few lines on what was played, given back, queried and found."""
        rounds = len(self._ledger)
        share = f" ({self.queries / rounds:.0%} of the rounds)" if rounds else ""
        return "\n".join(
            [
                f"{rounds} of {self.horizon} rounds of compute, {self.given_back} of them given back",
                f"{self.queries} queries{share}, {self.failed_queries} of them failed",
                f"exploring is expected to cost {self.exploration_cost:.3g} in log loss at the end",
                f"start {self.space.decode(self._start)}",
                f"incumbent {self.incumbent}",
            ]
        )

    def level_of(self, metric: float) -> float:
        """Return what configurations are compared by: minus the logarithm of a loss or of the errors.

        Args:
            metric: As it is told. Of what is not finite it is minus infinity.

        Raises:
            InvalidArgumentError: If it is no number, or impossible for its kind.
        """
        return level_of(self._metric, metric)

    def diagnose(self) -> TwinDiagnosis:
        """Say whether compute binds, what exploring has cost so far, and whether it has paid."""
        course = self._strategy.plan.course
        told = [o.reward for o in self.observations if o.reward is not None]
        least = self._least()
        levels = [level_of(self._metric, metric, least) for metric in told]
        return TwinDiagnosis(
            rounds=len(self._ledger),
            horizon=self.horizon,
            queries=self.queries,
            told=len(self.observations),
            failed=self.failed_queries,
            slope=course.curve.latest.expected,
            given_back=self.given_back,
            cost=self.exploration_cost,
            gained=course.gained,
            changes=course.changes,
            by_hand=self._strategy.by_hand,
            constant=len(set(told)) == 1,
            worsened=levels[0] - levels[-1] if levels else 0.0,
        )


def _encoded(space: SearchSpace, start: Mapping[str, Plain] | None) -> Tensor:
    """Return the encoded start; the middle of the space if there is none."""
    if start is not None:
        return space.encode(FrozenConfig(space.canonical(start)))
    return space.round(torch.full((space.dim,), 0.5, dtype=torch.float64))
