"""What a method pays: rounds, queries and seconds of all the runs it trains, and how it ended."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.suite.compute_bound.training import LongProblem, LongRun
from benchmarks.suite.protocol import Metrics, TrainingRun
from botorch_costly import SearchSpace
from botorch_costly.errors import HorizonExceededError, check, check_count

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """How one run of a method ended, in plain values.

    Args:
        loss: On the test rows, of the network that is handed over; None if it has diverged.
        accuracy: On the test rows, in [0, 1].
        queries: Measurements of the validation rows.
        rounds: Rounds trained in all, by all networks: the compute.
        handed_over: Rounds in the history of the network that is handed over.
        given_back: Rounds that left nothing in it: trials that ended by going back, and networks
            that were given up. With ``handed_over`` these are all rounds.
        training: Seconds of training.
        querying: Seconds of the queries.
        copying: Seconds of copies and of going back.
        deciding: All other seconds, but those of loading data and of the test.
    """

    loss: float | None
    accuracy: float
    queries: int
    rounds: int
    handed_over: int
    given_back: int
    training: float
    querying: float
    copying: float
    deciding: float


@dataclass
class Account:
    """Counts what the runs of one method take, and ends a method that takes too much."""

    limit: int  # rounds that may be trained in all
    rounds: int = 0
    queries: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        check_count("limit", self.limit, minimum=1)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to what ``name`` took."""
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def train(self) -> None:
        """Count a round.

        Raises:
            HorizonExceededError: If it is one too many.
        """
        allowed, expected = self.rounds < self.limit, f"at most {self.limit}"
        check(allowed, "rounds", expected, self.rounds + 1, HorizonExceededError)
        self.rounds += 1

    def charge(self, other: "Account", share: float) -> None:
        """Pay what is on the account of a smaller network, whose rounds are a share of a round each.

        Rounds are rounded up.

        Raises:
            HorizonExceededError: If they are too many.
        """
        rounds = self.rounds + math.ceil(share * other.rounds)
        check(rounds <= self.limit, "rounds", f"at most {self.limit}", rounds, HorizonExceededError)
        self.rounds, self.queries = rounds, self.queries + other.queries
        for name, seconds in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def result(self, run: TrainingRun) -> Result:
        """Return how it ended with this run handed over."""
        total = time.perf_counter() - self._began
        parts = {name: self.seconds.get(name, 0.0) for name in ("training", "querying", "copying")}
        other = total - self.seconds.get("setup", 0.0) - sum(parts.values())
        metrics = run.test()
        return Result(
            loss=metrics.loss if math.isfinite(metrics.loss) else None,
            accuracy=metrics.accuracy,
            queries=self.queries,
            rounds=self.rounds,
            handed_over=run.round,
            given_back=self.rounds - run.round,
            deciding=max(other, 0.0),
            **parts,
        )


@dataclass(frozen=True)
class Accounted:
    """A problem from one start, whose runs are all on one account: an ``OnlineProblem``."""

    problem: LongProblem  # what is trained
    default: Config  # the start
    account: Account  # of one method

    def __post_init__(self) -> None:
        self.problem.space.check(self.default)

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def horizon(self) -> int:
        return self.problem.horizon

    @property
    def space(self) -> SearchSpace:
        return self.problem.space

    def setup(self, seed: int) -> "AccountedRun":
        with self.account.timed("setup"):
            return AccountedRun(self.problem, check_count("seed", seed), self.account)


class AccountedRun(LongRun):
    """A ``LongRun`` on an account."""

    def __init__(self, problem: LongProblem, seed: int, account: Account) -> None:
        super().__init__(problem, seed)
        self.account = account

    def train_round(
        self, config: Config, *, rate_factor: float | Sequence[float] = 1.0
    ) -> list[float]:
        """Train a round; see ``LongRun``.

        Raises:
            HorizonExceededError: If the account allows no further round.
        """
        self.account.train()
        with self.account.timed("training"):
            return super().train_round(config, rate_factor=rate_factor)

    def validate(self) -> Metrics:
        self.account.queries += 1
        with self.account.timed("querying"):
            return super().validate()

    def restore(self, saved: Mapping[str, Any]) -> None:
        with self.account.timed("copying"):
            super().restore(saved)

    def copy(self) -> dict[str, Any]:
        """Return a state that further training leaves alone."""
        with self.account.timed("copying"):
            return copy.deepcopy(self.state_dict())

    def result(self) -> Result:
        """Return how the method ended with this run handed over."""
        return self.account.result(self)


Method = Callable[[LongProblem, Config, int], Result]  # from problem, start and seed


def begin(problem: LongProblem, start: Config, seed: int) -> AccountedRun:
    """Start the one run of a method that may train through the horizon."""
    return Accounted(problem, start, Account(problem.horizon)).setup(seed)
