"""Tuning inside one training run that may go back: ask for a configuration, tell the metric."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor

from botorch_costly.ask_tell.clocks import Clocks
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.frame import Frame
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.ask_tell.points import SAME
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.state import attributes_of
from botorch_costly.errors import check, check_count, check_rate
from botorch_costly.parameters import BASES, Plain
from botorch_costly.plain import config_text
from botorch_costly.randomness import check_seed
from botorch_costly.records import FrozenConfig, Observation, TwinDecision
from botorch_costly.rewards.direction import watch_metrics, watch_segments
from botorch_costly.rewards.metric_gain import Kind, least_loss
from botorch_costly.rewards.running_best import RunningBest
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.lead import Lineages, lead_of, lineages
from botorch_costly.tuners.twins.levels import level_of
from botorch_costly.tuners.twins.segments import segments
from botorch_costly.tuners.twins.strategy import TwinStrategy
from botorch_costly.tuners.twins.told import examples_in, noun_of, passed_by, sentence_on, told_in
from botorch_costly.tuners.twins.untried import reasons

_logger = logging.getLogger(__name__)
_IN_A_TRIAL = (
    "in the middle of a trial: to end here, session.finish() brings the parts back to the incumbent"
)
_LATE = 3  # metrics that come too late to change anything, after which that is said


class TwinTuner(Frame[TwinDecision, Observation]):
    r"""Tune hyperparameters while one network trains, by twins that start from one state.

    Two configurations are compared from one state of training on the same batches, so that they differ
    by their hyperparameters and by little else. The better state is kept, and the rounds of the others
    are given back. A bad configuration costs the rounds of its trial and damages nothing. A run that
    still learns gives back little, and one that has converged gives back much: trials go on as long as
    they promise more than they cost, within an exploration budget.

    Use it through :class:`Session`, which keeps and restores the states of training. The tuner and its
    ``state_dict`` hold the states that a session has kept, so that they are saved, loaded and copied
    with the decisions that depend on them.

    References:
        Y. Wu, M. Ren, R. Liao, R. Grosse. Understanding short-horizon bias in stochastic
        meta-optimization. 2018: the reason for comparing learning rates early and over more rounds.
        D. Eriksson et al. Scalable global optimization via local Bayesian optimization. 2019: the
        growing and shrinking box of candidates.

    Args:
        space: Search space. A ``Scheduled`` parameter, or a logarithmic ``Real`` named ``lr`` or
            ``learning_rate``, is a learning rate: it has a search of its own, and falls in the last fifth
            of the run. If a scheduler of yours multiplies it, say ``Scheduled(.., base="constant")``.
        horizon: Rounds of compute, including those given back; it may be omitted with ``seconds``.
        start: First configuration, such as your default; the middle of the space if omitted.
        metric: Kind of the metric: ``"loss"``, at least 0, or ``"accuracy"``, a fraction.
        queries: Largest share of queried rounds.
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted. The rounds
            that they will hold are inferred from those so far. Without a horizon the first two rounds are
            trained with the start, and the run depends on the speed of the machine.
        overhead: Largest share of the clock that queries and the tuner may take, in (0, 1], as in
            ``Validation``; no limit if omitted. A comparison begins when the share affords all of its
            queries.
        clock: Function that returns seconds.
        seed: Seed of all random draws; the global generators are never touched.

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
    _missing: ClassVar = {**Frame._missing, "metric": None}

    _strategy: TwinStrategy
    _changeable = ("horizon", "overhead", "seconds")
    _is_direction_known = False
    _late = 0  # metrics that were told after the next ``ask``

    def __init__(
        self,
        space: SearchSpace,
        horizon: int | None = None,
        *,
        start: Mapping[str, Plain] | None = None,
        metric: Kind = "loss",
        queries: float = 0.3,
        seconds: float | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seed: int = 0,
    ) -> None:
        domain = Domain(space)
        ends = horizon is not None or seconds is not None
        check(ends, "horizon", "the rounds of the run, or its seconds=", horizon)
        horizon = None if horizon is None else check_count("horizon", horizon, minimum=1)
        kinds = list(get_args(Kind))
        check(isinstance(metric, str) and metric in kinds, "metric", f"one of {kinds}", metric)
        self._metric: Kind = metric
        self._best, self._latest = RunningBest(metric), -1  # and the latest round told
        queries = check_rate("queries", queries)
        self._start = _encoded(space, start)
        options: dict[str, Any] = {"start": dict(space.decode(self._start))}
        options |= {"metric": metric, "queries": queries}
        clocks = Clocks(seconds, overhead, clock)
        options |= {"seed": check_seed(seed), "overhead": clocks.overhead}
        strategy = TwinStrategy(space, self._start, horizon, queries, seed, seconds=clocks.seconds)
        super().__init__(
            domain,
            strategy,
            horizon=horizon,
            maximize=metric != "loss",
            options=options,
            clocks=clocks,
        )

    def ask(self) -> TwinDecision:
        """Decide on the next round of compute.

        A query that has not been told until now counts as not made. An error or an interrupt leaves the
        tuner unchanged.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for, or the seconds have
                passed.
        """
        with self.asking() as decision:
            if decision.restore is not None and not self._strategy.by_hand:
                self._strategy.by_hand = True
                _logger.warning(
                    "Round %d goes back to an earlier state of training, and no Session carries that "
                    "out. Unless your loop does, the comparisons of this tuner mean nothing.",
                    decision.round,
                )
        return decision

    @contextmanager
    def asking(self, rate: float = math.nan) -> Iterator[TwinDecision]:
        """Yield the next decision; if the block raises, the tuner is unchanged.

        Args:
            rate: Present learning rate of the optimizer. While it rises by itself from round to round,
                as in a warm-up, nothing is tried. NaN if it is not known.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for, or the seconds have
                passed.
        """
        undo, ledger = self._snapshot("ask"), attributes_of(self._ledger)
        try:
            self._strategy.see(rate, len(self._ledger), self.expected_rounds)
            yield self._next()
        except BaseException as error:
            undo(error)
            ledger(error)
            raise

    def tell(
        self,
        decision: TwinDecision,
        metric: float,
        *,
        seconds: float | None = None,
        variance: float = 0.0,
    ) -> Observation:
        """Hand in the metric after a round.

        Configurations are compared by differences of metrics, whose noise the tuner learns. A part of the
        validation set will do if each query reads the same one: most of its noise cancels.

        Args:
            decision: Latest decision of ``ask``. The metrics of earlier ones are recorded and change
                nothing.
            metric: Measured metric. NaN or an infinity means that the network diverged. A loss of 0
                before any above 0 is recorded and compares nothing.
            seconds: Duration of the query, if known.
            variance: Refused unless it is 0: that of a metric says nothing about a difference on the same
                examples.

        Returns:
            Record of the query, whose ``reward`` is the metric if that is finite.

        Raises:
            UnknownDecisionError: If this tuner never made the decision.
            AlreadyToldError: If it was told before.
            InvalidArgumentError: If the metric is not a number, or impossible for its kind, or there is a
                variance. In all cases the tuner is unchanged.
        """
        self._ledger.check_open(decision)
        expected = "0, for twins are compared on the same examples, and their noise is learnt"
        check(variance == 0, "variance", expected, variance)
        level = self.level_of(metric)
        outcome = observation_of(decision, metric, seconds=seconds, metric=metric)
        outcome = self._tell(outcome, level)
        self._warn_of_late(outcome)
        self._is_direction_known = self._is_direction_known or self._watch_direction()
        since, self._latest = self.decisions[self._latest + 1 : outcome.round + 1], outcome.round
        went_on = all(each.restore is None for each in since)
        self._best.watch(math.nan if outcome.reward is None else outcome.reward, is_next=went_on)
        return outcome

    def _warn_of_late(self, outcome: Observation) -> None:
        """Warn once if several metrics come after the next ``ask``, which has decided without them."""
        if outcome.round == len(self._ledger) - 1:
            return
        self._late += 1
        if self._late == _LATE:
            _logger.warning(
                "%d metrics were told after the next round had been asked for, and change nothing: tell "
                "the metric of a round before the next ask, or before the next pass of a for loop.",
                _LATE,
            )

    def _watch_direction(self) -> bool:
        """Warn if the metric seems to be of the other kind; return whether that is known.

        While rates are searched, the metrics in their order say nothing: small rates change none.
        """
        if self.space.rates:
            return watch_segments(self._metric, segments(self.decisions, self.observations))
        metrics = [outcome.reward for outcome in self.observations]
        return watch_metrics(self._metric, [metric for metric in metrics if metric is not None])

    def settle(self) -> None:
        """Play the incumbent from the present state to the end, and never go back.

        If the run is loaded with a longer horizon, trials go on from the state that it is in then.
        """
        self._strategy.settle()

    @property
    def kept(self) -> dict[int, Any]:
        """States of training by number, for sessions."""
        return self._strategy.kept

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the run plays the incumbent and never goes back."""
        return self._strategy.is_settled

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the kept state that the incumbent continues from; None for the present state."""
        return self._strategy.state_of_incumbent

    @property
    def position(self) -> tuple[int, int]:
        """Number of loaded states and of decisions: a session infers the state of its parts."""
        return self._strategy.loads, len(self._ledger)

    @property
    def incumbent(self) -> dict[str, Plain]:
        """Best configuration so far, before schedules."""
        return self.space.decode(self._strategy.plan.incumbent)

    def best(self) -> dict[str, Plain]:
        """Return the incumbent."""
        return self.incumbent

    @property
    def given_back(self) -> int:
        """Rounds of compute that are not part of the final run."""
        return self._strategy.plan.budget.given_back

    @property
    def exploration_cost(self) -> float:
        """Sum of the prices at which rounds were given back, in log loss at the end."""
        return self._strategy.plan.budget.cost

    def summary(self) -> str:
        """Return a few lines on the rounds, the queries, the cost of exploration and the incumbent."""
        rounds, told = len(self._ledger), told_in(self.observations, self.level_of)
        cost = 1 - math.exp(-self._strategy.plan.budget.cost_at_end)
        share = f" ({self.queries / rounds:.0%} of the rounds)" if rounds else ""
        of = "" if self.horizon is None else f" of {self.horizon}"
        return "\n".join(
            [
                f"{rounds}{of} rounds of compute, {self.given_back} of them given back",
                f"{self.queries} queries{share}, {self.failed_queries} of them failed",
                *self._on_the_clock(),
                f"those given back cost {cost:.1%} of the {noun_of(self._metric)} at the end; "
                "diagnose() says whether they have paid",
                *([sentence_on(self._metric, told)] if told else []),
                f"start: {config_text(self.space.decode(self._start))}",
                f"incumbent: {config_text(self.incumbent)}",
                *([] if self.state_of_incumbent is None else [_IN_A_TRIAL]),
            ]
        )

    def level_of(self, metric: float) -> float:
        """Return the level of a metric, by which configurations are compared.

        It is minus the logarithm of a loss or of the share of errors. A loss of 0 has the level of the
        smallest loss above 0 so far, and NaN before there is one.

        Args:
            metric: Metric in the form that ``tell`` takes; the level of NaN or an infinity is -inf.

        Raises:
            InvalidArgumentError: If it is not a number, or impossible for its kind.
        """
        return level_of(self._metric, metric, least_loss(o.reward for o in self._ledger.outcomes))

    def diagnose(self) -> TwinDiagnosis:
        """Return whether compute binds, the cost of exploration so far, and whether it has paid."""
        plan, found = self._strategy.plan, self._lineages()
        budget, lead = plan.budget, lead_of(found, len(self.decisions), self.given_back)
        is_start = torch.allclose(plan.incumbent, self._start, rtol=0, atol=SAME)
        told = told_in(self.observations, self.level_of)
        levels = [each.level for each in told if math.isfinite(each.level)]
        peaks = [decision.peak for decision in self.decisions if decision.peak is not None]
        return TwinDiagnosis(
            rounds=len(self._ledger),
            horizon=self.expected_rounds or len(self._ledger) + 1,
            queries=self.queries,
            told=len(self.observations),
            failed=self.failed_queries,
            slope=budget.curve.latest.expected,
            given_back=self.given_back,
            cost=budget.cost_at_end,
            gained=lead.least,
            changes=max(budget.changes, int(not is_start)),
            by_hand=self._strategy.by_hand,
            constant=len({each.metric for each in told}) == 1,
            worsened=levels[0] - levels[-1] if levels else 0.0,
            untried=reasons(
                self.space,
                peaks,
                plan.costly,
                is_bound=plan.was_bound,
                is_settled=self._strategy.tries_nothing,
            ),
            tried=len({config_text(peak) for peak in peaks}) > 1,
            metric=self._metric,
            examples=examples_in(self._metric, told),
            passed=passed_by([each for each in told if each.round in found.path]),
            most=lead.most,
            compared=lead.rounds,
            has_rate=bool(self.space.rates),
        )

    def _lineages(self) -> Lineages:
        """Return the levels of the start and of the run that can be compared."""
        falls, horizon = bool(self.space.rates), self.expected_rounds or len(self.decisions)
        # A rate that falls improves any configuration: that is no gain over the start.
        levels = {
            o.round: -math.inf if o.reward is None else self.level_of(o.reward)
            for o in self.observations
            if not falls or BASES["wsd"](o.round / horizon) == 1
        }
        return lineages(self.decisions, levels, self.state_of_incumbent)


def _encoded(space: SearchSpace, start: Mapping[str, Plain] | None) -> Tensor:
    """Return the encoded start; the middle of the space if there is none."""
    if start is not None:
        return space.encode(FrozenConfig(space.canonical(start)))
    return space.round(torch.full((space.dim,), 0.5, dtype=torch.float64))
