"""Tuning inside one training run that may go back: ask for a configuration, tell the metric."""

import json
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.ask_tell.recorded import Recorded
from botorch_costly.ask_tell.state import (
    check_header,
    header,
    taking_over,
    undone_on_error,
)
from botorch_costly.errors import (
    InvalidSpaceError,
    check,
    check_count,
    check_nonnegative,
    check_rate,
)
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.records import FrozenConfig, Observation, Plain, TwinDecision
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.level import check_metric, level_of
from botorch_costly.tuners.twins.peaks import as_played
from botorch_costly.tuners.twins.plan import Plan
from botorch_costly.tuners.twins.replay import Replay
from botorch_costly.tuners.twins.steps import Step

_logger = logging.getLogger(__name__)


class TwinTuner(Recorded[TwinDecision, Observation]):
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
        tunable = isinstance(space, SearchSpace) and space.dim > 0
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        self.space, self.horizon = space, check_count("horizon", horizon, minimum=1)
        self._metric = check_metric(metric)
        self._exploring = check_nonnegative("exploring", exploring)
        self._share = check_rate("queries", queries)
        self._seed = check_seed(seed)
        self._start = self._first(start)
        options = {"horizon": self.horizon, "start": dict(self.space.decode(self._start))}
        options |= {"metric": metric, "exploring": exploring, "queries": queries, "seed": seed}
        self._header = header(type(self), space, options)
        self._ledger = Ledger(*self.records, told="metric")
        self._replay = Replay(self._plan, {0: self.horizon})
        self._heard: list[float] = []
        self._alone: list[tuple[int, int | None]] = []  # steps heard when going back was given up
        self._step: Step | None = None  # the present one
        self._played, self._level = 0, math.nan  # of the present step
        self.kept: dict[int, Any] = {}  # states of training by number, for sessions
        self._by_hand = False  # whether a decision to go back was handed out without a session
        self._loads = 0

    # -- the face ---------------------------------------------------------------------------------

    def ask(self) -> TwinDecision:
        """Decide on the next round of compute.

        A query that was decided on and not told until now is taken for one that was not made. Whatever
        is raised meanwhile, an interrupt included, leaves the tuner as it was.

        Raises:
            HorizonExceededError: If all rounds of the horizon have been asked for.
        """
        with self.asking() as decision:
            if decision.restore is not None and not self._by_hand:
                self._by_hand = True
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
        with undone_on_error(self, self._ledger):
            yield self._next()

    def _next(self) -> TwinDecision:
        now = self._ledger.next_within(self.horizon)
        step, played, heard = self._step, self._played, self._heard
        if step is None or played == step.rounds:
            heard = heard if step is None else [*heard, self._level]
            step, played = self._replay.step(heard, self._alone), 0
        decision = self._decision(now, step, played, len(heard))
        if played == 0:
            self._step, self._heard, self._level = step, heard, math.nan
        self._played = played + 1
        self._ledger.suggest(decision)
        return decision

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
        told = observation_of(decision, metric, seconds=seconds)
        latest = decision.round == len(self._ledger) - 1
        with undone_on_error(self, self._ledger):
            if latest and self._step is not None and self._played == self._step.rounds:
                self._level = level
            self._ledger.tell(told)
        return told

    def _least(self) -> float | None:
        """Return the smallest metric above 0 told so far."""
        told = (one.reward for one in self._ledger.outcomes)
        return min((metric for metric in told if metric), default=None)

    def settle(self) -> None:
        """Play the incumbent from the present state to the end: no state can be gone back to.

        Loaded with a longer horizon, the run tries others again, from the state that it is in then.
        """
        if not self.is_settled:
            self._alone = [*self._alone, (len(self._heard), None)]
            self._step = None
            self.kept.clear()

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the run plays the incumbent, and goes back to nothing."""
        return bool(self._alone) and self._alone[-1][1] is None

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the kept state that the incumbent goes on from; None for the present state."""
        settled = self._step is None or self.is_settled
        return None if settled else self._replay.plan.state_of_incumbent

    @property
    def position(self) -> tuple[int, int]:
        """How often a state was loaded, and how many decisions were asked for: where the parts are."""
        return self._loads, len(self._ledger)

    @property
    def incumbent(self) -> dict[str, Plain]:
        """The best configuration so far, before schedules."""
        return self.space.decode(self._replay.plan.incumbent)

    def best_seen(self) -> dict[str, Plain]:
        """Return the incumbent."""
        return self.incumbent

    @property
    def given_back(self) -> int:
        """Rounds of compute that are no part of the run."""
        return self._replay.plan.course.given_back

    @property
    def exploration_cost(self) -> float:
        """What the rounds given back cost at the end of the run, in log loss, as it is expected."""
        return self._replay.plan.course.cost

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
        course = self._replay.plan.course
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
            by_hand=self._by_hand,
            constant=len(set(told)) == 1,
            worsened=levels[0] - levels[-1] if levels else 0.0,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues identically.

        What was decided follows from what was heard: loading plans the run anew, in some seconds. The
        states of training that a session has kept are in it, some three times the size of the parts.
        """
        progress = [
            self._heard,
            self._level,
            self._played,
            self._alone,
            self._step is not None,
            list(self._replay.horizons.items()),
            self._by_hand,
        ]
        return {
            "header": dict(self._header),
            "ledger": self._ledger.state_dict(),
            "progress": json.dumps(progress),  # as text: exact, NaN and all
            "kept": dict(self.kept),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], *, changed: tuple[str, ...] | list[str] = ()
    ) -> None:
        """Continue from ``state_dict``.

        Args:
            state: That of a tuner with equal options.
            changed: ``["horizon"]`` if the horizon may differ: it is planned for from the next step on. A
                run that had settled tries others again if it is longer.

        Raises:
            StateMismatchError: If another option differs, which the error names, or the state is of
                another version or kind of tuner, or damaged; the tuner is unchanged.
        """
        check_header(state, self._header, changed, among=self.changeable)
        with taking_over(type(self).__name__, self._ledger):
            self._ledger.load_state_dict(state["ledger"])
            progress = json.loads(state["progress"])
            heard, level, played, alone, began, horizons, by_hand = progress
            saved = dict(horizons)
            alone = _periods(alone)
            if alone and alone[-1][1] is None and self.horizon > saved[max(saved)]:
                alone[-1], began = (alone[-1][0], len(heard)), False
            replay = Replay(self._plan, self._horizons(saved, len(heard)))
            step = replay.step(heard, alone)
            kept = {int(number): one for number, one in state["kept"].items()}
        self._replay, self._step = replay, step if began else None
        self._heard, self._level = heard, level
        self._played, self._alone = played, alone
        self.kept, self._by_hand = kept, bool(by_hand)
        self._loads += 1

    # -- inside -----------------------------------------------------------------------------------

    def _first(self, start: Mapping[str, Plain] | None) -> Tensor:
        if start is not None:
            return self.space.encode(FrozenConfig(self.space.canonical(start)))
        return self.space.round(torch.full((self.space.dim,), 0.5, dtype=torch.float64))

    def _horizons(self, saved: Mapping[int, int], heard: int) -> dict[int, int]:
        """Return the horizons that were planned for, with the present one from here on."""
        last = saved[max(saved)]
        return dict(saved) if last == self.horizon else {**saved, heard: self.horizon}

    def _plan(self, horizon: int) -> Plan:
        course = Course(horizon, self._exploring, self._share)
        generator = generator_of(self._seed)
        return Plan(self.space, self._start, course, generator)

    def _decision(self, now: int, step: Step, played: int, number: int) -> TwinDecision:
        """Return one of the rounds of a step as a decision."""
        peak = self.space.decode(step.point)
        share = min((step.began + played) / self.horizon, 1.0)
        first, last = played == 0, played == step.rounds - 1
        return TwinDecision(
            round=now,
            config=as_played(self.space, peak, share),
            query=step.query and last,
            reason=f"{step.reason} (round {played + 1} of {step.rounds})",
            interval=number,
            peak=peak,
            trained=step.trained + played,
            keep=step.keep if first else None,
            restore=step.restore if first else None,
            drop=step.drop if first else (),
        )


def _periods(saved: Any) -> list[tuple[int, int | None]]:
    """Return when going back was given up and taken up again; earlier states say the first alone."""
    if saved is None or isinstance(saved, int):
        return [] if saved is None else [(saved, None)]
    return [(given_up, taken_up) for given_up, taken_up in saved]
